"""
Compare DistributedDataParallel with PyTorch's on gloo, and all_reduce with mpi4py's: ``python -m benchmarks.ranks``.

Starts itself under ``mpiexec`` with 1, 2 and 4 ranks. Both libraries run alternately in the same processes, with one
thread each; numbers are medians. Ranks beyond the number of cores wait for each other's time slices.
"""

import argparse
import os
import subprocess
import sys
import time
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from statistics import median

import numpy as np

import cygrad
from cygrad import distributed
from cygrad.nn.parallel import DistributedDataParallel

MODELS = {"MLP 784-256-128-10, batch 64": ((784, 256, 128, 10), 64),
          "MLP 1024-4096-1024, batch 64": ((1024, 4096, 1024), 64)}
SIZES = [2 ** power for power in (10, 13, 16, 18, 20, 22, 24, 26)]      # bytes
STEPS, TURNS = 10, 15
GIVEN = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMP_NUM_THREADS": "1",
         "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe", "OMPI_MCA_rmaps_base_oversubscribe": "1",
         "MASTER_ADDR": "127.0.0.1"}


def stepper(lib, wrap, sizes, batch):
    """Return a model, and a function: one step of SGD on this rank's batch."""
    lib.manual_seed(0)
    layers = [layer for pair in pairwise(sizes) for layer in (lib.nn.Linear(*pair), lib.nn.ReLU())]
    model = wrap(lib.nn.Sequential(*layers[:-1]))
    optimizer = lib.optim.SGD(model.parameters(), lr=1e-3)
    random = np.random.default_rng(distributed.get_rank())
    x = lib.from_numpy(random.standard_normal((batch, sizes[0])).astype(np.float32))
    classes = lib.from_numpy(random.integers(0, sizes[-1], batch))

    def step():
        optimizer.zero_grad()
        lib.nn.functional.cross_entropy(model(x), classes).backward()
        optimizer.step()
    return model, step


def seconds(step, times):
    """Return the seconds of one call that all ranks begin together, on the slowest rank."""
    distributed.barrier()
    begin = time.perf_counter()
    for _ in range(times):
        step()
    found = cygrad.tensor([(time.perf_counter() - begin) / times], dtype=cygrad.float64)
    distributed.all_reduce(found, distributed.ReduceOp.MAX)
    return found.item()


def in_turns(players, times, turns):
    """Return name -> seconds of one call in each round, after a warm-up; the first library alternates."""
    samples = {name: [] for name in players}
    for turn in range(turns + 1):
        for name in list(players)[::1 if turn % 2 else -1]:
            found = seconds(players[name], times)
            if turn:
                samples[name].append(found)
    return samples


def silent(model, step):
    """Return the step without communication."""
    def run():
        with model.no_sync():
            step()
    return run


def torch_wrap():
    """Return PyTorch's DistributedDataParallel on gloo, with the ranks of MPI; None without PyTorch."""
    if find_spec("torch") is None:
        return None, None
    import torch
    import torch.distributed
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", rank=distributed.get_rank(), world_size=distributed.get_world_size())
    return torch, torch.nn.parallel.DistributedDataParallel


def training(say):
    """Measure steps of each model: computation, hidden and exposed communication, and PyTorch's."""
    torch, wrap = torch_wrap()
    for title, (sizes, batch) in MODELS.items():
        model, step = stepper(cygrad, DistributedDataParallel, sizes, batch)
        views, with_views = stepper(
            cygrad, lambda module: DistributedDataParallel(module, gradient_as_bucket_view=True), sizes, batch)
        buffers = [bucket.flat for bucket in model._reducer.buckets]
        players = {"step": step, "computing": silent(model, step), "views": with_views,
                   "communication": lambda buffers=buffers: [distributed.all_reduce(buffer) for buffer in buffers]}
        if torch is not None:
            players["torch"] = stepper(torch, wrap, sizes, batch)[1]
        times = STEPS if sizes[1] < 1000 else 2
        samples = in_turns(players, times, TURNS if sizes[1] < 1000 else 7)
        middle = {name: median(values) * 1e6 for name, values in samples.items()}
        exposed = max(0.0, middle["step"] - middle["computing"])
        hidden = max(0.0, middle["communication"] - exposed)
        ratio = median(b / a for a, b in zip(samples["step"], samples["torch"], strict=True)) if torch else float("nan")
        say(f"| {title} | {distributed.get_world_size()} | {middle['step']:,.0f} | {middle['views']:,.0f} | "
            f"{middle['computing']:,.0f} | {exposed:,.0f} | {hidden:,.0f} | {middle.get('torch', float('nan')):,.0f} | "
            f"{ratio:.2f} |")
        del views
    if torch is not None:
        torch.distributed.destroy_process_group()


def bandwidth(say):
    """Measure all_reduce of each size, and mpi4py's Allreduce on the same memory."""
    from mpi4py import MPI
    for size in SIZES:
        tensor = cygrad.zeros(size // 4)
        array = tensor.numpy()
        samples = in_turns({"ours": lambda tensor=tensor: distributed.all_reduce(tensor),
                            "mpi4py": lambda array=array: MPI.COMM_WORLD.Allreduce(MPI.IN_PLACE, array)},
                           max(2, min(50, 2 ** 22 // size)), TURNS if size > 2 ** 20 else 7 * TURNS)
        ours, theirs = median(samples["ours"]), median(samples["mpi4py"])
        ratio = median(b / a for a, b in zip(samples["ours"], samples["mpi4py"], strict=True))
        say(f"| {size / 1024:,.0f} | {distributed.get_world_size()} | {ours * 1e6:,.1f} | {theirs * 1e6:,.1f} | "
            f"{size / ours / 1e6:,.0f} | {ratio:.2f} |")


PARTS = {
    "training": (training, "| model | ranks | step, µs | with bucket views | computing | exposed | hidden | PyTorch "
                           "| ratio |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|"),
    "bandwidth": (bandwidth, "| KiB | ranks | all_reduce, µs | mpi4py | MB/s | ratio |\n"
                             "|---:|---:|---:|---:|---:|---:|"),
}


def main():
    """Start the ranks, or run as one."""
    parser = argparse.ArgumentParser(description=__doc__.strip().partition("\n")[0])
    parser.add_argument("--ranks", type=int, nargs="*", default=[1, 2, 4], help="how many (default: 1 2 4)")
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=list(PARTS))
    parser.add_argument("--here", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        distributed.init_process_group("mpi")
        cygrad.set_num_threads(1)
        PARTS[options.here][0](lambda line: print(line, flush=True) if distributed.get_rank() == 0 else None)
        return
    launcher = Path(sys.executable).with_name("mpiexec")
    for part in options.parts:
        print(PARTS[part][1], flush=True)
        for n in options.ranks:
            if part == "bandwidth" and n == 1:
                continue
            subprocess.run([str(launcher) if launcher.exists() else "mpiexec", "-n", str(n), sys.executable, "-m",
                            "benchmarks.ranks", "--here", part], check=True,
                           env={**os.environ, **GIVEN, "MASTER_PORT": str(20000 + os.getpid() % 20000 + n)})
        print(flush=True)


if __name__ == "__main__":
    main()
