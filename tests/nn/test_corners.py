"""Corner cases of layers: memory formats, empty sizes, target dtypes, errors."""

import copy
import math

import numpy as np
import pytest

import cygrad
from cygrad import nn
from cygrad.nn import functional as F
from cygrad.optim import NAdam
from tests.reference import torch

IMAGES = cygrad.arange(2 * 4 * 6 * 6.0).view(2, 4, 6, 6)
VOLUMES = cygrad.arange(2 * 4 * 4 * 4 * 4.0).view(2, 4, 4, 4, 4)


def pooled_and_back(pool, unpool):
    def both(x):
        values, places = pool(x, 2, return_indices=True)
        return unpool(values, places, 2)
    return both


@pytest.mark.parametrize("function", [
    pooled_and_back(F.max_pool2d, F.max_unpool2d), lambda x: F.pixel_shuffle(cygrad.cat([x, x], 1), 2),
    lambda x: F.pixel_unshuffle(x, 2), lambda x: F.channel_shuffle(x, 2), lambda x: F.group_norm(x, 2),
    lambda x: F.max_pool2d(x, 2), lambda x: x.flip(1), lambda x: x.roll(1, 2), lambda x: x.flip((2, 3)).roll(2, 1)])
def test_functions_of_images_keep_channels_last(function):
    x = IMAGES.to(memory_format=cygrad.channels_last).requires_grad_()
    result = function(x)
    assert result.is_contiguous(memory_format=cygrad.channels_last) and not result.is_contiguous()
    rows = IMAGES.clone().requires_grad_()
    expected = function(rows)
    assert expected.is_contiguous()
    assert cygrad.equal(result, expected)
    result.sum().backward()
    expected.sum().backward()
    assert cygrad.equal(x.grad, rows.grad)


@pytest.mark.parametrize("function", [
    pooled_and_back(F.max_pool3d, F.max_unpool3d), lambda x: F.max_pool3d(x, 2), lambda x: F.group_norm(x, 2),
    lambda x: F.conv3d(x, cygrad.ones(3, 4, 2, 2, 2)), lambda x: x.flip(1)])
def test_functions_of_volumes_keep_channels_last(function):
    result = function(VOLUMES.to(memory_format=cygrad.channels_last_3d))
    assert result.is_contiguous(memory_format=cygrad.channels_last_3d) and not result.is_contiguous()
    assert cygrad.allclose(result, function(VOLUMES))


@pytest.mark.parametrize("n", [2, 3])
def test_fractional_pooling_of_empty_batches_and_into_nothing(n):
    pool = (F.fractional_max_pool2d, F.fractional_max_pool3d)[n - 2]
    sizes = (7,) * n
    x = cygrad.zeros(0, 2, *sizes, requires_grad=True)
    values, places = pool(x, 2, output_size=3, return_indices=True)
    assert values.shape == places.shape == (0, 2, *(3,) * n)
    values.sum().backward()
    assert x.grad.shape == x.shape
    x = cygrad.ones(1, 2, *sizes, requires_grad=True)
    values, places = pool(x, 2, output_size=0, return_indices=True)
    assert values.shape == places.shape == (1, 2, *(0,) * n)
    assert (values.dtype, places.dtype) == (cygrad.float32, cygrad.int64)
    values.sum().backward()
    assert not x.grad.any()
    assert pool(cygrad.ones(2, *sizes), 2, output_size=0).shape == (2, *(0,) * n)
    for shape, window, count in (((1, 0, *sizes), 2, 3), ((1, 2, *(0,) * n), 2, 3), ((1, 2, *sizes), 0, 3),
                                 ((1, 2, *sizes), 2, -1), ((1, 2, *sizes), 2, 7)):
        with pytest.raises(RuntimeError, match=f"fractional_max_pool{n}d: "):
            pool(cygrad.ones(shape), window, output_size=count)
    with pytest.raises(ValueError, match="output_ratio must be one number"):
        pool(x, 2, output_ratio=(0.5,) * (n + 1))


