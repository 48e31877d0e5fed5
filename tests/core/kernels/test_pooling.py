"""Pooling compared with its definition, and out-of-bounds indices of maxima."""

import itertools

import numpy as np
import pytest

import cygrad
import cygrad.nn.functional as F
from cygrad._core.table.operator import operators


def averages(x, kernel, stride, padding, with_padding):
    """The definition, one output position at a time, in the last two dimensions."""
    lines, columns = x.shape[-2:]
    out = [(size + 2 * pad - width) // step + 1
           for size, width, step, pad in zip(x.shape[-2:], kernel, stride, padding, strict=True)]
    result = np.zeros((*x.shape[:-2], *out), x.dtype)
    for i, j in itertools.product(*map(range, out)):
        top, left = i * stride[0] - padding[0], j * stride[1] - padding[1]
        bottom, right = top + kernel[0], left + kernel[1]
        window = x[..., max(top, 0):min(bottom, lines), max(left, 0):min(right, columns)]
        count = kernel[0] * kernel[1] if with_padding else window.shape[-2] * window.shape[-1]
        total = window.sum((-2, -1))
        result[..., i, j] = total // count if x.dtype.kind == "i" else total / count
    return result


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize("columns", [5, 12, 70, 600])
@pytest.mark.parametrize(("kernel", "stride", "padding"), [
    ((2, 2), (2, 2), (0, 0)), ((3, 3), (1, 1), (1, 1)), ((3, 3), (2, 2), (1, 1)), ((2, 5), (1, 3), (0, 2)),
    ((1, 4), (3, 1), (0, 1)), ((3, 2), (1, 5), (1, 0)),
])
def test_averages(kernel, stride, padding, columns, dtype):
    """Whole numbers, so that sums are exact."""
    random = np.random.default_rng(columns)
    x = random.integers(0, 60, (2, 3, 7, columns)).astype(dtype)
    for with_padding in (True, False):
        found = F.avg_pool2d(cygrad.tensor(x), kernel, stride, padding, count_include_pad=with_padding)
        expected = averages(x, kernel, stride, padding, with_padding)
        np.testing.assert_array_equal(found.numpy(), expected, strict=True)


@pytest.mark.parametrize("columns", [5, 12, 70, 600])
@pytest.mark.parametrize(("kernel", "stride", "padding"), [
    ((2, 2), (2, 2), (0, 0)), ((3, 3), (1, 1), (1, 1)), ((3, 3), (2, 2), (1, 1)), ((2, 5), (1, 3), (0, 2)),
    ((3, 2), (1, 5), (1, 0)),
])
def test_gradients_of_averages_are_transposes(kernel, stride, padding, columns):
    """Return the gradient that each element of a window gets."""
    random = np.random.default_rng(columns)
    options = (kernel, stride, padding, False, False, None)
    x = random.standard_normal((2, 7, columns))
    y = averages(x, kernel, stride, padding, False)
    grad = random.standard_normal(y.shape)
    back = operators.avg_pool_backward(cygrad.tensor(grad), x.shape, *options).numpy()
    np.testing.assert_allclose((back * x).sum(), (grad * y).sum(), 1e-10, 1e-10)
    for _ in range(5):
        place, at = (tuple(random.integers(0, size) for size in shape) for shape in (y.shape, x.shape))
        unit, probe = np.zeros(y.shape), np.zeros(x.shape)
        unit[place], probe[at] = 1, 1
        back = operators.avg_pool_backward(cygrad.tensor(unit), x.shape, *options).numpy()
        np.testing.assert_allclose(back[at], averages(probe, kernel, stride, padding, False)[place], 1e-14)
        assert np.count_nonzero(back) <= kernel[0] * kernel[1]


@pytest.mark.parametrize("size", [1, 4, 13, 40])
def test_global_average(size):
    x = np.random.default_rng(size).standard_normal((3, 2, size, size + 1))
    found = F.adaptive_avg_pool2d(cygrad.tensor(x), 1).numpy()
    np.testing.assert_allclose(found[..., 0, 0], x.mean((-2, -1)), 1e-13)


