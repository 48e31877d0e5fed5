"""Samples: factorizations of matrices.

Where they are not unique, the suite looks at what is: a function of the factors, the same for us and PyTorch.
"""

import cygrad

from .linalg import NO_MATRIX, matrices, regular, square
from .sample import Sample, call, fails, only_floating


def definite(lib, A):
    """A positive definite matrix made of any one."""
    return A @ A.mH + lib.eye(A.shape[-1], dtype=A.dtype)


def hermitian(A):
    return A + A.mH


def ramp(lib, values):
    """Different weights for what belongs to different values."""
    return lib.arange(1.0, values.shape[-1] + 1.0, dtype=values.dtype)


def svd(lib):
    def function(A, full_matrices=True):
        U, S, Vh = lib.linalg.svd(A, full_matrices)
        k = S.shape[-1]
        weights = ramp(lib, S).to(U.dtype)
        return S, (U[..., :k] * weights) @ Vh[..., :k, :], abs(U[..., :k])

    return function


def eigh(lib):
    def function(A, UPLO="L"):
        L, V = lib.linalg.eigh(hermitian(A), UPLO)
        return L, (V * ramp(lib, L).to(V.dtype)) @ V.mH

    return function


def eig(lib):
    def function(A):
        L, V = lib.linalg.eig(A)
        return (L**3).sum(-1), (abs(V) * abs(L).unsqueeze(-2)**2).sum(-1)

    return function


def apart(make, dtype):
    """Real eigenvalues that differ by about 1."""
    return Sample((make((2, 3, 3), -0.2, 0.2) + cygrad.tensor([1.0, 2.0, 3.0]).diag().to(dtype),))


WRAPPED = {
    "linalg.ldl_solve": lambda lib: lambda A, B: lib.linalg.ldl_solve(*lib.linalg.ldl_factor(A), B),
    "linalg.cholesky": lambda lib: lambda A, **options: lib.linalg.cholesky(definite(lib, A), **options),
    "linalg.cholesky_ex": lambda lib: lambda A, **options: lib.linalg.cholesky_ex(definite(lib, A), **options),
    "linalg.eigh": eigh,
    "linalg.eigvalsh": lambda lib: lambda A, UPLO="L": lib.linalg.eigvalsh(hermitian(A), UPLO),
    "linalg.eig": eig,
    "linalg.eigvals": lambda lib: lambda A: (lib.linalg.eigvals(A)**3).sum(-1),
    "linalg.svd": svd,
    "linalg.lstsq": lambda lib: lambda A, B, **options: lib.linalg.lstsq(A, B, **options).solution,
    "linalg.pinv": lambda lib: lambda A, hermitian_=False, **options: (
        lib.linalg.pinv(hermitian(A), hermitian=True, **options) if hermitian_ else lib.linalg.pinv(A, **options)),
}

SAMPLES = {
    "linalg.cholesky": [*square(), *square(upper=True)[:2]],
    "linalg.cholesky_ex": square()[:2],
    "linalg.qr": [*square()[:2], *matrices(), *only_floating([call((2, 3), "complete"), call((0, 2), "complete")]),
                  NO_MATRIX, fails(RuntimeError, "mode", (2, 2), "x")],
    "linalg.svd": [*square(), *matrices(), *matrices(full_matrices=False),
                   *only_floating([call((0, 3)), call((3, 0))])],
    "linalg.svdvals": [*square(), *matrices(), *only_floating([call((0, 3))]), NO_MATRIX],
    "linalg.eigh": [*square(), *square(UPLO="U")[:2]],
    "linalg.eigvalsh": [*square(), *square(UPLO="U")[:2]],
    "linalg.eig": only_floating([apart, call((0, 2, 2)), call((0, 0))]),
    "linalg.eigvals": only_floating([apart, call((0, 2, 2))]),
    "linalg.pinv": [*square(), *matrices(), *only_floating([
        call((0, 3)), call((3, 0)), lambda make, dtype: Sample((regular(make, 3, 3), True)),
        lambda make, dtype: Sample((regular(make, 3, 3),), {"rtol": 1e-3})])],
    "linalg.lstsq": only_floating([
        call((4, 2), (4, 2)), call((2, 3), (2, 1)), call((2, 3, 2), (2, 3)), call((4, 2), (4, 1), driver="gelsd"),
        call((4, 2), (4, 1), driver="gels"), call((0, 4, 2), (0, 4, 1))]),
    "linalg.householder_product": only_floating([
        call((3, 2), (2,), low=-0.5, high=0.5), call((2, 3, 3), (2, 2), low=-0.5, high=0.5)]),
    "linalg.ldl_factor": [NO_MATRIX, *only_floating([lambda make, dtype: Sample((make((3, 3)),), fixed=(0,)),
                                                     lambda make, dtype: Sample((make((2, 4, 4)),), fixed=(0,))])],
    "linalg.ldl_solve": [lambda make, dtype: Sample((make((3, 3)), make((3, 2))), fixed=(0, 1))],
    "geqrf": [NO_MATRIX, *only_floating([lambda make, dtype: Sample((make((3, 2)),), fixed=(0,))])],
}
COMPLEX = set(SAMPLES)
HELPERS = {
    "linalg_check_phase": "linalg.svd",
    "linalg_cholesky_ex": "linalg.cholesky",
    "linalg_geqrf": "geqrf",
    "linalg_ldl_factor_ex": "linalg.ldl_factor",
    "linalg_ldl_solve": "linalg.ldl_solve",
    "linalg_qr": "linalg.qr",
    "linalg_svd": "linalg.svd",
    "linalg_svdvals": "linalg.svdvals",
    "linalg_eigh": "linalg.eigh",
    "linalg_eigvalsh": "linalg.eigvalsh",
    "linalg_eig": "linalg.eig",
    "linalg_eigvals": "linalg.eigvals",
    "linalg_pinv": "linalg.pinv",
    "linalg_lstsq": "linalg.lstsq",
}
