"""Systems of linear equations and inverses."""

from math import prod

from cygrad._core.dispatch.named_results import named_result
from cygrad._core.graph.argument_errors import as_dim, as_integer, as_sizes
from cygrad._core.graph.tensor import Tensor
from cygrad._core.table.docstrings import documented
from cygrad._core.table.operator import operators
from cygrad.composite.out_forms import as_tensor_argument, into
from cygrad.conversion import values_of
from cygrad.linalg.checks import LinAlgError, broadcast_batches, check_info, matrices, same_dtype, singular, square

__all__ = [
    "cholesky_inverse", "cholesky_solve", "inv", "inv_ex", "lu_solve", "solve", "solve_ex", "solve_triangular",
    "tensorinv", "tensorsolve",
]

# Shared parameter descriptions.
_PARAMETERS = {
    "A": "Tensor\n    Of shape (..., n, n).",
    "left": "bool, default True\n    Whether to solve ``A X = B``, or else ``X A = B``.",
}


# ---- inverses

def inv_ex(A, *, check_errors=False, out=None):
    """Return inverses and an error code for each matrix instead of raising an error. See `inv`.

    Parameters
    ----------
    A : Tensor
        Of shape (..., n, n).
    check_errors : bool, default False
        Whether to raise the error of `inv` for singular matrices.
    out : tuple of Tensor, optional
        Tensors that the results are written to.

    Returns
    -------
    (inverse, info)
        A named tuple. `info`, int32, is 0, or for a singular matrix the index, from 1, of the first zero on the
        diagonal of its triangular factor; its inverse is not finite.

    Raises
    ------
    LinAlgError
        For a singular matrix, if `check_errors`.

    Notes
    -----
    Derivative: ``-inv(A).mH @ grad @ inv(A).mH``.

    Examples
    --------
    >>> cygrad.linalg.inv_ex(cygrad.tensor([[2., 0.], [0., 4.]])).inverse
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    found = operators.linalg_inv_ex(square("linalg.inv_ex", A))
    if check_errors:
        check_info("linalg.inv_ex", found.info, singular)
    return into("linalg.inv_ex", found, out)


@documented(_PARAMETERS)
def inv(A, *, out=None):
    """Return the inverse of square matrices.

    Returns
    -------
    Tensor
        Of shape (..., n, n).

    Raises
    ------
    LinAlgError
        If a matrix is singular.
    RuntimeError
        If A is not a square matrix of floating point or complex dtype.

    Notes
    -----
    For systems of equations, `solve` is faster and more accurate. Derivative:
    ``-inv(A).mH @ grad @ inv(A).mH``.

    Examples
    --------
    >>> cygrad.linalg.inv(cygrad.tensor([[0., 1.], [2., 0.]]))
    tensor([[0.0000, 0.5000],
            [1.0000, 0.0000]])
    """
    inverse, info = operators.linalg_inv_ex(square("linalg.inv", A))
    check_info("linalg.inv", info, singular)
    return into("linalg.inv", inverse, out)


# ---- solutions

def _solved(operation, A, B, left):
    """Return the solution and info of A X = B or X A = B."""
    square(operation, A)
    if not isinstance(B, Tensor):
        raise TypeError(f"{operation}: argument 'B' must be a Tensor (got {type(B).__name__}).")
    same_dtype(operation, A, B)
    vector = B.ndim == 1 or (A.ndim - 1 == B.ndim and tuple(B.shape) == tuple(A.shape[:-1]))
    if vector and not left:
        raise RuntimeError(f"{operation}: with left=False, B must hold matrices. Add a dimension to B (got shapes "
                           f"{tuple(A.shape)} and {tuple(B.shape)}).")
    if vector:
        B = operators.unsqueeze(B, -1)
    matrices(operation, B, "B")
    if B.shape[-2 if left else -1] != A.shape[-1]:
        raise RuntimeError(f"{operation}: shapes of A and B do not match for {'AX = B' if left else 'XA = B'} (got "
                           f"shapes {tuple(A.shape)} and {tuple(B.shape)}).")
    LU, pivots, info = operators.linalg_lu_factor_ex(A.detach())
    wide, LU, B = broadcast_batches(A, LU, B)
    (pivots,) = (pivots,) if wide is A else (operators.expand(pivots, tuple(wide.shape[:-1])),)
    if left:
        found = operators.linalg_solve_with(wide, LU, pivots, B, False)
    else:
        found = operators.adjoint(operators.linalg_solve_with(wide, LU, pivots, operators.adjoint(B), True))
    return operators.squeeze(found, (-1,)) if vector else found, info


def _singular_system(info):
    return "The matrix is singular. Use lstsq, or regularize it."


@documented(_PARAMETERS)
def solve_ex(A, B, *, left=True, check_errors=False, out=None):
    """Return solutions and an error code for each matrix instead of raising an error. See `solve`.

    Parameters
    ----------
    B : Tensor
        Of shape (..., n, k), or vectors (..., n).
    check_errors : bool, default False
        Whether to raise the error of `solve` for singular matrices.
    out : tuple of Tensor, optional
        Tensors that the results are written to.

    Returns
    -------
    (result, info)
        A named tuple; `info` as in `inv_ex`.

    Raises
    ------
    LinAlgError
        For a singular matrix, if `check_errors`.

    Examples
    --------
    >>> cygrad.linalg.solve_ex(2 * cygrad.eye(2), cygrad.ones(2)).result
    tensor([0.5000, 0.5000])
    """
    found = named_result("linalg_solve_ex", "result", "info")(*_solved("linalg.solve_ex", A, B, left))
    if check_errors:
        check_info("linalg.solve_ex", found.info, _singular_system)
    return into("linalg.solve_ex", found, out)


@documented(_PARAMETERS)
def solve(A, B, *, left=True, out=None):
    """Return the solution of systems of linear equations ``A X = B`` with square matrices.

    Parameters
    ----------
    B : Tensor
        Of shape (..., n, k), or vectors: of shape (n,), or of the shape of A without its last dimension.

    Returns
    -------
    Tensor
        Of the shape of B, with leading dimensions broadcast.

    Raises
    ------
    LinAlgError
        If a matrix is singular.
    RuntimeError
        If shapes or dtypes do not match.

    Notes
    -----
    Derivative with respect to B: ``solve(A.mH, grad)``; with respect to A: minus that times ``X.mH``. A is factorized
    once, for derivatives of all orders.

    Examples
    --------
    >>> cygrad.linalg.solve(cygrad.tensor([[2., 0.], [1., 1.]]), cygrad.tensor([2., 3.]))
    tensor([1., 2.])
    """
    found, info = _solved("linalg.solve", A, B, left)
    check_info("linalg.solve", info, _singular_system)
    return into("linalg.solve", found, out)


@documented(_PARAMETERS)
def solve_triangular(A, B, *, upper, left=True, unitriangular=False, out=None):
    """Return the solution of systems of linear equations with triangular matrices.

    Parameters
    ----------
    A : Tensor
        Of shape (..., n, n); the other triangle is not read.
    B : Tensor
        Of shape (..., n, k), or (..., k, n) if not `left`.
    upper : bool
        Which triangle of A there is.
    unitriangular : bool, default False
        The diagonal of A is not read, and counts as ones.

    Returns
    -------
    Tensor
        Of the shape of B, with leading dimensions broadcast. Not finite if the diagonal has a zero.

    Raises
    ------
    RuntimeError
        If shapes or dtypes do not match.

    Notes
    -----
    Derivative: as in `solve`; triangular for A.

    Examples
    --------
    >>> cygrad.linalg.solve_triangular(cygrad.tensor([[2., 0.], [1., 1.]]), cygrad.tensor([[2.], [3.]]), upper=False)
    tensor([[1.],
            [2.]])
    """
    square("linalg.solve_triangular", A)
    matrices("linalg.solve_triangular", B, "B")
    same_dtype("linalg.solve_triangular", A, B)
    A, B = broadcast_batches(A, B)
    return into("linalg.solve_triangular", operators.linalg_solve_triangular(A, B, upper, left, unitriangular), out)


@documented(_PARAMETERS)
def lu_solve(LU, pivots, B, *, left=True, adjoint=False, out=None):
    """Solve systems of linear equations with the factors of `lu_factor`.

    Parameters
    ----------
    LU, pivots : Tensor
        Result of `lu_factor` for A.
    B : Tensor
        Of shape (..., n, k), or (..., k, n) if not `left`.
    adjoint : bool, default False
        Whether to use ``A.mH`` instead of A.

    Returns
    -------
    Tensor
        Of the shape of B, with leading dimensions broadcast.

    Raises
    ------
    RuntimeError
        If shapes or dtypes do not match.

    Notes
    -----
    Composed of row exchanges and triangular solves; so is its derivative.

    Examples
    --------
    >>> LU, pivots = cygrad.linalg.lu_factor(cygrad.tensor([[0., 2.], [1., 1.]]))
    >>> cygrad.linalg.lu_solve(LU, pivots, cygrad.tensor([[2.], [3.]]))
    tensor([[2.],
            [1.]])
    """
    operation = "linalg.lu_solve"
    square(operation, LU, "LU")
    matrices(operation, B, "B")
    same_dtype(operation, LU, B)
    if str(as_tensor_argument(operation, "pivots", pivots).dtype).rpartition(".")[2] != "int32":
        raise RuntimeError(f"{operation}: pivots must be int32, as lu_factor returns them (got {pivots.dtype}).")
    if tuple(pivots.shape) != tuple(LU.shape[:-1]):
        raise RuntimeError(f"{operation}: expected one pivot for each row of LU (got shapes {tuple(pivots.shape)} and "
                           f"{tuple(LU.shape)}).")
    if B.shape[-2 if left else -1] != LU.shape[-1]:
        raise RuntimeError(f"{operation}: shapes of A and B do not match for {'AX = B' if left else 'XA = B'} (got "
                           f"shapes {tuple(LU.shape)} and {tuple(B.shape)}).")
    wide, B = broadcast_batches(LU, B)
    if wide is not LU:
        pivots = operators.expand(pivots, tuple(wide.shape[:-1]))
    if not left:
        B, adjoint = operators.adjoint(B), not adjoint
    triangle = operators.linalg_solve_triangular
    if adjoint:
        transposed = operators.adjoint(wide)
        found = triangle(transposed, triangle(transposed, B, False), True, unitriangular=True)
        found = operators.linalg_permute_rows(found, pivots, True)
    else:
        found = operators.linalg_permute_rows(B, pivots, False)
        found = triangle(wide, triangle(wide, found, False, unitriangular=True), True)
    return into(operation, found if left else operators.adjoint(found), out)


def cholesky_solve(B, L, upper=False, *, out=None):
    """Solve systems of linear equations with Cholesky factors.

    Parameters
    ----------
    B : Tensor
        Of shape (..., n, k).
    L : Tensor
        Of shape (..., n, n): the factors of A, ``A = L @ L.mH``.
    upper : bool, default False
        Whether the factors are upper triangular: ``A = L.mH @ L``.
    out : Tensor, optional
        Tensor that the result is written to.

    Returns
    -------
    Tensor
        X with ``A X = B``, with leading dimensions broadcast.

    Raises
    ------
    RuntimeError
        If shapes or dtypes do not match.

    Notes
    -----
    Composed of triangular solves; so is its derivative, which is triangular for L.

    Examples
    --------
    >>> cygrad.cholesky_solve(cygrad.tensor([[4.], [8.]]), 2 * cygrad.eye(2))
    tensor([[1.],
            [2.]])
    """
    square("cholesky_solve", L, "L")
    matrices("cholesky_solve", B, "B")
    same_dtype("cholesky_solve", B, L)
    B, L = broadcast_batches(B, L)
    transposed = operators.adjoint(L)
    first, second = (transposed, L) if upper else (L, transposed)
    half = operators.linalg_solve_triangular(first, B, False)
    return into("cholesky_solve", operators.linalg_solve_triangular(second, half, True), out, casts=True)


def cholesky_inverse(L, upper=False, *, out=None):
    """Return the inverse of a matrix from its Cholesky factor.

    Parameters
    ----------
    L : Tensor
        Of shape (..., n, n): the factors of A, ``A = L @ L.mH``.
    upper : bool, default False
        Whether the factors are upper triangular: ``A = L.mH @ L``.
    out : Tensor, optional
        Tensor that the result is written to.

    Returns
    -------
    Tensor
        The inverse of A.

    Raises
    ------
    LinAlgError
        If a factor has a zero on its diagonal.
    RuntimeError
        If L is not a square matrix of floating point or complex dtype.

    Notes
    -----
    Composed of triangular solves; so is its derivative, which is triangular for L.

    Examples
    --------
    >>> cygrad.cholesky_inverse(2 * cygrad.eye(2))
    tensor([[0.2500, 0.0000],
            [0.0000, 0.2500]])
    """
    square("cholesky_inverse", L, "L")
    zeros = operators.eq(operators.diagonal(L.detach(), 0, -2, -1), 0)
    if not zeros.is_meta and values_of(zeros).any():
        raise LinAlgError("cholesky_inverse: the factor is singular (got a zero on the diagonal).")
    return into("cholesky_inverse", cholesky_solve(operators.identity_like(L.detach()), L, upper), out, casts=True)


# ---- tensors as matrices

def tensorinv(A, ind=2, *, out=None):
    """Return the inverse of a tensor with respect to `tensordot` over its first `ind` dimensions.

    Parameters
    ----------
    A : Tensor
        The product of the first `ind` sizes must equal that of the others.
    ind : int, default 2
        At least 1.
    out : Tensor, optional
        Tensor that the result is written to.

    Returns
    -------
    Tensor
        Of shape ``A.shape[ind:] + A.shape[:ind]``.

    Raises
    ------
    RuntimeError
        If sizes do not match, or `ind` is not positive.
    LinAlgError
        If A, reshaped to a matrix, is singular.

    Examples
    --------
    >>> cygrad.linalg.tensorinv(cygrad.eye(6).reshape(6, 2, 3), ind=1).shape
    (2, 3, 6)
    """
    as_tensor_argument("linalg.tensorinv", "A", A)
    if (ind := as_integer("linalg.tensorinv", "ind", ind)) <= 0:
        raise RuntimeError(f"linalg.tensorinv: ind must be positive (got {ind}).")
    first, last = tuple(A.shape[:ind]), tuple(A.shape[ind:])
    if prod(first) != prod(last):
        raise RuntimeError("linalg.tensorinv: the dimensions before ind must have as many elements as those after "
                           f"(got shape {tuple(A.shape)} and ind {ind}).")
    found, info = operators.linalg_inv_ex(operators.reshape(A, (prod(first), prod(last))))
    check_info("linalg.tensorinv", info, singular)
    return into("linalg.tensorinv", operators.reshape(found, last + first), out, casts=True)


@documented(_PARAMETERS)
def tensorsolve(A, B, dims=None, *, out=None):
    """Return X with ``tensordot(A, X, X.ndim) = B``.

    Parameters
    ----------
    A : Tensor
        Of the shape of B followed by that of X.
    B : Tensor
    dims : tuple of int, optional
        Dimensions of A that are first moved to its end.

    Raises
    ------
    RuntimeError
        If sizes do not match.
    LinAlgError
        If A, reshaped to a matrix, is singular.

    Examples
    --------
    >>> cygrad.linalg.tensorsolve(cygrad.eye(6).reshape(6, 2, 3), cygrad.ones(6)).shape
    (2, 3)
    """
    as_tensor_argument("linalg.tensorsolve", "A", A)
    as_tensor_argument("linalg.tensorsolve", "B", B)
    if dims is not None:
        dims = as_sizes("linalg.tensorsolve", "dims", dims)
        moved = sorted(as_dim("linalg.tensorsolve", dim, A.ndim) for dim in dims)
        A = operators.permute(A, (*[dim for dim in range(A.ndim) if dim not in moved], *[d % A.ndim for d in dims]))
    shape = tuple(A.shape[B.ndim:])
    if prod(shape) != prod(A.shape[:B.ndim]) or B.numel() != prod(shape):
        raise RuntimeError(f"linalg.tensorsolve: the first {B.ndim} dimensions of A must have as many elements as the "
                           f"others (got shapes {tuple(A.shape)} and {tuple(B.shape)}).")
    try:
        found = solve(operators.reshape(A, (prod(shape), prod(shape))), operators.reshape(B, (prod(shape),)))
    except LinAlgError as error:
        raise LinAlgError(str(error).replace("linalg.solve", "linalg.tensorsolve", 1)) from None
    return into("linalg.tensorsolve", operators.reshape(found, shape), out)
