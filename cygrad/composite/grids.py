"""Grids and combinations of the elements of vectors."""

import itertools
import math

from cygrad._core.arrays.dtype import int64
from cygrad._core.creation.factories import empty
from cygrad._core.table.operator import operators
from cygrad.composite.out_forms import as_tensor_argument

__all__ = ["cartesian_prod", "combinations", "meshgrid", "vander"]

_AT_ONCE = 1 << 14          # elements between two signal checks


def _vectors(operation, tensors, most):
    """Check tensors, given as a sequence or as arguments: vectors (or numbers unless `most`) of the same dtype."""
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    if not tensors:
        raise RuntimeError(f"{operation}: expected at least one Tensor (got none).")
    for item in tensors:
        if as_tensor_argument(operation, "tensors", item).ndim > 1 or (most and item.ndim != 1):
            raise RuntimeError(f"{operation}: expected vectors (got shape {tuple(item.shape)}).")
        if item.dtype is not tensors[0].dtype:
            raise RuntimeError(f"{operation}: expected Tensors of the same dtype (got {tensors[0].dtype} and "
                               f"{item.dtype}).")
    return tensors


def meshgrid(*tensors, indexing=None):
    """Return the coordinates of the points of a grid.

    Parameters
    ----------
    *tensors : Tensor, or a sequence of Tensor
        Coordinates along each dimension: vectors or numbers.
    indexing : {"ij", "xy"}, optional
        "ij" (default): the first vector is along dimension 0 (matrix indexing). "xy": along dimension 1 (Cartesian
        indexing).

    Returns
    -------
    tuple of Tensor
        Views, one for each vector.

    Raises
    ------
    RuntimeError
        If an argument is not a vector, dtypes differ, or `indexing` is unknown.

    Examples
    --------
    >>> a, b = cygrad.meshgrid(cygrad.tensor([1, 2]), cygrad.tensor([3, 4, 5]), indexing="ij")
    >>> a
    tensor([[1, 1, 1],
            [2, 2, 2]])
    """
    if indexing not in (None, "ij", "xy"):
        raise RuntimeError(f"meshgrid: unknown indexing (got {indexing!r}, expected 'ij' or 'xy').")
    tensors = _vectors("meshgrid", tensors, False)
    swapped = indexing == "xy" and len(tensors) > 1
    if swapped:
        tensors = (tensors[1], tensors[0], *tensors[2:])
    shape = tuple(item.numel() for item in tensors)
    grids = []
    for number, item in enumerate(tensors):
        seen = operators.reshape(item, tuple(size if k == number else 1 for k, size in enumerate(shape)))
        grids.append(operators.expand(seen, shape))
    if swapped:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)


def cartesian_prod(*tensors):
    """Return the Cartesian product of vectors.

    Parameters
    ----------
    *tensors : Tensor
        Vectors of the same dtype.

    Returns
    -------
    Tensor
        One combination in each row; for a single vector, the vector.

    Examples
    --------
    >>> cygrad.cartesian_prod(cygrad.tensor([1, 2]), cygrad.tensor([4, 5]))
    tensor([[1, 4],
            [1, 5],
            [2, 4],
            [2, 5]])
    """
    tensors = _vectors("cartesian_prod", tensors, True)
    if len(tensors) == 1:
        return operators.clone(tensors[0])
    grids = [operators.reshape(grid, (grid.numel(),)) for grid in meshgrid(*tensors)]
    return operators.stack(grids, 1)


def combinations(input, r=2, with_replacement=False):
    """Return all combinations of r elements of a vector.

    Parameters
    ----------
    input : Tensor
        Vector.
    r : int, default 2
    with_replacement : bool, default False
        Whether elements may repeat.

    Returns
    -------
    Tensor
        One combination in each row, in the order of ``itertools.combinations``.

    Raises
    ------
    RuntimeError
        If `input` is not a vector, or `r` is negative.

    Examples
    --------
    >>> cygrad.combinations(cygrad.tensor([1, 2, 3]))
    tensor([[1, 2],
            [1, 3],
            [2, 3]])
    """
    if as_tensor_argument("combinations", "input", input).ndim != 1:
        raise RuntimeError(f"combinations: expected a vector (got shape {tuple(input.shape)}).")
    if r < 0:
        raise RuntimeError(f"combinations: r must not be negative (got {r}).")
    if r == 0:
        return operators.clone(operators.slice(input, 0, 0, 0, 1))
    places = _places_of_combinations(input.shape[0], r, with_replacement)
    return operators.reshape(operators.index_select(input, 0, places.reshape(-1)), tuple(places.shape))


def _places_of_combinations(size, r, with_replacement):
    """Return the indices of one combination in each row; check for signals in between."""
    among = size + r - 1 if with_replacement and size else size
    if min(r, among - r) > 64:
        raise RuntimeError(f"combinations: too many combinations for 64-bit arithmetic (got {r} of {size} elements).")
    count = math.comb(among, r)
    if count >= 1 << 63:
        raise RuntimeError(f"combinations: too many combinations for 64-bit arithmetic (got {count} of {size} "
                           "elements).")
    places = empty((count, r), dtype=int64)
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    chosen, memory = itertools.chain.from_iterable(choose(range(size), r)), places.numpy().reshape(-1)
    for start in range(0, memory.size, _AT_ONCE):
        memory[start:start + _AT_ONCE] = list(itertools.islice(chosen, _AT_ONCE))
    return places


def vander(x, N=None, increasing=False):
    """Return the Vandermonde matrix: the powers of each element as a row.

    Parameters
    ----------
    x : Tensor
        Vector.
    N : int, optional
        Number of powers; the number of elements by default.
    increasing : bool, default False
        Whether exponents increase from 0 instead of decreasing to 0.

    Returns
    -------
    Tensor
        Of shape (elements, N); integers give int64.

    Raises
    ------
    RuntimeError
        If `x` is not a vector, or `N` is negative.

    Examples
    --------
    >>> cygrad.vander(cygrad.tensor([2., 3.]), 3)
    tensor([[4., 2., 1.],
            [9., 3., 1.]])
    """
    if as_tensor_argument("vander", "x", x).ndim != 1:
        raise RuntimeError(f"vander: expected a vector (got shape {tuple(x.shape)}).")
    count = x.shape[0] if N is None else N
    if count < 0:
        raise RuntimeError(f"vander: N must not be negative (got {N}).")
    if not (x.is_floating_point() or x.is_complex()):
        x = operators.cast(x, int64)
    column = operators.unsqueeze(x, 1)
    if count == 0:
        return operators.clone(operators.slice(column, 1, 0, 0, 1))
    powers = operators.pow(column, 0)
    if count > 1:
        repeated = operators.cumprod(operators.expand(column, (x.shape[0], count - 1)), 1)
        powers = operators.cat([powers, repeated], 1)
    return powers if increasing else operators.flip(powers, (1,))
