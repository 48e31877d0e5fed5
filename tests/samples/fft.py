"""Samples: Fourier transforms."""

from .sample import Sample, call, fails, only_real

LINES = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
BLOCKS = ("fftn", "ifftn", "rfftn", "irfftn", "hfftn", "ihfftn")
OF_REAL = {"rfft", "ihfft", "rfftn", "ihfftn", "rfft2", "ihfft2"}


def lines():
    return [
        call((5,)), call((4,)), call((2, 3, 4), dim=1), call((2, 5), n=3), call((2, 5), n=8, norm="ortho"),
        call((4, 3), dim=0, norm="forward"), call((3, 2), dim=0, n=1),
        lambda make, dtype: Sample((make((4, 3)).t(),)),
        fails(RuntimeError, "data points", (2, 0)), fails(RuntimeError, "normalization", (4,), None, -1, "x"),
        fails(IndexError, "dim", (4,), None, 1), fails(RuntimeError, "data points", (4,), 0),
    ]


def blocks():
    return [
        call((3, 4)), call((2, 3, 4), dim=(0, 2)), call((3, 4), dim=(1, 0), norm="ortho"), call((2, 3), s=(3, 4)),
        call((2, 3, 4), s=(2, -1), dim=(1, 2), norm="forward"),
        fails(RuntimeError, "same length", (3, 4), s=(2,), dim=(0, 1)),
        fails(RuntimeError, "unique", (3, 4), dim=(0, 0)),
        fails(IndexError, "dim", (3, 4), dim=(0, 2)),
    ]


def planes():
    return [call((3, 4)), call((2, 3, 4)), call((2, 3), s=(3, 4)), call((2, 3, 4), dim=(0, 2), norm="ortho")]


def fitting(name, builders):
    """Those for real input, where only that is taken."""
    return only_real(builders) if name in OF_REAL else builders


SAMPLES = {
    **{f"fft.{name}": fitting(name, lines()) for name in LINES},
    **{f"fft.{name}": fitting(name, blocks()) for name in BLOCKS},
    **{f"fft.{name[:-1]}2": fitting(f"{name[:-1]}2", planes()) for name in BLOCKS},
    "fft.fftshift": [call((5,)), call((2, 3, 4)), call((3, 4), 1), call((3, 4), dim=(0, 1)), call((0, 2)),
                     fails(IndexError, "dim", (3,), 1)],
    "fft.ifftshift": [call((5,)), call((2, 3, 4)), call((3, 4), 1), call((3, 4), dim=(0, 1)), call((0, 2)),
                      fails(IndexError, "dim", (3,), 1)],
}
COMPLEX = {name for name in SAMPLES if name.partition(".")[2] not in OF_REAL}
HELPERS = {"fft_c2c": "fft.fft", "fft_real": "fft.fft", "fft_r2c": "fft.rfft", "fft_c2r": "fft.irfft",
           "fft_weigh": "fft.rfft"}
