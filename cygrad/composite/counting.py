"""Histograms, binary search and unique_consecutive."""

from cygrad._core.arrays.dtype import bool as bool_dtype
from cygrad._core.arrays.dtype import float64, int64, promote_types
from cygrad._core.creation.creation import tensor
from cygrad._core.creation.factories import arange, linspace, ones, zeros
from cygrad._core.dispatch.named_results import named_result
from cygrad._core.graph.argument_errors import as_integer, as_number
from cygrad._core.graph.tensor import Tensor
from cygrad._core.table.docstrings import documented
from cygrad._core.table.operator import operators
from cygrad.composite.out_forms import as_tensor_argument, into

__all__ = ["argwhere", "bincount", "bucketize", "histc", "histogram", "searchsorted", "unique_consecutive"]
METHODS = ["argwhere", "bincount", "histc", "histogram", "unique_consecutive"]


@documented()
def argwhere(input):
    """
    Return the indices of the nonzero elements, one row for each.

    Returns
    -------
    Tensor
        int64, of shape (number of such elements, number of dimensions).

    Examples
    --------
    >>> cygrad.argwhere(cygrad.tensor([[0, 1], [2, 0]]))
    tensor([[0, 1],
            [1, 0]])
    """
    return operators.nonzero(as_tensor_argument("argwhere", "input", input))


# ---- sorted sequences

def searchsorted(sorted_sequence, input, *, out_int32=False, right=False, side=None, out=None, sorter=None):
    """Return the insertion indices of values in sorted rows.

    Parameters
    ----------
    sorted_sequence : Tensor
        Sorted along the last dimension; a vector is used for all values.
    input : Tensor or number
        The values. Values and sequence are promoted to one dtype, integers and floats to float64.
    out_int32 : bool, default False
        Whether the result is int32 instead of int64.
    right : bool, default False
        Whether to return the index after equal elements instead of before them.
    side : {"left", "right"}, optional
        "right" is ``right=True``.
    out : Tensor, optional
        Tensor that the result is written to.
    sorter : Tensor, optional
        Indices that sort an unsorted sequence, as returned by `argsort`.

    Returns
    -------
    Tensor
        Indices, of the shape of `input`.

    Raises
    ------
    RuntimeError
        If shapes or dtypes do not match, or `side` and `right` contradict each other.

    Examples
    --------
    >>> cygrad.searchsorted(cygrad.tensor([1, 3, 5]), cygrad.tensor([3, 4]))
    tensor([1, 2])
    """
    as_tensor_argument("searchsorted", "sorted_sequence", sorted_sequence)
    if side not in (None, "left", "right"):
        raise RuntimeError(f"searchsorted: unknown side (got {side!r}, expected 'left' or 'right').")
    if side == "left" and right:
        raise RuntimeError("searchsorted: side and right contradict each other (got 'left' and True).")
    right = right or side == "right"
    if not isinstance(input, Tensor):
        if sorted_sequence.ndim != 1:
            raise RuntimeError("searchsorted: sorted_sequence must be a vector if input is a number (got shape "
                               f"{tuple(sorted_sequence.shape)}).")
        input = tensor(input, dtype=sorted_sequence.dtype if not isinstance(input, float)
                       or sorted_sequence.is_floating_point() else float64)
    if input.dtype is not sorted_sequence.dtype:
        common = promote_types(sorted_sequence.dtype, input.dtype)
        if sorted_sequence.is_floating_point() is not input.is_floating_point():
            common = promote_types(common, float64)            # float32 does not hold all integers of 32 bits
        sorted_sequence, input = operators.cast(sorted_sequence, common), operators.cast(input, common)
    if sorter is not None:
        if tuple(as_tensor_argument("searchsorted", "sorter", sorter).shape) != tuple(sorted_sequence.shape):
            raise RuntimeError(f"searchsorted: sorter must have the shape of the sequence (got {tuple(sorter.shape)}, "
                               f"expected {tuple(sorted_sequence.shape)}).")
        sorted_sequence = operators.gather(sorted_sequence, sorted_sequence.ndim - 1, sorter)
    found = operators.searchsorted(sorted_sequence, input, right=right, out_int32=out_int32)
    return into("searchsorted", found, out)


