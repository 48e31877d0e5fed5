"""Statistics: means without nan, medians, quantiles, covariances."""


from cygrad._core.arrays.dtype import int64
from cygrad._core.creation.creation import tensor
from cygrad._core.graph.argument_errors import as_dim, as_number
from cygrad._core.graph.tensor import Tensor
from cygrad._core.table.docstrings import documented
from cygrad._core.table.operator import operators
from cygrad.composite.out_forms import as_tensor_argument, into, spelled

__all__ = ["corrcoef", "count_nonzero", "cov", "median", "msort", "nanmean", "nanmedian", "nanquantile",
           "quantile"]

# Shared parameter descriptions.
_PARAMETERS = {
    "input": "Tensor\n    Real.",
    "keepdim": "bool, default False\n    Keep the reduced dimension with size 1.",
}

METHODS = __all__

INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


# ---- without nan

@spelled
def nanmean(input, dim=None, keepdim=False, *, dtype=None, out=None):
    """Return the mean of the elements that are not nan.

    Parameters
    ----------
    input : Tensor
        Floating.
    dim : int or sequence of int, optional
        Dimensions to reduce; all if not given.
    keepdim : bool, default False
        Keep the reduced dimensions with size 1.
    dtype : dtype, optional
        Type of the result.
    out : Tensor, optional
        Tensor that the result is written to.

    Returns
    -------
    Tensor
        nan where all are nan. Derivative: 1 / (number of elements that are not nan), and 0 for nan.

    Raises
    ------
    RuntimeError
        For tensors that are not floating.

    Examples
    --------
    >>> cygrad.nanmean(cygrad.tensor([1., float("nan"), 2.]))
    tensor(1.5000)
    """
    as_tensor_argument("nanmean", "input", input)
    if not input.is_floating_point():
        raise RuntimeError(f"nanmean: expected a real floating Tensor (got {input.dtype}). Convert with to() first.")
    present = operators.logical_not(operators.isnan(input.detach()))
    total = operators.sum(operators.masked_fill(input, operators.logical_not(present), 0), dim, keepdim, dtype=dtype)
    return into("nanmean", operators.div(total, operators.sum(present, dim, keepdim)), out, casts=True)


@spelled
def count_nonzero(input, dim=None):
    """Count the nonzero elements.

    Parameters
    ----------
    input : Tensor
    dim : int or sequence of int, optional
        Dimensions to count along; all if not given.

    Returns
    -------
    Tensor
        int64.

    Examples
    --------
    >>> cygrad.count_nonzero(cygrad.tensor([[1, 0], [2, 3]]), dim=0)
    tensor([2, 1])
    """
    found = operators.ne(as_tensor_argument("count_nonzero", "input", input).detach(), 0)
    return operators.sum(found, dim, False)


# ---- order statistics

def _median(operation, input, dim, keepdim, out):
    """Return the median of all elements or along a dimension."""
    function = getattr(operators, f"{operation}_dim")
    as_tensor_argument(operation, "input", input)
    if dim is not None:
        return function(input, dim, keepdim) if out is None else function(input, dim, keepdim, out=tuple(out))
    if input.is_complex():
        raise NotImplementedError(f"{operation}: complex numbers have no order (got {input.dtype}).")
    if input.numel() == 0:
        empty = operators.sum(operators.reshape(input, (0,)))
        found = operators.mul(empty, float("nan")) if input.is_floating_point() else operators.cast(empty, input.dtype)
    else:
        found = operators.median_of_all(input, operation == "nanmedian")
    return into(operation, found, out)


