"""NumPy's numerical functions: clip, round, interp, gradient, cov and others."""

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

import cygrad as c
from cygrad import Tensor
from cygrad.numpy_protocols import ufuncs
from cygrad.numpy_protocols.arrays import NUMBERS, Rows, as_tensor, axes, cast, inexact, numpy_dtype, promoted
from cygrad.numpy_protocols.joining import concatenate
from cygrad.numpy_protocols.reductions import average

__all__ = ["rows"]

rows = Rows()


@rows
def clip(a, a_min=None, a_max=None, *, min=None, max=None, **options):
    low, high = a_min if min is None else min, a_max if max is None else max
    if low is not None:
        a = ufuncs.call(np.maximum, a, low, **options)
    if high is not None:
        a = ufuncs.call(np.minimum, a, high, **options)
    return as_tensor(a)


@rows
def round(a, decimals=0):
    a = as_tensor(a)
    if a.is_complex():
        return c.complex(round(a.real, decimals), round(a.imag, decimals))
    if a.is_floating_point():
        return c.round(a, decimals=decimals)
    return a if decimals >= 0 else cast(c.round(a.to(c.float64) / 10**-decimals) * 10**-decimals, a.dtype)


@rows
def nan_to_num(x, copy=True, nan=0.0, posinf=None, neginf=None):
    x = as_tensor(x)
    if not copy:
        raise TypeError("nan_to_num: not supported for Tensors with copy=False.")
    if x.is_complex():
        return c.complex(nan_to_num(x.real, True, nan, posinf, neginf), nan_to_num(x.imag, True, nan, posinf, neginf))
    return c.nan_to_num(x, nan, posinf, neginf) if x.is_floating_point() else x.clone()


@rows
def angle(z, deg=False):
    result = c.angle(inexact(z))
    return result * (180 / np.pi) if deg else result


@rows
def unwrap(p, discont=None, axis=-1, *, period=2 * np.pi):
    p = inexact(p) if isinstance(period, float) else as_tensor(p)
    steps = c.diff(p, dim=axis)
    discont = period / 2 if discont is None else discont
    half = period / 2 if isinstance(period, float) else period // 2
    turned = c.remainder(steps + half, period) - half
    if isinstance(period, float) or not period % 2:
        turned = c.where((turned == -half) & (steps > 0), half, turned)
    change = c.where(c.abs(steps) < discont, 0, turned - steps).to(p.dtype)
    first = p.narrow(axis, 0, 1)
    return c.cat((first, p.narrow(axis, 1, p.shape[axis] - 1) + c.cumsum(change, axis)), axis)


# ---- predicates

@rows
def isclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    a, b = promoted(a, b)
    a, b = inexact(a), inexact(b)
    with c.no_grad():
        near = (c.abs(a - b) <= atol + rtol * c.abs(b)) & c.isfinite(b) | (a == b)
        return near | (c.isnan(a) & c.isnan(b)) if equal_nan else near


@rows
def array_equal(a1, a2, equal_nan=False):
    a1, a2 = as_tensor(a1), as_tensor(a2)
    if a1.shape != a2.shape:
        return False
    same = a1 == a2
    return bool((same | (c.isnan(a1) & c.isnan(a2)) if equal_nan else same).all())


@rows
def array_equiv(a1, a2):
    try:
        return bool((as_tensor(a1) == as_tensor(a2)).all())
    except RuntimeError:
        return False


# ---- differences and integrals

def _edge(value, like, axis):
    value = as_tensor(value)
    if value.ndim:
        return value
    return value.expand([1 if dim == axis else size for dim, size in enumerate(like.shape)])


@rows
def diff(a, n=1, axis=-1, prepend=None, append=None):
    a = as_tensor(a)
    axis = normalize_axis_index(axis, a.ndim)
    if n < 0:
        raise ValueError(f"diff: order must not be negative (got {n}).")
    if not n:
        return a
    parts = [*([] if prepend is None else [_edge(prepend, a, axis)]), a,
             *([] if append is None else [_edge(append, a, axis)])]
    return c.diff(concatenate(parts, axis) if len(parts) > 1 else a, n, axis)


