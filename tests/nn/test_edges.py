"""Edge cases of layers: empty batches, zero channels, uint8, compared with PyTorch."""

import numpy as np
import pytest

import cygrad
from cygrad.autograd import forward_ad
from tests.reference import torch

F = cygrad.nn.functional


def both(call):
    """Return the result of a call in either library: nested lists, shapes, or RuntimeError."""
    return outcome(cygrad, call), outcome(torch, call)


def outcome(library, call):
    try:
        return plain(call(library))
    except (RuntimeError, AssertionError) as error:
        return RuntimeError if isinstance(error, RuntimeError) else AssertionError


def plain(value):
    if isinstance(value, tuple | list):
        return [plain(part) for part in value]
    return value.tolist() if hasattr(value, "tolist") else value


# ---- normalization

@pytest.mark.parametrize("shape", [(0, 3), (0, 3, 4), (0, 3, 2, 2)])
@pytest.mark.parametrize("training", [True, False])
def test_batch_norm_of_an_empty_batch(shape, training):
    def call(library):
        norm = getattr(library.nn, {2: "BatchNorm1d", 3: "BatchNorm1d", 4: "BatchNorm2d"}[len(shape)])(3)
        norm.train(training)
        x = library.ones(shape, requires_grad=True)
        norm(x).sum().backward()
        return (norm.weight.grad, norm.bias.grad, tuple(x.grad.shape), norm.running_mean, norm.running_var,
                norm.num_batches_tracked)
    ours, theirs = both(call)
    assert ours == theirs
    assert ours[0] == [0, 0, 0]


@pytest.mark.parametrize("layer", ["LayerNorm", "GroupNorm", "InstanceNorm1d"])
def test_other_norms_of_empty_batches_have_zero_gradients(layer):
    norm = {"LayerNorm": lambda: cygrad.nn.LayerNorm(4), "GroupNorm": lambda: cygrad.nn.GroupNorm(1, 3),
            "InstanceNorm1d": lambda: cygrad.nn.InstanceNorm1d(3, affine=True)}[layer]()
    norm(cygrad.ones(0, 3, 4)).sum().backward()
    assert not norm.weight.grad.any()
    assert not norm.bias.grad.any()


def test_batches_are_counted_while_statistics_are_tracked():
    def call(library):
        norm = library.nn.BatchNorm1d(2)
        x = library.tensor([[1.0, 2.0], [3.0, 5.0]])
        norm(x)
        norm.track_running_stats = False
        norm(x)
        return norm.num_batches_tracked, norm.running_mean
    ours, theirs = both(call)
    assert ours[0] == theirs[0] == 1
    assert ours[1] == pytest.approx(theirs[1])


@pytest.mark.parametrize("which", ["running_mean", "running_var"])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("function", [F.batch_norm, F.instance_norm])
def test_running_statistics_have_no_tangents(function, training, which):
    with forward_ad.dual_level():
        running = {"running_mean": cygrad.zeros(3), "running_var": cygrad.ones(3)}
        running[which] = forward_ad.make_dual(running[which], cygrad.ones(3))
        with pytest.raises(RuntimeError, match=f"{which} cannot have a tangent"):
            function(cygrad.randn(2, 3, 4), running["running_mean"], running["running_var"], None, None, training)


def test_statistics_take_no_tangents_from_the_input():
    with forward_ad.dual_level():
        mean, var = cygrad.zeros(3), cygrad.ones(3)
        x = forward_ad.make_dual(cygrad.arange(12.0).sin().reshape(4, 3), cygrad.ones(4, 3))
        y = F.batch_norm(x, mean, var, training=True)
        assert forward_ad.unpack_dual(mean).tangent is None
        assert forward_ad.unpack_dual(var).tangent is None
        assert forward_ad.unpack_dual(y).tangent.abs().max() < 1e-6


# ---- embeddings

