"""autograd.per_sample_grad equals vmap of grad."""

import itertools

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
    with pytest.raises(RuntimeError, match="no dimension is that of"):
        per_sample_grad((x.reshape(6, 1) * w[:1]).reshape(3, 4).sum(1), [w])
    with pytest.raises(RuntimeError, match="both of the first two dimensions"):
        per_sample_grad(nn.functional.linear(cygrad.ones(2, 2, 2), w).sum((1, 2)), [w])
    norm = nn.BatchNorm1d(2)
    with pytest.raises(RuntimeError, match="no rule for per-sample gradients"):
        per_sample_grad(norm(x).sum(1), norm.parameters())


# ---- networks of products: one plan, no objects for nodes

def network(*sizes):
    layers = [layer for pair in itertools.pairwise(sizes) for layer in (nn.Linear(*pair), nn.Tanh())]
    return nn.Sequential(*layers[:-1])


def losses(model, x):
    return nn.functional.cross_entropy(model(x), cygrad.arange(len(x)) % 3, reduction="none")


@pytest.mark.parametrize("dtype", [cygrad.float32, cygrad.float64])
@pytest.mark.parametrize("count", [1, 5, 40])
def test_products_alone_need_no_nodes(dtype, count, monkeypatch):
    monkeypatch.setattr("cygrad.func.per_sample._Uses", None)
    cygrad.manual_seed(1)
    model = network(7, 65, 33, 3).to(dtype)
    x = cygrad.randn(count, 7, dtype=dtype)
    tolerance = 1e-5 if dtype is cygrad.float32 else 1e-12
    model[0].bias.requires_grad_(False)
    unused = cygrad.ones(2, dtype=dtype, requires_grad=True)
    parameters = [p for p in model.parameters() if p.requires_grad]
    *found, zeros = per_sample_grad(losses(model, x), [*parameters, unused])
    assert zeros.shape == (count, 2) and not zeros.any()
    for sample in range(count):
        wanted = cygrad.autograd.grad(losses(model, x)[sample], parameters)
        for gradient, other in zip(found, wanted, strict=True):
            assert gradient.dtype is dtype and not gradient.requires_grad
            np.testing.assert_allclose(gradient[sample].numpy(), other.numpy(), rtol=tolerance, atol=tolerance)


def test_the_graph_is_kept_and_guarded():
    model, x = network(4, 3), cygrad.randn(5, 4)
    found = losses(model, x)
    first = per_sample_grad(found, list(model.parameters()))
    second = per_sample_grad(found, list(model.parameters()))
    assert all(cygrad.equal(a, b) for a, b in zip(first, second, strict=True))
    x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        per_sample_grad(found, list(model.parameters()))
    found = losses(model, x)
    found.sum().backward()
    with pytest.raises(RuntimeError, match="already been freed"):
        per_sample_grad(found, list(model.parameters()))


def test_whoever_has_a_say_is_heard():
    """Hooks, saved tensors that were packed, levels of forward mode: as without the short way."""
    model, x = network(4, 3, 3), cygrad.randn(5, 4)
    plain = per_sample_grad(losses(model, x), list(model.parameters()))
    hidden = model[1](model[0](x))
    hidden.register_hook(lambda gradient: 2 * gradient)
    doubled = per_sample_grad(nn.functional.cross_entropy(model[2](hidden), cygrad.arange(5) % 3, reduction="none"),
                              list(model.parameters()))
    with cygrad.autograd.graph.saved_tensors_hooks(lambda t: t * 1, lambda t: t):
        packed = per_sample_grad(losses(model, x), list(model.parameters()))
    for number, (a, b, c) in enumerate(zip(plain, doubled, packed, strict=True)):
        assert cygrad.allclose(2 * a if number < 2 else a, b, atol=1e-6) and cygrad.allclose(a, c, atol=1e-6)
