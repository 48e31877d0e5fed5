"""where, nonzero, and conversion of indices."""

from cygrad._core.arrays.dtype import int64
from cygrad._core.creation.factories import full
from cygrad._core.graph.tensor import Tensor
from cygrad._core.table.docstrings import documented
from cygrad._core.table.operator import operators
from cygrad.composite.out_forms import as_tensor_argument, into

__all__ = ["nonzero", "nonzero_static", "unravel_index", "where"]


def where(condition, input=None, other=None, *, out=None):
    """Return elements of `input` where a condition is True, and of `other` elsewhere; or the indices where it is True.

    Parameters
    ----------
    condition : Tensor
        Bool. Without other arguments, any dtype: return the indices of nonzero elements.
    input, other : Tensor or number, optional
        Both or none; broadcast with `condition`.
    out : Tensor, optional
        Tensor that the result is written to.

    Returns
    -------
    Tensor, or tuple of Tensor if `condition` is given alone
        Derivative: 1 for the selected element, 0 for the other.

    Raises
    ------
    RuntimeError
        If shapes do not match.

    Examples
    --------
    >>> x = cygrad.tensor([1., -2.])
    >>> cygrad.where(x > 0, x, 0.)
    tensor([1., 0.])
    >>> cygrad.where(x > 0)
    (tensor([0]),)
    """
    if input is None and other is None:
        return nonzero(condition, as_tuple=True)
    if out is None:
        return operators.where(condition, input, other)
    return into("where", operators.where(condition, input, other), out)


@documented()
def _where_method(self, condition, other):
    """Return ``where(condition, self, other)``.

    Parameters
    ----------
    condition : Tensor
        Bool.
    other : Tensor or number

    Examples
    --------
    >>> x = cygrad.tensor([1.0, -2.0])
    >>> x.where(x > 0, 0.0)
    tensor([1., 0.])
    """
    return operators.where(condition, self, other)


def nonzero(input, *, as_tuple=False, out=None):
    """Return the indices of the nonzero elements.

    Parameters
    ----------
    input : Tensor
    as_tuple : bool, default False
        Whether to return a tuple of index vectors, one for each dimension, which can be used for indexing.
    out : Tensor, optional
        Tensor that the result is written to.

    Returns
    -------
    Tensor, or tuple of Tensor if `as_tuple`
        int64, of shape (number of such elements, number of dimensions).

    Examples
    --------
    >>> cygrad.nonzero(cygrad.tensor([[0, 1], [2, 0]]))
    tensor([[0, 1],
            [1, 0]])
    >>> cygrad.nonzero(cygrad.tensor([0, 1, 2]), as_tuple=True)
    (tensor([1, 2]),)
    """
    if as_tuple and out is not None:
        raise RuntimeError("nonzero: does not support out if as_tuple is True. Pass one of them.")
    if not as_tuple:
        return operators.nonzero(input) if out is None else operators.nonzero(input, out=out)
    if as_tensor_argument("nonzero", "input", input).ndim == 0:
        input = operators.reshape(input, (1,))
    return tuple(operators.unbind(operators.nonzero(input), 1))


def nonzero_static(input, *, size, fill_value=-1):
    """Return the indices of the first `size` nonzero elements; the shape does not depend on the elements.

    Parameters
    ----------
    input : Tensor
    size : int
        Number of rows of the result.
    fill_value : int, default -1
        Value of missing rows.

    Returns
    -------
    Tensor
        int64, of shape (size, number of dimensions).

    Examples
    --------
    >>> cygrad.nonzero_static(cygrad.tensor([0, 1, 2]), size=3)
    tensor([[ 1],
            [ 2],
            [-1]])
    """
    if size < 0:
        raise RuntimeError(f"nonzero_static: size must not be negative (got {size}).")
    found = operators.nonzero(as_tensor_argument("nonzero_static", "input", input))
    missing = full((max(0, size - found.shape[0]), input.ndim), fill_value, dtype=int64)
    return operators.cat([operators.slice(found, 0, 0, size, 1), missing], 0)


def unravel_index(indices, shape):
    """Convert indices of a flattened tensor to coordinates.

    Parameters
    ----------
    indices : Tensor
        Integers; negative ones count from the end.
    shape : int or sequence of int
        Shape of the tensor.

    Returns
    -------
    tuple of Tensor
        One for each dimension, of the shape of `indices`.

    Raises
    ------
    TypeError
        If `indices` are not integers.
    ValueError
        If a size is negative.

    Examples
    --------
    >>> cygrad.unravel_index(cygrad.tensor([4, 1]), (2, 3))
    (tensor([1, 0]), tensor([1, 1]))
    """
    as_tensor_argument("unravel_index", "indices", indices)
    if indices.is_floating_point() or indices.is_complex() or str(indices.dtype).endswith(".bool"):
        raise TypeError(f"unravel_index: expected integers (got {indices.dtype}).")
    sizes = (shape,) if hasattr(shape, "__index__") and not isinstance(shape, Tensor) else tuple(shape)
    if not all(hasattr(size, "__index__") for size in sizes):
        raise TypeError(f"unravel_index: the shape must be of integers (got {shape!r}).")
    sizes = tuple(size.__index__() for size in tuple(sizes))
    if any(size < 0 for size in sizes):
        raise ValueError(f"unravel_index: sizes must not be negative (got {sizes}).")
    places, coordinates = indices, []
    for size in reversed(sizes):
        coordinates.append(operators.remainder(places, max(1, size)))
        places = operators.floor_divide(places, max(1, size))
    return tuple(reversed(coordinates))


METHODS = {"nonzero": nonzero, "nonzero_static": nonzero_static, "where": _where_method}
