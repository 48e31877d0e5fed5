"""Distances between vectors, and renormalization."""

from functools import lru_cache

from cygrad._core.creation.factories import arange
from cygrad._core.graph.argument_errors import as_integer, as_number
from cygrad._core.graph.tensor import Tensor
from cygrad._core.table.operator import operators
from cygrad.composite.mixed_precision import rounded_once
from cygrad.composite.out_forms import as_tensor_argument, inplace, into
from cygrad.composite.shapes import broadcast_shapes

__all__ = ["cdist", "dist", "pdist", "renorm"]

# Norms with an operator that computes differences and norm in one pass.
FUSED = (1, 2, float("inf"))
# Maximum bytes of differences in memory, roughly the L2 cache.
AT_ONCE = 1 << 20


@rounded_once
def dist(input, other, p=2):
    """Return the p-norm of a difference: ``norm(input - other, p)``.

    Parameters
    ----------
    input, other : Tensor
        Broadcast against each other.
    p : number, default 2

    Returns
    -------
    Tensor
        0-dimensional. Derivative: as for `norm`, 0 if both are equal.

    Examples
    --------
    >>> cygrad.dist(cygrad.tensor([3., 0.]), cygrad.tensor([0., 4.]))
    tensor(5.)
    """
    as_tensor_argument("dist", "input", input)
    as_tensor_argument("dist", "other", other)
    return operators.norm(operators.sub(input, other), p)


def _check_norm(operation, p, **tensors):
    if as_number(operation, "p", p) < 0:
        raise RuntimeError(f"{operation}: p must not be negative (got {p}).")
    for name, tensor in tensors.items():
        if not as_tensor_argument(operation, name, tensor).is_floating_point():
            raise RuntimeError(f"{operation}: {name} must be floating point (got {tensor.dtype}).")


@lru_cache(maxsize=256)
def _paired_shapes(first, second):
    """Return the batch dimensions of two sets of vectors, and the shapes to expand them to; None for their own."""
    for name, shape in (("x1", first), ("x2", second)):
        if len(shape) < 2:
            raise RuntimeError(f"cdist: {name} must have at least two dimensions (got shape {tuple(shape)}).")
    if first[-1] != second[-1]:
        raise RuntimeError(f"cdist: vectors must have the same size (got shapes {tuple(first)} and {tuple(second)}).")
    batch = broadcast_shapes(tuple(first[:-2]), tuple(second[:-2]))
    return batch, *(None if shape[:-2] == batch else (*batch, *shape[-2:]) for shape in (first, second))