@spelled
@documented(_PARAMETERS)
def median(input, dim=None, keepdim=False, *, out=None):
    """Return the median: of all elements, or along a dimension.

    Parameters
    ----------
    dim : int, optional
        Dimension to reduce.
    out : tuple of Tensor, optional
        Tensors that the result is written to; a single Tensor without `dim`.

    Returns
    -------
    Tensor, or a named tuple (values, indices) if `dim` is given
        The lower of two medians; nan if an element is nan. Equal elements share the gradient evenly in the median of
        all; along a dimension, the returned index gets the gradient.

    Raises
    ------
    IndexError
        If the dimension is empty.

    Examples
    --------
    >>> cygrad.median(cygrad.tensor([3., 1., 2., 4.]))
    tensor(2.)
    >>> cygrad.median(cygrad.tensor([[3., 1., 2.]]), 1).indices
    tensor([2])
    """
    return _median("median", input, dim, keepdim, out)


@spelled
@documented(_PARAMETERS)
def nanmedian(input, dim=None, keepdim=False, *, out=None):
    """Return the median of the elements that are not nan: of all, or along a dimension.

    Parameters
    ----------
    dim : int, optional
        Dimension to reduce.
    out : tuple of Tensor, optional
        Tensors that the result is written to; a single Tensor without `dim`.

    Returns
    -------
    Tensor, or a named tuple (values, indices) if `dim` is given
        The lower of two medians; nan if all are nan. Gradients as for `median`.

    Examples
    --------
    >>> cygrad.nanmedian(cygrad.tensor([3., float("nan"), 2.]))
    tensor(2.)
    """
    return _median("nanmedian", input, dim, keepdim, out)


@documented(_PARAMETERS)
def msort(input, *, out=None):
    """
    Return the elements sorted along the first dimension.

    Examples
    --------
    >>> cygrad.msort(cygrad.tensor([[3, 1], [2, 4]]))
    tensor([[2, 1],
            [3, 4]])
    """
    return into("msort", operators.sort(as_tensor_argument("msort", "input", input), 0)[0], out)


def _quantile(operation, input, q, dim, keepdim, interpolation, ignore_nan, out):
    as_tensor_argument(operation, "input", input)
    if not input.is_floating_point():
        raise RuntimeError(f"{operation}: expected a floating Tensor (got {input.dtype}). Convert with to() first.")
    if interpolation not in INTERPOLATIONS:
        raise RuntimeError(f"{operation}: unknown interpolation (got {interpolation!r}, expected one of "
                           f"{', '.join(INTERPOLATIONS)}).")
    if isinstance(q, Tensor):
        if q.ndim > 1 or q.dtype is not input.dtype:
            raise RuntimeError(f"{operation}: q must be a number or a vector of the dtype of input (got {q.dtype} and "
                               f"shape {tuple(q.shape)}, expected {input.dtype}).")
    else:
        if not 0 <= as_number(operation, "q", q) <= 1:
            raise RuntimeError(f"{operation}: q must be in [0, 1] (got {q}).")
        q = tensor(float(q), dtype=input.dtype)
    if q.numel() and not bool(operators.all((q >= 0).logical_and(q <= 1))):
        raise RuntimeError(f"{operation}: all of q must be in [0, 1].")
    if input.numel() == 0:
        raise RuntimeError(f"{operation}: expected a non-empty tensor (got shape {tuple(input.shape)}).")
    rows = operators.reshape(input, (input.numel(),)) if dim is None else input
    if rows.ndim == 0:
        rows = operators.reshape(rows, (1,))
    place = as_dim(operation, -1 if dim is None else dim, rows.ndim)
    found = _interpolated(operators.sort(operators.movedim(rows, (place,), (-1,)), -1)[0], q, interpolation, ignore_nan)
    # found is (..., q). In the result, q is the first dimension, then the others, with the reduced one in its place.
    if keepdim:
        shape = [1] * input.ndim if dim is None else [*rows.shape]
        if dim is not None and input.ndim:
            shape[place] = 1
        shape = shape[: input.ndim]
    else:
        shape = [size for k, size in enumerate(rows.shape) if k != place]
    found = operators.movedim(found, (-1,), (0,))
    result = operators.reshape(found, (*q.shape, *shape))
    return into(operation, result, out)


