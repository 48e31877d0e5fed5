"""
Count instructions per operation by callgrind: ``python -m benchmarks.instructions``.

Unlike times, counts of two runs agree within one percent on a busy machine. A count is the difference of 2n and n
operations, so that overhead cancels. Callgrind emulates a processor without AVX-512, and ignores caches and waiting.

A call of ``os.getpgrp``, which is not called otherwise, makes callgrind dump its counts.
"""

import argparse
import gc
import os
import re
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from itertools import repeat
from pathlib import Path

from .figures import instructions_table, keep
from .measuring import module_command, surroundings
from .workloads import LIBRARIES, Graph, library, needs

MARK = "getpgrp"
COUNT = 500                       # operations; and nodes
NOTHING = "the loop around them"
# title -> a statement, run on the names of `names`
STATEMENTS = {
    NOTHING: "pass",
    "`x * y`, recorded, and dropped": "x * y",
    "`z = z * y`, recorded, kept by the next one": "z = z * y",
    "`x + 1.0`, recorded, and dropped": "x + 1.0",
    "`x * y`, forward and backward": "(x * y).backward(g)",
    "`x.view(2, 2)`, recorded": "x.view(2, 2)",
    "`m.t()`, recorded": "m.t()",
    "`x[0]`, recorded": "x[0]",
    "`m @ m`, 2 × 2, recorded": "m @ m",
    "`x.sum()`, recorded": "x.sum()",
    "`Module.__call__`": "module(x)",
}
WITHOUT_GRAPH = {
    "`x * y`, `no_grad`": "x * y",
    "`x + 1.0`, `no_grad`": "x + 1.0",
    "`x.view(2, 2)`, `no_grad`": "x.view(2, 2)",
    "`m.t()`, `no_grad`": "m.t()",
    "`x[0]`, `no_grad`": "x[0]",
    "`m @ m`, 2 × 2, `no_grad`": "m @ m",
    "`x.sum()`, `no_grad`": "x.sum()",
}
OPTIMIZERS = {f"{kind} step, per parameter": kind for kind in ("SGD", "Adam")}
PHASES = ("build", "plan", "plan and run", "drop")
GRAPH_TITLES = {"build": "chain of `-x`, build, per node", "plan": "plan, per node", "run": "run, per node",
                "drop": "drop, per node"}


# ---- inside of callgrind

def mark():
    """Make callgrind dump its counts."""
    os.getpgrp()


def names(lib):
    """Return the names for statements."""
    class Nothing(lib.nn.Module):
        """Return the argument."""

        def forward(self, x):
            return x
    x, y = (lib.ones(4, requires_grad=True) for _ in range(2))
    return {"x": x, "y": y, "m": lib.ones(2, 2, requires_grad=True), "g": lib.ones(4), "module": Nothing()}


def loop(statement, namespace):
    """Return a function that runs the statement that many times."""
    source = f"def run(times):\n    z = x\n    for _ in repeat(None, times):\n        {statement}\n"
    namespace = {**namespace, "repeat": repeat}
    exec(source, namespace)
    return namespace["run"]


def count(function):
    """Warm up, and run the function with COUNT and 2 COUNT between marks."""
    function(COUNT)
    mark()
    function(COUNT)
    mark()
    function(2 * COUNT)
    mark()


def optimizer(lib, kind):
    """Return a function: one step of many parameters, which are created before the marks."""
    needs(lib, f"optim.{kind}")
    steps = {}
    for number in (COUNT, 2 * COUNT):
        parameters = [lib.nn.Parameter(lib.ones(4)) for _ in range(number)]
        for parameter in parameters:
            parameter.grad = lib.ones(4)
        steps[number] = getattr(lib.optim, kind)(parameters, lr=0.01).step
        steps[number]()
    return lambda number: steps[number]()


def phases(lib):
    """Put marks around the phases of a chain of COUNT and of 2 COUNT nodes."""
    other = lib.ones(4, requires_grad=True)
    for number in (COUNT, COUNT, 2 * COUNT):
        graph = Graph(lib, "chain", number)
        mark()
        graph.build()
        mark()
        root = graph.backward.__self__
        lib.autograd.grad(root, other, retain_graph=True, allow_unused=True)       # runs no node
        mark()
        root.backward()
        mark()
        del root
        graph.destroy()
        mark()


