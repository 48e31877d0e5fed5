"""Nested backward, and exceptions of Python code in it."""

import threading
import traceback

import pytest

import cygrad
from cygrad.autograd import grad
from tests.tools import FLOAT, leaf


def ones(*shape, dtype=FLOAT):
    return cygrad.ones(shape, dtype=dtype)


# ----------------------------------------------------------------------------------------------------------------- B6

def nested(depth, create_graph=False):
    """Backward inside a hook inside backward ..., `depth` deep; the leaves, the innermost last."""
    leaves = [leaf(float(i)) for i in range(depth)]
    finished = []

    def run(level):
        y = leaves[level] * 2
        if level + 1 < depth:
            def hook(grad):
                with cygrad.enable_grad():
                    run(level + 1)
            y.register_hook(hook)
        y.backward(create_graph=create_graph)
        finished.append(level)

    run(0)
    return leaves, finished


@pytest.mark.guarantee("B6")
def test_backward_inside_a_hook():
    leaves, finished = nested(3)
    assert [x.grad.item() for x in leaves] == [2.0] * 3
    assert finished == [2, 1, 0]


@pytest.mark.guarantee("B6")
@pytest.mark.parametrize("create_graph", [False, True])
def test_nested_300_deep(create_graph):
    leaves, finished = nested(300, create_graph)
    assert [x.grad.item() for x in leaves] == [2.0] * 300
    assert finished == list(range(299, -1, -1))
    for x in leaves:
        x.grad = None


@pytest.mark.guarantee("B6")
def test_errors_come_up_from_the_depth():
    depth = 200
    x = leaf(1.0)
    leaves = [leaf(float(i)) for i in range(depth)]

    def run(level):
        y = leaves[level] * 2
        def hook(grad):
            if level + 1 == depth:
                raise KeyError("at the bottom")
            with cygrad.enable_grad():
                run(level + 1)
        y.register_hook(hook)
        y.backward()

    with pytest.raises(KeyError, match="at the bottom"):
        run(0)
    assert all(x.grad is None for x in leaves)
    (x * 2).backward()
    assert x.grad.item() == 2.0
    assert cygrad.is_grad_enabled()


@pytest.mark.guarantee("B6")
def test_on_the_same_graph():
    x = leaf(3.0)
    y = x * x
    z = y * 2
    inner = []
    def hook(gradient):
        if not inner:
            inner.append(None)
            inner.append(grad(z, x, retain_graph=True)[0].item())
    y.register_hook(hook)
    z.backward()
    assert inner == [None, 12.0]
    assert x.grad.item() == 12.0


@pytest.mark.guarantee("B6")
def test_modes_of_the_thread_are_kept_in_the_depth():
    seen = []

    def run(level):
        y = leaf(1.0) * 2
        def hook(grad):
            seen.append(cygrad.is_grad_enabled())
            with cygrad.enable_grad():
                if level < 130:
                    run(level + 1)
        y.register_hook(hook)
        y.backward()

    run(0)
    assert seen == [False] * 131
    assert cygrad.is_grad_enabled()


# ----------------------------------------------------------------------------------------------------------------- B7

class Odd(Exception):
    pass


def raising(*arguments):
    raise Odd("from a hook")


@pytest.mark.guarantee("B7")
@pytest.mark.parametrize("register", [
    lambda y, x: y.register_hook(raising),
    lambda y, x: x.register_hook(raising),
    lambda y, x: y.grad_fn.register_hook(raising),
    lambda y, x: y.grad_fn.register_prehook(raising),
    lambda y, x: x.register_post_accumulate_grad_hook(raising),
])
@pytest.mark.parametrize("create_graph", [False, True])
def test_errors_of_hooks_arrive_as_they_are(register, create_graph):
    x = leaf(2.0)
    y = x * x
    handle = register(y, x)
    with pytest.raises(Odd, match="from a hook") as caught:
        y.backward(create_graph=create_graph, retain_graph=True)
    assert "raising" in "".join(traceback.format_tb(caught.value.__traceback__))
    assert cygrad.is_grad_enabled()
    handle.remove()
    x.grad = None
    y.backward()                                 # engine and graph are usable
    assert x.grad.item() == 4.0


@pytest.mark.guarantee("B7")
def test_keyboard_interrupt_and_exit():
    for kind in (KeyboardInterrupt, SystemExit, MemoryError, StopIteration, GeneratorExit):
        x = leaf(2.0)
        def stop(grad, kind=kind):
            raise kind()
        x.register_hook(stop)
        with pytest.raises(kind):
            (x * x).backward()
        assert x.grad is None


@pytest.mark.guarantee("B7")
def test_wrong_results_of_hooks():
    x = leaf(2.0, 3.0)
    def run(register):
        y = x * x
        handle = register(y)
        try:
            y.sum().backward()
        finally:
            handle.remove()
    with pytest.raises(TypeError, match=r"register_hook: a hook of MulBackward0 must return a Tensor.*got int"):
        run(lambda y: y.register_hook(lambda grad: 5))
    with pytest.raises(RuntimeError, match=r"changed the shape or dtype of a gradient.*\(3,\).*\(2,\)"):
        run(lambda y: y.register_hook(lambda grad: ones(3)))
    with pytest.raises(RuntimeError, match=r"changed the shape or dtype of a gradient.*float32.*float64"):
        run(lambda y: y.register_hook(lambda grad: grad.float()))
    with pytest.raises(RuntimeError, match=r"register_prehook.*incorrect number of values.*got 2, but expected 1"):
        run(lambda y: y.grad_fn.register_prehook(lambda grads: grads * 2))
    with pytest.raises(RuntimeError, match=r"incorrect number of values.*got 5, but expected 2"):
        run(lambda y: y.grad_fn.register_hook(lambda inputs, outputs: outputs * 5))
    with pytest.raises(TypeError, match=r"must return a tuple of Tensors or None.*got int"):
        run(lambda y: y.grad_fn.register_hook(lambda inputs, outputs: 5))
    assert x.grad is None
    run(lambda y: y.register_hook(lambda grad: None))
    assert x.grad.tolist() == [4.0, 6.0]


@pytest.mark.guarantee("B7")
def test_in_another_thread():
    caught = []
    def body():
        x = leaf(2.0)
        x.register_hook(raising)
        try:
            (x * 2).backward()
        except Odd as error:
            caught.append(error)
    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    assert len(caught) == 1
