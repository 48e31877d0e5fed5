"""Puts into the Tensor type what other modules contribute: operators, conversions, hooks, printing and the rest."""

from cygrad import composite, conversion, fft, linalg, operators, printing, random
from cygrad._core import assign, factories, tensor_hooks, tensor_metadata
from cygrad._core.engine import tensor_backward
from cygrad._core.tensor import install

__all__ = []

install({
    **operators.METHODS, **composite.METHODS, **composite.PROPERTIES, **fft.METHODS, **linalg.METHODS, **random.METHODS,
    **conversion.METHODS, **tensor_metadata.METHODS, **tensor_hooks.METHODS, **assign.METHODS,
    **{name: getattr(factories, name) for name in ("new_zeros", "new_ones", "new_empty", "new_full", "new_tensor")},
    "backward": tensor_backward, "__repr__": printing.tensor_repr, "__format__": printing.tensor_format,
})
