"""Short-lived threads leave no memory."""

import contextlib
import gc
import threading

import numpy as np
import pytest

import cygrad
from cygrad._core.testing import probes
from tests.tools import in_threads, run_program

from .conftest import TIMES

pytestmark = pytest.mark.slow


def work():
    x = cygrad.ones(700, dtype=cygrad.float64, requires_grad=True)
    y = x
    for _ in range(5):
        y = y * 2 + x
    with cygrad.no_grad():
        y.detach() * 2
    y.sum().backward()
    assert x.grad[0].item() == 63


def wave(count):
    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_short_lived_threads_leave_nothing():
    for _ in range(10):
        wave(20)
    gc.collect()
    before, threads = cygrad.memory_stats(), probes.workers()["threads"]
    for _ in range(50 * TIMES):
        wave(20)
    gc.collect()
    after = cygrad.memory_stats()
    assert after["small_in_use"] <= before["small_in_use"] + 4096
    assert after["small_mapped"] <= before["small_mapped"] + (4 << 20)
    assert after["large_in_use"] == before["large_in_use"]
    assert probes.workers()["threads"] <= max(threads, 3)


def test_memory_of_the_process_does_not_grow():
    first, last = run_program(f"""
import os, threading, cygrad
cygrad.set_num_threads(2)
def work():
    x = cygrad.ones(5000, requires_grad=True)
    ((x * 2).sin() + x).sum().backward()
def wave():
    threads = [threading.Thread(target=work) for _ in range(20)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
for _ in range(50): wave()
first = resident()
for _ in range({100 * TIMES}): wave()
print(first, resident())
""")
    assert int(last) - int(first) < 8 << 20


@pytest.mark.parametrize("count", [100])
def test_more_threads_than_slots(count):
    """More concurrent callers than are counted individually."""
    start = threading.Barrier(count)

    def body():
        start.wait()
        probes.loop_chunks(100, 10)
        work()

    threads = [threading.Thread(target=body) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    noted = probes.loop_chunks(100, 1, sleep=True)
    assert len(noted["chunks"]) == 100


def test_threads_that_record_leave_nothing_with_malloc():
    """Each frees the list of dying nodes that it has made."""
    first, last = run_program(f"""
import ctypes, os, threading, time, cygrad
class Facts(ctypes.Structure):
    names = "arena ordblks smblks hblks hblkhd usmblks fsmblks used free keep"
    _fields_ = [(name, ctypes.c_size_t) for name in names.split()]
mallinfo = ctypes.CDLL(None).mallinfo2
mallinfo.restype = Facts
cygrad.set_num_threads(1)
def work():
    x = cygrad.ones(3, requires_grad=True)
    ((x * 2).sin() + x).sum().backward()
def wave():
    for _ in range(10):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    while len(os.listdir("/proc/self/task")) > alone: time.sleep(0.01)      # join() returns before a thread has ended
alone = len(os.listdir("/proc/self/task"))
for _ in range(20): wave()
first = mallinfo().used
for _ in range({50 * TIMES}): wave()
print(first, mallinfo().used)
""")
    assert int(last) - int(first) < 100 * 500 * TIMES


def test_memory_is_exchanged_while_others_read_it():
    """No thread reads freed memory; a tensor that does not fit at that moment is refused."""
    x = cygrad.ones(4, 6)
    deeds = [
        lambda: x.t_(), lambda: x.unsqueeze_(0) if x.ndim < 5 else x.squeeze_(), lambda: x.resize_(4, 6),
        lambda: x.resize_(40, 60), lambda: x.set_(cygrad.ones(4, 6)), lambda: setattr(x, "data", cygrad.ones(3)),
        lambda: x.share_memory_(), lambda: x.sum(0), lambda: x[0], lambda: x + x, lambda: x.tolist(),
        lambda: np.from_dlpack(x).tobytes(), lambda: memoryview(x).tolist(), lambda: x.mul_(1), lambda: repr(x),
    ]

    def body(i):
        for _ in range(200 * TIMES):
            with contextlib.suppress(RuntimeError, IndexError, TypeError):
                deeds[i]()

    in_threads(len(deeds), body)
    x.set_(cygrad.ones(2))
    assert x.tolist() == [1.0, 1.0]
