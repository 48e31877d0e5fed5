"""Deep graphs (10**7 nodes in `make stress`): recording, backward and destruction."""

import pytest

from tests.tools import run_program

from .conftest import TIMES

pytestmark = pytest.mark.slow

DEPTH = 10**5 if TIMES == 1 else 10**7
KINDS = {
    "plain": ("y = y + 1", ""),
    "saved": ("y = y * x", ""),
    "custom": ("y = Same.apply(y)", ""),
    "hooks": ("y = y + 1; y.register_hook(passed)", ""),
    "hooks of nodes": ("y = y + 1; y.grad_fn.register_prehook(passed)", ""),
    "views": ("y = y.view(1)", ""),
    "in place": ("y.add_(1)", "y = y * 1"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_backward_and_destruction(kind):
    """The second time the graph is destroyed without a backward."""
    step, start = KINDS[kind]
    assert run_program(f"""
import cygrad
class Same(cygrad.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x * 1
    @staticmethod
    def backward(ctx, grad): return grad
def passed(*grads): return None
for turn in range(2):
    x = cygrad.ones(1, requires_grad=True)
    y = x
    {start or 'pass'}
    for _ in range({DEPTH}):
        {step}
    if turn == 0:
        y.sum().backward()
        print(x.grad.item() > 0)
    del y
""", timeout=3000) == ["True"]


def test_with_create_graph():
    """The graph of the gradient is deep as well, and is gone back through."""
    assert run_program(f"""
import cygrad
x = cygrad.ones((), dtype=cygrad.float64, requires_grad=True)
y = x
for _ in range({DEPTH // 4}):
    y = y * x
first, = cygrad.autograd.grad(y, x, create_graph=True)
second, = cygrad.autograd.grad(first, x)
n = {DEPTH // 4} + 1
print(first.item() == n, second.item() == n * (n - 1))
""", timeout=3000) == ["True", "True"]
