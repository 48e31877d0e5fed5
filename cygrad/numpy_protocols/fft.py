"""numpy.fft on Tensors."""

import cygrad as c
from cygrad.numpy_protocols.arrays import Rows, inexact

__all__ = ["rows"]


def _along_one(name):
    function = getattr(c.fft, name)
    return lambda a, n=None, axis=-1, norm=None: function(inexact(a), n, axis, norm)


def _along_several(name, default=None):
    function = getattr(c.fft, name)

    def transform(a, s=None, axes=default, norm=None):
        return function(inexact(a), None if s is None else tuple(s), axes if axes is None else tuple(axes), norm)
    return transform


rows = Rows({
    **{name: _along_one(name) for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")},
    **{name: _along_several(name) for name in ("fftn", "ifftn", "rfftn", "irfftn")},
    **{name: _along_several(name, (-2, -1)) for name in ("fft2", "ifft2", "rfft2", "irfft2")},
    "fftshift": lambda x, axes=None: c.fft.fftshift(x, axes),
    "ifftshift": lambda x, axes=None: c.fft.ifftshift(x, axes),
})
