"""Questions about tensors, and functions that many programs call though there is nothing to do on a CPU."""

from cygrad._core.arrays.dtype import bool as boolean
from cygrad._core.arrays.dtype import int64
from cygrad._core.creation.factories import full_like
from cygrad._core.graph.tensor import Tensor
from cygrad._core.table.docstrings import documented
from cygrad._core.table.operator import operators
from cygrad.composite.out_forms import as_tensor_argument, inplace, into

__all__ = ["conj_physical", "fill", "is_conj", "is_inference", "is_neg", "is_nonzero", "is_same_size", "is_signed",
           "resolve_conj", "resolve_neg"]

_RETURNED = "bool"


@documented(returns=_RETURNED)
def is_nonzero(input):
    """Whether the only element is not zero.

    Parameters
    ----------
    input : Tensor
        Of one element.

    Raises
    ------
    RuntimeError
        If there is not exactly one element.

    Examples
    --------
    >>> import cygrad
    >>> cygrad.is_nonzero(cygrad.tensor([2.0]))
    True
    """
    if as_tensor_argument("is_nonzero", "input", input).numel() != 1:
        raise RuntimeError(f"is_nonzero: expected one element (got shape {tuple(input.shape)}).")
    return bool(input.item())


@documented(returns=_RETURNED)
def is_same_size(input, other):
    """Whether two tensors have one shape.

    Parameters
    ----------
    input, other : Tensor

    Examples
    --------
    >>> import cygrad
    >>> cygrad.is_same_size(cygrad.zeros(2), cygrad.zeros(2, 1))
    False
    """
    return as_tensor_argument("is_same_size", "input", input).shape == as_tensor_argument(
        "is_same_size", "other", other).shape


@documented(returns=_RETURNED)
def is_signed(input):
    """Whether the type of the elements has negative numbers.

    Examples
    --------
    >>> import cygrad
    >>> cygrad.is_signed(cygrad.zeros(2, dtype=cygrad.uint8))
    False
    """
    name = str(as_tensor_argument("is_signed", "input", input).dtype).rpartition(".")[2]
    return name not in ("bool", "uint8")


@documented(returns=_RETURNED)
def is_inference(input):
    """Whether a tensor was made in inference mode.

    Examples
    --------
    >>> import cygrad
    >>> cygrad.is_inference(cygrad.zeros(2))
    False
    """
    return as_tensor_argument("is_inference", "input", input).is_inference()


@documented(returns=_RETURNED)
def is_conj(input):
    """Whether the conjugate bit is set: always False, conjugates are computed eagerly.

    Examples
    --------
    >>> import cygrad
    >>> cygrad.is_conj(cygrad.tensor([1j]).conj())
    False
    """
    as_tensor_argument("is_conj", "input", input)
    return False


@documented(returns=_RETURNED)
def is_neg(input):
    """Whether the negative bit is set: always False, negatives are computed eagerly.

    Examples
    --------
    >>> import cygrad
    >>> cygrad.is_neg(-cygrad.tensor([1.]))
    False
    """
    as_tensor_argument("is_neg", "input", input)
    return False


@documented()
def resolve_conj(input):
    """Return the tensor itself: conjugates are computed eagerly.

    Examples
    --------
    >>> import cygrad
    >>> cygrad.resolve_conj(cygrad.tensor([1j]).conj())
    tensor([0.-1.j])
    """
    return as_tensor_argument("resolve_conj", "input", input)


@documented()
def resolve_neg(input):
    """Return the tensor itself: negatives are computed eagerly.

    Examples
    --------
    >>> import cygrad
    >>> cygrad.resolve_neg(cygrad.tensor([1.]))
    tensor([1.])
    """
    return as_tensor_argument("resolve_neg", "input", input)


@documented()
def conj_physical(input, *, out=None):
    """Return the complex conjugates, in memory of their own.

    Returns
    -------
    Tensor
        A real tensor itself.

    Examples
    --------
    >>> import cygrad
    >>> cygrad.conj_physical(cygrad.tensor([1 + 2j]))
    tensor([1.-2.j])
    """
    as_tensor_argument("conj_physical", "input", input)
    if not input.is_complex():
        return input if out is None else into("conj_physical", operators.clone(input), out)
    return into("conj_physical", operators.conj(input), out)


@documented()
def fill(input, value):
    """Return a tensor of one value, of the shape and type of another.

    Parameters
    ----------
    value : number or Tensor
        A Tensor has no dimensions.

    Raises
    ------
    RuntimeError
        If `value` has dimensions.

    Examples
    --------
    >>> import cygrad
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
    """The number of dimensions: a method of Tensor.

    Returns
    -------
    int

    Examples
    --------
    >>> import cygrad
    >>> cygrad.zeros(2, 3).ndimension()
    2
    """
    return input.ndim


def get_device(input):
    """The number of the device: -1, which stands for the CPU. A method of Tensor.

    Returns
    -------
    int

    Examples
    --------
    >>> import cygrad
    >>> cygrad.zeros(2).get_device()
    -1
    """
    return -1


def is_pinned(input):
    """Whether the memory is pinned for another device: never. A method of Tensor.

    Returns
    -------
    bool

    Examples
    --------
    >>> import cygrad
    >>> cygrad.zeros(2).is_pinned()
    False
    """
    return False


def pin_memory(input):
    """The tensor itself: there is no other device to pin memory for. A method of Tensor.

    Returns
    -------
    Tensor

    Examples
    --------
    >>> import cygrad
    >>> cygrad.zeros(2).pin_memory()
    tensor([0., 0.])
    """
    return input


def is_set_to(input, tensor):
    """Whether another tensor sees the same memory in the same way: a method of Tensor.

    Parameters
    ----------
    tensor : Tensor

    Returns
    -------
    bool

    Examples
    --------
    >>> import cygrad
    >>> x = cygrad.zeros(2)
    >>> x.is_set_to(x.detach())
    True
    """
    as_tensor_argument("is_set_to", "tensor", tensor)
    return (input.dtype is tensor.dtype and input.data_ptr() == tensor.data_ptr() and input.shape == tensor.shape
            and input.stride() == tensor.stride())


def sum_to_size(input, *size):
    """The sum over the dimensions in which a smaller shape was broadcast: a method of Tensor.

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
    >>> import cygrad
    >>> cygrad.ones(2, 3).sum_to_size(1, 3)
    tensor([[2., 2., 2.]])
    """
    shape = tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else size
    if len(shape) > input.ndim or any(wanted not in (1, given) for wanted, given in zip(
            reversed(shape), reversed(input.shape), strict=False)):
        raise RuntimeError(f"sum_to_size: the shape does not broadcast to that of the tensor (got {tuple(shape)} and "
                           f"{tuple(input.shape)}).")
    if (not shape or tuple(shape) != tuple(input.shape)) and not (input.is_floating_point() or input.is_complex()):
        input = operators.cast(input, int64)              # as all sums of integers
    return operators.sum_to(input, tuple(shape))


METHODS = {
    **{function.__name__: function for function in (
        conj_physical, get_device, is_conj, is_neg, is_nonzero, is_pinned, is_same_size, is_set_to, is_signed,
        ndimension, pin_memory, resolve_conj, resolve_neg, sum_to_size)},
    "conj_physical_": inplace(conj_physical),
}
