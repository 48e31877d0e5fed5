"""Cholesky, QR and LU factorizations."""


from cygrad._core.dispatch.named_results import named_result
from cygrad._core.table.docstrings import documented
from cygrad._core.table.operator import operators
from cygrad.composite.out_forms import into
from cygrad.linalg.checks import check_info, matrices, not_definite, same_dtype, square

__all__ = [
    "cholesky", "cholesky_ex", "geqrf", "householder_product", "lu", "lu_factor", "lu_factor_ex", "lu_unpack", "ormqr",
    "qr",
]

# Shared parameter descriptions.
_PARAMETERS = {
    "out": "tuple of Tensor, optional\n    Tensor that the result is written to.",
    "A": "Tensor\n    Of shape (..., m, n).",
    "pivot": "bool, default True\n    Must be True: rows are always exchanged.",
}


# ---- Cholesky

def cholesky_ex(A, *, upper=False, check_errors=False, out=None):
    """Return Cholesky factors and an error code for each matrix instead of raising an error. See `cholesky`.

    Parameters
    ----------
    A : Tensor
        Of shape (..., n, n).
    upper : bool, default False
        Whether to return upper triangular factors.
    check_errors : bool, default False
        Whether to raise the error of `cholesky`.
    out : tuple of Tensor, optional
        Tensors that the results are written to.

    Returns
    -------
    (L, info)
        A named tuple; `info`, int32, is 0 or the order of the first leading minor that is not positive.

    Raises
    ------
    LinAlgError
        If `check_errors`, and a matrix is not positive definite.

    Examples
    --------
    >>> cygrad.linalg.cholesky_ex(-cygrad.eye(2)).info
    tensor(1, dtype=cygrad.int32)
    """
    found = operators.linalg_cholesky_ex(square("linalg.cholesky_ex", A), upper)
    if check_errors:
        check_info("linalg.cholesky_ex", found.info, not_definite)
    return into("linalg.cholesky_ex", found, out)


def cholesky(A, *, upper=False, out=None):
    """Return the Cholesky factor of positive definite matrices: the lower triangular L with ``A = L @ L.mH``.

    Parameters
    ----------
    A : Tensor
        Of shape (..., n, n), symmetric or Hermitian; only one triangle is read.
    upper : bool, default False
        Whether to return the upper triangular factor U with ``A = U.mH @ U``.
    out : Tensor, optional
        Tensor that the result is written to.

    Returns
    -------
    Tensor
        Of shape (..., n, n), with a positive diagonal.

    Raises
    ------
    LinAlgError
        If a matrix is not positive definite.
    RuntimeError
        If A is not a square matrix of floating point or complex dtype.

    Notes
    -----
    Derivative: I. Murray, Differentiation of the Cholesky decomposition (2016). The gradient is symmetric, as if both
    triangles were read.

    Examples
    --------
    >>> cygrad.linalg.cholesky(cygrad.tensor([[4., 2.], [2., 5.]]))
    tensor([[2., 0.],
            [1., 2.]])
    """
    found, info = operators.linalg_cholesky_ex(square("linalg.cholesky", A), upper)
    check_info("linalg.cholesky", info, not_definite)
    return into("linalg.cholesky", found, out)


# ---- QR

@documented(_PARAMETERS)
def qr(A, mode="reduced", *, out=None):
    """Return the QR factorization: ``A = Q @ R``, where Q has orthonormal columns and R is upper triangular.

    Parameters
    ----------
    mode : str, default 'reduced'
        'reduced': Q of shape (..., m, k) and R of shape (..., k, n) with k = min(m, n); 'complete': (..., m, m) and
        (..., m, n); 'r': Q is empty and R as for 'reduced'.

    Returns
    -------
    (Q, R)
        A named tuple. The diagonal of R is real and can be negative.

    Raises
    ------
    RuntimeError
        If A is not a matrix of floating point or complex dtype, or the mode is unknown; in backward, if the mode is
        'r', or
        'complete' for more rows than columns.

    Notes
    -----
    Derivative: D. A. O. Roberts and L. R. Roberts, QR and LQ decomposition matrix backpropagation algorithms (2020), if
    the first min(m, n) columns are linearly independent.

    Examples
    --------
    >>> Q, R = cygrad.linalg.qr(cygrad.tensor([[3., 1.], [4., 2.]]))
    >>> cygrad.dist(Q @ R, cygrad.tensor([[3., 1.], [4., 2.]])) < 1e-5
    tensor(True)
    """
    return into("linalg.qr", operators.linalg_qr(matrices("linalg.qr", A), mode), out)


