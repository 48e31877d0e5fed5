"""Learning rate schedulers compared with PyTorch."""

import copy
import inspect
import math
import pickle
import warnings

import pytest

import cygrad
from cygrad import optim
from cygrad.optim import lr_scheduler, swa_utils
from tests.reference import torch

SCHEDULES = {
    "LambdaLR": [
        {"lr_lambda": lambda step: 0.9**step},
        {"lr_lambda": [lambda step: step, lambda step: 1 / (step + 1)]},
    ],
    "MultiplicativeLR": [{"lr_lambda": lambda step: 0.9 + 0.01 * step}],
    "StepLR": [{"step_size": 3}, {"step_size": 1, "gamma": 0.9}],
    "MultiStepLR": [{"milestones": [2, 5, 5, 9], "gamma": 0.5}],
    "ConstantLR": [{}, {"factor": 0.5, "total_iters": 3}, {"total_iters": 0}],
    "LinearLR": [
        {},
        {"start_factor": 0.1, "end_factor": 0.7, "total_iters": 8},
        {"start_factor": 1.0, "end_factor": 0.0},
    ],
    "ExponentialLR": [{"gamma": 0.8}],
    "PolynomialLR": [{}, {"total_iters": 12, "power": 2.5}],
    "CosineAnnealingLR": [{"T_max": 5}, {"T_max": 7, "eta_min": 0.01}, {"T_max": 1}],
    "CosineAnnealingWarmRestarts": [{"T_0": 4}, {"T_0": 2, "T_mult": 3, "eta_min": 0.02}],
    "CyclicLR": [
        {"base_lr": 0.1, "max_lr": 0.5, "step_size_up": 4},
        {"base_lr": [0.1, 0.2], "max_lr": [0.5, 0.9], "step_size_up": 2, "step_size_down": 5, "mode": "triangular2"},
        {"base_lr": 0.1, "max_lr": 0.5, "step_size_up": 3, "mode": "exp_range", "gamma": 0.9, "cycle_momentum": False},
        {
            "base_lr": 0.1,
            "max_lr": 0.5,
            "step_size_up": 3,
            "scale_fn": lambda x: 1 / (x + 1),
            "scale_mode": "iterations",
        },
    ],
    "OneCycleLR": [
        {"max_lr": 0.5, "total_steps": 30},
        {"max_lr": [0.5, 0.1], "epochs": 5, "steps_per_epoch": 6},
        {"max_lr": 0.5, "total_steps": 30, "three_phase": True, "anneal_strategy": "linear"},
        {"max_lr": 0.5, "total_steps": 30, "pct_start": 0.5, "cycle_momentum": False, "div_factor": 4.0},
    ],
}
CASES = [(name, options) for name, all_options in SCHEDULES.items() for options in all_options]
STEPS = 25


def optimizer_of(library, name="SGD", **options):
    """Return an optimizer with two groups of different rates."""
    a, b = (library.zeros(2, requires_grad=True) for _ in range(2))
    if name == "SGD":
        options = {"momentum": 0.9, **options}
    return getattr(library.optim, name)([{"params": [a]}, {"params": [b], "lr": 0.3}], lr=0.7, **options)


def follow(optimizer, schedule, steps=STEPS):
    """What the schedule does, step by step."""
    seen = []
    for _ in range(steps):
        seen.append([(group["lr"], group.get("momentum"), group.get("betas")) for group in optimizer.param_groups])
        assert [float(rate) for rate in schedule.get_last_lr()] == [
            float(group["lr"]) for group in optimizer.param_groups
        ]
        optimizer.step()
        schedule.step()
    return seen


def flat(seen):
    return [float(x) for step in seen for group in step for value in group if value is not None
            for x in (value if isinstance(value, tuple) else (value,))]


@pytest.mark.parametrize("kind", ["SGD", "Adam"])
@pytest.mark.parametrize(("name", "options"), CASES)
def test_same_rates_as_pytorch(name, options, kind):
    ours, theirs = (follow(optimizer, getattr(library.optim.lr_scheduler, name)(optimizer, **copy.deepcopy(options)))
                    for library in (cygrad, torch) for optimizer in [optimizer_of(library, kind)])
    assert flat(ours) == pytest.approx(flat(theirs), rel=1e-12, abs=1e-15)


