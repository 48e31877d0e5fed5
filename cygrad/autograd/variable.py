"""Variable, the former name of tensors in the graph."""

from cygrad._core.engine.plan import queue_callback
from cygrad._core.graph.tensor import Tensor
from cygrad._core.graph.user_warnings import warn_user

__all__ = ["Variable"]


class _Engine:
    """The engine under PyTorch's name."""

    queue_callback = staticmethod(queue_callback)


class _VariableMeta(type):
    """Make every Tensor an instance of Variable."""

    def __instancecheck__(cls, instance):
        return isinstance(instance, Tensor)


class Variable(metaclass=_VariableMeta):
    """
    Return a Tensor over the same memory, outside the graph.

    Tensors have done by themselves what variables were for, for a long time; the name is kept for old programs.

    Parameters
    ----------
    data : Tensor
    requires_grad : bool, default False
    volatile : object, optional
        Warned of and ignored, as in PyTorch. Use ``no_grad()``.

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
            raise TypeError(f"Variable: data has to be a Tensor (got {type(data).__name__}). Make one with tensor().")
        return data.data.requires_grad_(requires_grad)
