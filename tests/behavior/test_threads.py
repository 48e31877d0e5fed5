"""Threads: concurrent backward, shared leaves and graphs, modes, fork."""

import contextlib
import gc
import sys
import threading
import time

import numpy as np
import pytest

import cygrad
from cygrad.autograd import grad
from cygrad.utils.operator_modes import OperatorMode
from tests.tools import FLOAT, in_threads, leaf, run_program


def error_of(function):
    """Return the raised exception, or None."""
    try:
        function()
    except Exception as error:
        return error


@pytest.fixture
def impatient():
    """Let Python change threads as often as it can."""
    former = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(former)


@pytest.mark.guarantee("T1")
def test_native_work_without_the_gil():
    with cygrad.threads(1):
        x = cygrad.ones(3_000_000, dtype=FLOAT, requires_grad=True)
        y = x
        for _ in range(8):
            y = y.sin().exp().tanh()
        y = y.sum()
    counted, stop = [0], threading.Event()

    def count():
        while not stop.is_set():
            counted[0] += 1

    thread = threading.Thread(target=count)
    thread.start()
    time.sleep(0.05)
    before = counted[0]
    with cygrad.threads(1):
        y.backward()
    during = counted[0] - before
    stop.set()
    thread.join()
    # The other thread went on: more than a handful of turns of the GIL, which a backward holding it would leave.
    assert during > 1000


@pytest.mark.guarantee("T1")
def test_independent_graphs(impatient):
    results = [None] * 8

    def body(i):
        with cygrad.threads(1):
            x = cygrad.full((50,), float(i + 1), dtype=FLOAT).requires_grad_()
            for _ in range(100):
                (x * x * x).sum().backward()
            results[i] = (x.grad, grad((x.exp() * 0 + x * x).sum(), x)[0])

    in_threads(8, body)
    for i, (total, single) in enumerate(results):
        assert total.tolist() == [300.0 * (i + 1) ** 2] * 50
        assert single.tolist() == [2.0 * (i + 1)] * 50


@pytest.mark.guarantee("T2")
@pytest.mark.parametrize("size", [1, 1000, 100_000])
def test_shared_leaves(size, impatient):
    threads, turns = 8, 50 if size > 1000 else 300
    w = cygrad.zeros(size, dtype=FLOAT, requires_grad=True)

    def body(i):
        for _ in range(turns):
            (w * 1).sum().backward()

    in_threads(threads, body)
    assert (w.grad == threads * turns).all()


@pytest.mark.guarantee("T2")
def test_shared_leaves_with_hooks_and_create_graph(impatient):
    w = leaf(1.0)
    calls = []
    w.register_hook(lambda grad: calls.append(1))

    def body(i):
        for _ in range(50):
            (w * 1).backward(create_graph=i % 2 == 0)

    in_threads(8, body)
    assert len(calls) == 400
    assert w.grad.item() == 400.0
    w.grad = None


@pytest.mark.guarantee("T2")
@pytest.mark.parametrize("size", [1, 50_000])
def test_recorded_and_native_gradients_add_up(size, impatient):
    """A recorded sum replaces .grad without holding its lock; the others add in place."""
    for _ in range(10):
        w = cygrad.zeros(size, dtype=FLOAT, requires_grad=True)

        def body(i, w=w):
            for _ in range(60):
                (w * 1).sum().backward(create_graph=i % 2 == 0)

        in_threads(4, body)
        assert (w.grad == 240).all()
        w.grad = None


