"""Forward mode: directional derivatives, computed together with the values."""

from typing import NamedTuple

from cygrad._core import public_dir as _public_dir
from cygrad._core.dispatch import tangents
from cygrad._core.graph.tensor import Tensor

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]
__dir__ = _public_dir(__name__)


class UnpackedDualTensor(NamedTuple):
    """
    The primal and the tangent of a dual tensor.

    Attributes
    ----------
    primal : Tensor
        A view of the tensor without tangent.
    tangent : Tensor or None
        The directional derivative, or None.

    Examples
    --------
    >>> from cygrad.autograd import forward_ad
    >>> with forward_ad.dual_level():
    ...     dual = forward_ad.make_dual(cygrad.tensor(2.0), cygrad.tensor(1.0))
    ...     print(forward_ad.unpack_dual(dual ** 2).tangent)
    tensor(4.)
    """

    primal: Tensor
    tangent: Tensor | None


def enter_dual_level():
    """
    Enter a level of forward mode in this thread; see the context manager `dual_level`.

    Returns
    -------
    int
        Number of the level, which is always 0: levels cannot be nested.

    Raises
    ------
    RuntimeError
        If the thread is already in a level.

    Examples
    --------
    >>> import cygrad.autograd.forward_ad as forward
    >>> level = forward.enter_dual_level()
    >>> forward.exit_dual_level(level=level)
    """
    return tangents.enter_level()


def exit_dual_level(*, level=None):
    """
    Leave the level of this thread and free all its tangents.

    Parameters
    ----------
    level : int, optional
        Number of the level, to check.

    Raises
    ------
    RuntimeError
        If the thread is not in this level.

    Examples
    --------
    >>> import cygrad.autograd.forward_ad as forward
    >>> level = forward.enter_dual_level()
    >>> forward.exit_dual_level()
    """
    tangents.exit_level(level)


class dual_level(tangents.Level):
    """
    Enter a level of forward mode within the block, in this thread.

    All tangents are freed at the end of the level.

    Examples
    --------
    >>> import cygrad.autograd.forward_ad as forward
    >>> x = cygrad.tensor([1.0, 2.0])
    >>> with forward.dual_level():
    ...     dual = forward.make_dual(x, cygrad.tensor([1.0, 10.0]))
    ...     forward.unpack_dual(dual * dual).tangent
    tensor([ 2., 40.])
    """


def make_dual(tensor, tangent, *, level=None):
    """
    Return a view of a tensor with a tangent.

    Operations on it compute both values and directional derivatives until the level ends.

    Parameters
    ----------
    tensor : Tensor
        Floating or complex.
    tangent : Tensor
        Of the same shape, floating point or complex. In-place operations on the dual tensor modify it too if it has the
        strides of the tensor and no graph is recorded; otherwise it is copied.
    level : int, optional
        Number of the level, to check.

    Returns
    -------
    Tensor

    Raises
    ------
    RuntimeError
        Outside of a level; if the tangent has a different shape, or one of both already has a tangent.
    ValueError
        If a dtype is not floating point or complex.

    Examples
    --------
    >>> import cygrad.autograd.forward_ad as forward
    >>> with forward.dual_level():
    ...     dual = forward.make_dual(cygrad.tensor(3.0), cygrad.tensor(1.0))
    ...     forward.unpack_dual(dual.sin()).tangent
    tensor(-0.9900)
    """
    for role, value in (("primal", tensor), ("tangent", tangent)):
        if not isinstance(value, Tensor):
            raise TypeError(f"make_dual: the {role} must be a Tensor (got {type(value).__name__}).")
        if not (value.is_floating_point() or value.is_complex()):
            raise ValueError(f"make_dual: Expected {role} to be floating point or complex (got {value.dtype}). "
                             "Convert it with to().")
    if tangents.enabled():
        _check_level("make_dual", level)
    if tuple(tangent.shape) != tuple(tensor.shape):
        raise RuntimeError(f"make_dual: Trying to set a forward gradient that has a different size (got "
                           f"{tuple(tangent.shape)}, expected {tuple(tensor.shape)}).")
    if tangents.tangent(tangent) is not None:
        raise RuntimeError("make_dual: the tangent has a forward gradient at the same level (got a dual tensor). "
                           "Unpack it with unpack_dual first.")
    if tangents.tangent(tensor) is not None:
        raise RuntimeError("make_dual: the tensor has a forward gradient at the same level (got a dual tensor). Unpack "
                           "it with unpack_dual first.")
    dual = tensor.view_as(tensor)
    if not tangents.enabled():
        return dual
    with tangents.paused():
        if not tangents.has_same_layout(tangent, tensor):
            tangent = tangents.laid_out(tangent, tensor, True)
    tangents.attach(dual, tangent)
    return dual


def unpack_dual(tensor, *, level=None):
    """
    Return the primal and tangent of a tensor.

    Parameters
    ----------
    tensor : Tensor
    level : int, optional
        Number of the level, to check.

    Returns
    -------
    UnpackedDualTensor
        The primal, a view of the tensor, and the tangent, or None for a tensor without one.

    Raises
    ------
    TypeError
        If it is no Tensor.

    Examples
    --------
    >>> import cygrad.autograd.forward_ad as forward
    >>> with forward.dual_level():
    ...     forward.unpack_dual(cygrad.tensor(3.0))
    UnpackedDualTensor(primal=tensor(3.), tangent=None)
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"unpack_dual: expected a Tensor (got {type(tensor).__name__}).")
    if tangents.current_level() is None:
        return UnpackedDualTensor(tensor, None)
    _check_level("unpack_dual", level)
    tangent = tangents.tangent(tensor)
    with tangents.paused():
        return UnpackedDualTensor(tensor.view_as(tensor), tangent)


def _check_level(operation, level):
    current = tangents.current_level()
    if current is None:
        raise RuntimeError(f"{operation}: no level exists in this thread, make sure to enter_dual_level() first, or "
                           "call it inside 'with forward_ad.dual_level():'.")
    if level is not None and level != current:
        raise RuntimeError(f"{operation}: wrong level (got {level}, expected {current}).")


def __getattr__(name):
    if name == "_current_level":
        level = tangents.current_level()
        return -1 if level is None else level
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
