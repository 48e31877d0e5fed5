"""The graph: nodes, edges, several outputs, depth, cycles."""

import gc
import weakref

import pytest

import cygrad
from cygrad.autograd.graph import GradientEdge, Node, get_gradient_edge
from tests.tools import leaf

DEPTH = 1_000_000


def resident():
    """Resident memory of this process in MB."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 / 1e6


def chain_of(root):
    """Names of the nodes from a root along the first edges."""
    names = []
    while root is not None:
        names.append(root.name())
        root = root.next_functions[0][0] if root.next_functions else None
    return names


@pytest.mark.guarantee("G1")
def test_recorded_while_running():
    x = leaf(2.0)
    assert x.grad_fn is None
    assert x.is_leaf
    y = x * 3
    z = y.exp()
    assert chain_of(z.grad_fn) == ["ExpBackward0", "MulBackward0", "AccumulateGrad"]
    assert not y.is_leaf
    assert not z.is_leaf
    # Nothing that requires no gradient is recorded.
    assert (cygrad.ones(2) * 3).grad_fn is None


@pytest.mark.guarantee("G1")
def test_python_control_flow_makes_the_graph():
    w = leaf(1.5)

    def run(n):
        y = w
        for i in range(n):
            y = y * w if i % 2 == 0 else y + w
        return y

    assert chain_of(run(3).grad_fn) == ["MulBackward0", "AddBackward0", "MulBackward0", "AccumulateGrad"]
    for n, expected in [(0, 1.0), (1, 2 * 1.5), (2, 2 * 1.5 + 1), (3, 3 * 1.5**2 + 2 * 1.5)]:
        (gradient,) = cygrad.autograd.grad(run(n), w)
        assert gradient.item() == expected


@pytest.mark.guarantee("G1")
def test_graph_is_rebuilt_each_time():
    w = leaf(1.0)
    first, second = (w * 2).grad_fn, (w * 2).grad_fn
    assert first is not second
    assert first._sequence_nr() < second._sequence_nr()
    # Both end at the one accumulator of the leaf while it lives.
    assert first.next_functions[0][0] is second.next_functions[0][0]


@pytest.mark.guarantee("G2")
def test_node_attributes():
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    y = x * w
    node = y.grad_fn
    assert isinstance(node, Node)
    assert type(node).__name__ == node.name() == "MulBackward0"
    assert "MulBackward0" in repr(node)
    assert isinstance(node.next_functions, tuple)
    assert len(node.next_functions) == 2
    for (target, number), variable in zip(node.next_functions, (x, w), strict=True):
        assert target.name() == "AccumulateGrad"
        assert number == 0
        assert target.variable is variable
        assert target.next_functions == ()
    assert node.metadata == {}
    node.metadata["key"] = [1]
    assert y.grad_fn.metadata == {"key": [1]}
    assert isinstance(node._sequence_nr(), int)


@pytest.mark.guarantee("G2")
def test_identity():
    x = leaf(1.0, 2.0)
    y = x.exp()
    z = y * y
    assert y.grad_fn is y.grad_fn
    assert z.grad_fn.next_functions[0][0] is z.grad_fn.next_functions[1][0] is y.grad_fn
    kept = weakref.ref(z.grad_fn)
    assert kept() is z.grad_fn
    del z
    assert kept() is None


@pytest.mark.guarantee("G2")
def test_edges_where_no_gradient_is_needed():
    x, c = leaf(1.0), cygrad.tensor(2.0, dtype=cygrad.float64)
    assert (c * x).grad_fn.next_functions[0] == (None, 0)
    assert (c * x).grad_fn.next_functions[1][0].variable is x
    # A number is not an input of the graph.
    assert next(node for node, _ in (x * 2).grad_fn.next_functions if node is not None).variable is x


@pytest.mark.guarantee("G2")
def test_nodes_are_not_made_by_hand():
    node_class = type(leaf(1.0).exp().grad_fn)
    for make in (Node, node_class, lambda: Node.__new__(Node), lambda: node_class.__new__(node_class)):
        with pytest.raises(TypeError, match="nodes are created by operations"):
            make()
    with pytest.raises(TypeError, match="not an acceptable base type"):
        type("Mine", (Node,), {})


@pytest.mark.guarantee("G3")
def test_gradient_edges():
    x = leaf(1.0, 2.0)
    y = x * 3
    edge = get_gradient_edge(y)
    assert isinstance(edge, GradientEdge)
    assert edge.node is y.grad_fn
    assert edge.output_nr == 0
    node, number, _token = edge
    assert (node, number) == (y.grad_fn, 0) == (edge[0], edge[1])
    assert edge == get_gradient_edge(y)
    assert hash(edge) == hash(get_gradient_edge(y))
    assert edge != get_gradient_edge(x)
    assert get_gradient_edge(x).node.variable is x


@pytest.mark.guarantee("G3")
def test_backward_and_grad_accept_edges():
    x = leaf(1.0, 2.0)
    y = x * 3
    z = (y * y).sum()
    (gradient,) = cygrad.autograd.grad(z, get_gradient_edge(y), retain_graph=True)
    assert gradient.tolist() == [6.0, 12.0]
    gradients = cygrad.autograd.grad(get_gradient_edge(y), [get_gradient_edge(x), y], gradient, retain_graph=True)
    assert [g.tolist() for g in gradients] == [[18.0, 36.0], [6.0, 12.0]]
    seed = cygrad.ones(2, dtype=cygrad.float64)
    cygrad.autograd.backward(get_gradient_edge(y), seed, inputs=get_gradient_edge(x), retain_graph=True)
    assert x.grad.tolist() == [3.0, 3.0]
    cygrad.autograd.backward([get_gradient_edge(y)], [seed])
    assert x.grad.tolist() == [6.0, 6.0]


@pytest.mark.guarantee("G3")
def test_edge_keeps_the_graph_alive_without_the_tensor():
    x = leaf(2.0)
    y = x * x
    edge, dead = get_gradient_edge(y), weakref.ref(y)
    del y
    assert dead() is None
    assert cygrad.autograd.grad(edge, x, cygrad.tensor(1.0, dtype=cygrad.float64))[0].item() == 4.0


@pytest.mark.guarantee("G3")
def test_errors():
    x = leaf(1.0)
    y = x * 2
    with pytest.raises(RuntimeError, match="does not require gradients"):
        get_gradient_edge(cygrad.ones(2))
    with pytest.raises(TypeError, match="expected a Tensor"):
        get_gradient_edge(5)
    with pytest.raises(RuntimeError, match="GradientEdge of a node"):
        cygrad.autograd.backward(GradientEdge(y.grad_fn, 0))
    for bad in (1, -1):
        with pytest.raises(ValueError, match="has no output of this index"):
            GradientEdge(y.grad_fn, bad)
    for arguments in ((), (None, 0), (5, 0)):
        with pytest.raises(TypeError):
            GradientEdge(*arguments)
    with pytest.raises(TypeError):
        GradientEdge.__new__(GradientEdge)


@pytest.mark.guarantee("G4")
def test_several_outputs_share_one_node():
    x = leaf([1.0, 2.0, 3.0, 4.0])
    a, b = x.split(2)
    assert a.grad_fn is b.grad_fn
    assert (a.output_nr, b.output_nr) == (0, 1)
    assert get_gradient_edge(b) == GradientEdge(a.grad_fn, 1)
    y = a + b
    assert [number for _, number in y.grad_fn.next_functions] == [0, 1]


@pytest.mark.guarantee("G4")
def test_undefined_output_gradients():
    x = leaf([1.0, 2.0, 3.0, 4.0])
    a, b, c, d = x.unbind(0)
    seen = []
    a.grad_fn.register_prehook(lambda grads: seen.append([None if g is None else g.item() for g in grads]))
    (b * 5 + d).backward()
    assert seen == [[None, 5.0, None, 1.0]]
    assert x.grad.tolist() == [0.0, 5.0, 0.0, 1.0]
    assert a.requires_grad
    assert c.requires_grad


@pytest.mark.guarantee("G4")
@pytest.mark.parametrize(("call", "count"), [
    (lambda x: x.max(0), 1), (lambda x: x.sort(0), 1), (lambda x: x.topk(1, 0), 1), (lambda x: x.kthvalue(1, 0), 1),
    (lambda x: x.cummax(0), 1), (cygrad.linalg.svd, 3), (cygrad.linalg.eigh, 2), (cygrad.linalg.inv_ex, 1),
    (cygrad.linalg.slogdet, 2),
    (lambda x: cygrad.linalg.lstsq(cygrad.cat([x, x]), cygrad.cat([x, x]), driver="gels"), 2),
    (lambda x: cygrad.triangular_solve(x, x), 2)])
def test_nodes_take_the_gradients_of_those_that_have_one(call, count):
    """Not of indices, nor of what only the formulas read."""
    x = leaf([[3.0, 1.0], [1.0, 2.0]])
    results = [result for result in call(x) if result.requires_grad]
    assert len({id(result.grad_fn) for result in results}) == 1
    seen = []
    results[0].grad_fn.register_prehook(lambda grads: seen.append(len(grads)) or tuple(grads))
    results[0].grad_fn.register_hook(lambda inputs, grads: seen.append(len(grads)))
    sum(result.sum() for result in results).backward()
    assert seen == [count, count]
    with pytest.raises(TypeError, match=r"arguments, got .* instead"):
        results[0].grad_fn(*[result.detach() for result in results], None)


@pytest.mark.guarantee("G4")
def test_some_outputs_without_gradient():
    x = leaf([3.0, 1.0, 2.0])
    result = x.sort()
    assert result.values.grad_fn is not None
    assert result.indices.grad_fn is None
    assert not result.indices.requires_grad
    result.values[0].backward()
    assert x.grad.tolist() == [0.0, 1.0, 0.0]


def sines(x):
    """A chain of a million nodes."""
    for _ in range(DEPTH):
        x = x.sin()
    return x


@pytest.mark.guarantee("G5")
@pytest.mark.resident
def test_memory_of_a_million_nodes():
    before = resident()
    y = sines(leaf(1.0))
    assert y.requires_grad
    assert resident() - before < 1000      # less than 1 KB per node and its result


@pytest.mark.guarantee("G5")
def test_a_million_nodes():
    x = leaf(1.0)
    y = sines(x)
    node, count = y.grad_fn, 0
    while node.next_functions:
        node, count = node.next_functions[0][0], count + 1
    assert count == DEPTH
    assert node.variable is x
    del node
    gc.collect()
    y.backward(retain_graph=True)
    first = x.grad.item()
    assert 0 < first < 1
    assert cygrad.autograd.grad(y, x, retain_graph=True)[0].item() == first
    x.grad = None
    y.backward()
    # Backward releases saved values node by node; the nodes remain.
    assert x.grad.item() == first
    dead = weakref.ref(y.grad_fn)
    del y
    assert dead() is None


@pytest.mark.guarantee("G5")
def test_a_million_nodes_destroyed_by_the_collector():
    x = leaf(1.0)
    y = x
    for _ in range(DEPTH):
        y = y * x
    y.register_hook(lambda grad, y=y: None)        # a cycle through the hook
    dead = weakref.ref(y.grad_fn)
    del y
    assert dead() is not None
    gc.collect()
    assert dead() is None


@pytest.mark.guarantee("G5")
def test_deep_second_order():
    depth = 100_000
    x = leaf(0.5)
    y = x
    for _ in range(depth):
        y = y * 1.0 + 0.0
    y = y * y
    (first,) = cygrad.autograd.grad(y, x, create_graph=True)
    assert first.item() == 1.0
    (second,) = cygrad.autograd.grad(first, x)
    assert second.item() == 2.0


@pytest.mark.guarantee("G5")
def test_deep_in_place_and_views():
    x = cygrad.ones(3, dtype=cygrad.float64, requires_grad=True)
    y = x * 1
    for _ in range(50_000):
        y[0].mul_(1.0)
        y.add_(0.0)
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0, 1.0]


@pytest.mark.guarantee("G5")
def test_wide_graph():
    x = cygrad.ones(2, dtype=cygrad.float64, requires_grad=True)
    total = cygrad.stack([x * i for i in range(20_000)]).sum()
    assert len(total.grad_fn.next_functions[0][0].next_functions) == 20_000
    total.backward()
    assert x.grad.tolist() == [sum(range(20_000))] * 2


def collected(make):
    """Return whether what `make` returns a weak reference to outlives it, and whether gc.collect() then gets it."""
    gc.collect()
    gc.disable()
    try:
        reference = make()
        outlived = reference() is not None
        gc.collect()
        return outlived, reference() is None
    finally:
        gc.enable()


@pytest.mark.guarantee("G6")
def test_cycle_through_a_hooks_closure():
    def tensor_hook():
        y = leaf(1.0) * 2
        y.register_hook(lambda grad: y)
        return weakref.ref(y)

    def leaf_hook():
        x = leaf(1.0)
        y = x * 2
        x.register_hook(lambda grad: y)
        return weakref.ref(y)

    def accumulated_hook():
        x = leaf(1.0)
        x.register_post_accumulate_grad_hook(lambda tensor: x)
        return weakref.ref(x)

    def node_hook():
        y = leaf(1.0).exp()
        node = y.grad_fn
        node.register_hook(lambda *grads: node)
        node.register_prehook(lambda *grads: y)
        return weakref.ref(node)

    for make in (tensor_hook, leaf_hook, accumulated_hook, node_hook):
        assert collected(make) == (True, True), make.__name__


@pytest.mark.guarantee("G6")
def test_cycle_through_metadata_and_attributes():
    def metadata():
        y = leaf(1.0).exp()
        y.grad_fn.metadata["me"] = y
        return weakref.ref(y)

    def attribute():
        x = leaf(1.0)
        x.result = x.exp()
        return weakref.ref(x)

    assert collected(metadata) == (True, True)
    assert collected(attribute) == (True, True)


@pytest.mark.guarantee("G6")
def test_cycle_through_grad():
    def make():
        x = leaf(2.0)
        (x ** 3).backward(create_graph=True)
        assert x.grad.grad_fn is not None
        return weakref.ref(x)

    assert collected(make) == (True, True)


@pytest.mark.guarantee("G6")
def test_no_cycle_without_need():
    def plain():
        x = leaf(2.0)
        y = (x.exp() * x).sum()
        y.backward(retain_graph=True)
        return weakref.ref(y)

    def saved_result():
        y = leaf(2.0).exp()
        assert y.grad_fn._saved_result is not y
        return weakref.ref(y.grad_fn)

    def retained():
        y = leaf(2.0).exp()
        y.retain_grad()
        (y * 2).backward()
        return weakref.ref(y)

    def in_place():
        y = leaf([1.0, 2.0]) * 1
        v = y[0]
        v.mul_(2)
        y.sum().backward()
        return weakref.ref(y)

    for make in (plain, saved_result, retained, in_place):
        assert collected(make) == (False, True), make.__name__


@pytest.mark.guarantee("G6")
def test_callbacks_of_weak_references_see_no_dying_tensor():
    x = leaf(1.0, 2.0)
    w = x * 1
    node = (w * w).grad_fn
    seen = []
    reference = weakref.ref(w, lambda _: seen.append(node._saved_self))
    del w
    assert reference() is None
    assert seen[0].tolist() == [1.0, 2.0]
    assert seen[0].grad_fn is node.next_functions[0][0]
    node = None
    assert seen[0].tolist() == [1.0, 2.0]
