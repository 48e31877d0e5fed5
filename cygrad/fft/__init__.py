"""
Fourier transforms of float32, float64, complex64 and complex128, by NumPy's pocketfft, without the interpreter's lock.

They are linear, and their derivatives are transforms; so derivatives of every order and forward mode are there.
"""

from cygrad.fft.blocks import fftn, hfftn, ifftn, ihfftn, irfftn, rfftn
from cygrad.fft.frames import istft, stft
from cygrad.fft.frequencies import fftfreq, fftshift, ifftshift, rfftfreq
from cygrad.fft.lines import fft, hfft, ifft, ihfft, irfft, rfft
from cygrad.fft.planes import fft2, hfft2, ifft2, ihfft2, irfft2, rfft2

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "hfft2", "hfftn", "ifft", "ifft2", "ifftn", "ifftshift",
    "ihfft", "ihfft2", "ihfftn", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]

# Of the package's namespace, and methods of Tensor.
FUNCTIONS = {"stft": stft, "istft": istft}
METHODS = FUNCTIONS
