"""Sorting and searching against PyTorch: ties, nan, all dtypes and layouts."""

import numpy as np
import pytest

import cygrad._core.kernels.sorting.sort  # noqa: F401
from cygrad._core.testing.interop import call_kernel
from cygrad._core.threads.parallel import set_num_threads
from tests.reference import as_torch, torch
from tests.tools import layouts

REAL = ["bool", "uint8", "int8", "int16", "int32", "int64", "float32", "float64"]
SHAPES = [(), (1,), (6,), (3, 4), (4, 3, 5), (3, 700), (700, 3), (0, 3), (3, 0)]


def numbers(shape, dtype):
    rng = np.random.default_rng(0)
    if dtype.startswith("float"):
        x = np.asarray(rng.integers(-50, 50, shape) / 4).astype(dtype)
        if x.size > 5:
            x.reshape(-1)[::5] = np.nan
            x.reshape(-1)[1::7] = -np.inf
            x.reshape(-1)[2::9] = -0.0
        return x
    low, high = (0, 2) if dtype == "bool" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    x = np.asarray(rng.integers(low, high, shape)).astype(dtype)
    if x.size > 5:
        x.reshape(-1)[::3] = x.reshape(-1)[0]
    return x


def same(ours, theirs):
    theirs = theirs.numpy()
    assert ours.dtype == theirs.dtype
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("descending", [False, True])
def test_sort_and_argsort(dtype, descending):
    for shape in SHAPES:
        for x in layouts(numbers(shape, dtype)):
            for dim in range(-max(x.ndim, 1), max(x.ndim, 1)):
                theirs = as_torch(x).sort(dim=dim, descending=descending, stable=True)
                values, indices = call_kernel("sort", x, dim, descending, True)
                same(values, theirs.values)
                same(indices, theirs.indices)
                same(call_kernel("argsort", x, dim, descending)[0], theirs.indices)


@pytest.mark.parametrize("dtype", REAL[1:])
def test_topk(dtype):
    for shape in SHAPES[1:]:
        for x in layouts(numbers(shape, dtype)):
            for dim in range(x.ndim):
                for k in {0, min(2, x.shape[dim]), x.shape[dim]}:
                    for largest in (True, False):
                        values, indices = call_kernel("topk", x, k, dim, largest, True)
                        same(values, as_torch(x).topk(k, dim, largest).values)
                        np.testing.assert_array_equal(np.take_along_axis(x, indices, dim), values)


@pytest.mark.parametrize("dtype", REAL)
def test_unique(dtype):
    for shape in SHAPES:
        for x in layouts(numbers(shape, dtype)):
            theirs = as_torch(x).unique(return_inverse=True, return_counts=True)
            ours = call_kernel("unique", x, True, True, True, None)
            same(ours[0], theirs[0])
            same(ours[2], theirs[2])
            if not dtype.startswith("float") or not np.isnan(x).any():
                same(ours[1], theirs[1])
            np.testing.assert_array_equal(ours[0][ours[1]].reshape(x.shape), x)
    assert len(call_kernel("unique", np.ones(3), True, False, False, None)) == 1


@pytest.mark.parametrize("dtype", REAL)
def test_unique_dim(dtype):
    for shape in [(6,), (5, 2), (4, 3, 5), (300, 2), (0, 3)]:
        x = np.asarray(np.random.default_rng(0).integers(0, 2, shape)).astype(dtype)
        for array in layouts(x):
            for dim in range(-array.ndim, array.ndim):
                if array.size or not array.shape[dim]:
                    theirs = as_torch(array).unique(dim=dim, return_inverse=True, return_counts=True)
                    for ours, expected in zip(call_kernel("unique_dim", array, dim), theirs, strict=True):
                        same(ours, expected)
    x = np.array([[np.nan, 1], [np.nan, 1], [-0.0, 1], [0.0, 1]])
    assert call_kernel("unique_dim", x, 0)[2].tolist() == [2, 1, 1]
    with pytest.raises(RuntimeError, match="no slices"):
        call_kernel("unique_dim", np.array(1), 0)
    with pytest.raises(RuntimeError, match="without elements"):
        call_kernel("unique_dim", np.empty((2, 0)), 0)


@pytest.mark.parametrize("dtype", REAL[1:])
@pytest.mark.parametrize("right", [False, True])
def test_searchsorted(dtype, right):
    for row_shape, value_shape in (((50,), (7, 3)), ((50,), ()), ((1000,), (600,)), ((2, 3, 20), (2, 3, 9)),
                                   ((0,), (4,)), ((5,), (0,))):
        rows = np.sort(numbers(row_shape, dtype), axis=-1)
        values = numbers(value_shape, dtype)
        for narrow in (False, True):
            theirs = torch.searchsorted(as_torch(rows), as_torch(values), right=right, out_int32=narrow)
            same(call_kernel("searchsorted", rows, values, right, narrow)[0], theirs)


@pytest.mark.parametrize("n", [0, 1, 7, 1000, 5000])
@pytest.mark.parametrize("high", [1, 100, 3000])
def test_counts_of_integers_and_bins(n, high):
    rng = np.random.default_rng(n)
    for dtype in ("uint8", "int32", "int64"):
        x = rng.integers(0, min(high, 256), n).astype(dtype)
        for least in (0, 4000):
            same(call_kernel("count_integers", x, least)[0], torch.bincount(as_torch(x), minlength=least))
    for dtype in ("float32", "float64"):
        x = rng.standard_normal(n).astype(dtype)
        x[::5], x[1::9] = np.nan, np.inf
        inside = x[(x >= -2) & (x <= 1)].astype(float)
        bins = np.minimum(((inside + 2) * (high / 3)).astype(int), high - 1)
        np.testing.assert_array_equal(call_kernel("count_in_bins", x, high, -2.0, 1.0)[0],
                                      np.bincount(bins, minlength=high))


@pytest.mark.parametrize(("name", "arguments", "error", "text"), [
    ("count_integers", (np.array([2, -1]), 0), RuntimeError, "bincount: numbers must not be negative"),
    ("count_integers", (np.array([2**63 - 1]), 0), RuntimeError, "bincount: too many elements"),
    ("sort", (np.ones(3, complex), 0, False, False), RuntimeError, "sort: complex numbers have no order"),
    ("argsort", (np.ones(3), 1, False), IndexError, "argsort: dimension out of range"),
    ("topk", (np.ones(3), 4, 0, True, True), RuntimeError, "topk: selected index k out of range"),
    ("unique", (np.ones(3, complex), True, False, False, None), RuntimeError, "no order"),
    ("searchsorted", (np.ones((2, 3)), np.ones(3), False, False), RuntimeError, "agree with the values"),
    ("searchsorted", (np.ones(3), np.ones(3, int), False, False), RuntimeError, "same dtype"),
])
def test_errors(name, arguments, error, text):
    with pytest.raises(error, match=text):
        call_kernel(name, *arguments)


def test_same_for_any_number_of_threads():
    x = numbers((200, 300), "float32")
    results = []
    for threads in (1, 2, 3, 8):
        set_num_threads(threads)
        results.append([part.tobytes() for dim in range(2)
                        for part in call_kernel("sort", x, dim, False, True)])
    set_num_threads(1)
    assert all(found == results[0] for found in results)