def bucketize(input, boundaries, *, out_int32=False, right=False, out=None):
    """Return the index of the bucket that contains each element.

    Parameters
    ----------
    input : Tensor or number
    boundaries : Tensor
        Sorted vector.
    out_int32 : bool, default False
        Whether the result is int32 instead of int64.
    right : bool, default False
        Whether buckets contain their lower instead of their upper boundary.
    out : Tensor, optional
        Tensor that the result is written to.

    Returns
    -------
    Tensor
        Of the shape of `input`, from 0 to the number of boundaries.

    Raises
    ------
    RuntimeError
        If `boundaries` is not a vector.

    Examples
    --------
    >>> cygrad.bucketize(cygrad.tensor([1, 3, 6]), cygrad.tensor([1, 3, 5]))
    tensor([0, 1, 3])
    """
    if as_tensor_argument("bucketize", "boundaries", boundaries).ndim != 1:
        raise RuntimeError(f"bucketize: boundaries must be a vector (got shape {tuple(boundaries.shape)}).")
    return searchsorted(boundaries, input, out_int32=out_int32, right=right, out=out)


# ---- counts

def bincount(input, weights=None, minlength=0):
    """Count the occurrences of each integer.

    Parameters
    ----------
    input : Tensor
        Vector of nonnegative integers.
    weights : Tensor, optional
        Weight of each element; 1 by default.
    minlength : int, default 0
        Minimum size of the result.

    Returns
    -------
    Tensor
        int64; with weights float64, or float32 for float32 weights.

    Raises
    ------
    RuntimeError
        If `input` is not such a vector, or the shape of `weights` differs.
    NotImplementedError
        If the dtype is not integral.

    Examples
    --------
    >>> cygrad.bincount(cygrad.tensor([0, 2, 2]))
    tensor([1, 0, 2])
    """
    as_tensor_argument("bincount", "input", input)
    if (minlength := as_integer("bincount", "minlength", minlength)) < 0:
        raise RuntimeError(f"bincount: minlength must not be negative (got {minlength}).")
    if input.ndim != 1:
        raise RuntimeError(f"bincount: expected a vector (got shape {tuple(input.shape)}).")
    if input.is_floating_point() or input.is_complex() or input.dtype is bool_dtype:
        raise NotImplementedError(f"bincount: expected integers (got {input.dtype}).")
    if weights is None:
        return operators.count_integers(input, minlength)
    if input.numel() == 0:
        return zeros(minlength, dtype=int64)
    low, high = int(operators.amin(input)), int(operators.amax(input))
    if low < 0:
        raise RuntimeError(f"bincount: numbers must not be negative (got {low}).")
    size = max(minlength, high + 1)
    as_tensor_argument("bincount", "weights", weights)
    if tuple(weights.shape) != tuple(input.shape):
        raise RuntimeError(f"bincount: input and weights must have the same shape (got {tuple(input.shape)} and "
                           f"{tuple(weights.shape)}).")
    counted = weights.detach() if str(weights.dtype).endswith("float32") else operators.cast(weights.detach(), float64)
    counts = operators.index_add(zeros(size, dtype=counted.dtype), 0, input, counted)
    return operators.underived(counts, weights, "bincount")


