"""Norms of vectors and matrices, and condition numbers."""

from math import inf

from cygrad._core.graph.argument_errors import as_dim, as_number
from cygrad._core.table.docstrings import documented
from cygrad._core.table.operator import operators
from cygrad.composite.out_forms import as_tensor_argument, into
from cygrad.conversion import values_of
from cygrad.linalg.checks import check_info, floating, matrices, not_converged, square
from cygrad.linalg.spectral import svdvals

__all__ = ["cond", "matrix_norm", "norm", "vector_norm"]

_RETURNED = "Tensor\n    Real."


def _as_dtype(operation, x, dtype):
    """Return x in the dtype of the norm."""
    floating(operation, x)
    if dtype is None:
        return x
    if not (dtype.is_floating_point or dtype.is_complex) or (x.is_complex() and not dtype.is_complex):
        raise RuntimeError(f"{operation}: dtype must be floating point or complex, and complex for complex input (got "
                           f"{dtype} for {x.dtype}).")
    if dtype.itemsize < x.dtype.itemsize:
        raise RuntimeError(f"{operation}: the dtype of the input should be convertible without narrowing to the "
                           f"specified dtype (got {x.dtype} and {dtype}).")
    if not x.is_complex() and dtype.is_complex:
        raise RuntimeError(f"{operation}: dtype must be real for real input (got {dtype} for {x.dtype}).")
    return operators.cast(x, dtype)


@documented(returns=_RETURNED)
def vector_norm(x, ord=2, dim=None, keepdim=False, *, dtype=None, out=None):
    """Return the norm of vectors.

    Parameters
    ----------
    x : Tensor
    ord : number, default 2
        The norm is ``sum(abs(x)**ord)**(1 / ord)``; for inf and -inf the largest and smallest absolute value, for 0 the
        number of nonzero elements.
    dim : int or tuple of int, optional
        Dimensions of the vectors; all by default.
    keepdim : bool, default False
        Whether to keep the reduced dimensions with size 1.
    dtype : dtype, optional
        Dtype of the computation and the result.

    Raises
    ------
    RuntimeError
        If x is not floating point or complex, or has no elements and the norm is not defined then.

    Notes
    -----
    Derivative: 0 at 0; for inf and -inf distributed evenly among equal elements.

    Examples
    --------
    >>> cygrad.linalg.vector_norm(cygrad.tensor([3., 4.]))
    tensor(5.)
    """
    x = _as_dtype("linalg.vector_norm", x, dtype)
    if as_number("linalg.vector_norm", "ord", ord) < 0 or ord == inf:
        sizes = tuple(x.shape) or (1,)
        dims = () if dim is None else dim if isinstance(dim, (tuple, list)) else (dim,)
        empty = any(sizes[k] == 0 for k in dims or range(len(sizes)) if -len(sizes) <= k < len(sizes))
        if empty:
            raise RuntimeError(f"linalg.vector_norm: the norm of order {ord} is not defined without elements (got "
                               f"shape {tuple(x.shape)}).")
    return into("linalg.vector_norm", operators.norm(x, ord, dim, keepdim), out)


def _extremum(ord, count):
    """Return the largest or smallest norm; the largest of no elements is 0."""
    return operators.amin if ord < 0 else operators.amax if count else operators.sum


@documented(returns=_RETURNED)
def matrix_norm(A, ord="fro", dim=(-2, -1), keepdim=False, *, dtype=None, out=None):
    """Return the norm of matrices.

    Parameters
    ----------
    A : Tensor
        Of at least two dimensions.
    ord : str or number, default 'fro'
        'fro': root of the sum of squares; 'nuc': sum of singular values; 2 and -2: largest and smallest singular value;
        1 and -1: largest and smallest absolute column sum; inf and -inf: largest and smallest absolute row sum.
    dim : tuple of int, default (-2, -1)
        Dimensions of the rows and columns.
    keepdim : bool, default False
        Whether to keep the reduced dimensions with size 1.
    dtype : dtype, optional
        Dtype of the computation and the result.

    Raises
    ------
    RuntimeError
        If A is not floating point or complex, `ord` is unknown, or `dim` is not two different dimensions.

    Notes
    -----
    Derivative: that of sums, maxima and singular values.

    Examples
    --------
    >>> cygrad.linalg.matrix_norm(cygrad.tensor([[1., -2.], [3., 4.]]), ord=1)
    tensor(6.)
    """
    operation = "linalg.matrix_norm"
    A = _as_dtype(operation, A, dtype)
    matrices(operation, A)
    pair = tuple(dim) if isinstance(dim, (tuple, list)) else (dim,)
    if len(pair) != 2:
        raise (RuntimeError if isinstance(dim, (tuple, list)) else TypeError)(
            f"{operation}: dim must be a 2-tuple (got {dim}).")
    rows, columns = (as_dim(operation, k, A.ndim) for k in pair)
    if rows == columns:
        raise RuntimeError(f"{operation}: dims must be different (got {dim}).")
    if isinstance(ord, str):
        if ord not in ("fro", "nuc"):
            raise RuntimeError(f"{operation}: Order {ord} not supported. Use 'fro', 'nuc', or a number.")
    elif abs(as_number(operation, "ord", ord)) not in (1, 2, inf):
        raise RuntimeError(f"{operation}: Order {ord} not supported. Use 1, 2, inf, or their negatives.")
    if ord == "fro":
        found = operators.norm(A, 2, (rows, columns), keepdim)
    elif ord == "nuc" or abs(ord) == 2:
        values = svdvals(operators.movedim(A, (rows, columns), (-2, -1)))
        found = (operators.sum if ord == "nuc" else _extremum(ord, values.shape[-1]))(values, (-1,))
        if keepdim:
            for k in sorted((rows, columns)):
                found = operators.unsqueeze(found, k)
    else:
        summed, chosen = (rows, columns) if abs(ord) == 1 else (columns, rows)
        sums = operators.norm(A, 1, (summed,), True)
        found = _extremum(ord, A.shape[chosen])(sums, (chosen,), True)
        found = found if keepdim else operators.squeeze(found, (rows, columns))
    return into(operation, found, out)


