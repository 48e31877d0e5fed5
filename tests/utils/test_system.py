"""Services of the operating system, and their fallbacks."""

import os

import pytest

import cygrad
from cygrad import _system
from cygrad.multiprocessing import memory


def test_cores_are_those_of_the_process_or_of_the_machine(monkeypatch):
    assert _system.usable_cores() == os.sched_getaffinity(0)
    monkeypatch.delattr(os, "sched_getaffinity")
    assert _system.usable_cores() == set(range(os.cpu_count()))


@pytest.mark.parametrize("has_memfd", [True, False])
def test_a_shared_tensor_lies_in_a_file_without_a_name(monkeypatch, has_memfd):
    if not has_memfd:
        monkeypatch.delattr(os, "memfd_create")
    x = memory.share(cygrad.arange(1000.0))
    with open(os.dup(memory.region_of(x).descriptor), "rb") as file:
        assert os.fstat(file.fileno()).st_nlink == 0
        assert file.read(8) == x[:2].numpy().tobytes()
