"""Reading and writing elements at indices or masks."""

from cygrad._core.arrays.dtype import int64
from cygrad._core.creation.factories import ones_like, zeros
from cygrad._core.dispatch.indexing import index_put
from cygrad._core.graph.argument_errors import as_dim
from cygrad._core.graph.tensor import Tensor
from cygrad._core.table.docstrings import documented
from cygrad._core.table.operator import operators
from cygrad.composite.out_forms import as_tensor_argument, inplace, into, refuse_shared_memory

__all__ = ["index_copy", "index_fill", "masked_scatter", "put", "repeat_interleave", "take"]



def wrapped(operation, input, dim):
    """Return the dimension as a nonnegative number; a 0-dim tensor has one dimension here."""
    return as_dim(operation, dim, max(1, input.ndim))


def check_vector(operation, index):
    as_tensor_argument(operation, "index", index)
    if index.ndim > 1 or index.is_floating_point() or index.is_complex() or str(index.dtype).endswith("bool"):
        raise IndexError(f"{operation}: index must be a vector of integers (got {index.dtype} and shape "
                         f"{tuple(index.shape)}).")
    return operators.reshape(index, (index.numel(),))


# ---- indices along a dimension

@documented()
def index_copy(input, dim, index, source, *, out=None):
    """Return a copy with slices written at indices of a dimension.

    Parameters
    ----------
    dim : int
    index : Tensor
        Vector of integers; the last slice of duplicates is written.
    source : Tensor
        The slices, of the dtype of `input`.

    Raises
    ------
    IndexError
        If an index is out of bounds, or `index` is not a vector.

    Examples
    --------
    >>> cygrad.index_copy(cygrad.zeros(3), 0, cygrad.tensor([2, 0]), cygrad.tensor([5., 7.]))
    tensor([7., 0., 5.])
    """
    as_tensor_argument("index_copy", "input", input)
    as_tensor_argument("index_copy", "source", source)
    dim, places = wrapped("index_copy", input, dim), check_vector("index_copy", index)
    if source.dtype is not input.dtype:
        raise RuntimeError(f"index_copy: source must have the dtype of input (got {source.dtype}, expected "
                           f"{input.dtype}).")
    expected = tuple(places.numel() if k == dim else size for k, size in enumerate(input.shape or (1,)))
    if tuple(source.shape or (1,)) != expected:
        raise IndexError(f"index_copy: source has the wrong shape (got {tuple(source.shape)}, expected {expected}).")
    _check_bounds("index_copy", places, (input.shape or (1,))[dim])
    rows = operators.reshape(input, (1,)) if input.ndim == 0 else input
    values = operators.reshape(source, (1,)) if source.ndim == 0 else source
    result = _put_along(rows, dim, places, values)
    return into("index_copy", operators.reshape(result, tuple(input.shape)), out)


def _check_bounds(operation, places, size):
    if places.numel() and not bool(operators.all(operators.logical_and(places >= 0, places < size))):
        raise IndexError(f"{operation}: index out of range (expected 0 <= index < {size}).")


def _put_along(rows, dim, places, values):
    """Write slices at indices of a dimension, moved to the front."""
    turned = index_put(operators.movedim(rows, (dim,), (0,)), (places,), operators.movedim(values, (dim,), (0,)))
    return operators.contiguous(operators.movedim(turned, (0,), (dim,)))


@documented()
def index_fill(input, dim, index, value):
    """Return a copy filled with a value at indices of a dimension.

    Parameters
    ----------
    dim : int
    index : Tensor
        Vector of integers; negative ones count from the end.
    value : number or Tensor
        A number or a 0-dimensional Tensor.

    Raises
    ------
    IndexError
        If an index is out of bounds, or `index` is not a vector.

    Examples
    --------
    >>> cygrad.index_fill(cygrad.zeros(3), 0, cygrad.tensor([2, 0]), 5)
    tensor([5., 0., 5.])
    """
    as_tensor_argument("index_fill", "input", input)
    dim, places = wrapped("index_fill", input, dim), check_vector("index_fill", index)
    if isinstance(value, Tensor) and value.ndim:
        raise RuntimeError(f"index_fill: value must be a number or 0-dimensional (got shape {tuple(value.shape)}).")
    size = (input.shape or (1,))[dim]
    places = operators.where(places < 0, places + size, places)
    _check_bounds("index_fill", places, size)
    chosen = operators.index_add(zeros(size, dtype=int64), 0, places, ones_like(places, dtype=int64)) > 0
    mask = operators.reshape(chosen, tuple(size if k == dim else 1 for k in range(input.ndim)))
    return operators.masked_fill(input, operators.expand(mask, tuple(input.shape)), value)


