"""Parallel loops in fixed chunks, teams, and the thread budget."""

import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import threadpoolctl

import cygrad
import cygrad._core.kernels.linalg.matmul
from cygrad._core.testing import probes
from cygrad._core.testing.interop import call_kernel
from cygrad._core.threads.parallel import chunks_run, get_num_threads, set_num_threads, threads
from tests.tools import needs_openmp

pytestmark = pytest.mark.usefixtures("keep_number_of_threads")


def chunks_of(n, grain):
    return [(begin, min(begin + grain, n)) for begin in range(0, n, grain)]


@pytest.mark.parametrize(("n", "grain"), [(0, 5), (1, 5), (5, 5), (6, 5), (1000, 7), (1000, 1), (3, 100),
                                          (10**12, 10**11)])
@pytest.mark.parametrize("number", [1, 2, 3, 8])
def test_pieces_depend_on_the_problem_alone(n, grain, number):
    set_num_threads(number)
    noted = probes.loop_chunks(n, grain)
    assert noted["chunks"] == chunks_of(n, grain)
    assert len(noted["threads"]) <= number
    assert noted["inner"] == len(noted["chunks"]) * 4


COLUMNS = {
    "softmax": lambda x, y: cygrad.softmax(x, 0), "log_softmax": lambda x, y: cygrad.log_softmax(x, 0),
    "cumsum": lambda x, y: cygrad.cumsum(x, 0), "cumprod": lambda x, y: cygrad.cumprod(x * 1e-3 + 1, 0),
    "batch_norm": lambda x, y: cygrad.nn.functional.batch_norm(x, None, None, training=True),
    "index_add": lambda x, y: x.index_add(0, cygrad.arange(len(x)) // 3, y),
    "index": lambda x, y: x[cygrad.arange(len(x)) // 3],
}


@pytest.mark.parametrize("name", COLUMNS)
def test_threads_share_the_columns_of_a_narrow_matrix_without_changing_a_bit(name):
    x, y = (cygrad.tensor(np.random.default_rng(seed).standard_normal((4000, 100)).astype("float32"),
                          requires_grad=True) for seed in (0, 1))
    found = []
    for number in (1, 2, 3, 8):
        set_num_threads(number)
        before = chunks_run()
        result = COLUMNS[name](x, y)
        result.backward(y.detach())
        found.append([array.detach().numpy().tobytes() for array in (result, x.grad)])
        x.grad = y.grad = None
        if number == 2:
            for _ in range(20):
                COLUMNS[name](x, y)
            assert chunks_run() > before
    assert all(bits == found[0] for bits in found)


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "float32", "float64"])
def test_ranges_and_zeros_have_the_same_elements_for_any_number_of_threads(dtype):
    for number in (1, 3):
        set_num_threads(number)
        np.testing.assert_array_equal(cygrad.arange(3, 400_003, 2, dtype=getattr(cygrad, dtype)).numpy(),
                                      np.arange(3, 400_003, 2).astype(dtype))
        assert not cygrad.zeros(3_000_001, dtype=getattr(cygrad, dtype)).any()


def test_a_grain_that_is_not_positive_counts_as_one():
    assert probes.loop_chunks(3, 0)["chunks"] == [(0, 1), (1, 2), (2, 3)]


def test_pieces_are_shared_and_loops_inside_are_serial():
    set_num_threads(3)
    noted = probes.loop_chunks(60, 1, sleep=True)
    assert 2 <= len(noted["threads"]) <= 3
    assert noted["inner_limit"] == 1
    assert noted["inner"] == 60 * 4


@pytest.mark.parametrize("size", [1, 2, 3, 8])
def test_idle_members_of_a_team_take_pieces(size):
    set_num_threads(8)
    noted = probes.loop_chunks(0, 1, team=size, sleep=True)
    assert noted["chunks"] == chunks_of(1000, 10)
    assert 1 <= noted["members"] <= size
    if noted["members"] > 1:
        assert len(noted["threads"]) > 1
        assert noted["inner_limit"] == 1
    assert noted["inner"] == 100 * 4


def settled_limit(expected):
    """Return the limit once it has the expected value, or after a second, because threads count for a moment."""
    end = time.monotonic() + 1
    while probes.limit_here() != expected and time.monotonic() < end:
        time.sleep(0.001)
    return probes.limit_here()


