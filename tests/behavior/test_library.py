"""Library functions around the graph; more in tests/nn, tests/optim, tests/utils and test_snippets.py."""

import numpy as np
import pytest

import cygrad
from cygrad import nn, optim
from cygrad.utils import data


@pytest.mark.guarantee("L1")
def test_one_layer_network():
    """The tutorial's: a product, a loss with logits, and gradients that follow the closed form."""
    x, y = cygrad.ones(5), cygrad.zeros(3)
    w, b = cygrad.randn(5, 3, requires_grad=True), cygrad.randn(3, requires_grad=True)
    z = cygrad.matmul(x, w) + b
    nn.functional.binary_cross_entropy_with_logits(z, y).backward()
    expected = cygrad.sigmoid(z.detach()) / 3
    assert cygrad.allclose(b.grad, expected)
    assert cygrad.allclose(w.grad, expected.expand(5, 3))


@pytest.mark.guarantee("L1")
def test_jacobian_products_and_zeroing():
    x = cygrad.eye(4, 5, requires_grad=True)
    out = (x + 1).pow(2).t()
    out.backward(cygrad.ones_like(out), retain_graph=True)
    first = x.grad.clone()
    out.backward(cygrad.ones_like(out), retain_graph=True)
    assert x.grad.equal(2 * first)
    x.grad.zero_()
    out.backward(cygrad.ones_like(out), retain_graph=True)
    assert x.grad.equal(first)


MODULES = [
    (lambda: nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Dropout(0.1), nn.Linear(8, 2)), (3, 6)),
    (lambda: nn.Sequential(nn.Conv1d(2, 4, 3), nn.BatchNorm1d(4), nn.MaxPool1d(2)), (3, 2, 9)),
    (lambda: nn.Sequential(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.GELU(), nn.AdaptiveAvgPool2d(1)), (3, 2, 7, 7)),
    (lambda: nn.Sequential(nn.ConvTranspose2d(2, 4, 3), nn.GroupNorm(2, 4), nn.AvgPool2d(2)), (3, 2, 5, 5)),
    (lambda: nn.LSTM(4, 5, num_layers=2, bidirectional=True), (6, 3, 4)),
    (lambda: nn.GRU(4, 5), (6, 3, 4)),
    (lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), 2), (5, 3, 8)),
    (lambda: nn.utils.parametrizations.weight_norm(nn.Linear(4, 3)), (2, 4)),
]


@pytest.mark.guarantee("L2")
@pytest.mark.parametrize(("make", "shape"), MODULES)
def test_modules_train_and_come_back_from_their_state(make, shape):
    cygrad.manual_seed(1)
    model, other, x = make(), make(), cygrad.randn(*shape)
    optimizer = optim.SGD(model.parameters(), lr=0.01)

    def result(model):
        found = model(x)
        return found[0] if isinstance(found, tuple) else found
    before = [parameter.detach().clone() for parameter in model.parameters()]
    result(model).square().mean().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())
    optimizer.step()
    assert any(not old.equal(new) for old, new in zip(before, model.parameters(), strict=True))
    other.load_state_dict(model.state_dict())
    assert result(other.eval()).equal(result(model.eval()))


@pytest.mark.guarantee("L2")
def test_embedding_and_attention():
    words, attention = nn.Embedding(10, 8, padding_idx=0), nn.MultiheadAttention(8, 2, batch_first=True)
    x = words(cygrad.tensor([[1, 2, 0], [3, 4, 5]]))
    y, weights = attention(x, x, x)
    assert weights.shape == (2, 3, 3)
    assert cygrad.allclose(weights.sum(-1), cygrad.ones(2, 3))
    y.sum().backward()
    assert words.weight.grad[0].tolist() == [0.0] * 8


@pytest.mark.guarantee("L2")
def test_data_parallel_gives_the_gradients_of_one_pass():
    model, x = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)).double(), cygrad.randn(6, 4).double()
    model(x).square().sum().backward()
    expected = [parameter.grad.clone() for parameter in model.parameters()]
    model.zero_grad()
    nn.DataParallel(model, 2)(x).square().sum().backward()
    for parameter, gradient in zip(model.parameters(), expected, strict=True):
        np.testing.assert_allclose(parameter.grad.numpy(), gradient.numpy(), rtol=1e-12)


@pytest.mark.guarantee("L2")
def test_clipping_and_vectors():
    model = nn.Linear(3, 2)
    (model(cygrad.ones(1, 3)) * 100).sum().backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    assert norm > 1
    assert abs(nn.utils.get_total_norm([p.grad for p in model.parameters()]).item() - 1) < 1e-5
    vector = nn.utils.parameters_to_vector(model.parameters())
    nn.utils.vector_to_parameters(vector * 0, model.parameters())
    assert all(parameter.abs().sum() == 0 for parameter in model.parameters())


@pytest.mark.guarantee("L3")
@pytest.mark.parametrize("make", [
    lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-3), lambda p: optim.Adam(p, lr=0.1),
    lambda p: optim.AdamW(p, lr=0.1), lambda p: optim.RMSprop(p, lr=0.05), lambda p: optim.Adagrad(p, lr=0.5),
    lambda p: optim.Adadelta(p, lr=20.0), lambda p: optim.NAdam(p, lr=0.1), lambda p: optim.RAdam(p, lr=0.1),
    lambda p: optim.LBFGS(p, lr=0.5)])
def test_optimizers_find_the_minimum(make):
    target = cygrad.tensor([1.0, -2.0, 0.5])
    x = cygrad.zeros(3, requires_grad=True)
    optimizer = make([x])
    schedule = optim.lr_scheduler.ExponentialLR(optimizer, 0.999)

    def closure():
        optimizer.zero_grad()
        loss = (x - target).square().sum()
        loss.backward()
        return loss
    first = closure().item()
    version = x._version
    for _ in range(200):
        loss = optimizer.step(closure)
        schedule.step()
    assert loss.item() < 0.01 * first
    assert x._version > version                  # modified in place
    assert x.grad_fn is None


@pytest.mark.guarantee("L4")
def test_data_loader_with_threads():
    images, labels = cygrad.arange(40).reshape(20, 2).float(), cygrad.arange(20)
    found = []
    for workers in (0, 2):
        loader = data.DataLoader(data.TensorDataset(images, labels), batch_size=3, shuffle=True, num_workers=workers,
                                 generator=cygrad.Generator().manual_seed(3))
        found.append([(batch.tolist(), classes.tolist()) for batch, classes in loader])
    assert found[0] == found[1]
    assert sorted(label for _, classes in found[0] for label in classes) == list(range(20))


@pytest.mark.guarantee("L4")
def test_files(tmp_path):
    state = {"weight": cygrad.randn(3, 2), "steps": cygrad.tensor([4])}
    cygrad.save(state, tmp_path / "state")
    cygrad.safetensors.save_file(state, tmp_path / "state.safetensors")
    for found in (cygrad.load(tmp_path / "state"), cygrad.safetensors.load_file(tmp_path / "state.safetensors")):
        assert found.keys() == state.keys()
        assert all(found[name].equal(state[name]) for name in state)


@pytest.mark.guarantee("L4")
def test_manual_seed():
    cygrad.manual_seed(7)
    first = cygrad.randn(5)
    cygrad.manual_seed(7)
    assert cygrad.randn(5).equal(first)
