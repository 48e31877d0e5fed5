"""autograd.per_sample_grad: one call of the model for the batch, and the gradients of vmap of grad."""

import numpy as np
import pytest

import cygrad
from cygrad import nn
from cygrad.autograd import per_sample_grad
from tests.func.test_per_sample_gradients import DTYPE, MODELS


def check(model, x, losses_of):
    parameters = list(model.parameters())
    found = per_sample_grad(losses_of(model(x)), parameters)
    for sample in range(len(x)):
        model.zero_grad()
        losses_of(model(x[sample:sample + 1])).sum().backward()
        for gradient, parameter in zip(found, parameters, strict=True):
            assert gradient.shape == (len(x), *parameter.shape)
            np.testing.assert_allclose(gradient[sample].numpy(), parameter.grad.numpy(), rtol=1e-7, atol=1e-11)


@pytest.mark.parametrize("name", [
    "linear", "conv", "strided grouped conv", "transposed conv", "norms", "lstm", "gru", "rnn", "pooling",
    "lstm of two layers both ways"])
def test_layers_that_know(name):
    cygrad.manual_seed(1)
    make, shape = MODELS[name]
    model = make().to(DTYPE)
    check(model, cygrad.randn(3, *shape, dtype=DTYPE), lambda out: (out ** 2).sum(1))


@pytest.mark.parametrize(("make", "shape"), [
    (lambda: nn.Sequential(nn.Conv1d(4, 6, 3, padding=2, dilation=2, stride=2, groups=2), nn.Flatten()), (4, 9)),
    (lambda: nn.Sequential(nn.Conv2d(2, 4, (3, 2), padding=(1, 0), bias=False), nn.Flatten()), (2, 5, 6)),
    (lambda: nn.Sequential(nn.Conv3d(1, 2, 2), nn.Flatten()), (1, 3, 3, 4)),
    (lambda: nn.Sequential(nn.Linear(3, 4), nn.RMSNorm(4), nn.Linear(4, 5), nn.LayerNorm((7, 5)), nn.Flatten()),
     (7, 3)),
    (lambda: nn.Sequential(*[nn.Linear(3, 3)] * 3), (3,)),
])
def test_layers_with_rules(make, shape):
    """Kernels with steps, gaps and borders; sequences of features; one layer used several times."""
    cygrad.manual_seed(1)
    check(make().to(DTYPE), cygrad.randn(4, *shape, dtype=DTYPE), lambda out: (out ** 2).sum(1))


def test_products_take_no_turn_for_each_step():
    """Of a recurrent layer, the steps are one product: twice as many cost no more calls."""
    calls = []
    for steps in (4, 8):
        layer = nn.LSTM(3, 4, batch_first=True)
        with cygrad.profiler.profile() as profile:
            per_sample_grad(layer(cygrad.randn(5, steps, 3))[0].flatten(1).square().sum(1), list(layer.parameters()))
        calls.append(sum(event.count for event in profile.key_averages() if event.key.endswith("matmul")))
    assert calls[0] == calls[1] > 0


@pytest.mark.parametrize("padding", [None, 2])
def test_embeddings(padding):
    model = nn.Sequential(nn.Embedding(6, 3, padding_idx=padding), nn.Flatten(), nn.Linear(12, 4)).to(DTYPE)
    check(model, cygrad.tensor([[0, 2, 2, 5], [1, 1, 1, 2], [5, 4, 3, 2]]), lambda out: (out ** 2).sum(1))


def test_elementwise_parameters_and_several_uses():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale, self.layer = nn.Parameter(cygrad.rand(4, dtype=DTYPE)), nn.Linear(4, 4, dtype=DTYPE)

        def forward(self, x):
            return self.layer(self.layer(x * self.scale).tanh()) + self.scale

    check(Model(), cygrad.randn(5, 4, dtype=DTYPE), lambda out: (out ** 2).sum(1))


def test_what_is_made_of_parameters():
    """Transposed, added, normalized: before they meet the samples."""
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.w, self.b = nn.Parameter(cygrad.rand(4, 4, dtype=DTYPE)), nn.Parameter(cygrad.rand(4, dtype=DTYPE))

        def forward(self, x):
            weight = self.w.t() / self.w.norm(dim=1)
            return x @ weight + (self.b + self.b.exp())

    check(Model(), cygrad.randn(4, 4, dtype=DTYPE), lambda out: (out ** 2).sum(1))


def test_unused_parameters_have_zeros():
    w, v = cygrad.ones(2, requires_grad=True), cygrad.ones(3, requires_grad=True)
    found = per_sample_grad((cygrad.ones(4, 2) * w).sum(1), [w, v])
    assert found[0].shape == (4, 2) and found[1].shape == (4, 3) and not found[1].any()


def test_refusals():
    w = cygrad.ones(2, 2, requires_grad=True)
    x = cygrad.ones(3, 2)
    with pytest.raises(RuntimeError, match="shape"):
        per_sample_grad((x @ w).sum(), [w])
    with pytest.raises(RuntimeError, match="no dimension counts"):
        per_sample_grad((x.reshape(6, 1) * w[:1]).reshape(3, 4).sum(1), [w])
    with pytest.raises(RuntimeError, match="either of the first two"):
        per_sample_grad(nn.functional.linear(cygrad.ones(2, 2, 2), w).sum((1, 2)), [w])
    norm = nn.BatchNorm1d(2)
    with pytest.raises(RuntimeError, match="no gradients of single samples"):
        per_sample_grad(norm(x).sum(1), norm.parameters())
