"""Every single allocation of a training step fails: an error, unchanged state, no crash."""

import pytest

import cygrad
from cygrad._core.memory.storage import fail_allocation

F = cygrad.nn.functional


def can_fail():
    """Return whether allocations can be made to fail in this build."""
    try:
        fail_allocation(0)
    except RuntimeError:
        return False
    return True


pytestmark = pytest.mark.skipif(not can_fail(), reason="needs CYGRAD_DEBUG=1 or CYGRAD_SANITIZE=address")


def mlp():
    model = cygrad.nn.Sequential(cygrad.nn.Linear(3, 4), cygrad.nn.ReLU(), cygrad.nn.Linear(4, 2))
    return model, lambda: F.mse_loss(model(cygrad.ones(5, 3)), cygrad.zeros(5, 2))


def convolution():
    model = cygrad.nn.Sequential(cygrad.nn.Conv2d(1, 2, 3), cygrad.nn.BatchNorm2d(2), cygrad.nn.MaxPool2d(2))
    return model, lambda: model(cygrad.ones(2, 1, 6, 6)).exp().sum()


def recurrent():
    model = cygrad.nn.LSTM(3, 4)
    return model, lambda: model(cygrad.ones(4, 2, 3))[0].sum()


def views():
    model = cygrad.nn.Linear(3, 3)

    def loss():
        y = model.weight * 1
        y[1:].mul_(2)
        second = y.split((1, 2))[1].clone()
        y[cygrad.tensor([True, False, True])] = cygrad.ones(2, 3)
        return (y.t() @ y + cygrad.cat([second, y[0:1]]).sin()).sum()

    return model, loss


def second_order():
    model = cygrad.nn.Linear(3, 2)

    def loss():
        x = cygrad.ones(4, 3, requires_grad=True)
        return cygrad.autograd.grad(model(x).tanh().sum(), x, create_graph=True)[0].square().sum()

    return model, loss


def step(model, loss, optimizer):
    optimizer.zero_grad()
    loss().backward()
    optimizer.step()


@pytest.mark.parametrize("make", [mlp, convolution, recurrent, views, second_order])
def test_every_allocation_of_a_training_step(make):
    cygrad.manual_seed(0)
    model, loss = make()
    optimizer = cygrad.optim.SGD(model.parameters(), lr=0.01)
    step(model, loss, optimizer)                      # compiles formulas on first use
    failures, number = 0, 1
    while True:
        grad_mode = cygrad.is_grad_enabled(), cygrad.is_inference_mode_enabled()
        fail_allocation(number)
        try:
            step(model, loss, optimizer)
        except MemoryError:
            failures += 1
        finally:
            left = fail_allocation(0)
        assert (cygrad.is_grad_enabled(), cygrad.is_inference_mode_enabled()) == grad_mode
        step(model, loss, optimizer)                  # nothing is left in a state that a further step minds
        if left:
            break
        number += 1
    assert failures > 20