@pytest.mark.parametrize(("name", "options"), CASES)
def test_same_signature_as_pytorch(name, options):
    for library in (lr_scheduler, torch.optim.lr_scheduler):
        parameters = inspect.signature(getattr(library, name).__init__).parameters.values()
        seen = [(p.name, p.default, p.kind) for p in parameters]
        if library is lr_scheduler:
            ours = seen
    assert ours == seen


@pytest.mark.parametrize(("name", "options"), CASES)
def test_a_resumed_schedule_goes_on_where_it_was(name, options):
    optimizer = optimizer_of(cygrad)
    expected = follow(optimizer, getattr(lr_scheduler, name)(optimizer, **options))
    optimizer = optimizer_of(cygrad)
    schedule = getattr(lr_scheduler, name)(optimizer, **options)
    begun = follow(optimizer, schedule, 9)
    saved = pickle.loads(pickle.dumps((schedule.state_dict(), optimizer.state_dict()))) if (
        "lambda" not in repr(schedule.state_dict())) else (schedule.state_dict(), optimizer.state_dict())
    other = optimizer_of(cygrad)
    resumed = getattr(lr_scheduler, name)(other, **options)
    resumed.load_state_dict(saved[0])
    other.load_state_dict(saved[1])
    assert flat(begun + follow(other, resumed, STEPS - 9)) == pytest.approx(flat(expected), rel=1e-12)


@pytest.mark.parametrize(("name", "options"), CASES)
def test_last_epoch_and_given_epochs_are_those_of_pytorch(name, options):
    results = []
    for library in (cygrad, torch):
        optimizer = optimizer_of(library)
        getattr(library.optim.lr_scheduler, name)(optimizer, **options)
        schedule = getattr(library.optim.lr_scheduler, name)(optimizer, **options, last_epoch=3)
        seen = flat(follow(optimizer, schedule, 6))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for epoch in (2, 7, 8):
                schedule.step(epoch)
                seen += [float(group["lr"]) for group in optimizer.param_groups]
        results.append(seen)
    assert results[0] == pytest.approx(results[1], rel=1e-12, abs=1e-15)


def test_chains_and_sequences_are_those_of_pytorch():
    results = []
    for library in (cygrad, torch):
        if library is torch:       # warns of the order when one sequence is made a part of another
            warnings.simplefilter("ignore")
        module = library.optim.lr_scheduler
        optimizer = optimizer_of(library)
        chain = module.ChainedScheduler([module.ConstantLR(optimizer, 0.1, 4), module.ExponentialLR(optimizer, 0.9)])
        seen = flat(follow(optimizer, chain))
        for milestones in ([4], [4, 10]):
            optimizer = optimizer_of(library)
            parts = [module.LinearLR(optimizer, 0.1, total_iters=4), module.CosineAnnealingLR(optimizer, 9),
                     module.StepLR(optimizer, 3)]
            seen += flat(follow(optimizer, module.SequentialLR(optimizer, parts[:len(milestones) + 1], milestones)))
        optimizer = optimizer_of(library)
        inner = module.SequentialLR(
            optimizer, [module.ConstantLR(optimizer, 0.5, 2), module.ExponentialLR(optimizer, 0.7)], [3]
        )
        outer = module.SequentialLR(optimizer, [inner, module.StepLR(optimizer, 2)], [8])
        seen += flat(follow(optimizer, outer))
        results.append(seen)
    assert results[0] == pytest.approx(results[1], rel=1e-12)


