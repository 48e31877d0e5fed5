"""Every optimizer compared with PyTorch step by step, over a grid of options."""

import itertools
import threading

import numpy as np
import pytest

import cygrad
from cygrad import optim
from tests.reference import torch

STEPS = 120


def grid(**options):
    """All combinations of the options' values."""
    return [dict(zip(options, values, strict=True)) for values in itertools.product(*options.values())]


DECAYS = {"weight_decay": (0, 0.1), "maximize": (False, True)}
BETAS = {"betas": ((0.9, 0.999), (0.3, 0.6))}
OPTIONS = {
    "SGD": grid(momentum=(0, 0.9), **DECAYS) + grid(momentum=(0.7,), dampening=(0.3,)) + grid(
        momentum=(0.5,), nesterov=(True,), **DECAYS),
    "Adam": grid(amsgrad=(False, True), **BETAS, **DECAYS) + grid(
        decoupled_weight_decay=(True,), weight_decay=(0.1,), amsgrad=(False, True)),
    "AdamW": grid(amsgrad=(False, True), **BETAS, **DECAYS),
    "NAdam": grid(decoupled_weight_decay=(False, True), momentum_decay=(4e-3, 0.1), **BETAS, **DECAYS),
    "RAdam": grid(decoupled_weight_decay=(False, True), **BETAS, **DECAYS) + grid(betas=((0.0, 0.9),)),
    "Adamax": grid(**BETAS, **DECAYS),
    "Adagrad": grid(lr_decay=(0, 0.1), initial_accumulator_value=(0, 0.5), **DECAYS),
    "Adadelta": grid(rho=(0.9, 0.4), eps=(1e-6, 1e-2), **DECAYS),
    "RMSprop": grid(centered=(False, True), momentum=(0, 0.8), alpha=(0.99, 0.3), eps=(1e-2,), **DECAYS),
    "Rprop": grid(etas=((0.5, 1.2), (0.3, 2.0)), step_sizes=((1e-6, 50), (0.01, 0.06)), maximize=(False, True)),
    "ASGD": grid(t0=(1e6, 20), lambd=(1e-4, 0.1), alpha=(0.75, 0.4), **DECAYS),
}
CASES = [(name, options) for name, grid_ in OPTIONS.items() for options in grid_]
NAMES = sorted(OPTIONS)


def draw(random, shape, dtype):
    values = random.standard_normal(shape)
    if dtype.startswith("complex"):
        values = values + 1j * random.standard_normal(shape)
    return values.astype(dtype)


def problem(dtype, steps=STEPS, seed=0):
    """Start values of three parameters and their gradients for each step; some gradients are zero."""
    random = np.random.default_rng(seed)
    shapes = [(3, 5), (), (37,)]
    gradients = [[draw(random, shape, dtype) for shape in shapes] for _ in range(steps)]
    for step in gradients[3:9]:
        step[2][:5] = 0
    return [draw(random, shape, dtype) for shape in shapes], gradients


def run(library, name, options, start, gradients, look):
    """Do all steps; ``look(parameters, optimizer)`` after each."""
    parameters = [library.from_numpy(np.array(value)).requires_grad_() for value in start]
    optimizer = getattr(library.optim, name)(parameters, lr=0.05, **options)
    seen = []
    for step in gradients:
        for parameter, gradient in zip(parameters, step, strict=True):
            parameter.grad = library.from_numpy(np.array(gradient))
        optimizer.step()
        seen.append(look(parameters, optimizer))
    return seen, optimizer


def values(parameters, optimizer):
    return [parameter.detach().numpy().copy() for parameter in parameters]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "complex128", "float32", "complex64"])
@pytest.mark.parametrize(("name", "options"), CASES)
def test_same_values_as_pytorch_after_every_step(name, options, dtype):
    start, gradients = problem(dtype)
    single = dtype in ("float32", "complex64")
    if single:
        gradients = gradients[:60]
    expected, other = run(torch, name, options, start, gradients, values)
    found, optimizer = run(cygrad, name, options, start, gradients, values)
    # Rounding of a single-precision step accumulates; where the scale is a difference (centered) it is amplified.
    tolerance = {"rtol": 2e-4, "atol": 2e-4 if options.get("centered") else 5e-5} if single else {
        "rtol": 1e-10, "atol": 1e-11}
    for step, (ours, theirs) in enumerate(zip(found, expected, strict=True), start=1):
        for a, b in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(a, b, err_msg=f"step {step}", **tolerance)
    ours, theirs = optimizer.state_dict(), other.state_dict()
    assert {key: set(state) - {"al"} for key, state in theirs["state"].items()
            if state != {"momentum_buffer": None}} == {key: set(state) for key, state in ours["state"].items()}
    for key, state in ours["state"].items():
        for entry, value in state.items():
            np.testing.assert_allclose(value.numpy(), theirs["state"][key][entry].numpy(), err_msg=entry, **tolerance)
            assert str(value.dtype).split(".")[-1] == str(theirs["state"][key][entry].dtype).split(".")[-1]
    assert set(ours["param_groups"][0]) == set(theirs["param_groups"][0])


