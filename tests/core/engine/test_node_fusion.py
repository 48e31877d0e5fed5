"""Fused nodes are bit-identical to node by node, for any graph and in a team."""

import contextlib
import threading

import numpy as np
import pytest

import cygrad
from cygrad._core.engine.node_fusion import count_fusions, set_fuse_from

NEVER = 1 << 62


@contextlib.contextmanager
def fused_from(elements):
    """Fuse nodes of at least this number of elements."""
    former = set_fuse_from(elements)
    try:
        yield
    finally:
        set_fuse_from(former)


def gradients(build, leaves, elements, **options):
    """Return the bytes of the leaves' gradients, with fusion from this number of elements on."""
    with fused_from(elements):
        for leaf in leaves:
            leaf.grad = None
        build(*leaves).backward(**options)
        return [None if leaf.grad is None else leaf.grad.numpy().tobytes() for leaf in leaves]


def leaf(shape, seed, dtype="float32"):
    values = np.random.default_rng(seed).standard_normal(shape).astype(dtype)
    return cygrad.from_numpy(values).requires_grad_()


def assert_same_bits(build, *leaves):
    before = count_fusions()
    fused = gradients(build, leaves, 1)
    assert count_fusions() > before, "nothing was fused"
    assert fused == gradients(build, leaves, NEVER)


def chain(a, b):
    return ((a * b).tanh() + a).exp().sum()


def long_chain(a, b):
    result = a
    for _ in range(20):
        result = (result * b).sigmoid() + a / (1 + b * b)
    return result.sum()


def shared(a, b):
    c = a * b
    d = c.sin()
    e = c.cos() * d + c
    return (d * e - d / (1 + e * e)).sum() + (c * 2).sum()


def with_numbers(a, b):
    return ((2.5 - a) * 3 / (b * b + 1) + (-a).relu() ** 2).sum()


def broadcast(a, b):
    return ((a * b[0] + a[:, :1]) * (b - a.mean()) * a).sum()


def handed_on(a, b):
    return (((a + b) + (a - b)) + (a + (b + (a + b)))).sum()


def used_twice(a, b):
    c = a * a
    return (c * c + c * b * b * c).sum()


GRAPHS = [chain, long_chain, shared, with_numbers, broadcast, handed_on, used_twice]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(1, 3), (7, 511), (64, 1025), (3, 40000)])
@pytest.mark.parametrize("graph", GRAPHS)
def test_every_bit_is_that_of_the_run_node_by_node(graph, shape, dtype, threads):
    assert_same_bits(graph, leaf(shape, 1, dtype), leaf(shape, 2, dtype))


@pytest.mark.parametrize("graph", GRAPHS)
def test_the_graph_can_be_kept_and_run_again(graph):
    a, b = leaf((30, 700), 3), leaf((30, 700), 4)
    loss = graph(a, b)
    found = []
    for elements in (1, NEVER, 1):
        with fused_from(elements):
            found.append([g.numpy().tobytes() for g in cygrad.autograd.grad(loss, (a, b), retain_graph=True)])
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("seed", range(60))
def test_random_graphs(seed, threads):
    random = np.random.default_rng(seed)
    shape = (int(random.integers(1, 6)), int(random.integers(500, 9000)))
    other = (1, shape[1])
    unary = ["sin", "tanh", "exp", "sigmoid", "relu", "neg", "abs", "square"]

    def build(a, b, c):
        generator = np.random.default_rng(1000 + seed)
        values = [a, b, c, a.to(cygrad.float64) if seed % 3 == 0 else a]
        for _ in range(int(generator.integers(5, 40))):
            x, y = (values[i] for i in generator.integers(0, len(values), 2))
            kind = generator.integers(0, 8)
            if kind == 0:
                made = getattr(x, unary[generator.integers(0, len(unary))])()
            elif kind == 1:
                made = (x * 0.5).tanh()
            elif kind == 2:
                made = cygrad.where(x > 0, x, y)
            elif kind == 3:
                made = cygrad.maximum(x, y)
            elif kind == 4:
                made = x.sum(-1, keepdim=True) * 1e-3 + y
            else:
                made = (x + y, x - y, x * y)[kind - 5]
            values.append(made.clamp(-3, 3) if generator.integers(0, 3) == 0 else made)
        return sum(value.mean() for value in values[-4:])

    leaves = leaf(shape, seed), leaf(shape, seed + 1), leaf(other, seed + 2)
    assert gradients(build, leaves, 1) == gradients(build, leaves, NEVER)


def test_gradients_that_are_there_already_are_added_to():
    a, b = leaf((8, 3000), 5), leaf((8, 3000), 6)
    with fused_from(1):
        chain(a, b).backward()
        once = a.grad.clone()
        chain(a, b).backward()
    assert a.grad.equal(once + once)


def test_hooks_end_a_fusion_and_see_what_they_would():
    a, b = leaf((8, 3000), 7), leaf((8, 3000), 8)
    seen = []

    def build(a, b):
        c = (a * b).tanh()
        d = c * a
        d.register_hook(lambda grad: seen.append(grad.numpy().tobytes()))
        c.retain_grad()
        kept.append(c)
        return (d + c).exp().sum()

    kept = []
    assert gradients(build, (a, b), 1) == gradients(build, (a, b), NEVER)
    assert seen[0] == seen[1]
    assert kept[0].grad.equal(kept[1].grad)


def test_only_what_is_asked_for_is_computed():
    a, b = leaf((8, 3000), 9), leaf((8, 3000), 10)
    c = a * b
    with fused_from(1):
        found = cygrad.autograd.grad((c.tanh() + a).exp().sum(), (c, b))
    c = a * b
    expected = cygrad.autograd.grad((c.tanh() + a).exp().sum(), (c, b))
    assert found[0].equal(expected[0]) and found[1].equal(expected[1])


def test_a_saved_tensor_changed_in_place_is_an_error_of_its_node():
    a, b = leaf((8, 3000), 11), leaf((8, 3000), 12)
    c = (a * b).tanh()
    loss = ((c * b).exp() + c).sum()
    with cygrad.no_grad():
        c.add_(1)
    with fused_from(1), pytest.raises(RuntimeError, match=r"inplace operation"):
        loss.backward()


def test_a_second_backward_is_refused():
    a, b = leaf((8, 3000), 13), leaf((8, 3000), 14)
    loss = chain(a, b)
    with fused_from(1):
        loss.backward()
        with pytest.raises(RuntimeError, match="already been freed"):
            loss.backward()


def test_two_threads_through_one_graph():
    a, b = leaf((8, 3000), 15), leaf((8, 3000), 16)
    loss = long_chain(a, b)
    with fused_from(1):
        expected = [g.numpy().tobytes() for g in cygrad.autograd.grad(loss, (a, b), retain_graph=True)]
        found = []

        def work():
            for _ in range(20):
                found.append([g.numpy().tobytes() for g in cygrad.autograd.grad(loss, (a, b), retain_graph=True)])

        workers = [threading.Thread(target=work) for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    assert len(found) == 80 and all(one == expected for one in found)


def test_nothing_of_a_fusion_stays():
    a, b = leaf((8, 3000), 17), leaf((8, 3000), 18)
    for graph in GRAPHS:
        gradients(graph, (a, b), 1)
    a.grad = b.grad = None
    before = cygrad._core.memory.storage.memory_stats()
    for graph in GRAPHS:
        gradients(graph, (a, b), 1)
    a.grad = b.grad = None
    after = cygrad._core.memory.storage.memory_stats()
    assert {name: number for name, number in after.items() if "in_use" in name} == {
        name: number for name, number in before.items() if "in_use" in name}
