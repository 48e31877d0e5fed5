"""NumPy's reductions: sums, means, extrema, quantiles, cumulative sums."""


import numpy as np

import cygrad as c
from cygrad.numpy_protocols.arrays import (
    Rows,
    as_tensor,
    axes,
    cast,
    inexact,
    merged,
    promoted,
    ranked,
    unranked,
    widened,
)

__all__ = ["rows"]

rows = Rows()


def start_of(initial, dtype):
    """Return the initial value of a reduction, in the dtype of its result."""
    return cast(as_tensor(initial), dtype)


@rows
def sum(a, axis=None, dtype=None, *, keepdims=False, initial=None, where=True):
    a = widened(a, dtype)
    if where is not True:
        a = c.where(as_tensor(where), a, c.zeros((), dtype=a.dtype))
    result = cast(c.sum(a, axes(a, axis), keepdims), a.dtype) if axis != () else a
    return result if initial is None else result + start_of(initial, result.dtype)


@rows
def prod(a, axis=None, dtype=None, *, keepdims=False, initial=None, where=True):
    a = widened(a, dtype)
    if where is not True:
        a = c.where(as_tensor(where), a, c.ones((), dtype=a.dtype))
    flat, restore = merged(a, axis)
    result = cast(restore(c.prod(flat, -1), keepdims), a.dtype)
    return result if initial is None else result * start_of(initial, result.dtype)


def _extremum(name, pair, worst):
    def extremum(a, axis=None, *, keepdims=False, initial=None, where=True):
        a = as_tensor(a)
        if where is not True:
            if initial is None:
                raise ValueError(f"{name}: where requires initial, because the reduction has no identity.")
            a = c.where(as_tensor(where), a, start_of(initial, a.dtype))
        if isinstance(axis, tuple) and not axis:
            result = a
        elif initial is not None and not a.numel():
            shape = [1 if dim in axes(a, axis) else size for dim, size in enumerate(a.shape)
                     if keepdims or dim not in axes(a, axis)]
            result = c.full(shape, worst(a.dtype), dtype=a.dtype)
        elif not a.numel() and not np.all([a.shape[dim] for dim in axes(a, axis)]):
            raise ValueError(f"{name}: zero-size array to a reduction which has no identity. Pass initial.")
        else:
            result = unranked(getattr(c, f"a{name}")(ranked(a), axes(a, axis), keepdims), a.dtype)
        return result if initial is None else pair(result, start_of(initial, result.dtype))
    extremum.__name__ = extremum.__qualname__ = name
    return rows(extremum)


def _least(dtype):
    return -np.inf if dtype.is_floating_point else 0 if dtype is c.bool else np.iinfo(dtype.numpy_dtype).min


def _greatest(dtype):
    return np.inf if dtype.is_floating_point else 1 if dtype is c.bool else np.iinfo(dtype.numpy_dtype).max


max = _extremum("max", c.maximum, _least)
min = _extremum("min", c.minimum, _greatest)


@rows
def ptp(a, axis=None, *, keepdims=False):
    return max(a, axis, keepdims=keepdims) - min(a, axis, keepdims=keepdims)


def _any_or_all(name, identity):
    def reduction(a, axis=None, *, keepdims=False, where=True):
        a = as_tensor(a).to(c.bool)
        if where is not True:
            a = c.where(as_tensor(where), a, c.full((), identity))
        flat, restore = merged(a, axis)
        return restore(getattr(c, name)(flat, -1), keepdims)
    reduction.__name__ = reduction.__qualname__ = name
    return rows(reduction)


_any_or_all("all", True)
_any_or_all("any", False)


@rows
def count_nonzero(a, axis=None, *, keepdims=False):
    return sum(as_tensor(a) != 0, axis, keepdims=keepdims)


def _count(a, axis, where):
    """Return how many elements are reduced, as a number or in the shape of a keepdims result."""
    if where is not True:
        return c.sum(as_tensor(where).expand(a.shape), axes(a, axis), True)
    count = 1
    for dim in axes(a, axis):
        count *= a.shape[dim]
    return count


def _narrowed(result, like, axis, keepdims):
    """Drop the kept axes of a result unless keepdims."""
    return result if keepdims else result.reshape([size for dim, size in enumerate(like.shape)
                                                   if dim not in axes(like, axis)])


@rows
def mean(a, axis=None, dtype=None, *, keepdims=False, where=True):
    a = inexact(a, dtype)
    if where is True:
        return c.mean(a, axes(a, axis), keepdims) if axis != () else a
    return _narrowed(sum(a, axis, keepdims=True, where=where) / _count(a, axis, where), a, axis, keepdims)


@rows
def var(a, axis=None, dtype=None, *, ddof=0, keepdims=False, where=True, mean=None, correction=None):
    a = inexact(a, dtype)
    ddof = ddof if correction is None else correction
    count = _count(a, axis, where)
    if where is True and mean is None and count > ddof and axis != ():
        return c.var(a, axes(a, axis), correction=ddof, keepdim=keepdims)
    if mean is None:
        mean = sum(a, axis, keepdims=True, where=where) / count
    deviation = a - mean
    square = (deviation * c.conj(deviation)).real if a.is_complex() else deviation * deviation
    divisor = c.clamp(as_tensor(count) - ddof, min=0).to(square.dtype)
    return _narrowed(sum(square, axis, keepdims=True, where=where) / divisor, a, axis, keepdims)


