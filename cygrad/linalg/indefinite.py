"""LDL factorizations of symmetric and Hermitian matrices, definite or not."""


from cygrad._core.dispatch.named_results import named_result
from cygrad._core.table.operator import operators
from cygrad.composite.out_forms import into
from cygrad.linalg.checks import broadcast_batches, check_info, matrices, same_dtype, square

__all__ = ["ldl_factor", "ldl_factor_ex", "ldl_solve"]


def _zero_block(info):
    return (f"linalg.ldl_factor: the matrix is singular (the block of D at {info} is zero). Regularize it, or use "
            "ldl_factor_ex.")


def ldl_factor_ex(A, *, hermitian=False, check_errors=False, out=None):
    """Return LDL factors and an error code for each matrix instead of raising an error. See `ldl_factor`.

    Parameters
    ----------
    A : Tensor
        Of shape (..., n, n); only the lower triangles are read.
    hermitian : bool, default False
        Whether complex matrices are Hermitian instead of symmetric.
    check_errors : bool, default False
        Raise an error for singular matrices.
    out : tuple of Tensor, optional
        Tensors that the results are written to.

    Returns
    -------
    (LD, pivots, info)
        A named tuple; `info`, int32, is 0 or the index, from 1, of the first zero block of D.

    Raises
    ------
    LinAlgError
        If `check_errors`, and a matrix is singular.
    RuntimeError
        If A is not a square matrix of floating point or complex dtype.

    Notes
    -----
    Not differentiable.

    Examples
    --------
    >>> cygrad.linalg.ldl_factor_ex(cygrad.zeros(2, 2)).info
    tensor(1, dtype=cygrad.int32)
    """
    found = operators.linalg_ldl_factor_ex(square("linalg.ldl_factor_ex", A), bool(hermitian))
    if check_errors:
        check_info("linalg.ldl_factor_ex", found.info, _zero_block)
    return into("linalg.ldl_factor_ex", found, out)


def ldl_factor(A, *, hermitian=False, out=None):
    """Return the factorization ``A = L @ D @ L.mT`` of symmetric matrices, in the compact form that `ldl_solve` takes.

    Parameters
    ----------
    A : Tensor
        Of shape (..., n, n); only the lower triangles are read.
    hermitian : bool, default False
        Whether complex matrices are Hermitian instead of symmetric; then ``A = L @ D @ L.mH``.
    out : tuple of Tensor, optional
        Tensors that the results are written to.

    Returns
    -------
    (LD, pivots)
        A named tuple: L is below the diagonal of LD, the blocks of D, of 1 or 2 rows, are on it, and `pivots` holds the
        row exchanges in the format of LAPACK.

    Raises
    ------
    LinAlgError
        If a block of D is zero.
    RuntimeError
        If A is not a square matrix of floating point or complex dtype.

    Notes
    -----
    Not differentiable.

    Examples
    --------
    >>> LD, pivots = cygrad.linalg.ldl_factor(cygrad.tensor([[2., 0.], [4., 1.]]))
    >>> cygrad.linalg.ldl_solve(LD, pivots, cygrad.tensor([[6.], [5.]]))
    tensor([[1.],
            [1.]])
    """
    LD, pivots, info = operators.linalg_ldl_factor_ex(square("linalg.ldl_factor", A), bool(hermitian))
    check_info("linalg.ldl_factor", info, _zero_block)
    return into("linalg.ldl_factor", named_result("linalg_ldl_factor", "LD", "pivots")(LD, pivots), out)


def ldl_solve(LD, pivots, B, *, hermitian=False, out=None):
    """Solve systems of linear equations with the factors of `ldl_factor`.

    Parameters
    ----------
    LD, pivots : Tensor
        Result of `ldl_factor` for A.
    B : Tensor
        Of shape (..., n, k).
    hermitian : bool, default False
        As in `ldl_factor`.
    out : Tensor, optional
        Tensor that the result is written to.

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
    Not differentiable.

    Examples
    --------
    >>> LD, pivots = cygrad.linalg.ldl_factor(cygrad.tensor([[0., 2.], [2., 0.]]))
    >>> cygrad.linalg.ldl_solve(LD, pivots, cygrad.tensor([[2.], [4.]]))
    tensor([[2.],
            [1.]])
    """
    operation = "linalg.ldl_solve"
    square(operation, LD, "LD")
    matrices(operation, B, "B")
    same_dtype(operation, LD, B)
    if tuple(pivots.shape) != tuple(LD.shape[:-1]):
        raise RuntimeError(f"{operation}: expected one pivot for each row of LD (got shapes {tuple(LD.shape)} and "
                           f"{tuple(pivots.shape)}).")
    if pivots.is_floating_point() or pivots.is_complex():
        raise RuntimeError(f"{operation}: pivots must be integers (got {pivots.dtype}).")
    wide, B = broadcast_batches(LD, B)
    pivots = operators.expand(pivots.int(), tuple(wide.shape[:-1]))
    return into(operation, operators.linalg_ldl_solve(wide, pivots, B, bool(hermitian)), out)
