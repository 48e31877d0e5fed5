"""Modules of activations, distances and losses: values and reprs of PyTorch."""

import numpy as np
import pytest

import cygrad
import cygrad.nn.functional as F
from cygrad import nn
from tests.reference import torch
from tests.twins import agree, both, gradients_agree

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((4, 6)) * 2
Y = RANDOM.standard_normal((4, 6))
Z = RANDOM.standard_normal((4, 6))
SIGNS = np.where(RANDOM.random((4, 6)) < 0.5, -1.0, 1.0)
CLASSES = np.array([0, 5, 2, 2])
SEVERAL = np.array([[0, 3, -1, 1, 1, 1]] * 4)
ZERO_ONE = (SIGNS + 1) / 2
IMAGES = RANDOM.standard_normal((2, 6, 3, 2))

CASES = [
    ("CELU", (0.5,), {}, (X,)), ("GLU", (1,), {}, (X,)), ("Hardshrink", (0.3,), {}, (X,)),
    ("Hardsigmoid", (), {}, (X,)), ("Hardswish", (), {}, (X,)), ("PReLU", (), {}, (X,)), ("PReLU", (6, 0.1), {}, (X,)),
    ("PReLU", (6,), {}, (IMAGES,)), ("Softmax2d", (), {}, (IMAGES,)), ("Softmax2d", (), {}, (IMAGES[0],)),
    ("Softshrink", (), {}, (X,)), ("Tanhshrink", (), {}, (X,)), ("Threshold", (0.1, 20), {}, (X,)),
    ("CosineSimilarity", (), {"dim": 0}, (X, Y)), ("PairwiseDistance", (), {"p": 1, "keepdim": True}, (X, Y)),
    ("HingeEmbeddingLoss", (), {"margin": 0.5}, (X, SIGNS)), ("SoftMarginLoss", (), {"reduction": "sum"}, (X, SIGNS)),
    ("CosineEmbeddingLoss", (0.2,), {}, (X, Y, SIGNS[:, 0])),
    ("MarginRankingLoss", (), {"reduction": "none"}, (X[0], Y[0], SIGNS[0])),
    ("MultiLabelMarginLoss", (), {}, (X, SEVERAL)), ("MultiLabelSoftMarginLoss", (), {}, (X, ZERO_ONE)),
    ("MultiMarginLoss", (2, 0.5), {}, (X, CLASSES)), ("TripletMarginLoss", (), {"swap": True}, (X, Y, Z)),
    ("TripletMarginWithDistanceLoss", (), {"margin": 2.0}, (X, Y, Z)),
    ("PoissonNLLLoss", (), {"log_input": True}, (Y, ZERO_ONE)),
    ("GaussianNLLLoss", (), {"full": True}, (X, Y, np.abs(Z) + 0.1)),
]


@pytest.mark.parametrize(("name", "arguments", "options", "inputs"), CASES,
                         ids=[f"{number}-{case[0]}" for number, case in enumerate(CASES)])
def test_as_pytorch(name, arguments, options, inputs):
    ours, theirs = (getattr(library.nn, name)(*arguments, **options).double() for library in (cygrad, torch))
    assert repr(ours) == repr(theirs)
    pairs = [both(array, array is not SIGNS) for array in inputs]
    found, expected = (module(*(pair[i] for pair in pairs)) for i, module in enumerate((ours, theirs)))
    tolerance = 1e-7 if name == "Hardsigmoid" else 1e-10        # PyTorch's 1/6 has single precision
    agree(found, expected)
    gradients_agree((found, ours), (expected, theirs), [pair for pair in pairs if pair[0].requires_grad], tolerance)


def test_weights_of_classes():
    weight = np.linspace(0.5, 1.5, 6)
    for name, target in (("MultiMarginLoss", CLASSES), ("MultiLabelSoftMarginLoss", ZERO_ONE)):
        ours, theirs = (getattr(library.nn, name)(weight=library.from_numpy(weight)) for library in (cygrad, torch))
        assert list(ours.state_dict()) == ["weight"]
        x, target = both(X), both(target, False)
        agree(ours(x[0], target[0]), theirs(x[1], target[1]))