def geqrf(input, *, out=None):
    """Return a QR factorization in the format of LAPACK: Q as a product of Householder reflections, and R.

    Parameters
    ----------
    input : Tensor
        Of shape (..., m, n).
    out : tuple of Tensor, optional
        Tensors that the results are written to.

    Returns
    -------
    (a, tau)
        A named tuple: R is on and above the diagonal of `a`, the vectors of the reflections are below it, and `tau`
        holds their factors. Not differentiable: use `linalg.qr`.

    Raises
    ------
    RuntimeError
        If the input is not a matrix of floating point or complex dtype.

    Examples
    --------
    >>> a, tau = cygrad.geqrf(cygrad.tensor([[3., 1.], [4., 2.]]))
    >>> a.shape, tau.shape
    ((2, 2), (2,))
    """
    return into("geqrf", operators.linalg_geqrf(matrices("geqrf", input, "input")), out)


def _reflections(operation, A, tau):
    """Return V, M and tau of the product of reflections 1 - V M^-1 diag(tau) V^H, M upper unit triangular.

    C. Puglisi, Modification of the Householder method based on the compact WY representation (1992): the inverse of the
    triangular factor is the sum of 1 / tau and the elements of V^H V above its diagonal.
    """
    matrices(operation, A)
    same_dtype(operation, A, tau)
    if tau.ndim != A.ndim - 1 or tuple(tau.shape[:-1]) != tuple(A.shape[:-2]) or tau.shape[-1] > A.shape[-1]:
        raise RuntimeError(f"{operation}: tau must have one element for each of the first columns of the matrices "
                           f"(got shapes {tuple(A.shape)} and {tuple(tau.shape)}).")
    if A.shape[-2] < (tau.shape[-1] if operation == "ormqr" else A.shape[-1]):
        raise RuntimeError(f"{operation}: the matrices must have at least as many rows as columns (got shape "
                           f"{tuple(A.shape)}).")
    A = operators.narrow(A, -1, 0, tau.shape[-1])
    V = operators.add(operators.tril(A, -1), operators.identity_like(A.detach()))
    above = operators.triu(operators.matmul(operators.adjoint(V), V), 1)
    return V, operators.mul(operators.unsqueeze(tau, -1), above), operators.unsqueeze(tau, -1)


def householder_product(A, tau, *, out=None):
    """Return the first columns of a product of Householder reflections, such as `geqrf` returns.

    Parameters
    ----------
    A : Tensor
        Of shape (..., m, n), m >= n: vectors below the diagonal.
    tau : Tensor
        Of shape (..., k), k <= n.
    out : Tensor, optional
        Tensor that the result is written to.

    Returns
    -------
    Tensor
        Of shape (..., m, n).

    Raises
    ------
    RuntimeError
        If shapes or dtypes do not match.

    Notes
    -----
    Composed of matrix products and a triangular solve; so is its derivative.

    Examples
    --------
    >>> A = cygrad.tensor([[3., 1.], [4., 2.]])
    >>> cygrad.dist(cygrad.linalg.householder_product(*cygrad.geqrf(A)), cygrad.linalg.qr(A).Q) < 1e-5
    tensor(True)
    """
    V, M, tau = _reflections("linalg.householder_product", A, tau)
    front = operators.adjoint(operators.narrow(V, -2, 0, A.shape[-1]))
    inner = operators.linalg_solve_triangular(M, operators.mul(tau, front), True, unitriangular=True)
    found = operators.sub(operators.identity_like(A.detach()), operators.matmul(V, inner))
    return into("linalg.householder_product", found, out, casts=True)