def test_state_of_combined_schedules():
    def make(optimizer):
        return lr_scheduler.SequentialLR(
            optimizer, [lr_scheduler.LinearLR(optimizer), lr_scheduler.StepLR(optimizer, 2)], [5]
        )

    optimizer = optimizer_of(cygrad)
    expected = follow(optimizer, make(optimizer), 14)
    optimizer = optimizer_of(cygrad)
    schedule = make(optimizer)
    follow(optimizer, schedule, 4)
    other = optimizer_of(cygrad)
    resumed = make(other)
    saved = schedule.state_dict()
    resumed.load_state_dict(saved)
    assert "_schedulers" in saved
    other.load_state_dict(optimizer.state_dict())
    assert flat(follow(other, resumed, 10)) == pytest.approx(flat(expected[4:]), rel=1e-12)


LOSSES = [5, 4, 4, 4.0001, 3.9999, 4, 4, 4, 3, 3, 3, 3, 3, 2.9999, 3, 3, 3, 3, 3, 3, 3, 1, 1, 1, math.nan, 1, 1]


@pytest.mark.parametrize("options", [
    {"patience": 1}, {"patience": 0, "cooldown": 2, "factor": 0.5}, {"mode": "max", "patience": 2},
    {"patience": 1, "threshold": 0.5, "threshold_mode": "abs"}, {"patience": 0, "min_lr": [0.01, 0.2]},
    {"patience": 0, "eps": 0.1}, {"mode": "max", "threshold_mode": "abs", "threshold": 0.1, "patience": 3}])
def test_plateau_is_that_of_pytorch(options):
    results = []
    for library in (cygrad, torch):
        optimizer = optimizer_of(library)
        schedule = library.optim.lr_scheduler.ReduceLROnPlateau(optimizer, **options)
        seen = []
        for loss in LOSSES:
            schedule.step(library.tensor(float(loss)))
            seen.append([*schedule.get_last_lr(), schedule.num_bad_epochs, schedule.cooldown_counter])
        results.append(seen)
    assert results[0] == results[1]


def test_plateau_goes_on_after_loading_and_sees_new_groups():
    optimizer = optimizer_of(cygrad)
    schedule = lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
    schedule.step(1.0)
    other = lr_scheduler.ReduceLROnPlateau(optimizer, patience=5)
    other.load_state_dict(schedule.state_dict())
    assert (other.best, other.patience) == (1.0, 0)
    optimizer.add_param_group({"params": [cygrad.zeros(1, requires_grad=True)], "lr": 1.0})
    other.step(2.0)
    assert [group["lr"] for group in optimizer.param_groups] == pytest.approx([0.07, 0.03, 0.1])
    listed = lr_scheduler.ReduceLROnPlateau(optimizer_of(cygrad), patience=0, min_lr=[0, 0])
    listed.optimizer.add_param_group({"params": [cygrad.zeros(1, requires_grad=True)]})
    listed.step(1.0)
    with pytest.raises(RuntimeError, match="min_lrs"):
        listed.step(1.0)


def test_rates_that_are_tensors_are_changed_in_place():
    rate = cygrad.tensor(0.5)
    optimizer = optim.SGD([cygrad.zeros(1, requires_grad=True)], lr=rate)
    schedule = lr_scheduler.ExponentialLR(optimizer, 0.5)
    optimizer.step()
    schedule.step()
    assert optimizer.param_groups[0]["lr"] is rate
    assert rate.item() == 0.25
    assert schedule.base_lrs[0].item() == 0.5


