"""Random graphs with threads, hooks, retained graphs and errors: all results are exact."""

import threading
from contextlib import suppress

import numpy as np
import pytest

import cygrad
from tests.tools import in_threads

from .conftest import TIMES
from .random_graph import RandomGraph

pytestmark = pytest.mark.slow

SIZES = [(5,), (700,), (30_000,), (120, 400)]


def check(found, expected):
    for f, e in zip(found, expected, strict=True):
        np.testing.assert_array_equal(f, e)


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_own_graphs(size):
    def body(i):
        for turn in range(4 * TIMES):
            graph = RandomGraph(1000 * turn + i, size)
            if i % 2:
                graph.hook(4)
            with cygrad.threads(1 + (i + turn) % 4):
                expected = graph.expected()
                check(graph.found(retain_graph=True), expected)
                check(graph.found(), expected)

    in_threads(6, body)


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_shared_graph(size):
    for turn in range(2 * TIMES):
        graph = RandomGraph(turn, size)
        graph.hook(3)
        expected = graph.expected()
        in_threads(6, lambda i, graph=graph, expected=expected: [
            check(graph.found(retain_graph=True), expected) for _ in range(4)])


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_shared_graph_into_leaves(size):
    for turn in range(2 * TIMES):
        graph = RandomGraph(turn, size)
        in_threads(6, lambda i, graph=graph: [graph.total.backward(retain_graph=True) for _ in range(3)])
        for leaf, expected in zip(graph.leaves, graph.expected(), strict=True):
            if leaf.grad is not None:
                np.testing.assert_array_equal(leaf.grad.numpy(), 18 * expected)


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_shared_graph_that_is_freed(size):
    """One call succeeds with the right result, the others raise an error."""
    for turn in range(4 * TIMES):
        graph = RandomGraph(turn, size)
        sign = np.sign(graph.total.item())
        graph.total = graph.total.abs()          # keeps its argument, which only one call can take
        expected = [sign * e for e in graph.expected()]
        through = []

        def body(i, graph=graph, through=through, expected=expected):
            try:
                found = graph.found()
            except RuntimeError as error:
                assert "freed" in str(error)          # noqa: PT017
            else:
                check(found, expected)
                through.append(i)

        in_threads(5, body)
        assert len(through) == 1


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_errors(size):
    """A hook that raises ends the call and nothing else."""
    def body(i):
        for turn in range(4 * TIMES):
            graph = RandomGraph(500 + 10 * turn + i, size)
            place = graph.tensors[-1 - turn % 6]

            def hook(grad):
                raise KeyError("on purpose")

            handle = place.register_hook(hook)
            with suppress(KeyError):          # not raised where the root does not depend on that tensor
                graph.found(retain_graph=True)
            handle.remove()
            check(graph.found(), graph.expected())

    in_threads(5, body)


def test_errors_in_one_of_several_threads():
    """One thread's hooks raise while others go through the same graph."""
    for turn in range(4 * TIMES):
        graph = RandomGraph(turn, (20_000,))
        expected = graph.expected()
        middle = graph.tensors[len(graph.tensors) // 2]

        def body(i, graph=graph, middle=middle, expected=expected):
            for _ in range(5):
                if i:
                    check(graph.found(retain_graph=True), expected)
                else:
                    # Raises in this thread alone, as hooks run where backward was called.
                    handle = middle.register_hook(RaisesHere())
                    with suppress(KeyError):
                        graph.found(retain_graph=True)
                    handle.remove()

        in_threads(4, body)


class RaisesHere:
    """A hook that raises in the thread that made it."""

    def __init__(self):
        self.home = threading.get_ident()

    def __call__(self, grad):
        if threading.get_ident() == self.home:
            raise KeyError("on purpose")


def test_hooks_come_and_go():
    graph = RandomGraph(7, (6000,))
    expected = graph.expected()

    def body(i):
        for _ in range(20 * TIMES):
            if i < 2:
                handles = [t.register_hook(lambda grad: None) for t in graph.tensors[i::3]]
                for handle in handles:
                    handle.remove()
            else:
                check(graph.found(retain_graph=True), expected)

    in_threads(5, body)
