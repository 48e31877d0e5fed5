"""Differentiable optimizer steps (``differentiable=True``) and their options."""

import warnings

import pytest

import cygrad
from cygrad import optim

OPTIONS = {
    "SGD": [{}, {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}, {"momentum": 0.9, "dampening": 0.2}],
    "Adam": [{}, {"amsgrad": True, "weight_decay": 0.1}, {"maximize": True}], "AdamW": [{}], "Adagrad": [
        {"lr_decay": 0.1, "initial_accumulator_value": 0.5}],
    "RMSprop": [{}, {"centered": True, "momentum": 0.5}], "Rprop": [{}], "ASGD": [{"t0": 1, "weight_decay": 0.1}],
    "Adadelta": [{"weight_decay": 0.1}], "Adamax": [{}], "NAdam": [{"decoupled_weight_decay": True,
                                                                     "weight_decay": 0.1}],
    "RAdam": [{}],
}
CASES = [(name, options) for name, several in OPTIONS.items() for options in several]


SLOPE = (3.0, 0.7, -1.3)


def moved(name, options, start, differentiable, steps=7):
    """A parameter after some steps down a quadratic bowl, whose gradients are those at its start."""
    slope = cygrad.tensor(SLOPE, dtype=cygrad.float64)
    parameter = start.clone()
    optimizer = getattr(optim, name)([parameter], lr=0.1, differentiable=differentiable, **options)
    for step in range(steps):
        parameter.grad = slope * start * (1 + step)
        optimizer.step()
    return parameter


@pytest.mark.filterwarnings("ignore:.grad of a non-leaf")
@pytest.mark.parametrize(("name", "options"), CASES)
def test_recorded_steps(name, options):
    """Where they lead is where the fused steps lead, and their derivative is that of finite differences."""
    values = [1.0, -2.0, 0.5]
    start = cygrad.tensor(values, dtype=cygrad.float64, requires_grad=True)
    found = moved(name, options, start, True)
    assert cygrad.allclose(found, moved(name, options, start.detach(), False), rtol=1e-9)
    (gradient,) = cygrad.autograd.grad(found.sum(), start)
    for place, value in enumerate(values):
        ends = []
        for shift in (1e-5, -1e-5):
            shifted = cygrad.tensor([value + shift if place == other else values[other] for other in range(3)],
                                    dtype=cygrad.float64)
            ends.append(moved(name, options, shifted, False).sum().item())
        assert gradient[place].item() == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-5, abs=1e-6)


@pytest.mark.filterwarnings("ignore:.grad of a non-leaf")
def test_derivative_by_the_rate():
    rate = cygrad.tensor(0.1, dtype=cygrad.float64, requires_grad=True)
    start = cygrad.tensor([2.0], dtype=cygrad.float64, requires_grad=True)
    moved = start * 1
    moved.grad = cygrad.tensor([3.0], dtype=cygrad.float64)
    optim.SGD([moved], lr=rate, differentiable=True).step()
    moved.sum().backward()
    assert rate.grad.item() == -3 and start.grad.tolist() == [1]


@pytest.mark.filterwarnings("ignore:.grad of a non-leaf")
def test_recorded_steps_refuse():
    x = cygrad.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="does not support `differentiable`"):
        optim.Adam([x], fused=True, differentiable=True)
    x.grad = cygrad.ones(2)
    with pytest.raises(RuntimeError, match="leaf"):
        optim.SGD([x], differentiable=True).step()
    z = cygrad.ones(2, dtype=cygrad.complex64, requires_grad=True) * 1
    z.grad = cygrad.ones(2, dtype=cygrad.complex64)
    with pytest.raises(RuntimeError, match="complex parameters"):
        optim.SGD([z], differentiable=True).step()
    with pytest.raises(ValueError, match="non-leaf"):
        optim.SGD([x * 2])


@pytest.mark.parametrize(("name", "options", "match"), [
    ("SGD", {"lr": -1}, "learning rate"), ("Adam", {"betas": (2, 0.1)}, "beta"), ("Rprop", {"etas": (2, 1)}, "eta"),
    ("ASGD", {"weight_decay": -1}, "weight_decay"), ("NAdam", {"momentum_decay": -1}, "momentum_decay")])
def test_options_are_checked_first(name, options, match):
    with pytest.raises(ValueError, match=match):
        getattr(optim, name)([], **options)


@pytest.mark.parametrize("name", ["Adam", "AdamW"])
def test_a_tensor_as_rate_of_foreach(name):
    with pytest.raises(ValueError, match="lr as a Tensor is not supported"):
        getattr(optim, name)([cygrad.ones(2, requires_grad=True)], lr=cygrad.tensor(0.1), foreach=True)


def test_lbfgs_at_rest():
    x = cygrad.ones(2, requires_grad=True)
    optimizer = optim.LBFGS([x], tolerance_grad=-1, tolerance_change=-1)

    def closure():
        x.grad = cygrad.zeros(2)
        return x.sum()
    optimizer.step(closure)
    assert x.tolist() == [1, 1]


def test_schedulers_notice_a_replaced_step():
    optimizer = optim.SGD([cygrad.ones(2, requires_grad=True)], lr=0.1)
    scheduler = optim.lr_scheduler.StepLR(optimizer, 1)
    optimizer.step = lambda: None
    with pytest.warns(UserWarning, match="was overridden after"):
        scheduler.step()
    assert "_optimizer_step" not in scheduler.state_dict()
    optimizer = optim.SGD([cygrad.ones(2, requires_grad=True)], lr=0.1)
    scheduler = optim.lr_scheduler.StepLR(optimizer, 1)
    optimizer.step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scheduler.step()
