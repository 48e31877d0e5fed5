"""Undefined gradients along whole paths: which code gets them, as None or zeros."""

import pytest

import cygrad
from cygrad.autograd import Function, grad
from cygrad.autograd.graph import get_gradient_edge, register_multi_grad_hook, saved_tensors_hooks
from tests.reference import torch


class Stop(Function):
    """The identity, without a gradient: earlier nodes get None."""

    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        return None


def doubling(library, log, materialize):
    """A custom function of either library that logs the gradient it gets."""
    def forward(ctx, x):
        ctx.set_materialize_grads(materialize)
        ctx.save_for_backward(x)
        return x * 2

    def backward(ctx, g):
        log.append(("backward", plain(g)))
        assert len(ctx.saved_tensors) == 1
        return g

    return type("Doubling", (library.autograd.Function,),
                {"forward": staticmethod(forward), "backward": staticmethod(backward)})


def plain(value):
    if isinstance(value, tuple):
        return tuple(plain(entry) for entry in value)
    return None if value is None else value.tolist()


def observe(library, log, tensor, name):
    tensor.register_hook(lambda g: log.append((name, "tensor", plain(g))))
    node = library.autograd.graph.get_gradient_edge(tensor).node
    node.register_prehook(lambda outputs: log.append((name, "before", plain(outputs))))
    node.register_hook(lambda inputs, outputs: log.append((name, "after", plain(inputs), plain(outputs))))
    if tensor.grad_fn is None:
        tensor.register_post_accumulate_grad_hook(lambda leaf: log.append((name, "accumulated", plain(leaf.grad))))
    else:
        tensor.retain_grad()
    return node


def program(library, materialize, create_graph):
    """A leaf, native and custom nodes, and at their end a function without a gradient; everything is logged."""
    log = []
    stop = type("Stop", (library.autograd.Function,), {
        "forward": staticmethod(lambda ctx, x: x.view_as(x)), "backward": staticmethod(lambda ctx, g: None)})
    x = library.ones(2, requires_grad=True)
    scaled = x * 3
    doubled = doubling(library, log, materialize).apply(scaled)
    grown = doubled.exp()
    nodes = [observe(library, log, tensor, name) for tensor, name in (
        (x, "x"), (scaled, "scaled"), (doubled, "doubled"), (grown, "grown"))]
    stop.apply(grown).sum().backward(create_graph=create_graph)
    del nodes
    return log, plain(x.grad), plain(scaled.grad), plain(doubled.grad)


@pytest.mark.guarantee("G4")
@pytest.mark.filterwarnings("ignore:Using backward")
@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("materialize", [False, True])
def test_undefined_gradients_run_every_node(materialize, create_graph):
    assert program(cygrad, materialize, create_graph) == program(torch, materialize, create_graph)


@pytest.mark.guarantee("G4")
def test_undefined_gradients_are_zeros_or_none():
    log, *gradients = program(cygrad, True, False)
    assert ("backward", [0.0, 0.0]) in log and ("grown", "tensor", None) in log
    assert ("doubled", "after", ([0.0, 0.0],), (None,)) in log        # hooks see what has arrived
    assert gradients == [[0.0, 0.0], [0.0, 0.0], None]
    log, *gradients = program(cygrad, False, False)
    assert ("backward", None) in log and ("x", "accumulated", None) in log
    assert gradients == [None, None, None]


@pytest.mark.guarantee("G4")
@pytest.mark.parametrize("create_graph", [False, True])
def test_undefined_gradients_of_several_outputs(create_graph):
    x = cygrad.ones(2, requires_grad=True)
    a, b = x.split(1)
    log = []
    a.grad_fn.register_prehook(lambda outputs: log.append(plain(outputs)))
    b.register_hook(lambda g: log.append(g))
    Stop.apply(a).sum().backward(create_graph=create_graph)
    assert log == [None, (None, None)] and x.grad is None


