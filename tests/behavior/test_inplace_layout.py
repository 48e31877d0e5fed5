"""Strides of results, compared with PyTorch's."""

import numpy as np
import pytest

import cygrad
import cygrad.nn.functional as F

pytestmark = pytest.mark.guarantee("I5")

torch = pytest.importorskip("torch")

LAYOUTS = {
    "turned": lambda x: x.permute(3, 2, 1, 0), "images": lambda x: x.permute(0, 3, 1, 2),
    "gaps": lambda x: x.permute(2, 0, 3, 1)[:, :, ::2], "rows": lambda x: x, "one": lambda x: x[:1].permute(1, 0, 3, 2),
    "spread": lambda x: x[:, :1].expand(2, 3, 4, 5).transpose(0, 3),
}
ELEMENTWISE = {
    "exp": lambda t, x: x.exp(), "number": lambda t, x: x + 1, "twice": lambda t, x: x * x,
    "relu": lambda t, x: x.relu(),
    "where": lambda t, x: t.where(x > 0, x, 2 * x), "compared": lambda t, x: x > 0.5, "cast": lambda t, x: x.double(),
    "clone": lambda t, x: x.clone(), "zeros_like": lambda t, x: t.zeros_like(x),
    "ones_like": lambda t, x: t.ones_like(x),
    "full_like": lambda t, x: t.full_like(x, 2), "empty_like": lambda t, x: t.empty_like(x),
    "rand_like": lambda t, x: t.rand_like(x), "randn_like": lambda t, x: t.randn_like(x, dtype=t.float64),
    "dropout": lambda t, x: t.nn.functional.dropout(x), "gelu": lambda t, x: t.nn.functional.gelu(x),
    "row": lambda t, x: x + t.ones(x.shape[-1]), "column": lambda t, x: t.ones(x.shape[0], 1, 1, 1) * x,
    "rows first": lambda t, x: x.contiguous() + x, "rows last": lambda t, x: x - x.contiguous(),
    "clamp": lambda t, x: x.clamp(0, 1), "addcmul": lambda t, x: t.addcmul(x, x, x),
    "lerp": lambda t, x: x.lerp(x, 0.5),
}


def pair(shape, layout):
    """Return equal values with equal strides in both libraries."""
    values = np.random.default_rng(0).random(shape, np.float32)
    return layout(cygrad.from_numpy(values)), layout(torch.from_numpy(values))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise(name, layout):
    ours, theirs = (ELEMENTWISE[name](library, x) for library, x in zip(
        (cygrad, torch), pair((2, 3, 4, 5), LAYOUTS[layout]), strict=True))
    assert ours.stride() == theirs.stride()
    if name not in ("empty_like", "rand_like", "randn_like", "dropout"):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-6, atol=1e-6)


def test_large_operands_that_lie_across():
    ours, theirs = pair((600, 70, 2), lambda x: x.transpose(0, 1))
    for found, expected in ((ours + ours.contiguous(), theirs + theirs.contiguous()),
                            (ours.contiguous() * ours, theirs.contiguous() * theirs)):
        assert found.stride() == expected.stride()
        assert (found.numpy() == expected.numpy()).all()


