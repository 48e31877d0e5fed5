"""Predicates of tensors, and functions without effect on a CPU."""

from cygrad._core.arrays.dtype import bool as boolean
from cygrad._core.arrays.dtype import int64
from cygrad._core.creation.factories import full_like
from cygrad._core.graph.argument_errors import as_sizes
from cygrad._core.graph.tensor import Tensor
from cygrad._core.table.docstrings import documented
from cygrad._core.table.operator import operators
from cygrad.composite.out_forms import as_tensor_argument, inplace, into

__all__ = ["conj_physical", "fill", "is_conj", "is_inference", "is_neg", "is_nonzero", "is_same_size", "is_signed",
           "resolve_conj", "resolve_neg"]

_RETURNED = "bool"


@documented(returns=_RETURNED)
def is_nonzero(input):
    """Return whether a tensor of one element is nonzero.

    Parameters
    ----------
    input : Tensor
        With one element.

    Raises
    ------
    RuntimeError
        If there is not exactly one element.

    Examples
    --------
    >>> cygrad.is_nonzero(cygrad.tensor([2.0]))
    True
    """
    if as_tensor_argument("is_nonzero", "input", input).numel() != 1:
        raise RuntimeError(f"is_nonzero: expected one element (got shape {tuple(input.shape)}).")
    return bool(input.item())


@documented(returns=_RETURNED)
def is_same_size(input, other):
    """Return whether two tensors have the same shape.

    Parameters
    ----------
    input, other : Tensor

    Examples
    --------
    >>> cygrad.is_same_size(cygrad.zeros(2), cygrad.zeros(2, 1))
    False
    """
    return as_tensor_argument("is_same_size", "input", input).shape == as_tensor_argument(
        "is_same_size", "other", other).shape


@documented(returns=_RETURNED)
def is_signed(input):
    """Return whether the dtype is signed.

    Examples
    --------
    >>> cygrad.is_signed(cygrad.zeros(2, dtype=cygrad.uint8))
    False
    """
    name = str(as_tensor_argument("is_signed", "input", input).dtype).rpartition(".")[2]
    return name not in ("bool", "uint8")


@documented(returns=_RETURNED)
def is_inference(input):
    """Return whether a tensor was created in inference mode.

    Examples
    --------
    >>> cygrad.is_inference(cygrad.zeros(2))
    False
    """
    return as_tensor_argument("is_inference", "input", input).is_inference()


@documented(returns=_RETURNED)
def is_conj(input):
    """Return whether the conjugate bit is set: always False, because conjugates are computed eagerly.

    Examples
    --------
    >>> cygrad.is_conj(cygrad.tensor([1j]).conj())
    False
    """
    as_tensor_argument("is_conj", "input", input)
    return False


@documented(returns=_RETURNED)
def is_neg(input):
    """Return whether the negative bit is set: always False, because negatives are computed eagerly.

    Examples
    --------
    >>> cygrad.is_neg(-cygrad.tensor([1.]))
    False
    """
    as_tensor_argument("is_neg", "input", input)
    return False


@documented()
def resolve_conj(input):
    """Return the tensor, because conjugates are computed eagerly.

    Examples
    --------
    >>> cygrad.resolve_conj(cygrad.tensor([1j]).conj())
    tensor([0.-1.j])
    """
    return as_tensor_argument("resolve_conj", "input", input)


@documented()
def resolve_neg(input):
    """Return the tensor, because negatives are computed eagerly.

    Examples
    --------
    >>> cygrad.resolve_neg(cygrad.tensor([1.]))
    tensor([1.])
    """
    return as_tensor_argument("resolve_neg", "input", input)


@documented()
def conj_physical(input, *, out=None):
    """Return the complex conjugates as a copy.

    Returns
    -------
    Tensor
        `input` if it is real.

    Examples
    --------
    >>> cygrad.conj_physical(cygrad.tensor([1 + 2j]))
    tensor([1.-2.j])
    """
    as_tensor_argument("conj_physical", "input", input)
    if not input.is_complex():
        return input if out is None else into("conj_physical", operators.clone(input), out)
    return into("conj_physical", operators.conj(input), out)


