"""
The paired comparison with PyTorch from which the figures of the README come: ``python -m benchmarks.compare``.

Both libraries take turns (A B A B ...), so that whatever else the machine does meets both; the table shows medians.
Timings share one process; what concerns the memory of a process is measured in a fresh one for each library.
Without PyTorch the table has one column.
"""

import argparse
import gc
import json
import os
import platform
import subprocess
import sys
import threading
import time
from importlib.util import find_spec
from statistics import median

from benchmarks.workloads import (
    LIBRARIES,
    chain,
    elementwise_chain,
    library,
    multiplication_chain,
    resident_bytes,
    training_step,
    usable_cores,
)

CHAIN = 2000                  # operations of the multiplication chain
DEEP = 1_000_000              # nodes of the deep chain
STEPS = 20_000                # training steps over which memory may grow
SAMPLE_SECONDS = 0.15         # how long one sample should take


def seconds_per_call(function, calls):
    """Time of one call, without the garbage collector in between."""
    gc.disable()
    try:
        begin = time.perf_counter()
        for _ in range(calls):
            function()
        return (time.perf_counter() - begin) / calls
    finally:
        gc.enable()


def paired(functions, rounds):
    """Library -> median of its seconds per call; the libraries take turns."""
    calls = {}
    for name, function in functions.items():
        function()
        calls[name] = max(1, round(SAMPLE_SECONDS / max(seconds_per_call(function, 1), 1e-7)))
    samples = {name: [] for name in functions}
    for _ in range(rounds):
        for name, function in functions.items():
            samples[name].append(seconds_per_call(function, calls[name]))
    return {name: median(found) for name, found in samples.items()}


# ---- what is compared: title -> a function to time, for a library

def forward(lib):
    return multiplication_chain(lib, CHAIN)[1]


def forward_and_backward(lib):
    leaf, run = multiplication_chain(lib, CHAIN)

    def step():
        run().sum().backward()
        leaf.grad = None
    return step


def under(mode):
    def make(lib):
        run = forward(lib)

        def step():
            with getattr(lib, mode)():
                run()
        return step
    return make


CHAINS = {
    "forward, recorded": forward,
    "forward and backward": forward_and_backward,
    "forward, no_grad": under("no_grad"),
    "forward, inference_mode": under("inference_mode"),
}


def timings(names, threads, rounds):
    """Rows of the table that are times: (title, unit, {library: value})."""
    libraries = {name: library(name, threads) for name in names}
    for title, make in CHAINS.items():
        found = paired({name: make(lib) for name, lib in libraries.items()}, rounds)
        yield f"4 elements, {title}", "us/op", {name: value / CHAIN * 1e6 for name, value in found.items()}
    found = paired({name: training_step(lib) for name, lib in libraries.items()}, rounds)
    yield "MLP 784-256-128-10, batch 64, SGD step", "us", {name: value * 1e6 for name, value in found.items()}
    for exponent in (4, 5, 6, 7):
        steps = {name: elementwise_chain(lib, 10 ** exponent) for name, lib in libraries.items()}
        found = paired(steps, rounds)
        yield (f"element-wise chain, 1e{exponent}, forward and backward", "us",
               {name: value * 1e6 for name, value in found.items()})


def concurrent_steps(steps, seconds=1.0):
    """Training steps per second, each of `steps` in a thread of its own."""
    counts, stop = [0] * len(steps), threading.Event()

    def work(number):
        while not stop.is_set():
            steps[number]()
            counts[number] += 1

    workers = [threading.Thread(target=work, args=(number,)) for number in range(len(steps))]
    begin = time.perf_counter()
    for worker in workers:
        worker.start()
    time.sleep(seconds)
    stop.set()
    for worker in workers:
        worker.join()
    return sum(counts) / (time.perf_counter() - begin)


def python_threads(names, rounds):
    """Throughput of two Python threads with a model each, relative to one such thread."""
    steps = {name: [training_step(library(name, 1)) for _ in range(2)] for name in names}
    ratios = {name: [] for name in names}
    for _ in range(rounds):
        for name, pair in steps.items():
            alone = concurrent_steps(pair[:1])
            ratios[name].append(concurrent_steps(pair) / alone)
    return {name: median(found) for name, found in ratios.items()}


# ---- measured in a process of its own

def measure_deep_chain(lib):
    """Build, run and destroy a chain of a million nodes; bytes per node while it stands."""
    leaf = lib.ones(4, requires_grad=True)
    chain(lib, leaf, 1000).backward()
    gc.collect()
    gc.disable()
    before, begin = resident_bytes(), time.perf_counter()
    root = chain(lib, leaf, DEEP)
    built = time.perf_counter()
    weight = (resident_bytes() - before) / DEEP
    root.backward()
    ran = time.perf_counter()
    del root
    return {"build": built - begin, "backward": ran - built, "destroy": time.perf_counter() - ran, "bytes": weight}