def test_options_are_those_of_pytorch():
    import inspect
    for name in [*NAMES, "LBFGS"]:
        ours = inspect.signature(getattr(optim, name).__init__).parameters
        theirs = inspect.signature(getattr(torch.optim, name).__init__).parameters
        assert [(p.name, p.default, p.kind) for p in ours.values()] == [
            (p.name, p.default, p.kind) for p in theirs.values()], name


@pytest.mark.parametrize("name", NAMES)
def test_repr_is_that_of_pytorch(name):
    make = [getattr(library.optim, name)([library.zeros(2, requires_grad=True)]) for library in (cygrad, torch)]
    assert repr(make[0]) == repr(make[1])


@pytest.mark.parametrize("name", NAMES)
def test_states_go_from_pytorch_to_cygrad_and_on(name):
    """A run that is begun there and continued here is the run that stayed there."""
    start, gradients = problem("float64", 20)
    expected, _ = run(torch, name, {}, start, gradients, values)
    half, other = run(torch, name, {}, start, gradients[:10], values)
    saved = other.state_dict()
    saved["state"] = {key: {entry: None if value is None else cygrad.from_numpy(value.numpy().copy())
                            for entry, value in state.items()} for key, state in saved["state"].items()}
    parameters = [cygrad.from_numpy(value).requires_grad_() for value in half[-1]]
    optimizer = getattr(optim, name)(parameters)
    optimizer.load_state_dict(saved)
    for step in gradients[10:]:
        for parameter, gradient in zip(parameters, step, strict=True):
            parameter.grad = cygrad.from_numpy(gradient)
        optimizer.step()
    # The schedules of NAdam and ASGD are kept in the dtype of the parameter after loading, with more digits.
    tolerance = 1e-7 if name in ("NAdam", "ASGD") else 1e-12
    for a, b in zip(parameters, expected[-1], strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b, rtol=tolerance, atol=tolerance)