@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, float("inf")])
def test_rows_are_not_too_long_by_more_than_rounding(p):
    values = np.random.default_rng(0).normal(size=(500, 7)).astype(np.float32) * 3

    table = cygrad.from_numpy(values.copy())
    F.embedding(cygrad.arange(500), table, max_norm=1.0, norm_type=p)
    assert np.linalg.norm(table.numpy().astype(np.float64), ord=p, axis=1).max() <= 1 + 2**-23


def test_a_row_of_ones_comes_out_exactly():
    for size in range(1, 60):
        table = cygrad.full((1, size), 2.0)
        F.embedding(cygrad.tensor([0]), table, max_norm=1.0)
        norm = np.sqrt(np.float32(4 * size)).astype(np.float64)
        assert table[0, 0].item() == np.float32(2 * np.float32(1 / (norm + 1e-7)))


@pytest.mark.parametrize("bags", [False, True])
def test_renormalising_leaves_tangents_alone(bags):
    with forward_ad.dual_level():
        table = forward_ad.make_dual(cygrad.full((4, 3), 2.0), cygrad.ones(4, 3))
        rows = cygrad.tensor([[1, 2]])
        y = F.embedding_bag(rows, table, max_norm=1.0, mode="sum") if bags else F.embedding(rows, table, max_norm=1.0)
        primal, tangent = forward_ad.unpack_dual(table)
        assert tangent.tolist() == [[1.0] * 3] * 4
        assert primal[1].norm() == pytest.approx(1)
        assert forward_ad.unpack_dual(y).tangent.tolist() == ([[2.0] * 3] if bags else [[[1.0] * 3] * 2])


# ---- attention and sampling

@pytest.mark.parametrize("shape", [(3,), (4,), (1,), (2, 4), (2, 1), (1, 4), (4, 2), (2, 3), (2, 4, 1)])
@pytest.mark.parametrize("batched", [True, False])
@pytest.mark.parametrize("batch_first", [True, False])
def test_key_padding_mask_has_an_entry_for_each_key(shape, batched, batch_first):
    def call(library):
        attention = library.nn.MultiheadAttention(4, 2, batch_first=batch_first)
        x = library.ones((2, 4, 4) if batch_first else (4, 2, 4)) if batched else library.ones(4, 4)
        return tuple(attention(x, x, x, key_padding_mask=library.zeros(shape, dtype=library.bool))[0].shape)
    ours, theirs = both(call)
    assert ours == theirs


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("shape", [(0, 3, 4, 4), (2, 0, 4, 4), (0, 0, 4, 4), (0, 3, 4, 4, 4), (0, 3, 0, 4)])
def test_grid_sample_of_nothing(shape, mode):
    n = len(shape) - 2

    def call(library):
        x = library.ones(shape, requires_grad=True)
        grid = library.ones((shape[0],) + (2,) * n + (n,))
        y = library.nn.functional.grid_sample(x, grid, mode=mode, align_corners=False)
        y.sum().backward()
        return tuple(y.shape), tuple(x.grad.shape)
    ours, theirs = both(call)
    assert ours == theirs


# ---- starting values

def test_skip_init_draws_nothing():
    state = cygrad.get_rng_state()
    layer = cygrad.nn.utils.skip_init(cygrad.nn.Linear, 3, 4)
    assert cygrad.equal(cygrad.get_rng_state(), state)
    assert layer.weight.shape == (4, 3)
    assert layer.weight.requires_grad


# ---- integers

@pytest.mark.parametrize("size", [1.0, 1e-5, 1e-6, 1e-20, 0.0])
def test_cosine_embedding_loss_bounds_lengths_as_pytorch(size):
    def call(library):
        a, b = (library.tensor(v, requires_grad=True) for v in ([[1.0, -2.0], [3.0, 4.0]], [[3.0, 1.0], [-1.0, 4.0]]))
        loss = library.nn.functional.cosine_embedding_loss(a * size, b * size, library.tensor([1, -1]), 0.1)
        return loss, *library.autograd.grad(loss, [a, b])
    ours, theirs = both(call)
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-7 * size)


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64", "float64"])
@pytest.mark.parametrize("reduction", ["none", "mean"])
def test_cosine_embedding_loss_of_integers(dtype, reduction):
    def call(library):
        a, b = (library.tensor(v, dtype=getattr(library, dtype)) for v in ([[1, 2], [3, 4]], [[3, 1], [1, 4]]))
        loss = library.nn.functional.cosine_embedding_loss(a, b, library.tensor([1, -1]), 0.5, reduction=reduction)
        return str(loss.dtype).rpartition(".")[2], loss
    ours, theirs = both(call)
    assert ours[0] == theirs[0]
    assert ours[1] == pytest.approx(theirs[1], rel=1e-5)


