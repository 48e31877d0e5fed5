"""Samples: interpolation, pixel shuffling, grid sampling."""

from .sample import Sample, call, fails, only_floating


def sampled(shape, grid, low=-1.3, high=1.3, **kwargs):
    """Return images, and positions of which some are outside."""
    options = {"align_corners": False, **kwargs}
    return lambda make, dtype: Sample((make(shape), make(grid, low, high)), options)


SAMPLES = {
    "interpolate": only_floating([
        call((2, 2, 3), size=5),
        call((1, 2, 4), scale_factor=1.6, mode="nearest-exact"),
        call((2, 2, 3), size=5, mode="linear"),
        call((1, 2, 3), scale_factor=2.4, mode="linear"),
        call((1, 2, 3, 4), size=[5, 2], mode="bilinear", align_corners=True),
        call((1, 2, 3, 4), scale_factor=(1.5, 0.7), mode="bicubic"),
        call((1, 2, 5, 6), size=[3, 2], mode="bilinear", antialias=True),
        call((1, 2, 5, 6), size=[7, 2], mode="bicubic", antialias=True),
        call((1, 2, 5, 6), size=[3, 2], mode="area"),
        call((1, 1, 2, 3, 2), size=[3, 4, 3], mode="trilinear"),
        call((0, 2, 3), size=5),
        fails(ValueError, "expected size or scale_factor", (1, 1, 3)),
        fails(ValueError, "expected size or scale_factor", (1, 1, 3), size=2, scale_factor=2),
        fails(ValueError, "align_corners is only supported", (1, 1, 3), size=2, align_corners=True),
        fails(NotImplementedError, "does not support input with 3 dimensions", (1, 1, 3), size=2, mode="bilinear"),
        fails(NotImplementedError, "unknown mode", (1, 1, 3), size=2, mode="lanczos"),
        fails(RuntimeError, "greater than 0", (1, 1, 3), size=0),
        fails(RuntimeError, "greater than 0", (1, 1, 0), size=2),
        fails(ValueError, "one value for each spatial dimension", (1, 1, 3), size=[2, 2]),
    ]),
    "pixel_shuffle": [call((2, 8, 2, 3), 2), call((9, 1, 2), 3), fails(RuntimeError, "divisible", (3, 2, 2), 2)],
    "pixel_unshuffle": [call((2, 2, 4, 6), 2), call((1, 3, 3), 3), fails(RuntimeError, "divisible", (3, 2, 3), 2)],
    "channel_shuffle": [call((2, 6, 2), 3), call((2, 4, 2, 2), 2), fails(RuntimeError, "divisible", (2, 5, 2), 2)],
    "grid_sample": only_floating([
        sampled((2, 2, 3, 4), (2, 3, 2, 2)),
        sampled((1, 2, 3, 4), (1, 3, 2, 2), padding_mode="border", align_corners=True),
        sampled((1, 2, 3, 4), (1, 3, 2, 2), padding_mode="reflection"),
        sampled((1, 2, 3, 4), (1, 2, 2, 2), mode="bicubic", padding_mode="reflection", align_corners=True),
        sampled((1, 1, 3, 3), (1, 2, 2, 2), mode="nearest"),
        sampled((1, 2, 2, 3, 2), (1, 1, 2, 2, 3)),
        fails(ValueError, "unknown mode", (1, 1, 2, 2), (1, 1, 1, 2), mode="linear"),
        fails(ValueError, "unknown padding_mode", (1, 1, 2, 2), (1, 1, 1, 2), padding_mode="zero"),
        fails(RuntimeError, "size 2 in the last dimension", (1, 1, 2, 2), (1, 1, 1, 3)),
        fails(RuntimeError, "both be 4D", (1, 1, 2, 2), (1, 1, 2)),
    ]),
    "affine_grid": only_floating([
        call((2, 2, 3), [2, 1, 3, 2], align_corners=False),
        call((1, 3, 4), [1, 1, 2, 2, 3], align_corners=True),
        fails(ValueError, "batch of affine matrices", (2, 2, 3), [1, 1, 3, 2]),
    ]),
}
HELPERS = {"resample": "interpolate", "resample_backward": "interpolate", **dict.fromkeys((
    "sample_grid", "grid_taps", "grid_taps_backward", "grid_taps_along", "gather_weighted", "scatter_weighted",
    "gather_products"), "grid_sample")}
