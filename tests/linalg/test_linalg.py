"""Linear algebra: errors, singular matrices, phases, sizes, threads, deprecated names."""

import math
import warnings

import numpy as np
import pytest

import cygrad
from cygrad import linalg
from cygrad._core.table.operator import operators
from cygrad.autograd import gradcheck, gradgradcheck
from tests.reference import torch
from tests.tools import random_array

DTYPES = [np.float32, np.float64, np.complex64, np.complex128]


def close(found, expected, dtype=np.float64):
    single = np.dtype(dtype) in (np.float32, np.complex64)
    np.testing.assert_allclose(np.asarray(found.detach()), expected, rtol=1e-3 if single else 1e-9,
                               atol=1e-3 if single else 1e-9)


def adjoint(values):
    return values.conj().swapaxes(-1, -2)


# ---- values, at sizes where LAPACK works in blocks

@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (70, 70), (90, 40), (40, 90), (3, 5, 4)])
def test_factors_give_the_matrix(shape, dtype):
    values = random_array(*shape, dtype=dtype)
    A = cygrad.from_numpy(values)
    k = min(shape[-2:])
    for full in (False, True):
        U, S, Vh = linalg.svd(A, full)
        close((U[..., :k] * S.unsqueeze(-2).to(U.dtype)) @ Vh[..., :k, :], values, dtype)
        close(U.mH @ U, np.broadcast_to(np.eye(U.shape[-1]), (*shape[:-2], U.shape[-1], U.shape[-1])), dtype)
    close(linalg.svdvals(A), np.linalg.svd(values, compute_uv=False), dtype)
    for mode in ("reduced", "complete"):
        Q, R = linalg.qr(A, mode)
        close(Q @ R, values, dtype)
        assert not np.tril(np.asarray(R), -1).any()
    close(abs(linalg.qr(A, "r").R), abs(np.asarray(linalg.qr(A).R)), dtype)
    P, L, U = linalg.lu(A)
    close(P @ L @ U, values, dtype)
    close(linalg.pinv(A), np.linalg.pinv(values), dtype)
    if shape[-2] >= shape[-1]:
        close(linalg.householder_product(*cygrad.geqrf(A)), np.asarray(linalg.qr(A).Q), dtype)
    for driver in ("gels", "gelsy", "gelsd", "gelss"):
        B = random_array(*shape[:-1], 3, dtype=dtype, seed=1)
        close(linalg.lstsq(A, cygrad.from_numpy(B), driver=driver).solution, np.linalg.pinv(values) @ B, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (60, 60), (4, 3, 3)])
def test_square_matrices(shape, dtype):
    values = random_array(*shape, dtype=dtype)
    A, n = cygrad.from_numpy(values), shape[-1]
    L, V = linalg.eig(A)
    close(A.to(V.dtype) @ V, np.asarray(V * L.unsqueeze(-2)), dtype)
    close(abs(V).square().sum(-2), np.ones((*shape[:-2], n)), dtype)
    definite = (values @ adjoint(values) + n * np.eye(n)).astype(dtype)
    H = cygrad.from_numpy(definite)
    for triangle in "LUlu":
        L, V = linalg.eigh(H, triangle)
        close((V * L.unsqueeze(-2).to(V.dtype)) @ V.mH, definite, dtype)
        close(linalg.eigvalsh(H, triangle), np.linalg.eigvalsh(definite), dtype)
    for upper in (False, True):
        factor = linalg.cholesky(H, upper=upper)
        close(factor.mH @ factor if upper else factor @ factor.mH, definite, dtype)
    close(linalg.inv(H) @ H, np.broadcast_to(np.eye(n), shape), dtype)
    sign, logarithm = linalg.slogdet(A)
    close(sign, np.linalg.slogdet(values)[0], dtype)
    close(logarithm, np.linalg.slogdet(values)[1], dtype)