@rows
def ediff1d(ary, to_end=None, to_begin=None):
    ary = as_tensor(ary).reshape(-1)
    parts = [c.diff(ary)]
    if to_begin is not None:
        parts.insert(0, as_tensor(to_begin).reshape(-1))
    if to_end is not None:
        parts.append(as_tensor(to_end).reshape(-1))
    return c.cat([cast(part, ary.dtype) for part in parts])


def _derivative(f, axis, spacing, edge_order):
    """Compute central differences along one axis: second-order inside, of `edge_order` at both ends."""
    n = f.shape[axis]
    if n < edge_order + 1:
        raise ValueError(f"gradient: too few elements for this edge_order (got {n} along axis {axis}).")
    f = f.movedim(axis, -1)
    if isinstance(spacing, Tensor) and spacing.ndim:
        steps = c.diff(spacing)
    else:
        steps = (as_tensor(spacing).to(f.real.dtype)).expand((n - 1,))
    before, after = steps[:-1], steps[1:]
    inside = (f[..., 2:] * before / (after * (before + after)) + f[..., 1:-1] * (after - before) / (before * after)
              - f[..., :-2] * after / (before * (before + after)))
    if edge_order == 1:
        first, last = (f[..., 1] - f[..., 0]) / steps[0], (f[..., -1] - f[..., -2]) / steps[-1]
    else:
        one, two = steps[0], steps[1]
        first = (-(2 * one + two) / (one * (one + two)) * f[..., 0] + (one + two) / (one * two) * f[..., 1]
                 - one / (two * (one + two)) * f[..., 2])
        one, two = steps[-2], steps[-1]
        last = (two / (one * (one + two)) * f[..., -3] - (two + one) / (one * two) * f[..., -2]
                + (2 * two + one) / (two * (one + two)) * f[..., -1])
    return c.cat((first.unsqueeze(-1), inside, last.unsqueeze(-1)), -1).movedim(-1, axis)


@rows
def gradient(f, *varargs, axis=None, edge_order=1):
    f = inexact(f)
    along = axes(f, axis)
    varargs = varargs or (1.0,)
    varargs = varargs * len(along) if len(varargs) == 1 else varargs
    if len(varargs) != len(along):
        raise TypeError(f"gradient: expected one spacing, or one for each axis (got {len(varargs)} for {len(along)} "
                        "axes).")
    varargs = [part if type(part) in NUMBERS else cast(as_tensor(part), f.real.dtype) for part in varargs]
    results = [_derivative(f, dim, spacing, edge_order) for dim, spacing in zip(along, varargs, strict=True)]
    return results[0] if len(along) == 1 else tuple(results)


@rows
def trapezoid(y, x=None, dx=1.0, axis=-1):
    y = as_tensor(y)
    y = y if x is None and type(dx) is float and y.is_floating_point() else inexact(y)
    axis = normalize_axis_index(axis, y.ndim)
    if x is None:
        steps = dx
    else:
        x = as_tensor(x)
        steps = c.diff(x, dim=0 if x.ndim == 1 else axis)
        if x.ndim == 1:
            steps = steps.reshape([-1 if dim == axis else 1 for dim in range(y.ndim)])
    heights = (y.narrow(axis, 1, y.shape[axis] - 1) + y.narrow(axis, 0, y.shape[axis] - 1)) / 2.0
    return c.sum(ufuncs.call(np.multiply, steps, heights), axis)


@rows
def interp(x, xp, fp, left=None, right=None, period=None):
    x, xp = (as_tensor(value).to(c.float64) for value in (x, xp))
    fp = as_tensor(fp)
    fp = cast(fp, c.complex128 if fp.is_complex() else c.float64)
    if period is not None:
        period = abs(period)
        x, xp = c.remainder(x, period), c.remainder(xp, period)
        order = c.argsort(xp)
        xp, fp = xp[order], fp[order]
        xp = c.cat((xp[-1:] - period, xp, xp[:1] + period))
        fp = c.cat((fp[-1:], fp, fp[:1]))
        left = right = None
    flat = x.reshape(-1)
    count = xp.shape[0]
    if count == 1:
        result = fp[0].expand(flat.shape)
    else:
        place = c.clamp(c.searchsorted(xp.detach(), flat.detach(), right=True) - 1, 0, count - 2)
        slope = (fp[place + 1] - fp[place]) / (xp[place + 1] - xp[place])
        result = slope * (flat - xp[place]) + fp[place]
    below, above = flat < xp[0], flat > xp[-1]
    result = c.where(below, fp[0] if left is None else as_tensor(left).to(fp.dtype), result)
    result = c.where(above, fp[-1] if right is None else as_tensor(right).to(fp.dtype), result)
    return c.where(flat == xp[-1], fp[-1], result).reshape(x.shape)


