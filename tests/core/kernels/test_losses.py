"""Losses of class indices and their derivatives against PyTorch."""

import numpy as np
import pytest

import cygrad._core.kernels.nn.losses  # noqa: F401
from cygrad._core.testing.interop import call_kernel
from cygrad._core.threads.parallel import set_num_threads
from tests.reference import torch

CASES = [((5,), ()), ((7, 4), (7,)), ((3, 4, 6), (3, 6)), ((2, 5, 3, 4), (2, 3, 4)), ((300, 10), (300,))]


def data(shape, target_shape, dtype, ignored):
    rng = np.random.default_rng(0)
    classes = shape[1] if len(shape) > 1 else shape[0]
    x = rng.standard_normal(shape).astype(dtype)
    target = np.asarray(rng.integers(0, classes, target_shape))
    if ignored and target.ndim:
        target.reshape(-1)[::3] = -100
    return x, target, rng.random(classes).astype(dtype) + 0.1


def close(ours, theirs):
    theirs = theirs.detach().numpy()
    assert ours.dtype == theirs.dtype
    assert ours.shape == theirs.shape
    tolerance = 5e-6 if ours.dtype == np.float32 else 1e-12
    np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("shape", "target_shape"), CASES)
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ignored", [False, True])
@pytest.mark.parametrize("smoothing", [None, 0.0, 0.2])
def test_against_the_reference(dtype, shape, target_shape, reduction, weighted, ignored, smoothing):
    x, target, weight = data(shape, target_shape, dtype, ignored)
    weight = weight if weighted else None
    given = None if weight is None else torch.from_numpy(weight)
    for array in (x, np.asfortranarray(x), x[::-1]):
        t = torch.from_numpy(array.copy(order="C")).requires_grad_()
        if smoothing is None:
            theirs = torch.nn.functional.nll_loss(t, torch.from_numpy(target), given, reduction=reduction)
            ours, total = call_kernel("nll_loss", array, target, weight, -100, reduction)
        else:
            theirs = torch.nn.functional.cross_entropy(t, torch.from_numpy(target), given, reduction=reduction,
                                              label_smoothing=smoothing)
            ours, saved, total = call_kernel("cross_entropy", array, target, weight, -100, reduction,
                                             smoothing)
        close(ours, theirs)
        grad = np.asarray(np.random.default_rng(1).standard_normal(theirs.shape)).astype(dtype)
        theirs.backward(torch.from_numpy(grad))
        if smoothing is None:
            back = call_kernel("nll_loss_backward", grad, target, weight, total, -100, reduction, shape)
        else:
            back = call_kernel("cross_entropy_backward", grad, saved, target, weight, total, -100,
                               reduction, smoothing)
        close(back[0], t.grad)


def test_nothing_and_all_ignored():
    x = np.zeros((0, 3))
    target = np.zeros(0, np.int64)
    assert np.isnan(call_kernel("cross_entropy", x, target, None, -100, "mean", 0.0)[0])
    assert call_kernel("nll_loss", x, target, None, -100, "sum")[0] == 0
    x, target = np.ones((2, 3)), np.full(2, -100)
    loss, saved, total = call_kernel("cross_entropy", x, target, None, -100, "mean", 0.0)
    assert np.isnan(loss)
    back = call_kernel("cross_entropy_backward", np.ones(()), saved, target, None, total, -100, "mean", 0.0)
    np.testing.assert_array_equal(back[0], np.zeros((2, 3)))


@pytest.mark.parametrize(("arguments", "error", "text"), [
    ((np.ones((2, 3)), np.array([0, 3]), None, -100, "mean"), IndexError,
     "target 3 is out of bounds.*3 classes"),
    ((np.ones((2, 3)), np.array([0, -1]), None, -100, "mean"), IndexError, "target -1"),
    ((np.ones((2, 3)), np.array([0]), None, -100, "mean"), ValueError,
     r"wrong shape.*got \(1,\), expected \(2,\)"),
    ((np.ones((2, 3)), np.array([0.0, 1]), None, -100, "mean"), RuntimeError, "dtype int64"),
    ((np.ones((2, 3), int), np.array([0, 1]), None, -100, "mean"), RuntimeError, "float32 or float64"),
    ((np.ones((2, 3)), np.array([0, 1]), np.ones(2), -100, "mean"), RuntimeError, "all 3 classes or none"),
    ((np.ones((2, 3)), np.array([0, 1]), None, -100, "average"), ValueError,
     "not a valid value for reduction"),
    ((np.ones(()), np.array(0), None, -100, "mean"), ValueError, "dimension of classes"),
])
def test_errors(arguments, error, text):
    with pytest.raises(error, match=text):
        call_kernel("nll_loss", *arguments)
    with pytest.raises(error, match=text):
        call_kernel("cross_entropy", *arguments, 0.0)


def test_label_smoothing_out_of_range():
    with pytest.raises(RuntimeError, match="label_smoothing must be between"):
        call_kernel("cross_entropy", np.ones((2, 3)), np.array([0, 1]), None, -100, "mean", 1.5)


def test_same_bits_for_any_number_of_threads():
    x, target, weight = data((3000, 50), (3000,), "float32", True)
    results = []
    for threads in (1, 2, 3, 8):
        set_num_threads(threads)
        loss, saved, total = call_kernel("cross_entropy", x, target, weight, -100, "mean", 0.1)
        back = call_kernel("cross_entropy_backward", loss, saved, target, weight, total, -100, "mean", 0.1)
        results.append(loss.tobytes() + saved.tobytes() + back[0].tobytes())
    set_num_threads(1)
    assert all(found == results[0] for found in results)
