"""Workers: threads of an open OpenMP region, or POSIX threads; effect of OpenMP settings."""

import importlib.util
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import cygrad
from cygrad._core.testing import probes
from tests.tools import needs_openmp

pytestmark = pytest.mark.usefixtures("keep_number_of_threads")

# LLVM's runtime keeps the threads of a region for the next one, and each thread that opens one gets the next place.
LLVM = Path(cygrad.show_config("dicts")["openmp"]["library"] or "").name.startswith(("libomp", "libiomp"))
needs_proc = pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="looks at threads in /proc")

PROGRAM = """
import ctypes, os, sys, threading, time
import cygrad
from cygrad._core.testing import probes
def tasks(): return sorted(map(int, os.listdir("/proc/self/task")))
def used(pieces=60): return probes.loop_chunks(pieces, 1, sleep=True)["threads"]
def workers(): return probes.workers()["threads"]
def settled(expected):
    end = time.monotonic() + 10
    while workers() != expected and time.monotonic() < end: time.sleep(0.001)
    return workers()
"""


def run_program(text, **environment):
    result = subprocess.run([sys.executable, "-c", PROGRAM + text], timeout=120, capture_output=True, text=True,
                            env={**os.environ, **environment}, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()


# ---- number of workers

@needs_proc
def test_there_are_as_many_workers_as_set():
    """Workers start when needed and end after a moment; the host ends with the last ones."""
    numbers = (3, 5, 2, 4, 1, 2)
    assert run_program(f"""
before = len(tasks())
for n in {numbers}:
    cygrad.set_num_threads(n)
    used()
    expected = n if n > 1 else 0
    end = time.monotonic() + 10
    while len(tasks()) - before != expected and not {LLVM} and time.monotonic() < end: time.sleep(0.001)
    print(n, settled(n - 1), {LLVM} or len(tasks()) - before == expected)
""", OMP_NUM_THREADS="1") == [f"{n} {n - 1} True" for n in numbers]


def test_what_does_not_last_leaves_the_workers_alone():
    """A context, and a number that is set and immediately restored."""
    assert run_program("""
cygrad.set_num_threads(4)
used()
first = tasks()
for n in (1, 4, 2, 4):
    cygrad.set_num_threads(n)
    used()
with cygrad.threads(2): used()
print(tasks() == first, workers())
""", OMP_NUM_THREADS="1") == ["True 3"]


def test_a_running_backward_is_not_disturbed_by_a_new_number():
    """Workers leave and rejoin during the work, with bit-identical results."""
    x = cygrad.tensor(np.random.default_rng(0).standard_normal((300, 300)), requires_grad=True)
    total = sum(((x * k).sin() @ x for k in range(1, 9)), x * 0).sum()

    def gradient():
        return cygrad.autograd.grad(total, x, retain_graph=True)[0].numpy().tobytes()

    with cygrad.threads(1):
        expected = gradient()
    cygrad.set_num_threads(3)
    wrong, stop = [], threading.Event()

    def compute():
        while not stop.is_set():
            if gradient() != expected:
                wrong.append(1)

    threads = [threading.Thread(target=compute) for _ in range(2)]
    for thread in threads:
        thread.start()
    for turn in range(150):
        cygrad.set_num_threads(1 + turn * 7 % 5)
        time.sleep(0.002)
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong


def test_workers_come_back_to_a_long_loop_after_a_new_number():
    """A team opened before continues with the workers of the next region."""
    cygrad.set_num_threads(2)
    noted = []
    thread = threading.Thread(target=lambda: noted.append(probes.loop_chunks(2000, 1, sleep=True)))
    thread.start()
    time.sleep(0.05)
    cygrad.set_num_threads(3)
    probes.loop_chunks(20, 1, sleep=True)
    thread.join()
    assert noted[0]["chunks"] == [(i, i + 1) for i in range(2000)]
    assert len(noted[0]["threads"]) >= 2


# ---- OpenMP settings

@needs_openmp
@needs_proc
def test_thread_limit():
    assert run_program("""
before = len(tasks())
print(cygrad.get_num_threads())
cygrad.set_num_threads(4)
print(cygrad.get_num_threads(), len(used()), workers(), len(tasks()) - before)
""", OMP_NUM_THREADS="3", OMP_THREAD_LIMIT="2") == ["2", "2 2 1 2"]


@needs_openmp
def test_dynamic():
    """The runtime may give fewer: no more than there are cores, when we ask for many."""
    (found,) = run_program("cygrad.set_num_threads(500); print(len(used(3000)), workers())", OMP_DYNAMIC="true")
    threads, workers = map(int, found.split())
    assert workers < (os.cpu_count() or 1)
    assert threads <= workers + 1


@needs_openmp
def test_parallel_regions_switched_off():
    assert run_program("print(len(used()), workers())", OMP_NUM_THREADS="4", OMP_MAX_ACTIVE_LEVELS="0") == ["1 0"]


@needs_openmp
def test_omp_set_num_threads():
    """In the thread that calls it: more, and less, than what the environment says."""
    assert run_program("""
openmp = ctypes.CDLL(cygrad.show_config("dicts")["openmp"]["library"])
def change(n, expected):
    openmp.omp_set_num_threads(n)
    print(cygrad.get_num_threads(), len(used(200)) <= n, settled(expected))
def body():
    change(4, 3)
    change(2, 3)
    cygrad.set_num_threads(3)
    change(2, 2)
thread = threading.Thread(target=body)
used()
thread.start()
thread.join()
""", OMP_NUM_THREADS="2") == ["4 True 3", "2 True 3", "2 True 2"]


@needs_openmp
@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="the system does not tell where threads may run")
@pytest.mark.parametrize(("bind", "places"), [("close", (0, 1)), ("spread", (0, 1)), ("true", (0, 1)),
                                              ("master", (0, 0)), ("false", None)])