@pytest.mark.parametrize("factor", [1e-3, 0.1, 0.5, 1.5, 4.0, 30.0])
@pytest.mark.parametrize("dtype", DTYPES)
def test_matrix_exp_of_every_degree(dtype, factor):
    values = (random_array(4, 4, dtype=dtype) * factor / 4).astype(dtype)
    L, V = np.linalg.eig(values.astype(np.complex128))
    expected = (V * np.exp(L)) @ np.linalg.inv(V)
    found = np.asarray(linalg.matrix_exp(cygrad.from_numpy(values)))
    size = abs(expected).max()
    single = dtype in (np.float32, np.complex64)
    np.testing.assert_allclose(found / size, expected / size, atol=1e-5 if single else 1e-11)


# ---- errors

@pytest.mark.parametrize(("call", "text"), [
    (lambda: linalg.inv(cygrad.zeros(2, 2)), "linalg.inv: The matrix is singular.*at 1"),
    (lambda: linalg.inv(cygrad.zeros(3, 2, 2)), r"Batch element 0"),
    (lambda: linalg.solve(cygrad.zeros(2, 2), cygrad.ones(2)), "singular"),
    (lambda: linalg.solve_ex(cygrad.zeros(2, 2), cygrad.ones(2), check_errors=True), "singular"),
    (lambda: linalg.cholesky(-cygrad.eye(2)), "the leading minor of order 1"),
    (lambda: linalg.cholesky_ex(-cygrad.eye(2), check_errors=True), "not positive-definite"),
    (lambda: linalg.cholesky(cygrad.full((2, 2), float("nan"))), "not positive-definite"),
    (lambda: linalg.lu_factor(cygrad.zeros(2, 2)), r"U\[1,1\] is zero"),
    (lambda: linalg.svd(cygrad.full((2, 2), float("nan"))), "nan or infinite"),
    (lambda: linalg.svdvals(cygrad.full((2, 2), float("inf"))), "nan or infinite"),
    (lambda: linalg.pinv(cygrad.full((2, 2), float("nan"))), "nan or infinite"),
    (lambda: linalg.lstsq(cygrad.full((2, 2), float("nan")), cygrad.ones(2, 1)), "nan or infinite"),
    (lambda: linalg.eig(cygrad.full((2, 2), float("nan"))), "must be finite"),
    (lambda: linalg.eigvals(cygrad.full((1, 2, 2), float("inf"))), "must be finite"),
    (lambda: linalg.matrix_power(cygrad.zeros(2, 2), -1), "singular"),
    (lambda: linalg.tensorsolve(cygrad.zeros(2, 2), cygrad.ones(2)), "linalg.tensorsolve"),
])
def test_no_result(call, text):
    with pytest.raises(linalg.LinAlgError, match=text):
        call()
    assert issubclass(linalg.LinAlgError, RuntimeError)