@rounded_once
def cdist(x1, x2, p=2.0, compute_mode="use_mm_for_euclid_dist_if_necessary"):
    """Return the pairwise distances of the vectors of two sets.

    Parameters
    ----------
    x1, x2 : Tensor
        Of shape (..., n, m) and (..., k, m): batches broadcast against each other.
    p : float, default 2
        Order of the norm, not negative; 0 counts the elements that differ.
    compute_mode : str, optional
        Accepted and ignored: differences are always computed, which avoids cancellation for nearby points.

    Returns
    -------
    Tensor
        Of shape (..., n, k). Derivative: as for `norm`, 0 for equal points.

    Raises
    ------
    RuntimeError
        If `p` is negative, or sizes do not match.

    Examples
    --------
    >>> cygrad.cdist(cygrad.tensor([[0., 0.]]), cygrad.tensor([[3., 4.], [0., 1.]]))
    tensor([[5., 1.]])
    """
    if p not in FUSED or type(x1) is not Tensor or type(x2) is not Tensor:
        _check_norm("cdist", p, x1=x1, x2=x2)
    batch, first, second = _paired_shapes(x1.shape, x2.shape)
    if p in FUSED and x1.dtype == x2.dtype:
        return operators.distances(x1 if first is None else operators.expand(x1, first),
                                   x2 if second is None else operators.expand(x2, second), p)
    _check_norm("cdist", p, x1=x1, x2=x2)
    columns = operators.unsqueeze(x2, -3)
    size = max(1, x2.shape[-2] * x1.shape[-1])
    for count in batch:
        size *= max(1, count)
    rows = max(1, AT_ONCE // (8 * size))
    parts = []
    for start in range(0, max(1, x1.shape[-2]), rows):
        some = operators.unsqueeze(operators.slice(x1, -2, start, start + rows, 1), -2)
        parts.append(operators.norm(operators.sub(some, columns), p, (-1,)))
    return parts[0] if len(parts) == 1 else operators.cat(parts, len(batch))


@rounded_once
def pdist(input, p=2.0):
    """Return the pairwise distances of the vectors of one set.

    Parameters
    ----------
    input : Tensor
        Of shape (n, m).
    p : float, default 2
        Order of the norm, not negative.

    Returns
    -------
    Tensor
        Of n * (n - 1) / 2 elements: the rows above the diagonal of ``cdist(input, input)``.

    Raises
    ------
    RuntimeError
        If `p` is negative, or `input` is not a matrix.

    Examples
    --------
    >>> cygrad.pdist(cygrad.tensor([[0., 0.], [3., 4.], [0., 1.]]))
    tensor([5.0000, 1.0000, 4.2426])
    """
    _check_norm("pdist", p, input=input)
    if input.ndim != 2:
        raise RuntimeError(f"pdist: expected a matrix (got shape {tuple(input.shape)}).")
    if p in FUSED:
        return operators.above_diagonal(operators.distances_within(input, p))
    count = input.shape[0]
    above = operators.lt(operators.unsqueeze(arange(count), 1), operators.unsqueeze(arange(count), 0))
    pairs = operators.nonzero(above)
    first = operators.index_select(input, 0, operators.select(pairs, 1, 0))
    second = operators.index_select(input, 0, operators.select(pairs, 1, 1))
    return operators.norm(operators.sub(first, second), p, (1,))


@rounded_once
def renorm(input, p, dim, maxnorm, *, out=None):
    """Scale slices along a dimension whose norm exceeds `maxnorm`.

    Parameters
    ----------
    input : Tensor
        Floating point, of at least two dimensions.
    p : number
        Order of the norm, positive.
    dim : int
        Dimension of the slices.
    maxnorm : number
        Not negative.
    out : Tensor, optional
        Tensor that the result is written to.

    Returns
    -------
    Tensor
        Of the same shape. Slices are multiplied by ``maxnorm / (norm + 1e-7)``.

    Raises
    ------
    RuntimeError
        If `p` is not positive, `maxnorm` is negative, or there are fewer than two dimensions.

    Examples
    --------
    >>> cygrad.renorm(cygrad.tensor([[3., 4.], [0.3, 0.4]]), 2, 0, 1)
    tensor([[0.6000, 0.8000],
            [0.3000, 0.4000]])
    """
    as_tensor_argument("renorm", "input", input)
    dim = as_integer("renorm", "dim", dim)
    if not as_number("renorm", "p", p) > 0:
        raise RuntimeError(f"renorm: p must be positive (got {p}).")
    if not as_number("renorm", "maxnorm", maxnorm) >= 0:
        raise RuntimeError(f"renorm: maxnorm must not be negative (got {maxnorm}).")
    if input.ndim < 2:
        raise RuntimeError(f"renorm: expected at least two dimensions (got shape {tuple(input.shape)}).")
    if not -input.ndim <= dim < input.ndim:
        raise IndexError(f"renorm: dimension out of range (got {dim}, expected to be in [{-input.ndim}, "
                         f"{input.ndim - 1}]).")
    others = tuple(k for k in range(input.ndim) if k != dim % input.ndim)
    norms = operators.norm(input, p, others, True)
    # A quotient, because the gradient of a reciprocal underflows where the norm is large.
    scaled = operators.mul(operators.div(input, operators.add(norms, 1e-7)), maxnorm)
    return into("renorm", operators.where(operators.gt(norms, maxnorm), scaled, input), out)


METHODS = {"dist": dist, "renorm": renorm, "renorm_": inplace(renorm)}