@pytest.mark.parametrize("size", [(3, 4), (9, 11), (5, 7)])
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
def test_nearest_of_bytes(mode, size):
    image = np.random.default_rng(0).integers(0, 256, (2, 3, 5, 7)).astype(np.uint8)
    ours, theirs = both(lambda library: library.nn.functional.interpolate(library.from_numpy(image.copy()), size,
                                                                          mode=mode))
    assert ours == theirs


@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize("align_corners", [True, False])
@pytest.mark.parametrize("size", [(3, 4), (9, 11)])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_bytes_are_rounded_to_the_nearest_after_each_dimension(mode, size, align_corners, antialias):
    image = np.random.default_rng(0).integers(100, 150, (2, 3, 5, 7)).astype(np.uint8)
    options = {"mode": mode, "align_corners": align_corners, "antialias": antialias}
    found = F.interpolate(cygrad.from_numpy(image), size, **options)
    rows = (F.interpolate(cygrad.from_numpy(image).double(), (5, size[1]), **options) + 0.5).floor().clamp(0, 255)
    exact = F.interpolate(rows, size, **options).clamp(0, 255)
    assert found.dtype is cygrad.uint8
    assert (found.double() - exact).abs().max() <= 0.5 + 1e-4
    theirs = torch.nn.functional.interpolate(torch.from_numpy(image), size, **options)
    assert np.abs(found.numpy().astype(int) - theirs.numpy().astype(int)).max() <= 1      # fixed point there


def test_bytes_stay_in_their_range():
    image = cygrad.tensor([[[[0, 0, 255, 255], [0, 0, 255, 255], [0, 0, 255, 255]]]], dtype=cygrad.uint8)
    row = F.interpolate(image, (3, 12), mode="bicubic")[0, 0, 1]
    assert row.tolist() == [0, 0, 0, 0, 0, 80, 175, 255, 255, 255, 255, 255]


# ---- convolution and pooling of empty tensors

@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", ["no channels", "no batch", "no outputs", "unbatched"])
def test_convolutions_of_nothing(shape, bias, n):
    batch, inputs, outputs = {"no channels": ((2,), 0, 4), "no batch": ((0,), 3, 4), "no outputs": ((2,), 3, 0),
                              "unbatched": ((), 0, 4)}[shape]

    def call(library):
        x = library.ones((*batch, inputs) + (5,) * n, requires_grad=True)
        weight = library.ones((outputs, inputs) + (3,) * n, requires_grad=True)
        summands = library.ones(outputs, requires_grad=True) if bias else None
        y = getattr(library.nn.functional, f"conv{n}d")(x, weight, summands)
        y.sum().backward()
        return tuple(y.shape), x.grad, weight.grad, summands.grad if bias else None
    ours, theirs = both(call)
    assert ours == theirs


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("lead", [(0,), (0, 3), (2, 0), (3,)])
@pytest.mark.parametrize("pool", ["adaptive_avg_pool", "adaptive_max_pool", "avg_pool", "max_pool"])
def test_pooling_of_nothing(pool, lead, n):
    def call(library):
        x = library.ones(lead + (5,) * n, requires_grad=True)
        y = getattr(library.nn.functional, f"{pool}{n}d")(x, 2)
        y.sum().backward()
        return tuple(y.shape), tuple(x.grad.shape)
    ours, theirs = both(call)
    assert ours == theirs
