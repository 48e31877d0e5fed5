"""Least squares, pseudo-inverses and ranks."""


from cygrad._core.arrays.dtype import float64, int64
from cygrad._core.creation.creation import tensor
from cygrad._core.dispatch.named_results import named_result
from cygrad._core.graph.argument_errors import as_number
from cygrad._core.graph.modes import no_grad
from cygrad._core.graph.tensor import Tensor
from cygrad._core.table.docstrings import documented
from cygrad._core.table.operator import operators
from cygrad.composite.out_forms import into
from cygrad.conversion import values_of
from cygrad.linalg.checks import broadcast_batches, check_info, matrices, not_converged, same_dtype, square

__all__ = ["lstsq", "matrix_rank", "pinv"]

# Shared parameter descriptions.
_PARAMETERS = {
    "A": "Tensor\n    Of shape (..., m, n).",
    "rcond": "float or Tensor, optional\n    PyTorch's former name of `rtol`, with an atol of 0.",
    "tol": "float or Tensor, optional\n    PyTorch's former name of `atol`, with an rtol of 0.",
    "atol, rtol": "float or Tensor, optional\n"
                  "    Singular values up to ``max(atol, rtol * largest)`` are taken as zero. By default atol is 0, "
                  "and rtol the larger\n    size times the precision, or 0 if there is a positive atol.",
    "hermitian": "bool, default False\n    Whether A is symmetric or Hermitian; only its lower triangle is read.",
}

DRIVERS = ("gels", "gelsy", "gelsd", "gelss")


def epsilon(A):
    """Return the machine epsilon of the dtype of A."""
    return {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}[A.dtype.to_real().name]


def _former(operation, name, value, *given):
    """Return 0 for the other tolerance, and the value of a former argument, which excludes atol and rtol."""
    if any(tolerance is not None for tolerance in given):
        raise TypeError(f"{operation}: expected {name}, or atol and rtol (got both).")
    return 0, value


def tolerances(operation, A, atol, rtol):
    """Return the absolute and relative tolerance as float64 Tensors; the default depends on the machine epsilon."""
    for name, value in (("atol", atol), ("rtol", rtol)):
        if isinstance(value, complex) or (isinstance(value, Tensor) and value.is_complex()):
            raise RuntimeError(f"{operation}: {name} must be real (got {getattr(value, 'dtype', value)}).")

    def real(value):
        return operators.cast(value.detach() if isinstance(value, Tensor) else tensor(value), float64)

    usual = epsilon(A) * max(A.shape[-2:])
    if atol is None:
        return tensor(0.0, dtype=float64), real(usual if rtol is None else rtol)
    atol = real(atol)
    rtol = operators.where(operators.gt(atol, 0.0), 0.0, tensor(usual, dtype=float64)) if rtol is None else real(rtol)
    return atol, rtol


@documented(_PARAMETERS)
def pinv(A, rcond=None, hermitian=False, *, atol=None, rtol=None, out=None):
    """Return the Moore-Penrose pseudo-inverse.

    Returns
    -------
    Tensor
        Of shape (..., n, m).

    Raises
    ------
    LinAlgError
        If the iteration does not converge, for example for nan or inf.
    RuntimeError
        If A is not a matrix of floating point or complex dtype.

    Notes
    -----
    Derivative: G. H. Golub and V. Pereyra, The differentiation of pseudo-inverses (1973). The function is continuous
    only where the rank is locally constant.

    Examples
    --------
    >>> cygrad.linalg.pinv(cygrad.tensor([[2., 0.], [0., 0.]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.0000]])
    """
    (square if hermitian else matrices)("linalg.pinv", A)
    if rcond is not None:
        atol, rtol = _former("linalg.pinv", "rcond", rcond, atol, rtol)
    limits = None
    if A.numel() and (atol is not None or rtol is not None):
        shape = tuple(A.shape[:-2])
        pair = [operators.expand(limit, shape) for limit in tolerances("linalg.pinv", A, atol, rtol)]
        limits = operators.stack(pair, -1)
    found, info = operators.linalg_pinv(A, limits, hermitian)
    check_info("linalg.pinv", info, not_converged)
    return into("linalg.pinv", found, out, casts=True)