@pytest.mark.parametrize(("call", "error", "text"), [
    (lambda: linalg.inv(cygrad.ones(2, 2, dtype=cygrad.int64)), RuntimeError, "floating point or complex"),
    (lambda: linalg.inv([[1.0]]), TypeError, "Tensor"),
    (lambda: linalg.solve(cygrad.eye(2), cygrad.ones(2, dtype=cygrad.float64)), RuntimeError, "same dtype"),
    (lambda: linalg.eigh(cygrad.eye(2), "X"), RuntimeError, "UPLO"),
    (lambda: linalg.svd(cygrad.eye(2), driver="gesvd"), RuntimeError, "driver"),
    (lambda: linalg.lstsq(cygrad.eye(2), cygrad.eye(2), driver="x"), RuntimeError, "driver"),
    (lambda: linalg.lstsq(cygrad.eye(2), cygrad.ones(3, 1)), RuntimeError, "should match"),
    (lambda: linalg.householder_product(cygrad.ones(2, 3), cygrad.ones(2)), RuntimeError, "as many rows"),
    (lambda: linalg.householder_product(cygrad.ones(3, 2), cygrad.ones(3)), RuntimeError, "tau"),
    (lambda: cygrad.ormqr(cygrad.ones(3, 2), cygrad.ones(2), cygrad.ones(2, 2)), RuntimeError, "do not match"),
    (lambda: linalg.lu_solve(cygrad.eye(2), cygrad.ones(2), cygrad.eye(2)), RuntimeError, "int32"),
    (lambda: linalg.lu_solve(cygrad.eye(2), cygrad.ones(1, dtype=cygrad.int32), cygrad.eye(2)), RuntimeError, "pivot "),
    (lambda: linalg.lu_solve(cygrad.eye(2), cygrad.full((2,), 9, dtype=cygrad.int32), cygrad.eye(2)), RuntimeError,
     "count rows from 1"),
    (lambda: linalg.vector_norm(cygrad.ones(2, dtype=cygrad.float64), dtype=cygrad.float32), RuntimeError, "narrowing"),
    (lambda: linalg.pinv(cygrad.eye(2), atol=cygrad.tensor(1j)), RuntimeError, "complex"),
])
def test_bad_arguments(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_eigh_of_nan_is_nan():
    L, V = linalg.eigh(cygrad.full((2, 2), float("nan")))
    assert np.isnan(np.asarray(L)).all()
    assert np.isnan(np.asarray(V)).all()


# ---- derivatives where the common suite does not look

@pytest.mark.parametrize("complex_", [False, True])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_determinant_of_singular_matrices(rank, complex_):
    """The first three derivatives are polynomials: finite differences show them at every rank."""
    dtype = np.complex128 if complex_ else np.float64
    values = random_array(4, rank, dtype=dtype) @ random_array(rank, 4, dtype=dtype, seed=1)
    A = cygrad.from_numpy(values).requires_grad_()
    assert gradcheck(linalg.det, [A])
    assert gradgradcheck(linalg.det, [A])
    direction = cygrad.from_numpy(random_array(4, 4, dtype=dtype, seed=2)).requires_grad_()
    assert gradcheck(operators.linalg_cofactor_backward, [direction, A])
    minors = [[(-1)**(i + j) * np.linalg.det(np.delete(np.delete(values, i, 0), j, 1)) for j in range(4)]
              for i in range(4)]
    (gradient,) = cygrad.autograd.grad(linalg.det(A), A, cygrad.ones((), dtype=A.dtype))
    close(gradient, np.conj(minors))


@pytest.mark.parametrize("complex_", [False, True])
@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_third_and_fourth_derivative_of_the_determinant(size, complex_):
    dtype = np.complex128 if complex_ else np.float64
    G, H, A = (cygrad.from_numpy(random_array(size, size, dtype=dtype, seed=seed)).requires_grad_()
               for seed in (0, 1, 2))
    assert gradcheck(operators.linalg_cofactor_backward, [G, A])
    assert gradgradcheck(operators.linalg_cofactor_backward, [G, A])
    assert gradcheck(operators.linalg_cofactor_second, [G, H, A])


def test_third_derivative_of_the_determinant_at_zero():
    """Of three rows, at the zero matrix: the sum over permutations is all that is left."""
    A = cygrad.zeros(3, 3, dtype=cygrad.float64, requires_grad=True)
    weight = cygrad.arange(9, dtype=cygrad.float64).reshape(3, 3) ** 2
    value = linalg.det(A)
    for _ in range(3):
        (gradient,) = cygrad.autograd.grad(value, A, create_graph=True)
        value = (gradient * weight).sum()
    wanted = [[2 * (weight[(i + 1) % 3, (j + 1) % 3] * weight[(i + 2) % 3, (j + 2) % 3]
                    - weight[(i + 1) % 3, (j + 2) % 3] * weight[(i + 2) % 3, (j + 1) % 3]).item()
               for j in range(3)] for i in range(3)]
    close(gradient, wanted)


@pytest.mark.parametrize("call", [
    lambda A: linalg.svd(A).U[0, 0].real,
    lambda A: linalg.svd(A).Vh.imag.sum(),
    lambda A: linalg.eigh(A + A.mH).eigenvectors[0, 0].imag,
    lambda A: linalg.eig(A).eigenvectors[0, 1].imag,
])
def test_functions_of_phases_are_refused(call):
    A = cygrad.from_numpy(random_array(3, 3, dtype=np.complex128)).requires_grad_()
    with pytest.raises(RuntimeError, match="factor"):
        call(A).backward()


@pytest.mark.parametrize(("mode", "text"), [("r", "mode='r'"), ("complete", "mode='complete'")])
def test_qr_without_derivative(mode, text):
    A = cygrad.from_numpy(random_array(3, 2)).requires_grad_()
    with pytest.raises(RuntimeError, match=text):
        linalg.qr(A, mode).R.sum().backward()


def test_singular_values_need_not_differ():
    """The derivative of their sum is that of the nuclear norm, here at a multiple of the identity."""
    A = (3 * cygrad.eye(3, dtype=cygrad.float64)).requires_grad_()
    for values in (linalg.svdvals(A), linalg.svd(A).S, linalg.eigvalsh(A), linalg.eigh(A).eigenvalues):
        (gradient,) = cygrad.autograd.grad(values.sum(), A)
        close(gradient, np.eye(3))


def test_residuals_and_ranks():
    A, B = random_array(5, 2), random_array(5, 3, seed=1)
    found = linalg.lstsq(cygrad.from_numpy(A), cygrad.from_numpy(B), driver="gelsd")
    solution, residuals, rank, values = np.linalg.lstsq(A, B, rcond=None)
    for mine, theirs in zip(found, (solution, residuals, rank, values), strict=True):
        close(mine, theirs)
    deficient = cygrad.from_numpy(np.outer(A[:, 0], [1.0, 2.0, 3.0]))
    assert linalg.lstsq(deficient, cygrad.from_numpy(B)).rank.item() == 1
    assert linalg.matrix_rank(deficient).item() == 1
    assert linalg.matrix_rank(deficient, atol=1e9).item() == 0
    assert linalg.matrix_rank(cygrad.zeros(2, 0, 3)).tolist() == [0, 0]


def test_factors_serve_all_orders():
    """A system of equations is factorized once, however often it is differentiated."""
    A = cygrad.from_numpy(random_array(3, 3)).requires_grad_()
    result = linalg.solve(A, cygrad.ones(3, dtype=cygrad.float64))
    (first,) = cygrad.autograd.grad(result.sum(), A, create_graph=True)
    seen, stack = set(), [first.grad_fn]
    while stack:
        node = stack.pop()
        if node is not None and node not in seen:
            seen.add(node)
            stack += [edge[0] for edge in node.next_functions]
    names = {type(node).__name__ for node in seen}
    assert "LinalgSolveWithBackward0" in names
    assert not any("Factor" in name for name in names)


# ---- threads

def test_same_bits_for_any_number_of_threads():
    values = random_array(400, 8, 8)
    found = []
    for count in (1, 2, 4):
        with cygrad.threads(count):
            A = cygrad.from_numpy(values)
            found.append([np.asarray(part).tobytes() for part in (
                *linalg.svd(A), *linalg.qr(A), linalg.inv(A), linalg.matrix_exp(A), linalg.det(A), *linalg.eig(A))])
    assert found[0] == found[1] == found[2]


# ---- names of the package itself

@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 2, 4, 7, 8])
def test_batches_of_small_matrices_equal_single_ones(n, dtype):
    values = random_array(37, n, n, dtype=dtype)
    values[3], values[5, :, 0], values[6, 0] = 0, 0, np.nan
    sides = random_array(37, n, 11, dtype=dtype)
    factors = linalg.lu_factor_ex(cygrad.from_numpy(values))
    for adjoint_ in (False, True):
        found = linalg.lu_solve(*factors[:2], cygrad.from_numpy(sides), adjoint=adjoint_).numpy()
        single = [linalg.lu_solve(LU, pivots, cygrad.tensor(b), adjoint=adjoint_).numpy()
                  for LU, pivots, b in zip(*factors[:2], sides, strict=True)]
        np.testing.assert_array_equal(found, single)
        assert np.allclose((values[8:].swapaxes(1, 2) if adjoint_ else values[8:]) @ found[8:], sides[8:],
                           rtol=1e-2 if dtype == np.float32 else 1e-8, atol=1e-2 if dtype == np.float32 else 1e-8)
    for k, matrix in enumerate(values):
        for ours, one in zip(factors, linalg.lu_factor_ex(cygrad.tensor(matrix)), strict=True):
            np.testing.assert_array_equal(ours.numpy()[k], one.numpy())
    assert factors.info.tolist()[:7] == [0, 0, 0, 1, 0, 1, 0]