IMAGES = {
    "conv": lambda t, x: t.nn.functional.conv2d(x, t.ones(4, 6, 3, 3), padding=1),
    "conv of a kernel": lambda t, x: t.nn.functional.conv2d(x.contiguous(), t.ones(4, 6, 3, 3).contiguous(
        memory_format=t.channels_last)),
    "transposed conv": lambda t, x: t.nn.functional.conv_transpose2d(x, t.ones(6, 4, 3, 3)),
    "max_pool": lambda t, x: t.nn.functional.max_pool2d(x, 2),
    "avg_pool": lambda t, x: t.nn.functional.avg_pool2d(x, 2),
    "adaptive": lambda t, x: t.nn.functional.adaptive_avg_pool2d(x, 3),
    "adaptive max": lambda t, x: t.nn.functional.adaptive_max_pool2d(x, 3),
    "batch_norm": lambda t, x: t.nn.functional.batch_norm(x, None, None, training=True),
    "batch_norm of given statistics": lambda t, x: t.nn.functional.batch_norm(x, t.zeros(6), t.ones(6)),
    "group_norm": lambda t, x: t.nn.functional.group_norm(x, 2),
    "nearest": lambda t, x: t.nn.functional.interpolate(x, scale_factor=2),
    "bilinear": lambda t, x: t.nn.functional.interpolate(x, scale_factor=2, mode="bilinear"),
    "cat": lambda t, x: t.cat([x, x[:, :2]], 1), "cat with rows": lambda t, x: t.cat([x, x.contiguous()], 1),
    "pad": lambda t, x: t.nn.functional.pad(x, (1, 1)),
    "reflect": lambda t, x: t.nn.functional.pad(x, (1, 1, 0, 0), mode="reflect"),
    "sum": lambda t, x: x.sum(1), "softmax": lambda t, x: x.softmax(1), "cumsum": lambda t, x: x.cumsum(1),
    "format": lambda t, x: t.zeros_like(x, memory_format=t.contiguous_format),
    "empty": lambda t, x: t.empty(2, 3, 4, 5, memory_format=t.channels_last),
}


@pytest.mark.parametrize("name", IMAGES)
def test_images(name):
    ours, theirs = (IMAGES[name](library, x.contiguous(memory_format=library.channels_last)) for library, x in zip(
        (cygrad, torch), pair((2, 6, 7, 5), LAYOUTS["rows"]), strict=True))
    assert ours.stride() == theirs.stride()
    if name != "empty":
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-4, atol=1e-5)


def test_volumes():
    x = cygrad.rand(2, 3, 4, 5, 6).contiguous(memory_format=cygrad.channels_last_3d)
    for y in (F.conv3d(x, cygrad.ones(2, 3, 2, 2, 2)), F.max_pool3d(x, 2), x.relu(), F.group_norm(x, 3)):
        assert y.is_contiguous(memory_format=cygrad.channels_last_3d)