def _limits(operation, input, low, high, given=False):
    """Return the limits of a histogram: minimum and maximum of the elements if both are equal and not `given`."""
    for name, limit in (("min", low), ("max", high)):
        as_number(operation, name, limit)
    if low == high and input.numel() and not given:
        low, high = float(operators.amin(input)), float(operators.amax(input))
    if low == high:
        margin = 0.5 if operation == "histogram" else 1
        low, high = low - margin, high + margin
    for limit in (low, high):
        if limit != limit or limit in (float("inf"), float("-inf")):
            raise RuntimeError(f"{operation}: the range must be finite (got {low} to {high}).")
    if low > high:
        raise RuntimeError(f"{operation}: the upper limit must be larger than the lower (got {low} and {high}).")
    return low, high


def histc(input, bins=100, min=0, max=0, *, out=None):
    """Return a histogram of elements in bins of equal width.

    Parameters
    ----------
    input : Tensor
        Floating point.
    bins : int, default 100
    min, max : number, default 0
        Limits of the bins; elements outside and nan are ignored. If equal, minimum and maximum of the elements.
    out : Tensor, optional
        Tensor that the result is written to.

    Returns
    -------
    Tensor
        The count of each bin, of the dtype of `input`. Bins contain their lower limit, the last one both.

    Raises
    ------
    RuntimeError
        If limits are not finite or decrease, or `bins` is not positive.
    NotImplementedError
        If the dtype is not floating point.

    Examples
    --------
    >>> cygrad.histc(cygrad.tensor([1., 2., 1.]), bins=4, min=0, max=3)
    tensor([0., 2., 1., 0.])
    """
    if not as_tensor_argument("histc", "input", input).is_floating_point():
        raise NotImplementedError(f"histc: expected a floating point Tensor (got {input.dtype}). Convert with to() "
                                  "first.")
    if (bins := as_integer("histc", "bins", bins)) <= 0:
        raise RuntimeError(f"histc: the number of bins must be positive (got {bins}).")
    values = operators.reshape(input.detach(), (input.numel(),))
    low, high = _limits("histc", values, min, max)
    counts = operators.count_in_bins(values, bins, low, high)
    return into("histc", operators.cast(counts, input.dtype), out)


def histogram(input, bins, *, range=None, weight=None, density=False, out=None):
    """Return a histogram and the edges of its bins.

    Parameters
    ----------
    input : Tensor
        Floating point.
    bins : int or Tensor
        Number of bins of equal width, or their edges as a sorted vector.
    range : sequence of two float, optional
        Limits; minimum and maximum of the elements by default.
    weight : Tensor, optional
        Weight of each element, of the shape of `input`.
    density : bool, default False
        Whether to normalize to integral 1.
    out : tuple of Tensor, optional
        Tensors that the results are written to.

    Returns
    -------
    named tuple (hist, bin_edges) of Tensor
        Bins contain their lower limit, the last one both.

    Raises
    ------
    RuntimeError
        If an argument is invalid.
    NotImplementedError
        If the dtype is not floating point.

    Examples
    --------
    >>> cygrad.histogram(cygrad.tensor([1., 2., 1.]), bins=4, range=(0., 4.)).hist
    tensor([0., 2., 1., 0.])
    """
    if not as_tensor_argument("histogram", "input", input).is_floating_point():
        raise NotImplementedError(f"histogram: expected a floating point Tensor (got {input.dtype}).")
    values = operators.reshape(input.detach(), (input.numel(),))
    if isinstance(bins, Tensor):
        if range is not None:
            raise TypeError("histogram: range applies to a number of bins only (got edges as a Tensor and "
                            f"range={range}). Omit it.")
        if bins.ndim != 1 or bins.dtype is not input.dtype or bins.numel() == 0:
            raise RuntimeError(f"histogram: bins must be a vector of the dtype of input (got {bins.dtype} and shape "
                               f"{tuple(bins.shape)}).")
        edges = bins
    else:
        if (bins := as_integer("histogram", "bins", bins)) <= 0:
            raise RuntimeError(f"histogram: the number of bins must be positive (got {bins}).")
        first, last = range if range is not None else (0, 0 if values.numel() else 1)
        low, high = _limits("histogram", values, first, last, range is not None)
        edges = operators.underived(linspace(low, high, bins + 1, dtype=input.dtype), input, "histogram")
    if weight is None:
        weights = ones(values.shape[0], dtype=input.dtype)
    elif as_tensor_argument("histogram", "weight", weight).shape != input.shape or weight.dtype is not input.dtype:
        raise RuntimeError(f"histogram: weight must have the shape and dtype of input (got {weight.dtype} and "
                           f"{tuple(weight.shape)}).")
    else:
        weights = operators.reshape(weight.detach(), (values.shape[0],))
    count, limits, edges = edges.shape[0] - 1, edges, edges.detach()
    first, last = operators.select(edges, 0, 0), operators.select(edges, 0, -1)
    inside = operators.logical_and(operators.ge(values, first), operators.le(values, last))
    chosen, weights = operators.masked_select(values, inside), operators.masked_select(weights, inside)
    places = operators.clamp_max(operators.sub(operators.searchsorted(edges, chosen, right=True), 1), max(count - 1, 0))
    hist = zeros(count, dtype=input.dtype)
    if count:
        hist = operators.index_add(hist, 0, places, weights)
    if density:
        widths = operators.sub(operators.slice(edges, 0, 1, None, 1), operators.slice(edges, 0, None, -1, 1))
        hist = operators.div(operators.div(hist, operators.sum(hist)), widths)
    for origin in (input, bins, weight):
        if isinstance(origin, Tensor):
            hist = operators.underived(hist, origin, "histogram")
    return into("histogram", named_result("histogram", "hist", "bin_edges")(hist, limits), out)


