"""Hooks of optimizers, and named parameters."""

import copy
import pickle

import pytest

import cygrad
from cygrad import nn, optim
from cygrad.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook


def optimizer_of(name="SGD", **options):
    w = cygrad.ones(2, requires_grad=True)
    w.grad = cygrad.ones(2)
    return w, getattr(optim, name)([w], lr=0.5, **options)


def test_order_of_step_hooks():
    w, optimizer = optimizer_of()
    seen = []
    handles = [
        optimizer.register_step_pre_hook(lambda o, args, kwargs: seen.append(("before", o is optimizer, w[0].item()))),
        optimizer.register_step_post_hook(lambda o, args, kwargs: seen.append(("after", o is optimizer, w[0].item()))),
        register_optimizer_step_pre_hook(lambda o, args, kwargs: seen.append("all before")),
        register_optimizer_step_post_hook(lambda o, args, kwargs: seen.append("all after")),
    ]
    try:
        optimizer.step()
        assert seen == ["all before", ("before", True, 1.0), ("after", True, 0.5), "all after"]
    finally:
        for handle in handles:
            handle.remove()
    optimizer.step()
    assert len(seen) == 4


def test_pre_hooks_replace_arguments():
    _, optimizer = optimizer_of()
    optimizer.register_step_pre_hook(lambda o, args, kwargs: ((lambda: 7,), {}))
    assert optimizer.step() == 7
    optimizer.register_step_pre_hook(lambda o, args, kwargs: 3)
    with pytest.raises(RuntimeError, match="step pre-hook"):
        optimizer.step()
    with pytest.raises(TypeError, match="must be callable"):
        optimizer.register_step_post_hook(3)


def test_a_step_that_calls_that_of_its_base_runs_hooks_once():
    class Twice(optim.SGD):
        def step(self, closure=None):
            super().step(closure)
            return super().step()

    w = cygrad.ones(1, requires_grad=True)
    w.grad = cygrad.ones(1)
    optimizer = Twice([w], lr=0.25)
    seen = []
    optimizer.register_step_post_hook(lambda *_: seen.append(w.item()))
    optimizer.step()
    optimizer.step()
    assert seen == [0.5, 0.0]


def test_an_optimizer_of_ones_own():
    class Sign(optim.Optimizer):
        def __init__(self, params, lr):
            super().__init__(params, {"lr": lr})

        def step(self, closure=None):
            with cygrad.no_grad():
                for group in self.param_groups:
                    for p in group["params"]:
                        p -= group["lr"] * p.grad.sign()

    w = cygrad.tensor([1.0, -1.0], requires_grad=True)
    (w * w).sum().backward()
    optimizer = Sign([w], 0.5)
    scheduler = optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    optimizer.step()
    scheduler.step()                       # no warning: the step was seen
    assert w.tolist() == [0.5, -0.5]
    assert optimizer.param_groups[0]["lr"] == 0.25


def test_hooks_of_saving_and_loading():
    _, optimizer = optimizer_of("Adam")
    optimizer.step()
    seen = []
    optimizer.register_state_dict_pre_hook(lambda o: seen.append("save"))
    optimizer.register_state_dict_post_hook(lambda o, state: {**state, "extra": 1})
    optimizer.register_state_dict_post_hook(lambda o, state: seen.append(sorted(state)))
    optimizer.register_state_dict_post_hook(lambda o, state: seen.append("first"), prepend=True)
    saved = optimizer.state_dict()
    assert saved["extra"] == 1
    assert seen == ["save", "first", ["extra", "param_groups", "state"]]
    _, other = optimizer_of("Adam")
    other.register_load_state_dict_pre_hook(
        lambda o, state: {**state, "param_groups": [{**state["param_groups"][0], "lr": 9.0}]})
    other.register_load_state_dict_post_hook(lambda o: seen.append(o.param_groups[0]["lr"]))
    other.load_state_dict(saved)
    assert seen[-1] == 9.0
    assert saved["param_groups"][0]["lr"] == 0.5
    for duplicate in copy.deepcopy(other), pickle.loads(pickle.dumps(other)):
        duplicate.load_state_dict(saved)
        assert duplicate.param_groups[0]["lr"] == 0.5        # hooks are not copied


def test_named_parameters():
    model = nn.Linear(2, 1)
    optimizer = optim.SGD(model.named_parameters(), lr=0.1)
    assert optimizer.param_groups[0]["param_names"] == ["weight", "bias"]
    assert optimizer.param_groups[0]["params"][0] is model.weight
    assert optimizer.state_dict()["param_groups"][0]["param_names"] == ["weight", "bias"]
    with pytest.raises(ValueError, match="names"):
        optimizer.add_param_group({"params": [cygrad.ones(1, requires_grad=True)]})
    with pytest.raises(ValueError, match="names"):
        optim.SGD([("weight", model.weight), model.bias])


def test_loaded_groups_get_defaults_for_options_that_the_file_does_not_have():
    _, optimizer = optimizer_of("Adam")
    saved = optimizer.state_dict()
    del saved["param_groups"][0]["amsgrad"]
    w, other = optimizer_of("Adam", amsgrad=True)
    other.load_state_dict(saved)
    assert other.param_groups[0]["amsgrad"] is True
    other.step()
    assert "max_exp_avg_sq" in other.state[w]


def test_loaded_real_numbers_of_a_complex_parameter_stay_real():
    w = cygrad.ones(2, dtype=cygrad.complex64, requires_grad=True)
    w.grad = cygrad.ones(2, dtype=cygrad.complex64)
    optimizer = optim.NAdam([w])
    optimizer.step()
    other = optim.NAdam([w])
    other.load_state_dict(optimizer.state_dict())
    assert other.state[w]["mu_product"].dtype == cygrad.float32
    assert other.state[w]["exp_avg"].dtype == cygrad.complex64
    other.step()


def test_the_count_of_steps_has_the_default_dtype():
    cygrad.set_default_dtype(cygrad.float64)
    try:
        w, optimizer = optimizer_of("Adam")
        optimizer.step()
        assert optimizer.state[w]["step"].dtype == cygrad.float64
    finally:
        cygrad.set_default_dtype(cygrad.float32)
    optimizer.step()
    assert optimizer.state[w]["step"].item() == 2
