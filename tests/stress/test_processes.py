"""Fork while a team is open, exit while threads are in backward, Ctrl-C during a long backward."""

import os

import pytest

from tests.tools import run_program

from .conftest import TIMES

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")]

WORK = """
import os, signal, sys, threading, time
import numpy as np
import cygrad
cygrad.set_num_threads(4)
def graph(parts=6, size=200):
    x = (cygrad.arange(size * size, dtype=cygrad.float64).reshape(size, size) % 3).requires_grad_()
    return x, sum(((x * k) @ x for k in range(parts)), x * 0).sum()
def work():
    x, total = graph()
    total.backward()
    return x.grad.numpy().tobytes()
expected = work()
"""


def test_fork_while_teams_are_open():
    assert run_program(WORK + f"""
stop = threading.Event()
def compute():
    while not stop.is_set():
        assert work() == expected
threads = [threading.Thread(target=compute) for _ in range(3)]
for thread in threads: thread.start()
codes = []
for turn in range({6 * TIMES}):
    child = os.fork()
    if child == 0:
        if turn % 2: cygrad.set_num_threads(3)
        os._exit(0 if work() == expected and work() == expected else 1)
    codes.append(os.waitpid(child, 0)[1])
stop.set()
for thread in threads: thread.join()
assert work() == expected
print(set(codes))
""") == ["{0}"]


def test_fork_from_a_hook_in_a_team():
    """The child may compute, but not return into the backward of its parent."""
    assert run_program(WORK + """
codes = []
def hook(grad):
    child = os.fork()
    if child == 0:
        with cygrad.enable_grad():
            right = work() == expected
        if len(codes) % 2: return
        os._exit(0 if right else 1)
    codes.append(os.waitpid(child, 0)[1])
home = os.getpid()
x, total = graph()
y = x * 1
total = total + (y @ y).sum()
y.register_hook(hook)
for _ in range(4):
    try:
        total.backward(retain_graph=True)
        assert os.getpid() == home
    except RuntimeError as error:
        with cygrad.enable_grad():
            os._exit(0 if "forked" in str(error) and os.getpid() != home and work() == expected else 2)
print(codes)
""") == ["[0,", "0,", "0,", "0]"]


@pytest.mark.parametrize("hooked", [False, True])
@pytest.mark.parametrize("threads", [1, 4])
def test_exit_while_daemon_threads_compute(hooked, threads):
    """The interpreter exits while threads run, at a different moment each time."""
    for turn in range(5 * TIMES):
        assert run_program(WORK + f"""
import random
cygrad.set_num_threads({threads})
def endless():
    while True:
        x, total = graph(3, 120)
        if {hooked}: x.register_hook(lambda grad: grad * 2)
        total.backward()
for _ in range(3): threading.Thread(target=endless, daemon=True).start()
random.seed({turn})
time.sleep(0.02 + 0.05 * random.random())
print("done", flush=True)
""") == ["done"]


@pytest.mark.parametrize("threads", [1, 3])
def test_interrupt(threads, interrupts_ignored):
    """Ctrl-C ends a backward, which can be repeated."""
    for _ in range(TIMES):
        assert run_program(WORK + f"""
cygrad.set_num_threads({threads})
x = cygrad.ones(200, 200, dtype=cygrad.float64, requires_grad=True)
y = x
for _ in range(300):
    y = (y.sin() @ x) * 1e-3 + y.cos()
total = y.sum()
with cygrad.threads(1):
    expected = cygrad.autograd.grad(total, x, retain_graph=True)[0].numpy().tobytes()
calls, seen = 0, []
signal.signal(signal.SIGINT, signal.default_int_handler)       # Python keeps an inherited SIG_IGN
def interrupt():
    time.sleep(0.1)
    seen.append(calls)
    os.kill(os.getpid(), signal.SIGINT)
thread = threading.Thread(target=interrupt)
thread.start()
try:
    while True:
        cygrad.autograd.grad(total, x, retain_graph=True)
        calls += 1
except KeyboardInterrupt:
    thread.join()
    print("ended", calls - seen[0] <= 1)         # at once, or at the end of a call that was almost through
assert cygrad.autograd.grad(total, x)[0].numpy().tobytes() == expected
""") == ["ended", "True"]