def test_the_order_of_steps():
    optimizer = optimizer_of(cygrad)
    schedule = lr_scheduler.ExponentialLR(optimizer, 0.5)
    with pytest.warns(UserWarning, match="before `optimizer.step"):
        schedule.step()
    optimizer = optimizer_of(cygrad)
    schedule = lr_scheduler.ExponentialLR(optimizer, 0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        optimizer.step()
        schedule.step()
    with pytest.warns(UserWarning, match="get_last_lr"):
        schedule.get_lr()
    with pytest.warns(UserWarning, match="deprecated"):
        schedule.step(4)


@pytest.mark.parametrize(("make", "error", "text"), [
    (lambda o: lr_scheduler.StepLR(3, 1), TypeError, "is not an Optimizer"),
    (lambda o: lr_scheduler.StepLR(o, 1, last_epoch=2), KeyError, "initial_lr"),
    (lambda o: lr_scheduler.LambdaLR(o, [abs]), ValueError, "lr_lambda"),
    (lambda o: lr_scheduler.MultiplicativeLR(o, 3), TypeError, "must be callable"),
    (lambda o: lr_scheduler.ConstantLR(o, 2), ValueError, "from 0 to 1"),
    (lambda o: lr_scheduler.LinearLR(o, 0), ValueError, "must be positive"),
    (lambda o: lr_scheduler.LinearLR(o, 1, 2), ValueError, "from 0 to 1"),
    (lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 0), ValueError, "T_0"),
    (lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 1, 0), ValueError, "T_mult"),
    (lambda o: lr_scheduler.CyclicLR(o, 0.1, 0.2, mode="abc"), ValueError, "unknown mode"),
    (lambda o: lr_scheduler.CyclicLR(optim.Adagrad(o.param_groups[0]["params"]), 0.1, 0.2), ValueError, "momentum"),
    (lambda o: lr_scheduler.OneCycleLR(o, 0.1), ValueError, "total_steps"),
    (lambda o: lr_scheduler.OneCycleLR(o, 0.1, 0), ValueError, "positive integer total_steps"),
    (lambda o: lr_scheduler.OneCycleLR(o, 0.1, 5, pct_start=2.0), ValueError, "pct_start"),
    (lambda o: lr_scheduler.OneCycleLR(o, 0.1, 5, anneal_strategy="x"), ValueError, "anneal_strategy"),
    (lambda o: lr_scheduler.ReduceLROnPlateau(o, factor=1.0), ValueError, "Factor"),
    (lambda o: lr_scheduler.ReduceLROnPlateau(o, mode="x"), ValueError, "mode x is unknown"),
    (lambda o: lr_scheduler.ReduceLROnPlateau(o, min_lr=[1]), ValueError, "min_lr"),
    (lambda o: lr_scheduler.ChainedScheduler([]), ValueError, "one or more"),
    (lambda o: lr_scheduler.ChainedScheduler([lr_scheduler.ReduceLROnPlateau(o)]), ValueError, "ReduceLROnPlateau"),
    (lambda o: lr_scheduler.SequentialLR(o, [lr_scheduler.ExponentialLR(o, 1)], [3]), ValueError, "one milestone less"),
    (lambda o: lr_scheduler.SequentialLR(o, [lr_scheduler.ExponentialLR(optimizer_of(cygrad), 1)], []), ValueError,
     "the same optimizer"),
    (lambda o: swa_utils.SWALR(o, 0.1, -1), ValueError, "anneal_epochs"),
    (lambda o: swa_utils.SWALR(o, 0.1, anneal_strategy="x"), ValueError, "anneal_strategy"),
])
def test_wrong_arguments(make, error, text):
    with pytest.raises(error, match=text):
        make(optimizer_of(cygrad))


def test_one_cycle_ends():
    optimizer = optimizer_of(cygrad)
    schedule = lr_scheduler.OneCycleLR(optimizer, 0.1, 3)
    follow(optimizer, schedule, 3)
    with pytest.raises(ValueError, match="got step 4"):
        schedule.step()


# ---------------------------------------------------------------------------------------------------------- averages

@pytest.mark.parametrize("options", [{}, {"anneal_strategy": "linear"}, {"anneal_epochs": 0}, {"anneal_epochs": 3}])
def test_swa_rates_are_those_of_pytorch(options):
    results = []
    for library in (cygrad, torch):
        optimizer = optimizer_of(library)
        schedule = library.optim.swa_utils.SWALR(optimizer, 0.05, **options)
        results.append(flat(follow(optimizer, schedule, 15)))
        assert schedule.state_dict()["anneal_epochs"] == options.get("anneal_epochs", 10)
    assert results[0] == pytest.approx(results[1], rel=1e-12)


AVERAGES = {
    "default": lambda module: {},
    "swa": lambda module: {"avg_fn": module.get_swa_avg_fn()},
    "ema": lambda module: {"avg_fn": module.get_ema_avg_fn(0.7)},
    "multi ema": lambda module: {"multi_avg_fn": module.get_ema_multi_avg_fn(0.7)},
    "multi swa": lambda module: {"multi_avg_fn": module.get_swa_multi_avg_fn()},
    "buffers": lambda module: {"use_buffers": True},
}