@documented()
def fill(input, value):
    """Return a tensor of the same shape and dtype filled with a value.

    Parameters
    ----------
    value : number or Tensor
        A number or a 0-dimensional Tensor.

    Raises
    ------
    RuntimeError
        If `value` has dimensions.

    Examples
    --------
    >>> cygrad.fill(cygrad.zeros(2), 5)
    tensor([5., 5.])
    """
    as_tensor_argument("fill", "input", input)
    if isinstance(value, Tensor):
        if value.ndim:
            raise RuntimeError(f"fill: value must be a number or without dimensions (got shape {tuple(value.shape)}).")
        value = operators.cast(value, input.dtype)
    return operators.masked_fill(input, full_like(input, True, dtype=boolean), value)


def ndimension(input):
    """Return the number of dimensions: a method of Tensor.

    Returns
    -------
    int

    Examples
    --------
    >>> cygrad.zeros(2, 3).ndimension()
    2
    """
    return input.ndim


def get_device(input):
    """Return the device index: -1 for the CPU. A method of Tensor.

    Returns
    -------
    int

    Examples
    --------
    >>> cygrad.zeros(2).get_device()
    -1
    """
    return -1


def is_pinned(input):
    """Return whether the memory is pinned: always False. A method of Tensor.

    Returns
    -------
    bool

    Examples
    --------
    >>> cygrad.zeros(2).is_pinned()
    False
    """
    return False


@documented()
def pin_memory(input):
    """Return the tensor, because there is no device to pin memory for: a method of Tensor.

    Examples
    --------
    >>> cygrad.zeros(2).pin_memory()
    tensor([0., 0.])
    """
    return input


def is_set_to(input, tensor):
    """Return whether another tensor is the same view of the same memory: a method of Tensor.

    Parameters
    ----------
    tensor : Tensor

    Returns
    -------
    bool

    Examples
    --------
    >>> x = cygrad.zeros(2)
    >>> x.is_set_to(x.detach())
    True
    """
    as_tensor_argument("is_set_to", "tensor", tensor)
    return (input.dtype is tensor.dtype and 0 != input.data_ptr() == tensor.data_ptr() and input.shape == tensor.shape
            and input.stride() == tensor.stride())


def sum_to_size(input, *size):
    """Sum to a shape that broadcasts to that of the tensor: a method of Tensor.

    Parameters
    ----------
    *size : int or sequence of int
        A shape that broadcasts to that of the tensor.

    Returns
    -------
    Tensor
        Of that shape.

    Raises
    ------
    RuntimeError
        If the shape does not broadcast to that of the tensor.

    Examples
    --------
    >>> cygrad.ones(2, 3).sum_to_size(1, 3)
    tensor([[2., 2., 2.]])
    """
    shape = as_sizes("sum_to_size", "size", size[0] if len(size) == 1 else size, 1)
    if len(shape) > input.ndim or any(wanted not in (1, given) for wanted, given in zip(
            reversed(shape), reversed(input.shape), strict=False)):
        raise RuntimeError(f"sum_to_size: the shape must broadcast to that of the tensor (got {tuple(shape)} and "
                           f"{tuple(input.shape)}).")
    if (not shape or tuple(shape) != tuple(input.shape)) and not (input.is_floating_point() or input.is_complex()):
        input = operators.cast(input, int64)              # as sum() of integers
    return operators.sum_to(input, tuple(shape))


METHODS = {
    **{function.__name__: function for function in (
        conj_physical, get_device, is_conj, is_neg, is_nonzero, is_pinned, is_same_size, is_set_to, is_signed,
        ndimension, pin_memory, resolve_conj, resolve_neg, sum_to_size)},
    "conj_physical_": inplace(conj_physical),
}