def _interpolated(ordered, q, interpolation, ignore_nan):
    """Return the quantiles along the last dimension, which is sorted with nan last."""
    size = ordered.shape[-1]
    last = operators.isnan(ordered.detach())
    q = operators.reshape(q, (q.numel(),))
    if ignore_nan:
        present = operators.sum(operators.logical_not(last), (-1,), True)
        rank = operators.mul(q, operators.cast(operators.clamp_min(operators.sub(present, 1), 0), ordered.dtype))
    else:
        rank = operators.mul(q, size - 1)
        spoiled = operators.slice(last, -1, size - 1, None, 1)
        shape = (*ordered.shape[:-1], q.numel())
        rank = operators.masked_fill(operators.expand(rank, shape), operators.expand(spoiled, shape), size - 1)
    if interpolation == "lower":
        rank = operators.floor(rank)
    elif interpolation == "higher":
        rank = operators.ceil(rank)
    elif interpolation == "nearest":
        rank = operators.round(rank)
    below = operators.floor(rank.detach())
    lower = operators.gather(ordered, ordered.ndim - 1, operators.cast(below, int64))
    if interpolation in ("lower", "higher", "nearest"):
        return lower
    upper = operators.gather(ordered, ordered.ndim - 1, operators.cast(operators.ceil(rank.detach()), int64))
    weight = 0.5 if interpolation == "midpoint" else operators.sub(rank, below)
    return operators.lerp(lower, upper, weight)


@spelled
@documented(_PARAMETERS)
def quantile(input, q, dim=None, keepdim=False, *, interpolation="linear", out=None):
    """Return quantiles along a dimension or of all elements.

    Parameters
    ----------
    input : Tensor
        Floating.
    q : float or Tensor
        Number or vector in [0, 1].
    dim : int, optional
        Dimension to reduce; all if not given.
    interpolation : {"linear", "lower", "higher", "midpoint", "nearest"}
        Interpolation between two elements.

    Returns
    -------
    Tensor
        With a leading dimension if `q` is a vector. nan where an element is nan. Differentiable in `input` and `q`.

    Raises
    ------
    RuntimeError
        If `q` is not in [0, 1] or of another dtype, or `input` is empty.

    Examples
    --------
    >>> cygrad.quantile(cygrad.tensor([0., 1., 2., 3.]), cygrad.tensor([0.25, 0.5]))
    tensor([0.7500, 1.5000])
    """
    return _quantile("quantile", input, q, dim, keepdim, interpolation, False, out)


@spelled
@documented(_PARAMETERS)
def nanquantile(input, q, dim=None, keepdim=False, *, interpolation="linear", out=None):
    """Return quantiles of the elements that are not nan, along a dimension or of all elements.

    Parameters
    ----------
    input : Tensor
        Floating.
    q : float or Tensor
        Number or vector in [0, 1].
    dim : int, optional
        Dimension to reduce; all if not given.
    interpolation : {"linear", "lower", "higher", "midpoint", "nearest"}
        Interpolation between two elements.

    Returns
    -------
    Tensor
        With a leading dimension if `q` is a vector. nan where all are nan.

    Examples
    --------
    >>> cygrad.nanquantile(cygrad.tensor([float("nan"), 1., 2.]), 0.5)
    tensor(1.5000)
    """
    return _quantile("nanquantile", input, q, dim, keepdim, interpolation, True, out)


# ---- covariances

