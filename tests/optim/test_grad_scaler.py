"""`GradScaler`: the scale of losses, gradients and its adaptation."""

import copy
import math
import pickle

import pytest

import cygrad
from cygrad import optim


def backward(scaler, weight, factor):
    """Set the gradient of a weight to that of a scaled loss."""
    weight.grad = None
    scaler.scale((weight * factor).sum()).backward()


def scaled(**options):
    weight = cygrad.ones(2, requires_grad=True)
    return weight, optim.SGD([weight], lr=0.25), cygrad.GradScaler("cpu", **options)


def loaded(scaler):
    made = cygrad.GradScaler("cpu")
    made.scale(cygrad.ones(()))
    made.load_state_dict(scaler.state_dict())
    return made


def test_loss_is_multiplied_and_gradients_are_divided_before_the_step():
    weight, optimizer, scaler = scaled(init_scale=8.0)
    backward(scaler, weight, 2.0)
    assert weight.grad.tolist() == [16, 16]
    scaler.unscale_(optimizer)
    assert weight.grad.tolist() == [2, 2]
    scaler.step(optimizer)
    assert weight.tolist() == [0.5, 0.5] and weight.grad.tolist() == [2, 2]


def test_gradients_that_underflow_in_float16_are_kept():
    small = cygrad.tensor(2.0**-20, dtype=cygrad.float16)
    for scale, expected in ((1.0, 0.0), (2.0**12, 2.0**-30)):
        weight = cygrad.ones((), requires_grad=True)
        scaler = cygrad.GradScaler("cpu", init_scale=scale)
        scaler.scale((weight.half() * small * 2.0**-10).float()).backward()
        scaler.unscale_(optim.SGD([weight]))
        assert weight.grad.item() == expected


def test_scale_shrinks_after_an_infinite_gradient_whose_step_is_skipped():
    weight, optimizer, scaler = scaled(init_scale=8.0, backoff_factor=0.25)
    for factor in (math.inf, math.nan):
        backward(scaler, weight, factor)
        assert scaler.step(optimizer) is None and weight.tolist() == [1, 1]
        scaler.update()
    assert scaler.get_scale() == 0.5


def test_scale_grows_after_finite_steps_only_and_stays_finite():
    weight, optimizer, scaler = scaled(init_scale=2.0**100, growth_factor=2.0**20, growth_interval=2)
    scales = []
    for factor in (0.0, math.inf, 0.0, 0.0, 0.0, 0.0):
        backward(scaler, weight, factor)
        scaler.step(optimizer)
        scaler.update()
        scales.append(math.log2(scaler.get_scale()))
    assert scales == [100, 99, 99, 119, 119, 119]


def test_one_infinite_gradient_skips_its_optimizer_and_shrinks_the_scale_of_all():
    weight, optimizer, scaler = scaled(init_scale=8.0)
    other = cygrad.ones(2, requires_grad=True)
    second = optim.SGD([other], lr=0.25)
    losses = scaler.scale([weight.sum(), (other * math.inf).sum()])
    assert isinstance(losses, list)
    for loss in losses:
        loss.backward()
    scaler.step(optimizer)
    scaler.step(second)
    scaler.update()
    assert weight.tolist() == [0.75, 0.75] and other.tolist() == [1, 1] and scaler.get_scale() == 4


def test_sparse_gradients_are_divided():
    layer = cygrad.nn.Embedding(3, 2, sparse=True)
    optimizer, scaler = optim.SGD(layer.parameters(), lr=1.0), cygrad.GradScaler("cpu", init_scale=8.0)
    scaler.scale(layer(cygrad.tensor([1, 1])).sum()).backward()
    scaler.unscale_(optimizer)
    assert layer.weight.grad.to_dense().tolist() == [[0, 0], [2, 2], [0, 0]]


def test_calls_in_the_wrong_order_are_errors():
    weight, optimizer, scaler = scaled(init_scale=8.0)
    weight.grad = cygrad.ones(2)
    for call in (scaler.step, scaler.unscale_, lambda _: scaler.update()):
        with pytest.raises(RuntimeError, match="there is no scale"):
            call(optimizer)
    scaler.scale(weight.sum())
    with pytest.raises(RuntimeError, match=r"no step\(\)"):
        scaler.update()
    weight.grad = None
    with pytest.raises(RuntimeError, match="no gradients"):
        scaler.step(optimizer)
    scaler.update(8.0)
    backward(scaler, weight, 1.0)
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match=r"unscale_\(\) has already been called"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    for call in (scaler.step, scaler.unscale_):
        with pytest.raises(RuntimeError, match=r"step\(\) has already been called"):
            call(optimizer)
    with pytest.raises(RuntimeError, match="closures"):
        scaler.step(optimizer, closure=None)
    with pytest.raises(RuntimeError, match="copied or pickled"):
        copy.deepcopy(scaler)


def test_gradients_of_float16_and_wrong_arguments_are_refused():
    weight = cygrad.ones(2, dtype=cygrad.float16, requires_grad=True)
    scaler = cygrad.GradScaler("cpu", init_scale=8.0)
    backward(scaler, weight, 1.0)
    with pytest.raises(ValueError, match="FP16"):
        scaler.step(optim.SGD([weight]))
    assert weight.grad.tolist() == [8, 8]
    with pytest.raises(ValueError, match="outputs must be tensors"):
        scaler.scale("loss")
    for wrong in ({"growth_factor": 1.0}, {"backoff_factor": 1.0}):
        with pytest.raises(ValueError, match="growth_factor"):
            cygrad.GradScaler("cpu", **wrong)


@pytest.mark.parametrize("copied", [
    lambda scaler: pickle.loads(pickle.dumps(scaler)), copy.deepcopy, loaded])
def test_state_survives_copies(copied):
    weight, optimizer, scaler = scaled(init_scale=8.0, growth_interval=2)
    backward(scaler, weight, 1.0)
    scaler.step(optimizer)
    scaler.update()
    other = copied(scaler)
    assert other.state_dict() == scaler.state_dict() == {
        "scale": 8.0, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 2, "_growth_tracker": 1}
    backward(other, weight, 1.0)
    assert weight.grad.tolist() == [8, 8]
    other.step(optimizer)
    other.update()
    assert other.get_scale() == 16


@pytest.mark.parametrize("options", [{"device": "cpu", "enabled": False}, {"device": "cuda"}, {}])
def test_disabled_scaler_changes_nothing(options):
    scaler, weight = cygrad.GradScaler(**options), cygrad.ones(2, requires_grad=True)
    loss = weight.sum()
    assert scaler.scale(loss) is loss and not scaler.is_enabled() and scaler.get_scale() == 1
    loss.backward()
    optimizer = optim.SGD([weight], lr=0.25)
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert weight.tolist() == [0.75, 0.75] and scaler.state_dict() == {}


def test_numbers_are_read_and_set():
    scaler = cygrad.GradScaler("cpu")
    for name in ("growth_factor", "backoff_factor", "growth_interval"):
        getattr(scaler, f"set_{name}")(3)
        assert getattr(scaler, f"get_{name}")() == 3