@pytest.mark.guarantee("T2")
def test_gradients_add_up_in_modes_too(impatient):
    class Seen(OperatorMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    w = cygrad.zeros(50_000, dtype=FLOAT, requires_grad=True)
    w.sum().backward()
    grad = w.grad

    def body(i):
        with Seen() if i % 2 else contextlib.nullcontext():
            for _ in range(100):
                (w * 1).sum().backward()

    in_threads(4, body)
    assert (w.grad == 401).all() and w.grad is grad


@pytest.mark.guarantee("T2")
def test_grad_is_set_and_read_meanwhile(impatient):
    w = cygrad.zeros(100, dtype=FLOAT, requires_grad=True)

    def body(i):
        for _ in range(300):
            if i == 0:
                w.grad = None
            elif i == 1:
                found = w.grad
                assert found is None or found.shape == (100,)
            elif i == 2:
                w.grad = cygrad.ones(100, dtype=FLOAT)
            else:
                (w * 1).sum().backward()

    in_threads(6, body)


@pytest.mark.guarantee("T3")
def test_shared_graph_retained(impatient):
    x = leaf([1.0, 2.0, 3.0])
    y = x
    for _ in range(50):
        y = (y * 1.01).sin() + x
    y = y.sum()
    expected = grad(y, x, retain_graph=True)[0].tolist()
    found = []

    def body(i):
        for _ in range(20):
            found.append(grad(y, x, retain_graph=True)[0].tolist())

    in_threads(8, body)
    assert len(found) == 160
    assert all(g == expected for g in found)


@pytest.mark.guarantee("T3")
def test_shared_graph_retained_into_leaves(impatient):
    x = leaf([1.0, 2.0])
    y = (x * x).sum()

    def body(i):
        for _ in range(50):
            y.backward(retain_graph=True)

    in_threads(8, body)
    assert x.grad.tolist() == [800.0, 1600.0]


@pytest.mark.guarantee("T3")
def test_shared_graph_freed(impatient):
    for _ in range(40):
        x = leaf([1.0, 2.0])
        y = x
        for _ in range(20):
            y = y.sin()
        y = y.sum()
        failed = [error for error in in_threads(8, lambda i, y=y: error_of(y.backward)) if error is not None]
        # Each saved value can be taken once: at most one call gets through, the others say why not.
        assert len(failed) >= 7
        for error in failed:
            assert isinstance(error, RuntimeError)
            assert "freed" in str(error)
            assert "retain_graph=True" in str(error)


@pytest.mark.guarantee("T3")
def test_parts_of_a_graph_shared(impatient):
    for _ in range(20):
        x = leaf([1.0, 2.0])
        shared = (x * 3 + 1) - x                 # saves nothing, so all may go through it
        found = [None] * 8

        def body(i, shared=shared, found=found, x=x):
            found[i] = grad((shared * float(i + 1)).exp().sum() * 0 + (shared * float(i + 1)).sum(), x)[0].tolist()

        in_threads(8, body)
        assert found == [[2.0 * (i + 1)] * 2 for i in range(8)]


@pytest.mark.guarantee("T3")
@pytest.mark.slow
def test_collector_and_destruction_meanwhile(impatient):
    x = leaf([1.0, 2.0])
    stop = threading.Event()

    def collect():
        while not stop.is_set():
            gc.collect()

    thread = threading.Thread(target=collect)
    thread.start()

    def body(i):
        for _ in range(60):
            y = x
            for _ in range(10):
                y = y.sin() * x
            if i % 2:
                y.register_hook(lambda grad, y=y: None)       # a cycle for the collector
            y.sum().backward()

    try:
        in_threads(4, body)
    finally:
        stop.set()
        thread.join()


@pytest.mark.guarantee("T4")
def test_modes_are_thread_local(impatient):
    def body(i):
        for _ in range(100):
            x = leaf(1.0)
            if i % 2:
                with cygrad.no_grad():
                    assert (x * 2).grad_fn is None
            else:
                assert (x * 2).grad_fn is not None
                (x * 2).backward()

    in_threads(6, body)


@pytest.mark.guarantee("T4")
def test_hooks_registered_meanwhile(impatient):
    x = leaf([1.0, 2.0])
    y = x
    nodes = []
    for _ in range(20):
        y = y * 1.0
        nodes.append(y)
    total = y.sum()
    count = [0]

    def hook(grad):
        count[0] += 1

    def body(i):
        for _ in range(100):
            if i < 2:
                handles = [t.register_hook(hook) for t in nodes]
                for handle in handles:
                    handle.remove()
            else:
                assert grad(total, x, retain_graph=True)[0].tolist() == [1.0, 1.0]

    in_threads(5, body)


@pytest.mark.guarantee("T4")
def test_hook_registered_during_backward_fires():
    x = leaf([3.0])
    a = x * 2
    b = a * 2
    log = []
    b.register_hook(lambda grad: a.register_hook(lambda grad: log.append("late")) and None)
    b.sum().backward()
    assert log == ["late"]


# ----------------------------------------------------------------------------------------------------------------- T6

def random(*shape, seed=0, dtype=cygrad.float32):
    values = np.random.default_rng(seed).standard_normal(shape).astype(dtype.numpy_dtype)
    return cygrad.tensor(values)


def chain_program():
    x = random(700, 300).requires_grad_()
    w = random(300, 200, seed=1).requires_grad_()
    ((x @ w).tanh() * 0.1).exp().sum().backward()
    return x.grad, w.grad


def wide_program():
    """Many large products side by side that share their inputs: enough work to open a team."""
    x = random(256, 256).requires_grad_()
    weights = [random(256, 256, seed=i).requires_grad_() for i in range(12)]
    total = None
    for w in weights:
        y = (x @ w).sin() @ x
        total = y if total is None else total + y
    total.sum().backward()
    return (x.grad, *[w.grad for w in weights])


def reduction_program():
    x = random(1000, 999).requires_grad_()
    y = (x.softmax(1) * x).sum(0) + x.std(0) + x.logsumexp(0) + x.cumsum(0)[-1] + x.mean()
    (y * y).sum().backward()
    return (x.grad,)


def hooked_program():
    x = random(512, 512).requires_grad_()
    parts = []
    for i in range(8):
        y = (x * (i + 1.5)).sin()
        if i % 2:
            y.register_hook(lambda grad: grad * 1.5)
        parts.append(y @ x)
    cygrad.stack(parts).sum().backward()
    return (x.grad,)


def recorded_program():
    x = random(200, 200).requires_grad_()
    (g,) = grad((x @ x).tanh().sum(), x, create_graph=True)
    (g * g).sum().backward()
    return (x.grad,)


@pytest.fixture
def eight_threads():
    """More than there are cores, as `threads` can only lower the number."""
    before = cygrad.get_num_threads()
    cygrad.set_num_threads(8)
    yield
    cygrad.set_num_threads(before)


@pytest.mark.guarantee("T6")
@pytest.mark.parametrize("program", [chain_program, wide_program, reduction_program, hooked_program,
                                     recorded_program])
def test_same_bits_for_any_number_of_threads(program, eight_threads):
    expected = None
    for count in (1, 2, 3, 8, 2, 8):
        with cygrad.threads(count):
            assert cygrad.get_num_threads() == count
            found = [g.numpy().tobytes() for g in program()]
        expected = expected or found
        assert found == expected, f"{count} threads"


@pytest.mark.guarantee("T6")
def test_teams_and_python_threads(eight_threads):
    with cygrad.threads(1):
        expected = [g.numpy().tobytes() for g in wide_program()]
    found = [None] * 4

    def body(i):
        found[i] = [g.numpy().tobytes() for g in wide_program()]

    in_threads(4, body)
    assert all(result == expected for result in found)


@pytest.mark.guarantee("T6")
def test_errors_in_a_team(eight_threads):
    x = random(512, 512).requires_grad_()
    parts = [(x * (i + 1.5)).sin() @ x for i in range(8)]
    total = cygrad.stack(parts).sum()

    def hook(grad):
        raise KeyError("in a team")

    handle = parts[3].register_hook(hook)
    for count in (1, 3):
        with cygrad.threads(count), pytest.raises(KeyError, match="in a team"):
            total.backward(retain_graph=True)
    handle.remove()
    x.grad = None
    with cygrad.threads(3):
        total.backward()
        assert x.grad is not None
        with pytest.raises(RuntimeError, match="freed"):
            total.backward()


# ----------------------------------------------------------------------------------------------------------------- T7

@pytest.mark.guarantee("T7")
def test_after_fork():
    assert run_program("""
import os, cygrad
def work():
    x = cygrad.ones(400, 400, requires_grad=True)
    y = sum((x @ (x * i)).sin() for i in range(6)).sum()
    y.backward()
    return float(x.grad.sum())
expected = work()
children = []
for _ in range(3):
    child = os.fork()
    if child == 0:
        os._exit(0 if work() == expected else 1)
    children.append(child)
assert all(os.waitpid(child, 0)[1] == 0 for child in children)
assert work() == expected
print("done")
""", "-W", "error::DeprecationWarning:cygrad") == ["done"]


@pytest.mark.guarantee("T7")
def test_exit_with_threads_alive():
    assert run_program("""
import threading, time, cygrad
x = cygrad.ones(300, 300, requires_grad=True)
def work():
    while True:
        (x @ x).sin().sum().backward()
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.3)
print("done", flush=True)
""", "-W", "error::DeprecationWarning:cygrad") == ["done"]