def cov(input, *, correction=1, fweights=None, aweights=None):
    """Return the covariance matrix of variables.

    Parameters
    ----------
    input : Tensor
        One variable in each row, one observation in each column; of at most two dimensions.
    correction : int, default 1
        Subtracted from the number of observations in the divisor.
    fweights : Tensor, optional
        Frequency of each observation: a vector of integers.
    aweights : Tensor, optional
        Weight of each observation: a floating point vector.

    Returns
    -------
    Tensor
        A matrix, or 0-dimensional for a single variable. nan if there are not more observations than `correction`.

    Raises
    ------
    RuntimeError
        If there are more than two dimensions, or weights are negative or of another size.

    Examples
    --------
    >>> cygrad.cov(cygrad.tensor([[0., 1., 2.], [2., 1., 0.]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    as_tensor_argument("cov", "input", input)
    if input.ndim > 2:
        raise RuntimeError(f"cov: expected at most two dimensions (got shape {tuple(input.shape)}).")
    rows = operators.reshape(input, (1, input.numel())) if input.ndim < 2 else input
    if not (rows.is_floating_point() or rows.is_complex()):
        rows = operators.mul(rows, 1.0)
    weights = _weights(rows, fweights, aweights)
    if weights is None:
        count = rows.shape[1]
        mean = operators.mean(rows, (1,), True) if count else operators.sum(rows, (1,), True)
        freedom = max(count - correction, 0)
    else:
        total = operators.sum(weights)
        mean = operators.div(operators.sum(operators.mul(rows, weights), (1,), True), total)
        if aweights is None or correction == 0:
            freedom = operators.sub(total, correction)
        else:
            squares = operators.mul(weights, aweights)
            freedom = operators.sub(total, operators.mul(operators.div(operators.sum(squares), total), correction))
        freedom = operators.clamp_min(freedom, 0)
    centered = operators.sub(rows, mean)
    scaled = centered if weights is None else operators.mul(centered, weights)
    product = operators.mm(scaled, operators.conj(operators.transpose(centered, 0, 1)))
    result = operators.div(product, freedom)
    return operators.reshape(result, ()) if result.numel() == 1 else result


def _weights(rows, fweights, aweights):
    """Return the weight of each observation, or None."""
    for name, weights in (("fweights", fweights), ("aweights", aweights)):
        if weights is None:
            continue
        as_tensor_argument("cov", name, weights)
        floating = weights.is_floating_point() or weights.is_complex()
        if weights.ndim > 1 or weights.numel() != rows.shape[1] or floating != (name == "aweights"):
            kind = "floating numbers" if name == "aweights" else "integers"
            raise RuntimeError(f"cov: {name} must be a vector of {kind}, one for each observation (got {weights.dtype} "
                               f"and shape {tuple(weights.shape)}).")
        if weights.numel() and bool(operators.any(operators.lt(weights.detach(), 0))):
            raise RuntimeError(f"cov: {name} must not be negative.")
    if fweights is None:
        return aweights
    return fweights if aweights is None else operators.mul(aweights, fweights)


def corrcoef(input):
    """Return the matrix of correlation coefficients of variables.

    Parameters
    ----------
    input : Tensor
        One variable in each row, one observation in each column; of at most two dimensions.

    Returns
    -------
    Tensor
        A matrix, or 0-dimensional for a single variable.

    Raises
    ------
    RuntimeError
        If there are more than two dimensions.

    Examples
    --------
    >>> cygrad.corrcoef(cygrad.tensor([[0., 1., 2.], [2., 1., 0.]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    as_tensor_argument("corrcoef", "input", input)
    if input.ndim > 2:
        raise RuntimeError(f"corrcoef: expected at most two dimensions (got shape {tuple(input.shape)}).")
    covariances = cov(input)
    if covariances.ndim == 0:
        return operators.div(covariances, covariances)
    variances = operators.diagonal(covariances, 0, 0, 1)
    deviations = operators.sqrt(operators.real(variances) if covariances.is_complex() else variances)
    result = operators.div(operators.div(covariances, operators.unsqueeze(deviations, 1)),
                           operators.unsqueeze(deviations, 0))
    if result.is_complex():
        return operators.complex(operators.clamp_between(operators.real(result), -1, 1),
                                 operators.clamp_between(operators.imag(result), -1, 1))
    return operators.clamp_between(result, -1, 1)
