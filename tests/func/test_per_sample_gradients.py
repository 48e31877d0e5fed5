"""Per-sample gradients by vmap of grad equal those of separate backwards."""

import numpy as np
import pytest

import cygrad
from cygrad import nn
from cygrad.func import functional_call, grad, vmap

DTYPE = cygrad.float64


class Recurrent(nn.Module):
    """A recurrent layer, of which the last output counts."""

    def __init__(self, kind, **options):
        super().__init__()
        self.layer = kind(3, 4, batch_first=True, **options)

    def forward(self, x):
        return self.layer(x)[0][:, -1]


class Attention(nn.Module):
    """Self-attention."""

    def __init__(self):
        super().__init__()
        self.layer = nn.MultiheadAttention(4, 2, batch_first=True)

    def forward(self, x):
        return self.layer(x, x, x, need_weights=False)[0].mean(1)


def sequence(*layers):
    return lambda: nn.Sequential(*[layer() for layer in layers])


MODELS = {
    "linear": (sequence(lambda: nn.Linear(3, 5), nn.Tanh, lambda: nn.Linear(5, 4)), (3,)),
    "conv": (sequence(lambda: nn.Conv2d(2, 4, 3, padding=1), nn.ReLU, lambda: nn.MaxPool2d(2), nn.Flatten,
                      lambda: nn.Linear(16, 4)), (2, 4, 4)),
    "strided grouped conv": (sequence(lambda: nn.Conv1d(4, 6, 3, stride=2, groups=2, bias=False), nn.Flatten,
                                      lambda: nn.Linear(18, 4)), (4, 8)),
    "transposed conv": (sequence(lambda: nn.ConvTranspose2d(2, 2, 2, stride=2), nn.Flatten, lambda: nn.Linear(32, 4)),
                        (2, 2, 2)),
    "norms": (sequence(lambda: nn.Conv1d(2, 4, 1), lambda: nn.GroupNorm(2, 4), lambda: nn.LayerNorm(5), nn.Flatten,
                       lambda: nn.Linear(20, 4), lambda: nn.RMSNorm(4)), (2, 5)),
    "instance norm": (sequence(lambda: nn.InstanceNorm1d(2, affine=True), nn.Flatten, lambda: nn.Linear(10, 4)),
                      (2, 5)),
    "lstm": (lambda: Recurrent(nn.LSTM), (5, 3)),
    "lstm of two layers both ways": (lambda: Recurrent(nn.LSTM, num_layers=2, bidirectional=True), (5, 3)),
    "gru": (lambda: Recurrent(nn.GRU), (5, 3)),
    "rnn": (lambda: Recurrent(nn.RNN), (5, 3)),
    "attention": (Attention, (5, 4)),
    "transformer": (sequence(lambda: nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True), nn.Flatten,
                             lambda: nn.Linear(20, 4)), (5, 4)),
    "pooling": (sequence(lambda: nn.Conv2d(2, 3, 2), lambda: nn.AdaptiveAvgPool2d(2), lambda: nn.AvgPool2d(2),
                         nn.Flatten, lambda: nn.Linear(3, 4)), (2, 5, 5)),
}


def check(model, x, y, loss):
    """The gradients of all samples are those of each alone."""
    parameters = {name: parameter.detach() for name, parameter in model.named_parameters()}

    def of_sample(parameters, x, y):
        return loss(functional_call(model, parameters, (x.unsqueeze(0),)), y.unsqueeze(0))

    found = vmap(grad(of_sample), in_dims=(None, 0, 0))(parameters, x, y)
    for sample in range(len(x)):
        model.zero_grad()
        loss(model(x[sample:sample + 1]), y[sample:sample + 1]).backward()
        for name, parameter in model.named_parameters():
            np.testing.assert_allclose(found[name][sample].numpy(), parameter.grad.numpy(), rtol=1e-7, atol=1e-11,
                                       err_msg=name)


@pytest.mark.parametrize("name", MODELS)
def test_every_kind_of_layer(name):
    cygrad.manual_seed(1)
    make, shape = MODELS[name]
    model = make().to(DTYPE)
    x = cygrad.randn(3, *shape, dtype=DTYPE)
    width = model(x).shape[1]
    check(model, x, cygrad.randint(width, (3,)), nn.functional.cross_entropy)


@pytest.mark.parametrize("loss", [
    nn.functional.cross_entropy,
    lambda out, y: nn.functional.cross_entropy(out, y, label_smoothing=0.2, reduction="sum"),
    lambda out, y: nn.functional.nll_loss(out.log_softmax(1), y, weight=cygrad.arange(1.0, 5.0, dtype=DTYPE)),
    lambda out, y: nn.functional.mse_loss(out, nn.functional.one_hot(y, 4).to(DTYPE)),
    lambda out, y: nn.functional.binary_cross_entropy(out.sigmoid(), nn.functional.one_hot(y, 4).to(DTYPE)),
    lambda out, y: nn.functional.smooth_l1_loss(out[:, 0], y.to(DTYPE)),
], ids=range(6))
def test_every_kind_of_loss(loss):
    cygrad.manual_seed(2)
    check(nn.Linear(3, 4).to(DTYPE), cygrad.randn(3, 3, dtype=DTYPE), cygrad.randint(4, (3,)), loss)


@pytest.mark.parametrize("padding", [None, 2])
def test_embeddings(padding):
    cygrad.manual_seed(3)
    model = nn.Sequential(nn.Embedding(6, 3, padding_idx=padding), nn.Flatten(), nn.Linear(12, 4)).to(DTYPE)
    check(model, cygrad.tensor([[0, 2, 2, 5], [1, 1, 1, 2], [5, 4, 3, 2]]), cygrad.randint(4, (3,)),
          nn.functional.cross_entropy)


def test_batch_norm_in_evaluation():
    cygrad.manual_seed(4)
    model = nn.Sequential(nn.BatchNorm1d(2), nn.Flatten(), nn.Linear(10, 4)).to(DTYPE).eval()
    x, y = cygrad.randn(3, 2, 5, dtype=DTYPE), cygrad.randint(4, (3,))
    check(model, x, y, nn.functional.cross_entropy)
    model.train()                    # running statistics have no capacity for those of each sample
    with pytest.raises(RuntimeError, match="inplace"):
        check(model, x, y, nn.functional.cross_entropy)
    replaced = cygrad.func.replace_all_batch_norm_modules_(model)      # separate statistics for each sample
    check(replaced, x, y, nn.functional.cross_entropy)
