"""scatter with reductions."""

from cygrad._core.arrays.dtype import int64
from cygrad._core.creation.factories import full_like, ones_like, zeros
from cygrad._core.graph.tensor import Tensor
from cygrad._core.table.docstrings import documented
from cygrad._core.table.operator import operators
from cygrad.composite.indexing import check_vector, wrapped
from cygrad.composite.out_forms import as_tensor_argument, inplace, into

__all__ = ["index_reduce", "scatter", "scatter_reduce"]

# Shared parameter descriptions.
_PARAMETERS = {
    "index": "Tensor\n    Indices along `dim`, int64; not larger than `src` and, in other dimensions, `input`.",
}

REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")


def _identity(reduce, dtype):
    """Return the identity of sums, products and extrema."""
    if reduce in ("sum", "mean"):
        return 0
    if reduce == "prod":
        return 1
    if dtype.is_floating_point:
        return float("-inf") if reduce == "amax" else float("inf")
    name = str(dtype).rpartition(".")[2]
    if name == "bool":
        return reduce == "amin"
    bits, signed = int(name.lstrip("uint")), not name.startswith("u")
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2 ** bits - 1)
    return low if reduce == "amax" else high


@documented(_PARAMETERS)
def scatter_reduce(input, dim, index, src, reduce, *, include_self=True, out=None):
    """Return a copy with elements of `src` reduced into indices along a dimension.

    Parameters
    ----------
    dim : int
    src : Tensor
        Of the dtype of `input`.
    reduce : {"sum", "prod", "mean", "amax", "amin"}
    include_self : bool, default True
        Whether to include the elements of `input` in the reduction. Elements without an index stay.

    Returns
    -------
    Tensor
        Differentiable in `input` and `src`; equal extrema share their gradient evenly.

    Raises
    ------
    RuntimeError
        If `reduce` is unknown, an index is out of bounds or shapes do not match.

    Examples
    --------
    >>> x, src = cygrad.tensor([1., 2.]), cygrad.tensor([3., 4.])
    >>> cygrad.scatter_reduce(x, 0, cygrad.tensor([0, 0]), src, "mean", include_self=False)
    tensor([3.5000, 2.0000])
    """
    for name, tensor in (("input", input), ("index", index), ("src", src)):
        as_tensor_argument("scatter_reduce", name, tensor)
    if reduce not in REDUCTIONS:
        raise RuntimeError(f"scatter_reduce: unknown reduction (got {reduce!r}, expected one of "
                           f"{', '.join(REDUCTIONS)}).")
    dim = wrapped("scatter_reduce", input, dim)
    src = _covered(src, index)
    start = input if include_self else operators.scatter(input, dim, index, _identity(reduce, input.dtype))
    if reduce in ("sum", "mean"):
        result = operators.scatter_add(start, dim, index, src)
        if reduce == "mean":
            result = _mean(result, dim, index, include_self)
    else:
        result = getattr(operators, f"scatter_{reduce}")(start, dim, index, src)
    return into("scatter_reduce", result, out)


def _covered(src, index):
    """Return the part of src that the index covers."""
    if not index.numel():
        return operators.reshape(operators.narrow(operators.reshape(src, (-1,)), 0, 0, 0), tuple(index.shape))
    if index.ndim == src.ndim:
        for k in range(src.ndim):
            if src.shape[k] > index.shape[k]:
                src = operators.narrow(src, k, 0, index.shape[k])
    return src


def _mean(total, dim, index, include_self):
    """Divide sums by counts; round integers down."""
    counts = zeros(tuple(total.shape), dtype=int64)
    counts = operators.scatter_add(counts if not include_self else counts + 1, dim, index,
                                   ones_like(index, dtype=int64))
    if not include_self:
        counts = operators.clamp_min(counts, 1)
    if total.is_floating_point() or total.is_complex():
        return operators.div(total, operators.cast(counts, total.dtype))
    return operators.floor_divide(total, operators.cast(counts, total.dtype))


