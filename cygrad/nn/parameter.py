"""Parameters and buffers of modules."""

import functools
from typing import TYPE_CHECKING, Any

import cygrad
from cygrad import Tensor
from cygrad._core.graph.boxing import disabled_torch_function
from cygrad._core.graph.tensor import provide
from cygrad._core.graph.type_slots import make_subclass

__all__ = ["Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter", "is_lazy"]


class Parameter(Tensor):
    """
    Tensor that a `Module` registers as a parameter when assigned to an attribute.

    A leaf that requires grad by default. Results of operations on it are plain tensors.

    Parameters
    ----------
    data : Tensor, optional
        Shares its memory, detached. An empty tensor by default.
    requires_grad : bool, default True
        Whether gradients are computed for it.

    Examples
    --------
    >>> cygrad.nn.Parameter(cygrad.tensor([1.0, 2.0]))
    Parameter containing:
    tensor([1., 2.], requires_grad=True)
    """

    __torch_function__ = disabled_torch_function

    def __new__(cls, data=None, requires_grad=True):
        """Return a leaf that shares the memory of `data`."""
        data = cygrad.empty(0) if data is None else _checked(data, "Parameter")
        if cls is Parameter and type(data) is not Tensor and not isinstance(data, (Parameter, Buffer)):
            found = data.detach()
            found.__class__ = _class_with(type(data))  # type: ignore[arg-type]
            return found.requires_grad_(requires_grad)
        return make_subclass(cls, data, requires_grad)

    def __repr__(self):
        return "Parameter containing:\n" + super().__repr__()

    def __deepcopy__(self, memo):
        """Return a copy of the parameter, without its ``.grad``."""
        found = memo.get(id(self))
        if found is None:
            found = memo[id(self)] = type(self)(self.detach().clone(), self.requires_grad)
        return found

    def __reduce_ex__(self, protocol):
        """Pickle values and ``requires_grad``, but not gradients and hooks."""
        return _rebuild_parameter, (type(self), self.detach(), self.requires_grad), self.__dict__ or None


provide(plain_subclass=Parameter)


@functools.cache
def _class_with(cls):
    """Return the class of parameters made of tensors of a subclass: it overrides functions as that does."""
    def torch_function(func, types, args=(), kwargs=None):
        types = tuple([cls if kind is made else kind for kind in types])
        return cls.__torch_function__(func, types, args, kwargs)

    own = cls.__torch_function__ is not disabled_torch_function
    made = type(cls.__name__, (cls, Parameter), {
        "__torch_function__": staticmethod(torch_function) if own else disabled_torch_function,
        "__torch_dispatch__": staticmethod(cls.__torch_dispatch__), "__module__": cls.__module__,
        "__init__": lambda self, *args, **options: None,
        "__deepcopy__": lambda self, memo: memo.setdefault(
            id(self), Parameter(self.detach().clone(), self.requires_grad)),
        "__reduce_ex__": lambda self, protocol: (
            _rebuild_parameter, (Parameter, self.detach(), self.requires_grad), self.__dict__ or None)})
    return made


class Buffer(Tensor):
    """
    Tensor that a `Module` registers as a buffer when assigned to an attribute.

    Parameters
    ----------
    data : Tensor, optional
        Shares its memory. An empty tensor by default.
    persistent : bool, default True
        Whether ``state_dict`` includes it.

    Examples
    --------
    >>> class Mean(nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.total = nn.Buffer(cygrad.zeros(2))
    >>> dict(Mean().named_buffers())
    {'total': tensor([0., 0.])}
    """

    __torch_function__ = disabled_torch_function

    persistent: bool

    def __new__(cls, data=None, *, persistent=True):
        """Return a tensor that shares the memory of `data`."""
        if data is None:
            data = cygrad.empty(0)
        data = _checked(data, "Buffer")
        buffer = make_subclass(_BareBuffer, data, data.requires_grad)
        buffer.persistent = persistent
        return buffer


class _BareBuffer(Buffer):
    """Class of buffers, whose constructor needs no data, as `make_subclass` requires."""

    def __new__(cls, data=None, *, persistent=True):
        return Tensor.__new__(cls)

    def __init__(self, data=None, *, persistent=True):
        super().__init__()

    def __deepcopy__(self, memo):
        found = memo.get(id(self))
        if found is None:
            found = memo[id(self)] = Buffer(self.detach().clone(), persistent=self.persistent)
        return found

    def __reduce_ex__(self, protocol):
        return _rebuild_buffer, (self.detach(), self.persistent)


# Functions of uninitialized tensors that conversions of modules, copies and printing need.
_SHAPELESS = frozenset({"__get__", "__set__", "__hash__", "cast", "copy_", "cpu", "cuda", "detach",
                        "empty_like", "get_device", "is_complex", "is_floating_point", "requires_grad_", "size", "to",
                        "type"})


