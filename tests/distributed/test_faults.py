"""Failures: exceptions, exits, missing ranks, signals, and restarting a job."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from .ranks import ROOT, Job, mpiexec, run

pytestmark = [pytest.mark.slow, pytest.mark.skipif(mpiexec() is None, reason="MPI is not installed")]

HEAD = """
import os, sys, time
import cygrad as torch
dist = torch.distributed
dist.init_process_group("mpi", timeout=float(os.environ.get("LIMIT", "100")))
rank, n = dist.get_rank(), dist.get_world_size()
"""


def program(folder, text):
    path = folder / "program.py"
    path.write_text(HEAD + text)
    return [path]


def fails(folder, text, n=2, limit=40, **environment):
    code, out, error = run(n, program(folder, text), limit, environment=environment)
    assert code != 0, f"{out}\n{error}"
    return error


def test_an_exception_ends_all_ranks(tmp_path):
    """Its traceback is all there is: the others wait in a collective and say nothing."""
    error = fails(tmp_path, """
def careless():
    if rank == 1: raise KeyError("no such thing")
careless()
dist.all_reduce(torch.ones(3))
""", 4)
    assert error.index("rank 1 of 4 failed") < error.index("Traceback") < error.index("in careless")
    assert error.count("Traceback") == 1
    assert "KeyError: 'no such thing'" in error


def test_an_exception_in_backward(tmp_path):
    error = fails(tmp_path, """
from cygrad import nn
model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1)), bucket_cap_mb=1e-5)
def hook(grad):
    if rank == 0: raise ZeroDivisionError("in a hook")
model.module[0].weight.register_hook(hook)
model(torch.ones(2, 4)).sum().backward()
""")
    assert "rank 0 of 2 failed" in error and "ZeroDivisionError: in a hook" in error


@pytest.mark.parametrize("how", ["sys.exit(3)", "sys.exit()", "pass"])
def test_a_rank_that_leaves_is_missed(tmp_path, how):
    error = fails(tmp_path, f"""
if rank == 1:
    {how}
else:
    dist.all_reduce(torch.ones(3))
""")
    assert "all_reduce: Rank 1 has left the job (got a wait of rank 0 in all_reduce, number 1" in error


def test_the_time_is_up(tmp_path):
    """It names the rank, the operation, the bucket, and the missing ranks."""
    begin = time.monotonic()
    error = fails(tmp_path, """
from cygrad import nn
model = nn.parallel.DistributedDataParallel(nn.Linear(4, 1))
if rank == 2: time.sleep(1000)
if rank == 3: dist.barrier(async_op=True).wait(60)
model(torch.ones(2, 4)).sum().backward()
""", 4, LIMIT="4")
    assert time.monotonic() - begin < 30
    assert re.search(r"all_reduce: timeout \(got 4 seconds on rank [01] in all_reduce, number 3 ", error)
    assert "bucket 0 (bias ... weight)). Ranks 2, 3 have not arrived. Rank 3 was last seen waiting in barrier" in error


def test_messages_that_do_not_come(tmp_path):
    error = fails(tmp_path, """
if rank == 0: dist.recv(torch.ones(3), 1, tag=4)
else: time.sleep(1000)
""", LIMIT="1")
    assert "recv: timeout (got 1 seconds on rank 0 in recv, a message of the default group, " in error
    assert "from rank 1 with tag 4). Rank 1 has not arrived" in error


@pytest.mark.parametrize(("calls", "words"), [
    ("dist.all_reduce(torch.ones(2 + rank))",
     "rank 0: all_reduce(float32[2], SUM); rank 1: all_reduce(float32[3], SUM)"),
    ("dist.all_reduce(torch.ones(2).to(torch.float64 if rank else torch.float32))", "all_reduce(float64[2], SUM)"),
    ("dist.all_reduce(torch.ones(2), dist.ReduceOp.MAX if rank else dist.ReduceOp.SUM)", "all_reduce(float32[2], MAX)"),
    ("dist.broadcast(torch.ones(2), src=rank)", "rank 0: broadcast(float32[2], 0); rank 1: broadcast(float32[2], 1)"),
    ("dist.barrier() if rank else dist.all_reduce(torch.ones(2))", "rank 1: barrier()"),
])
def test_debug_mode_names_what_differs(tmp_path, calls, words):
    error = fails(tmp_path, f"""