def test_members_sit_where_they_are_told(bind, places):
    """The host is in the first place, as the thread that loads OpenMP; workers follow by OMP_PROC_BIND."""
    cores = sorted(os.sched_getaffinity(0))[:2]
    if len(cores) < 2:
        pytest.skip("there is only one core")
    expected = [[cores[place ^ LLVM]] for place in places] if places else [sorted(os.sched_getaffinity(0))] * 2
    (found,) = run_program(f"""
before = set(tasks())
used()
def seats():
    return [sorted(os.sched_getaffinity(task)) for task in tasks() if task not in before]
limit = time.monotonic() + 10            # a worker takes its place when it first runs
while seats() != {expected} and time.monotonic() < limit:
    time.sleep(0.01)
print(seats())
""", OMP_NUM_THREADS="2", OMP_PLACES=f"{{{cores[0]}}},{{{cores[1]}}}", OMP_PROC_BIND=bind)
    assert found == str(expected)


@needs_openmp
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks glibc for the size of a thread's stack")
def test_stack_size():
    assert run_program("""
libc = ctypes.CDLL(None)
attributes, size = ctypes.create_string_buffer(256), ctypes.c_size_t()
for thread in used() - {threading.get_ident()}:
    libc.pthread_getattr_np(ctypes.c_ulong(thread), attributes)
    libc.pthread_attr_getstacksize(attributes, ctypes.byref(size))
    print(3 << 20 <= size.value < 4 << 20)
""", OMP_NUM_THREADS="3", OMP_STACKSIZE="3M") == ["True", "True"]


@needs_openmp
def test_waiting_actively_is_for_the_runtime():
    """The region stays open, so its host and members sleep where they would otherwise spin at a barrier."""
    (seconds,) = run_program("""
used()
begin = time.process_time()
time.sleep(0.5)
print(time.process_time() - begin)
""", OMP_NUM_THREADS="4", OMP_WAIT_POLICY="active")
    assert float(seconds) < 0.1


# ---- other interpreters, processes and libraries