def ormqr(input, tau, other, left=True, transpose=False, *, out=None):
    """Multiply a matrix by a product of Householder reflections, such as `geqrf` returns.

    Parameters
    ----------
    input : Tensor
        Of shape (..., m, k): vectors below the diagonal.
    tau : Tensor
        Of shape (..., k).
    other : Tensor
        Of shape (..., m, n), or (..., n, m) if not `left`.
    left : bool, default True
        Whether to compute ``Q @ other``, or else ``other @ Q``. Q is of shape (..., m, m).
    transpose : bool, default False
        Whether to use ``Q.mH`` instead of Q.
    out : Tensor, optional
        Tensor that the result is written to.

    Returns
    -------
    Tensor
        Of the shape of `other`.

    Raises
    ------
    RuntimeError
        If shapes or dtypes do not match.

    Notes
    -----
    Composed of matrix products and a triangular solve; so is its derivative.

    Examples
    --------
    >>> a, tau = cygrad.geqrf(cygrad.tensor([[3., 1.], [4., 2.]]))
    >>> cygrad.ormqr(a, tau, cygrad.eye(2)).shape
    (2, 2)
    """
    V, M, tau = _reflections("ormqr", input, tau)
    matrices("ormqr", other, "other")
    same_dtype("ormqr", input, other)
    if not left:
        other, transpose = operators.adjoint(other), not transpose
    if other.shape[-2] != V.shape[-2] or tuple(other.shape[:-2]) != tuple(V.shape[:-2]):
        raise RuntimeError(f"ormqr: shapes do not match (got {tuple(input.shape)} and {tuple(other.shape)}).")
    inner = operators.matmul(operators.adjoint(V), other)
    if transpose:
        inner = operators.mul(operators.conj(tau), operators.linalg_solve_triangular(
            operators.adjoint(M), inner, False, unitriangular=True))
    else:
        inner = operators.linalg_solve_triangular(M, operators.mul(tau, inner), True, unitriangular=True)
    found = operators.sub(other, operators.matmul(V, inner))
    return into("ormqr", found if left else operators.adjoint(found), out)


# ---- LU

def _check_pivot(operation, pivot):
    if not pivot:
        raise RuntimeError(f"{operation}: pivot=False is not supported (got pivot=False). Omit it.")


@documented(_PARAMETERS)
def lu_factor_ex(A, *, pivot=True, check_errors=False, out=None):
    """Return LU factors and an error code for each matrix instead of raising an error. See `lu_factor`.

    Parameters
    ----------
    check_errors : bool, default False
        Whether to raise an error for singular matrices.

    Returns
    -------
    (LU, pivots, info)
        A named tuple; `info`, int32, is 0 or the index, from 1, of the first zero on the diagonal of U.

    Raises
    ------
    LinAlgError
        If `check_errors`, and a matrix is singular.
    RuntimeError
        If `pivot` is False.

    Examples
    --------
    >>> cygrad.linalg.lu_factor_ex(cygrad.zeros(2, 2)).info
    tensor(1, dtype=cygrad.int32)
    """
    _check_pivot("linalg.lu_factor_ex", pivot)
    found = operators.linalg_lu_factor_ex(matrices("linalg.lu_factor_ex", A))
    if check_errors:
        check_info("linalg.lu_factor_ex", found.info, _zero_pivot)
    return into("linalg.lu_factor_ex", found, out)


def _zero_pivot(info):
    return (f"The matrix is singular: U[{info},{info}] is zero, and lu_solve would divide by it. Use linalg.lu or "
            "linalg.lu_factor_ex to get the factors.")


