"""NumPy's functions for stacking, splitting and adding dimensions."""

from cygrad._core.creation.factories import zeros
from cygrad._core.graph.argument_errors import as_dim, as_sizes
from cygrad._core.graph.tensor import Tensor
from cygrad._core.table.docstrings import documented
from cygrad._core.table.operator import operators
from cygrad.composite.out_forms import MAX_PARTS, as_tensor_argument

__all__ = ["atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "column_stack", "dsplit", "dstack", "hsplit",
           "hstack", "row_stack", "tensor_split", "vsplit", "vstack"]

_RETURNED = "tuple of Tensor\n    Views."

METHODS = ["dsplit", "hsplit", "tensor_split", "vsplit"]



# ---- dimensions

def _each(operation, tensors, function):
    """Apply a function to a tensor, or to each of several tensors."""
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
        single = False
    else:
        single = len(tensors) == 1
    found = tuple(function(as_tensor_argument(operation, "tensors", tensor)) for tensor in tensors)
    return found[0] if single else found


def _at_least_one(tensor):
    return tensor if tensor.ndim else operators.reshape(tensor, (1,))


def _at_least_two(tensor):
    return tensor if tensor.ndim > 1 else operators.unsqueeze(_at_least_one(tensor), 0)


def _at_least_three(tensor):
    return tensor if tensor.ndim > 2 else operators.unsqueeze(_at_least_two(tensor), -1)


def atleast_1d(*tensors):
    """Return tensors with at least one dimension.

    Parameters
    ----------
    *tensors : Tensor or sequence of Tensor

    Returns
    -------
    Tensor, or tuple of Tensor for several
        0-dimensional tensors become vectors; others stay.

    Examples
    --------
    >>> cygrad.atleast_1d(cygrad.tensor(5))
    tensor([5])
    """
    return _each("atleast_1d", tensors, _at_least_one)


def atleast_2d(*tensors):
    """Return tensors with at least two dimensions.

    Parameters
    ----------
    *tensors : Tensor or sequence of Tensor

    Returns
    -------
    Tensor, or tuple of Tensor for several
        Views; vectors become rows.

    Examples
    --------
    >>> cygrad.atleast_2d(cygrad.tensor([1, 2]))
    tensor([[1, 2]])
    """
    return _each("atleast_2d", tensors, _at_least_two)


def atleast_3d(*tensors):
    """Return tensors with at least three dimensions.

    Parameters
    ----------
    *tensors : Tensor or sequence of Tensor

    Returns
    -------
    Tensor, or tuple of Tensor for several
        Views; matrices get a last dimension, vectors of n elements become (1, n, 1).

    Examples
    --------
    >>> cygrad.atleast_3d(cygrad.tensor([1, 2])).shape
    (1, 2, 1)
    """
    return _each("atleast_3d", tensors, _at_least_three)


# ---- stacking

def _joined(operation, tensors, dim, out):
    if not isinstance(tensors, (list, tuple)):
        raise TypeError(f"{operation}: expected a sequence of Tensors (got {type(tensors).__name__}).")
    if not tensors:
        raise RuntimeError(f"{operation}: expected at least one Tensor (got an empty sequence).")
    return operators.cat(tensors, dim) if out is None else operators.cat(tensors, dim, out=out)


def _listed(operation, tensors, function):
    """Apply a function to each tensor of a sequence."""
    if not isinstance(tensors, (list, tuple)):
        raise TypeError(f"{operation}: expected a sequence of Tensors (got {type(tensors).__name__}).")
    return [function(as_tensor_argument(operation, "tensors", tensor)) for tensor in tensors]


@documented()
def hstack(tensors, *, out=None):
    """Stack tensors horizontally: along dimension 1, or 0 for vectors.

    Parameters
    ----------
    tensors : sequence of Tensor

    Examples
    --------
    >>> cygrad.hstack([cygrad.tensor([1, 2]), cygrad.tensor([3])])
    tensor([1, 2, 3])
    """
    tensors = _listed("hstack", tensors, _at_least_one)
    return _joined("hstack", tensors, 0 if tensors and tensors[0].ndim == 1 else 1, out)


