"""Samples: convolutions of sequences, images and volumes, and their transposes."""

from .sample import Sample, call, fails, only_floating


def strided(make, dtype):
    """Images of which every second column is taken, and a transposed kernel."""
    return Sample((make((2, 2, 4, 8))[..., ::2], make((3, 2, 2, 3)).permute(0, 1, 3, 2)))


SAMPLES = {
    "conv1d": [
        call((2, 3, 7), (4, 3, 3), (4,)),
        call((3, 7), (4, 3, 3)),
        call((2, 4, 8), (6, 2, 3), (6,), stride=2, padding=1, dilation=2, groups=2),
        call((2, 2, 5), (1, 2, 2), padding="same"),
        call((2, 2, 5), (1, 2, 3), padding="valid"),
        call((0, 2, 5), (1, 2, 3)),
        call((17, 2, 6), (3, 2, 3), padding=(1,)),
        call((1, 2, 700), (2, 2, 3), (2,), padding=1),
        fails(RuntimeError, "conv1d: expected 2D .*got shape \\(4,\\)", (4,), (1, 1, 2)),
        fails(RuntimeError, "conv1d: the number of channels", (2, 3, 7), (4, 2, 3)),
        fails(RuntimeError, "conv1d: kernel size", (2, 3, 2), (4, 3, 3)),
        fails(RuntimeError, "conv1d: kernel size", (2, 3, 2), (4, 3, 0)),
        fails(RuntimeError, "conv1d: weight must have as many dimensions", (2, 3, 2), (4, 3)),
        fails(RuntimeError, "'same' requires a stride of 1", (2, 3, 7), (4, 3, 3), padding="same", stride=2),
        fails(RuntimeError, "invalid padding string", (2, 3, 7), (4, 3, 3), padding="full"),
        fails(RuntimeError, "non-positive groups", (2, 3, 7), (4, 3, 3), groups=0),
        fails(RuntimeError, "divisible by 2", (2, 4, 7), (3, 2, 3), groups=2),
        fails(RuntimeError, "expected bias", (2, 3, 7), (4, 3, 3), (3,)),
    ],
    "conv2d": [
        call((2, 3, 5, 6), (4, 3, 3, 2), (4,)),
        call((2, 5, 5), (3, 2, 3, 3), None, 1, 1),
        call((2, 4, 6, 5), (4, 2, 3, 3), (4,), stride=(2, 1), padding=(1, 2), dilation=(1, 2), groups=2),
        call((3, 4, 4, 4), (4, 1, 3, 3), padding=1, groups=4),
        call((2, 3, 4, 5), (4, 3, 1, 1), (4,)),
        call((1, 2, 4, 5), (3, 2, 2, 3), padding="same"),
        call((16, 2, 3, 3), (3, 2, 2, 2), (3,)),
        call((2, 2, 20, 30), (2, 2, 3, 3), (2,)),
        call((0, 2, 4, 4), (3, 2, 3, 3), (3,)),
        strided,
        fails(RuntimeError, "non-positive stride", (1, 1, 4, 4), (1, 1, 2, 2), stride=0),
        fails(RuntimeError, "negative padding", (1, 1, 4, 4), (1, 1, 2, 2), padding=-1),
        fails(RuntimeError, "non-positive dilation", (1, 1, 4, 4), (1, 1, 2, 2), dilation=(1, 0)),
        fails(RuntimeError, "expected stride to be", (1, 1, 4, 4), (1, 1, 2, 2), stride=(1, 1, 1)),
        fails(RuntimeError, "at least 1", (1, 1, 4, 4), (0, 1, 2, 2)),
        fails(RuntimeError, "too large a padding", (1, 1, 4, 4), (1, 1, 2, 2), padding=1 << 40),
        lambda make, dtype: Sample((make((1, 1, 4, 4)), make((1, 1, 2, 2)).float()), error=RuntimeError,
                                   match="should be the same"),
    ],
    "conv3d": [
        call((2, 2, 3, 4, 4), (3, 2, 2, 2, 3), (3,)),
        call((2, 3, 4, 4), (2, 2, 2, 2, 3), padding=(1, 0, 1), stride=(1, 2, 1)),
        call((1, 2, 3, 3, 3), (2, 1, 2, 2, 2), groups=2, dilation=2, padding=1),
        call((1, 1, 2, 3, 3), (1, 1, 2, 1, 2), padding="same"),
    ],
    "conv_transpose1d": [
        call((2, 3, 5), (3, 4, 3), (4,)),
        call((3, 5), (3, 4, 3)),
        call((2, 4, 5), (4, 3, 3), (6,), stride=3, padding=1, output_padding=2, groups=2, dilation=2),
        call((2, 2, 3), (2, 1, 2), (1,), stride=1, dilation=3, output_padding=2),
        call((0, 2, 5), (2, 1, 3)),
        fails(RuntimeError, "output padding must be smaller", (2, 3, 5), (3, 4, 3), output_padding=1),
        fails(RuntimeError, "output size is too small", (2, 3, 1), (3, 4, 1), padding=1),
        fails(RuntimeError, "expected input of 3 channels", (2, 2, 5), (3, 4, 3)),
        fails(RuntimeError, "weight must have 3 dimensions", (2, 2, 5), (2, 4)),
        fails(RuntimeError, "expected bias", (2, 3, 5), (3, 4, 3), (3,)),
        fails(RuntimeError, "stride must be at least 1", (2, 3, 5), (3, 4, 3), stride=0),
        fails(RuntimeError, "non-positive groups", (2, 3, 5), (3, 4, 3), groups=0),
        fails(TypeError, "padding must be", (2, 3, 5), (3, 4, 3), padding="same"),
    ],
    "conv_transpose2d": [
        call((2, 3, 3, 4), (3, 2, 3, 2), (2,)),
        call((2, 4, 3, 3), (4, 2, 3, 3), (4,), stride=(2, 1), padding=(1, 2), output_padding=(1, 0), groups=2),
        call((3, 3, 3), (3, 2, 1, 1), (2,)),
        call((17, 2, 3, 3), (2, 3, 2, 2), (3,)),
    ],
    "conv_transpose3d": [
        call((2, 2, 2, 3, 2), (2, 3, 2, 2, 2), (3,), stride=(1, 2, 1)),
        call((2, 2, 3, 2), (2, 1, 2, 1, 2), padding=(1, 0, 0), dilation=(2, 1, 1)),
    ],
    "fold": [
        *only_floating([
            call((2, 12, 12), [4, 5], 2),
            call((12, 4), 3, 2),
            call((1, 4, 9), [4, 4], 2, padding=(1, 1), stride=2),
        ]),
        fails(RuntimeError, "fold: the input does not match", (1, 4, 5), 3, 2),
        fails(RuntimeError, "fold: the input does not match", (1, 3, 4), 3, 2),
        fails(RuntimeError, "fold: expected 2D", (4,), 3, 2),
    ],
}
COMPLEX = set(SAMPLES)
HELPERS = {
    "im2col": "fold", "col2im": "fold", "convolution": "conv2d", "convolution_input_backward": "conv_transpose2d",
    "convolution_weight_backward": "conv2d",
}