# ---- positions in the flattened tensor

def take(input, index, *, out=None):
    """Return elements at indices of the flattened tensor.

    Parameters
    ----------
    input : Tensor
    index : Tensor
        int64; negative ones count from the end.
    out : Tensor, optional
        Tensor that the result is written to.

    Returns
    -------
    Tensor
        Of the shape of `index`.

    Raises
    ------
    IndexError
        If an index is out of bounds.

    Examples
    --------
    >>> cygrad.take(cygrad.tensor([[1, 2], [3, 4]]), cygrad.tensor([0, -1]))
    tensor([1, 4])
    """
    as_tensor_argument("take", "input", input)
    _check_flat("take", index)
    refuse_shared_memory("take", out, input, index)
    return into("take", operators.index(operators.reshape(input, (input.numel(),)), (index,)), out)


def _check_flat(operation, index):
    if as_tensor_argument(operation, "index", index).dtype is not int64:
        raise RuntimeError(f"{operation}: index must be int64 (got {index.dtype}).")


@documented()
def put(input, index, source, accumulate=False):
    """Return a copy with elements written at indices of the flattened tensor.

    Parameters
    ----------
    index : Tensor
        int64; negative ones count from the end.
    source : Tensor
        Of the dtype of `input`, one element for each index.
    accumulate : bool, default False
        Whether to add the elements. Otherwise the last element of duplicates is written.

    Raises
    ------
    IndexError
        If an index is out of bounds.

    Examples
    --------
    >>> cygrad.put(cygrad.zeros(2, 2), cygrad.tensor([1, 2]), cygrad.tensor([5., 6.]))
    tensor([[0., 5.],
            [6., 0.]])
    """
    as_tensor_argument("put", "input", input)
    if as_tensor_argument("put", "source", source).dtype is not input.dtype:
        raise RuntimeError(f"put: source must have the dtype of input (got {source.dtype}, expected {input.dtype}).")
    _check_flat("put", index)
    if source.numel() != index.numel():
        raise IndexError(f"put: expected one element of source for each index (got {source.numel()} and "
                         f"{index.numel()}).")
    flat, places = operators.reshape(input, (input.numel(),)), operators.reshape(index, (index.numel(),))
    result = index_put(flat, (places,), operators.reshape(source, (source.numel(),)), accumulate)
    return operators.reshape(result, tuple(input.shape))


def masked_scatter(input, mask, source):
    """Return a copy with elements of `source`, in order, where the mask is True.

    Parameters
    ----------
    input : Tensor
    mask : Tensor
        Bool; broadcast against `input`.
    source : Tensor
        Of the dtype of `input`, with at least as many elements as True in the mask.

    Returns
    -------
    Tensor
        Of the broadcast shape.

    Raises
    ------
    RuntimeError
        If the mask is not bool, or `source` is too small or of another dtype.

    Examples
    --------
    >>> mask = cygrad.tensor([True, False, True])
    >>> cygrad.masked_scatter(cygrad.zeros(3), mask, cygrad.tensor([5., 6., 7.]))
    tensor([5., 0., 6.])
    """
    for name, tensor in (("input", input), ("mask", mask), ("source", source)):
        as_tensor_argument("masked_scatter", name, tensor)
    if not str(mask.dtype).endswith("bool"):
        raise RuntimeError(f"masked_scatter: the mask must be bool (got {mask.dtype}).")
    if source.dtype is not input.dtype:
        raise RuntimeError(f"masked_scatter: source must have the dtype of input (got {source.dtype}, expected "
                           f"{input.dtype}).")
    shape = tuple(operators.logical_or(mask, operators.logical_and(input.detach(), False)).shape)
    mask = operators.expand(mask, shape)
    order = operators.reshape(operators.cumsum(operators.reshape(mask, (mask.numel(),)), 0), shape)
    needed = int(operators.sum(mask)) if mask.numel() else 0
    if needed > source.numel():
        raise RuntimeError(f"masked_scatter: source has too few elements (got {source.numel()}, expected at least "
                           f"{needed}).")
    if source.numel() == 0:
        return operators.clone(operators.expand(input, shape))
    places = operators.reshape(operators.clamp_min(operators.sub(order, 1), 0), (mask.numel(),))
    values = operators.index_select(operators.reshape(source, (source.numel(),)), 0, places)
    return operators.where(mask, operators.reshape(values, shape), input)


