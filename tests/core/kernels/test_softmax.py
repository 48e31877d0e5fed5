"""Softmax and its derivative against PyTorch, for all layouts and any number of threads."""

import numpy as np
import pytest

import cygrad
import cygrad._core.kernels.reduction.softmax
from cygrad._core.arrays import dtype as dtypes
from cygrad._core.testing.interop import call_kernel
from cygrad._core.threads.parallel import set_num_threads
from tests.reference import as_torch, torch

SHAPES = [(), (1,), (7,), (3, 5), (5, 3000), (40, 3, 300), (2, 3, 4, 5), (0, 3), (3, 0)]


def layouts(shape, dtype):
    x = np.asarray(np.random.default_rng(0).standard_normal(shape) * 5).astype(dtype)
    yield x
    yield x.T
    if x.ndim:
        yield x[::-1]
        yield np.broadcast_to(x[:1], x.shape)


def close(ours, theirs):
    theirs = theirs.detach().numpy()
    assert ours.dtype == theirs.dtype
    assert ours.shape == theirs.shape
    tolerance = 3e-5 if ours.dtype == np.float32 else 1e-13  # the errors of PyTorch
    np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_forward_and_backward(name, shape, dtype):
    for x in layouts(shape, dtype):
        for dim in range(-max(x.ndim, 1), max(x.ndim, 1)):
            t = as_torch(x).requires_grad_()
            theirs = getattr(torch, name)(t, dim)
            ours = call_kernel(name, x, dim, None)[0]
            close(ours, theirs)
            grad = np.asarray(np.random.default_rng(1).standard_normal(x.shape)).astype(dtype)
            theirs.backward(torch.from_numpy(grad))
            close(call_kernel(f"{name}_backward", grad, ours, dim)[0], t.grad)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_infinities_and_large_numbers(name):
    inf = np.inf
    x = np.array([[-inf, -inf, -inf], [inf, 0, 1], [-inf, 0, 1], [1e30, -1e30, 1e30], [np.nan, 0, 1]])
    expected = getattr(torch, name)(torch.from_numpy(x), 1).numpy()
    np.testing.assert_allclose(call_kernel(name, x, 1, None)[0], expected)
    np.testing.assert_allclose(call_kernel(name, np.ascontiguousarray(x.T), 0, None)[0], expected.T)


def test_dtype_and_errors():
    x = np.arange(6).reshape(2, 3)
    close(call_kernel("softmax", x, 1, dtypes.float64)[0],
          torch.from_numpy(x).softmax(1, dtype=torch.float64))
    with pytest.raises(NotImplementedError, match="softmax: needs float32 or float64"):
        call_kernel("softmax", x, 1, None)
    with pytest.raises(IndexError, match="out of range"):
        call_kernel("log_softmax", x + 0.5, 2, None)
    with pytest.raises(RuntimeError, match="wrong shape"):
        call_kernel("softmax_backward", np.ones(3), np.ones(2), 0)


def test_same_bits_for_any_number_of_threads():
    x = np.random.default_rng(0).standard_normal((300, 7, 500)).astype("float32")
    results = []
    for threads in (1, 2, 3, 8):
        set_num_threads(threads)
        results.append([call_kernel(name, x, dim, None)[0].tobytes() for name in ("softmax", "log_softmax")
                        for dim in range(3)])
    set_num_threads(1)
    assert all(found == results[0] for found in results)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_one_number_that_is_not_finite_in_rows_of_any_length(bad, dtype):
    rng = np.random.default_rng(2)
    for n in (1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 64, 70, 2049):
        x = rng.standard_normal((1, n)).astype(dtype)
        place = int(rng.integers(n))
        x[0, place] = bad
        for layout, dim in ((x, 1), (np.ascontiguousarray(np.repeat(x.T, 3, 1)), 0)):
            found = call_kernel("softmax", layout, dim, None)[0]
            if bad == -np.inf and n > 1:
                np.testing.assert_allclose(found.sum(dim), 1, rtol=1e-5)
                assert np.all(found.take(place, dim) == 0)
            else:
                assert np.all(np.isnan(found))
            found = call_kernel("log_softmax", layout, dim, None)[0]
            assert np.all(np.isnan(found)) or (bad == -np.inf and np.all(found.take(place, dim) == -np.inf))


def test_powers_below_the_normal_numbers_are_kept():
    x = np.array([[0.0, -88.0, -95.0, -103.0, -110.0]], np.float32)
    exact = np.exp(x.astype(np.float64))
    np.testing.assert_allclose(call_kernel("softmax", x, 1, None)[0], exact / exact.sum(), rtol=1e-6, atol=1.5e-45)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("length", [1, 3, 16, 31, 32, 33, 100, 700, 2047, 2049, 5000])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_rows_do_not_depend_on_their_neighbors(name, dtype, length):
    function = getattr(cygrad, name)
    rows = np.random.default_rng(length).normal(0, 3, (70, length)).astype(dtype)
    rows[3, 0], rows[5, -1], rows[7], rows[9] = np.nan, np.inf, -np.inf, 1e30
    whole = function(cygrad.from_numpy(rows), 1).numpy()
    for row, found in zip(rows, whole, strict=True):
        np.testing.assert_array_equal(function(cygrad.from_numpy(row.copy()), 0).numpy(), found)
    wide = rows.astype(np.float64)
    shifted = wide - wide.max(1, keepdims=True)
    exact = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
    tolerance = {"rtol": 2e-6, "atol": 2e-6} if dtype == np.float32 else {"rtol": 1e-14, "atol": 1e-14}
    np.testing.assert_allclose(whole, np.exp(exact) if name == "softmax" else exact, **tolerance)
