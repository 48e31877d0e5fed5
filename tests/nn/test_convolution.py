"""Modules of convolution, pooling, normalization and resampling, compared with PyTorch."""

from contextlib import nullcontext

import numpy as np
import pytest

import cygrad
import cygrad.nn.functional as F
from cygrad import nn
from tests.reference import torch

RANDOM = np.random.default_rng(0)
# name, arguments, options, shape of the input
MODULES = [
    ("Conv1d", (4, 6, 3), {"padding": 1, "groups": 2}, (2, 4, 9)),
    ("Conv2d", (4, 6, 3), {"padding": "same", "padding_mode": "reflect"}, (2, 4, 9, 8)),
    ("Conv2d", (4, 6, (3, 2)), {"stride": 2, "bias": False}, (2, 4, 9, 8)),
    ("Conv2d", (4, 6, 3), {"padding": (1, 2), "padding_mode": "circular"}, (4, 9, 8)),
    ("Conv3d", (2, 3, 2), {"dilation": 2, "padding": 1, "padding_mode": "replicate"}, (2, 2, 5, 5, 5)),
    ("ConvTranspose1d", (4, 6, 3), {}, (4, 5)),
    ("ConvTranspose2d", (4, 6, 3), {"stride": 2, "output_padding": 1, "padding": 1, "groups": 2}, (2, 4, 4, 5)),
    ("ConvTranspose3d", (2, 1, 2), {}, (1, 2, 2, 2, 2)),
    ("Unfold", (2,), {"padding": 1}, (2, 3, 4, 5)),
    ("Fold", ((4, 5), 2), {}, (2, 12, 12)),
    ("BatchNorm1d", (4,), {}, (6, 4)),
    ("BatchNorm1d", (4,), {"momentum": None}, (6, 4, 3)),
    ("BatchNorm2d", (4,), {"affine": False}, (6, 4, 3, 2)),
    ("BatchNorm2d", (4,), {"bias": False}, (6, 4, 3, 2)),
    ("BatchNorm3d", (4,), {"track_running_stats": False}, (2, 4, 3, 2, 2)),
    ("LayerNorm", (5,), {}, (2, 3, 5)),
    ("LayerNorm", ((3, 5),), {"bias": False}, (2, 3, 5)),
    ("LayerNorm", ((3, 5),), {"elementwise_affine": False}, (2, 3, 5)),
    ("RMSNorm", (5,), {}, (2, 5)),
    ("GroupNorm", (2, 4), {}, (2, 4, 5)),
    ("GroupNorm", (2, 4), {"affine": False}, (2, 4)),
    ("InstanceNorm1d", (4,), {}, (2, 4, 5)),
    ("InstanceNorm2d", (4,), {"affine": True, "track_running_stats": True}, (2, 4, 5, 3)),
    ("InstanceNorm3d", (4,), {"affine": True}, (4, 5, 3, 2)),
    ("LocalResponseNorm", (3,), {"alpha": 0.5}, (2, 5, 4, 3)),
    ("MaxPool1d", (2,), {}, (2, 3, 7)),
    ("MaxPool2d", (3,), {"stride": 2, "padding": 1, "ceil_mode": True}, (2, 3, 7, 6)),
    ("MaxPool3d", (2,), {"dilation": 2}, (2, 3, 4, 4, 5)),
    ("AvgPool1d", (2,), {}, (2, 3, 7)),
    ("AvgPool2d", ((2, 3),), {"count_include_pad": False, "padding": 1}, (2, 3, 7, 6)),
    ("AvgPool3d", (2,), {"divisor_override": 3}, (2, 3, 4, 4, 5)),
    ("LPPool1d", (3, 2), {}, (2, 3, 7)),
    ("LPPool2d", (2, 3), {"stride": 1}, (2, 3, 7, 6)),
    ("LPPool3d", (2, 2), {}, (2, 3, 4, 4, 4)),
    ("AdaptiveAvgPool1d", (3,), {}, (2, 3, 7)),
    ("AdaptiveAvgPool2d", ((3, None),), {}, (2, 3, 7, 6)),
    ("AdaptiveAvgPool3d", (2,), {}, (2, 3, 4, 5, 6)),
    ("AdaptiveMaxPool1d", (3,), {}, (2, 3, 7)),
    ("AdaptiveMaxPool2d", (3,), {}, (2, 3, 7, 5)),
    ("AdaptiveMaxPool3d", (3,), {}, (1, 2, 4, 4, 4)),
    ("ZeroPad1d", (2,), {}, (2, 3)),
    ("ZeroPad2d", ((1, 2, 0, -1),), {}, (2, 3, 4)),
    ("ConstantPad3d", (1, 2.5), {}, (1, 2, 2, 3, 4)),
    ("ReflectionPad1d", (2,), {}, (2, 3, 4)),
    ("ReflectionPad2d", ((1, 2, 0, 1),), {}, (2, 3, 4)),
    ("ReplicationPad2d", (3,), {}, (2, 3, 4)),
    ("ReplicationPad3d", (1,), {}, (1, 2, 2, 3, 4)),
    ("CircularPad1d", (2,), {}, (2, 3, 4)),
    ("CircularPad2d", ((1, 2, 0, 1),), {}, (1, 2, 3, 4)),
    ("Upsample", (), {"scale_factor": 2, "mode": "bilinear"}, (2, 3, 3, 4)),
    ("Upsample", (), {"size": (5, 6)}, (2, 3, 3, 4)),
    ("UpsamplingNearest2d", (), {"scale_factor": 2}, (2, 3, 3, 4)),
    ("UpsamplingBilinear2d", (), {"size": 7}, (2, 3, 3, 4)),
    ("PixelShuffle", (2,), {}, (2, 8, 2, 3)),
    ("PixelUnshuffle", (2,), {}, (2, 2, 4, 6)),
    ("ChannelShuffle", (2,), {}, (2, 4, 3)),
    ("Unflatten", (1, (2, 3)), {}, (2, 6, 4)),
]


