"""Memory: recycling, alignment, statistics, foreign owners, threads and fork."""

import gc
import itertools
import os
import resource
import subprocess
import sys
import threading
import time
import weakref

import numpy as np
import pytest

import cygrad
from cygrad._core.memory.storage import empty_cache, memory_stats, set_cache_limit
from cygrad._core.testing import probes

SIZES = [0, 1, 8, 56, 57, 64, 120, 1900, 1976, 1977, 2048, 2049, 5000, 100_000, 300_000, 3_000_000, 9_000_001]


@pytest.mark.parametrize("nbytes", SIZES)
def test_storage_is_aligned_and_counted(nbytes):
    before = memory_stats()
    address, size, count, writable, version = probes.storage_facts(nbytes)
    assert address % 64 == 0
    assert (size, count, writable, version) == (nbytes, 1, 1, 0)
    after = memory_stats()
    assert after["small_in_use"] == before["small_in_use"]
    assert after["large_in_use"] == before["large_in_use"]


def test_exhausted_memory_is_reported():
    before = memory_stats()["large_in_use"]
    assert probes.storage_facts(1 << 60) is None
    assert probes.storage_facts(1 << 62) is None
    assert probes.storage_facts(-1) is None
    assert memory_stats()["large_in_use"] == before


@pytest.mark.parametrize("nbytes", [0, 1, 64, 65, 1000, 2048, 2049, 5000])
def test_blocks_are_disjoint_and_counted(nbytes):
    before = memory_stats()
    addresses = probes.allocate_blocks(2000, nbytes)
    assert all(address % 16 == 0 for address in addresses)
    addresses_sorted = sorted(addresses)
    assert all(b - a >= nbytes for a, b in itertools.pairwise(addresses_sorted))
    if nbytes <= 2048:
        assert memory_stats()["small_in_use"] - before["small_in_use"] == 2000 * max(64, -(-nbytes // 64) * 64)
    probes.free_blocks(addresses, nbytes)
    after = memory_stats()
    assert after["small_in_use"] == before["small_in_use"]
    assert after["large_in_use"] == before["large_in_use"]


def test_large_blocks_are_recycled():
    empty_cache()
    first = probes.storage_facts(10_000_000)[0]
    before = memory_stats()
    assert before["large_cached"] >= 10_000_000
    # a little less falls into the same class
    assert probes.storage_facts(9_500_000)[0] == first
    after = memory_stats()
    assert (after["reused"], after["fresh"]) == (before["reused"] + 1, before["fresh"])


def test_empty_cache_returns_memory():
    # In a separate process, because a block of another test would keep its region.
    facts = cygrad.show_config("dicts")
    apart = facts["debug"] or facts["sanitizer"] == "address"          # small blocks are malloc's, not of slabs
    subprocess.run([sys.executable, "-c", f"""
from cygrad._core.testing import probes
from cygrad._core.memory.storage import empty_cache, memory_stats
probes.storage_facts(10_000_000)
blocks = probes.allocate_blocks(100_000, 128)
probes.free_blocks(blocks, 128)
assert empty_cache() >= {10_000_000 if apart else 20_000_000}
stats = memory_stats()
assert stats["large_cached"] == 0
assert stats["small_mapped"] < 12_000_000
"""], check=True)


def test_the_cache_is_bounded():
    limit = memory_stats()["limit"]
    try:
        set_cache_limit(5_000_000)
        probes.storage_facts(4_000_000)
        probes.storage_facts(3_000_000)
        assert 0 < memory_stats()["large_cached"] <= 5_000_000
        probes.storage_facts(50_000_000)
        assert memory_stats()["large_cached"] <= 5_000_000
        set_cache_limit(0)
        assert memory_stats()["large_cached"] == 0
    finally:
        set_cache_limit(limit)
    with pytest.raises(ValueError, match="set_cache_limit: the limit must not be negative"):
        set_cache_limit(-1)


def test_a_large_graph_leaves_little_behind():
    for _ in range(3):
        probes.free_blocks(probes.allocate_blocks(1_500_000, 256), 256)
    # 384 MB were in use; unused regions beyond 128 MiB went back to the system
    assert memory_stats()["small_mapped"] < 200_000_000
    empty_cache()


def run_in_threads(functions):
    threads = [threading.Thread(target=function) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_blocks_freed_by_another_thread():
    before = memory_stats()["small_in_use"]
    for _ in range(20):
        addresses = probes.allocate_blocks(5000, 192)
        run_in_threads([lambda addresses=addresses: probes.free_blocks(addresses, 192)])
    stats = memory_stats()
    assert stats["small_in_use"] == before
    assert stats["small_mapped"] < 20_000_000


def test_short_lived_threads_do_not_grow_memory():
    def work():
        probes.free_blocks(probes.allocate_blocks(50, 320), 320)

    for _ in range(200):
        run_in_threads([work] * 2)
    mapped = memory_stats()["small_mapped"]
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(1000):
        run_in_threads([work] * 2)
    assert memory_stats()["small_mapped"] <= mapped
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - resident < 20_000    # KiB


def test_threads_at_work_together():
    before = memory_stats()["small_in_use"]
    errors = []

    def work(seed):
        generator = np.random.default_rng(seed)
        for nbytes in generator.integers(1, 4000, 300):
            addresses = probes.allocate_blocks(20, int(nbytes))
            if len(set(addresses)) != 20:
                errors.append(seed)
            probes.allocate_and_free(1000, int(nbytes))
            probes.free_blocks(addresses, int(nbytes))
            probes.storage_facts(int(nbytes) * 10)

    run_in_threads([lambda seed=seed: work(seed) for seed in range(8)])
    assert not errors
    assert memory_stats()["small_in_use"] == before


def test_version_counters():
    assert probes.version_facts() == (1, 0)


class Owner(np.ndarray):
    """An ndarray with weak references that reports its deletion."""


def test_foreign_memory_is_released_with_the_gil():
    array = np.arange(6.0).view(Owner)
    reference = weakref.ref(array)
    assert probes.release_without_gil(array) is True
    del array
    assert probes.release_owners() is False
    gc.collect()
    assert reference() is None


def test_the_interpreter_releases_owners_itself():
    array = np.arange(6.0).view(Owner)
    reference = weakref.ref(array)
    probes.release_without_gil(array)
    del array
    deadline = time.monotonic() + 10
    while reference() is not None and time.monotonic() < deadline:
        time.sleep(0.001)
    assert reference() is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_fork_while_other_threads_allocate():
    stop = threading.Event()

    def work():
        while not stop.is_set():
            probes.free_blocks(probes.allocate_blocks(3000, 448), 448)
            probes.storage_facts(50_000)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(20):
            child = os.fork()
            if child == 0:
                probes.free_blocks(probes.allocate_blocks(3000, 448), 448)
                probes.storage_facts(50_000)
                memory_stats()
                empty_cache()
                os._exit(17)
            deadline = time.monotonic() + 60
            pid = 0
            while pid == 0 and time.monotonic() < deadline:
                pid, status = os.waitpid(child, os.WNOHANG)
                time.sleep(0.001)
            if pid == 0:
                os.kill(child, 9)
                os.waitpid(child, 0)
            assert pid == child
            assert os.waitstatus_to_exitcode(status) == 17
    finally:
        stop.set()
        for thread in threads:
            thread.join()