@documented(returns=_RETURNED)
def norm(A, ord=None, dim=None, keepdim=False, *, out=None, dtype=None):
    """Return the norm of vectors or of matrices.

    Parameters
    ----------
    A : Tensor
    ord : str or number, optional
        As in `vector_norm` and `matrix_norm`; by default the root of the sum of squares.
    dim : int or tuple of int, optional
        One dimension for vectors, two for matrices. All by default; A must then have one or two if `ord` is given.
    keepdim : bool, default False
        Whether to keep the reduced dimensions with size 1.
    dtype : dtype, optional
        Dtype of the computation and the result.

    Raises
    ------
    RuntimeError
        If A is not floating point or complex, or `ord` is unknown.

    Notes
    -----
    Derivative: that of `vector_norm` or `matrix_norm`.

    Examples
    --------
    >>> cygrad.linalg.norm(cygrad.tensor([[3., 0.], [0., 4.]]))
    tensor(5.)
    """
    count = len(dim) if isinstance(dim, (tuple, list)) else None if dim is None else 1
    if ord is None:
        return vector_norm(A, 2, dim, keepdim, dtype=dtype, out=out)
    if count not in (None, 1, 2):
        raise RuntimeError(f"linalg.norm: expected one or two dimensions (got dim={dim}).")
    as_tensor_argument("linalg.norm", "A", A)
    if count is None and A.ndim not in (1, 2):
        raise RuntimeError("linalg.norm: with ord and without dim, the input must be a vector or a matrix (got "
                           f"{A.ndim} dimensions). Pass dim.")
    if count == 2 or (count is None and A.ndim == 2) or isinstance(ord, str):
        dims = (-2, -1) if dim is None else dim if isinstance(dim, (tuple, list)) else (dim,)
        return matrix_norm(A, ord, dims, keepdim, dtype=dtype, out=out)
    return vector_norm(A, ord, dim, keepdim, dtype=dtype, out=out)


def cond(A, p=None, *, out=None):
    """Return the condition number: the norm of a matrix times the norm of its inverse.

    Parameters
    ----------
    A : Tensor
        Of shape (..., m, n); square unless `p` is None, 2 or -2.
    p : str or number, optional
        Order of the norm, as in `matrix_norm`; by default 2.
    out : Tensor, optional
        Tensor that the result is written to.

    Returns
    -------
    Tensor
        Of shape (...), real; inf for singular matrices.

    Raises
    ------
    RuntimeError
        If A is not a matrix of floating point or complex dtype, or `p` is unknown.

    Notes
    -----
    Derivative: that of norms and of the inverse.

    Examples
    --------
    >>> cygrad.linalg.cond(cygrad.tensor([[2., 0.], [0., 1.]]))
    tensor(2.)
    """
    operation = "linalg.cond"
    matrices(operation, A)
    if isinstance(p, str) and p not in ("fro", "nuc"):
        raise RuntimeError(f"{operation}: got an invalid norm type: {p}")
    if not isinstance(p, str) and p is not None and abs(as_number(operation, "p", p)) not in (1, 2, inf):
        raise RuntimeError(f"{operation}: got an invalid norm type: {p}")
    if isinstance(p, str):
        square(operation, A)
    if A.numel() == 0:
        return into(operation, operators.real(operators.sum(A.detach(), (-2, -1))), out, casts=True)
    if p in (None, 2, -2):
        values, info = operators.linalg_svdvals(A)
        check_info(operation, info, not_converged)
        largest, least = operators.select(values, -1, 0), operators.select(values, -1, values.shape[-1] - 1)
        found = operators.div(least, largest) if p == -2 else operators.div(largest, least)
        return into(operation, found, out, casts=True)
    square(operation, A)
    inverse, info = operators.linalg_inv_ex(A)
    norm, singular, some = matrix_norm(A, p), operators.ne(info, 0), values_of(info).any()
    if some:
        inverse = operators.where(operators.unsqueeze(operators.unsqueeze(singular, -1), -1), 0, inverse)
    found = operators.mul(norm, matrix_norm(inverse, p))
    if some:
        found = operators.where(singular, operators.add(norm, inf), found)
    return into(operation, found, out, casts=True)
