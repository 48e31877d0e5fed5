"""Functions and losses compared with PyTorch."""

import math

import numpy as np
import pytest

import cygrad
import cygrad.nn.functional as F
from cygrad import nn

ACTIVATIONS = {
    "relu": {}, "relu6": {}, "hardtanh": {"min_val": -0.5, "max_val": 0.8}, "leaky_relu": {"negative_slope": 0.2},
    "elu": {"alpha": 0.7}, "celu": {"alpha": 0.7}, "selu": {}, "silu": {}, "mish": {}, "gelu": {}, "softplus": {},
    "logsigmoid": {}, "softsign": {}, "tanhshrink": {}, "sigmoid": {}, "tanh": {}, "softmax": {"dim": 1},
    "log_softmax": {"dim": 0}, "softmin": {"dim": -1}, "glu": {"dim": 1}, "normalize": {"dim": 1},
}
RANDOM = np.random.default_rng(0)
SCORES = RANDOM.standard_normal((6, 4))
IMAGES = RANDOM.standard_normal((3, 4, 2, 5))


def both(torch, arrays, function, **options):
    """Value and gradients of the same call in both libraries."""
    found = []
    for library, functional in (cygrad, F), (torch, torch.nn.functional):
        tensors = [library.from_numpy(np.array(array)) for array in arrays]
        for tensor in tensors:
            if tensor.is_floating_point():
                tensor.requires_grad_()
        converted = {name: library.from_numpy(np.array(value)) if isinstance(value, np.ndarray) else value
                     for name, value in options.items()}
        result = getattr(functional, function)(*tensors, **converted)
        (result * result).sum().backward()
        found.append([result.detach().numpy(),
                      *[tensor.grad.numpy() for tensor in tensors if tensor.grad is not None]])
    return found


def check(torch, arrays, function, rtol=1e-7, **options):
    # PyTorch keeps some constants in single precision, hence the tolerance for doubles.
    ours, theirs = both(torch, arrays, function, **options)
    assert len(ours) == len(theirs)
    for own, other in zip(ours, theirs, strict=True):
        assert own.dtype == other.dtype
        np.testing.assert_allclose(own, other, rtol=rtol, atol=rtol * 0.1)


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_activations(torch, name, dtype):
    values = np.concatenate([SCORES * 3, [[0.0, -0.5, 30.0, -30.0]]]).astype(dtype)
    check(torch, [values], name, 2e-5 if dtype == "float32" else 1e-7, **ACTIVATIONS[name])


def test_gelu_by_tanh(torch):
    check(torch, [SCORES], "gelu", approximate="tanh")
    with pytest.raises(RuntimeError, match="must be 'none' or 'tanh'"):
        F.gelu(cygrad.ones(1), "other")


@pytest.mark.parametrize("name", ["relu", "relu6", "hardtanh", "leaky_relu", "elu", "celu", "selu", "silu", "mish"])
def test_in_place_forms(name):
    start = cygrad.from_numpy(np.array(SCORES)).requires_grad_()
    expected = getattr(F, name)(start)
    expected.sum().backward()
    gradient = start.grad.tolist()
    start.grad = None
    value = start * 1
    result = getattr(F, name)(value, inplace=True)
    assert result is value
    assert value.tolist() == expected.tolist()
    value.sum().backward()
    assert start.grad.tolist() == gradient


def test_dimension_of_softmax_may_be_left_out_with_a_warning():
    for function in F.softmax, F.log_softmax, F.softmin:
        with pytest.warns(UserWarning, match="implicit dimension"):
            assert function(cygrad.zeros(2, 3)).shape == (2, 3)
    assert F.softmax(cygrad.zeros(2, dtype=cygrad.int64), 0, dtype=cygrad.float64).dtype == cygrad.float64


# ---- layers

def test_linear(torch):
    check(torch, [SCORES, RANDOM.standard_normal((3, 4)), RANDOM.standard_normal(3)], "linear")
    check(torch, [RANDOM.standard_normal((2, 5, 4)), RANDOM.standard_normal((3, 4))], "linear")


