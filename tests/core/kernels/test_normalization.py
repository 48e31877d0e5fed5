"""Normalization compared with its formula: sizes, groups, threads."""

import numpy as np
import pytest

import cygrad
from cygrad.nn import functional as F

RNG = np.random.default_rng(5)
# Lines of one element, lines that are short, and long ones; more channels than a tile has.
IMAGES = [(5, 3), (70, 300), (2, 1, 4), (9, 37, 3), (3, 300, 5), (2, 3, 4, 8), (3, 2, 40, 60)]


@pytest.fixture
def three_threads():
    before = cygrad.get_num_threads()
    yield lambda n: cygrad.set_num_threads(n)
    cygrad.set_num_threads(before)


def normal(x, axes, eps):
    """Less the mean, divided by the deviation; and one divided by it."""
    inverse = 1 / np.sqrt(x.var(axes, keepdims=True) + eps)
    return (x - x.mean(axes, keepdims=True)) * inverse, inverse


def expected(x, weight, bias, grad, axes, eps=1e-5):
    """The result, and the gradients of input, weight and bias, which broadcast to the input."""
    unit, inverse = normal(x, axes, eps)
    scaled = grad * weight
    along = (scaled * unit).mean(axes, keepdims=True)
    summed = tuple(d for d in range(x.ndim) if weight.shape[d] == 1 and x.shape[d] > 1)
    return (unit * weight + bias, inverse * (scaled - scaled.mean(axes, keepdims=True) - unit * along),
            (grad * unit).sum(summed, keepdims=True), grad.sum(summed, keepdims=True))


def found(function, x, weight, bias, grad):
    tensors = [cygrad.from_numpy(array.copy()).requires_grad_() for array in (x, weight, bias)]
    result = function(*tensors)
    return result, *cygrad.autograd.grad(result, tensors, cygrad.from_numpy(grad))


def check(function, shape, parameters, axes, dtype, weight_shape):
    """`weight_shape` is that of weight and bias where they broadcast to the (reshaped) input."""
    x, grad = (RNG.standard_normal(shape).astype(dtype) + dtype(0.5) for _ in range(2))
    weight, bias = (RNG.standard_normal(parameters).astype(dtype) for _ in range(2))
    wide = [array.astype(np.float64) for array in (x, weight, bias, grad)]
    inner = np.broadcast_shapes(weight_shape, axes[1])
    theirs = expected(wide[0].reshape(inner), wide[1].reshape(weight_shape), wide[2].reshape(weight_shape),
                      wide[3].reshape(inner), axes[0])
    tolerance = 2e-4 if dtype == np.float32 else 1e-11
    for mine, other in zip(found(function, x, weight, bias, grad), theirs, strict=True):
        np.testing.assert_allclose(mine.detach().numpy(), other.reshape(mine.shape), rtol=tolerance,
                                   atol=tolerance * np.sqrt(x.size / weight.size))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", IMAGES)
def test_channels(shape, dtype):
    channels = (1, shape[1]) + (1,) * (len(shape) - 2)
    axes = tuple(d for d in range(len(shape)) if d != 1)
    check(lambda x, w, b: F.batch_norm(x, None, None, w, b, True), shape, shape[1], (axes, shape), dtype, channels)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 3), (7, 1, 33), (300, 5), (400, 700), (3, 5000)])
def test_rows(shape, dtype):
    check(lambda x, w, b: F.layer_norm(x, shape[-1:], w, b), shape, shape[-1], ((-1,), shape), dtype,
          (1,) * (len(shape) - 1) + shape[-1:])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("shape", "groups"), [((2, 6), 3), ((3, 8, 5), 2), ((2, 8, 7, 9), 8), ((4, 12, 30, 30), 4),
                                               ((1, 6, 3), 1)])
def test_groups(shape, groups, dtype):
    inner = (shape[0], groups, shape[1] // groups, int(np.prod(shape[2:])))
    check(lambda x, w, b: F.group_norm(x, groups, w, b), shape, shape[1], ((2, 3), inner), dtype, (1, *inner[1:3], 1))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 3), (7, 1, 33), (300, 5), (401, 700), (3, 5000)])
def test_roots_of_mean_squares(shape, dtype):
    x, grad = (RNG.standard_normal(shape).astype(dtype) + dtype(0.5) for _ in range(2))
    weight = RNG.standard_normal(shape[-1]).astype(dtype)
    tensors = [cygrad.from_numpy(array.copy()).requires_grad_() for array in (x, weight)]
    result = F.rms_norm(tensors[0], shape[-1:], tensors[1], 1e-5)
    gradients = cygrad.autograd.grad(result, tensors, cygrad.from_numpy(grad))
    wide, wide_grad, wide_weight = (array.astype(np.float64) for array in (x, grad, weight))
    inverse = 1 / np.sqrt((wide**2).mean(-1, keepdims=True) + 1e-5)
    unit, scaled = wide * inverse, wide_grad * wide_weight
    theirs = (unit * wide_weight, inverse * (scaled - unit * (scaled * unit).mean(-1, keepdims=True)),
              (wide_grad * unit).reshape(-1, shape[-1]).sum(0))
    tolerance = 2e-4 if dtype == np.float32 else 1e-11
    for mine, other in zip((result, *gradients), theirs, strict=True):
        np.testing.assert_allclose(mine.detach().numpy(), other, rtol=tolerance,
                                   atol=tolerance * np.sqrt(x.size / weight.size))


