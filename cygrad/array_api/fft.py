"""The standard's Fourier transforms."""

import cygrad as c
from cygrad.array_api.naming import finished
from cygrad.numpy_protocols import fft as numpys

__all__ = ["FUNCTIONS"]


def _along_one(name):
    row = numpys.rows[name]
    return lambda x, /, *, n=None, axis=-1, norm="backward": row(x, n, axis, norm)


def _along_several(name):
    row = numpys.rows[name]
    return lambda x, /, *, s=None, axes=None, norm="backward": row(x, s, axes, norm)


def _frequencies(name):
    function = getattr(c.fft, name)
    return lambda n, /, *, d=1.0, dtype=None, device=None: function(n, d, dtype=dtype, device=device)


FUNCTIONS = finished("cygrad.array_api.fft", {
    **{name: _along_one(name) for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")},
    **{name: _along_several(name) for name in ("fftn", "ifftn", "rfftn", "irfftn")},
    **{name: _frequencies(name) for name in ("fftfreq", "rfftfreq")},
    "fftshift": lambda x, /, *, axes=None: c.fft.fftshift(x, axes),
    "ifftshift": lambda x, /, *, axes=None: c.fft.ifftshift(x, axes)})
globals().update(FUNCTIONS)
__all__ += list(FUNCTIONS)
