"""Diagonals, copies with a modified view, triangle indices."""

from cygrad._core.arrays.array import is_meta_place
from cygrad._core.arrays.dtype import int64
from cygrad._core.creation.factories import arange
from cygrad._core.dispatch.indexing import copy_
from cygrad._core.graph.argument_errors import as_dim, as_integer
from cygrad._core.graph.type_slots import placed
from cygrad._core.table.docstrings import documented
from cygrad._core.table.operator import operators
from cygrad.composite.mixed_precision import computes_in
from cygrad.composite.out_forms import as_tensor_argument, copy_for, into

__all__ = ["as_strided_scatter", "diag", "diag_embed", "diagflat", "diagonal_scatter", "fill_diagonal_",
           "select_scatter", "slice_scatter", "trace", "tril_indices", "triu_indices"]
METHODS = ["as_strided_scatter", "diag", "diag_embed", "diagflat", "diagonal_scatter", "fill_diagonal_",
           "select_scatter", "slice_scatter", "trace"]


def diag_embed(input, offset=0, dim1=-2, dim2=-1):
    """Return matrices with the last dimension of a tensor on a diagonal, and zeros elsewhere.

    Parameters
    ----------
    input : Tensor
        Of at least one dimension.
    offset : int, default 0
        Offset of the diagonal from the main one; positive above, negative below.
    dim1, dim2 : int, default -2 and -1
        Dimensions of the matrices in the result.

    Returns
    -------
    Tensor
        With one more dimension.

    Raises
    ------
    RuntimeError
        If the two dimensions are the same.

    Examples
    --------
    >>> cygrad.diag_embed(cygrad.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    """
    as_tensor_argument("diag_embed", "input", input)
    first, second = (as_dim("diag_embed", dim, input.ndim + 1) for dim in (dim1, dim2))
    if first == second:
        raise RuntimeError(f"diag_embed: the two dimensions must differ (got {dim1} and {dim2}).")
    if input.ndim == 0:
        raise RuntimeError("diag_embed: expected at least one dimension (got shape ()).")
    size = input.shape[-1] + abs(as_integer("diag_embed", "offset", offset))
    shape = list(input.shape[:-1])
    for dim in sorted((first, second)):
        shape.insert(dim, size)
    return operators.diagonal_backward(input, tuple(shape), offset, first, second)


@documented()
def diag(input, diagonal=0, *, out=None):
    """Return the diagonal of a matrix, or the matrix with a vector on its diagonal.

    Parameters
    ----------
    input : Tensor
        Of one or two dimensions.
    diagonal : int, default 0
        Offset of the diagonal from the main one; positive above, negative below.

    Raises
    ------
    RuntimeError
        If the number of dimensions is not one or two.

    Examples
    --------
    >>> cygrad.diag(cygrad.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    >>> cygrad.diag(cygrad.tensor([1, 2]), 1)
    tensor([[0, 1, 0],
            [0, 0, 2],
            [0, 0, 0]])
    """
    as_tensor_argument("diag", "input", input)
    if input.ndim == 1:
        return into("diag", diag_embed(input, diagonal), out)
    if input.ndim != 2:
        raise RuntimeError(f"diag: expected a vector or a matrix (got shape {tuple(input.shape)}). Use diagonal() or "
                           "diag_embed().")
    return into("diag", operators.clone(operators.diagonal(input, diagonal, 0, 1)), out)


@documented()
def diagflat(input, offset=0):
    """Return the matrix with all elements of a tensor on its diagonal.

    Parameters
    ----------
    offset : int, default 0
        Offset of the diagonal from the main one; positive above, negative below.

    Examples
    --------
    >>> cygrad.diagflat(cygrad.tensor([[1, 2]]))
    tensor([[1, 0],
            [0, 2]])
    """
    as_tensor_argument("diagflat", "input", input)
    return diag_embed(operators.reshape(input, (input.numel(),)), offset)


@computes_in("float32")
def trace(input):
    """Return the sum of the diagonal of a matrix.

    Parameters
    ----------
    input : Tensor
        Of two dimensions.

    Returns
    -------
    Tensor
        0-dimensional; integers are summed as int64.

    Raises
    ------
    RuntimeError
        If `input` is not a matrix.

    Examples
    --------
    >>> cygrad.trace(cygrad.tensor([[1, 2], [3, 4]]))
    tensor(5)
    """
    if as_tensor_argument("trace", "input", input).ndim != 2:
        raise RuntimeError(f"trace: expected a matrix (got shape {tuple(input.shape)}).")
    return operators.sum(operators.diagonal(input, 0, 0, 1))


# ---- copies with a modified view

def _changed(operation, input, src, view):
    """Return a copy of the tensor with `src` written to a view of it."""
    as_tensor_argument(operation, "input", input)
    as_tensor_argument(operation, "src", src)
    result = copy_for(input, src)
    part = view(result)
    if part.shape != src.shape:
        raise RuntimeError(f"{operation}: src must have the shape of the view that it replaces (got "
                           f"{tuple(src.shape)}, expected {tuple(part.shape)}).")
    copy_(part, src)
    return result


