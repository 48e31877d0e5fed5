"""Measurement: alternating times, steps of several threads, memory, and the circumstances of figures."""

import gc
import math
import os
import platform
import sys
import threading
import time
from bisect import bisect
from importlib.util import find_spec
from itertools import accumulate, pairwise
from pathlib import Path
from statistics import median

SAMPLE_SECONDS = 0.15         # duration of a sample


# ---- the machine

def usable_cores():
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def use_cores(count):
    """Pin this process and its later threads to the last `count` of its cores."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-count:])


def processor():
    """Return the name of the processor."""
    try:
        with open("/proc/cpuinfo") as lines:
            return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


def circumstances(names, threads):
    """Return the circumstances of the figures, as lines of text."""
    import cygrad

    versions = [f"Python {platform.python_version()}"]
    for name in ("numpy", *names):
        if find_spec(name):
            versions.append(f"{name} {version_of(name)}")
    yield ", ".join(versions)
    yield f"{processor()}, {usable_cores()} cores; threads of each library: {threads}"
    yield "cygrad's BLAS: " + cygrad.show_config("dicts")["openblas"]["config"]
    chosen = {key: value for key, value in os.environ.items() if key.startswith(("OPENBLAS_", "OMP_", "MKL_"))}
    yield "set in the environment: " + (", ".join(f"{key}={value}" for key, value in chosen.items()) or "nothing")


def version_of(name):
    """Return the installed version, without importing the library if possible."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return getattr(__import__(name), "__version__", "")


def share_of_a_core(seconds=0.5):
    """Return the share of a core that this process gets: 1 on a quiet machine."""
    begin, used = time.perf_counter(), time.process_time()
    while time.perf_counter() - begin < seconds:
        pass
    return (time.process_time() - used) / (time.perf_counter() - begin)


# ---- processes

def module_command(module, *arguments):
    """Return the command that runs a module of the benchmarks from any folder."""
    return [sys.executable, "-P", "-m", f"benchmarks.{module}", *arguments]


def surroundings(threads=1):
    """
    Return the environment of a process whose libraries use that many threads; existing settings take precedence.

    The benchmarks come last on its path, because asv measures another cygrad than the one next to them.
    """
    paths = [path or os.getcwd() for path in sys.path] + [str(Path(__file__).resolve().parents[1])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": str(threads)}


# ---- time

def seconds_per_call(function, calls, prepare=None, clock=time.perf_counter):
    """Return the time of one call, without garbage collection, and without `prepare` before each call."""
    gc.disable()
    try:
        if prepare is None:
            begin = clock()
            for _ in range(calls):
                function()
            return (clock() - begin) / calls
        total = 0.0
        for _ in range(calls):
            prepare()
            begin = clock()
            function()
            total += clock() - begin
        return total / calls
    finally:
        gc.enable()


def calls_in_a_sample(seconds):
    """Return the number of calls in a sample."""
    return max(1, round(SAMPLE_SECONDS / max(seconds, 1e-7)))


def paired(functions, rounds):
    """Return library -> median of seconds per call; the libraries alternate."""
    calls = {}
    for name, function in functions.items():
        function()
        calls[name] = calls_in_a_sample(seconds_per_call(function, 1))
    samples = {name: [] for name in functions}
    for _ in range(rounds):
        for name, function in functions.items():
            samples[name].append(seconds_per_call(function, calls[name]))
    return {name: median(found) for name, found in samples.items()}


def _run_threads(work, arguments, seconds):
    """Run ``work(stop, *arguments[i])`` in a thread for each i, until `stop` is set; return seconds."""
    stop = threading.Event()
    workers = [threading.Thread(target=work, args=(stop, *given)) for given in arguments]
    begin = time.perf_counter()
    for worker in workers:
        worker.start()
    time.sleep(seconds)
    stop.set()
    for worker in workers:
        worker.join()
    return time.perf_counter() - begin


def concurrent_steps(steps, seconds=1.0):
    """Return training steps per second, each of `steps` in a thread."""
    counts = [0] * len(steps)

    def work(stop, number):
        while not stop.is_set():
            steps[number]()
            counts[number] += 1

    took = _run_threads(work, [(number,) for number in range(len(steps))], seconds)
    return sum(counts) / took


def undisturbed_steps(steps, seconds=1.0, calls=100):
    """
    Return training steps per second in the moments in which no thread waited for a core.

    Linux counts the nanoseconds for which a runnable thread did not run. Without these counts, all moments count.

    Returns
    -------
    float
        NaN if such moments were too few.
    """
    if not Path("/proc/thread-self/schedstat").exists():
        return concurrent_steps([lambda step=step: [step() for _ in range(calls)] for step in steps], seconds) * calls
    logs = [[] for _ in steps]

    def work(stop, step, log):
        with open("/proc/thread-self/schedstat", buffering=1) as waited:
            while not stop.is_set():
                for _ in range(calls):
                    step()
                waited.seek(0)
                log.append((time.perf_counter(), int(waited.read().split()[1]) * 1e-9))

    _run_threads(work, zip(steps, logs, strict=True), seconds)
    spans = [[(begin, end, waited - before > 0.01 * (end - begin))
              for (begin, before), (end, waited) in pairwise(log)] for log in logs]
    disturbed = sorted((begin, end) for own in spans for begin, end, disturbs in own if disturbs)
    ends = list(accumulate((end for _, end in disturbed), max))

    def is_quiet(begin, end):
        place = bisect(disturbed, (end,))
        return place == 0 or ends[place - 1] <= begin

    rates = [[calls / (end - begin) for begin, end, _ in own if is_quiet(begin, end)] for own in spans]
    return sum(map(median, rates)) if min(map(len, rates)) >= 30 else math.nan


# ---- memory

def of_this_process(key):
    """Return a count of memory in /proc/self/status, in bytes."""
    try:
        with open("/proc/self/status") as lines:
            return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key + ":"))
    except (OSError, StopIteration):
        raise NotImplementedError("reads /proc") from None


def resident_bytes():
    """Return the resident memory of the process."""
    return of_this_process("VmRSS")


def peak_bytes():
    """Return the peak resident memory; unlike getrusage, without the parent's before a fork."""
    return of_this_process("VmHWM")