def test_losses_take_classes_as_uint8():
    scores = cygrad.tensor([[0.5, 1.0, 2.0], [1.5, 0.25, -1.0]], requires_grad=True)
    target = cygrad.tensor([2, 0])
    for loss in (lambda t: F.nll_loss(scores, t), lambda t: F.cross_entropy(scores, t),
                 lambda t: F.cross_entropy(scores, t, ignore_index=0, label_smoothing=0.1)):
        short, long = loss(target.to(cygrad.uint8)), loss(target)
        assert short.item() == long.item()
        gradients = [cygrad.autograd.grad(value, scores)[0] for value in (short, long)]
        assert cygrad.equal(*gradients)
    assert F.nll_loss(scores, cygrad.tensor([255, 0], dtype=cygrad.uint8), ignore_index=255).item() == -1.5
    with pytest.raises(IndexError):
        F.nll_loss(scores, cygrad.tensor([200, 0], dtype=cygrad.uint8))
    with pytest.raises(RuntimeError, match="int64 or uint8"):
        F.nll_loss(scores, target.int())


@pytest.mark.parametrize("function", [F.logsigmoid, F.softplus, F.softshrink, F.hardshrink])
def test_activations_write_into_out(function):
    x = cygrad.linspace(-3, 3, 7)
    out = cygrad.empty(7)
    assert function(x, out=out) is out
    assert cygrad.equal(out, function(x))


@pytest.mark.parametrize(("args", "options"), [
    ((), {"copy": True}), ((), {"copy": False}), ((cygrad.float64, False, True), {}), (("cpu", cygrad.float64, False,
                                                                                   True), {})])
def test_modules_are_not_copied_by_to(args, options):
    layer = nn.Linear(2, 2)
    with pytest.raises(RuntimeError, match="does not accept copy"):
        layer.to(*args, **options)
    assert layer.weight.dtype is cygrad.float32


@pytest.mark.parametrize(("args", "options"), [
    ((cygrad.float32, cygrad.float64), {}), ((), {"dtype": "float32"}), ((), {"unknown": 1}), ((cygrad.int64,), {})])
def test_to_refuses_what_it_does_not_understand(args, options):
    with pytest.raises(TypeError, match=r"^to: "):
        nn.Linear(2, 2).to(*args, **options)


def test_halves_of_uint8_images_are_rounded_up():
    x = cygrad.tensor([[[[1, 2], [3, 4]]]], dtype=cygrad.uint8)
    assert F.interpolate(x, size=(1, 1), mode="bilinear").tolist() == [[[[3]]]]        # 2.5
    assert F.interpolate(255 * cygrad.ones_like(x), size=(5, 3), mode="bicubic").unique().tolist() == [255]


@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_uint8_images_are_resized_as_by_pytorch(mode, antialias):
    generator = np.random.default_rng(3)
    differing = total = 0
    for _ in range(20):
        (*old, height, width), options = generator.integers(1, 20, 4), {"mode": mode, "antialias": antialias}
        image = generator.integers(0, 256, (1, 3, *old), dtype=np.uint8)
        size = (int(height), int(width))
        difference = F.interpolate(cygrad.tensor(image), size=size, **options).numpy().astype(int) - (
            torch.nn.functional.interpolate(torch.tensor(image), size=size, **options).numpy())
        assert abs(difference).max() <= 2                     # PyTorch rounds the weights, too
        differing, total = differing + (difference != 0).sum(), total + difference.size
    assert differing < 0.03 * total


def test_extra_state_goes_to_modules_that_can_take_it():
    class Setter(nn.Module):
        state = 0

        def set_extra_state(self, state):
            self.state = state

    class Getter(nn.Module):
        def get_extra_state(self):
            return 5

    module = Setter()
    assert module.state_dict() == {}
    module.load_state_dict({"_extra_state": 3})
    assert module.state == 3
    with pytest.raises(RuntimeError, match=r"(?s)Missing key.*_extra_state"):
        module.load_state_dict({})
    module.load_state_dict({}, strict=False)
    assert Getter().state_dict() == {"_extra_state": 5}
    with pytest.raises(RuntimeError, match=r"(?s)Unexpected key.*_extra_state"):
        Getter().load_state_dict({"_extra_state": 3})
    assert Getter().load_state_dict({"_extra_state": 3}, strict=False).unexpected_keys == ["_extra_state"]