def test_a_network_of_images_next_to_one_of_rows():
    """Results are equal, and intermediate results keep the memory format of the images."""
    cygrad.manual_seed(0)
    seen = []
    model = cygrad.nn.Sequential(cygrad.nn.Conv2d(3, 8, 3), cygrad.nn.BatchNorm2d(8), cygrad.nn.ReLU(),
                                 cygrad.nn.MaxPool2d(2), cygrad.nn.Conv2d(8, 4, 3))
    for part in model:
        part.register_forward_hook(lambda part, args, result: seen.append(result))
    x = cygrad.rand(2, 3, 12, 12)
    expected = model(x)
    expected.square().sum().backward()
    gradients = [p.grad.clone() for p in model.parameters()]
    seen.clear()
    model.zero_grad()
    model = model.to(memory_format=cygrad.channels_last)
    found = model(x.to(memory_format=cygrad.channels_last))
    assert all(y.is_contiguous(memory_format=cygrad.channels_last) and not y.is_contiguous() for y in seen)
    found.square().sum().backward()
    np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), rtol=1e-4, atol=1e-5)
    for p, gradient in zip(model.parameters(), gradients, strict=True):
        assert p.grad.stride() == p.stride()
        np.testing.assert_allclose(p.grad.numpy(), gradient.numpy(), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("function", [lambda x: x.exp().sum(), lambda x: (x * 2).sum(), lambda x: x.sum(),
                                      lambda x: (x.contiguous() * 3).sum(), lambda x: (x @ x.mT).sum()])
@pytest.mark.parametrize("layout", ["turned", "images", "rows"])
def test_gradients_lie_as_their_leaf(layout, function, create_graph):
    leaf = LAYOUTS[layout](cygrad.rand(2, 3, 4, 5)).detach().requires_grad_()
    expected = None
    for _ in range(2):                   # the second time gradients are added to those that are there
        (found,) = cygrad.autograd.grad(function(leaf), leaf)
        expected = found if expected is None else expected + found
        function(leaf).backward(create_graph=create_graph)
        assert leaf.grad.stride() == leaf.stride()
    assert (leaf.grad == expected).all()


def test_gradients_of_leaves_with_gaps_are_row_major():
    leaf = cygrad.rand(4, 6)[:, ::2].detach().requires_grad_()
    leaf.mT.exp().sum().backward()
    assert leaf.grad.is_contiguous()


def test_a_leaf_that_changed_its_shape():
    leaf = cygrad.rand(3, 4).t().requires_grad_()
    y = leaf * 2
    leaf.data = cygrad.rand(5)
    with pytest.raises(RuntimeError):
        y.backward(cygrad.ones(5))
    leaf.data = cygrad.rand(4, 3)
    y.backward(cygrad.ones(4, 3))
    assert leaf.grad.tolist() == [[2.0] * 3] * 4


def test_questions():
    x = cygrad.zeros(2, 3, 4, 5)
    assert x.is_contiguous(memory_format=cygrad.contiguous_format)
    assert not x.is_contiguous(memory_format=cygrad.channels_last)
    assert not cygrad.zeros(2, 3).is_contiguous(memory_format=cygrad.channels_last)
    with pytest.raises(RuntimeError, match="unsupported memory format"):
        x.is_contiguous(memory_format=cygrad.preserve_format)
    with pytest.raises(RuntimeError, match="rank 4"):
        cygrad.zeros_like(cygrad.zeros(2, 3), memory_format=cygrad.channels_last)
    with pytest.raises(TypeError, match="unsupported memory format"):
        cygrad.zeros_like(x, memory_format="diagonal")


SHAPE_CHANGES = {"t_": lambda g: g.t_(), "resize_": lambda g: g.resize_(6), "unsqueeze_": lambda g: g.unsqueeze_(0),
                 "set_": lambda g: g.set_(cygrad.ones(3, 2)), "data": lambda g: setattr(g, "data", cygrad.ones(3, 2))}


@pytest.mark.parametrize("retained", [False, True])
@pytest.mark.parametrize("name", SHAPE_CHANGES)
def test_a_gradient_keeps_the_shape_that_an_in_place_operation_gives_it(name, retained):
    leaf = cygrad.ones(2, 3, requires_grad=True)
    tensor = leaf * 1 if retained else leaf
    tensor.retain_grad()
    (tensor * 2).sum().backward(retain_graph=True)
    expected = tensor.grad.clone()
    SHAPE_CHANGES[name](expected)
    SHAPE_CHANGES[name](tensor.grad)
    assert tensor.grad.tolist() == expected.tolist()
    if not (retained and name == "unsqueeze_"):                # a retained gradient is added with broadcasting
        with pytest.raises(RuntimeError, match="shape"):
            (tensor * 2).sum().backward()
        assert tensor.grad.tolist() == expected.tolist()


def test_a_transposed_square_gradient_accumulates():
    x = cygrad.arange(4.0).reshape(2, 2).requires_grad_()
    (x * x).sum().backward()
    x.grad.t_()
    (x * x).sum().backward()
    assert x.grad.tolist() == [[0, 6], [6, 12]]


@pytest.mark.parametrize("place", ["tensor", "prehook", "posthook"])
@pytest.mark.parametrize("leaf", [True, False])
def test_hooks_must_not_change_the_shape_of_a_gradient(place, leaf):
    def turn(*gradients):
        (gradients[0][0] if isinstance(gradients[0], tuple) else gradients[0]).t_()

    x = cygrad.ones(3, 1, requires_grad=True)
    y = x * x
    if place == "tensor":
        (x if leaf else y).register_hook(turn)
    elif place == "prehook":
        node = y.grad_fn.next_functions[0][0] if leaf else y.grad_fn
        node.register_prehook(turn)
    else:
        y.grad_fn.register_hook(turn)
    with pytest.raises(RuntimeError, match="changed the shape of a gradient in place"):
        (y * y).sum().backward()
    assert x.grad is None
