"""Cumulative sums and products compared with PyTorch, and rows for derivatives of reductions."""

import numpy as np
import pytest

import cygrad._core.kernels.reduction.reductions
import cygrad._core.kernels.reduction.scan  # noqa: F401
from cygrad._core.arrays import dtype as dtypes
from cygrad._core.testing.interop import call_kernel
from cygrad._core.threads.parallel import set_num_threads
from tests.reference import as_torch, torch
from tests.tools import layouts

ALL = ["bool", "uint8", "int8", "int16", "int32", "int64", "float32", "float64", "complex64", "complex128"]
SHAPES = [(), (1,), (6,), (3, 4), (4, 3, 5), (3, 700), (700, 3), (0, 3), (3, 0)]


def numbers(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    if dtype.startswith("complex"):
        return np.asarray(np.exp(1j * x)).astype(dtype)
    if dtype.startswith("float"):
        return np.asarray(np.sign(x) + 0.02 * x).astype(dtype)
    return np.asarray(rng.integers(0, 3, shape)).astype(dtype)


def close(ours, theirs):
    theirs = theirs.detach().resolve_conj().numpy()
    assert ours.dtype == theirs.dtype
    assert ours.shape == theirs.shape
    tolerance = 2e-4 if ours.dtype in (np.float32, np.complex64) else 1e-10
    np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", ALL)
def test_scans(dtype):
    for shape in SHAPES:
        for x in layouts(numbers(shape, dtype)):
            t = as_torch(x)
            for dim in range(-max(x.ndim, 1), max(x.ndim, 1)):
                close(call_kernel("cumsum", x, dim, None)[0], t.cumsum(dim))
                close(call_kernel("cumprod", x, dim, None)[0], t.cumprod(dim))
                turned = t.flip(dim).cumsum(dim).flip(dim) if x.ndim else t.cumsum(0)
                close(call_kernel("cumsum_reverse", x, dim)[0], turned)


@pytest.mark.parametrize("dtype", ["int64", "float32", "float64", "complex64"])
def test_rows_scanned_together_equal_rows_scanned_alone(dtype):
    for rows, n in ((5, 1), (7, 40), (4, 3), (9, 1030)):
        x = numbers((rows, n), dtype)
        for name, more in (("cumsum", (None,)), ("cumprod", (None,)), ("cumsum_reverse", ())):
            alone = np.concatenate([call_kernel(name, x[k:k + 1], 1, *more)[0] for k in range(rows)])
            assert call_kernel(name, x, 1, *more)[0].tobytes() == alone.tobytes()
        for reverse in (False, True):
            by_columns = call_kernel("product_before", np.ascontiguousarray(x.T), 0, reverse)[0].T
            assert call_kernel("product_before", x, 1, reverse)[0].tobytes() == by_columns.tobytes()
        if dtype != "int64":
            for reverse in (False, True):
                alone = np.concatenate([call_kernel("linear_recurrence", x[k:k + 1], x[k:k + 1], 1, reverse)[0]
                                        for k in range(rows)])
                assert call_kernel("linear_recurrence", x, x, 1, reverse)[0].tobytes() == alone.tobytes()


@pytest.mark.parametrize("dtype", ["int64", "float32", "float64", "complex64"])
def test_exclusive_products_are_those_of_all_others(dtype):
    for shape in ((1,), (6,), (3, 5), (4, 3)):
        x = numbers(shape, dtype)
        x.flat[-1] = 0
        for dim in range(x.ndim):
            others = [np.prod(np.delete(x, k, dim), dim) for k in range(shape[dim])]
            close(call_kernel("exclusive_product", x, dim)[0], torch.from_numpy(np.stack(others, dim)))


def test_exclusive_products_are_zero_next_to_overflow():
    x = np.array([1e30, 1e30, 0, 2, np.nan], "float32")
    assert call_kernel("exclusive_product", x[:4], 0)[0].tolist() == [0, 0, np.inf, 0]
    assert np.isnan(call_kernel("exclusive_product", x, 0)[0][:4]).all()


def test_dtype_and_errors():
    x = np.full(300, 100, "uint8")
    for name in ALL[1:]:
        close(call_kernel("cumsum", x, 0, getattr(dtypes, name))[0],
              torch.from_numpy(x).cumsum(0, dtype=getattr(torch, name)))
    with pytest.raises(IndexError, match="cumsum: dimension out of range"):
        call_kernel("cumsum", x, 1, None)


def test_unreduce():
    x = np.arange(24.0).reshape(2, 3, 4)
    for dims in (None, (0,), (1,), (-1, 0), (0, 1, 2)):
        for keepdim in (False, True):
            total = np.asarray(x.sum(tuple(dims) if dims else None, keepdims=keepdim))
            wide = call_kernel("unreduce", total, x.shape, dims, keepdim, raw=True)[0]
            expected = x.sum(tuple(dims) if dims else None, keepdims=True)
            np.testing.assert_array_equal(wide, np.broadcast_to(expected, x.shape))
            assert np.shares_memory(wide, total)
    with pytest.raises(RuntimeError, match="unreduce: 'grad' has the wrong shape"):
        call_kernel("unreduce", np.ones(3), (2, 3), (1,), False)


def test_select_backward_index():
    x = numbers((3, 4, 5), "float64")
    for dim in range(-3, 3):
        for keepdim in (False, True):
            t = torch.from_numpy(x.copy()).requires_grad_()
            values, indices = t.max(dim, keepdim=keepdim)
            grad = numbers(tuple(values.shape), "float64", 1)
            values.backward(torch.from_numpy(grad))
            ours = call_kernel("select_backward_index", grad, x.shape, dim, indices.numpy(), keepdim)[0]
            close(ours, t.grad)
    assert call_kernel("select_backward_index", np.array(2.0), (), 0, np.array(0), False)[0] == 2
    with pytest.raises(IndexError, match="index out of range"):
        call_kernel("select_backward_index", np.ones(2), (2, 3), 1, np.array([0, 3]), False)


def test_equal():
    for dtype in ALL:
        x = numbers((3, 4), dtype)
        assert call_kernel("equal", x, x.copy())[0]
        assert call_kernel("equal", x.T, x.copy().T)[0]
        other = x.copy()
        other[-1, -1] = not other[-1, -1] if dtype == "bool" else other[-1, -1] + 1
        assert not call_kernel("equal", x, other)[0]
        assert not call_kernel("equal", x, x.reshape(4, 3))[0]
    assert call_kernel("equal", np.array([1]), np.array([1.0]))[0]
    assert call_kernel("equal", np.array([0.0]), np.array([-0.0]))[0]
    assert not call_kernel("equal", np.array([np.nan]), np.array([np.nan]))[0]
    assert call_kernel("equal", np.empty((0, 2)), np.empty((0, 2)))[0]
    for dtype in ("int8", "float32", "float64", "complex64", "complex128"):
        x = np.ones(300_001, dtype)
        assert call_kernel("equal", x, x.copy())[0]
        for place in (0, 4095, 4096, 150_000, 300_000):
            other = x.copy()
            other[place] = 2
            assert not call_kernel("equal", x, other)[0]


def test_same_bits_for_any_number_of_threads():
    x = numbers((300, 900), "float32")
    results = []
    for threads in (1, 2, 3, 8):
        set_num_threads(threads)
        results.append([call_kernel("cumsum", x, dim, None)[0].tobytes() for dim in range(2)])
    set_num_threads(1)
    assert all(found == results[0] for found in results)
