"""Nodes: destruction, hooks, saved tensors, sequence numbers."""

import gc
import pickle
import weakref

import pytest

import cygrad
from cygrad._core.graph.node import Node, RemovableHandle

FLOAT = cygrad.float64


def leaf(*values):
    return cygrad.tensor(values, dtype=FLOAT, requires_grad=True)


def test_chains_are_destroyed_without_recursion():
    for make in (lambda y: y.sin(), lambda y: y + y, lambda y: cygrad.stack([y, y])[0], lambda y: y.view(1)):
        y = leaf(1.0)
        for _ in range(30_000):
            y = make(y)
        first = weakref.ref(y.grad_fn)
        del y
        assert first() is None


def test_trees_are_destroyed_whole():
    x = leaf(1.0)
    layers = [[x.sin() for _ in range(50)]]
    for _ in range(20):
        layers.append([layers[-1][i] * layers[-1][-i] for i in range(50)])
    nodes = [weakref.ref(y.grad_fn) for layer in layers for y in layer]
    del layers
    gc.collect()
    assert all(node() is None for node in nodes)


def test_node_kept_while_its_graph_goes():
    x = leaf(2.0)
    y = x * x
    node = y.grad_fn
    del y
    target = node.next_functions[0][0]
    del node
    assert target.variable is x
    assert cygrad.autograd.grad(x * 3, x)[0].item() == 3.0


def test_nodes_destroyed_during_backward():
    x = leaf(2.0)
    box = [x * x]
    box[0] = box[0].sin()
    box[0].register_hook(lambda grad: box.clear())
    root = box[0].sum()
    root.backward()
    assert box == []
    assert x.grad is not None


def test_collector_during_backward():
    x = leaf(2.0)
    y = x
    for _ in range(20):
        y = y.sin()
        y.register_hook(lambda grad, y=y: (gc.collect(), None)[1])
    y.backward()
    assert x.grad is not None


def test_sequence_numbers_grow_with_edges():
    x = leaf(1.0, 2.0)
    y = x * 1
    v = y[0]
    y.mul_(2)
    z = v * v                                    # makes the new history of v while it is recorded
    stack = [z.grad_fn]
    while stack:
        node = stack.pop()
        for child, _ in node.next_functions:
            if child is not None and child.name() != "AccumulateGrad":
                assert child._sequence_nr() < node._sequence_nr()
                stack.append(child)


def test_removable_handles():
    hooks = {}
    first, second = RemovableHandle(hooks, print), RemovableHandle(hooks, len)
    assert first.id != second.id
    assert len(hooks) == 2
    first.remove()
    first.remove()
    assert list(hooks.values()) == [len]
    with second:
        pass
    assert hooks == {}


def test_nodes_are_not_pickled():
    node = (leaf(1.0) * 2).grad_fn
    with pytest.raises(TypeError):
        pickle.dumps(node)


def test_named_types():
    x = leaf(1.0, 2.0)
    assert type(x.exp().grad_fn) is type((x * 2).exp().grad_fn)
    assert issubclass(type(x.exp().grad_fn), Node)
    assert type(x.exp().grad_fn) is not type(x.sin().grad_fn)
    assert type(x.exp().grad_fn).__module__ == "cygrad.autograd.graph"


def test_released_nodes_still_show_their_edges():
    x = leaf(1.0, 2.0)
    y = x.exp()
    y.sum().backward()
    assert y.grad_fn.next_functions[0][0].variable is x
    assert y.grad_fn.metadata == {}