def run_all(name, wanted):
    """Run everything, in the order of `segments`."""
    lib = library(name)
    gc.disable()
    namespace = names(lib)
    for title, statement in STATEMENTS.items():
        if title in wanted:
            count(loop(statement, namespace))
    with lib.no_grad():
        for title, statement in WITHOUT_GRAPH.items():
            if title in wanted:
                count(loop(statement, namespace))
    for title, kind in OPTIMIZERS.items():
        if title in wanted:
            count(optimizer(lib, kind))
    if wanted & set(GRAPH_TITLES.values()):
        phases(lib)


# ---- outside

def titles():
    """Return all titles."""
    return [title for title in (*STATEMENTS, *WITHOUT_GRAPH, *OPTIMIZERS, *GRAPH_TITLES.values()) if title != NOTHING]


def segments(wanted):
    """Return (title, operations) of the segments between marks, None for segments to ignore."""
    found = [None]                                                 # the import, and the first warm-up
    for title in (*STATEMENTS, *WITHOUT_GRAPH, *OPTIMIZERS):
        if title in wanted:
            found += [(title, COUNT), (title, 2 * COUNT), None]
    if wanted & set(GRAPH_TITLES.values()):
        for number in (None, COUNT, 2 * COUNT):
            found += [(phase, number) for phase in PHASES] + [None]
    return found


def counted(name, wanted, folder):
    """Run, and return (title, operations) -> instructions. The profiles stay in the folder."""
    profile = Path(folder) / f"{name}.out"
    command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={profile}", f"--dump-before={MARK}",
               *module_command("instructions", "--inside", name, "--only", *sorted(wanted))]
    answer = subprocess.run(command, env=surroundings(), text=True, stderr=subprocess.PIPE)
    if answer.returncode:
        raise RuntimeError(f"callgrind failed on {name}: {answer.stderr}")
    found = {}
    for number, segment in enumerate(segments(wanted), 1):
        if segment:
            text = Path(f"{profile}.{number}").read_text()
            found[segment] = int(re.search(r"^totals: (\d+)", text, re.MULTILINE)[1])
    return found


def per_operation(found):
    """Return title -> instructions of one operation."""
    costs = {title: (found[title, 2 * COUNT] - found[title, COUNT]) / COUNT
             for title, number in found if number == COUNT}
    around = costs.pop(NOTHING)
    for title in costs:
        if title in STATEMENTS or title in WITHOUT_GRAPH:
            costs[title] -= around
    if "build" in costs:
        costs["run"] = costs.pop("plan and run") - costs["plan"]
        for phase, title in GRAPH_TITLES.items():
            costs[title] = costs.pop(phase)
    return {title: round(cost) for title, cost in costs.items()}


def main():
    """Count and print."""
    parser = argparse.ArgumentParser(description=__doc__.strip().partition("\n")[0])
    parser.add_argument("--only", nargs="+", metavar="TEXT", help="what has one of these texts in its title")
    parser.add_argument("--libraries", nargs="+", choices=LIBRARIES, default=LIBRARIES)
    parser.add_argument("--times", type=int, default=1, help="runs; more than one show how far they differ")
    parser.add_argument("--keep", metavar="FOLDER", help="keep the profiles, for callgrind_annotate")
    parser.add_argument("--write", action="store_true", help="rewrite the committed counts and the documents")
    parser.add_argument("--inside", choices=LIBRARIES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        run_all(options.inside, set(options.only))
        return
    if not shutil.which("valgrind"):
        sys.exit("instructions: valgrind is not installed; its package has the same name in all distributions")
    wanted = {title for title in titles() if any(text in title for text in options.only or [""])} | {NOTHING}
    chosen = [name for name in options.libraries if find_spec(name)]
    with tempfile.TemporaryDirectory() as folder:
        folder = options.keep or folder
        Path(folder).mkdir(exist_ok=True)
        costs = {name: per_operation(counted(name, wanted, folder)) for name in chosen}
        print(instructions_table(costs))
        for _ in range(options.times - 1):
            for name in chosen:
                again = per_operation(counted(name, wanted, folder))
                differ = {title: abs(cost / max(costs[name][title], 1) - 1) for title, cost in again.items()}
                worst = max(differ, key=differ.get)
                print(f"\n{name}, again: at most {differ[worst]:.2%} apart ({worst})")
    if options.keep:
        print(f"\n{folder}: callgrind_annotate --inclusive=yes FILE, where FILE ends in")
        for number, segment in enumerate(segments(wanted), 1):
            if segment and segment[1] == 2 * COUNT:
                print(f"  {number}: {segment[0]}")
    if options.write:
        keep(instructions=costs)


if __name__ == "__main__":
    main()
