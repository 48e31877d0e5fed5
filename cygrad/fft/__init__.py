"""
Fourier transforms of float32, float64, complex64 and complex128, by NumPy's pocketfft, without the GIL.

They are linear, and their derivatives are transforms; so derivatives of every order and forward mode are there.
"""

import sys

from cygrad._core import public_dir as _public_dir
from cygrad.composite.out_forms import all_spelled
from cygrad.fft import helper, transforms
from cygrad.fft import stft as short_time
from cygrad.fft.helper import fftfreq, fftshift, ifftshift, rfftfreq
from cygrad.fft.stft import istft, stft
from cygrad.fft.transforms import (
    fft,
    fft2,
    fftn,
    hfft,
    hfft2,
    hfftn,
    ifft,
    ifft2,
    ifftn,
    ihfft,
    ihfft2,
    ihfftn,
    irfft,
    irfft2,
    irfftn,
    rfft,
    rfft2,
    rfftn,
)

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "hfft2", "hfftn", "ifft", "ifft2", "ifftn", "ifftshift",
    "ihfft", "ihfft2", "ihfftn", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]

globals().update(all_spelled({name: globals()[name] for name in __all__}))
del all_spelled
# Of the package's namespace, and methods of Tensor.
FUNCTIONS = {"stft": stft, "istft": istft}
METHODS = FUNCTIONS
# Pickles of earlier versions name functions by these modules.
sys.modules.update({f"{__name__}.{former}": transforms for former in (
    "blocks", "lines", "n_d", "one_d", "planes", "two_d")})
sys.modules.update({f"{__name__}.frames": short_time, f"{__name__}.frequencies": helper})

__dir__ = _public_dir(__name__)