@rows
def std(a, axis=None, dtype=None, *, ddof=0, keepdims=False, where=True, mean=None, correction=None):
    a = inexact(a, dtype)
    ddof = ddof if correction is None else correction
    if where is True and mean is None and axis != () and _count(a, axis, where) > ddof:
        return c.std(a, axes(a, axis), correction=ddof, keepdim=keepdims)
    return c.sqrt(var(a, axis, ddof=ddof, keepdims=keepdims, where=where, mean=mean))


@rows
def average(a, axis=None, weights=None, returned=False, *, keepdims=False):
    if weights is None:
        result = mean(a, axis, keepdims=keepdims)
        total = as_tensor(_count(as_tensor(a), axis, True)).to(result.dtype)
    else:
        a, weights = promoted(a, weights)
        a = inexact(a)
        if weights.shape != a.shape:
            gone = axes(a, axis)
            if axis is None or tuple(weights.shape) != tuple(a.shape[dim] for dim in gone):
                raise TypeError("average: axis must be given where weights have another shape (got "
                                f"{tuple(weights.shape)} for {tuple(a.shape)}).")
            order = sorted(range(len(gone)), key=gone.__getitem__)
            weights = weights.permute(order).reshape([a.shape[dim] if dim in gone else 1 for dim in range(a.ndim)])
        weights = cast(weights, a.dtype).expand(a.shape)
        total = sum(weights, axis, keepdims=keepdims)
        if bool((total == 0).any()):
            raise ZeroDivisionError("average: the weights sum to zero, so there is no average.")
        result = sum(a * weights, axis, keepdims=keepdims) / total
    return (result, total.expand(result.shape)) if returned else result


# ---- argmin, argmax, cumulative sums

def _place(name):
    def place(a, axis=None, *, keepdims=False):
        flat, restore = merged(ranked(as_tensor(a)), axis)
        if not flat.shape[-1]:
            raise ValueError(f"{name}: attempt to get the position of an extremum of an empty array.")
        return restore(getattr(c, name)(flat.to(c.uint8) if flat.dtype is c.bool else flat, -1), keepdims)
    place.__name__ = place.__qualname__ = name
    return rows(place)


argmax, argmin = _place("argmax"), _place("argmin")


def _running(name):
    def running(a, axis=None, dtype=None):
        a = widened(a, dtype)
        a, axis = (a.reshape(-1), 0) if axis is None else (a, axes(a, axis)[0])
        return cast(getattr(c, name)(a, axis), a.dtype)
    running.__name__ = running.__qualname__ = name
    return rows(running)


cumsum, cumprod = _running("cumsum"), _running("cumprod")


def _cumulative(name, running, start):
    def cumulative(x, /, *, axis=None, dtype=None, include_initial=False):
        x = as_tensor(x)
        if axis is None:
            if x.ndim > 1:
                raise ValueError(f"{name}: axis must be given for more than one dimension (got {x.ndim}).")
            axis = 0
        x = x.reshape(1) if not x.ndim else x
        result = running(x, axis, dtype)
        if not include_initial:
            return result
        shape = [1 if dim == axis % x.ndim else size for dim, size in enumerate(x.shape)]
        return c.cat((c.full(shape, start, dtype=result.dtype), result), axis)
    cumulative.__name__ = cumulative.__qualname__ = name
    return rows(cumulative)


_cumulative("cumulative_sum", cumsum, 0)
_cumulative("cumulative_prod", cumprod, 1)


# ---- without nan

def _where_nan(a, value):
    a = as_tensor(a)
    return c.where(c.isnan(a), c.full((), value, dtype=a.dtype), a) if a.is_floating_point() or a.is_complex() else a


def _valid(a, where):
    valid = ~c.isnan(as_tensor(a))
    return valid if where is True else valid & as_tensor(where)


rows.update({
    "nansum": lambda a, *args, **options: sum(_where_nan(a, 0), *args, **options),
    "nanprod": lambda a, *args, **options: prod(_where_nan(a, 1), *args, **options),
    "nancumsum": lambda a, *args, **options: cumsum(_where_nan(a, 0), *args, **options),
    "nancumprod": lambda a, *args, **options: cumprod(_where_nan(a, 1), *args, **options),
    "nanmean": lambda a, axis=None, dtype=None, *, keepdims=False, where=True: mean(
        _where_nan(a, 0), axis, dtype, keepdims=keepdims, where=_valid(a, where)),
    "nanvar": lambda a, axis=None, dtype=None, *, where=True, **options: var(
        _where_nan(a, 0), axis, dtype, where=_valid(a, where), **options),
    "nanstd": lambda a, axis=None, dtype=None, *, where=True, **options: std(
        _where_nan(a, 0), axis, dtype, where=_valid(a, where), **options),
    "nanmax": lambda a, axis=None, **options: _but_all_nan(max, -np.inf, a, axis, options),
    "nanmin": lambda a, axis=None, **options: _but_all_nan(min, np.inf, a, axis, options),
    "nanargmax": lambda a, axis=None, *, keepdims=False: argmax(_where_nan(a, -np.inf), axis, keepdims=keepdims),
    "nanargmin": lambda a, axis=None, *, keepdims=False: argmin(_where_nan(a, np.inf), axis, keepdims=keepdims),
    "nanmedian": lambda a, axis=None, overwrite_input=False, keepdims=False: nanquantile(
        a, 0.5, axis, keepdims=keepdims),
    "nanpercentile": lambda a, q, *args, **options: nanquantile(a, np.true_divide(q, 100), *args, **options),
})