def close(found, expected, name):
    np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), 1e-9, 1e-9, err_msg=name)


@pytest.mark.parametrize(("name", "arguments", "options", "shape"), MODULES)
def test_module_is_that_of_torch(name, arguments, options, shape):
    """The same text, state, results, gradients and statistics: three steps in training, one in evaluation."""
    theirs, own = (getattr(library, name)(*arguments, **options).double() for library in (torch.nn, nn))
    assert repr(own) == repr(theirs)
    assert list(own.state_dict()) == list(theirs.state_dict())
    own.load_state_dict({key: cygrad.tensor(value.numpy().copy()) for key, value in theirs.state_dict().items()})
    for step in range(4):
        for module in (own, theirs):
            module.train(step < 3)
        values = RANDOM.standard_normal(shape)
        x, y = cygrad.tensor(values).requires_grad_(), torch.tensor(values).requires_grad_()
        found, expected = own(x), theirs(y)
        close(found, expected, name)
        seed = RANDOM.standard_normal(tuple(found.shape))
        found.backward(cygrad.tensor(seed))
        expected.backward(torch.tensor(seed))
        close(x.grad, y.grad, name)
        for mine, other in zip(own.parameters(), theirs.parameters(), strict=True):
            close(mine.grad, other.grad, name)
        for mine, other in zip(own.buffers(), theirs.buffers(), strict=True):
            close(mine, other, name)


def test_texts():
    for name, arguments in (("Dropout1d", (0.2,)), ("Dropout2d", ()), ("Dropout3d", (0.5, True)), ("AlphaDropout", ()),
                            ("FeatureAlphaDropout", ()), ("MaxUnpool2d", (2,)), ("ConstantPad1d", (2, 3.5))):
        theirs = repr(getattr(torch.nn, name)(*arguments))
        assert repr(getattr(nn, name)(*arguments)) == theirs


def test_transposed_convolution_takes_a_size():
    down, up = nn.Conv2d(1, 2, 3, 2, padding=1), nn.ConvTranspose2d(2, 1, 3, 2, padding=1)
    for size in (7, 8):
        x = cygrad.ones(1, 1, size, size)
        assert up(down(x), output_size=x.shape).shape == x.shape
    with pytest.raises(ValueError, match="valid sizes range"):
        up(down(x), output_size=(20, 20))


def test_unpooling_undoes_pooling():
    x = cygrad.tensor([[[[1.0, 5.0, 2.0], [3.0, 4.0, 6.0], [7.0, 0.0, 8.0]]]])
    values, places = nn.MaxPool2d(2, stride=1, return_indices=True)(x)
    again = nn.MaxUnpool2d(2, stride=1)(values, places)
    assert again.tolist() == [[[[0.0, 5.0, 0.0], [0.0, 0.0, 6.0], [7.0, 0.0, 8.0]]]]


@pytest.mark.parametrize("make", [
    lambda: nn.Conv2d(3, 4, 3, groups=2), lambda: nn.Conv2d(4, 3, 3, groups=2), lambda: nn.Conv2d(4, 4, 3, groups=0),
    lambda: nn.Conv2d(1, 1, 3, padding="full"), lambda: nn.Conv2d(1, 1, 3, padding="same", stride=2),
    lambda: nn.Conv2d(1, 1, 3, padding_mode="mirror"), lambda: nn.ConvTranspose2d(1, 1, 3, padding_mode="reflect"),
    lambda: nn.GroupNorm(3, 4), lambda: nn.BatchNorm2d(3)(cygrad.ones(2, 3)),
    lambda: nn.InstanceNorm2d(3, affine=True)(cygrad.ones(2, 2, 3, 3)), lambda: nn.Dropout2d(1.5),
])
def test_modules_refuse_what_does_not_fit(make):
    with pytest.raises(ValueError, match=r"[A-Z]\w+: .*(got|should|expected|between)"):
        make()


@pytest.mark.parametrize(("name", "shape"), [("dropout1d", (50, 40, 3)), ("dropout2d", (50, 40, 3, 2)),
                                             ("dropout3d", (50, 40, 3, 1, 2))])
