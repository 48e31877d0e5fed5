"""Puts into the Tensor type what other modules contribute: operators, conversions, hooks, printing and the rest."""

from importlib import import_module

from cygrad import composite, conversion, fft, linalg, operators, printing, random
from cygrad._core.creation import creation, factories
from cygrad._core.dispatch import assign
from cygrad._core.engine.engine import tensor_backward
from cygrad._core.graph import override, tensor_hooks, tensor_metadata
from cygrad._core.graph.tensor import install

__all__ = []


def _late(name):
    """A method that is loaded when it is first called."""
    def method(self, *args, **options):
        return import_module("cygrad.compatibility.tensors").METHODS[name](self, *args, **options)
    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"``{name}`` of `cygrad.compatibility.tensors`."
    return method


def _first_call(name):
    """A protocol of NumPy: the first call loads what is installed in the place of this."""
    def protocol(self, *args, **options):
        return import_module("cygrad.numpy_protocols").PROTOCOLS[name](self, *args, **options)
    protocol.__name__ = protocol.__qualname__ = name
    protocol.__doc__ = f"``{name}`` of `cygrad.numpy_protocols`."
    return protocol


LATE = ("__rdiv__", "apply_", "as_subclass", "dim_order", "is_shared", "map_", "narrow_copy", "new",
        "new_empty_strided", "resize_", "resize_as_", "share_memory_", "storage", "to_dense", "untyped_storage")

install({
    **operators.METHODS, **composite.METHODS, **composite.PROPERTIES, **fft.METHODS, **linalg.METHODS, **random.METHODS,
    **conversion.METHODS, **tensor_metadata.METHODS, **tensor_hooks.METHODS, **assign.METHODS,
    **{name: getattr(factories, name) for name in ("new_zeros", "new_ones", "new_empty", "new_full", "new_tensor")},
    **{name: _late(name) for name in LATE},
    **{name: _first_call(name) for name in ("__array_ufunc__", "__array_function__")},
    "__init__": creation.construct, "__torch_function__": classmethod(override.torch_function),
    "backward": tensor_backward, "__repr__": printing.tensor_repr, "__format__": printing.tensor_format,
})