def _but_all_nan(extremum, worst, a, axis, options):
    a = as_tensor(a)
    result = extremum(_where_nan(a, worst), axis, **options)
    if not a.is_floating_point() or "initial" in options or "where" in options:
        return result
    none = rows["all"](c.isnan(a), axis, keepdims=options.get("keepdims", False))
    return c.where(none, c.full((), np.nan, dtype=a.dtype), result)


# ---- quantiles

# Interpolating methods, by the two parameters of the quantile position; and the discrete methods.
_BETWEEN = {"linear": (1, 1), "hazen": (0.5, 0.5), "weibull": (0, 0), "median_unbiased": (1 / 3, 1 / 3),
            "normal_unbiased": (3 / 8, 3 / 8), "interpolated_inverted_cdf": (0, 1)}
_CHOICES = {"lower": np.floor, "higher": np.ceil, "nearest": np.round, "midpoint": None}


def _sorted_places(q, count, method):
    """Return the neighbors of quantiles among `count` sorted elements, and the fraction between them."""
    first, last = _BETWEEN.get(method, (1, 1))
    place = np.clip(count * q + first + q * (1 - first - last) - 1, 0, count - 1)
    if method in _BETWEEN:
        before = np.floor(place)
        return before, np.minimum(before + 1, count - 1), place - before
    if method == "midpoint":
        return np.floor(place), np.ceil(place), np.where(place % 1, 0.5, 0.0)
    place = _CHOICES[method](place)
    return place, place, np.zeros_like(place)


def _quantile(name, a, q, axis, keepdims, method, ignore_nan):
    if method not in _BETWEEN and method not in _CHOICES:
        raise TypeError(f"{name}: unsupported method for Tensors (got {method!r}, expected one of "
                        f"{', '.join([*_BETWEEN, *_CHOICES])}).")
    a, q = inexact(a), np.asarray(q.detach() if isinstance(q, c.Tensor) and not q.requires_grad else q, dtype=float)
    if q.size and not (q.min() >= 0 and q.max() <= 1):
        raise ValueError(f"{name}: quantiles must be in [0, 1], percentiles in [0, 100] (got {q}).")
    flat, restore = merged(a, axis)
    ordered = c.sort(flat, -1)[0]                           # nan comes last
    found = []
    count = ordered.shape[-1]
    counts = c.sum(~c.isnan(ordered), -1, True).numpy() if ignore_nan else None
    for part in q.reshape(-1):
        if counts is not None:
            before, after, far = _sorted_places(part, np.maximum(counts, 1), method)
            low, high = (c.take_along_dim(ordered, as_tensor(place.astype(np.int64)), -1) for place in (before, after))
            low, high, far = low.squeeze(-1), high.squeeze(-1), as_tensor(far).to(a.dtype).squeeze(-1)
        else:
            before, after, far = _sorted_places(np.float64(part), count, method)
            low, high, far = ordered[..., int(before)], ordered[..., int(after)], float(far)
        value = c.lerp(low, high, far) if counts is not None or far else low
        if not ignore_nan:
            last = ordered[..., -1]
            value = c.where(c.isnan(last), last, value)
        found.append(restore(value, keepdims))
    return found[0] if not q.ndim else c.stack(found).reshape(q.shape + tuple(found[0].shape))


@rows
def quantile(a, q, axis=None, overwrite_input=False, method="linear", keepdims=False):
    return _quantile("quantile", a, q, axis, keepdims, method, False)


@rows
def nanquantile(a, q, axis=None, overwrite_input=False, method="linear", keepdims=False):
    return _quantile("nanquantile", a, q, axis, keepdims, method, True)


@rows
def percentile(a, q, axis=None, overwrite_input=False, method="linear", keepdims=False):
    return _quantile("percentile", a, np.true_divide(q, 100), axis, keepdims, method, False)


@rows
def median(a, axis=None, overwrite_input=False, keepdims=False):
    flat, restore = merged(inexact(a), axis)
    count = flat.shape[-1]
    if not count:
        raise ValueError("median: no elements have no median.")
    ordered = c.sort(flat, -1)[0]
    value = ordered[..., count // 2]
    if not count % 2:
        value = (ordered[..., count // 2 - 1] + value) / 2
    last = ordered[..., -1]
    return restore(c.where(c.isnan(last), last, value), keepdims)


rows["amax"], rows["amin"] = max, min