@pytest.mark.parametrize("columns", [7, 9, 14, 15, 33])
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_maxima_of_short_lines(columns, stride):
    """Rows of a few windows, up to the last element of the plane, must not read beyond it."""
    random = np.random.default_rng(columns)
    x = random.permutation(3 * 6 * columns).reshape(3, 6, columns).astype(np.float32)
    values, places = F.max_pool2d(cygrad.tensor(x), 2, stride, return_indices=True)
    for (plane, i, j), found in np.ndenumerate(values.numpy()):
        window = x[plane, i * stride:i * stride + 2, j * stride:j * stride + 2]
        assert found == window.max()
        assert x[plane].reshape(-1)[places[plane, i, j].item()] == found


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int64, np.float32, np.float64])
@pytest.mark.parametrize("planes", [1, 20])
@pytest.mark.parametrize(("size", "kernel", "stride", "padding"), [
    ((3, 12), (3, 1), (2, 1), (0, 0)), ((2, 40), (3, 3), (1, 1), (1, 1)), ((6, 8), (2, 5), (2, 1), (0, 1)),
    ((9, 40), (3, 3), (1, 2), (1, 1)), ((12, 70), (2, 2), (2, 2), (0, 0)), ((7, 7), (7, 7), (1, 1), (0, 0)),
    ((5, 100), (5, 100), (1, 1), (0, 0)), ((20, 9), (1, 1), (2, 3), (0, 0)), ((31, 131), (3, 3), (1, 4), (1, 1))])
def test_maxima_and_their_places(size, kernel, stride, padding, planes, dtype):
    """Of equal maxima the first wins, or the last nan: windows in lanes, cut windows, and windows of long lines."""
    random = np.random.default_rng(size)
    x = random.integers(0, 9, (planes, *size)).astype(dtype)
    if np.dtype(dtype).kind == "f":
        x[random.random(x.shape) < 0.01] = np.nan
    values, places = F.max_pool2d(cygrad.tensor(x), kernel, stride, padding, return_indices=True)
    for (plane, i, j), found in np.ndenumerate(values.numpy()):
        top, left = i * stride[0] - padding[0], j * stride[1] - padding[1]
        lines = range(max(top, 0), min(top + kernel[0], size[0]))
        columns = range(max(left, 0), min(left + kernel[1], size[1]))
        window = x[plane][np.ix_(lines, columns)].ravel()
        at = np.flatnonzero(np.isnan(window))[-1] if np.isnan(window).any() else window.argmax()
        np.testing.assert_equal(found, window[at])
        assert places[plane, i, j].item() == lines[at // len(columns)] * size[1] + columns[at % len(columns)]


def test_elements_of_one_place_are_added():
    """As overlapping windows have the same maximum, in any part of a plane."""
    random = np.random.default_rng(0)
    places = random.integers(-1, 5, (2, 3, 41))
    grad = random.integers(-9, 9, places.shape).astype(float)
    found = operators.max_pool_backward(cygrad.tensor(grad), cygrad.tensor(places), (2, 3, 5), 1).numpy()
    for plane in np.ndindex(2, 3):
        for place in range(5):
            assert found[*plane, place] == grad[plane][places[plane] == place].sum()


@pytest.mark.parametrize("wrong", [5, -2, 1 << 62, -(1 << 62)])
@pytest.mark.parametrize("at", [0, 7, 20, 40])
def test_places_out_of_bounds(wrong, at):
    places = np.zeros((2, 41), int)
    places[1, at] = wrong
    for call in (lambda: operators.max_pool_backward(cygrad.ones(2, 41), cygrad.tensor(places), (2, 5), 1),
                 lambda: operators.max_pool_gather(cygrad.ones(2, 5), cygrad.tensor(places), 1),
                 lambda: operators.max_unpool(cygrad.ones(2, 41), cygrad.tensor(places), (2, 5), 1)):
        with pytest.raises(RuntimeError, match=f"found an invalid index \\(got {wrong}, expected 0 to 4"):
            call()