@pytest.mark.guarantee("G4")
def test_undefined_gradients_of_inputs():
    x = cygrad.ones(2, requires_grad=True)
    y = Stop.apply(x * 2).sum()
    with pytest.raises(RuntimeError, match=r"input 0 appears to not have been used"):
        grad(y, x, retain_graph=True)
    assert grad(y, x, allow_unused=True, retain_graph=True) == (None,)
    assert grad(y, x, materialize_grads=True)[0].tolist() == [0.0, 0.0]


@pytest.mark.guarantee("H2")
def test_hooks_cannot_replace_an_undefined_gradient():
    for register in (lambda y: y.register_hook(lambda g: cygrad.ones(2)),
                     lambda y: y.grad_fn.register_prehook(lambda outputs: (cygrad.ones(2),)),
                     lambda y: y.grad_fn.register_hook(lambda inputs, outputs: (cygrad.ones(2), None))):
        y = cygrad.ones(2, requires_grad=True) * 3
        register(y)
        with pytest.raises(RuntimeError, match=r"MulBackward0 can't replace a None gradient with a non-None value"):
            Stop.apply(y).sum().backward()


@pytest.mark.guarantee("H4")
def test_multi_grad_hooks_see_undefined_gradients():
    x = cygrad.ones(2, requires_grad=True)
    a, b = x * 2, x * 3
    log = []
    register_multi_grad_hook((a, b), lambda grads: log.append([plain(g) for g in grads]))
    register_multi_grad_hook((a, b), lambda g: log.append(plain(g)), mode="any")
    (Stop.apply(a) + b).sum().backward()
    assert sorted(log, key=str) == [[1.0, 1.0], [None, [1.0, 1.0]]]


@pytest.mark.guarantee("B3")
@pytest.mark.parametrize("custom", [False, True])
@pytest.mark.parametrize("create_graph", [False, True])
def test_undefined_gradients_free_what_was_saved(create_graph, custom):
    x = cygrad.ones(2, requires_grad=True)
    y = doubling(cygrad, [], True).apply(x) if custom else x.exp()
    Stop.apply(y).sum().backward(create_graph=create_graph, retain_graph=True)
    Stop.apply(y).sum().backward(create_graph=create_graph, retain_graph=False)
    with pytest.raises(RuntimeError, match="already been freed"):
        Stop.apply(y).sum().backward()
    with pytest.raises(RuntimeError, match="already been freed"):
        y.sum().backward()


@pytest.mark.guarantee("S6")
@pytest.mark.parametrize("create_graph", [False, True])
def test_undefined_gradients_unpack_what_was_saved(create_graph):
    log = []
    x = cygrad.ones(2, requires_grad=True)
    with saved_tensors_hooks(lambda t: t, lambda t: (log.append("unpack"), t)[1]):
        y = x.exp()
    Stop.apply(y).sum().backward(create_graph=create_graph)
    assert log == ["unpack"] and x.grad is None


@pytest.mark.guarantee("G4")
def test_undefined_gradients_in_a_change_in_place():
    x = cygrad.ones(3, requires_grad=True)
    y = x * 2
    y[0:2].mul_(5)
    log = []
    y.register_hook(lambda g: log.append(g))
    node = get_gradient_edge(x).node
    node.register_prehook(lambda outputs: log.append(outputs))
    Stop.apply(y).sum().backward()
    assert log == [None, (None,)] and x.grad is None


def test_empty_vectors_that_cat_skips_have_an_empty_gradient():
    empty = cygrad.zeros(0, dtype=cygrad.float64, requires_grad=True)
    x = cygrad.tensor([[1.0, 2.0]], dtype=cygrad.float64, requires_grad=True)

    def function(empty, x):
        return cygrad.cat([empty, x, empty, 2 * x]) ** 3

    gradients = grad(function(empty, x).sum(), (empty, x))
    assert [gradient.tolist() for gradient in gradients] == [[], [[27.0, 108.0]]]
    assert cygrad.autograd.gradcheck(function, (empty, x), check_forward_ad=True, check_batched_grad=True)
    assert cygrad.autograd.gradgradcheck(function, (empty, x))
