"""Many threads accumulate into one leaf without losing a gradient."""

import threading

import numpy as np
import pytest

import cygrad
from tests.tools import in_threads

from .conftest import TIMES

pytestmark = pytest.mark.slow

THREADS = 8


def exact(leaf, expected):
    np.testing.assert_array_equal(leaf.grad.numpy(), np.full(leaf.shape, float(expected)))


@pytest.mark.parametrize("size", [1, 500, 60_000])
def test_hooks_on_the_leaf(size):
    turns = 40 * TIMES if size < 1000 else 6 * TIMES
    w = cygrad.zeros(size, dtype=cygrad.float64, requires_grad=True)
    calls = [0] * THREADS, [0] * THREADS
    here = threading.local()

    def note(kind):
        calls[kind][here.number] += 1            # one count per thread

    w.register_hook(lambda grad: note(0) or grad * 2)
    w.register_post_accumulate_grad_hook(lambda leaf: note(1))

    def body(i):
        here.number = i
        for _ in range(turns):
            (w * 1).sum().backward()

    in_threads(THREADS, body)
    assert calls == ([turns] * THREADS, [turns] * THREADS)
    exact(w, 2 * THREADS * turns)


def test_several_times_in_one_backward():
    turns = 30 * TIMES
    w = cygrad.zeros(300, dtype=cygrad.float64, requires_grad=True)

    def body(i):
        for _ in range(turns):
            a, b = w * 1, w + 0
            cygrad.autograd.backward([a.sum(), b.sum(), (a + w).sum()])

    in_threads(THREADS, body)
    exact(w, 4 * THREADS * turns)


def test_recorded_and_plain_together():
    turns = 20 * TIMES
    w = cygrad.ones(50, dtype=cygrad.float64, requires_grad=True)

    def body(i):
        for _ in range(turns):
            (w * 3).sum().backward(create_graph=i % 2 == 0)

    in_threads(THREADS, body)
    np.testing.assert_array_equal(w.grad.detach().numpy(), np.full(50, 3.0 * THREADS * turns))
    w.grad = None


@pytest.mark.parametrize("reset", ["none", "zero_grad", "zero_", "ones"])
def test_grad_is_reset_meanwhile(reset):
    """Gradients may be lost, but every element is a sum of whole gradients, and later backwards are correct."""
    turns = 60 * TIMES
    w = cygrad.zeros(400, dtype=cygrad.float64, requires_grad=True)
    optimizer = cygrad.optim.SGD([w], lr=0.0)

    def body(i):
        for _ in range(turns):
            if i:
                (w * 1).sum().backward()
            elif reset == "none":
                w.grad = None
            elif reset == "zero_grad":
                optimizer.zero_grad()
            elif reset == "zero_":
                optimizer.zero_grad(set_to_none=False)
            else:
                w.grad = cygrad.ones(400, dtype=cygrad.float64)
            found = w.grad
            if found is not None:
                values = found.detach().clone().numpy()
                assert ((values >= 0) & (values <= THREADS * turns + 1) & (values == np.rint(values))).all()

    in_threads(THREADS, body)
    w.grad = None
    in_threads(THREADS, lambda i: [(w * 1).sum().backward() for _ in range(10)])
    exact(w, 10 * THREADS)


def test_hogwild_loses_no_gradient():
    """Weights shared through `.data`, gradients of each thread's own: with exact numbers every step arrives."""
    turns = 50 * TIMES
    shared = cygrad.zeros(200, dtype=cygrad.float64)
    sums = [None] * THREADS

    def body(i):
        own = cygrad.zeros(200, dtype=cygrad.float64, requires_grad=True)
        own.data = shared
        for _ in range(turns):
            (own * float(i + 1)).sum().backward()
        sums[i] = own.grad

    in_threads(THREADS, body)
    for i, found in enumerate(sums):
        np.testing.assert_array_equal(found.numpy(), np.full(200, float(turns * (i + 1))))