@documented()
def diagonal_scatter(input, src, offset=0, dim1=0, dim2=1):
    """Return a copy with a diagonal replaced.

    Parameters
    ----------
    src : Tensor
        Of the shape of ``diagonal(input, offset, dim1, dim2)``.
    offset : int, default 0
    dim1, dim2 : int, default 0 and 1

    Examples
    --------
    >>> cygrad.diagonal_scatter(cygrad.zeros(2, 2), cygrad.ones(2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    return _changed("diagonal_scatter", input, src, lambda x: operators.diagonal(x, offset, dim1, dim2))


@documented()
def select_scatter(input, src, dim, index):
    """Return a copy with one index of a dimension replaced.

    Parameters
    ----------
    src : Tensor
        Of the shape of ``select(input, dim, index)``.
    dim, index : int

    Examples
    --------
    >>> cygrad.select_scatter(cygrad.zeros(2, 2), cygrad.ones(2), 0, 1)
    tensor([[0., 0.],
            [1., 1.]])
    """
    return _changed("select_scatter", input, src, lambda x: operators.select(x, dim, index))


@documented()
def slice_scatter(input, src, dim=0, start=None, end=None, step=1):
    """Return a copy with a slice of a dimension replaced.

    Parameters
    ----------
    src : Tensor
        Of the shape of the slice.
    dim : int, default 0
    start, end : int, optional
    step : int, default 1

    Examples
    --------
    >>> cygrad.slice_scatter(cygrad.zeros(4), cygrad.ones(2), start=1, end=3)
    tensor([0., 1., 1., 0.])
    """
    return _changed("slice_scatter", input, src, lambda x: operators.slice(x, dim, start, end, step))


@documented()
def as_strided_scatter(input, src, size, stride, storage_offset=None):
    """Return a copy with a strided view replaced.

    Parameters
    ----------
    src : Tensor
        Of shape `size`.
    size, stride : sequence of int
    storage_offset : int, optional

    Examples
    --------
    >>> cygrad.as_strided_scatter(cygrad.zeros(4), cygrad.ones(2), (2,), (2,))
    tensor([1., 0., 1., 0.])
    """
    return _changed("as_strided_scatter", input, src, lambda x: operators.as_strided(x, size, stride, storage_offset))


def fill_diagonal_(input, fill_value, wrap=False):
    """Fill the main diagonal with a number, in place.

    Parameters
    ----------
    input : Tensor
        Of at least two dimensions; more than two must have the same size.
    fill_value : number
    wrap : bool, default False
        Whether the diagonal of a tall matrix wraps around after n columns.

    Returns
    -------
    Tensor
        `input`.

    Raises
    ------
    RuntimeError
        If there are fewer than two dimensions, or more of different sizes.

    Examples
    --------
    >>> cygrad.zeros(2, 2).fill_diagonal_(5)
    tensor([[5., 0.],
            [0., 5.]])
    """
    as_tensor_argument("fill_diagonal_", "input", input)
    if input.ndim < 2 or (input.ndim > 2 and len(set(input.shape)) > 1):
        raise RuntimeError("fill_diagonal_: expected at least two dimensions, of the same size if more than two (got "
                           f"shape {tuple(input.shape)}).")
    size, step = min(input.shape), sum(input.stride())
    places = [operators.as_strided(input, (size,), (step,), None)]
    rows, columns = input.shape[0], input.shape[1]
    if wrap and input.ndim == 2 and rows > columns + 1 and columns:
        blocks = (rows + 1) // (columns + 1)                 # blocks with a complete diagonal
        places = [operators.as_strided(input, (blocks, columns), ((columns + 1) * input.stride(0), step), None)]
        if blocks * (columns + 1) < rows:
            rest = operators.slice(input, 0, blocks * (columns + 1), None, 1)
            places.append(operators.diagonal(rest, 0, 0, 1))
    for place in places:
        place.fill_(fill_value)
    return input


# ---- triangles

def _indices(operation, row, col, offset, dtype, lower, device):
    row, col, offset = (as_integer(operation, name, value) for name, value in (
        ("row", row), ("col", col), ("offset", offset)))
    if row < 0 or col < 0:
        raise RuntimeError(f"{operation}: sizes must not be negative (got {row} and {col}).")
    if dtype is not None and (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(f"{operation}: dtype must be integral (got {dtype}).")
    rows = operators.unsqueeze(arange(row, device="cpu"), 1)
    columns = operators.unsqueeze(arange(col, device="cpu"), 0)
    inside = columns - rows <= offset if lower else columns - rows >= offset
    found = operators.cast(operators.transpose(operators.nonzero(inside), 0, 1).contiguous(), dtype or int64)
    return placed(found, is_meta_place(device, operation))


def tril_indices(row, col, offset=0, *, dtype=None, device=None, layout=None):
    """Return the indices of the lower triangle of a matrix.

    Parameters
    ----------
    row, col : int
        Size of the matrix.
    offset : int, default 0
        Offset of the last diagonal that is included.
    dtype : dtype, optional
        int64 by default.
    device : device or str, optional
    layout : optional
        Accepted and ignored.

    Returns
    -------
    Tensor
        Of shape (2, number of elements): row and column indices.

    Examples
    --------
    >>> cygrad.tril_indices(2, 2)
    tensor([[0, 1, 1],
            [0, 0, 1]])
    """
    return _indices("tril_indices", row, col, offset, dtype, True, device)


def triu_indices(row, col, offset=0, *, dtype=None, device=None, layout=None):
    """Return the indices of the upper triangle of a matrix.

    Parameters
    ----------
    row, col : int
        Size of the matrix.
    offset : int, default 0
        Offset of the first diagonal that is included.
    dtype : dtype, optional
        int64 by default.
    device : device or str, optional
    layout : optional
        Accepted and ignored.

    Returns
    -------
    Tensor
        Of shape (2, number of elements): row and column indices.

    Examples
    --------
    >>> cygrad.triu_indices(2, 2)
    tensor([[0, 0, 1],
            [0, 1, 1]])
    """
    return _indices("triu_indices", row, col, offset, dtype, False, device)