@pytest.mark.parametrize("name", ["cholesky", "qr", "svd", "lu", "lu_solve", "triangular_solve", "pinverse", "inverse",
                                  "orgqr", "ormqr"])
def test_older_names(name):
    values, other = random_array(3, 3) + 3 * np.eye(3), random_array(3, 2, seed=1)

    def call(library):
        A, B = library.from_numpy(values.copy()), library.from_numpy(other.copy())
        arguments = {"cholesky": (A @ A.mT,), "lu_solve": (B, *library.linalg.lu_factor(A)), "triangular_solve": (B, A),
                     "orgqr": library.geqrf(A), "ormqr": (*library.geqrf(A), B)}.get(name, (A,))
        found = getattr(library, name)(*arguments)
        if name == "svd":
            return [found.S, (found.U * found.S) @ found.V.mT]
        assert getattr(library.Tensor, name)(*arguments)[0].shape == found[0].shape
        return list(found) if isinstance(found, tuple) else [found]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = call(torch)
    for mine, theirs in zip(call(cygrad), expected, strict=True):
        assert str(mine.dtype).rpartition(".")[2] == str(theirs.dtype).rpartition(".")[2]
        close(mine, theirs.numpy())


def test_svd_without_vectors():
    U, S, V = cygrad.svd(cygrad.ones(2, 3), compute_uv=False)
    assert (U.shape, S.shape, V.shape) == ((2, 2), (2,), (3, 3))
    assert not np.asarray(U).any()