@pytest.mark.parametrize(("function", "shape", "parameters"), [
    (lambda x, w, b: F.batch_norm(x, None, None, w, b, True), (5, 7, 3), 7),
    (lambda x, w, b: F.batch_norm(x, None, None, w, b, True), (3, 2, 8, 9), 2),
    (lambda x, w, b: F.layer_norm(x, (33,), w, b), (5, 33), 33),
    (lambda x, w, b: F.group_norm(x, 2, w, b), (3, 4, 5), 4),
    (lambda x, w, b: F.rms_norm(x, (33,), w) + b, (5, 33), 33),
])
def test_each_gradient_alone_has_the_same_bits(function, shape, parameters):
    """One pass computes all of them, or the requested ones."""
    x, grad = (RNG.standard_normal(shape) for _ in range(2))
    weight, bias = (RNG.standard_normal(parameters) for _ in range(2))
    together = found(function, x, weight, bias, grad)[1:]
    for chosen in ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2)):
        tensors = [cygrad.from_numpy(array.copy()).requires_grad_(number in chosen)
                   for number, array in enumerate((x, weight, bias))]
        asked = [tensors[number] for number in chosen]
        for mine, number in zip(cygrad.autograd.grad(function(*tensors), asked, cygrad.from_numpy(grad)), chosen,
                                strict=True):
            np.testing.assert_array_equal(mine.numpy(), together[number].numpy())
        everything = [cygrad.from_numpy(array.copy()).requires_grad_() for array in (x, weight, bias)]
        asked = [everything[number] for number in chosen]
        for mine, number in zip(cygrad.autograd.grad(function(*everything), asked, cygrad.from_numpy(grad)), chosen,
                                strict=True):
            np.testing.assert_array_equal(mine.numpy(), together[number].numpy())


def test_root_of_mean_squares_of_other_types():
    x = cygrad.tensor([[3.0, 4.0]])
    mixed = F.rms_norm(x, (2,), cygrad.tensor([1.0, 2.0], dtype=cygrad.float64), 0.0)
    assert mixed.dtype is cygrad.float32                # as that of the input
    np.testing.assert_allclose(mixed.numpy(), F.rms_norm(x, (2,), cygrad.tensor([1.0, 2.0]), 0.0).numpy())
    turned = F.rms_norm(cygrad.tensor([[3.0, 4.0j]]), (2,), eps=0.0)
    # Squares, not squares of absolute values, as PyTorch has it.
    np.testing.assert_allclose(turned.numpy(), np.array([[3, 4j]]) / np.sqrt(-3.5 + 0j), rtol=1e-6)
    with pytest.raises(NotImplementedError, match="rms_norm: not implemented for"):
        F.rms_norm(cygrad.tensor([[3, 4]]), (2,))


def test_no_elements():
    for shape in ((0, 4, 3), (2, 4, 0)):
        x = cygrad.zeros(shape, requires_grad=True)
        weight, bias = (cygrad.ones(4, requires_grad=True) for _ in range(2))
        result = F.group_norm(x, 2, weight, bias)
        gradients = cygrad.autograd.grad(result.sum(), [x, weight, bias])
        assert [tuple(gradient.shape) for gradient in gradients] == [shape, (4,), (4,)]
        assert not gradients[1].any()


@pytest.mark.parametrize(("function", "shape", "parameters"), [
    (lambda x, w, b: F.batch_norm(x, None, None, w, b, True), (200, 700), 700),
    (lambda x, w, b: F.layer_norm(x, (300,), w, b), (1000, 300), 300),
    (lambda x, w, b: F.group_norm(x, 8, w, b), (16, 64, 15, 15), 64),
    (lambda x, w, b: F.rms_norm(x, (300,), w) + b, (1000, 300), 300),
])
def test_threads_change_no_bit(three_threads, function, shape, parameters):
    x, grad = (RNG.standard_normal(shape).astype(np.float32) for _ in range(2))
    weight, bias = (RNG.standard_normal(parameters).astype(np.float32) for _ in range(2))
    three_threads(1)
    alone = found(function, x, weight, bias, grad)
    three_threads(3)
    for one, other in zip(alone, found(function, x, weight, bias, grad), strict=True):
        np.testing.assert_array_equal(one.detach().numpy(), other.detach().numpy())
