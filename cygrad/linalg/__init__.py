"""
Linear algebra: factorizations, systems of equations, norms and functions of matrices.

All functions take batches of matrices in the last two dimensions, of float32, float64, complex64 and complex128,
compute them with LAPACK without the GIL, and are differentiable to any order, in forward mode too.
"""

from cygrad._core import public_dir as _public_dir
from cygrad.composite.out_forms import all_spelled
from cygrad.linalg.checks import LinAlgError
from cygrad.linalg.determinants import det, logdet, slogdet
from cygrad.linalg.factorizations import (
    cholesky,
    cholesky_ex,
    geqrf,
    householder_product,
    lu,
    lu_factor,
    lu_factor_ex,
    lu_unpack,
    ormqr,
    qr,
)
from cygrad.linalg.indefinite import ldl_factor, ldl_factor_ex, ldl_solve
from cygrad.linalg.least_squares import lstsq, matrix_rank, pinv
from cygrad.linalg.norms import cond, matrix_norm, norm, vector_norm
from cygrad.linalg.products import cross, diagonal, matmul, matrix_exp, matrix_power, multi_dot, vander, vecdot
from cygrad.linalg.solving import (
    cholesky_inverse,
    cholesky_solve,
    inv,
    inv_ex,
    lu_solve,
    solve,
    solve_ex,
    solve_triangular,
    tensorinv,
    tensorsolve,
)
from cygrad.linalg.spectral import eig, eigh, eigvals, eigvalsh, svd, svdvals

__all__ = [
    "LinAlgError", "cholesky", "cholesky_ex", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals",
    "eigvalsh", "householder_product", "inv", "inv_ex", "ldl_factor", "ldl_factor_ex", "ldl_solve", "lstsq", "lu",
    "lu_factor", "lu_factor_ex", "lu_solve", "matmul", "matrix_exp", "matrix_norm", "matrix_power", "matrix_rank",
    "multi_dot", "norm", "pinv", "qr", "slogdet", "solve", "solve_ex", "solve_triangular", "svd", "svdvals",
    "tensorinv", "tensorsolve", "vander", "vecdot", "vector_norm",
]

from cygrad.linalg import namespace

globals().update(all_spelled({name: globals()[name] for name in __all__ if name != "LinAlgError"}))
del all_spelled

FUNCTIONS = {
    "det": det, "logdet": logdet, "slogdet": slogdet, "inverse": namespace.inverse, "pinverse": namespace.pinverse,
    "cholesky": namespace.cholesky, "cholesky_inverse": cholesky_inverse, "cholesky_solve": cholesky_solve,
    "lu": namespace.lu, "lu_solve": namespace.lu_solve, "lu_unpack": lu_unpack, "qr": namespace.qr,
    "svd": namespace.svd, "matrix_power": matrix_power, "matrix_exp": matrix_exp, "geqrf": geqrf,
    "orgqr": namespace.orgqr, "ormqr": ormqr, "triangular_solve": namespace.triangular_solve,
}
METHODS = {name: function for name, function in FUNCTIONS.items() if name != "lu_unpack"}

__dir__ = _public_dir(__name__)
