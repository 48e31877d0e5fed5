"""Scaling over threads of cygrad and PyTorch, alternately: ``python -m benchmarks.threads``."""

import argparse
import threading
import time
from functools import partial
from importlib.util import find_spec
from statistics import median

from benchmarks.measuring import circumstances, concurrent_steps, share_of_a_core, usable_cores
from benchmarks.networks import perceptron, training_step
from benchmarks.workloads import LIBRARIES, library, needs, random_tensor

WINDOW = 0.4                  # seconds per measurement
TINY = 200                    # tiny graphs in one run
MANY = 15                     # runs, of which the best counts, because the host may slow down some


# ---- work

def branches(lib, count=8, size=512):
    """Return a function: backward through that many independent products of square matrices."""
    total = None
    for number in range(count):
        a = random_tensor(lib, size, size, seed=2 * number, requires_grad=True)
        b = random_tensor(lib, size, size, seed=2 * number + 1, requires_grad=True)
        branch = (a @ b).sum()
        total = branch if total is None else total + branch
    return partial(total.backward, retain_graph=True)


def tiny_graph(lib):
    """Return a function: forward and backward of 10 nodes of 4 elements, some hundred times."""
    leaf = lib.ones(4, requires_grad=True)

    def run():
        for _ in range(TINY):
            product = leaf
            for _ in range(9):
                product = product * leaf
            product.sum().backward()
            leaf.grad = None
    return run


def hogwild_steps(lib, count, batch=256):
    """Return a function for each of `count` threads: steps on shared weights with separate gradients."""
    needs(lib, "nn.Sequential", "optim.SGD", "nn.functional.cross_entropy")
    shared = perceptron(lib)
    classes = lib.arange(batch) % 10
    images = random_tensor(lib, batch, 784)

    def make():
        model = perceptron(lib)
        for own, weights in zip(model.parameters(), shared.parameters(), strict=True):
            own.data = weights.data
        optimizer = lib.optim.SGD(model.parameters(), lr=1e-4)

        def step():
            optimizer.zero_grad()
            lib.nn.functional.cross_entropy(model(images), classes).backward()
            optimizer.step()
        return step
    return [make() for _ in range(count)]


# ---- measuring: each function returns a sample of a ratio; libraries and settings alternate

def seconds(function):
    begin = time.perf_counter()
    function()
    return time.perf_counter() - begin


def at(lib, n, measure, *arguments):
    """Measure with that many threads of the library."""
    lib.set_num_threads(n)
    return measure(*arguments)


def best(function, times=3):
    return min(seconds(function) for _ in range(times))


def branch_ratio(lib, threads):
    run = branches(lib)
    run()
    return lambda: at(lib, 1, best, run) / at(lib, threads, best, run)


def steps_ratio(make, many, few, own_threads=1):
    """Return the steps per second of `many` Python threads relative to `few`."""
    def ratio(lib):
        steps = make(lib, max(many, few))
        for step in steps:
            step()

        def sample():
            lib.set_num_threads(own_threads)
            return concurrent_steps(steps[:many], WINDOW) / concurrent_steps(steps[:few], WINDOW)
        return sample
    return ratio


def models(batch):
    return lambda lib, count: [training_step(lib, batch) for _ in range(count)]


def with_idle_thread(run):
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    try:
        return best(run, MANY)
    finally:
        stop.set()
        thread.join()


def tiny_ratio(threads, idle):
    def ratio(lib):
        run = tiny_graph(lib)

        def sample():
            alone = at(lib, 1, best, run, MANY)
            return (at(lib, threads, with_idle_thread, run) if idle else at(lib, threads, best, run, MANY)) / alone
        return sample
    return ratio


def rows():
    """Return (title, target, factory of the function that returns a sample)."""
    cores = usable_cores()
    yield "8 branches of 512×512 products, backward, 2 threads / 1", ">= 1.8", lambda lib: branch_ratio(lib, 2)
    for batch, wanted in ((256, ">= 1.85"), (64, ">= 1.7")):
        yield f"MLP, batch {batch}, steps/s, 2 Python threads / 1", wanted, steps_ratio(models(batch), 2, 1)
        yield (f"MLP, batch {batch}, steps/s, {2 * cores} Python threads / {cores}", "> 0.95",
               steps_ratio(models(batch), 2 * cores, cores))
        yield (f"the same, each allowed {cores} threads", "> 0.95",
               steps_ratio(models(batch), 2 * cores, cores, cores))
    yield "Hogwild, batch 256, steps/s, 2 Python threads / 1", ">= 1.8", steps_ratio(hogwild_steps, 2, 1)
    yield "tiny graph, set_num_threads(2) / (1)", "0.95..1.05", tiny_ratio(2, False)
    yield "tiny graph, a second idle thread / none", "0.95..1.05", tiny_ratio(1, True)


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.strip().partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=9, help="samples of each ratio (default: 9)")
    parser.add_argument("--only", default="", help="rows whose title contains this")
    options = parser.parse_args()
    names = [name for name in LIBRARIES if find_spec(name)]
    libraries = {name: library(name) for name in names}
    for line in circumstances(names, "as each row says"):
        print(line)
    print(f"\n| median of ratios | wanted | {' | '.join(names)} |\n|---|---|" + "---:|" * len(names))
    shares = [share_of_a_core()]
    for title, wanted, make in rows():
        if options.only not in title:
            continue
        samples = {name: make(lib) for name, lib in libraries.items()}
        found = {name: [] for name in names}
        for _ in range(options.rounds):
            for name, sample in samples.items():
                found[name].append(sample())
        cells = " | ".join(f"{median(found[name]):.2f}" for name in names)
        print(f"| {title} | {wanted} | {cells} |", flush=True)
    shares.append(share_of_a_core())
    print("\nA busy loop got " + " and ".join(f"{share:.2f}" for share in shares) + " of a core before and after.")


if __name__ == "__main__":
    main()