@pytest.mark.parametrize("kind", AVERAGES)
def test_averaged_models_are_those_of_pytorch(kind):
    results = []
    for library in (cygrad, torch):
        model = library.nn.Linear(2, 3)
        model.register_buffer("count", library.zeros(2))
        averaged = library.optim.swa_utils.AveragedModel(model, **AVERAGES[kind](library.optim.swa_utils))
        for number in range(5):
            with library.no_grad():
                for position, tensor in enumerate([*model.parameters(), *model.buffers()]):
                    tensor.fill_((number + 1) ** 2 + position)
            averaged.update_parameters(model)
        assert averaged.n_averaged.item() == 5
        assert averaged(library.ones(1, 2)).shape == (1, 3)
        results.append([tensor.reshape(-1)[0].item() for tensor in averaged.module.state_dict().values()])
        assert list(averaged.state_dict()) == ["n_averaged", "module.weight", "module.bias", "module.count"]
    assert results[0] == pytest.approx(results[1], rel=1e-6)


def test_wrong_averages():
    with pytest.raises(ValueError, match="decay"):
        swa_utils.get_ema_avg_fn(1.5)
    with pytest.raises(ValueError, match="decay"):
        swa_utils.get_ema_multi_avg_fn(-1)
    with pytest.raises(AssertionError, match="got both"):
        swa_utils.AveragedModel(cygrad.nn.Linear(1, 1), avg_fn=abs, multi_avg_fn=abs)


def test_update_bn_takes_the_plain_mean_of_all_batches():
    class _BatchNorm(cygrad.nn.Module):        # known by its name
        def __init__(self):
            super().__init__()
            self.momentum = 0.1
            self.register_buffer("running_mean", cygrad.full((2,), 100.0))
            self.count = 5

        def reset_running_stats(self):
            self.running_mean.zero_()
            self.count = 0

        def forward(self, x):
            assert self.training
            assert self.momentum is None
            assert not cygrad.is_grad_enabled()
            self.count += 1
            self.running_mean += (x.mean(0) - self.running_mean) / self.count
            return x

    model = cygrad.nn.Sequential(cygrad.nn.Linear(2, 2), _BatchNorm())
    model.eval()
    batches = [cygrad.randn(8, 2) for _ in range(4)]
    swa_utils.update_bn([(batch, None) for batch in batches], model)
    expected = cygrad.stack([model[0](batch).mean(0) for batch in batches]).mean(0)
    assert cygrad.allclose(model[1].running_mean, expected, atol=1e-6)
    assert not model.training
    assert model[1].momentum == 0.1
    swa_utils.update_bn(batches, cygrad.nn.Linear(2, 2))


@pytest.mark.parametrize("create", [
    lambda optimizer, low, high: lr_scheduler.CyclicLR(
        optimizer, base_lr=low, max_lr=high, base_momentum=low, max_momentum=high, step_size_up=3),
    lambda optimizer, low, high: lr_scheduler.OneCycleLR(
        optimizer, max_lr=high, total_steps=9, base_momentum=low, max_momentum=high),
    lambda optimizer, low, high: swa_utils.SWALR(optimizer, swa_lr=low, anneal_epochs=3),
], ids=["CyclicLR", "OneCycleLR", "SWALR"])
def test_bounds_given_as_tensors_are_copied(create):
    found = []
    for change in (1, 0.5):
        optimizer = optim.SGD([cygrad.zeros(1, requires_grad=True)], lr=0.1, momentum=0.5)
        low, high = cygrad.tensor(0.1), cygrad.tensor(0.2)
        scheduler = create(optimizer, low, high)
        low.mul_(change)
        high.mul_(change)
        rates = []
        for _ in range(4):
            optimizer.step()
            scheduler.step()
            rates.append((float(optimizer.param_groups[0]["lr"]), float(optimizer.param_groups[0]["momentum"])))
        found.append(rates)
    assert found[0] == found[1]
