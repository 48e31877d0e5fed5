"""Convolution and pooling compared with NumPy loops: random sizes, layouts, threads, memory."""

import itertools
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import cygrad
import cygrad.nn.functional as F
from cygrad._core.table.operator import operators


def convolved(x, weight, stride, padding, dilation, groups):
    """The definition, one output position at a time."""
    n = x.ndim - 2
    padded = np.pad(x, [(0, 0), (0, 0), *((pad, pad) for pad in padding)])
    out = [(size - reach * (kernel - 1) - 1) // step + 1
           for size, kernel, step, reach in zip(padded.shape[2:], weight.shape[2:], stride, dilation, strict=True)]
    result = np.zeros((x.shape[0], weight.shape[0], *out), x.dtype)
    inputs, outputs = x.shape[1] // groups, weight.shape[0] // groups
    for place in itertools.product(*map(range, out)):
        window = tuple(slice(at * step, at * step + reach * (kernel - 1) + 1, reach)
                       for at, step, reach, kernel in zip(place, stride, dilation, weight.shape[2:], strict=True))
        for group in range(groups):
            part = padded[(slice(None), slice(group * inputs, (group + 1) * inputs), *window)]
            kernels = weight[group * outputs:(group + 1) * outputs]
            result[(slice(None), slice(group * outputs, (group + 1) * outputs), *place)] = np.tensordot(
                part, kernels, (range(1, n + 2), range(1, n + 2)))
    return result


def in_some_layout(random, array):
    """Yield the same elements contiguous, reversed in memory, strided, transposed, and broadcast where possible."""
    choice = random.integers(5)
    if choice == 1:
        turned = tuple(slice(None, None, -1) for _ in array.shape)
        return array[turned].copy()[turned]
    if choice == 2:
        return np.repeat(array, 2, -1)[..., ::2]
    if choice == 3:
        return array.swapaxes(0, -1).copy().swapaxes(0, -1)
    if choice == 4 and array.size:
        return np.broadcast_to(array[:1], array.shape)      # a stride of zero
    return array


def problem(random, dtype):
    """Arguments of a convolution."""
    n, groups = int(random.integers(1, 4)), int(random.integers(1, 3))
    channels, outputs, batch = (int(number) for number in random.integers(1, 4, 3))
    batch = int(random.choice([0, 1, batch, 19]))
    kernel, stride = random.integers(1, 4, n), random.integers(1, 4, n)
    padding, dilation = random.integers(0, 3, n), random.integers(1, 3, n)
    sizes = dilation * (kernel - 1) + 1 + random.integers(0, 6 if n < 3 else 3, n)

    def values(shape):
        made = random.integers(-4, 5, shape).astype(dtype)
        return in_some_layout(random, made + 1j * random.integers(-4, 5, shape) if dtype is complex else made)

    x, weight = values((batch, channels * groups, *sizes)), values((outputs * groups, channels, *kernel))
    return x, weight, stride.tolist(), padding.tolist(), dilation.tolist(), groups


@pytest.mark.parametrize("dtype", [float, complex, np.float32, np.int64, np.uint8])
@pytest.mark.parametrize("seed", range(20))
def test_definition(seed, dtype):
    """Whole numbers, so that nothing is rounded."""
    random = np.random.default_rng(seed)
    arguments = problem(random, dtype)
    x, weight = (cygrad.from_numpy(np.asarray(array)) if array.flags.writeable else cygrad.tensor(array[:1]).expand(
        *array.shape) for array in arguments[:2])
    function = getattr(F, f"conv{x.ndim - 2}d")
    found = function(x, weight, None, *arguments[2:])
    np.testing.assert_array_equal(found.numpy(), convolved(*arguments), strict=True)


@pytest.mark.parametrize("seed", range(12))
def test_gradients_are_transposes(seed):
    """<convolution(x, w), g> = <x, convolution_input_backward(g, w)> = <w, convolution_weight_backward(g, x)>."""
    random = np.random.default_rng(100 + seed)
    x, weight, *options = problem(random, float)
    x, weight = cygrad.tensor(np.array(x)), cygrad.tensor(np.array(weight))
    result = operators.convolution(x, weight, None, *options)
    grad = cygrad.tensor(random.integers(-3, 4, tuple(result.shape)).astype(float))
    product = (result * grad).sum().item()
    assert (operators.convolution_input_backward(grad, weight, None, x.shape, *options) * x).sum().item() == product
    assert (operators.convolution_weight_backward(grad, x, weight.shape, *options) * weight).sum().item() == product


def test_same_bits_for_any_number_of_threads():
    def results():
        cygrad.manual_seed(0)
        x = cygrad.randn(9, 6, 40, 37).requires_grad_()
        weight, scale, shift = (cygrad.randn(*shape).requires_grad_() for shape in ((8, 3, 3, 3), (8,), (8,)))
        y = F.batch_norm(F.conv2d(x, weight, None, 1, 1, groups=2), None, None, scale, shift, training=True)
        y = F.interpolate(F.avg_pool2d(F.max_pool2d(y, 2), 3, 2, 1), scale_factor=1.7, mode="bilinear")
        (y * cygrad.randn(*y.shape)).sum().backward()
        return [y.detach().numpy().tobytes(), *(t.grad.numpy().tobytes() for t in (x, weight, scale, shift))]

    with cygrad.threads(1):
        expected = results()
    assert results() == expected
    with cygrad.threads(2):
        assert results() == expected


