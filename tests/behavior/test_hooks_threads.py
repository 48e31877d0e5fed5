"""Hooks with concurrent backwards."""

import threading

import pytest

import cygrad
from cygrad.autograd.graph import register_multi_grad_hook
from tests.tools import in_threads

THREADS, CALLS = 4, 50


@pytest.mark.guarantee("H1")
def test_hooks_of_a_leaf_shared_by_threads():
    x = cygrad.ones(3, requires_grad=True)
    seen, accumulated = [], []
    x.register_hook(lambda g: seen.append(threading.get_ident()))
    x.register_hook(lambda g: g * 2)
    x.register_post_accumulate_grad_hook(lambda leaf: accumulated.append(threading.get_ident()))

    def work(number):
        for _ in range(CALLS):
            (x * 3).sum().backward()

    in_threads(THREADS, work)
    assert len(seen) == len(accumulated) == THREADS * CALLS
    assert len(set(seen)) == THREADS and all(seen.count(ident) == CALLS for ident in set(seen))
    assert x.grad.tolist() == [6.0 * THREADS * CALLS] * 3


@pytest.mark.guarantee("H1")
def test_hooks_come_and_go_while_threads_run_backward():
    x = cygrad.ones(3, requires_grad=True)
    y = x * 2
    counts = [[] for _ in range(THREADS)]

    def work(number):
        def hook(*gradients):
            counts[number].append(1)

        for call in range(CALLS):
            handles = [x.register_hook(hook), y.register_hook(hook), y.grad_fn.register_hook(hook),
                       y.grad_fn.register_prehook(hook), x.register_post_accumulate_grad_hook(hook)]
            y.sum().backward(retain_graph=True)
            for handle in handles[call % 2::1]:
                handle.remove()
            handles[0].remove()

    in_threads(THREADS, work)
    assert x.grad.tolist() == [2.0 * THREADS * CALLS] * 3
    assert all(len(count) >= 5 * CALLS for count in counts)          # its own calls at least
    before = [len(count) for count in counts]
    y.sum().backward()
    assert [len(count) for count in counts] == before


@pytest.mark.guarantee("H4")
def test_multi_grad_hooks_of_leaves_shared_by_threads():
    a, b = cygrad.ones(3, requires_grad=True), cygrad.ones(3, requires_grad=True)
    every, some = [], []
    register_multi_grad_hook((a, b), lambda grads: every.append([grad.tolist() for grad in grads]))
    register_multi_grad_hook((a, b), lambda grad: some.append(grad.tolist()), mode="any")

    def work(number):
        for _ in range(CALLS):
            (a * 2 + b * 3).sum().backward()

    in_threads(THREADS, work)
    assert every == [[[2.0] * 3, [3.0] * 3]] * (THREADS * CALLS)
    assert len(some) == THREADS * CALLS