def test_whole_channels_are_dropped(name, shape):
    cygrad.manual_seed(0)
    x = cygrad.ones(*shape).requires_grad_()
    y = getattr(F, name)(x, 0.25)
    flat = y.flatten(2)
    assert (flat == flat[:, :, :1]).all()
    assert sorted(set(y.flatten().tolist())) == [0.0, cygrad.tensor(4 / 3).item()]
    assert 0.7 < (flat[:, :, 0] != 0).to(cygrad.float32).mean().item() < 0.8
    y.sum().backward()
    assert (x.grad == y).all()
    assert getattr(F, name)(x, 0.25, training=False) is x
    single = x.detach()[0].clone()
    with pytest.warns(UserWarning, match="dimension 1") if name == "dropout2d" else nullcontext():
        changed = getattr(F, name)(single, 0.5, inplace=True)
    assert (changed == single).all()


def test_alpha_dropout_keeps_mean_and_variance():
    cygrad.manual_seed(0)
    y = F.alpha_dropout(cygrad.randn(200_000, dtype=cygrad.float64), 0.3, training=True)
    assert abs(y.mean().item()) < 0.01
    assert abs(y.var().item() - 1) < 0.01
    assert F.feature_alpha_dropout(cygrad.randn(4, 3, 2), 0.3, training=True).shape == (4, 3, 2)


def test_no_input_channels_give_no_output_channels():
    """As PyTorch has it; the gradients are zeros."""
    x, bias = cygrad.ones(2, 0, 4, 4, requires_grad=True), cygrad.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = F.conv2d(x, cygrad.ones(3, 0, 3, 3), bias)
    assert y.shape == (2, 0, 2, 2)
    y.sum().backward()
    assert x.grad.shape == x.shape


def test_normalization_to_third_order():
    """Mean and deviation depend on the input in derivatives of all orders."""
    cygrad.manual_seed(0)
    x = cygrad.randn(4, 2, dtype=cygrad.float64).requires_grad_()
    weight, bias = cygrad.randn(2, dtype=cygrad.float64), cygrad.randn(2, dtype=cygrad.float64)
    factor = cygrad.randn(4, 2, dtype=cygrad.float64)

    def second(x, function):
        (first,) = cygrad.autograd.grad((function(x) * factor).sum(), x, create_graph=True)
        return cygrad.autograd.grad((first * first).sum(), x, create_graph=True)[0]

    def plain(x, dim):
        centered = x - x.mean(dim, keepdim=True)
        return centered / (x.var(dim, correction=0, keepdim=True) + 1e-5).sqrt() * weight + bias

    for own, reference in ((lambda x: F.batch_norm(x, None, None, weight, bias, True), lambda x: plain(x, 0)),
                           (lambda x: F.layer_norm(x, (2,), weight, bias), lambda x: plain(x, 1))):
        third = [cygrad.autograd.grad((second(x, function) * factor).sum(), x)[0] for function in (own, reference)]
        np.testing.assert_allclose(third[0].numpy(), third[1].numpy(), rtol=1e-6, atol=1e-6)


LAZY = [("Conv1d", (6, 3), {"groups": 2}, (2, 4, 9)), ("Conv2d", (6, 3), {"padding": "same"}, (4, 9, 8)),
        ("Conv3d", (3, 2), {"bias": False}, (2, 2, 5, 5, 5)), ("ConvTranspose1d", (6, 3), {}, (2, 4, 5)),
        ("ConvTranspose2d", (6, 3), {"stride": 2}, (4, 5, 5)), ("ConvTranspose3d", (1, 2), {}, (1, 2, 2, 2, 2)),
        ("BatchNorm1d", (), {}, (6, 4)), ("BatchNorm2d", (), {"affine": False}, (6, 4, 3, 2)),
        ("BatchNorm3d", (), {"track_running_stats": False}, (2, 4, 3, 2, 2)), ("InstanceNorm1d", (), {}, (2, 4, 5)),
        ("InstanceNorm2d", (), {"affine": True}, (2, 4, 5, 3)), ("InstanceNorm3d", (), {}, (2, 4, 5, 3, 2))]


@pytest.mark.filterwarnings("ignore:Lazy modules are a new feature")
@pytest.mark.parametrize(("name", "arguments", "options", "shape"), LAZY)
def test_lazy_modules(name, arguments, options, shape):
    """They learn their channels from the first input, or from a state."""
    theirs, own, loaded = (getattr(library, f"Lazy{name}")(*arguments, **options) for library in (torch.nn, nn, nn))
    assert repr(own) == repr(theirs)
    assert own(cygrad.ones(*shape)).shape == tuple(theirs(torch.ones(shape)).shape)
    assert repr(own) == repr(theirs)
    assert type(own) is getattr(nn, name)
    assert {key: value.shape for key, value in own.state_dict().items()} == {
        key: tuple(value.shape) for key, value in theirs.state_dict().items()}
    loaded.load_state_dict(own.state_dict())
    own.eval()
    loaded.eval()
    x = cygrad.randn(*shape)
    assert (loaded(x) == own(x)).all()
    assert repr(loaded) == repr(own)