def test_columns_are_made_piece_by_piece():
    """All columns of this batch would take 900 MB; a fresh process must not grow by a tenth of that."""
    code = """
import resource
import cygrad
x = cygrad.ones(16, 32, 112, 112)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
with cygrad.no_grad():
    y = cygrad.nn.functional.conv2d(x, cygrad.ones(8, 32, 3, 4), padding=1)
assert y[0, 0, 1, 1].item() == 32 * 12
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(cygrad.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120,
                          env=environment)
    assert int(done.stdout) < 90_000


def test_frozen_kernels_save_nothing():
    """A body without gradients records and saves nothing; the head saves its operands."""
    body, head = cygrad.ones(2, 1, 3, 3), cygrad.ones(1, 2, 1, 1).requires_grad_()
    saved = []
    with cygrad.autograd.graph.saved_tensors_hooks(lambda tensor: saved.append(tuple(tensor.shape)) or tensor,
                                                   lambda tensor: tensor):
        inner = F.conv2d(cygrad.ones(1, 1, 5, 5), body)
        assert inner.grad_fn is None
        assert not saved
        assert F.conv2d(inner, head).grad_fn.name() == "ConvolutionBackward0"
    assert saved == [(1, 2, 3, 3)]          # what the head's gradient needs; its own values are not among it


@pytest.mark.parametrize(("call", "match"), [
    (lambda: operators.convolution_input_backward(
        cygrad.ones(1, 1, 3), cygrad.ones(1, 1, 2), None, (1, 1, 5), 1, 0, 1, 1),
     "convolution_input_backward: .*grad"),
    (lambda: operators.convolution_weight_backward(
        cygrad.ones(1, 1, 3), cygrad.ones(1, 1, 4), (1, 2, 2), 1, 0, 1, 1),
     "convolution_weight_backward: the number of channels"),
    (lambda: operators.max_pool_backward(
        cygrad.ones(1, 1, 2), cygrad.tensor([[[0, 9]]]), (1, 1, 4), 1), "invalid index"),
    (lambda: operators.max_pool_backward(cygrad.ones(1, 1, 2), cygrad.tensor([[[0, 1]]]), (2, 1, 4), 1),
     "sizes of the planes"),
    (lambda: operators.max_pool_gather(cygrad.ones(1, 2), cygrad.tensor([[0]]), 5), "same number of dimensions"),
    (lambda: F.conv2d(cygrad.ones(1, 1, 1, 1).expand(1, 1, 1 << 40, 4), cygrad.ones(1, 1, 1, 1)),
     "less than 2\\*\\*31"),
    (lambda: F.conv2d(cygrad.ones(1, 1, 1, 1).expand(1, 1, 1 << 20, 1 << 30), cygrad.ones(1, 1, 1, 1)), "2\\*\\*31"),
    (lambda: F.conv2d(cygrad.ones(1, 1, 1, 1, dtype=cygrad.bool), cygrad.ones(1, 1, 1, 1, dtype=cygrad.bool)), "bool"),
])
def test_refusals(call, match):
    with pytest.raises((RuntimeError, NotImplementedError), match=match):
        call()


def test_nan_is_not_lost():
    """Also where a weight is zero, and in the largest element of a window."""
    x = cygrad.tensor([[[1.0, float("nan"), 3.0]]])
    assert F.conv1d(x, cygrad.zeros(1, 1, 1)).isnan().tolist() == [[[False, True, False]]]
    assert F.max_pool1d(x, 3).isnan().item()
    assert F.avg_pool1d(x, 3).isnan().item()


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.int8, np.uint8])
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_wide_windows(stride, dtype):
    """Lines of many windows, with ties and nans: the first of the largest, or the last nan."""
    random = np.random.default_rng(stride)
    x = random.integers(0, 9, (2, 7, 131)).astype(dtype)
    if x.dtype.kind == "f":
        x.reshape(-1)[random.integers(0, x.size, 9)] = np.nan
    values, places = F.max_pool2d(cygrad.tensor(x), (2, 3), stride, (1, 1), (1, 2), return_indices=True)
    for (plane, line, column), found in np.ndenumerate(values.numpy()):
        rows = [row for row in (line * stride - 1, line * stride) if 0 <= row < 7]
        columns = [at for at in range(column * stride - 1, column * stride + 4, 2) if 0 <= at < 131]
        window = np.array([x[plane, row, at] for row in rows for at in columns])
        nans = np.flatnonzero(np.isnan(window))
        best = nans[-1] if len(nans) else window.argmax()
        np.testing.assert_equal(found, window[best])
        place = rows[best // len(columns)] * 131 + columns[best % len(columns)]
        assert places[plane, line, column].item() == place
