"""numpy.linalg on Tensors."""

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

import cygrad as c
from cygrad.numpy_protocols import products, shapes
from cygrad.numpy_protocols.arrays import Rows, as_tensor, axes, by_bits, inexact, promoted
from cygrad.numpy_protocols.ufuncs import UFUNCS

__all__ = ["rows"]

rows = Rows()


def _both(a, b):
    return [inexact(value) for value in promoted(a, b)]


@rows
def eig(a):
    found = c.linalg.eig(inexact(a))
    if as_tensor(a).is_complex() or bool((found.eigenvalues.imag != 0).any()):
        return np.linalg._linalg.EigResult(*found)
    return np.linalg._linalg.EigResult(found.eigenvalues.real, found.eigenvectors.real)


@rows
def eigvals(a):
    found = c.linalg.eigvals(inexact(a))
    return found if as_tensor(a).is_complex() or bool((found.imag != 0).any()) else found.real


@rows
def solve(a, b):
    a, b = _both(a, b)
    return c.linalg.solve(*_batched(a, b.unsqueeze(-1))).squeeze(-1) if b.ndim == 1 else c.linalg.solve(
        *_batched(a, b))


def _batched(a, b):
    """Broadcast the leading axes of matrices."""
    batch = c.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return a.expand((*batch, *a.shape[-2:])), b.expand((*batch, *b.shape[-2:]))


@rows
def lstsq(a, b, rcond=None):
    a, b = _both(a, b)
    m, n = a.shape
    values = c.linalg.svdvals(a)
    if rcond is None:
        rcond = float(np.finfo(a.dtype.numpy_dtype).eps) * max(m, n)
    rank = int((values > rcond * values[0]).sum()) if values.numel() else 0
    right = b.unsqueeze(1) if b.ndim == 1 else b
    full = rank == min(m, n)
    solution = c.linalg.lstsq(a, right).solution if full else c.matmul(c.linalg.pinv(a, rtol=rcond), right)
    rest = right - c.matmul(a, solution)
    squares = (rest * c.conj(rest)).real if rest.is_complex() else rest * rest
    residuals = c.sum(squares, 0) if full and m > n else c.zeros(0, dtype=values.dtype)
    return solution.squeeze(1) if b.ndim == 1 else solution, residuals, rank, values


@rows
def norm(x, ord=None, axis=None, keepdims=False):
    x = inexact(x)
    if axis is None and (ord is None or (ord == 2 and x.ndim == 1) or (ord in ("f", "fro") and x.ndim == 2)):
        return c.linalg.vector_norm(x, 2, axes(x, None), keepdims)
    along = axes(x, axis)
    if len(along) == 1:
        if isinstance(ord, str):
            raise ValueError(f"norm: invalid norm order for vectors (got ord={ord!r}).")
        return c.linalg.vector_norm(x, 2 if ord is None else ord, along, keepdims)
    if len(along) == 2:
        return c.linalg.matrix_norm(x, "fro" if ord in (None, "f") else ord, along, keepdims)
    raise ValueError(f"norm: expected one axis for vectors and two for matrices (got {axis} and {x.ndim} dimensions).")


@rows
def pinv(a, rcond=None, hermitian=False, *, rtol=None):
    a = inexact(a)
    rcond = rtol if rcond is None else rcond
    rcond = 1e-15 if rcond is None and rtol is None else rcond
    return c.linalg.pinv(a, rtol=rcond, hermitian=hermitian)


@rows
def matrix_rank(A, tol=None, hermitian=False, *, rtol=None):
    A = inexact(A)
    if A.ndim < 2:
        return c.any(A != 0).to(c.int64)
    rtol = 0.0 if tol is not None and rtol is None else rtol
    return c.linalg.matrix_rank(A, atol=tol, rtol=rtol, hermitian=hermitian)


@rows
def qr(a, mode="reduced"):
    a = inexact(a)
    if mode == "raw":
        raise TypeError("qr: not supported for Tensors with mode='raw'.")
    Q, R = c.linalg.qr(a, "reduced" if mode == "r" else mode)      # whose derivative needs Q
    return R if mode == "r" else np.linalg._linalg.QRResult(Q, R)


@rows
def svd(a, full_matrices=True, compute_uv=True, hermitian=False):
    a = inexact(a)
    return np.linalg._linalg.SVDResult(*c.linalg.svd(a, full_matrices)) if compute_uv else c.linalg.svdvals(a)


@rows
def vector_norm(x, /, *, axis=None, keepdims=False, ord=2):
    x = inexact(x)
    along = axes(x, axis)
    if not along:                        # each element is a vector
        return c.linalg.vector_norm(x.unsqueeze(-1), ord, -1)
    return c.linalg.vector_norm(x, ord, along, keepdims)


@rows
def multi_dot(arrays):
    return c.linalg.multi_dot(promoted(*arrays))


@rows
def tensorsolve(a, b, axes=None):
    a, b = _both(a, b)
    if axes is not None:
        a = a.permute([dim for dim in range(a.ndim) if dim not in normalize_axis_tuple(axes, a.ndim)]
                      + list(normalize_axis_tuple(axes, a.ndim)))
    return c.linalg.tensorsolve(a, b)


@rows
def cond(x, p=None):
    return c.linalg.cond(inexact(x), p)


def _vecdot(x1, x2, /, *, axis=-1):
    return UFUNCS[np.vecdot](*[x.movedim(axis, -1) for x in promoted(x1, x2)])


rows.update({
    "cholesky": lambda a, /, *, upper=False: c.linalg.cholesky(inexact(a), upper=upper),
    "det": lambda a: c.linalg.det(inexact(a)), "inv": lambda a: c.linalg.inv(inexact(a)),
    "slogdet": lambda a: np.linalg._linalg.SlogdetResult(*c.linalg.slogdet(inexact(a))),
    "eigh": lambda a, UPLO="L": np.linalg._linalg.EighResult(*c.linalg.eigh(inexact(a), UPLO)),
    "eigvalsh": lambda a, UPLO="L": c.linalg.eigvalsh(inexact(a), UPLO),
    "svdvals": lambda x, /: c.linalg.svdvals(inexact(x)),
    "matrix_norm": lambda x, /, *, keepdims=False, ord="fro": c.linalg.matrix_norm(inexact(x), ord, (-2, -1), keepdims),
    "matrix_power": lambda a, n: c.linalg.matrix_power(as_tensor(a) if n >= 0 else inexact(a), n),
    "tensorinv": lambda a, ind=2: c.linalg.tensorinv(inexact(a), ind),
    "matmul": lambda x1, x2, /: by_bits(c.matmul, *promoted(x1, x2)),
    "matrix_transpose": shapes.rows["matrix_transpose"],
    "outer": lambda x1, x2, /: products.outer(x1, x2), "tensordot": products.tensordot, "vecdot": _vecdot,
    "cross": lambda x1, x2, /, *, axis=-1: products.cross(x1, x2, axis=axis),
    "diagonal": lambda x, /, *, offset=0: shapes.diagonal(x, offset, -2, -1),
    "trace": lambda x, /, *, offset=0, dtype=None: shapes.trace(x, offset, -2, -1, dtype),
})
