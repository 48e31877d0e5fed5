"""Tensors that a module owns: parameters, which are learned, and buffers, which are not."""

import cygrad
from cygrad import Tensor
from cygrad._core.tensor_type import make_subclass

__all__ = ["Buffer", "Parameter"]


class Parameter(Tensor):
    """
    A tensor that a `Module` lists among its parameters as soon as it is assigned to an attribute.

    A leaf that requires grad unless told otherwise. Results of operations on it are plain tensors.

    Parameters
    ----------
    data : Tensor, optional
        Its memory is shared, its history is not. An empty tensor if left out.
    requires_grad : bool, default True
        Whether gradients are computed for it.

    Examples
    --------
    >>> import cygrad
    >>> cygrad.nn.Parameter(cygrad.tensor([1.0, 2.0]))
    Parameter containing:
    tensor([1., 2.], requires_grad=True)
    """

    def __new__(cls, data=None, requires_grad=True):
        """A leaf over the memory of `data`; without data, `__init__` finishes the work."""
        if data is None:
            return Tensor.__new__(cls)
        return make_subclass(cls, _checked(data, "Parameter"), requires_grad)

    def __init__(self, data=None, requires_grad=True):
        """Fill a parameter that was made without data."""
        super().__init__()
        if data is None:
            self.requires_grad = requires_grad

    def __repr__(self):
        return "Parameter containing:\n" + super().__repr__()

    def __deepcopy__(self, memo):
        """A parameter with its own memory; ``.grad`` stays behind."""
        found = memo.get(id(self))
        if found is None:
            found = memo[id(self)] = type(self)(self.detach().clone(), self.requires_grad)
        return found

    def __reduce_ex__(self, protocol):
        """Pickling keeps values and ``requires_grad``; gradients and hooks belong to the process."""
        return _rebuild_parameter, (type(self), self.detach(), self.requires_grad)


class Buffer(Tensor):
    """
    A tensor that a `Module` lists among its buffers as soon as it is assigned to an attribute.

    Parameters
    ----------
    data : Tensor, optional
        Its memory is shared. An empty tensor if left out.
    persistent : bool, default True
        Whether ``state_dict`` includes it.
    """

    def __new__(cls, data=None, *, persistent=True):
        """A tensor over the memory of `data`."""
        if data is None:
            data = cygrad.empty(0)
        data = _checked(data, "Buffer")
        buffer = make_subclass(_BareBuffer, data, data.requires_grad)
        buffer.persistent = persistent
        return buffer


class _BareBuffer(Buffer):
    """What `Buffer` returns: told apart so that `make_subclass` can create it without data."""

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


def _rebuild_parameter(cls, data, requires_grad):
    return cls(data, requires_grad)


def _rebuild_buffer(data, persistent):
    return Buffer(data, persistent=persistent)


def _checked(data, operation):
    if not isinstance(data, Tensor):
        raise TypeError(f"{operation}: expected a Tensor (got {type(data).__name__}). "
                        "Convert it with cygrad.tensor first.")
    return data