def test_gradients_are_shared_with_their_parameters():
    layer = nn.Linear(2, 2)
    layer(cygrad.ones(1, 2)).sum().backward()
    before = copy.deepcopy(layer.weight.grad)
    layer.share_memory()
    assert all(tensor.is_shared() for part in layer.parameters() for tensor in (part, part.grad))
    assert cygrad.equal(layer.weight.grad, before)


@pytest.mark.parametrize("options", [{}, {"weight_decay": 0.1, "momentum_decay": 0.2},
                                     {"weight_decay": 0.1, "decoupled_weight_decay": True}])
def test_steps_of_nadam_are_differentiated_by_their_whole_state(options):
    names = ("exp_avg", "exp_avg_sq", "mu_product")

    def step(parameter, gradient, *state):
        parameter = parameter.clone()
        parameter.grad = gradient
        optimizer = NAdam([parameter], lr=0.5, differentiable=True, **options)
        optimizer.state[parameter].update({name: value.clone() for name, value in zip(names, state, strict=True)},
                                          step=cygrad.tensor(3.0))
        optimizer.step()
        return parameter, *[optimizer.state[parameter][name] for name in names]

    vectors = [cygrad.tensor(values, dtype=cygrad.float64, requires_grad=True)
               for values in ([1.0, 2.0], [0.5, 0.25], [0.1, 0.7], [0.3, 0.4], 0.9)]
    assert cygrad.autograd.gradcheck(step, vectors)


@pytest.mark.parametrize("further", [(), (3,)])
@pytest.mark.parametrize("bias", [False, True])
def test_linear_cross_entropy_loss_is_that_of_pytorch(further, bias):
    def work(library):
        module = library.nn.LinearCrossEntropyLoss(4, 5, out_features=further, bias=bias, reduction="sum")
        with library.no_grad():
            for parameter in module.parameters():
                parameter.copy_(library.arange(parameter.numel()).reshape(parameter.shape) % 7 / 5)
        input = (library.arange(8).reshape(2, 4) / 8).requires_grad_()
        module(input, library.arange(2 * max(1, *further, 1)).reshape(2, *further) % 5).backward()
        return [input.grad.tolist(), *(parameter.grad.tolist() for parameter in module.parameters())]

    for ours, theirs in zip(work(cygrad), work(torch), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)


@pytest.mark.parametrize(("error", "text", "call"), [
    (ValueError, "expected 3D or 4D input .got 2D", lambda: nn.CircularPad2d(1)(cygrad.ones(2, 2))),
    (ValueError, "expected 2D or 3D input .got 4D", lambda: nn.CircularPad1d(1)(cygrad.ones(1, 1, 2, 2))),
    (TypeError, "delta must be a float or int", lambda: nn.HuberLoss(delta=1j)),
    (ValueError, "eps must be positive", lambda: nn.BatchNorm1d(2, eps=0)(cygrad.ones(2, 2))),
    (ValueError, "not negative", lambda: nn.BatchNorm1d(2, eps=-1).eval()(cygrad.ones(2, 2))),
    (ValueError, "#0 has length 1; 2 is required", lambda: nn.ModuleDict().update([["a"]])),
])
def test_wrong_options_of_modules_are_refused(error, text, call):
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize("n", [2, 3])
def test_fractional_pooling_refuses_tuples_of_one(n):
    pool, x = (F.fractional_max_pool2d, F.fractional_max_pool3d)[n - 2], cygrad.rand(1, 1, *[6] * n)
    for sizes in (((2,), 3), (2, (3,))):
        with pytest.raises(RuntimeError, match=rf"fractional_max_pool{n}d: .*tuple of {n} Ints \(got \(.,\)\)"):
            pool(x, *sizes)
    assert pool(x, (2,) * n, [3] * n).shape == (1, 1, *[3] * n)