@documented()
def vstack(tensors, *, out=None):
    """Stack tensors vertically: along dimension 0, vectors as rows.

    Parameters
    ----------
    tensors : sequence of Tensor

    Examples
    --------
    >>> cygrad.vstack([cygrad.tensor([1, 2]), cygrad.tensor([3, 4])])
    tensor([[1, 2],
            [3, 4]])
    """
    return _joined("vstack", _listed("vstack", tensors, _at_least_two), 0, out)


row_stack = vstack


@documented()
def dstack(tensors, *, out=None):
    """Stack tensors in depth: along dimension 2.

    Parameters
    ----------
    tensors : sequence of Tensor

    Examples
    --------
    >>> cygrad.dstack([cygrad.tensor([1, 2]), cygrad.tensor([3, 4])])
    tensor([[[1, 3],
             [2, 4]]])
    """
    return _joined("dstack", _listed("dstack", tensors, _at_least_three), 2, out)


@documented()
def column_stack(tensors, *, out=None):
    """Stack tensors along dimension 1; vectors and 0-dim tensors are columns.

    Parameters
    ----------
    tensors : sequence of Tensor

    Examples
    --------
    >>> cygrad.column_stack([cygrad.tensor([1, 2]), cygrad.tensor([3, 4])])
    tensor([[1, 3],
            [2, 4]])
    """
    columns = _listed("column_stack", tensors,
                      lambda tensor: operators.reshape(tensor, (tensor.numel(), 1)) if tensor.ndim < 2 else tensor)
    return _joined("column_stack", columns, 1, out)


def block_diag(*tensors):
    """Return a block diagonal matrix.

    Parameters
    ----------
    *tensors : Tensor
        Blocks of at most two dimensions; vectors are rows.

    Returns
    -------
    Tensor
        A matrix of the promoted dtype.

    Raises
    ------
    RuntimeError
        If a block has more than two dimensions.

    Examples
    --------
    >>> cygrad.block_diag(cygrad.tensor([[1, 2]]), cygrad.tensor(3))
    tensor([[1, 2, 0],
            [0, 0, 3]])
    """
    blocks = []
    for tensor in tensors or (zeros(1, 0),):
        if as_tensor_argument("block_diag", "tensors", tensor).ndim > 2:
            raise RuntimeError("block_diag: blocks must have at most two dimensions (got shape "
                               f"{tuple(tensor.shape)}). Reshape them.")
        blocks.append(_at_least_two(tensor))
    width = sum(block.shape[1] for block in blocks)
    rows, left = [], 0
    for block in blocks:
        right = width - left - block.shape[1]
        rows.append(operators.pad(block, (left, right)))
        left += block.shape[1]
    return operators.cat(rows, 0)


# ---- splitting

@documented(returns=_RETURNED)
def tensor_split(input, indices_or_sections, dim=0):
    """Split a tensor into a number of parts, or at indices.

    Parameters
    ----------
    indices_or_sections : int, sequence of int, or Tensor
        Number of parts, of which the first may be larger by one; or the indices to split at. A Tensor must be int64.
    dim : int, default 0

    Raises
    ------
    RuntimeError
        If the number of parts is not positive, or `input` is 0-dimensional.

    Examples
    --------
    >>> cygrad.tensor_split(cygrad.arange(5), 2)
    (tensor([0, 1, 2]), tensor([3, 4]))
    >>> cygrad.tensor_split(cygrad.arange(5), (1, 3))
    (tensor([0]), tensor([1, 2]), tensor([3, 4]))
    """
    return _split("tensor_split", input, indices_or_sections, dim)


