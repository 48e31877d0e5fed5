"""Thread limits, and external thread pools."""

import importlib.util
import multiprocessing
import os
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
import threadpoolctl

import cygrad
from cygrad._core.testing import probes
from tests.behavior.thread_work import expected_work, limits_here, limits_in_pool, work
from tests.tools import needs_openmp, run_program

pytestmark = pytest.mark.guarantee("T5")

DEFAULT = cygrad.get_num_threads()
needs_joblib = pytest.mark.skipif(importlib.util.find_spec("joblib") is None, reason="joblib is not installed")


@pytest.fixture(autouse=True)
def number_of_threads():
    before = cygrad.get_num_threads()
    cygrad.set_num_threads(4)
    yield
    cygrad.set_num_threads(before)


def in_new_thread(function):
    found = []
    thread = threading.Thread(target=lambda: found.append(function()))
    thread.start()
    thread.join()
    return found[0]


# ---- limits

PROGRAM = """
import os, cygrad
from cygrad._core.testing import probes
def threads_used():
    before = len(os.listdir("/proc/self/task"))
    x = cygrad.ones(900, 900, requires_grad=True)
    for _ in range(3):
        ((x @ x).sin() @ x).sum().backward()
    probes.loop_chunks(60, 1, sleep=True)
    return len(os.listdir("/proc/self/task")) - before
"""


@needs_openmp
@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="counts threads in /proc")
@pytest.mark.parametrize("n", [1, 2, 3])
def test_environment(n):
    """The workers are one less than what may compute; their host sleeps."""
    found = run_program(PROGRAM + "print(cygrad.get_num_threads(), threads_used(), probes.workers()['threads'])",
                        OMP_NUM_THREADS=str(n))
    assert found == [str(n), str(n if n > 1 else 0), str(n - 1)]


def test_set_and_get():
    assert cygrad.get_num_threads() == 4
    assert in_new_thread(cygrad.get_num_threads) == 4
    in_new_thread(lambda: cygrad.set_num_threads(3))
    assert cygrad.get_num_threads() == 3
    assert len(probes.loop_chunks(60, 1, sleep=True)["threads"]) <= 3


def test_context_of_one_thread():
    with cygrad.threads(2):
        assert cygrad.get_num_threads() == 2
        assert len(probes.loop_chunks(60, 1, sleep=True)["threads"]) <= 2
        assert in_new_thread(cygrad.get_num_threads) == 4
        with cygrad.threads(1):
            noted = probes.loop_chunks(60, 1, sleep=True)
            assert noted["threads"] == {threading.get_ident()}


@pytest.mark.parametrize("api", [None, pytest.param("openmp", marks=needs_openmp), "blas"])
@pytest.mark.parametrize("place", [lambda function: function(), in_new_thread], ids=["main", "new thread"])
def test_threadpool_limits(api, place):
    # A limit on OpenMP alone that says no more than OpenMP's default cannot be noticed in a new thread.
    numbers = [n for n in (1, 2, 3) if api != "openmp" or n != DEFAULT]

    def body():
        found = []
        for n in numbers:
            found.append(cygrad.get_num_threads())
            with threadpoolctl.threadpool_limits(n, user_api=api):
                found += [cygrad.get_num_threads(), in_new_thread(cygrad.get_num_threads)]
                assert len(probes.loop_chunks(40, 1, sleep=True)["threads"]) <= n
        return [*found, cygrad.get_num_threads()]

    assert place(body) == [seen for n in numbers for seen in (4, n, 4)] + [4]


def test_threadpool_limits_equal_to_what_openmp_says():
    """A new thread of a process with OMP_NUM_THREADS=1, limited by threadpoolctl too, uses one thread."""
    assert run_program("""
import threading, threadpoolctl, cygrad
cygrad.set_num_threads(3)
def body():
    with threadpoolctl.threadpool_limits(1):
        print(cygrad.get_num_threads())
    print(cygrad.get_num_threads())
thread = threading.Thread(target=body)
thread.start()
thread.join()
""", OMP_NUM_THREADS="1") == ["1", "3"]


def test_set_num_threads_wins_over_an_older_limit():
    with threadpoolctl.threadpool_limits(2):
        cygrad.set_num_threads(3)
        assert cygrad.get_num_threads() == 3


