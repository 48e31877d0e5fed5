"""Gradients that do not depend on the input require grad under `create_graph=True` as in PyTorch."""

import pytest

import cygrad
from tests.reference import torch

pytestmark = pytest.mark.guarantee("B5")

DATA = [[0.1, -0.7, 0.9], [0.3, 0.2, -0.4]]

CASES = {
    "clamp": lambda m, x: m.clamp(x, -0.5, 0.5),
    "sign": lambda m, x: m.sign(x),
    "max": lambda m, x: x.max(),
    "max along a dimension": lambda m, x: x.max(1)[0],
    "cumsum": lambda m, x: x.cumsum(1),
    "linear": lambda m, x: m.nn.functional.linear(x, m.ones(2, 3)),
    "sum": lambda m, x: x.sum(),
    "mean": lambda m, x: x.mean(),
    "floor": lambda m, x: x.floor(),
    "pad": lambda m, x: m.nn.functional.pad(x, (1, 1)),
    "sort": lambda m, x: x.sort(1)[0],
    "interpolate": lambda m, x: m.nn.functional.interpolate(x[None], scale_factor=2),
    "relu": lambda m, x: m.relu(x),
}


def twice(module, function):
    """Return whether the gradient requires grad, and the result of a further backward, or None if it raises."""
    x = module.tensor(DATA, requires_grad=True)
    y = function(module, x)
    gradient, = module.autograd.grad(y, x, module.ones(tuple(y.shape)), create_graph=True)
    if gradient.requires_grad:
        return True, module.autograd.grad(gradient.sum(), x)[0].tolist()
    with pytest.raises(RuntimeError, match="does not require grad"):
        module.autograd.grad(gradient.sum(), x)
    return False, None


@pytest.mark.parametrize("name", CASES)
def test_constant_gradients_require_grad_where_they_do_in_pytorch(name):
    assert twice(cygrad, CASES[name]) == twice(torch, CASES[name])
