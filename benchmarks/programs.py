"""
Processor time of whole programs with cygrad in place of PyTorch, and with PyTorch.

    python -m benchmarks.programs [program ...]          # the programs in tests/compatibility/programs
    python -m benchmarks.programs --packages [--write]   # uses of other packages, see benchmarks/packages.py

Each runs with one thread in a process, alternately, without imports; the fastest round counts. Prints rows for
docs/compatibility.md: times, and PyTorch's relative to cygrad's. `--write` writes the figures of the packages to
benchmarks/programs.json and draws the plot of the README.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from importlib.metadata import version
from math import exp, log
from pathlib import Path
from statistics import mean

from .packages import USES

ROOT = Path(__file__).resolve().parents[1]
PROGRAMS = ROOT / "tests" / "compatibility" / "programs"
OPTIONS = {"character_model": [(), ("--model", "Transformer")], "graph_nodes": [(), ("--model", "gat")]}
FIGURES = ROOT / "benchmarks" / "programs.json"
PICTURE = ROOT / "docs" / "_static" / "programs.svg"
# The process imports the libraries, and prints the processor time of the program.
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
# A use of a package: once for its imports and caches, then three times.
PACKAGE_PROCESS = """
import sys, time, warnings
warnings.simplefilter("ignore")
if sys.argv[1] == "cygrad":
    import cygrad
    cygrad.stand_in()
import torch
from benchmarks.packages import USES
torch.set_num_threads(1)
times = []
for _ in range(4):
    torch.manual_seed(0)
    start = time.process_time()
    USES[sys.argv[2]]()
    times.append(time.process_time() - start)
print("processor time", min(times[1:]), file=sys.stderr)
"""
ROUNDS = 2


def seconds(process, library, arguments, folder):
    """Return the processor time of a program, without imports."""
    done = subprocess.run([sys.executable, "-c", process, library, *arguments], cwd=folder, check=True,
                          capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"})
    return float(done.stderr.rsplit("processor time", 1)[1])


def measured(process, arguments, folder):
    """Return the times of cygrad and PyTorch in their fastest rounds, which alternate."""
    rounds = [[seconds(process, library, arguments, folder) for library in ("cygrad", "torch")] for _ in range(ROUNDS)]
    return [min(times) for times in zip(*rounds, strict=True)]


def row(name, ours, theirs):
    """Return a line of the table: times, and PyTorch's relative to cygrad's."""
    return f"| {name} | {ours:.2f} s | {theirs:.2f} s | {theirs / ours:.1f} |"


def measure_programs(wanted):
    """Print a row for each program."""
    with tempfile.TemporaryDirectory() as folder:
        for path in sorted(PROGRAMS.glob("*.py")):
            for options in OPTIONS.get(path.stem, [()]) if not wanted or path.stem in wanted else ():
                name = " ".join([path.stem, *options[1:]])
                print(row(name, *measured(PROCESS, [str(path), *options], folder)), flush=True)


def measure_packages(wanted, write):
    """Print a row for each use of a package, and the geometric mean."""
    lines = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in wanted or USES:
            lines[name] = measured(PACKAGE_PROCESS, [name], folder)
            print(row(name, *lines[name]), flush=True)
    print(f"geometric mean: {geometric_mean(lines):.1f}")
    if write:
        found = {"about": circumstances(), "lines": lines}
        FIGURES.write_text(json.dumps(found, indent=1) + "\n")
        draw(found)


def geometric_mean(lines):
    """Return the geometric mean of the ratios of PyTorch's times to cygrad's."""
    return exp(mean(log(theirs / ours) for ours, theirs in lines.values()))


def circumstances():
    """Return the machine and the versions, in a line."""
    models = [line.partition(":")[2].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
              if line.startswith("model name")]
    return (f"{models[0] if models else 'unknown processor'}, one thread; cygrad {version('cygrad')}, "
            f"PyTorch {version('torch')}, Python {sys.version.split()[0]}")


def draw(found):
    """Draw the plot of the README: PyTorch's time relative to cygrad's, a bar per program."""
    import matplotlib
    from matplotlib.figure import Figure
    matplotlib.rcParams.update({"svg.hashsalt": "cygrad", "svg.fonttype": "none"})   # equal figures make equal files
    lines = sorted(found["lines"].items(), key=lambda line: line[1][0] / line[1][1])
    ratios = [theirs / ours for _, (ours, theirs) in lines]
    figure = Figure(figsize=(8, 0.7 + 0.28 * len(lines)), layout="constrained")
    axes = figure.add_subplot()
    axes.barh(range(len(lines)), ratios, color="#22577a")
    axes.axvline(1, color="#333333", linewidth=1)
    for position, ratio in enumerate(ratios):
        axes.text(ratio + 0.08, position, f"{ratio:.1f}", va="center", fontsize=9)
    axes.set_yticks(range(len(lines)), [name for name, _ in lines])
    axes.invert_yaxis()
    axes.set_xlim(0, 1.1 * max(ratios))
    axes.set_xlabel("PyTorch's processor time relative to cygrad's (more than 1: cygrad is faster)\n" + found["about"],
                    fontsize=8)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    PICTURE.parent.mkdir(exist_ok=True)
    figure.savefig(PICTURE, facecolor="white", metadata={"Date": None})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Processor time of whole programs, compared with PyTorch.")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--packages", action="store_true", help="uses of other packages instead of whole programs")
    parser.add_argument("--write", action="store_true", help="keep the figures and draw the plot")
    options = parser.parse_args()
    if options.packages:
        measure_packages(options.names, options.write)
    else:
        measure_programs(options.names)