def test_threadpool_info_lists_cygrad():
    (found,) = [entry for entry in threadpoolctl.threadpool_info() if entry["internal_api"] == "cygrad"]
    assert found["num_threads"] == 4
    assert found["user_api"] == "blas"


def test_blas_of_numpy_is_left_alone():
    def numpys():
        return [(entry["filepath"], entry["num_threads"]) for entry in threadpoolctl.threadpool_info()
                if entry["user_api"] == "blas" and entry["internal_api"] != "cygrad"]

    before = numpys()
    cygrad.set_num_threads(1)
    work(3)
    assert numpys() == before


# ---- pools

def test_thread_pool():
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(12))) == [expected_work(i) for i in range(12)]
        assert list(pool.map(limits_in_pool, range(8))) == [(4, 1, 2, 4)] * 8


@pytest.mark.parametrize("method", [name for name in ("fork", "spawn", "forkserver")
                                    if name in multiprocessing.get_all_start_methods()])
def test_process_pool(method):
    work(1)                                   # our workers exist when the pool forks
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(method)) as pool:
        assert list(pool.map(work, range(4))) == [expected_work(i) for i in range(4)]
        for default, one, two, again in pool.map(limits_in_pool, range(2)):
            assert (one, two) == (1, min(2, default))
            assert again == default
            assert default == 1 or method != "fork"


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_multiprocessing_pool(method):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"there is no {method} here")
    work(1)
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.map(work, range(4)) == [expected_work(i) for i in range(4)]


@needs_joblib
@pytest.mark.filterwarnings("ignore:.*worker stopped while some jobs")
def test_joblib():
    from joblib import Parallel, delayed, parallel_config

    expected = [expected_work(i) for i in range(6)]
    assert Parallel(n_jobs=3, backend="threading")(delayed(work)(i) for i in range(6)) == expected
    assert Parallel(n_jobs=2, backend="loky")(delayed(work)(i) for i in range(6)) == expected
    with parallel_config("loky", inner_max_num_threads=1):
        assert Parallel(n_jobs=2)(delayed(limits_here)() for _ in range(2)) == [1, 1]


# ---- one budget

@pytest.mark.slow
@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="counts threads in /proc")
@pytest.mark.parametrize(("callers", "n"), [(4, 2), (6, 3), (2, 4)])
def test_one_set_of_workers_for_all_python_threads(callers, n):
    """However many Python threads compute, the threads besides them are n - 1 and a host that sleeps, at most."""
    assert run_program(f"""
import os, threading, time, cygrad
from cygrad._core.testing import probes
cygrad.set_num_threads({n})
before = len(os.listdir("/proc/self/task"))
most = [0] * {callers}
start = threading.Barrier({callers})
def body(i):
    x = cygrad.ones(300, 300, requires_grad=True)
    start.wait()
    for _ in range(20):
        sum((x * k).sin() @ x for k in range(6)).sum().backward()
        most[i] = max(most[i], probes.workers()["threads"])
    start.wait()
threads = [threading.Thread(target=body, args=(i,)) for i in range({callers})]
for thread in threads: thread.start()
for thread in threads: thread.join()
def added(): return len(os.listdir("/proc/self/task")) - before
end = time.monotonic() + 5
while added() > {n} and time.monotonic() < end: time.sleep(0.01)      # joined threads are gone soon
print(max(most) <= {n - 1}, added() <= {n})
""") == ["True", "True"]


def test_no_helper_where_callers_fill_the_budget():
    """With four concurrent Python threads and a budget of four, each runs all of its chunks."""
    callers = 4
    noted, inside = [None] * callers, threading.Barrier(callers)

    def body(i):
        probes.loop_chunks(4, 1, sleep=True)         # from here on this thread counts as a caller
        inside.wait()
        probes.enter()
        try:
            inside.wait()
            noted[i] = probes.loop_chunks(200, 1, sleep=True)["threads"], threading.get_ident()
            inside.wait()
        finally:
            probes.leave()

    threads = [threading.Thread(target=body, args=(i,)) for i in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [used for used, _ in noted] == [{own} for _, own in noted]


def test_helpers_come_where_there_is_room():
    noted = probes.loop_chunks(400, 1, sleep=True)
    assert len(noted["threads"]) > 1
    assert np.array_equal(np.array(noted["chunks"])[:, 0], np.arange(400))
