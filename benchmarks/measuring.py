"""How things are measured: times in turns, steps of several threads, memory, and what figures depend on."""

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

SAMPLE_SECONDS = 0.15         # how long one sample should take


# ---- the machine

def usable_cores():
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def use_cores(count):
    """Keep this process, and threads that it starts later, to the last `count` of its cores."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-count:])


def processor():
    """The name of the processor."""
    try:
        with open("/proc/cpuinfo") as lines:
            return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


def circumstances(names, threads):
    """What the figures depend on, as lines of text."""
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
    """The version that is installed, without importing the library if possible."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return getattr(__import__(name), "__version__", "")


def share_of_a_core(seconds=0.5):
    """How much of a core this process gets at the moment: 1 on a quiet machine."""
    begin, used = time.perf_counter(), time.process_time()
    while time.perf_counter() - begin < seconds:
        pass
    return (time.process_time() - used) / (time.perf_counter() - begin)


# ---- processes

def module_command(module, *arguments):
    """The command that runs a module of the benchmarks in a process of its own, whatever the current folder has."""
    return [sys.executable, "-P", "-m", f"benchmarks.{module}", *arguments]


def surroundings(threads=1):
    """
    The environment of such a process, whose libraries are to have that many threads. Settings from outside stay.

    It finds what this one finds, and the benchmarks last: asv measures a cygrad that is not the one beside them.
    """
    paths = [path or os.getcwd() for path in sys.path] + [str(Path(__file__).resolve().parents[1])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": str(threads)}


# ---- time

def seconds_per_call(function, calls, prepare=None, clock=time.perf_counter):
    """Time of one call, without the garbage collector in between, nor what `prepare` does before each call."""
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
    """How many calls of that many seconds make up one sample."""
    return max(1, round(SAMPLE_SECONDS / max(seconds, 1e-7)))


def paired(functions, rounds):
    """Library -> median of its seconds per call; the libraries take turns."""
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
    """``work(stop, *arguments[i])`` in a thread for each i, until `stop` is set; -> the seconds that they took."""
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
    """Training steps per second, each of `steps` in a thread of its own."""
    counts = [0] * len(steps)

    def work(stop, number):
        while not stop.is_set():
            steps[number]()
            counts[number] += 1

    took = _run_threads(work, [(number,) for number in range(len(steps))], seconds)
    return sum(counts) / took


def undisturbed_steps(steps, seconds=1.0, calls=100):
    """
    The same, of moments in which none of these threads waited for a core that another process had.

    Linux counts the nanoseconds for which a thread that could run did not. Where it does not tell, all moments count.

    Returns
    -------
    float
        NaN if there were too few such moments.
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
    """A line of /proc/self/status that counts memory, in bytes."""
    try:
        with open("/proc/self/status") as lines:
            return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key + ":"))
    except (OSError, StopIteration):
        raise NotImplementedError("reads /proc") from None


def resident_bytes():
    """What the process holds in memory at the moment."""
    return of_this_process("VmRSS")


def peak_bytes():
    """The most that it ever held; other than the system's resource usage, this forgets what forked the process."""
    return of_this_process("VmHWM")