def test_fractional_pooling_without_batch_uses_the_first_samples():
    x, samples = cygrad.rand(2, 5, 5, 5), cygrad.rand(3, 2, 3)
    single = F.fractional_max_pool3d(x, 2, 3, _random_samples=samples)
    assert single.equal(F.fractional_max_pool3d(x[None], 2, 3, _random_samples=samples[:1])[0])


@pytest.mark.parametrize("name", ["double", "half", "long", "int", "short", "char", "byte"])
def test_packed_sequences_convert_to_each_dtype(name):
    packed = nn.utils.rnn.pack_sequence([cygrad.ones(2), cygrad.ones(1)])
    assert getattr(packed, name)().data.dtype == getattr(packed.data, name)().dtype


def test_pools_and_reductions_take_integers_of_numpy_as_strides_and_dimensions():
    x, one = cygrad.arange(16.0).reshape(1, 1, 4, 4), np.int64(1)
    assert cygrad.equal(F.max_pool2d(x, 2, one), F.max_pool2d(x, 2, 1))
    assert cygrad.equal(F.avg_pool2d(x, 2, one), F.avg_pool2d(x, 2, 1))
    assert cygrad.equal(cygrad.linalg.vector_norm(x, 2, one), cygrad.linalg.vector_norm(x, 2, 1))
    assert cygrad.equal(cygrad.count_nonzero(x, one), cygrad.count_nonzero(x, 1))


def test_a_refused_bool_does_not_spoil_later_pixel_shuffles():
    x = cygrad.arange(8.0).reshape(8, 1, 1)
    with pytest.raises(TypeError, match="pixel_shuffle"):
        F.pixel_shuffle(x, True)
    assert cygrad.equal(F.pixel_shuffle(x, 1), x)


@pytest.mark.parametrize(("order", "expected", "slope"), [
    (math.inf, [3.0, 6.0], [-1.0, 0.0, 0.0, -1.0]), (-math.inf, [1.0, 5.0], [0.0, 1.0, -1.0, 0.0])])
def test_power_pooling_of_infinite_order_takes_the_extremum_of_absolute_values(order, expected, slope):
    x = cygrad.tensor([[-3.0, 1.0, -5.0, -6.0]], requires_grad=True)
    result = F.lp_pool1d(x, order, 2)
    result.sum().backward()
    assert result.tolist() == [expected] and x.grad.tolist() == [slope]


def test_gaussian_losses_of_infinite_variances_are_infinite_and_small_ones_are_clamped():
    x, y = cygrad.tensor([1.0, 2.0]), cygrad.tensor([0.5, 2.5])
    variance = cygrad.tensor([math.inf, 1e-9], requires_grad=True)
    losses = F.gaussian_nll_loss(x, y, variance, eps=0.25, reduction="none")
    losses[1].backward()
    assert losses.tolist() == [math.inf, pytest.approx(0.5 * (math.log(0.25) + 1))]
    assert variance.grad.tolist() == [0, 0]       # 0.5 * (1 / eps - 0.25 / eps**2) is 0


@pytest.mark.parametrize(("call", "message"), [
    (lambda x: F.layer_norm(x, (3,), -1), r"^layer_norm: argument 'weight' must be a Tensor"),
    (lambda x: F.rms_norm(x, (3,), "a"), r"^rms_norm: argument 'weight' must be a Tensor"),
    (lambda x: F.multi_margin_loss(x, cygrad.tensor([0, 1]), weight=1), r"^multi_margin_loss: argument 'weight'"),
    (lambda x: F.scaled_dot_product_attention(x, x, x, True), r"^scaled_dot_product_attention: argument 'attn_mask'"),
    (lambda x: F.huber_loss(x, x, delta="a"), r"^huber_loss: argument 'delta' must be a number"),
    (lambda x: F.smooth_l1_loss(x, x, beta=None), r"^smooth_l1_loss: argument 'beta' must be a number"),
    (lambda x: cygrad.linalg.matrix_power(x @ x.T, 1.5), r"^linalg.matrix_power: argument 'n' must be an integer"),
])
def test_arguments_of_a_wrong_kind_are_named_with_the_operation(call, message):
    with pytest.raises(TypeError, match=message):
        call(cygrad.ones(2, 3))
