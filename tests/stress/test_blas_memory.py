"""OpenBLAS, which ends the process without memory, has buffers from the start, or calls wait."""

import pytest

from tests.tools import run_program

LITTLE = """
import resource, threading
import cygrad
cygrad.set_num_threads(4)
a, b = cygrad.ones(600, 600), cygrad.eye(150, dtype=cygrad.float64)
calls = [lambda: (a @ a).sum(), lambda: (a @ a[0]).sum(), lambda: cygrad.linalg.inv(b).sum(),
         lambda: cygrad.linalg.svd(b)[1].sum(), lambda: cygrad.linalg.eigh(b)[0].sum(),
         lambda: cygrad.linalg.qr(b)[0].sum(), lambda: cygrad.linalg.cholesky(b).sum(),
         lambda: cygrad.nn.functional.linear(a, a).sum()]
cygrad.nn, cygrad.linalg
with open("/proc/self/statm") as facts:
    now = int(facts.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (now + (MIB << 20), resource.RLIM_INFINITY))
"""


@pytest.mark.parametrize("mib", [4, 16, 40, 63])
def test_products_and_factorizations_with_little_memory(mib):
    """They are computed or raise MemoryError."""
    assert run_program(LITTLE.replace("MIB", str(mib)) + """
for call in calls:
    try:
        call()
    except MemoryError:
        pass
print("done")
""") == ["done"]


@pytest.mark.parametrize("mib", [70, 150])
def test_threads_wait_for_each_other(mib):
    assert run_program(LITTLE.replace("MIB", str(mib)) + """
import sys
ended = []
def compute():
    for _ in range(20):
        for call in calls[:4]:
            try:
                call()
            except MemoryError:
                pass
    ended.append(1)
threads = []
try:
    for _ in range(4):
        threads.append(threading.Thread(target=compute))
        threads[-1].start()
except (RuntimeError, MemoryError):
    threads.pop()
for thread in threads:
    thread.join()
print(len(ended) == len(threads))
""") == ["True"]