def test_sub_interpreters_are_refused():
    """... and a former host does no harm: Python's warning about unknown threads would be wrong."""
    if importlib.util.find_spec("_xxsubinterpreters") is None:
        pytest.skip("this Python cannot start a sub-interpreter")
    assert run_program("""
import _xxsubinterpreters as interpreters
other = interpreters.create()
try:
    interpreters.run_string(other, "import cygrad")
except Exception as error:
    print("ImportError" in str(error))
interpreters.destroy(other)
for n in (3, 2, 3):
    cygrad.set_num_threads(n)
    print(len(used()) > 1)
""", OMP_NUM_THREADS="1") == ["True"] * 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@needs_openmp
def test_forks_in_a_row():
    """Each generation opens a separate region, although the first has used OpenMP on its main thread as well."""
    assert run_program("""
openmp = ctypes.CDLL(cygrad.show_config("dicts")["openmp"]["library"])
ran = []
openmp.GOMP_parallel(ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda unused: ran.append(1)), None, 3, 0)
def compute(generation):
    cygrad.set_num_threads(3)
    x = cygrad.ones(400, 400, requires_grad=True)
    total = sum((x @ (x * i)).sin() for i in range(6)).sum()
    codes = []
    def hook(grad):
        if generation == 3: return
        child = os.fork()
        if child == 0:
            with cygrad.enable_grad():
                os._exit(0 if compute(generation + 1) else 1)
        codes.append(os.waitpid(child, 0)[1])
    total.register_hook(hook)
    total.backward()
    return len(used(100)) > 1 and not any(codes) and workers() == 2
print(len(ran), compute(0), compute(0))
""") == ["3 True True"]


LIBRARIES = {
    "cygrad": """
import cygrad
cygrad.set_num_threads(3)
def cygrads():
    x = (cygrad.arange(90000, dtype=cygrad.float64).reshape(300, 300) % 5).requires_grad_()
    sum(((x * k) @ x for k in range(6)), x * 0).sum().backward()
    return x.grad.numpy().tobytes()
""",
    "sklearn": """
import numpy as np
from sklearn.cluster import KMeans
def sklearns():
    points = np.random.default_rng(0).standard_normal((3000, 8))
    return KMeans(5, n_init=1, random_state=0).fit(points).labels_.tobytes()
""",
    "torch": """
import torch
torch.set_num_threads(3)
def torchs():
    x = (torch.arange(90000, dtype=torch.float64).reshape(300, 300) % 5).requires_grad_()
    sum(((x * k) @ x for k in range(6)), x * 0).sin().sum().backward()
    return x.grad.numpy().tobytes()
""",
}


@pytest.mark.slow
@pytest.mark.parametrize("other", ["sklearn", "torch"])
@pytest.mark.parametrize("first", [True, False], ids=["imported first", "imported last"])
def test_other_libraries_with_openmp(other, first):
    """In one process, at the same time, and in a forked child: each gets its own results."""
    pytest.importorskip(other)
    order = [other, "cygrad"] if first else ["cygrad", other]
    result = subprocess.run([sys.executable, "-c", "".join(LIBRARIES[name] for name in order) + f"""
import os, threading, time
from cygrad._core.testing import probes
expected = cygrads(), {other}s()
def started():
    end = time.monotonic() + 60          # a busy machine starts them after the work is done
    while probes.workers()["threads"] < 2 and time.monotonic() < end: time.sleep(0.001)
    return probes.workers()["threads"]
wrong = []
def repeat(function, right):
    for _ in range(8):
        if function() != right: wrong.append(function)
threads = [threading.Thread(target=repeat, args=pair) for pair in zip((cygrads, {other}s), expected)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(wrong, started())
child = os.fork() if hasattr(os, "fork") else None
if child == 0:
    cygrad.set_num_threads(3)
    os._exit(0 if cygrads() == expected[0] and started() == 2 else 1)
print(os.waitpid(child, 0)[1] if child else 0)
"""], timeout=300, capture_output=True, text=True, check=False, env={**os.environ, "OMP_NUM_THREADS": "3"})
    assert (result.returncode, result.stdout.splitlines()) == (0, ["[] 2", "0"]), result.stderr
