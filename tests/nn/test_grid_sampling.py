"""grid_sample compared with PyTorch: values, gradients, vector remainders, nan positions."""

import itertools

import numpy as np
import pytest

import cygrad
from cygrad._core.table.operator import operators
from cygrad.nn import functional as F
from tests.reference import torch

MODES = ("bilinear", "nearest", "bicubic")
PADDINGS = ("zeros", "border", "reflection")


def both(call, *arrays):
    """Results and gradients of both libraries."""
    found = []
    for library in (cygrad, torch):
        leaves = [library.tensor(array).requires_grad_() for array in arrays]
        result = call(library, *leaves)
        weights = library.tensor(np.cos(np.arange(result.numel(), dtype=arrays[0].dtype)).reshape(result.shape))
        gradients = library.autograd.grad((result * weights).sum(), leaves)
        found.append([result.detach().numpy(), *[gradient.numpy() for gradient in gradients]])
    return zip(*found, strict=True)


@pytest.mark.parametrize("align", [True, False])
@pytest.mark.parametrize(("mode", "padding"), list(itertools.product(MODES, PADDINGS)))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("points", [(1, 1), (3, 5), (1, 17), (13, 10), (16, 17)])
def test_as_in_pytorch(points, dtype, mode, padding, align):
    random = np.random.default_rng(sum(points))
    x = random.standard_normal((2, 3, 5, 7)).astype(dtype)
    grid = (random.random((2, *points, 2)) * 5 - 2.5).astype(dtype)
    tolerance = 2e-4 if dtype is np.float32 else 1e-10
    for ours, theirs in both(lambda library, x, grid: library.nn.functional.grid_sample(
            x, grid, mode=mode, padding_mode=padding, align_corners=align), x, grid):
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("align", [True, False])
@pytest.mark.parametrize(("mode", "padding"), list(itertools.product(MODES[:2], PADDINGS)))
def test_volumes(mode, padding, align):
    random = np.random.default_rng(1)
    x, grid = random.standard_normal((2, 3, 3, 4, 5)), random.random((2, 2, 3, 30, 3)) * 3 - 1.5
    for ours, theirs in both(lambda library, x, grid: library.nn.functional.grid_sample(
            x, grid, mode=mode, padding_mode=padding, align_corners=align), x, grid):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-10)


def test_what_lies_outside_is_not_looked_at():
    """An infinite element counts only where it is read."""
    x = cygrad.full((1, 1, 2, 2), cygrad.inf)
    far = cygrad.full((1, 1, 40, 2), 9.0)
    assert not cygrad.nn.functional.grid_sample(x, far, align_corners=False).any()
    near = cygrad.full((1, 1, 40, 2), -0.3)
    assert cygrad.nn.functional.grid_sample(x, near, align_corners=False).isinf().all()


@pytest.mark.parametrize(("mode", "padding"), list(itertools.product(("bilinear", "bicubic"), PADDINGS)))
def test_derivatives_of_any_order(mode, padding):
    cygrad.manual_seed(3)
    x = cygrad.randn(1, 2, 4, 5, dtype=cygrad.float64, requires_grad=True)
    grid = (cygrad.rand(1, 2, 3, 2, dtype=cygrad.float64) * 2.6 - 1.3).requires_grad_()

    def call(x, grid):
        return cygrad.nn.functional.grid_sample(x, grid, mode=mode, padding_mode=padding, align_corners=False)

    def slope(grid):
        return cygrad.autograd.grad(call(x, grid).square().sum(), grid, create_graph=True)[0]
    assert cygrad.autograd.gradcheck(call, (x, grid), check_forward_ad=True, check_batched_grad=True)
    assert cygrad.autograd.gradgradcheck(call, (x, grid))
    assert cygrad.autograd.gradgradcheck(slope, (grid,))


# ---- internal operators, with arguments that grid_sample does not pass

PLACES = cygrad.zeros(1, 2, 3, dtype=cygrad.int32)
IMAGE, WEIGHTS, GRADS = cygrad.ones(1, 2, 5), cygrad.ones(1, 2, 3), cygrad.ones(1, 2, 3)
POSITIONS, TAPS = cygrad.zeros(1, 3, 2), cygrad.ones(1, 4, 3)
OPTIONS = ((4, 4), 1, 0, False, (0, 0, 0))


@pytest.mark.parametrize(("name", "arguments", "error", "text"), [
    ("gather_weighted", (IMAGE, PLACES + 5, WEIGHTS), IndexError, "out of bounds .got 5, expected less than 5"),
    ("scatter_weighted", (GRADS, PLACES + 5, WEIGHTS, 5), IndexError, "out of bounds"),
    ("gather_products", (GRADS, PLACES + 5, IMAGE), IndexError, "out of bounds"),
    ("scatter_weighted", (GRADS, PLACES - 1, WEIGHTS, -1), RuntimeError, "must not be negative"),
    ("gather_weighted", (IMAGE, PLACES, WEIGHTS.double()), RuntimeError, "the same type"),
    ("gather_products", (GRADS.double(), PLACES, IMAGE), RuntimeError, "the same type"),
    ("grid_taps_backward", (TAPS, POSITIONS.double(), *OPTIONS), RuntimeError, "the same type"),
    ("grid_taps_along", (POSITIONS.double(), POSITIONS, *OPTIONS), RuntimeError, "the same type"),
    ("gather_weighted", (IMAGE, PLACES.long(), WEIGHTS), RuntimeError, "positions must be int32"),
])
def test_bad_arguments_of_the_operators(name, arguments, error, text):
    with pytest.raises(error, match=text):
        getattr(operators, name)(*arguments)


def test_saved_places_that_a_hook_exchanges():
    image = cygrad.ones(1, 1, 16, requires_grad=True)
    places, weights = operators.grid_taps(cygrad.zeros(1, 4, 2), *OPTIONS)
    with cygrad.autograd.graph.saved_tensors_hooks(
            lambda saved: saved, lambda saved: saved + 10**6 if saved.dtype == cygrad.int32 else saved):
        found = operators.gather_weighted(image, places, weights)
    with pytest.raises(IndexError, match="out of bounds"):
        found.sum().backward()


def test_only_images_and_grids_are_saved():
    image, grid = cygrad.ones(1, 1, 4, 4, requires_grad=True), cygrad.zeros(1, 2, 2, 2, requires_grad=True)
    saved = []
    with cygrad.autograd.graph.saved_tensors_hooks(lambda tensor: saved.append(tensor.shape) or tensor, lambda x: x):
        F.grid_sample(image, grid, align_corners=False)
    assert saved == [image.shape, grid.shape]


def test_derivatives_of_orders_that_are_not_there():
    zeros = operators.grid_taps(POSITIONS, (4, 4), 1, 0, False, (9, 0, 0))[1]
    plain = operators.grid_taps(POSITIONS, (4, 4), 1, 0, False, (-3, 0, 0))[1]
    assert (zeros == 0).all() and cygrad.equal(plain, operators.grid_taps(POSITIONS, *OPTIONS)[1])