def test_bilinear():
    ours, theirs = nn.Bilinear(6, 6, 3, dtype=cygrad.float64), torch.nn.Bilinear(6, 6, 3, dtype=torch.float64)
    assert repr(ours) == repr(theirs)
    ours.load_state_dict({name: cygrad.from_numpy(value.numpy()) for name, value in theirs.state_dict().items()})
    x, y = both(X), both(Y)
    found, expected = ours(x[0], y[0]), theirs(x[1], y[1])
    agree(found, expected)
    gradients_agree((found, ours), (expected, theirs), [x, y])
    assert nn.Bilinear(25, 2, 3).weight.abs().max().item() <= 0.2
    with pytest.raises(ValueError, match="in1_features"):
        nn.Bilinear(0, 2, 3)


def test_random_slopes():
    x = cygrad.from_numpy(X.copy()).requires_grad_()
    module = nn.RReLU(0.1, 0.3)
    slopes = module(x).detach() / x.detach()
    negative = slopes[x.detach() < 0]
    assert (slopes[x.detach() > 0] == 1).all().item()
    assert negative.min().item() >= 0.1 - 1e-12
    assert negative.max().item() <= 0.3 + 1e-12
    assert negative.std().item() > 0.01
    module(x).sum().backward()
    assert 0.1 <= x.grad.min().item() < 0.3
    assert cygrad.allclose(module.eval()(x), F.leaky_relu(x, 0.2))
    assert repr(module) == repr(torch.nn.RReLU(0.1, 0.3))
    with pytest.raises(RuntimeError, match="lower must not exceed"):
        F.rrelu(x, 2, 1)


def test_draws_that_can_be_differentiated():
    logits = cygrad.tensor([[1.0, 2.0, 3.0]]).log().expand(20000, 3).requires_grad_()
    cygrad.manual_seed(0)
    hard = F.gumbel_softmax(logits, hard=True)
    assert ((hard == 0) | ((hard - 1).abs() < 1e-6)).all().item()
    np.testing.assert_allclose(hard.mean(0).tolist(), [1 / 6, 1 / 3, 1 / 2], atol=0.02)
    cygrad.manual_seed(0)
    soft = F.gumbel_softmax(logits, tau=0.5)
    np.testing.assert_allclose(soft.sum(1).tolist(), 1, atol=1e-5)
    (hard * cygrad.tensor([0.0, 0.0, 1.0])).sum().backward()
    assert (logits.grad[:, 2] > 0).any().item()
    with pytest.warns(UserWarning, match="eps is deprecated"):
        F.gumbel_softmax(logits, eps=1e-5)


@pytest.mark.parametrize("name", ["elu_", "celu_", "selu_", "hardtanh_", "leaky_relu_", "rrelu_", "threshold_"])
def test_names_with_underscore_write_into_their_input(name):
    arguments = (0.5, 3.0) if name == "threshold_" else ()
    x = cygrad.from_numpy(X.copy())
    expected = getattr(F, name[:-1])(x.clone(), *arguments)
    assert getattr(F, name)(x, *arguments) is x
    assert cygrad.equal(x, expected)
    for module in (nn.Hardswish(inplace=True), nn.Threshold(0.5, 3.0, inplace=True), nn.CELU(inplace=True)):
        x = cygrad.from_numpy(X.copy()).requires_grad_()
        result = module(inner := x * 1)
        assert result is inner
        result.sum().backward()
        assert x.grad is not None


def test_integers_and_wrong_shapes():
    assert F.threshold(cygrad.tensor([1, 5]), 2, 7.9).tolist() == [7, 5]
    with pytest.raises(ValueError, match="3D or 4D"):
        nn.Softmax2d()(cygrad.ones(2, 2))
    with pytest.raises(ValueError, match="p must be 1 or 2"):
        nn.MultiMarginLoss(p=3)
    with pytest.raises(ValueError, match="1-dimensional"):
        nn.MultiMarginLoss(weight=cygrad.ones(2, 2))
    for module in (nn.TripletMarginLoss, nn.TripletMarginWithDistanceLoss):
        with pytest.raises(ValueError, match="must be positive"):
            module(margin=0)
