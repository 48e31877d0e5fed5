"""NumPy's polynomials by their coefficients, the highest first."""

import numpy as np

import cygrad as c
from cygrad.numpy_protocols import linalg
from cygrad.numpy_protocols.arrays import Rows, as_tensor, cast, inexact, promoted
from cygrad.numpy_protocols.products import convolve
from cygrad.numpy_protocols.ufuncs import call

__all__ = ["rows"]

rows = Rows()


@rows
def polyval(p, x):
    x = as_tensor(x)
    result = c.zeros_like(x)
    for coefficient in as_tensor(p).unbind(0):
        result = call(np.add, call(np.multiply, result, x), coefficient)
    return result


def _sum(operation):
    def of_both(a1, a2):
        a1, a2 = (c.atleast_1d(value) for value in promoted(a1, a2))
        size = max(a1.shape[0], a2.shape[0])
        return operation(*[c.cat((c.zeros(size - value.shape[0], dtype=value.dtype), value)) for value in (a1, a2)])
    return of_both


@rows
def polyder(p, m=1):
    p = as_tensor(p)
    for _ in range(m):
        p = p[:-1] * c.arange(p.shape[0] - 1, 0, -1).to(p.dtype)
    return p


@rows
def polyint(p, m=1, k=None):
    p = inexact(p)
    constants = as_tensor(0 if k is None else k).to(p.dtype).expand((m,))
    for step in range(m):
        p = c.cat((p / c.arange(p.shape[0], 0, -1).to(p.dtype), constants[step:step + 1]))
    return p


@rows
def polydiv(u, v):
    u, v = (c.atleast_1d(inexact(value)) for value in promoted(u, v))
    quotient = []
    for _ in range(u.shape[0] - v.shape[0] + 1):
        quotient.append(u[0] / v[0])
        u = (u - c.cat((quotient[-1] * v, c.zeros(u.shape[0] - v.shape[0], dtype=u.dtype))))[1:]
    keep = np.flatnonzero(np.abs(u.detach().numpy()) > 1e-14 * (np.abs(u.detach().numpy()).max(initial=0) or 1))
    u = u[int(keep[0]) if keep.size else max(u.shape[0] - 1, 0):]
    return c.stack(quotient) if quotient else c.zeros(1, dtype=v.dtype), u if u.shape[0] else c.zeros(1, dtype=v.dtype)


@rows
def vander(x, N=None, increasing=False):
    return c.vander(as_tensor(x), N, increasing)


@rows
def polyfit(x, y, deg, rcond=None, full=False, w=None, cov=False):
    if full or cov:
        raise TypeError("polyfit: not supported for Tensors with full or cov.")
    x, y = (inexact(value) for value in promoted(x, y))
    left = vander(x, deg + 1)
    if w is not None:
        w = cast(as_tensor(w), left.dtype)
        left, y = left * w.unsqueeze(1), y * (w.unsqueeze(1) if y.ndim > 1 else w)
    scale = c.sqrt(c.sum(left * left, 0))
    solution = linalg.rows["lstsq"](left / scale, y, rcond)[0]
    return solution / (scale.unsqueeze(1) if y.ndim > 1 else scale)


@rows
def roots(p):
    p = inexact(p)
    nonzero = np.flatnonzero(p.detach().numpy())
    if not nonzero.size:
        return c.zeros(0, dtype=p.dtype)
    zeros = p.shape[0] - int(nonzero[-1]) - 1
    p = p[int(nonzero[0]):int(nonzero[-1]) + 1]
    found = c.zeros(0, dtype=p.dtype)
    if p.shape[0] > 1:
        companion = c.cat(((-p[1:] / p[0]).unsqueeze(0), c.eye(p.shape[0] - 1, dtype=p.dtype)[:-1]))
        found = linalg.rows["eigvals"](companion)
    return c.cat((found, c.zeros(zeros, dtype=found.dtype)))


@rows
def poly(seq_of_zeros):
    zeros = as_tensor(seq_of_zeros)
    zeros = inexact(linalg.rows["eigvals"](zeros) if zeros.ndim == 2 else zeros)
    result = c.ones(1, dtype=zeros.dtype)
    for zero in zeros.unbind(0):
        result = convolve(result, c.stack((c.ones((), dtype=zeros.dtype), -zero)))
    return result


rows.update({"polyadd": _sum(c.add), "polysub": _sum(c.sub), "polymul": convolve})
