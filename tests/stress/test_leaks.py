"""Training steps (100,000 of each kind in `make stress`) leak no memory, blocks or objects."""

import contextlib
import gc
import os
import sys

import pytest

import cygrad

from .conftest import TIMES

pytestmark = pytest.mark.slow

F = cygrad.nn.functional
STEPS = 400 if TIMES == 1 else 5000 * TIMES


def trained(model, *shape):
    optimizer = cygrad.optim.Adam(model.parameters(), lr=1e-5)
    x = cygrad.ones(*shape)

    def step():
        optimizer.zero_grad()
        found = model(x)
        (found[0] if isinstance(found, tuple) else found).square().mean().backward()
        optimizer.step()

    return step


def mlp():
    return trained(cygrad.nn.Sequential(cygrad.nn.Linear(3, 8), cygrad.nn.ReLU(), cygrad.nn.Linear(8, 2)), 4, 3)


def recurrent():
    return trained(cygrad.nn.RNN(2, 3), 3, 2, 2)


def convolution():
    return trained(cygrad.nn.Sequential(cygrad.nn.Conv2d(1, 2, 3), cygrad.nn.BatchNorm2d(2)), 2, 1, 5, 5)


def create_graph():
    x = cygrad.ones(3, requires_grad=True)

    def step():
        first, = cygrad.autograd.grad((x**3).sum(), x, create_graph=True)
        first.square().sum().backward()
        x.grad = None

    return step


class Fails(cygrad.autograd.Function):
    @staticmethod
    def forward(ctx, x, where):
        ctx.save_for_backward(x)
        ctx.where = where
        if where == "forward":
            raise KeyError(where)
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        raise KeyError(ctx.where)


def exceptions():
    x = cygrad.ones(3, requires_grad=True)

    def step():
        for deed in (lambda: Fails.apply(x * 2, "forward"), lambda: Fails.apply(x * 2, "backward").sum().backward(),
                     lambda: (x * 2) @ cygrad.ones(7), lambda: (x * 2).view(99), lambda: cygrad.ones(2**62, 2**62)):
            with contextlib.suppress(KeyError, RuntimeError):
                deed()

    return step


def compiled():
    return cygrad.compile(mlp())


def transformed():
    hessian = cygrad.vmap(cygrad.func.hessian(lambda x: (x**3).sum()))
    return lambda: hessian(cygrad.ones(2, 2))


def forward_over_reverse():
    x = cygrad.ones(3, requires_grad=True)
    twice = x.detach().requires_grad_()

    def step():
        for function in (cygrad.exp, cygrad.tanh, lambda z: z.sigmoid() * z, lambda z: (z * 1).exp_()):
            cygrad.func.jvp(function, (x,), (cygrad.ones(3),))
        with cygrad.autograd.forward_ad.dual_level():
            dual = cygrad.autograd.forward_ad.make_dual(twice, cygrad.ones(3)).exp()
            cygrad.autograd.grad(dual.sum(), twice)

    return step


def lent():
    def step():
        x = cygrad.ones(5)
        seen, capsule = x.numpy(), x.__dlpack__()
        cygrad.from_dlpack(x)
        x.data = cygrad.zeros(2)
        return seen, capsule

    return step


def in_use():
    """Return memory, blocks and objects after a collection."""
    gc.collect()
    stats = cygrad.memory_stats()
    return [stats["small_in_use"], stats["large_in_use"], sys.getallocatedblocks(), len(gc.get_objects())]


def resident():
    with open("/proc/self/statm") as facts:
        return int(facts.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize("make", [mlp, recurrent, convolution, create_graph, exceptions, compiled, transformed,
                                  forward_over_reverse, lent])
def test_steps_leave_nothing(make):
    step = make()
    steps = STEPS // (10 if make in (transformed, lent) else 1)       # a step of lent looks through all objects
    for _ in range(50):
        step()
    before, first = in_use(), resident()
    for _ in range(steps):
        step()
    after = in_use()
    assert [max(0, a - b) for a, b in zip(after[:2], before[:2], strict=True)] == [0, 0]
    assert after[2] - before[2] < 300 + steps // 1000          # Python keeps some blocks for itself
    assert after[3] - before[3] < 20
    assert resident() - first < 4 << 20
