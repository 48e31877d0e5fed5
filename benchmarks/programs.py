"""
Processor time of the programs in ``tests/compatibility/programs`` below the stand-in and below PyTorch.

    python -m benchmarks.programs [program ...]

Each runs with one thread in a process of its own, in turns; imports are not counted. The fastest of the rounds counts.
Prints rows for docs/compatibility.md.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROGRAMS = ROOT / "tests" / "compatibility" / "programs"
OPTIONS = {"character_model": [(), ("--model", "Transformer")], "graph_nodes": [(), ("--model", "gat")]}
# What the process does: imports first, then the program, whose processor time it tells.
PROCESS = """
import runpy, sys, time
if sys.argv[1] == "cygrad":
    import cygrad
    cygrad.stand_in()
import numpy, sklearn.datasets, torch, torch.nn.functional, torch.optim, torch.utils.data
torch.optim.SGD([torch.zeros(1, requires_grad=True)], 0.1)          # PyTorch imports more when the first one is made
del sys.argv[:2]
start = time.process_time()
runpy.run_path(sys.argv[0], run_name="__main__")
print("processor time", time.process_time() - start, file=sys.stderr)
"""
ROUNDS = 2


def seconds(path, options, library, folder):
    """Processor time of a program, without imports."""
    done = subprocess.run([sys.executable, "-c", PROCESS, library, str(path), *options], cwd=folder, check=True,
                          capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"})
    return float(done.stderr.rsplit("processor time", 1)[1])


def main(wanted):
    """Print a row for each program: below the stand-in, below PyTorch, and the ratio."""
    with tempfile.TemporaryDirectory() as folder:
        for path in sorted(PROGRAMS.glob("*.py")):
            for options in OPTIONS.get(path.stem, [()]) if not wanted or path.stem in wanted else ():
                rounds = [[seconds(path, options, library, folder) for library in ("cygrad", "torch")]
                          for _ in range(ROUNDS)]
                ours, theirs = (min(times) for times in zip(*rounds, strict=True))
                name = " ".join([path.stem, *options[1:]])
                print(f"| {name} | {ours:.2f} s | {theirs:.2f} s | {ours / theirs:.2f} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