class _Uninitialized:
    """Mixin of uninitialized tensors."""

    if TYPE_CHECKING:
        def __getattr__(self, name: str) -> Any: ...     # of the tensor
        def __init__(self, **options): ...

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        """Raise an error for functions that need a shape."""
        name = getattr(func, "__name__", "")
        if name not in _SHAPELESS:
            raise ValueError(f"{name}: Attempted to use an uninitialized parameter or buffer of a lazy module. Call "
                             "the module once to initialize it, or load a state_dict.")
        return disabled_torch_function(func, types, args, kwargs)

    def _refuse(self, *args, **kwargs):
        """Raise, because an uninitialized tensor has no elements."""
        raise ValueError("Attempted to use an uninitialized parameter or buffer of a lazy module, which has no "
                         "elements yet. Call the module once to initialize it, or load a state_dict.")

    numel = nelement = dim = ndimension = data_ptr = tolist = item = numpy = __len__ = _refuse

    def materialize(self, shape, device=None, dtype=None):
        """
        Allocate uninitialized memory of a shape and become an ordinary tensor.

        Parameters
        ----------
        shape : tuple of int
        device : optional
            The CPU.
        dtype : dtype, optional
            The current dtype by default.
        """
        self.data = cygrad.empty(shape, dtype=dtype or self.dtype)
        self.__class__ = self.cls_to_become

    @property
    def shape(self):
        """Raise, because an uninitialized tensor has no shape."""
        raise RuntimeError("a lazy parameter or buffer has no shape yet. Call the module once to initialize it, or "
                           "load a state_dict.")

    def __repr__(self):
        return f"<{type(self).__name__}>"

    def __reduce_ex__(self, protocol):
        return _rebuild_uninitialized, (type(self), self.dtype, self.requires_grad)

    def __deepcopy__(self, memo):
        found = memo.get(id(self))
        if found is None:
            found = memo[id(self)] = type(self)(requires_grad=self.requires_grad, dtype=self.dtype)
        return found


class UninitializedParameter(_Uninitialized, Parameter):
    """
    Parameter of a lazy module, without a shape until `materialize`.

    Parameters
    ----------
    requires_grad : bool, default True
    device : optional
        The CPU.
    dtype : dtype, optional
        The default floating dtype if None.

    Examples
    --------
    >>> parameter = cygrad.nn.UninitializedParameter()
    >>> parameter
    <UninitializedParameter>
    >>> parameter.materialize((2, 3))
    >>> parameter.shape
    (2, 3)
    """

    cls_to_become = Parameter

    def __new__(cls, requires_grad=True, device=None, dtype=None):
        """Return an uninitialized leaf."""
        return make_subclass(cls, cygrad.empty(0, dtype=dtype), requires_grad)

    def __init__(self, requires_grad=True, device=None, dtype=None):
        """Do nothing after materialization."""
        Tensor.__init__(self)


class UninitializedBuffer(_Uninitialized, Tensor):
    """
    Buffer of a lazy module; see `UninitializedParameter`.

    Parameters
    ----------
    requires_grad : bool, default False
    device : optional
        The CPU.
    dtype : dtype, optional
    persistent : bool, default True
        Whether ``state_dict`` includes it.

    Examples
    --------
    >>> nn.UninitializedBuffer().materialize((2,)) is None
    True
    """

    def __new__(cls, requires_grad=False, device=None, dtype=None, persistent=True):
        """Return an uninitialized tensor."""
        made = make_subclass(cls, cygrad.empty(0, dtype=dtype), requires_grad)
        made.persistent = persistent
        return made

    def __init__(self, requires_grad=False, device=None, dtype=None, persistent=True):
        """Do nothing after materialization."""
        Tensor.__init__(self)


class MaterializedBuffer(Tensor):
    """Class of a materialized `UninitializedBuffer`; otherwise a plain tensor."""


UninitializedBuffer.cls_to_become = MaterializedBuffer  # type: ignore[attr-defined]


def is_lazy(tensor):
    """
    Return whether a tensor is uninitialized.

    Parameters
    ----------
    tensor : Tensor

    Returns
    -------
    bool
    """
    return isinstance(tensor, _Uninitialized)


def _rebuild_uninitialized(cls, dtype, requires_grad):
    return cls(requires_grad, dtype=dtype)


def _rebuild_parameter(cls, data, requires_grad):
    return make_subclass(cls, data, requires_grad)


def _rebuild_buffer(data, persistent):
    return Buffer(data, persistent=persistent)


def _checked(data, operation):
    if not isinstance(data, Tensor):
        raise TypeError(f"{operation}: expected a Tensor (got {type(data).__name__}). Convert it with cygrad.tensor "
                        "first.")
    return data
