"""
Compare the scaling over threads of this tree and of another built tree: ``python -m benchmarks.against FOLDER``.

Each tree has a process; they alternate. ``--load 3`` keeps three more processes busy. Rates are medians, ratios medians
of the rounds. Two processes with the same work at the same time show what two cores of this machine can give.
"""

import argparse
import importlib
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from benchmarks.measuring import concurrent_steps
from benchmarks.threads import MANY, at, best, branches, hogwild_steps, models, tiny_graph, with_idle_thread

WINDOW = 0.25                  # seconds per measurement
SLEEP = 1e-3                   # seconds after which a helper sleeps
HERE = Path(__file__).resolve().parents[1]
SERVE = """
import sys
sys.path.insert(0, sys.argv[1])
import cygrad
sys.path[0] = sys.argv[2]
from benchmarks.against import serve
assert cygrad.__file__.startswith(sys.argv[1]), cygrad.__file__
serve(cygrad)
"""


# ---- rates: the more, the better

def branch_rate(lib):
    run = branches(lib)
    return lambda: 1 / at(lib, 2, best, run)


def steps_rate(make, count, own_threads=1):
    def rate(lib):
        steps = make(lib, count)
        for step in steps:
            step()
        return lambda: at(lib, own_threads, concurrent_steps, steps, WINDOW)
    return rate


def tiny_rate(threads, measure, *times):
    def rate(lib):
        run = tiny_graph(lib)
        return lambda: 1 / at(lib, threads, measure, run, *times)
    return rate


def waking_rate(pause):
    """Return complete teams of two per second, with a helper that sleeps or spins before each."""
    def rate(lib):
        for name in ("testing.probes", "probes"):         # its former name
            try:
                probes = importlib.import_module(f"cygrad._core.{name}")
            except ImportError:
                continue
            break

        def sample():
            lib.set_num_threads(2)
            taken = []
            for _ in range(100):
                time.sleep(pause)
                begin = time.perf_counter()
                probes.assemble_teams(1, 2)
                taken.append(time.perf_counter() - begin)
            return 1 / median(taken)
        return sample
    return rate


ROWS = {
    "8 branches, backward, 2 threads": branch_rate,
    **{f"MLP, batch {batch}, {count} Python threads{' of 2' if own > 1 else ''}": steps_rate(models(batch), count, own)
       for batch in (256, 64) for count, own in ((1, 1), (2, 1), (4, 1), (4, 2))},
    **{f"Hogwild, batch 256, {count} Python threads": steps_rate(hogwild_steps, count) for count in (1, 2)},
    "tiny graph": tiny_rate(1, best, MANY),
    "tiny graph, set_num_threads(2)": tiny_rate(2, best, MANY),
    "tiny graph, a second idle thread": tiny_rate(1, with_idle_thread),
    "wake a helper that sleeps": waking_rate(SLEEP),
    "call a helper that watches": waking_rate(0),
}


def serve(lib):
    """Measure what standard input names, one sample per line."""
    samples = {}
    for line in sys.stdin:
        title = line.strip()
        if title not in samples:
            samples[title] = ROWS[title](lib)
            samples[title]()
        print(samples[title](), flush=True)


class Tree:
    """A process with the package of a tree."""

    def __init__(self, folder):
        self.process = subprocess.Popen([sys.executable, "-P", "-c", SERVE, str(folder), str(HERE)], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, title):
        print(title, file=self.process.stdin, flush=True)

    def answer(self):
        return float(self.process.stdout.readline())

    def sample(self, title):
        self.ask(title)
        return self.answer()


def together(trees, title):
    """Return the sum of the rates of several concurrent processes."""
    for tree in trees:
        tree.ask(title)
    return sum(tree.answer() for tree in trees)


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.strip().partition("\n")[0])
    parser.add_argument("folder", type=Path, help="of the other tree")
    parser.add_argument("--rounds", type=int, default=7, help="samples of each rate (default: 7)")
    parser.add_argument("--load", type=int, default=0, help="busy processes meanwhile (default: none)")
    parser.add_argument("--only", default="", help="rows whose title contains this")
    options = parser.parse_args()
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(options.load)]
    trees = [Tree(HERE), Tree(options.folder.resolve())]
    found = {}
    try:
        print(f"| {options.rounds} rounds, {options.load} busy processes | now, 1/s | other | now / other |\n"
              "|---|---:|---:|---:|")
        for title in ROWS:
            if options.only in title:
                pairs = found[title] = [[tree.sample(title) for tree in trees] for _ in range(options.rounds)]
                now, other = (median(side) for side in zip(*pairs, strict=True))
                print(f"| {title} | {now:,.1f} | {other:,.1f} | {median(a / b for a, b in pairs):.3f} |", flush=True)
        for title, pairs in found.items():
            alone = found.get(title.replace(" 2 Python", " 1 Python"))
            if " 2 Python" in title and alone:
                gains = [median(pair[side] for pair in pairs) / median(pair[side] for pair in alone) for side in (0, 1)]
                title = title.replace(" 2 Python", " 1 Python")
                trees += [] if len(trees) > 2 else [Tree(HERE)]
                apart = [together(trees[::2], title) / trees[0].sample(title) for _ in range(options.rounds + 1)][1:]
                print(f"{title.rpartition(',')[0]}: 2 Python threads / 1 {gains[0]:.2f}, other tree {gains[1]:.2f}; "
                      f"two processes / one {median(apart):.2f}", flush=True)
    finally:
        for process in (*busy, *(tree.process for tree in trees)):
            process.kill()


if __name__ == "__main__":
    main()
