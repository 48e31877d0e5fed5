"""In-place operations of functions and modules in each grad mode."""

import asyncio

import numpy as np
import pytest

import cygrad

OFF = {"no_grad": cygrad.no_grad, "inference_mode": cygrad.inference_mode}


@pytest.mark.guarantee("M2")
@pytest.mark.parametrize("mode", OFF)
def test_arrays_of_tensors_that_require_grad(mode):
    x = cygrad.ones(2, requires_grad=True)
    with OFF[mode]():
        for array in (x.numpy(), np.asarray(x), np.array(x), np.array(memoryview(x)), x[0:2].numpy(),
                      (x * 1).numpy()):
            assert array.tolist() == [1, 1]
        assert np.shares_memory(x.numpy(), x.detach().numpy())
        view = x[0]
    for tensor in (x, view):
        with pytest.raises(RuntimeError, match="requires grad"):
            tensor.numpy()
        with pytest.raises(RuntimeError, match="requires grad"):
            np.asarray(tensor)


DECORATORS = {
    "no_grad": (cygrad.no_grad(), False), "no_grad bare": (cygrad.no_grad, False),
    "enable_grad": (cygrad.enable_grad(), True), "inference_mode": (cygrad.inference_mode(), False),
    "inference_mode bare": (cygrad.inference_mode, False),
}


@pytest.mark.guarantee("M1")
@pytest.mark.parametrize("name", [*DECORATORS, "set_grad_enabled"])
def test_classes_have_their_constructor_wrapped(name):
    if name == "set_grad_enabled":
        decorator, enabled = cygrad.set_grad_enabled(False), False
    else:
        decorator, enabled = DECORATORS[name]

    class Layer:
        def __init__(self, size, scale=1):
            self.made_with = cygrad.is_grad_enabled()
            self.size = size, scale

        def mode(self):
            return cygrad.is_grad_enabled()

    with pytest.warns(FutureWarning, match="Decorating classes is deprecated"):
        make = decorator(Layer)
    assert cygrad.is_grad_enabled()
    made = make(3, scale=2)
    assert type(made) is Layer
    assert made.made_with is enabled
    assert made.mode()
    assert made.size == (3, 2)


@pytest.mark.guarantee("M1")
def test_functions_are_wrapped_without_a_warning():
    @cygrad.no_grad
    async def coroutine():
        return cygrad.is_grad_enabled()

    assert asyncio.run(coroutine()) is False
    assert cygrad.no_grad()(cygrad.is_grad_enabled)() is False


@pytest.mark.guarantee("I1")
def test_modules_changed_in_place_count_versions():
    module = cygrad.nn.Linear(2, 2)
    y = (module.weight * module.weight).sum()
    version = module.weight._version
    module._apply(lambda tensor: tensor.add_(1))
    assert module.weight._version == version + 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()
    norm = cygrad.nn.BatchNorm1d(2)
    mean = norm.running_mean
    version = mean._version
    norm._apply(lambda tensor: tensor.mul_(2))
    assert norm.running_mean is mean
    assert mean._version == version + 1


@pytest.mark.guarantee("I1")
def test_modules_that_are_converted_keep_their_counters():
    module = cygrad.nn.Linear(2, 2)
    y = (module.weight * module.weight).sum()
    version = module.weight._version
    module.to(cygrad.float64)
    assert module.weight._version == version
    module.weight.data.add_(1)
    assert module.weight._version == version
    y.backward()


@pytest.mark.guarantee("I1")
def test_gradients_too():
    module = cygrad.nn.Linear(2, 2)
    module(cygrad.ones(1, 2)).sum().backward()
    gradient = module.weight.grad
    version = gradient._version
    module._apply(lambda tensor: tensor.mul_(2))
    assert module.weight.grad is gradient
    assert gradient._version == version + 1


@pytest.mark.guarantee("I2")
@pytest.mark.parametrize("change", ["fill_", "zero_", "threshold_"])
def test_the_same_value_everywhere_may_be_written_to_shared_memory(change):
    x = cygrad.ones(1).expand(3)
    if change == "threshold_":
        cygrad.nn.functional.threshold_(x, 2.0, 5.0)
    else:
        getattr(x, change)(*([5.0] if change == "fill_" else []))
    assert x.tolist() == [0 if change == "zero_" else 5] * 3


@pytest.mark.guarantee("I2")
@pytest.mark.parametrize("change", ["relu_", "neg_", "abs_", "exp_"])
def test_and_nothing_else(change):
    with pytest.raises(RuntimeError, match="share a memory location"):
        getattr(cygrad.ones(1).expand(3), change)()