def test_embedding(torch):
    index, weight = np.array([[0, 2, 2], [1, 2, 0]]), RANDOM.standard_normal((4, 3))
    check(torch, [index, weight], "embedding")
    check(torch, [index, weight], "embedding", padding_idx=-2)
    with pytest.raises(IndexError):
        F.embedding(cygrad.tensor([4]), cygrad.ones(4, 3))
    with pytest.raises(AssertionError, match="must be within"):
        F.embedding(cygrad.tensor([0]), cygrad.ones(4, 3), padding_idx=4)


def test_embedding_module():
    table = nn.Embedding.from_pretrained(cygrad.tensor([[1.0, 2.0], [3.0, 4.0]]))
    assert table(cygrad.tensor([1, 0])).tolist() == [[3, 4], [1, 2]]
    assert not table.weight.requires_grad
    assert repr(nn.Embedding(3, 4, padding_idx=0)) == "Embedding(3, 4, padding_idx=0)"
    with pytest.raises(AssertionError, match="padding_idx"):
        nn.Embedding(3, 4, padding_idx=3)


def test_pad_and_one_hot(torch):
    check(torch, [SCORES], "pad", pad=(1, 2))
    check(torch, [SCORES], "pad", pad=(1, 0, 2, 1), mode="constant", value=3.0)
    assert F.one_hot(cygrad.tensor([0, 2]), 3).tolist() == [[1, 0, 0], [0, 0, 1]]


def test_normalize_small_vectors(torch):
    check(torch, [np.zeros((2, 3))], "normalize", dim=1, eps=0.5)
    check(torch, [SCORES], "normalize", p=1.0, dim=0)
    out = cygrad.empty(2)
    assert F.normalize(cygrad.tensor([3.0, 4.0]), dim=0, out=out) is out
    assert out.tolist() == pytest.approx([0.6, 0.8])


def test_dropout():
    cygrad.manual_seed(0)
    x = cygrad.ones(1000, requires_grad=True)
    y = F.dropout(x, 0.25)
    values = y.detach().numpy()
    assert set(np.unique(values)) == {0, np.float32(1 / 0.75)}
    assert (values == 0).mean() == pytest.approx(0.25, abs=0.05)
    y.sum().backward()
    assert x.grad.tolist() == y.tolist()
    assert F.dropout(x, 0.25, training=False) is x
    assert F.dropout(x, 0.0) is x
    assert F.dropout(x, 1.0).sum().item() == 0
    z = x.detach().clone()
    assert F.dropout(z, 0.5, inplace=True) is z
    assert not z.all()
    for make in nn.Dropout, lambda p: F.dropout(x, p):
        with pytest.raises(ValueError, match="must be from 0 to 1"):
            make(1.5)
    layer = nn.Dropout(0.5)
    assert layer.eval()(x) is x
    assert layer.train()(x) is not x
    assert repr(layer) == "Dropout(p=0.5, inplace=False)"


def test_flatten():
    x = cygrad.ones(2, 3, 4)
    assert nn.Flatten()(x).shape == (2, 12)
    assert nn.Flatten(0, 1)(x).shape == (6, 4)
    assert repr(nn.Flatten()) == "Flatten(start_dim=1, end_dim=-1)"


# ---- losses of regression

@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize(("name", "options"), [
    ("mse_loss", {}), ("l1_loss", {}), ("smooth_l1_loss", {"beta": 0.7}), ("smooth_l1_loss", {"beta": 0.0}),
    ("huber_loss", {"delta": 0.7}), ("mse_loss", {"weight": abs(SCORES)}), ("l1_loss", {"weight": abs(SCORES)}),
    ("huber_loss", {"weight": abs(SCORES)})])
def test_regression(torch, name, options, reduction):
    check(torch, [SCORES, SCORES[::-1].copy()], name, reduction=reduction, **options)