dist.all_reduce(torch.ones(5))
dist.all_gather_object([None] * n, "x" * 10 * rank)
{calls}
""", CYGRAD_DISTRIBUTED_DEBUG="1")
    assert "must call the same collective (got " in error and words in error


def test_every_rank_names_dtypes_and_shapes_that_differ_without_a_switch(tmp_path):
    code, out, error = run(2, program(tmp_path, """
a, b = torch.ones(2), torch.ones(2 + rank)
other = b.to(torch.float64 if rank else torch.float32)
for call in (lambda: dist.all_reduce(b), lambda: dist.all_reduce(torch.ones(2, dtype=other.dtype)),
             lambda: dist.broadcast(b, 0), lambda: dist.reduce(b, 0),
             lambda: dist.all_gather([torch.empty_like(b)] * 2, b),
             lambda: dist.all_gather_into_tensor(torch.empty(2, 2 + rank), b),
             lambda: dist.reduce_scatter_tensor(torch.empty(2 + rank), torch.ones(4 + 2 * rank)),
             lambda: dist.scatter(b, [a, a] if rank == 0 else None, 0),
             lambda: dist.gather(b, [a, a] if rank == 0 else None, 0),
             lambda: dist.all_to_all_single(torch.ones_like(torch.ones(4, dtype=other.dtype)),
                                            torch.ones(4, dtype=other.dtype)),
             lambda: dist.all_reduce(a) if rank else dist.broadcast(a, 0),
             lambda: dist.all_reduce(a, dist.ReduceOp.MAX if rank else dist.ReduceOp.SUM)):
    try:
        call()
    except RuntimeError as error:
        assert "rank 0: " in str(error) and "rank 1: " in str(error), error
    else:
        raise AssertionError("nothing is raised")
    dist.all_reduce(a)                     # the group can still be used
assert a.tolist() == [2.0**12] * 2
print("done")
"""))
    assert (code, out.count("done")) == (0, 2), error


def test_debug_mode_while_training(tmp_path):
    code, out, error = run(2, program(tmp_path, """
from cygrad import nn
model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)), deterministic=True,
                                            bucket_cap_mb=1e-5, find_unused_parameters=True)
for _ in range(3):
    model(torch.randn(2, 4)).sum().backward()
print("done")
"""), environment={"CYGRAD_DISTRIBUTED_DEBUG": "1"})
    # What ranks print at one time, the launcher may mix.
    assert (code, out.count("done")) == (0, 2), error


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("to", ["mpiexec", "rank"])
def test_signals_end_all_ranks(tmp_path, number, to):
    """Return whether they come to mpiexec or to one rank, which may be waiting for the others."""
    job = Job(2, program(tmp_path, """
print("ready", flush=True)
if rank == 0: dist.barrier()
while True: time.sleep(0.01)
"""))
    job.wait_for("ready", 2)
    time.sleep(0.3)
    begin = time.monotonic()
    os.kill(job.process.pid if to == "mpiexec" else min(job.ranks()), number)
    code, _, _ = job.end(20)
    assert code != 0
    assert time.monotonic() - begin < 15


TRAINING = """
from cygrad import nn, optim
from cygrad.distributed import checkpoint
from cygrad.utils.data import DistributedSampler
torch.manual_seed(1)
model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)))
optimizer = optim.Adam(model.parameters(), lr=0.01)
path, first = os.path.join(os.path.dirname(__file__), "job.checkpoint"), 0
if os.path.exists(path):
    found = checkpoint.load(checkpoint_id=path)
    model.load_state_dict(found["model"]); optimizer.load_state_dict(found["optimizer"]); first = found["epoch"]
x = torch.linspace(-1, 1, 256).reshape(64, 4)
sampler = DistributedSampler(x, seed=3)
for epoch in range(first, 12):
    sampler.set_epoch(epoch)
    for start in range(0, len(sampler), 8):
        part = x[torch.tensor(list(sampler)[start:start + 8])]
        optimizer.zero_grad()
        loss = (model(part) - part.sum(1, keepdim=True).sin()).square().mean()
        loss.backward()
        optimizer.step()
    dist.all_reduce(loss.detach())
    if rank == 0: print(epoch, loss.item().hex(), flush=True)
    checkpoint.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch + 1},
                    checkpoint_id=path)
    if os.environ.get("SLOW"): time.sleep(0.3)
