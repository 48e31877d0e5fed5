"""Callbacks at the end of a backward, and where they may be queued."""

import gc
import threading
import weakref

import pytest

import cygrad
from cygrad.autograd import Function, grad
from cygrad.autograd.graph import queue_callback


def watched(hook):
    """A leaf, and a tensor of it whose gradient is given to `hook`."""
    x = cygrad.ones(2, requires_grad=True)
    y = x * 2
    y.register_hook(hook)
    return x, y.sum()


@pytest.mark.guarantee("H7")
def test_callbacks_run_at_the_end_in_order():
    log = []

    def hook(gradient):
        queue_callback(lambda: log.append(("first", x.grad.tolist())))
        queue_callback(lambda: log.append(("second", threading.current_thread() is caller)))
        log.append("hook")

    caller = threading.current_thread()
    x, y = watched(hook)
    y.backward()
    assert log == ["hook", ("first", [2.0, 2.0]), ("second", True)]
    grad((x * 3).sum(), x)
    assert len(log) == 3                     # they belong to that one backward


@pytest.mark.guarantee("H7")
def test_callbacks_may_queue_others():
    log = []

    def first():
        log.append("first")
        queue_callback(lambda: log.append("third"))

    def hook(gradient):
        queue_callback(first)
        queue_callback(lambda: log.append("second"))

    watched(hook)[1].backward()
    assert log == ["first", "second", "third"]


@pytest.mark.guarantee("H7")
@pytest.mark.parametrize("create_graph", [False, True])
def test_callbacks_see_the_mode_of_backward(create_graph):
    log = []
    x, y = watched(lambda gradient: queue_callback(lambda: log.append(cygrad.is_grad_enabled())))
    grad(y, x, create_graph=create_graph)
    assert log == [create_graph]


@pytest.mark.guarantee("H7")
def test_callbacks_of_nested_backward_belong_to_the_innermost():
    log = []
    z = cygrad.ones(1, requires_grad=True)
    w = z * 2
    w.register_hook(lambda gradient: queue_callback(lambda: log.append("inner")))
    inner = w.sum()

    def hook(gradient):
        queue_callback(lambda: log.append("outer"))
        inner.backward()
        log.append("inner done")

    watched(hook)[1].backward()
    assert log == ["inner", "inner done", "outer"]


@pytest.mark.guarantee("H7")
def test_callbacks_may_run_backward():
    log = []

    def callback():
        with cygrad.enable_grad():
            z = cygrad.ones(1, requires_grad=True)
            (z * 3).sum().backward()
        log.append(z.grad.item())

    watched(lambda gradient: queue_callback(callback))[1].backward()
    assert log == [3.0]


@pytest.mark.guarantee("H7")
def test_callbacks_of_custom_functions_and_deep_nesting():
    log = []

    class Deep(Function):
        @staticmethod
        def forward(ctx, x, depth):
            ctx.depth = depth
            return x * 1

        @staticmethod
        def backward(ctx, g):
            queue_callback(lambda: log.append(ctx.depth))
            if ctx.depth:
                with cygrad.enable_grad():
                    y = Deep.apply(cygrad.ones(1, requires_grad=True), ctx.depth - 1)
                y.backward()
            return g, None

    Deep.apply(cygrad.ones(1, requires_grad=True), 100).backward()
    assert log == list(range(101))


@pytest.mark.guarantee("H7")
def test_callbacks_that_raise():
    log = []

    def fails():
        raise ValueError("from a callback")

    def hook(gradient):
        queue_callback(fails)
        queue_callback(lambda: log.append("after"))

    x, y = watched(hook)
    with pytest.raises(ValueError, match="from a callback"):
        y.backward()
    assert not log and x.grad.tolist() == [2.0, 2.0]
    (x * 3).sum().backward()
    assert x.grad.tolist() == [5.0, 5.0]


@pytest.mark.guarantee("H7")
def test_callbacks_are_dropped_if_backward_fails():
    log = []

    class Something:
        def __call__(self):
            log.append("called")

    alive = []

    def queues(gradient):
        something = Something()
        alive.append(weakref.ref(something))
        queue_callback(something)

    def fails(gradient):
        raise ValueError("from a hook")

    x, y = watched(queues)
    x.register_hook(fails)
    with pytest.raises(ValueError, match="from a hook"):
        y.backward()
    gc.collect()
    assert not log and alive[0]() is None


@pytest.mark.guarantee("H7")
def test_callbacks_outside_of_backward():
    with pytest.raises(RuntimeError, match=r"queue_callback: .*only .* during backward"):
        queue_callback(lambda: None)
    with pytest.raises(TypeError, match=r"must be callable \(got int\)"):
        watched(lambda gradient: queue_callback(3))[1].backward()


@pytest.mark.guarantee("H7")
def test_callbacks_of_threads_do_not_mix():
    logs = {}

    def work(number):
        log = logs[number] = []
        for _ in range(50):
            watched(lambda gradient: queue_callback(lambda: log.append(threading.get_ident())))[1].backward()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(len(log) == 50 and len(set(log)) == 1 for log in logs.values())


@pytest.mark.guarantee("H7")
def test_callbacks_under_their_old_name():
    log = []
    watched(lambda gradient: cygrad.autograd.Variable._execution_engine.queue_callback(
        lambda: log.append("called")))[1].backward()
    assert log == ["called"]


@pytest.mark.guarantee("R1")
def test_variable_is_a_tensor():
    y = cygrad.ones(2, requires_grad=True) * 2
    x = cygrad.autograd.Variable(y, requires_grad=True)
    assert x.is_leaf and x.requires_grad and x.data_ptr() == y.data_ptr()
    assert not cygrad.autograd.Variable(y).requires_grad
    assert isinstance(y, cygrad.autograd.Variable) and not isinstance(5, cygrad.autograd.Variable)
    with pytest.warns(UserWarning, match="volatile was removed"):
        assert cygrad.autograd.Variable(y, volatile=True).tolist() == y.tolist()
    with pytest.raises(TypeError, match=r"Variable: .*got list"):
        cygrad.autograd.Variable([1.0])