def test_regression_values():
    a, b = cygrad.tensor([0.0, 3.0]), cygrad.tensor([0.5, 0.0])
    assert F.mse_loss(a, b).item() == pytest.approx((0.25 + 9) / 2)
    assert F.l1_loss(a, b, reduction="sum").item() == 3.5
    assert F.smooth_l1_loss(a, b, reduction="none").tolist() == [0.125, 2.5]
    assert F.huber_loss(a, b, delta=2.0, reduction="none").tolist() == [0.125, 4.0]


def test_regression_errors():
    a = cygrad.ones(2, 3)
    with pytest.warns(UserWarning, match="differ in shape"):
        F.mse_loss(a, cygrad.ones(3))
    with pytest.raises(ValueError, match="unknown reduction"):
        F.mse_loss(a, a, reduction="median")
    with pytest.raises(ValueError, match="must have the shape of the losses"):
        F.l1_loss(a, a, weight=cygrad.ones(3))
    with pytest.raises(ValueError, match="must have the shape of the losses"):
        F.huber_loss(a, a, weight=cygrad.ones(3))
    with pytest.raises(RuntimeError, match="beta must not be negative"):
        F.smooth_l1_loss(a, a, beta=-1.0)
    with pytest.raises(RuntimeError, match="delta must be positive"):
        F.huber_loss(a, a, delta=0.0)
    with pytest.warns(UserWarning, match="reduction='sum'"):
        assert F.l1_loss(a, a * 0, size_average=False).item() == 6


# ---- losses of classification

CLASSES = [(SCORES, np.array([0, 3, 1, 1, 2, 0])), (SCORES[0], np.array(2)),
           (IMAGES, RANDOM.integers(0, 4, (3, 2, 5)))]


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("case", range(3))
@pytest.mark.parametrize(("name", "options"), [
    ("nll_loss", {}), ("nll_loss", {"ignore_index": 1}), ("cross_entropy", {}), ("cross_entropy", {"ignore_index": 1}),
    ("cross_entropy", {"label_smoothing": 0.2}), ("cross_entropy", {"label_smoothing": 0.2, "ignore_index": 2})])
def test_classes(torch, name, options, case, weighted, reduction):
    if weighted:
        options = {**options, "weight": np.array([0.5, 1.0, 2.0, 0.1])}
    ours, theirs = both(torch, CLASSES[case], name, reduction=reduction, **options)
    for own, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("scores", [SCORES, SCORES[0], IMAGES], ids=["batch", "single", "images"])
def test_probabilities(torch, scores, smoothing, weighted, reduction):
    target = np.exp(scores[::-1])
    target /= target.sum(1 if scores.ndim > 1 else 0, keepdims=True)
    options = {"weight": np.array([0.5, 1.0, 2.0, 0.1])} if weighted else {}
    check(torch, [scores, target], "cross_entropy", reduction=reduction, label_smoothing=smoothing, **options)


def test_cross_entropy_values_and_errors():
    scores = cygrad.tensor([[0.0, math.log(3.0)]])
    assert F.cross_entropy(scores, cygrad.tensor([1])).item() == pytest.approx(-math.log(0.75))
    assert F.cross_entropy(scores, cygrad.tensor([[0.25, 0.75]])).item() == pytest.approx(
        -0.25 * math.log(0.25) - 0.75 * math.log(0.75))
    with pytest.raises(RuntimeError, match="must have the shape of the input"):
        F.cross_entropy(scores, cygrad.tensor([1.0]))
    with pytest.raises(RuntimeError, match="ignore_index is not supported"):
        F.cross_entropy(scores, cygrad.tensor([[0.5, 0.5]]), ignore_index=1)
    with pytest.raises(RuntimeError, match="label_smoothing must be from"):
        F.cross_entropy(scores, cygrad.tensor([1]), label_smoothing=1.5)
    with pytest.raises(IndexError):
        F.cross_entropy(scores, cygrad.tensor([2]))
    with pytest.raises(ValueError, match="unknown reduction"):
        F.cross_entropy(scores, cygrad.tensor([0]), reduction="median")
    with pytest.raises(RuntimeError, match="each of the 2 classes"):
        F.cross_entropy(scores, cygrad.tensor([[0.5, 0.5]]), weight=cygrad.ones(3))