"""


def losses(out):
    """Return epoch -> loss in hexadecimal, from output mixed with that of mpiexec."""
    return dict(re.findall(r"^(\d+) (\S+)$", out, re.MULTILINE))


def test_a_killed_job_goes_on(tmp_path):
    """After a rank is killed, a restart from the checkpoint gives the same losses."""
    (tmp_path / "whole").mkdir()
    code, out, error = run(2, program(tmp_path / "whole", TRAINING))
    assert code == 0, error
    expected = losses(out)
    assert len(expected) == 12
    job = Job(2, program(tmp_path, TRAINING), environment={"SLOW": "1"})
    seen = job.wait_for("\n", 3)
    os.kill(max(job.ranks()), signal.SIGKILL)
    code, out, _ = job.end(30)
    assert code != 0
    before = losses(seen + out)
    code, out, error = run(2, program(tmp_path, TRAINING))
    assert code == 0, error
    assert 0 < len(losses(out)) < 12                              # it did go on
    assert {**before, **losses(out)} == expected
    assert {path.name for path in tmp_path.iterdir()} >= {"job.checkpoint", "program.py"}


def test_checkpoints_that_cannot_be_written(tmp_path):
    """All ranks hear of it; what was there stays."""
    code, out, error = run(2, program(tmp_path, """
from cygrad.distributed import checkpoint
folder = os.path.dirname(__file__)
path = os.path.join(folder, "state")
checkpoint.save({"a": torch.ones(2) * (rank + 1), "inner": {"b": 1}}, checkpoint_id=path)
for wrong in (lambda: checkpoint.save({"a": object()}, checkpoint_id=path),
              lambda: checkpoint.save({}, checkpoint_id=os.path.join(folder, "missing", "state")),
              lambda: checkpoint.load(checkpoint_id=os.path.join(folder, "missing"))):
    try: wrong()
    except RuntimeError as error: assert "rank 0 failed" in str(error), error
    else: assert False
target = {"a": torch.zeros(2), "inner": {"b": 0}}
tensor = target["a"]
assert checkpoint.load(target, checkpoint_id=path)["inner"] == {"b": 1}
assert tensor.tolist() == [1, 1] and target["inner"]["b"] == 1
for wrong in ({"a": torch.zeros(3)}, {"c": 1}):
    try: checkpoint.load(wrong, checkpoint_id=path)
    except ValueError as error: assert "checkpoint.load: state_dict" in str(error)
    else: assert False
if rank == 0: print(sorted(os.listdir(folder)))
"""))
    assert code == 0, error
    assert out == "['program.py', 'state']\n"


def test_threads_of_a_rank(tmp_path):
    """The cores that it may use, shared with the ranks that may use them, too."""
    text = """
import json
found = [None] * n
dist.all_gather_object(found, (sorted(os.sched_getaffinity(0)), torch.get_num_threads()))
if rank == 0: print(json.dumps(found))
"""
    cores = len(os.sched_getaffinity(0))
    for settings, expected in (({"OMP_NUM_THREADS": ""}, lambda own, affinities: max(1, int(sum(
            1 / sum(core in mask for mask, _ in affinities) for core in own) + 1e-6))),
                               ({"OMP_NUM_THREADS": "3"}, lambda own, affinities: 3)):
        path = program(tmp_path, text)
        if not settings["OMP_NUM_THREADS"]:
            path[0].write_text("import os; del os.environ['OMP_NUM_THREADS']\n" + path[0].read_text())
        code, out, error = run(2, path, environment=settings)
        assert code == 0, error
        affinities = json.loads(out)
        assert [n_threads for _, n_threads in affinities] == [expected(own, affinities) for own, _ in affinities]
        assert cores > 0


def test_alone(tmp_path):
    """Without mpiexec, and without mpi4py: a world of one runs the same program."""
    text = TRAINING.replace("range(first, 12)", "range(first, 2)") + "\nprint(dist.get_world_size())"
    hidden = tmp_path / "hidden" / "mpi4py"
    hidden.mkdir(parents=True)
    (hidden / "__init__.py").write_text("raise ImportError('hidden')")
    for path in (str(ROOT), os.pathsep.join([str(hidden.parent), str(ROOT)])):
        done = subprocess.run([sys.executable, *program(tmp_path, text)], capture_output=True, text=True, timeout=60,
                              env={**os.environ, "PYTHONPATH": path}, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[-1] == "1"
    done = subprocess.run([sys.executable, *program(tmp_path, text)], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "PYTHONPATH": path, "PMI_SIZE": "4"}, check=False)
    assert "mpi4py is required for 4 ranks" in done.stderr