# What reads formulas is imported by the first operations, and much else by the first call that needs it.
FIRST = {
    "operations": "(cygrad.ones(3, requires_grad=True) * 2).sin().sum().backward()",
    "imports": "cygrad.nn.functional.conv1d(cygrad.fft.fft(cygrad.ones(1, 4, 4)).abs(), cygrad.ones(1, 4, 2)).sum()",
}


@pytest.mark.parametrize("turn", range(3 * TIMES))
@pytest.mark.parametrize("first", FIRST)
def test_fork_while_other_threads_import_what_is_loaded_late(first, turn):
    """A child must not wait for a module that a thread of its parent imports: that thread is not there."""
    assert run_program(f"""
import os, signal, threading, time
import cygrad
def first(): {FIRST[first]}
threads = [threading.Thread(target=first) for _ in range(3)]
for thread in threads: thread.start()
time.sleep({turn} * 0.002)
codes = []
for _ in range(4):
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        first()
        os._exit(0)
    codes.append(os.waitpid(child, 0)[1])
for thread in threads: thread.join()
print(codes)
""") == ["[0,", "0,", "0,", "0]"]


@pytest.mark.parametrize("busy", [
    "cygrad.randn(500, 500)", "cygrad.manual_seed(3)", "cygrad.get_rng_state()",
    "(shared * 2).sum().backward()", "optimizer.step()", "list(loader)", "sparse(index).sum().backward()"])
def test_a_child_finds_every_lock_free(busy):
    """Other threads hold locks of generators, leaves, data loaders and sparse gradients when the process is forked."""
    assert run_program(f"""
import os, signal, threading, time
import cygrad
shared = cygrad.ones(1000, 1000, requires_grad=True)
shared.grad = cygrad.ones(1000, 1000)
optimizer = cygrad.optim.SGD([shared], lr=0.1)
loader = cygrad.utils.data.DataLoader(cygrad.utils.data.TensorDataset(cygrad.arange(20)), batch_size=4, num_workers=2,
                                      persistent_workers=True)
sparse, index = cygrad.nn.Embedding(500, 50, sparse=True), cygrad.arange(500)
stop = []
def work():
    while not stop:
        {busy}
threads = [threading.Thread(target=work) for _ in range(1 if "loader" in {busy!r} else 2)]
for thread in threads: thread.start()
codes = []
for turn in range(12):
    time.sleep(0.002 * (turn % 5))
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        cygrad.manual_seed(0)
        cygrad.randn(3)
        shared.grad
        (shared * 2).sum().backward()
        optimizer.step()
        sparse(index).sum().backward()
        os._exit(0 if sum(len(batch[0]) for batch in loader) == 20 else 1)
    codes.append(os.waitpid(child, 0)[1])
stop.append(1)
for thread in threads: thread.join()
print(set(codes))
""") == ["{0}"]


def test_a_child_gets_the_numbers_that_come_next():
    """A fork waits for a draw that is under way, so that the state of the child's generator is complete."""
    assert run_program("""
import os
import cygrad
cygrad.manual_seed(5)
expected = [cygrad.randn(3).tolist() for _ in range(2)]
cygrad.manual_seed(5)
assert cygrad.randn(3).tolist() == expected[0]
child = os.fork()
if child == 0:
    os._exit(cygrad.randn(3).tolist() != expected[1])
print(os.waitpid(child, 0)[1], cygrad.randn(3).tolist() == expected[1])
""") == ["0", "True"]


def test_worker_threads_of_the_parent_are_refused():
    assert run_program("""
import os, signal
import cygrad
loader = cygrad.utils.data.DataLoader(cygrad.utils.data.TensorDataset(cygrad.arange(300)), num_workers=2)
batches = iter(loader)
next(batches)
child = os.fork()
if child == 0:
    signal.alarm(20)
    try:
        for _ in batches: pass
    except RuntimeError as error:
        os._exit("Create a new iterator" not in str(error))
    os._exit(2)
print(os.waitpid(child, 0)[1], len(list(batches)))
""") == ["0", "299"]