def test_second_derivative_of_cross_entropy():
    """The Hessian of one sample is diag(p) - p p^T."""
    scores = cygrad.from_numpy(np.array(SCORES[:1])).requires_grad_()
    (gradient,) = cygrad.autograd.grad(F.cross_entropy(scores, cygrad.tensor([2])), scores, create_graph=True)
    rows = [cygrad.autograd.grad(gradient[0, i], scores, retain_graph=True)[0][0].numpy() for i in range(4)]
    p = np.exp(SCORES[0]) / np.exp(SCORES[0]).sum()
    np.testing.assert_allclose(rows, np.diag(p) - np.outer(p, p), atol=1e-12)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("weighted", [False, True])
def test_two_classes(torch, reduction, weighted):
    p = 1 / (1 + np.exp(-SCORES))
    p[0, :2] = 0, 1
    target = np.clip(np.abs(SCORES[::-1]), 0, 1)
    options = {"weight": np.array([0.5, 1.0, 2.0, 0.1])} if weighted else {}
    ours, theirs = both(torch, [p, target], "binary_cross_entropy", reduction=reduction, **options)
    for own, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-7)
    if weighted:
        options["pos_weight"] = np.array([3.0, 1.0, 0.5, 2.0])
    check(torch, [SCORES * 20, target], "binary_cross_entropy_with_logits", reduction=reduction, **options)


def test_two_classes_errors():
    p = cygrad.full((2,), 0.5)
    with pytest.raises(ValueError, match="shape of the input"):
        F.binary_cross_entropy(p, cygrad.ones(3))
    with pytest.raises(ValueError, match="must have the shape of the input"):
        F.binary_cross_entropy_with_logits(p, cygrad.ones(3))
    with pytest.raises(RuntimeError, match="between 0 and 1"):
        F.binary_cross_entropy(p + 1, p)
    logits = cygrad.tensor([1000.0, -1000.0], requires_grad=True)
    F.binary_cross_entropy_with_logits(logits, cygrad.tensor([1.0, 0.0])).backward()
    assert logits.grad.tolist() == [0, 0]


@pytest.mark.parametrize("reduction", ["batchmean", "sum", "none"])
@pytest.mark.parametrize("log_target", [False, True])
def test_kl_div(torch, reduction, log_target):
    target = SCORES[::-1].copy() if log_target else np.abs(SCORES[::-1])
    check(torch, [SCORES, target], "kl_div", reduction=reduction, log_target=log_target)
    with pytest.warns(UserWarning, match="batchmean"):
        F.kl_div(cygrad.zeros(2), cygrad.ones(2))


# ---- modules

MODULES = [nn.ELU(), nn.GELU(), nn.LeakyReLU(), nn.LogSigmoid(), nn.LogSoftmax(1), nn.Mish(), nn.ReLU(), nn.ReLU6(),
           nn.Hardtanh(), nn.SELU(), nn.SiLU(), nn.Sigmoid(), nn.Softmax(1), nn.Softmin(1), nn.Softplus(),
           nn.Softsign(), nn.Tanh(), nn.CrossEntropyLoss(label_smoothing=0.1), nn.MSELoss(), nn.L1Loss(),
           nn.SmoothL1Loss(beta=0.5), nn.HuberLoss("sum"), nn.BCEWithLogitsLoss(), nn.KLDivLoss(reduction="sum")]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: type(module).__name__)
def test_modules_are_the_functions(torch, module):
    name = type(module).__name__
    loss = name.endswith("Loss")
    arrays = [SCORES, np.abs(SCORES[::-1]) % 1] if loss else [SCORES]
    options = {key: value for key, value in vars(module).items() if key != "training" and not key.startswith("_")
               and value is not None}
    theirs = getattr(torch.nn, name)(**options)
    ours = module(*[cygrad.from_numpy(np.array(a)) for a in arrays])
    np.testing.assert_allclose(ours.numpy(), theirs(*map(torch.from_numpy, map(np.array, arrays))).numpy(), rtol=1e-9)
    if not loss:
        assert repr(module) == repr(theirs)