def test_out():
    A, target = cygrad.from_numpy(random_array(3, 3)), cygrad.empty(0, dtype=cygrad.float64)
    assert linalg.inv(A, out=target) is target
    close(target, np.linalg.inv(random_array(3, 3)))
    Q, R = cygrad.empty(0, dtype=cygrad.float64), cygrad.empty(0, dtype=cygrad.float64)
    assert linalg.qr(A, out=(Q, R)).Q is Q
    close(Q @ R, random_array(3, 3))


@pytest.mark.parametrize("p", [1, -1, math.inf, -math.inf, "fro", "nuc"])
def test_cond_of_singular_matrices_is_inf_and_of_nan_is_nan(p):
    batch = cygrad.stack([cygrad.zeros(2, 2), cygrad.eye(2), cygrad.tensor([[1.0, 0], [0, 0]])])
    found = cygrad.linalg.cond(batch, p)
    assert found[0] == math.inf and found[2] == math.inf
    cygrad.testing.assert_close(found[1], cygrad.linalg.cond(cygrad.eye(2), p))
    if p != "nuc":
        assert cygrad.linalg.cond(cygrad.full((2, 2), math.nan), p).isnan()


def test_former_tolerances_of_matrix_rank_and_pinv():
    a = cygrad.diag(cygrad.tensor([4.0, 2, 0.5]))
    one = cygrad.tensor(1.0)
    for found in (cygrad.linalg.matrix_rank(a, 1.0), cygrad.linalg.matrix_rank(a, tol=one, hermitian=True),
                  cygrad.linalg.matrix_rank(a, 1.0, True)):
        assert found == 2
    assert cygrad.linalg.matrix_rank(a * 0 + 1e-9, 0) >= 1
    expected = cygrad.diag(cygrad.tensor([0.25, 0.5, 0]))
    for found in (cygrad.linalg.pinv(a, 0.2), cygrad.linalg.pinv(a, rcond=0.2), cygrad.linalg.pinv(a, 0.2, True)):
        cygrad.testing.assert_close(found, expected)
    with pytest.raises(TypeError, match="rcond, or atol and rtol"):
        cygrad.linalg.pinv(a, 0.2, rtol=0.1)


