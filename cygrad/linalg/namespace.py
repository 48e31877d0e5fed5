"""Linear algebra functions of the top-level namespace whose names or arguments differ from `cygrad.linalg`."""


from cygrad._core.dispatch.named_results import named_result
from cygrad._core.table.operator import operators
from cygrad.composite.out_forms import into
from cygrad.linalg import factorizations, least_squares, solving
from cygrad.linalg.checks import check_info, matrices, not_converged, not_definite, square

__all__ = ["cholesky", "inverse", "lu", "lu_solve", "orgqr", "pinverse", "qr", "svd", "triangular_solve"]


def inverse(input, *, out=None):
    """Return the inverse of square matrices; alias of `linalg.inv`.

    Parameters
    ----------
    input : Tensor
        Of shape (..., n, n).
    out : Tensor, optional
        Tensor that the result is written to.

    Returns
    -------
    Tensor
        Of shape (..., n, n).

    Raises
    ------
    LinAlgError
        If a matrix is singular.

    Notes
    -----
    Derivative: ``-inverse.mH @ grad @ inverse.mH``.

    Examples
    --------
    >>> cygrad.inverse(2 * cygrad.eye(2))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.5000]])
    """
    return solving.inv(input, out=out)


def pinverse(input, rcond=1e-15):
    """Return the Moore-Penrose pseudo-inverse; see `linalg.pinv`.

    Parameters
    ----------
    input : Tensor
        Of shape (..., m, n).
    rcond : float, default 1e-15
        Singular values up to ``rcond`` times the largest one are taken as zero.

    Returns
    -------
    Tensor
        Of shape (..., n, m).

    Examples
    --------
    >>> cygrad.pinverse(cygrad.tensor([[2., 0.]]))
    tensor([[0.5000],
            [0.0000]])
    """
    return least_squares.pinv(input, rtol=rcond)


def cholesky(input, upper=False, *, out=None):
    """Return the Cholesky factor of positive definite matrices; see `linalg.cholesky`.

    Parameters
    ----------
    input : Tensor
        Of shape (..., n, n), symmetric or Hermitian; only one triangle is read.
    upper : bool, default False
        Whether to return the upper triangular factor.
    out : Tensor, optional
        Tensor that the result is written to.

    Returns
    -------
    Tensor
        Of shape (..., n, n).

    Raises
    ------
    LinAlgError
        If a matrix is not positive definite.

    Examples
    --------
    >>> cygrad.cholesky(4 * cygrad.eye(2))
    tensor([[2., 0.],
            [0., 2.]])
    """
    found, info = operators.linalg_cholesky_ex(square("cholesky", input), upper)
    check_info("cholesky", info, not_definite)
    return into("cholesky", found, out)


def qr(input, some=True, *, out=None):
    """Return the QR factorization; see `linalg.qr`.

    Parameters
    ----------
    input : Tensor
        Of shape (..., m, n).
    some : bool, default True
        Whether to use mode 'reduced' of `linalg.qr`, or else 'complete'.
    out : tuple of Tensor, optional
        Tensors that the results are written to.

    Returns
    -------
    (Q, R)
        A named tuple.

    Examples
    --------
    >>> cygrad.qr(cygrad.ones(3, 2)).Q.shape
    (3, 2)
    """
    return factorizations.qr(input, "reduced" if some else "complete", out=out)


def svd(input, some=True, compute_uv=True, *, out=None):
    """Return the singular value decomposition with V instead of its adjoint; see `linalg.svd`.

    Parameters
    ----------
    input : Tensor
        Of shape (..., m, n).
    some : bool, default True
        Whether to return only the first min(m, n) columns of U and V.
    compute_uv : bool, default True
        Whether to compute U and V; otherwise they are zeros.
    out : tuple of Tensor, optional
        Tensors that the results are written to.

    Returns
    -------
    (U, S, V)
        A named tuple: ``input = U @ diag(S) @ V.mH``.

    Raises
    ------
    LinAlgError
        If the iteration fails, as for matrices with nan or inf.

    Examples
    --------
    >>> cygrad.svd(cygrad.tensor([[0., 2.], [1., 0.]])).S
    tensor([2., 1.])
    """
    matrices("svd", input, "input")
    if compute_uv:
        U, S, Vh, info = operators.linalg_svd(input, not some)
        V = operators.adjoint(Vh)
    else:
        S, info = operators.linalg_svdvals(input)
        U, V = (input.new_zeros((*input.shape[:-2], size, size)) for size in input.shape[-2:])
    check_info("svd", info, not_converged)
    return into("svd", named_result("svd", "U", "S", "V")(U, S, V), out)