def test_weights_of_losses_are_buffers():
    loss = nn.CrossEntropyLoss(weight=cygrad.tensor([1.0, 2.0]))
    assert list(loss.state_dict()) == ["weight"]
    assert loss.double().weight.dtype == cygrad.float64
    nll = nn.NLLLoss(ignore_index=1)
    assert nll(cygrad.tensor([[-1.0, -2.0], [-3.0, -4.0]]), cygrad.tensor([0, 1])).item() == 1
    assert nn.BCELoss()(cygrad.tensor([0.5]), cygrad.tensor([1.0])).item() == pytest.approx(math.log(2))


@pytest.mark.parametrize("size", [(4, 6), (8, 12), (12, 18), (7, 9), (3, 5), (11, 12), (4, 13), (1, 1)])
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
def test_gradient_of_nearest_elements(mode, size, torch):
    """Each element gets the sum of the gradients of its copies."""
    x = np.random.default_rng(1).standard_normal((2, 3, 4, 6))
    found = []
    for library in (cygrad, torch):
        leaf = library.tensor(x).requires_grad_()
        result = library.nn.functional.interpolate(leaf, size=size, mode=mode)
        (result * library.arange(result.numel(), dtype=library.float64).reshape(result.shape)).sum().backward()
        found.append(leaf.grad.numpy())
    np.testing.assert_allclose(*found, rtol=1e-12)


@pytest.mark.parametrize("dtype", ["uint8", "bool", "float16", "float32", "int64", "complex128"])
@pytest.mark.parametrize(("shape", "pad"), [
    ((2, 3, 5, 7), (2, 3, 1, 2)), ((2, 3, 5, 7), (0, 6, 4, 0)), ((2, 3, 5), (1, 1)),
    ((2, 2, 3, 4, 5), (1, 2, 2, 0, 1, 1)),
    ((2, 3, 5, 7), (-1, 2, 0, -2)), ((2, 3, 5, 7), (-2, -3, 1, 1)),
])
@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
def test_padding_with_own_elements(mode, shape, pad, dtype):
    """Compare with NumPy: positive and negative pads, all item sizes, and channels-last images."""
    x = (np.random.default_rng(1).standard_normal(shape) * 100).astype("float64")
    ours = cygrad.tensor(x).to(getattr(cygrad, dtype))
    pads = [(0, 0)] * (len(shape) - len(pad) // 2) + [(max(pad[i], 0), max(pad[i + 1], 0))
                                                      for i in range(len(pad) - 2, -1, -2)]
    crops = [slice(None)] * (len(shape) - len(pad) // 2) + [
        slice(max(-pad[i], 0), -max(-pad[i + 1], 0) or None) for i in range(len(pad) - 2, -1, -2)]
    values = ours.numpy()
    name = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}[mode]
    if mode == "circular":
        wanted = np.pad(values[tuple(crops)], pads, mode=name)
    else:
        wanted = np.pad(values, pads, mode=name)[tuple(crops)]
    np.testing.assert_array_equal(cygrad.nn.functional.pad(ours, pad, mode=mode).numpy(), wanted)
    if len(shape) == 4:
        images = ours.contiguous(memory_format=cygrad.channels_last)
        np.testing.assert_array_equal(cygrad.nn.functional.pad(images, pad, mode=mode).numpy(), wanted)


@pytest.mark.parametrize("name", ["celu", "elu", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu", "mish", "relu",
                                  "relu6", "selu", "silu"])
def test_activations_in_place_have_the_bits_and_the_node_of_those_that_return_a_tensor(name):
    function, found = getattr(F, name), []
    x = cygrad.randn(300) * 4
    for inplace in (False, True):
        leaf = x.clone().requires_grad_()
        given = leaf * 1
        result = function(given, inplace=inplace)
        assert (result is given) is inplace
        node = type(result.grad_fn).__name__
        result.backward(x)
        found.append((result.detach(), leaf.grad, node))
    assert cygrad.equal(found[0][0], found[1][0])
    assert cygrad.equal(found[0][1], found[1][1])
    assert found[0][2] == found[1][2]
