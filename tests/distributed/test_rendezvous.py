"""Ranks started without mpiexec."""

import os
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from cygrad.distributed import rendezvous
from tests.distributed.ranks import mpiexec

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
BODY = """
import os, sys
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

def work(rank, size, place):
    options = {} if place is None else {"init_method": place, "rank": rank, "world_size": size}
    dist.init_process_group("gloo", **options)
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Linear(2, 1))
    model(torch.full((1, 2), float(dist.get_rank()))).sum().backward()
    total = torch.ones(1) * (rank + 1)
    dist.all_reduce(total)
    if rank == 0:
        print(dist.get_world_size(), dist.get_backend(), total.item(), model.module.weight.grad.tolist())
    dist.barrier()
    dist.destroy_process_group()
"""


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def started(tmp_path, text, arguments=(), **variables):
    (tmp_path / "program.py").write_text(BODY + textwrap.dedent(text))
    # Remove settings of a launcher around the tests.
    surroundings = {name: value for name, value in os.environ.items() if not name.startswith(("PMI", "OMPI", "HYDRA"))}
    return subprocess.Popen(
        [sys.executable, "-m", "cygrad", "program.py", *map(str, arguments)], cwd=tmp_path, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**surroundings, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **variables})


def finished(*processes):
    answers = [process.communicate(timeout=120) for process in processes]
    for process, (_, errors) in zip(processes, answers, strict=True):
        assert process.returncode == 0, errors
    return "".join(output for output, _ in answers)


def is_mpich():
    launcher = mpiexec()
    return launcher is not None and "HYDRA" in subprocess.run(
        [launcher, "--version"], capture_output=True, text=True, check=False).stdout


needs_mpich = pytest.mark.skipif(not is_mpich(), reason="needs MPICH")


@needs_mpich
def test_processes_that_spawn_starts(tmp_path):
    job = started(tmp_path, """
        def begin(rank, size):
            os.environ.update(RANK=str(rank), WORLD_SIZE=str(size))
            work(rank, size, None)

        if __name__ == "__main__":
            torch.multiprocessing.spawn(begin, args=(2,), nprocs=2)
        """, MASTER_ADDR="localhost", MASTER_PORT=str(free_port()))
    assert finished(job) == "2 gloo 3.0 [[0.5, 0.5]]\n"


@needs_mpich
@pytest.mark.parametrize("scheme", ["tcp", "file"])
def test_processes_that_are_told_the_place(tmp_path, scheme):
    place = f"tcp://127.0.0.1:{free_port()}" if scheme == "tcp" else f"file://{tmp_path}/place"
    jobs = [started(tmp_path, "work(int(sys.argv[1]), 3, sys.argv[2])", (rank, place)) for rank in range(3)]
    assert finished(*jobs) == "3 gloo 6.0 [[1.0, 1.0]]\n"


def test_what_is_wanted(monkeypatch):
    for name in ("MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    assert rendezvous.wanted(None, -1, -1) is None and rendezvous.wanted("tcp://a:1", 1, 0) is None
    assert rendezvous.wanted("tcp://a:1", 2, 1) == (2, 1, ("a", 1))
    assert rendezvous.wanted("file:///tmp/x", 2, 1) == (2, 1, "/tmp/x")
    with pytest.raises(ValueError, match="MASTER_ADDR"):
        rendezvous.wanted(None, 2, 0)
    with pytest.raises(ValueError, match="rank must be one of"):
        rendezvous.wanted("tcp://a:1", 2, 2)
    monkeypatch.setenv("MASTER_ADDR", "b")
    monkeypatch.setenv("MASTER_PORT", "7")
    monkeypatch.setenv("WORLD_SIZE", "4")
    monkeypatch.setenv("RANK", "3")
    assert rendezvous.wanted(None, -1, -1) == (4, 3, ("b", 7))


def test_a_place_where_nobody_is():
    with pytest.raises(TimeoutError, match="rank 1 of 2 did not find rank 0"):
        rendezvous.join(2, 1, ("127.0.0.1", free_port()), 0.1)