def lu(A, pivot=True, get_infos=False, out=None):
    """Return the LU factorization with row exchanges; see `linalg.lu_factor`.

    Parameters
    ----------
    A : Tensor
        Of shape (..., m, n).
    pivot : bool, default True
        Must be True: rows are always exchanged.
    get_infos : bool, default False
        Whether to return `info` too, as `linalg.lu_factor_ex` does.
    out : tuple of Tensor, optional
        Tensors that the results are written to.

    Returns
    -------
    tuple of Tensor
        LU, pivots, and info if `get_infos`.

    Examples
    --------
    >>> LU, pivots = cygrad.lu(cygrad.eye(2))
    >>> pivots
    tensor([1, 2], dtype=cygrad.int32)
    """
    found = factorizations.lu_factor_ex(A, pivot=pivot)
    return into("lu", tuple(found) if get_infos else tuple(found[:2]), out)


def lu_solve(b, LU_data, LU_pivots, *, out=None):
    """Solve systems of linear equations with LU factors; see `linalg.lu_solve`.

    Parameters
    ----------
    b : Tensor
        Of shape (..., n, k).
    LU_data, LU_pivots : Tensor
        Result of `linalg.lu_factor`.
    out : Tensor, optional
        Tensor that the result is written to.

    Returns
    -------
    Tensor
        Of the shape of b, with leading dimensions broadcast.

    Examples
    --------
    >>> cygrad.lu_solve(cygrad.ones(2, 1), *cygrad.lu(2 * cygrad.eye(2)))
    tensor([[0.5000],
            [0.5000]])
    """
    return solving.lu_solve(LU_data, LU_pivots, b, out=out)


def orgqr(input, tau, *, out=None):
    """Return the first columns of a product of Householder reflections; alias of `linalg.householder_product`.

    Parameters
    ----------
    input : Tensor
        Of shape (..., m, n), m >= n: vectors below the diagonal.
    tau : Tensor
        Of shape (..., k), k <= n.
    out : Tensor, optional
        Tensor that the result is written to.

    Returns
    -------
    Tensor
        Of shape (..., m, n).

    Examples
    --------
    >>> cygrad.orgqr(*cygrad.geqrf(cygrad.ones(3, 2))).shape
    (3, 2)
    """
    return factorizations.householder_product(input, tau, out=out)


def triangular_solve(b, A, upper=True, transpose=False, unitriangular=False, *, out=None):
    """Solve systems of linear equations with triangular matrices; see `linalg.solve_triangular`.

    Parameters
    ----------
    b : Tensor
        Of shape (..., n, k).
    A : Tensor
        Of shape (..., n, n); the other triangle is not read.
    upper : bool, default True
        Whether A is upper or lower triangular.
    transpose : bool, default False
        Whether to use ``A.mT`` instead of A.
    unitriangular : bool, default False
        Whether the diagonal of A is taken as ones, without being read.
    out : tuple of Tensor, optional
        Tensors that the results are written to.

    Returns
    -------
    (solution, cloned_coefficient)
        A named tuple; the second is a copy of A.

    Examples
    --------
    >>> cygrad.triangular_solve(cygrad.ones(2, 1), 2 * cygrad.eye(2)).solution
    tensor([[0.5000],
            [0.5000]])
    """
    coefficient = operators.matrix_transpose(A) if transpose else A
    solution = solving.solve_triangular(coefficient, b, upper=bool(upper) != bool(transpose),
                                        unitriangular=unitriangular)
    kind = named_result("triangular_solve", "solution", "cloned_coefficient")
    return into("triangular_solve", kind(*operators.triangular_solve([solution, operators.clone(A)])), out)