# ---- consecutive duplicates

def unique_consecutive(input, return_inverse=False, return_counts=False, dim=None):
    """Remove consecutive duplicates.

    Parameters
    ----------
    input : Tensor
    return_inverse : bool, default False
        Whether to return the index in the result of each element too.
    return_counts : bool, default False
        Whether to return the number of duplicates too.
    dim : int, optional
        Dimension of slices to compare; the flattened tensor by default.

    Returns
    -------
    Tensor, or tuple of Tensor

    Examples
    --------
    >>> cygrad.unique_consecutive(cygrad.tensor([1, 1, 2, 1]), return_counts=True)
    (tensor([1, 2, 1]), tensor([2, 1, 1]))
    """
    as_tensor_argument("unique_consecutive", "input", input)
    source = input.detach()
    if dim is None:
        rows, place = operators.reshape(source, (source.numel(),)), 0
    else:
        if not -max(1, input.ndim) <= dim < max(1, input.ndim):
            raise IndexError(f"unique_consecutive: dimension out of range (got {dim} for shape {tuple(input.shape)}).")
        rows = operators.reshape(source, (1,)) if input.ndim == 0 else source
        place = dim % rows.ndim
    size = rows.shape[place]
    differs = operators.ne(operators.slice(rows, place, 1, None, 1), operators.slice(rows, place, None, -1, 1))
    others = tuple(k for k in range(rows.ndim) if k != place)
    if others:
        differs = operators.any(differs, others)
    starts = operators.cat([ones(min(1, size)) > 0, differs], 0) if size else differs
    if rows.ndim == 1 and not return_counts:
        results = [operators.masked_select(rows, starts)]
    else:
        positions = operators.reshape(operators.nonzero(starts), (-1,))
        results = [operators.index_select(rows, place, positions)]
    results[0] = operators.underived(results[0], input, "unique_consecutive")
    if return_inverse:
        inverse = operators.sub(operators.cumsum(starts, 0), 1)
        results.append(operators.reshape(inverse, tuple(input.shape)) if dim is None else inverse)
    if return_counts:
        ends = operators.cat([operators.slice(positions, 0, 1, None, 1), arange(size, size + min(1, size))], 0)
        results.append(operators.sub(ends, positions))
    return tuple(results) if len(results) > 1 else results[0]