def test_teams_from_several_threads():
    set_num_threads(4)
    results = []

    def work():
        for _ in range(20):
            results.append(probes.loop_chunks(0, 1, team=3)["chunks"] == chunks_of(1000, 10))
            results.append(probes.loop_chunks(1000, 3)["chunks"] == chunks_of(1000, 3))

    workers = [threading.Thread(target=work) for _ in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(results) == 240
    assert all(results)
    assert settled_limit(4) == 4


def test_threads_share_one_budget():
    set_num_threads(4)
    probes.loop_chunks(60, 1, sleep=True)          # the workers are there
    assert settled_limit(4) == 4
    team = threading.Thread(target=lambda: probes.loop_chunks(0, 1, team=4, sleep=True))
    team.start()
    limits = []
    while team.is_alive():
        limits.append(probes.limit_here())
        time.sleep(0.0005)
    team.join()
    assert min(limits) == 1
    assert settled_limit(4) == 4


def test_set_num_threads():
    set_num_threads(3)
    assert get_num_threads() == 3
    seen = []
    worker = threading.Thread(target=lambda: seen.append(get_num_threads()))
    worker.start()
    worker.join()
    assert seen == [3]


@pytest.mark.parametrize("function", [set_num_threads, threads])
def test_numbers_that_are_refused(function):
    for n in (0, -1, 1 << 20):
        with pytest.raises(ValueError, match=rf"{function.__name__}: the number of threads must be between .*{n}"):
            function(n)
    for n in (1.5, "2", None):
        with pytest.raises(TypeError, match=f"{function.__name__}: the number of threads must be an int"):
            function(n)
    set_num_threads(np.int64(2))
    assert get_num_threads() == 2


def test_the_context_is_nestable_and_of_one_thread():
    set_num_threads(4)
    with threads(3) as outer:
        assert repr(outer) == "threads(3)"
        assert get_num_threads() == 3
        with threads(2):
            assert get_num_threads() == 2
            with threads(8):
                assert get_num_threads() == 4      # never more than set_num_threads allows
            seen = []
            worker = threading.Thread(target=lambda: seen.append(get_num_threads()))
            worker.start()
            worker.join()
            assert seen == [4]
        with outer:
            assert get_num_threads() == 3
        assert get_num_threads() == 3
    assert get_num_threads() == 4


def test_the_context_ends_with_an_exception():
    set_num_threads(4)
    with pytest.raises(KeyError), threads(2):
        raise KeyError
    assert get_num_threads() == 4


@needs_openmp
def test_threadpoolctl_is_obeyed():
    set_num_threads(4)
    with threadpoolctl.threadpool_limits(2, user_api="openmp"):
        assert get_num_threads() == 2
        assert len(probes.loop_chunks(60, 1, sleep=True)["threads"]) <= 2
    assert get_num_threads() == 4
    with threadpoolctl.threadpool_limits(1):
        assert get_num_threads() == 1
        assert probes.limit_here() == 1


def run_python(code, **environment):
    result = subprocess.run([sys.executable, "-c", code], env={**os.environ, **environment}, text=True,
                            capture_output=True, timeout=120, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout.split()


@needs_openmp
def test_the_environment_is_obeyed():
    code = """
from cygrad._core.threads.parallel import get_num_threads, set_num_threads
print(get_num_threads())
set_num_threads(5)
print(get_num_threads())
"""
    assert run_python(code, OMP_NUM_THREADS="3") == ["3", "5"]


@needs_openmp
def test_a_limit_set_before_the_import_is_obeyed():
    library = cygrad.show_config("dicts")["openmp"]["library"]
    code = f"""
import ctypes, threadpoolctl
ctypes.CDLL({library!r})
with threadpoolctl.threadpool_limits(1):
    from cygrad._core.threads.parallel import get_num_threads
    print(get_num_threads())
print(get_num_threads())
"""
    assert run_python(code, OMP_NUM_THREADS="3") == ["1", "3"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_is_serial_and_right():
    code = """
import os, numpy as np
import cygrad._core.kernels.linalg.matmul
from cygrad._core.testing import probes
from cygrad._core.testing.interop import call_kernel
from cygrad._core.threads.parallel import get_num_threads, set_num_threads
set_num_threads(4)
a = np.ones((700, 700))
assert (call_kernel("mm", a, a)[0] == 700).all()
probes.loop_chunks(0, 1, team=4)
child = os.fork()
if child == 0:
    ok = get_num_threads() == 1 and (call_kernel("mm", a, a)[0] == 700).all()
    ok = ok and probes.loop_chunks(0, 1, team=4)["members"] == 1
    os._exit(11 if ok else 12)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
assert (call_kernel("mm", a, a)[0] == 700).all()
print(get_num_threads())
"""
    assert run_python(code) == ["11", "4"]


def test_a_kernel_in_many_threads_at_once():
    set_num_threads(4)
    a, b = np.random.default_rng(0).standard_normal((2, 300, 300))
    expected = call_kernel("mm", a, b)[0].tobytes()
    wrong = []

    def work():
        for _ in range(15):
            if call_kernel("mm", a, b)[0].tobytes() != expected:
                wrong.append(1)

    workers = [threading.Thread(target=work) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


@pytest.mark.parametrize(("rule", "message"), [
    ("order", "a lock is taken out of order"), ("gil", "the GIL is given up"), ("return", "that is not held")])
def test_debug_builds_assert_the_rules_about_locks(rule, message):
    debug = cygrad.show_config("dicts")["debug"]
    code = f"from cygrad._core.testing import probes; probes.break_a_rule({rule!r}); print('went on')"
    result = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, timeout=60, check=False)
    if debug:
        assert result.returncode == -6
        assert message in result.stderr
    else:
        assert result.stdout.split() == ["went", "on"]