@documented(_PARAMETERS)
def index_reduce(input, dim, index, source, reduce, *, include_self=True, out=None):
    """Return a copy with slices of `source` reduced into indices of a dimension.

    Parameters
    ----------
    dim : int
    index : Tensor
        Vector of integers.
    source : Tensor
        The slices, of the type of `input`.
    reduce : {"prod", "mean", "amax", "amin"}
    include_self : bool, default True
        Whether to include the elements of `input` in the reduction.

    Raises
    ------
    RuntimeError
        If `reduce` is unknown.

    Examples
    --------
    >>> x = cygrad.tensor([1., 2.])
    >>> cygrad.index_reduce(x, 0, cygrad.tensor([0, 0]), cygrad.tensor([3., 4.]), "prod")
    tensor([12.,  2.])
    """
    as_tensor_argument("index_reduce", "input", input)
    as_tensor_argument("index_reduce", "source", source)
    if reduce not in REDUCTIONS[1:]:
        raise RuntimeError(f"index_reduce: unknown reduction (got {reduce!r}, expected one of "
                           f"{', '.join(REDUCTIONS[1:])}).")
    dim, places = wrapped("index_reduce", input, dim), check_vector("index_reduce", index)
    expected = tuple(places.numel() if k == dim else size for k, size in enumerate(input.shape))
    if tuple(source.shape) != expected and input.ndim:
        raise IndexError(f"index_reduce: source has the wrong shape (got {tuple(source.shape)}, expected {expected}).")
    seen = operators.reshape(places, tuple(-1 if k == dim else 1 for k in range(input.ndim)))
    result = scatter_reduce(input, dim, operators.expand(seen, tuple(source.shape)), source, reduce,
                            include_self=include_self)
    return into("index_reduce", result, out)


@documented(_PARAMETERS)
def scatter(input, dim, index, src=None, *, value=None, reduce=None, out=None):
    """Return a copy with values written at indices along a dimension.

    Parameters
    ----------
    dim : int
    src : Tensor or number
        Values to write; a number may be passed as `value`.
    reduce : {"add", "multiply"}, optional
        Reduction instead of writing; see `scatter_reduce`.

    Returns
    -------
    Tensor
        Derivative: 0 for `input` where it is replaced, else 1; for `src` the gradient at its index. The last element of
        duplicates is written and gets the gradient.

    Raises
    ------
    RuntimeError
        If an index is out of bounds, shapes do not match, or `reduce` is unknown.

    Examples
    --------
    >>> x = cygrad.tensor([[1, 2], [3, 4]])
    >>> cygrad.scatter(x, 1, cygrad.tensor([[0], [1]]), 9)
    tensor([[9, 2],
            [3, 9]])
    """
    src = _one_source("scatter", src, value)
    if reduce is None:
        return operators.scatter(input, dim, index, src) if out is None else operators.scatter(
            input, dim, index, src, out=out)
    return into("scatter", _combined(input, dim, index, src, reduce), out)


def _one_source(operation, src, value):
    if (src is None) == (value is None):
        raise TypeError(f"{operation}: expected exactly one of src and value (got both or neither).")
    return value if src is None else src


def _combined(input, dim, index, src, reduce):
    """Add or multiply by scattered elements."""
    if reduce not in ("add", "multiply"):
        raise RuntimeError(f"scatter: unknown reduction (got {reduce!r}, expected 'add' or 'multiply').")
    if not isinstance(src, Tensor):
        src = full_like(index, src, dtype=as_tensor_argument("scatter", "input", input).dtype)
    return scatter_reduce(input, dim, index, src, "sum" if reduce == "add" else "prod")


def scatter_(input, dim, index, src=None, *, value=None, reduce=None):
    """In-place version of `scatter`.

    Returns
    -------
    Tensor
        `input`.

    Examples
    --------
    >>> cygrad.zeros(3).scatter_(0, cygrad.tensor([1]), 5.)
    tensor([0., 5., 0.])
    """
    src = _one_source("scatter_", src, value)
    if reduce is None:
        return operators.scatter_(input, dim, index, src)
    return _combined_in_place(input, dim, index, src, reduce)


_combined_in_place = inplace(_combined)
METHODS = {
    "index_reduce": index_reduce, "index_reduce_": inplace(index_reduce), "scatter": scatter, "scatter_": scatter_,
    "scatter_reduce": scatter_reduce, "scatter_reduce_": inplace(scatter_reduce),
}