@documented()
def repeat_interleave(input, repeats=None, dim=None, *, output_size=None):
    """Repeat each element, or slice along a dimension.

    Parameters
    ----------
    input : Tensor
        Without `repeats`, the number of repetitions of each index.
    repeats : int or Tensor, optional
        Number of repetitions: one number, or one for each element or slice.
    dim : int, optional
        The flattened tensor by default.
    output_size : int, optional
        Size of the result along the dimension, which is checked.

    Raises
    ------
    RuntimeError
        If a number of repetitions is negative, or their count does not match.

    Examples
    --------
    >>> cygrad.repeat_interleave(cygrad.tensor([1, 2]), cygrad.tensor([2, 1]))
    tensor([1, 1, 2])
    """
    as_tensor_argument("repeat_interleave", "input", input)
    if repeats is None:
        return _repeated_indices(input, output_size)
    if dim is None:
        input, dim = operators.reshape(input, (input.numel(),)), 0
    elif input.ndim == 0:
        input, dim = operators.reshape(input, (1,)), wrapped("repeat_interleave", input, dim)
    dim = wrapped("repeat_interleave", input, dim)
    size = input.shape[dim]
    if not isinstance(repeats, Tensor) and not hasattr(repeats, "__index__"):
        raise TypeError(f"repeat_interleave: repeats must be an integer or a Tensor (got {type(repeats).__name__}).")
    if not isinstance(repeats, Tensor) or (repeats.numel() == 1 and not _is_floating(repeats)):
        count = int(repeats)
        if count < 0:
            raise RuntimeError(f"repeat_interleave: repeats must not be negative (got {count}).")
        widened = operators.unsqueeze(input, dim + 1)
        shape = [*input.shape[:dim + 1], count, *input.shape[dim + 1:]]
        repeated = operators.reshape(operators.expand(widened, tuple(shape)),
                                     (*input.shape[:dim], size * count, *input.shape[dim + 1:]))
        return repeated if count != 1 and repeated.is_contiguous() else operators.clone(repeated)    # a copy
    if repeats.ndim > 1 or repeats.numel() != size:
        raise RuntimeError("repeat_interleave: repeats must be one number, or one for each slice (got shape "
                           f"{tuple(repeats.shape)} for size {size}).")
    return operators.index_select(input, dim, _repeated_indices(repeats, output_size))


def _is_floating(input):
    return input.is_floating_point() or input.is_complex()


def _repeated_indices(repeats, output_size):
    """Return index i repeated ``repeats[i]`` times, for each i."""
    if repeats.ndim != 1 or _is_floating(repeats):
        error = RuntimeError if repeats.ndim != 1 else NotImplementedError
        raise error(f"repeat_interleave: repeats must be a vector of integers (got {repeats.dtype} and shape "
                    f"{tuple(repeats.shape)}).")
    return operators.repeated_indices(repeats, output_size)


_IN_PLACE = (index_copy, index_fill, masked_scatter, put)
METHODS = {
    **{function.__name__: function for function in (*_IN_PLACE, repeat_interleave, take)},
    **{f"{function.__name__}_": inplace(function) for function in _IN_PLACE},
}