# ---- statistics

@rows
def cov(m, y=None, rowvar=True, bias=False, ddof=None, fweights=None, aweights=None, *, dtype=None):
    m = c.atleast_2d(inexact(m, dtype))
    m = m.mT if not rowvar and m.shape[0] != 1 else m
    if y is not None:
        y = c.atleast_2d(inexact(y, dtype))
        y = y.mT if not rowvar and y.shape[0] != 1 else y
        m = concatenate((m, y), 0)
    ddof = (0 if bias else 1) if ddof is None else ddof
    weights = None
    if fweights is not None:
        weights = as_tensor(fweights).to(m.real.dtype)
    if aweights is not None:
        aweights = cast(as_tensor(aweights), m.real.dtype)
        weights = aweights if weights is None else weights * aweights
    mean, total = average(m, 1, weights, True, keepdims=True)
    total = total.real.reshape(-1)[0] if m.is_complex() else total.reshape(-1)[0]
    if weights is None:
        divisor = m.shape[1] - ddof
    elif not ddof:
        divisor = total
    else:
        divisor = total - ddof if aweights is None else total - ddof * c.sum(weights * aweights) / total
    deviation = m - mean
    weighted = deviation if weights is None else deviation * weights
    return (c.matmul(weighted, c.conj(deviation.mT)) / divisor).squeeze()


@rows
def corrcoef(x, y=None, rowvar=True, *, dtype=None):
    covariance = cov(x, y, rowvar, dtype=dtype)
    if not covariance.ndim:
        return covariance / covariance
    deviation = c.sqrt(c.diagonal(covariance).real if covariance.is_complex() else c.diagonal(covariance))
    result = covariance / deviation.unsqueeze(1) / deviation.unsqueeze(0)
    return result if result.is_complex() else c.clamp(result, -1, 1)


# ---- functions with callbacks

@rows
def apply_along_axis(func1d, axis, arr, *args, **kwargs):
    arr = as_tensor(arr)
    axis = normalize_axis_index(axis, arr.ndim)
    moved = arr.movedim(axis, -1)
    results = [as_tensor(func1d(row, *args, **kwargs)) for row in moved.reshape(-1, arr.shape[axis]).unbind(0)]
    result = c.stack(promoted(*results)).reshape(tuple(moved.shape[:-1]) + tuple(results[0].shape))
    inner = list(range(arr.ndim - 1, result.ndim))
    outer = list(range(arr.ndim - 1))
    return result.permute((*outer[:axis], *inner, *outer[axis:]))


@rows
def apply_over_axes(func, a, axes):
    a = as_tensor(a)
    for axis in axes if isinstance(axes, (tuple, list)) else (axes,):
        result = func(a, axis)
        a = result if result.ndim == a.ndim else result.unsqueeze(axis)
    return a


def _real_or_imag(name):
    def part(val):
        val = as_tensor(val)
        return getattr(val, name) if val.is_complex() else val if name == "real" else c.zeros_like(val)
    return part


def _infinite(name):
    return lambda x: getattr(c, name)(as_tensor(x))


rows.update({
    "around": round, "round": round, "fix": lambda x: ufuncs.call(np.trunc, x),
    "allclose": lambda *args, **options: bool(isclose(*args, **options).all()),
    "real": _real_or_imag("real"), "imag": _real_or_imag("imag"),
    "real_if_close": lambda a, tol=100: a.real if a.is_complex() and bool((c.abs(a.imag) < (
        tol * np.finfo(numpy_dtype(a)).eps if tol > 1 else tol)).all()) else a,
    "isreal": lambda x: _real_or_imag("imag")(x) == 0, "iscomplex": lambda x: _real_or_imag("imag")(x) != 0,
    "isposinf": _infinite("isposinf"), "isneginf": _infinite("isneginf"),
    "sinc": lambda x: c.sinc(inexact(x)), "i0": lambda x: c.i0(inexact(x)),
})
