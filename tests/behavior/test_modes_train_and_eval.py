"""train() and eval() affect layers, not recording."""

import pytest

import cygrad
from cygrad import nn

pytestmark = pytest.mark.guarantee("M4")


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(("mode", "records"), [
    (cygrad.enable_grad, True), (cygrad.no_grad, False), (cygrad.inference_mode, False)])
def test_modules_and_modes_are_orthogonal(training, mode, records):
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5)).train(training)
    with mode():
        assert all(module.training == training for module in model.modules())
        assert model(cygrad.randn(5, 3)).requires_grad == records
    assert all(module.training == training for module in model.modules())


@pytest.mark.parametrize("mode", [cygrad.enable_grad, cygrad.no_grad])
def test_dropout_obeys_train_and_eval(mode):
    layer, x = nn.Dropout(0.5), cygrad.ones(1000)
    with mode():
        assert layer.eval()(x).equal(x)
        dropped = layer.train()(x)
    assert set(dropped.tolist()) == {0.0, 2.0}


@pytest.mark.parametrize("mode", [cygrad.enable_grad, cygrad.no_grad])
def test_batch_norm_obeys_train_and_eval(mode):
    layer = nn.BatchNorm1d(2, momentum=0.5)
    x = cygrad.tensor([[1.0, 10.0], [3.0, 30.0]])
    with mode():
        normed = layer.train()(x)
        assert cygrad.allclose(normed, cygrad.tensor([[-1.0, -1.0], [1.0, 1.0]]), atol=1e-4)
        assert layer.running_mean.tolist() == [1.0, 10.0]
        assert layer.running_var.tolist() == [1.5, 100.5]
        before = layer.running_mean.clone()
        evaluated = layer.eval()(x)
    assert layer.running_mean.equal(before)
    expected = (x - cygrad.tensor([1.0, 10.0])) / cygrad.tensor([1.5, 100.5]).sqrt()
    assert cygrad.allclose(evaluated, expected, atol=1e-4)


def test_eval_records_and_reaches_the_parameters():
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5)).eval()
    model(cygrad.randn(5, 3)).sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())
