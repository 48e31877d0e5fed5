"""Variable, the former name of tensors in the graph."""

from cygrad._core.engine.plan import queue_callback
from cygrad._core.graph.tensor import Tensor
from cygrad._core.graph.user_warnings import warn_user

__all__ = ["Variable"]


class _Engine:
    """Engine under PyTorch's name."""

    queue_callback = staticmethod(queue_callback)


class _VariableMeta(type):
    """Make every Tensor an instance of Variable."""

    def __instancecheck__(cls, instance):
        return isinstance(instance, Tensor)


class Variable(metaclass=_VariableMeta):
    """
    Return a Tensor over the same memory, outside the graph.

    Kept for old programs: Tensors record the graph without it.

    Parameters
    ----------
    data : Tensor
    requires_grad : bool, default False
    volatile : object, optional
        Ignored with a warning. Use ``no_grad()``.

    Returns
    -------
    Tensor

    Examples
    --------
    >>> x = cygrad.autograd.Variable(cygrad.ones(2), requires_grad=True)
    >>> x
    tensor([1., 1.], requires_grad=True)
    >>> isinstance(x, cygrad.autograd.Variable)
    True
    """

    _execution_engine = _Engine()

    def __new__(cls, data, requires_grad=False, volatile=None):
        if volatile is not None:
            warn_user("Variable: volatile was removed and is ignored. Use no_grad().")
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable: data must be a Tensor (got {type(data).__name__}). Create one with tensor().")
        return data.data.requires_grad_(requires_grad)