def test_addr_promotes_dtypes():
    x, y = cygrad.tensor([1, 2]), cygrad.tensor([0.5, 1])
    found = cygrad.addr(cygrad.ones(2, 2, dtype=cygrad.float64), x, y, beta=1.5)
    assert found.dtype is cygrad.float64 and found.tolist() == [[2, 2.5], [2.5, 3.5]]
    assert cygrad.addr(cygrad.ones(2, 2, dtype=cygrad.int64), x, y, beta=0.5).tolist() == [[1, 1.5], [1.5, 2.5]]


def test_coefficients_of_sums_of_products_fit_the_dtype():
    x, v = cygrad.ones(2, 2), cygrad.ones(2)
    calls = {
        "addr": lambda c, dtype: cygrad.addr(x.to(dtype), v.to(dtype), v.to(dtype), alpha=c),
        "addmv": lambda c, dtype: cygrad.addmv(v.to(dtype), x.to(dtype), v.to(dtype), beta=c),
        "addbmm": lambda c, dtype: cygrad.addbmm(x.to(dtype), x[None].to(dtype), x[None].to(dtype), alpha=c),
        "baddbmm": lambda c, dtype: cygrad.baddbmm(x[None].to(dtype), x[None].to(dtype), x[None].to(dtype), beta=c)}
    for name, call in calls.items():
        for dtype in (cygrad.float32, cygrad.int64):
            with pytest.raises(RuntimeError, match=f"^{name}: beta and alpha must be real"):
                call(2j, dtype)
        assert call(2j, cygrad.complex64).is_complex()
    for dtype in (cygrad.float32, cygrad.int64):
        with pytest.raises(RuntimeError, match="addr: Boolean beta and alpha"):
            calls["addr"](True, dtype)
    assert calls["addr"](True, cygrad.bool).tolist() == [[True] * 2] * 2


def test_inverse_from_a_singular_factor_is_an_error():
    for factor in ([[1.0, 0.0], [1.0, 0.0]], [[0.0, 0.0], [1.0, 1.0]]):
        with pytest.raises(cygrad.linalg.LinAlgError, match="singular"):
            cygrad.cholesky_inverse(cygrad.tensor([[[1.0, 0.0], [0.0, 1.0]], factor]))


@pytest.mark.parametrize("dtype", [cygrad.float32, cygrad.complex128])
def test_gelss_drops_all_singular_values_for_an_rcond_of_one(dtype):
    """LAPACK's gelss does; gelsd takes its default instead."""
    a, b = cygrad.tensor([[3.0, 1.0], [1.0, 2.0]], dtype=dtype), cygrad.tensor([[5.0], [5.0]], dtype=dtype)
    for rcond in (1.0, 2.0):
        found = cygrad.linalg.lstsq(a, b, rcond=rcond, driver="gelss")
        assert found.rank.item() == 0 and found.solution.tolist() == [[0], [0]]
        found = cygrad.linalg.lstsq(a, b, rcond=rcond, driver="gelsd")
        assert found.rank.item() == 2 and cygrad.allclose(found.solution, cygrad.tensor([[1], [2]]).to(dtype))
    assert cygrad.linalg.lstsq(a, b, rcond=0.5, driver="gelss").rank.item() == 1