@documented(_PARAMETERS)
def matrix_rank(A, tol=None, hermitian=False, *, atol=None, rtol=None, out=None):
    """Return the number of singular values above the tolerance.

    Returns
    -------
    Tensor
        Of shape (...), int64.

    Raises
    ------
    LinAlgError
        If the iteration does not converge, for example for nan or inf.
    RuntimeError
        If A is not a matrix of floating point or complex dtype.

    Examples
    --------
    >>> cygrad.linalg.matrix_rank(cygrad.tensor([[1., 2.], [2., 4.]]))
    tensor(1)
    """
    (square if hermitian else matrices)("linalg.matrix_rank", A)
    if tol is not None:
        rtol, atol = _former("linalg.matrix_rank", "tol", tol, rtol, atol)
    atol, rtol = tolerances("linalg.matrix_rank", A, atol, rtol)
    with no_grad():
        if A.numel() == 0:
            return into("linalg.matrix_rank", operators.expand(tensor(0), tuple(A.shape[:-2])).clone(), out,
                        casts=True)
        if hermitian:
            values, info = operators.linalg_eigvalsh(A.detach(), "L")
            values = operators.abs(values)
        else:
            values, info = operators.linalg_svdvals(A.detach())
        check_info("linalg.matrix_rank", info, not_converged)
        values = operators.cast(values, float64)
        limit = operators.maximum(atol, operators.mul(rtol, operators.amax(values, (-1,))))
        above = operators.gt(values, operators.unsqueeze(limit, -1))
        return into("linalg.matrix_rank", operators.sum(above, (-1,), dtype=int64), out, casts=True)


def lstsq(A, B, rcond=None, *, driver=None):
    """Return least squares solutions of systems of linear equations: the X that minimize ``norm(A @ X - B)``.

    Parameters
    ----------
    A : Tensor
        Of shape (..., m, n).
    B : Tensor
        Of shape (..., m, k), or vectors: of the shape of A without its last dimension.
    rcond : float, optional
        Singular values below ``rcond`` times the largest one are taken as zero; by default ``max(m, n)`` times the
        precision.
    driver : str, default 'gelsy'
        'gelsy': QR factorization with column pivoting; 'gels': without pivoting, for matrices of full rank; 'gelsd',
        'gelss': singular value decomposition.

    Returns
    -------
    (solution, residuals, rank, singular_values)
        A named tuple. The solution, of shape (..., n, k), has the least norm of all solutions. Residuals, the sums of
        squares of shape (..., k), are computed if m > n, all ranks are n and the driver is not 'gelsy'; the rank if it
        is not 'gels'; the singular values if it is 'gelsd' or 'gelss'. Those not computed are empty.

    Raises
    ------
    LinAlgError
        If a matrix has nan or inf, the iteration does not converge, or a matrix does not have full rank and the driver
        is 'gels'.
    RuntimeError
        If shapes or dtypes do not match, or the driver is unknown.

    Notes
    -----
    Derivative: that of ``pinv(A) @ B``.

    Examples
    --------
    >>> A = cygrad.tensor([[1., 0.], [1., 1.], [1., 2.]])
    >>> cygrad.linalg.lstsq(A, cygrad.tensor([[1.], [3.], [5.]])).solution.round(decimals=3)
    tensor([[1.],
            [2.]])
    """
    matrices("linalg.lstsq", A)
    driver = "gelsy" if driver is None else driver
    if driver not in DRIVERS:
        raise RuntimeError(f"linalg.lstsq: unknown driver (got {driver!r}, expected one of {DRIVERS}).")
    same_dtype("linalg.lstsq", A, B)
    vector = A.ndim - 1 == B.ndim and tuple(A.shape[:-1]) == tuple(B.shape)
    if vector:
        B = operators.unsqueeze(B, -1)
    if B.ndim < 2 or B.shape[-2] != A.shape[-2]:
        raise RuntimeError(f"linalg.lstsq: input.size(-2) should match other.size(-2) (got shapes {tuple(A.shape)} and "
                           f"{tuple(B.shape)}).")
    A, B = broadcast_batches(A, B)
    m, n = A.shape[-2:]
    limit = epsilon(A) * max(m, n) if rcond is None else float(as_number("linalg.lstsq", "rcond", rcond))
    solution, rank, values, info = operators.linalg_lstsq(A, B, limit, driver)
    check_info("linalg.lstsq", info, lambda info: not_converged(info) if info < 0 or driver != "gels" else
               f"the driver gels requires matrices of full rank (LAPACK returned info {info}). Use gelsy, gelsd or "
               "gelss.")
    residuals = values.new_empty((0,))
    if solution.requires_grad:                  # requires grad like the other solutions
        residuals = operators.narrow(operators.flatten(operators.abs(solution)), 0, 0, 0)
    if m > n and driver != "gelsy" and (driver == "gels" or bool((values_of(rank) == n).all())):
        missed = operators.abs(operators.sub(operators.matmul(A, solution), B))
        residuals = operators.sum(operators.square(missed), (-2,))
    solution, residuals = operators.linalg_lstsq_results([operators.squeeze(solution, (-1,)) if vector else solution,
                                                          residuals])
    if driver == "gels":
        rank = rank.new_empty((0,))
    if driver in ("gels", "gelsy"):
        values = values.new_empty((0,))
    kind = named_result("linalg_lstsq", "solution", "residuals", "rank", "singular_values")
    return kind(solution, residuals, rank, values)