LAYOUTS = {
    "transposed": lambda value: cygrad.from_numpy(np.array(value.T, order="C")).t(),
    "reversed": lambda value: cygrad.from_numpy(np.array(value)[::-1].copy()).flip(0),
    "strided": lambda value: cygrad.from_numpy(np.repeat(value, 2, axis=1))[:, ::2],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", NAMES)
def test_layouts_give_the_same_values(name, layout):
    (start, *_), gradients = problem("float64", 7)
    results = []
    for make in (lambda value: cygrad.from_numpy(np.array(value)), LAYOUTS[layout]):
        w = make(start).requires_grad_()
        optimizer = getattr(optim, name)([w], lr=0.05)
        for step in gradients:
            w.grad = make(step[0]) if w.is_contiguous() else cygrad.from_numpy(step[0])
            optimizer.step()
        results.append(w.detach().numpy().copy())
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("name", NAMES)
def test_same_bits_for_any_number_of_threads(name):
    random = np.random.default_rng(0)
    start, gradient = random.standard_normal(200_001), random.standard_normal(200_001)
    results = []
    for count in (1, 2, 4):
        with cygrad.threads(count):
            found, _ = run(cygrad, name, {}, [start, start[:7]], [[gradient, gradient[:7]]] * 3, values)
        results.append(found[-1])
    for other in results[1:]:
        np.testing.assert_array_equal(other[0], results[0][0])
        np.testing.assert_array_equal(other[1], results[0][1])


@pytest.mark.parametrize("name", NAMES)
def test_a_step_counts_as_one_in_place_change_and_skips_what_has_no_gradient(name):
    w, v, empty = (cygrad.ones(size, requires_grad=True) for size in (2, 2, 0))
    optimizer = getattr(optim, name)([w, v, empty])
    w.grad, empty.grad = cygrad.ones(2), cygrad.ones(0)
    before = w._version, v._version
    optimizer.step()
    assert (w._version, v._version) == (before[0] + 1, before[1])
    assert v.tolist() == [1, 1]
    assert w.requires_grad
    assert w.is_leaf


@pytest.mark.parametrize("name", NAMES)
def test_nan_stays_in_its_element(name):
    w = cygrad.ones(40, requires_grad=True)
    w.grad = cygrad.ones(40)
    w.grad[3] = float("nan")
    optimizer = getattr(optim, name)([w])
    optimizer.step()
    optimizer.step()
    bad = cygrad.isnan(w)
    # Rprop uses signs only, and nan has none
    assert bad.sum().item() == (0 if name == "Rprop" else 1)
    assert bad[3].item() == (name != "Rprop")


@pytest.mark.parametrize("name", NAMES)
def test_state_that_cannot_be_written_is_refused(name):
    w = cygrad.ones(3, requires_grad=True)
    w.grad = cygrad.ones(3)
    optimizer = getattr(optim, name)([w], **({"momentum": 0.9} if name in ("SGD", "RMSprop") else {}))
    optimizer.step()
    frozen = np.ones(3, dtype=np.float32)
    frozen.flags.writeable = False
    for entry, value in list(optimizer.state[w].items()):
        if value.ndim == 0:
            continue
        for bad, error, text in (
            (cygrad.ones(1).expand(3), RuntimeError, "share a memory location"),
            (cygrad.ones(4), RuntimeError, "does not match"),
            ("abc", TypeError, "must be a Tensor"),
        ):
            optimizer.state[w][entry] = bad
            with pytest.raises(error, match=text):
                optimizer.step()
        with pytest.warns(UserWarning, match="writable|read-only"):
            optimizer.state[w][entry] = cygrad.from_numpy(frozen)
        with pytest.raises(RuntimeError, match="read-only"):
            optimizer.step()
        optimizer.state[w][entry] = value
    assert frozen.tolist() == [1, 1, 1]


@pytest.mark.parametrize(("name", "options", "text"), [
    ("NAdam", {"momentum_decay": -1}, "Invalid momentum_decay value: "), ("NAdam", {"betas": (0.9, 1.0)}, "index 1"),
    ("RAdam", {"eps": -1}, "Invalid epsilon value: "), ("Adamax", {"betas": (-0.1, 0.9)}, "index 0"),
    ("Adagrad", {"lr_decay": -1}, "Invalid lr_decay value: "),
    ("Adagrad", {"initial_accumulator_value": -1}, "Invalid initial_accumulator_value value: "),
    ("Adadelta", {"rho": 1.5}, "Invalid rho value: "), ("RMSprop", {"alpha": -0.1}, "Invalid alpha value: "),
    ("RMSprop", {"momentum": -1}, "Invalid momentum value: "), ("Rprop", {"etas": (1.1, 1.2)}, "Invalid eta values: "),
    ("ASGD", {"lr": -1}, "Invalid learning rate: "), ("ASGD", {"weight_decay": -1}, "Invalid weight_decay value: "),
])
def test_options_are_checked(name, options, text):
    with pytest.raises(ValueError, match=text):
        getattr(optim, name)([cygrad.ones(1, requires_grad=True)], **options)


@pytest.mark.parametrize("name", NAMES)
def test_ways_of_execution(name):
    w = [cygrad.ones(1, requires_grad=True)]
    getattr(optim, name)(w, foreach=True)
    if name in ("Adam", "AdamW", "SGD", "Adagrad"):
        getattr(optim, name)(w, fused=True)
        with pytest.raises(RuntimeError, match="cannot be `True` together"):
            getattr(optim, name)(w, fused=True, foreach=True)
    if name not in ("SGD", "Adagrad"):
        captured = getattr(optim, name)(w, capturable=True)
        with pytest.raises(RuntimeError, match="capturable"):
            captured.step()
        captured.param_groups[0]["capturable"] = False
        captured.step()
    with pytest.raises(ValueError, match="must be 1-element"):
        getattr(optim, name)(w, lr=cygrad.ones(2))


@pytest.mark.parametrize("name", NAMES)
def test_several_threads_may_step_the_same_parameters(name):
    """Hogwild: values may race, memory stays sound, and every element has moved."""
    parameters = [cygrad.ones(size, requires_grad=True) for size in (3, 1000, 40_000)]
    shared = getattr(optim, name)(parameters, lr=0.01)
    errors = []

    def work(optimizer):
        try:
            for _ in range(40):
                for parameter in parameters:
                    parameter.grad = cygrad.ones(parameter.numel())
                optimizer.step()
                optimizer.zero_grad()
        except BaseException as error:
            errors.append(error)

    for optimizers in [shared] * 3, [getattr(optim, name)(parameters, lr=0.01) for _ in range(3)]:
        threads = [threading.Thread(target=work, args=(optimizer,)) for optimizer in optimizers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not errors
    for parameter in parameters:
        assert cygrad.isfinite(parameter).all()
        assert (parameter < 1).all()