def measure_growth(lib):
    """How much the process grows over 20,000 training steps, after 1,000 of them, in bytes."""
    step = training_step(lib)
    for _ in range(1000):
        step()
    gc.collect()
    before = resident_bytes()
    for _ in range(STEPS):
        step()
    gc.collect()
    return {"growth": resident_bytes() - before}


MEASURES = {"deep-chain": measure_deep_chain, "growth": measure_growth}


def in_own_process(measure, name, threads):
    answer = subprocess.run(
        [sys.executable, "-m", "benchmarks.compare", "--measure", measure, "--library", name, "--threads",
         str(threads)], stdout=subprocess.PIPE, check=True)
    return json.loads(answer.stdout)


def memory(names, threads, rounds):
    """Rows of the table from processes of their own."""
    found = {name: [] for name in names}
    for _ in range(rounds):
        for name in names:
            found[name].append(in_own_process("deep-chain", name, threads))
    for key, title, unit, factor in [
            ("build", "chain of 1e6 nodes, build", "s", 1), ("backward", "chain of 1e6 nodes, backward", "s", 1),
            ("destroy", "chain of 1e6 nodes, destroy", "s", 1), ("bytes", "chain of 1e6 nodes, memory", "B/node", 1)]:
        yield title, unit, {name: median(one[key] for one in all) * factor for name, all in found.items()}
    yield (f"growth over {STEPS:,} training steps", "MiB",
           {name: in_own_process("growth", name, threads)["growth"] / 2 ** 20 for name in names})


# ---- the table

def circumstances(names, threads):
    """What the figures depend on, as lines of text."""
    versions = [f"Python {platform.python_version()}"]
    for name in ("numpy", *names):
        module = __import__(name)
        versions.append(f"{name} {getattr(module, '__version__', '')}")
    yield ", ".join(versions)
    yield f"{processor()}, {usable_cores()} cores; threads of each library: {threads}"
    yield "cygrad's BLAS: " + library("cygrad").show_config("dicts")["openblas"]["config"]
    chosen = {key: value for key, value in os.environ.items() if key.startswith(("OPENBLAS_", "OMP_", "MKL_"))}
    yield "set in the environment: " + (", ".join(f"{key}={value}" for key, value in chosen.items()) or "nothing")


def share_of_a_core(seconds=0.5):
    """How much of a core this process gets at the moment: 1 on a quiet machine."""
    begin, used = time.perf_counter(), time.process_time()
    while time.perf_counter() - begin < seconds:
        pass
    return (time.process_time() - used) / (time.perf_counter() - begin)


def processor():
    try:
        with open("/proc/cpuinfo") as lines:
            return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


def show(title, unit, values):
    """One row: cygrad, the peer, and how many times as much the peer needs."""
    numbers = [values[name] for name in LIBRARIES if name in values]
    ratio = f"{numbers[1] / numbers[0]:.2f}" if len(numbers) == 2 and numbers[0] > 0 else ""
    cells = [f"{value:,.3g}" if value < 1000 else f"{value:,.0f}" for value in numbers]
    print(f"| {title} | {unit} | " + " | ".join(cells) + (f" | {ratio} |" if len(numbers) == 2 else " |"), flush=True)


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.strip().partition("\n")[0])
    parser.add_argument("--threads", type=int, default=1, help="threads of each library (default: 1)")
    parser.add_argument("--rounds", type=int, default=7, help="turns that each library takes (default: 7)")
    parser.add_argument("--measure", choices=MEASURES, help=argparse.SUPPRESS)
    parser.add_argument("--library", choices=LIBRARIES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(MEASURES[options.measure](library(options.library, options.threads))))
        return
    names = [name for name in LIBRARIES if find_spec(name)]
    for line in circumstances(names, options.threads):
        print(line)
    print(f"\n| | | {' | '.join(names)} |" + (" ratio |" if len(names) == 2 else ""))
    print("|---|---|" + "---:|" * (len(names) + (len(names) == 2)))
    shares = [share_of_a_core()]
    for row in timings(names, options.threads, options.rounds):
        show(*row)
    show("two Python threads, a model each", "times one", python_threads(names, min(options.rounds, 5)))
    for row in memory(names, options.threads, min(options.rounds, 3)):
        show(*row)
    shares.append(share_of_a_core())
    print("\nA busy loop got " + " and ".join(f"{share:.2f}" for share in shares) +
          " of a core before and after; far below 1, others were at work and the rows of two threads mean nothing.")


if __name__ == "__main__":
    main()