def _split(operation, input, where, dim):
    as_tensor_argument(operation, "input", input)
    if input.ndim == 0:
        raise RuntimeError(f"{operation}: expected at least one dimension (got shape ()).")
    dim = as_dim(operation, dim, input.ndim)
    size = input.shape[dim]
    if isinstance(where, Tensor):
        if where.ndim > 1 or str(where.dtype).rpartition(".")[2] != "int64":
            raise RuntimeError(f"{operation}: indices_or_sections must be an int64 Tensor of at most one dimension "
                               f"(got {where.dtype} and shape {tuple(where.shape)}).")
        where = where.tolist()
    if isinstance(where, (list, tuple)):
        bounds = [slice(None, position).indices(size)[1] for position in as_sizes(
            operation, "indices_or_sections", where)]
    elif hasattr(where, "__index__"):
        count = where.__index__()
        if count <= 0:
            raise RuntimeError(f"{operation}: the number of parts must be positive (got {count}).")
        if count > MAX_PARTS:
            raise RuntimeError(f"{operation}: too many parts (got {count}, expected at most {MAX_PARTS}).")
        whole, larger = divmod(size, count)
        bounds = [part * whole + min(part, larger) for part in range(1, count)]
    else:
        raise TypeError(f"{operation}: indices_or_sections must be an integer, a sequence of them or a Tensor (got "
                        f"{where!r}).")
    starts, ends = [0, *bounds], [*bounds, size]
    return tuple(operators.slice(input, dim, start, max(start, end), 1)
                 for start, end in zip(starts, ends, strict=True))


def _even_split(operation, input, where, dim, least):
    """Split along a dimension, into parts of equal size."""
    if as_tensor_argument(operation, "input", input).ndim < least:
        raise RuntimeError(f"{operation}: expected at least {least} dimension{'s' * (least > 1)} (got shape "
                           f"{tuple(input.shape)}).")
    if hasattr(where, "__index__") and not isinstance(where, Tensor):
        count = where.__index__()
        if count == 0 or input.shape[dim] % count:
            raise RuntimeError(f"{operation}: dimension {dim} cannot be divided into {count} equal parts (got size "
                               f"{input.shape[dim]}).")
    return _split(operation, input, where, dim)


@documented(returns=_RETURNED)
def hsplit(input, indices_or_sections):
    """Split horizontally: along dimension 1, or 0 for a vector.

    Parameters
    ----------
    input : Tensor
        Of at least one dimension.
    indices_or_sections : int or sequence of int
        Number of equal parts, or the indices to split at.

    Raises
    ------
    RuntimeError
        If the size is not divisible.

    Examples
    --------
    >>> cygrad.hsplit(cygrad.arange(4), 2)
    (tensor([0, 1]), tensor([2, 3]))
    """
    dim = 0 if as_tensor_argument("hsplit", "input", input).ndim == 1 else 1
    return _even_split("hsplit", input, indices_or_sections, dim, 1)


@documented(returns=_RETURNED)
def vsplit(input, indices_or_sections):
    """Split vertically: along dimension 0.

    Parameters
    ----------
    input : Tensor
        Of at least two dimensions.
    indices_or_sections : int or sequence of int
        Number of equal parts, or the indices to split at.

    Raises
    ------
    RuntimeError
        If the size is not divisible.

    Examples
    --------
    >>> cygrad.vsplit(cygrad.tensor([[1, 2], [3, 4]]), 2)
    (tensor([[1, 2]]), tensor([[3, 4]]))
    """
    return _even_split("vsplit", input, indices_or_sections, 0, 2)


@documented(returns=_RETURNED)
def dsplit(input, indices_or_sections):
    """Split in depth: along dimension 2.

    Parameters
    ----------
    input : Tensor
        Of at least three dimensions.
    indices_or_sections : int or sequence of int
        Number of equal parts, or the indices to split at.

    Raises
    ------
    RuntimeError
        If the size is not divisible.

    Examples
    --------
    >>> cygrad.dsplit(cygrad.zeros(1, 2, 4), 2)[0].shape
    (1, 2, 2)
    """
    return _even_split("dsplit", input, indices_or_sections, 2, 3)
