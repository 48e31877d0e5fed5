"""The standard's linear algebra."""

import cygrad as c
from cygrad.array_api.naming import finished
from cygrad.numpy_protocols import linalg as numpys
from cygrad.numpy_protocols import products, shapes
from cygrad.numpy_protocols.arrays import inexact, promoted

__all__ = ["FUNCTIONS"]

_rows = numpys.rows


def cross(x1, x2, /, *, axis=-1):
    """Return cross products of vectors along an axis."""
    x1, x2 = c.broadcast_tensors(*promoted(x1, x2))
    if x1.shape[axis] != 3:
        raise ValueError(f"cross: vectors must have three elements (got {x1.shape[axis]}).")
    return c.cross(x1, x2, dim=axis)


def tensordot(x1, x2, /, *, axes=2):
    """Sum products over the last axes of one array and the first ones of another, or over given axes."""
    return products.tensordot(x1, x2, axes)


def vector_norm(x, /, *, axis=None, keepdims=False, ord=2):
    """Return norms of vectors along axes."""
    return _rows["vector_norm"](x, axis=axis, keepdims=keepdims, ord=ord)


def matrix_rank(x, /, *, rtol=None):
    """Return the number of singular values above the tolerance."""
    return c.linalg.matrix_rank(inexact(x), rtol=rtol)


def pinv(x, /, *, rtol=None):
    """Return the pseudo-inverse of matrices."""
    return c.linalg.pinv(inexact(x), rtol=rtol)


FUNCTIONS = finished("cygrad.array_api.linalg", {
    "cholesky": lambda x, /, *, upper=False: _rows["cholesky"](x, upper=upper),
    "cross": cross, "det": lambda x, /: _rows["det"](x),
    "diagonal": lambda x, /, *, offset=0: _rows["diagonal"](x, offset=offset),
    "eig": lambda x, /: c.linalg.eig(inexact(x)), "eigvals": lambda x, /: c.linalg.eigvals(inexact(x)),
    "eigh": lambda x, /: _rows["eigh"](x), "eigvalsh": lambda x, /: _rows["eigvalsh"](x),
    "inv": lambda x, /: _rows["inv"](x), "matmul": lambda x1, x2, /: _rows["matmul"](x1, x2),
    "matrix_norm": lambda x, /, *, keepdims=False, ord="fro": _rows["matrix_norm"](x, keepdims=keepdims, ord=ord),
    "matrix_power": lambda x, n, /: _rows["matrix_power"](x, n), "matrix_rank": matrix_rank,
    "matrix_transpose": lambda x, /: shapes.rows["matrix_transpose"](x),
    "outer": lambda x1, x2, /: products.outer(x1, x2), "pinv": pinv,
    "qr": lambda x, /, *, mode="reduced": _rows["qr"](x, mode), "slogdet": lambda x, /: _rows["slogdet"](x),
    "solve": lambda x1, x2, /: _rows["solve"](x1, x2),
    "svd": lambda x, /, *, full_matrices=True: _rows["svd"](x, full_matrices),
    "svdvals": lambda x, /: _rows["svdvals"](x), "tensordot": tensordot,
    "trace": lambda x, /, *, offset=0, dtype=None: _rows["trace"](x, offset=offset, dtype=dtype),
    "vecdot": lambda x1, x2, /, *, axis=-1: _rows["vecdot"](x1, x2, axis=axis), "vector_norm": vector_norm})
globals().update(FUNCTIONS)
__all__ += list(FUNCTIONS)
