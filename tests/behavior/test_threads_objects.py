"""Concurrent first use, modification and release of shared objects."""

import gc
import threading
import weakref

import pytest

import cygrad
from cygrad.autograd import forward_ad
from tests.tools import in_threads

THREADS = 4


def test_first_hooks_of_a_node():
    """Hooks that several threads register first are all called, and each can be removed by itself."""
    for _ in range(100):
        x = cygrad.ones(2, requires_grad=True)
        y = x * 2
        called = []

        def register(number, node=y.grad_fn, tensor=y, called=called):
            return [node.register_hook(lambda inputs, outputs: called.append(number)),
                    tensor.register_hook(lambda grad: called.append(THREADS + number))]

        handles = [handle for pair in in_threads(THREADS, register) for handle in pair]
        assert len({handle.id for handle in handles}) == 2 * THREADS
        y.sum().backward(retain_graph=True)
        assert sorted(called) == list(range(2 * THREADS))
        for handle in handles:
            handle.remove()
        y.sum().backward()
        assert len(called) == 2 * THREADS


def test_first_hooks_of_a_leaf():
    for _ in range(100):
        x = cygrad.ones(2, requires_grad=True)
        called = []

        def register(number, leaf=x, called=called):
            leaf.register_hook(lambda grad: called.append(number))
            leaf.register_post_accumulate_grad_hook(lambda leaf: called.append(THREADS + number))
            (leaf * 1).sum()

        in_threads(THREADS, register)
        (x * 2).sum().backward()
        assert sorted(called) == list(range(2 * THREADS))


def test_first_use_of_a_leaf():
    """A leaf has one slot and one AccumulateGrad, for any order of concurrent threads."""
    for _ in range(100):
        x = cygrad.ones(3, requires_grad=True)
        results = in_threads(THREADS, lambda number, x=x: x * float(number))
        ends = {id(result.grad_fn.next_functions[0][0]) for result in results}
        assert len(ends) == 1
        cygrad.stack(results).sum().backward()
        assert x.grad.tolist() == [6.0, 6.0, 6.0]


def test_end_and_return_of_an_accumulator():
    """The AccumulateGrad dies with each graph, while other threads ask for it."""
    rounds = 300
    x = cygrad.zeros(2, requires_grad=True)

    def work(number):
        for _ in range(rounds):
            (x * 1).sum().backward()

    in_threads(THREADS, work)
    assert x.grad.tolist() == [rounds * THREADS] * 2


def test_end_of_a_saved_tensor():
    """Saved values are read while the saved Tensor is freed in another thread."""
    for _ in range(100):
        leaf = cygrad.ones(2, requires_grad=True)
        held = [leaf * 3]
        y = held[0] * held[0]

        def work(number, held=held, node=y.grad_fn):
            if number == 0:
                held.clear()
                return [3.0, 3.0]
            return node._saved_self.tolist()

        assert in_threads(THREADS, work) == [[3.0, 3.0]] * THREADS
        del held
        y.sum().backward()
        assert leaf.grad.tolist() == [18.0, 18.0]


@pytest.mark.slow
def test_grad_is_one_object():
    for _ in range(100):
        x = cygrad.ones(2, requires_grad=True)
        (x * 5).sum().backward()
        seen = in_threads(THREADS, lambda number, x=x: x.grad)
        assert len({id(grad) for grad in seen}) == 1
        reference = weakref.ref(seen[0])
        del seen
        x.grad = None
        gc.collect()
        assert reference() is None


def test_changes_in_place_of_one_tensor():
    """Small operations in place follow each other: none is lost from values, version or history."""
    rounds = 50
    x = cygrad.ones(3, requires_grad=True)
    y = x * 1
    view = y[1:]

    def work(number):
        for _ in range(rounds):
            (y if number % 2 else view).add_(1.0)

    before = y._version
    in_threads(THREADS, work)
    half = rounds * THREADS // 2
    assert y.tolist() == [1.0 + half] + [1.0 + 2 * half] * 2
    assert y._version == before + 2 * half
    node, length = y.grad_fn, 0
    while node is not None and node.name() != "MulBackward0":
        node, length = node.next_functions[0][0], length + 1
    assert length == 2 * half
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0, 1.0]


def test_another_memory_while_others_compute():
    """`.data =` in one thread: the others compute with the old memory or the new one."""
    x = cygrad.ones(4)
    sources = [cygrad.full((4,), float(value)) for value in (1, 2)]

    def work(number):
        for place in range(300):
            if number == 0:
                x.data = sources[place % 2]
            else:
                assert (x + 0.0).tolist() in ([1.0] * 4, [2.0] * 4)

    in_threads(THREADS, work)


def test_levels_of_forward_mode():
    """No two threads are in one level."""
    def work(number):
        for _ in range(100):
            with forward_ad.dual_level():
                x = forward_ad.make_dual(cygrad.tensor(2.0), cygrad.tensor(float(number)))
                assert forward_ad.unpack_dual(x * x).tangent.item() == 4.0 * number

    in_threads(THREADS, work)


@pytest.mark.guarantee("T8")
def test_functions_and_hooks_need_no_locks():
    """Each thread runs custom functions and hooks that all write to the same Python objects."""
    class Twice(cygrad.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            calls.append("forward")
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            calls.append("backward")
            assert ctx.saved_tensors[0] is not None
            return grad * 2
    calls, threads, rounds = [], 4, 100
    shared = cygrad.ones(3, requires_grad=True)

    def work():
        for _ in range(rounds):
            y = Twice.apply(shared)
            y.register_hook(lambda grad: calls.append("hook"))
            y.sum().backward()
    workers = [threading.Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert {name: calls.count(name) for name in set(calls)} == dict.fromkeys(["forward", "backward", "hook"],
                                                                            threads * rounds)
    assert shared.grad.tolist() == [2.0 * threads * rounds] * 3


@pytest.mark.guarantee("T8")
def test_modules_declare_that_they_do_not_need_the_gil():
    configuration = pytest.importorskip("build_tools.configuration", reason="build_tools is only in the source tree")
    assert configuration.DIRECTIVES["freethreading_compatible"] is True
