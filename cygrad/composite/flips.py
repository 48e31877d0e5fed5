"""Rotating, flipping and flattening."""

from cygrad._core.graph.argument_errors import as_dim, as_integer, as_sizes
from cygrad._core.table.docstrings import documented
from cygrad._core.table.operator import operators
from cygrad.composite.out_forms import as_tensor_argument

__all__ = ["adjoint", "fliplr", "flipud", "ravel", "rot90"]

_RETURNED = "Tensor\n    A copy."

METHODS = __all__


@documented(returns=_RETURNED)
def rot90(input, k=1, dims=(0, 1)):
    """Rotate a tensor by multiples of 90 degrees in a plane of two dimensions.

    Parameters
    ----------
    input : Tensor
        Of at least two dimensions.
    k : int, default 1
        Number of rotations; positive from the first of `dims` towards the second.
    dims : sequence of two int, default (0, 1)

    Raises
    ------
    RuntimeError
        If `dims` are not two different dimensions.
    IndexError
        If a dimension is out of range.

    Examples
    --------
    >>> cygrad.rot90(cygrad.tensor([[1, 2], [3, 4]]))
    tensor([[2, 4],
            [1, 3]])
    """
    as_tensor_argument("rot90", "input", input)
    dims, k = as_sizes("rot90", "dims", dims), as_integer("rot90", "k", k)
    if len(dims) != 2 or input.ndim < 2:
        raise RuntimeError(f"rot90: expected two dims of a tensor of at least two dimensions (got dims {dims} for "
                           f"shape {tuple(input.shape)}).")
    first, second = (as_dim("rot90", dim, input.ndim) for dim in dims)
    if first == second:
        raise RuntimeError(f"rot90: the two dimensions must differ (got {dims}).")
    if k % 4 == 0:
        return operators.clone(input)
    if k % 4 == 2:
        return operators.flip(input, (first, second))
    if k % 4 == 1:
        return operators.transpose(operators.flip(input, (second,)), first, second)
    return operators.flip(operators.transpose(input, first, second), (second,))


@documented(returns=_RETURNED)
def fliplr(input):
    """Reverse the order of the columns: dimension 1.

    Parameters
    ----------
    input : Tensor
        Of at least two dimensions.

    Raises
    ------
    RuntimeError
        If there are fewer than two dimensions.

    Examples
    --------
    >>> cygrad.fliplr(cygrad.tensor([[1, 2], [3, 4]]))
    tensor([[2, 1],
            [4, 3]])
    """
    if as_tensor_argument("fliplr", "input", input).ndim < 2:
        raise RuntimeError(f"fliplr: expected at least two dimensions (got shape {tuple(input.shape)}).")
    return operators.flip(input, (1,))


@documented(returns=_RETURNED)
def flipud(input):
    """Reverse the order of the rows: dimension 0.

    Parameters
    ----------
    input : Tensor
        Of at least one dimension.

    Raises
    ------
    RuntimeError
        If `input` is 0-dimensional.

    Examples
    --------
    >>> cygrad.flipud(cygrad.tensor([[1, 2], [3, 4]]))
    tensor([[3, 4],
            [1, 2]])
    """
    if as_tensor_argument("flipud", "input", input).ndim < 1:
        raise RuntimeError("flipud: expected at least one dimension (got shape ()).")
    return operators.flip(input, (0,))


@documented()
def ravel(input):
    """Flatten the tensor to a contiguous vector, without a copy where possible.

    Examples
    --------
    >>> cygrad.ravel(cygrad.tensor([[1, 2], [3, 4]]))
    tensor([1, 2, 3, 4])
    """
    return operators.reshape(as_tensor_argument("ravel", "input", input), (input.numel(),)).contiguous()


def adjoint(input):
    """Return the conjugate transposes of a batch of matrices.

    Parameters
    ----------
    input : Tensor
        Of at least two dimensions.

    Returns
    -------
    Tensor
        A view if `input` is real.

    Raises
    ------
    RuntimeError
        If there are fewer than two dimensions.

    Examples
    --------
    >>> cygrad.adjoint(cygrad.tensor([[1, 2j]]))
    tensor([[1.-0.j],
            [0.-2.j]])
    """
    if as_tensor_argument("adjoint", "input", input).ndim < 2:
        raise RuntimeError(f"adjoint: expected a matrix or a batch of them (got shape {tuple(input.shape)}).")
    transposed = operators.matrix_transpose(input)
    return operators.conj(transposed) if input.is_complex() else transposed
