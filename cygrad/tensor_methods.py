"""Puts into the Tensor type what other modules contribute: operators, conversions, hooks, printing and the rest."""

from functools import update_wrapper
from importlib import import_module

from cygrad import composite, conversion, linalg, operators, printing, random
from cygrad._core.creation import creation, factories
from cygrad._core.dispatch import indexing
from cygrad._core.engine.engine import tensor_backward
from cygrad._core.graph import boxing, hooks, type_slots
from cygrad._core.graph.tensor import Tensor, install
from cygrad._core.graph.type_slots import make_subclass

__all__ = []


class LateMethod:
    """A method that is imported when it is first looked up: the one of this name in METHODS of a module."""

    def __init__(self, name, module):
        self.name, self.module = name, module

    def __get__(self, tensor, cls=None):
        method = import_module(self.module).METHODS[self.name]
        if vars(Tensor)[self.name] is self:
            install({self.name: method})
        return method.__get__(tensor, cls)

    __doc__ = property(lambda self: import_module(self.module).METHODS[self.name].__doc__)


def _made_subclass(cls, **options):
    """Convert results of methods that are not operators to a subclass of Tensor, or call its ``__torch_function__``."""
    super(Tensor, cls).__init_subclass__(**options)
    function = getattr(cls.__torch_function__, "__func__", cls.__torch_function__)
    if "__torch_dispatch__" in vars(cls):
        cls.detach = lambda self: boxing.call_override(Tensor.detach, (self,), (self,), {})
        cls.device = property(lambda self: import_module("cygrad").device("cpu"), doc="The device of the elements.")
        if cls.__deepcopy__ is Tensor.__deepcopy__:
            cls.__deepcopy__ = lambda self, memo: memo.setdefault(id(self), self.clone())
        if function is boxing.torch_function:
            function = cls.__torch_function__ = boxing.disabled_torch_function
    if function is boxing.disabled_torch_function:
        return
    if function is not boxing.torch_function and not cls.__module__.startswith("cygrad."):
        import_module("cygrad.compatibility.function_overrides").dispatch_methods(cls)
    elif cls.detach is Tensor.detach:
        cls.detach, cls.data = _typed(Tensor.detach), _data
        if function is boxing.torch_function:
            for name in FACTORIES:
                setattr(cls, name, _typed(getattr(Tensor, name)))


def _typed(method):
    """Wrap a method that is not an operator, so that its result has the class of `self`."""
    def call(self, *args, **options):
        return type(self).__torch_function__(method, (type(self),), (self, *args), options)
    return update_wrapper(call, method)


def _make_subclass(cls, data, require_grad=False, *options):
    """Return the memory of a tensor as one of a subclass."""
    return make_subclass(cls, Tensor.detach(data), require_grad)


def _make_wrapper_subclass(cls, size, *, dtype=None, requires_grad=False, **options):
    """A tensor of a subclass on the meta device: a shape and a dtype, whose elements the class keeps elsewhere."""
    return make_subclass(cls, factories.empty(size, dtype=dtype, device="meta"), requires_grad)


_data = property(lambda self: type(self).__torch_function__(Tensor.data.__get__, (type(self),), (self,)),
                 lambda self, value: Tensor.data.__set__(self, value),
                 doc="The same memory outside the graph, with a version counter of its own.")


def _strides(self):
    """Strides in bytes, as in NumPy; `stride()` returns them in elements.

    Examples
    --------
    >>> cygrad.ones(2, 3).strides
    (12, 4)
    """
    return tuple([step * self.itemsize for step in self.stride()])


def _no_name(self):
    """Always None: named tensors are not supported.

    Examples
    --------
    >>> cygrad.ones(2).name is None
    True
    """


FACTORIES = ("new_zeros", "new_ones", "new_empty", "new_full", "new_tensor")
LATE = {
    "cygrad.compatibility.tensors": (
        "__div__", "__idiv__", "__long__", "__nonzero__", "__rdiv__", "_rev_view_func_unsafe", "_view_func",
        "_view_func_unsafe", "apply_", "as_subclass", "const_data_ptr", "dense_dim", "dim_order",
        "is_distributed", "is_shared", "map2_", "map_", "module_load", "narrow_copy", "new",
        "new_empty_strided", "prelu", "record_stream", "reinforce", "resize_", "resize_as_", "share_memory_",
        "sparse_dim", "sparse_mask", "storage", "storage_type", "to_dense", "to_sparse", "to_sparse_coo",
        "to_sparse_csc", "to_sparse_csr", "untyped_storage"),
    "cygrad.fft": ("istft", "stft"),
    "cygrad.numpy_protocols.methods": ("astype", "copy"),
    "cygrad.notebook": ("_repr_html_", "_repr_mimebundle_"),
    "cygrad.array_api": ("__array_namespace__", "to_device"),
    # The loaded module replaces these methods.
    "cygrad.numpy_protocols": ("__array_ufunc__", "__array_function__"),
}

install({
    **operators.METHODS, **composite.METHODS, **composite.PROPERTIES, **linalg.METHODS, **random.METHODS,
    **conversion.METHODS, **type_slots.METHODS, **hooks.METHODS, **indexing.METHODS,
    **{name: getattr(factories, name) for name in FACTORIES},
    **{name: LateMethod(name, module) for module, names in LATE.items() for name in names},
    "_grad": property(lambda self: self.grad, lambda self, value: setattr(self, "grad", value), doc="The gradient."),
    "strides": property(_strides), "name": property(_no_name),
    "_cdata": property(id, doc="A number that no other tensor has as long as this one is there."),
    "__reversed__": lambda self: self.flip(0) if self.ndim else self,
    "__round__": lambda self, ndigits=None: self.round(decimals=ndigits or 0),
    "_make_subclass": staticmethod(_make_subclass), "_make_wrapper_subclass": staticmethod(_make_wrapper_subclass),
    "__init__": creation.construct,
    "__init_subclass__": classmethod(_made_subclass),
    "__torch_function__": classmethod(boxing.torch_function),
    "__torch_dispatch__": classmethod(boxing.torch_dispatch),
    "backward": tensor_backward, "__repr__": printing.tensor_repr, "__format__": printing.tensor_format,
})