@documented(_PARAMETERS)
def lu_factor(A, *, pivot=True, out=None):
    """Return the LU factorization with row exchanges, in the compact form that `lu_solve` takes.

    Returns
    -------
    (LU, pivots)
        A named tuple: U is on and above the diagonal of LU, and L below it, without its unit diagonal. Row i was
        exchanged with row ``pivots[i - 1]``, for i = 1, 2, ...

    Raises
    ------
    LinAlgError
        If a diagonal element of U is zero.
    RuntimeError
        If A is not a matrix of floating point or complex dtype, or `pivot` is False.

    Notes
    -----
    Derivative: that of L and U for constant pivots, if U is invertible.

    Examples
    --------
    >>> cygrad.linalg.lu_factor(cygrad.tensor([[0., 2.], [1., 1.]])).pivots
    tensor([2, 2], dtype=cygrad.int32)
    """
    _check_pivot("linalg.lu_factor", pivot)
    LU, pivots, info = operators.linalg_lu_factor_ex(matrices("linalg.lu_factor", A))
    check_info("linalg.lu_factor", info, _zero_pivot)
    return into("linalg.lu_factor", named_result("linalg_lu_factor", "LU", "pivots")(LU, pivots), out)


def _unpacked(LU, pivots, data=True, permutation=True):
    """Return P, L and U; those not requested are empty."""
    m, n = LU.shape[-2:]
    k = min(m, n)
    P = L = U = LU.new_empty((0,))
    if data:
        left = operators.narrow(LU, -1, 0, k)
        L = operators.add(operators.tril(left, -1), operators.identity_like(left.detach()))
        U = operators.triu(operators.narrow(LU, -2, 0, k))
        L, U = operators.lu_unpack([L, U])
    if permutation:
        rows = LU.new_empty((*LU.shape[:-1], m))
        P = operators.linalg_permute_rows(operators.identity_like(rows), pivots, True)
    return named_result("lu_unpack", "P", "L", "U")(P, L, U)


@documented(_PARAMETERS)
def lu(A, *, pivot=True, out=None):
    """Return the factorization ``A = P @ L @ U`` into a permutation, a lower and an upper triangular matrix.

    Returns
    -------
    (P, L, U)
        A named tuple, of shapes (..., m, m), (..., m, k) and (..., k, n) with k = min(m, n). L has ones on the
        diagonal.

    Raises
    ------
    RuntimeError
        If A is not a matrix of floating point or complex dtype, or `pivot` is False.

    Notes
    -----
    Derivative: that of L and U for constant P, if the first k columns of A are linearly independent.

    Examples
    --------
    >>> cygrad.linalg.lu(cygrad.tensor([[0., 2.], [1., 1.]])).U
    tensor([[1., 1.],
            [0., 2.]])
    """
    _check_pivot("linalg.lu", pivot)
    LU, pivots, _ = operators.linalg_lu_factor_ex(matrices("linalg.lu", A))
    return into("linalg.lu", _unpacked(LU, pivots), out)


def lu_unpack(LU_data, LU_pivots, unpack_data=True, unpack_pivots=True, *, out=None):
    """Return P, L and U of the result of `lu_factor`.

    Parameters
    ----------
    LU_data, LU_pivots : Tensor
        Result of `lu_factor`.
    unpack_data, unpack_pivots : bool, default True
        Whether to return L and U, and P; otherwise they are empty.
    out : tuple of Tensor, optional
        Tensors that the results are written to.

    Returns
    -------
    (P, L, U)
        A named tuple, as in `linalg.lu`.

    Raises
    ------
    RuntimeError
        If the pivots are not int32, or their shape does not match.

    Examples
    --------
    >>> cygrad.lu_unpack(*cygrad.linalg.lu_factor(cygrad.tensor([[0., 2.], [1., 1.]]))).P
    tensor([[0., 1.],
            [1., 0.]])
    """
    matrices("lu_unpack", LU_data, "LU_data")
    return into("lu_unpack", _unpacked(LU_data, LU_pivots, unpack_data, unpack_pivots), out)
