"""
Libraries that alternate, each in a process.

A process is pinned to as many cores as its library may have threads before anything is imported, because some libraries
count cores only then. Requests and answers are JSON objects, one per line; a waiting process needs no core. A turn ends
when all threads sleep, because some libraries spin for tens of milliseconds. So load of the machine affects all
libraries alike, and none runs next to the threads of another.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from .measuring import (
    calls_in_a_sample,
    module_command,
    peak_bytes,
    resident_bytes,
    seconds_per_call,
    surroundings,
    use_cores,
)

LARGEST_SAMPLE = 1.5              # seconds above which rounds are few
# In a bare interpreter: seconds and bytes of an import.
IMPORT = """
import os, sys, time
def resident():
    with open("/proc/self/statm") as pages:
        return int(pages.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
before, begin = resident(), time.perf_counter()
for name in sys.argv[1:]:
    __import__(name)
print([time.perf_counter() - begin, resident() - before])
"""
LONGEST_REST = 1.0                # seconds to wait for sleeping threads
STEPS = 20_000                    # training steps to measure the growth of memory
DEEP = 1_000_000                  # nodes of the chain whose memory is measured


# ---- the process of a library

def prepared(made):
    """Return (preparation or None, function) of a scenario."""
    return made if isinstance(made, tuple) else (None, made)


def serve(name, threads):
    """Answer requests: `{"scenario": key}` prepares, `{"calls": n, "clock": name}` measures."""
    answers, sys.stdout = sys.stdout, sys.stderr
    use_cores(threads)
    from .scenarios import COMPILED, EVERY, FAST, TORCH_COMPILED
    from .workloads import library

    lib = prepare = function = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if "scenario" in request:
                prepare = function = None
                lib = lib or library({COMPILED: "cygrad", FAST: "cygrad", TORCH_COMPILED: "torch"}.get(name, name),
                                     threads)
                prepare, function = prepared(EVERY[request["scenario"]].make(lib))
                if name in (COMPILED, FAST, TORCH_COMPILED):
                    function = lib.compile(function, mode="fast" if name == FAST else None)
                for _ in range(4):                   # warm up compilers, caches and pools
                    seconds = seconds_per_call(function, 1, prepare)
                answer = {"seconds": seconds}
            else:
                clock = getattr(time, request["clock"])
                answer = {"seconds": seconds_per_call(function, request["calls"], prepare, clock)}
        except NotImplementedError as error:
            answer = {"missing": str(error)}
        print(json.dumps(answer), file=answers, flush=True)


def measure(what, name, threads):
    """Measure a whole process: seconds or bytes."""
    use_cores(threads)
    import gc

    from .networks import deep_training_step, training_step
    from .workloads import Graph, library

    lib = library(name, threads)
    before = resident_bytes()
    if what in ("peak", "peak_beyond_import"):
        step = deep_training_step(lib)
        for _ in range(5):
            step()
        return peak_bytes() - (before if what == "peak_beyond_import" else 0)
    if what == "node_memory":
        Graph(lib, "chain", 1000).build()
        graph = Graph(lib, "chain", DEEP)
        gc.collect()
        gc.disable()
        before = resident_bytes()
        graph.build()
        return (resident_bytes() - before) / DEEP
    step = training_step(lib)                        # growth
    for _ in range(1000):
        step()
    gc.collect()
    before = resident_bytes()
    for _ in range(STEPS):
        step()
    gc.collect()
    return resident_bytes() - before


# ---- the other side

def command(name, threads, *more):
    """Return the command that starts the process of a library."""
    return module_command("turns", "--library", name, "--threads", str(threads), *more)


def measured(what, name, threads):
    """Run `measure`, `import_time` or `import_memory` in a fresh process."""
    importing = what in ("import_time", "import_memory")
    bare = [sys.executable, "-P", "-c", IMPORT, name, *["autograd.numpy"] * (name == "autograd")]
    answer = subprocess.run(bare if importing else command(name, threads, "--measure", what), check=True,
                            env=surroundings(threads), stdout=subprocess.PIPE)
    found = json.loads(answer.stdout)
    return found[what == "import_memory"] if importing else found


class Player:
    """A library in a process."""

    def __init__(self, name, threads):
        self.name = name
        self.process = subprocess.Popen(command(name, threads), env=surroundings(threads), text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, **request):
        """Return seconds, or None if the library does not support the scenario; raise if it fails."""
        print(json.dumps(request), file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.name} ended while it was asked {request}")
        self.rest()
        return json.loads(line).get("seconds")

    def rest(self):
        """Wait until all threads of the process sleep, or for a fixed time if the system does not tell."""
        until = time.perf_counter() + LONGEST_REST
        time.sleep(0.05)
        while time.perf_counter() < until and self.is_at_work():
            time.sleep(0.01)

    def is_at_work(self):
        """Return whether a thread of the process is running or runnable."""
        for thread in Path(f"/proc/{self.process.pid}/task").glob("*/stat"):
            try:
                state = thread.read_text().rpartition(")")[2].split()[0]
            except OSError:                          # it has ended meanwhile
                continue
            if state == "R":
                return True
        return False

    def close(self):
        with self.process:                           # closes both pipes, and waits
            pass


def rounds_of(names, scenario, threads, rounds, clock="perf_counter"):
    """
    Return library -> samples in seconds, one per complete round; by a clock of `time`.

    Each scenario has new processes, because after a large graph the system's allocator keeps memory, and later
    scenarios would have no page faults.
    """
    players = [Player(name, threads) for name in names]
    try:
        first = {player: player.ask(scenario=scenario.key) for player in players}
        calls = {player: calls_in_a_sample(seconds) for player, seconds in first.items() if seconds is not None}
        if max(filter(None, first.values()), default=0) > LARGEST_SAMPLE:
            rounds = min(rounds, 3)
        samples = {player.name: [] for player in calls}
        for _ in range(rounds):
            for player, number in calls.items():
                samples[player.name].append(player.ask(calls=number, clock=clock))
        return samples
    finally:
        for player in players:
            player.close()


def processes_of(names, scenario, threads, rounds):
    """Return the samples of scenarios in fresh processes; memory hardly varies, so it gets one round."""
    timed = scenario.measure == "import_time"
    if timed:                                        # the first run reads files from disk
        for name in names:
            measured(scenario.measure, name, threads)
    samples = {name: [] for name in names}
    for _ in range(rounds if timed else 1):
        for name in names:
            samples[name].append(measured(scenario.measure, name, threads))
    return samples


def summary(samples):
    """Return (library -> median, other -> median of the ratios of the rounds)."""
    ours = samples["cygrad"]
    ratios = {name: median(theirs / own for theirs, own in zip(found, ours, strict=True))
              for name, found in samples.items() if name != "cygrad" and min(ours) > 0}
    return {name: median(found) for name, found in samples.items()}, ratios


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="The process of one library; benchmarks.compare starts it.")
    parser.add_argument("--library", required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--measure")
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure, options.library, options.threads)))
    else:
        serve(options.library, options.threads)
