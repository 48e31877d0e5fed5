"""
Measure kernels relative to the limits of this machine: ``python -m benchmarks.limits``.

The memory limit is the bandwidth of a copy of the same size, the compute limit multiply-adds in registers. A kernel
counts every operand read once and every result written once. Libraries, kernels and limits alternate, with one thread;
a share is the median of the rounds, and can exceed 1 if data stays in a cache.
"""

import argparse
import time
from importlib.util import find_spec
from statistics import median

import numpy as np

from .figures import keep, limits_table
from .workloads import elementwise_loss, library, needs, random_tensor

ROWS, COLUMNS = 4096, 2048    # of the tensors, float32: 32 MiB each
SIZES = (512, 1024, 2048)     # of the products
ROUNDS = 9
LIBRARIES = ("cygrad", "torch")
REGISTER_ROUNDS = 200_000     # of multiplications in registers: some milliseconds


def tensors(lib, count, requires_grad=False):
    """Return `count` large matrices."""
    return [random_tensor(lib, ROWS, COLUMNS, seed=seed, requires_grad=requires_grad) for seed in range(count)]


# ---- kernels: title -> (number of large tensors read or written, factory of the function)

def forward(make, count=1):
    """Compute from `count` large tensors, without grad."""
    def prepare(lib):
        operands = tensors(lib, count)

        def run():
            with lib.no_grad():
                make(lib, *operands)
        return run
    return prepare


def backward(make, count=1):
    """Run only the backward of a function of `count` large tensors."""
    def prepare(lib):
        leaves = tensors(lib, count, requires_grad=True)
        result = make(lib, *leaves)
        seed = result.detach() if result.numel() > 1 else lib.ones(())

        def run():
            for leaf in leaves:
                leaf.grad = None
            result.backward(seed, retain_graph=True)
        return run
    return prepare


def optimizer(name, **options):
    """Run an optimizer step on one large parameter."""
    def prepare(lib):
        needs(lib, f"optim.{name}")
        parameter = tensors(lib, 1, requires_grad=True)[0]
        parameter.grad = tensors(lib, 1)[0]
        return getattr(lib.optim, name)([parameter], **options).step
    return prepare


def cross_entropy(lib, x):
    """Of as many classes as columns."""
    return lib.nn.functional.cross_entropy(x, lib.arange(ROWS) % COLUMNS)


KERNELS = {
    "`x + y`": (3, forward(lambda lib, x, y: x + y, 2)),
    "`x * 1.5`": (2, forward(lambda lib, x: x * 1.5)),
    "`x.add_(y)`": (3, forward(lambda lib, x, y: x.add_(y), 2)),
    "`x.clone()`": (2, forward(lambda lib, x: x.clone())),
    "`x.t().contiguous()`": (2, forward(lambda lib, x: x.t().contiguous())),
    "`x.relu()`": (2, forward(lambda lib, x: x.relu())),
    "`x.tanh()`": (2, forward(lambda lib, x: x.tanh())),
    "`gelu(x)`": (2, forward(lambda lib, x: lib.nn.functional.gelu(x))),
    "`x.sum()`": (1, forward(lambda lib, x: x.sum())),
    "`x.sum(0)`": (1, forward(lambda lib, x: x.sum(0))),
    "`x.amax(1)`": (1, forward(lambda lib, x: x.amax(1))),
    "`x.var()`": (1, forward(lambda lib, x: x.var())),
    "`softmax(x, 1)`": (2, forward(lambda lib, x: lib.softmax(x, 1))),
    "`log_softmax(x, 1)`": (2, forward(lambda lib, x: lib.log_softmax(x, 1))),
    "`cross_entropy(x, classes)`": (1, forward(cross_entropy)),
    "`layer_norm(x, (2048,))`": (2, forward(lambda lib, x: lib.nn.functional.layer_norm(x, (COLUMNS,)))),
    "`x * y`, backward": (5, backward(lambda lib, x, y: x * y, 2)),
    "`x * row`, backward": (4, backward(lambda lib, x: x * random_tensor(lib, COLUMNS, requires_grad=True))),
    "`gelu(x)`, backward": (3, backward(lambda lib, x: lib.nn.functional.gelu(x))),
    "`softmax(x, 1)`, backward": (3, backward(lambda lib, x: lib.softmax(x, 1))),
    "`cross_entropy(x, classes)`, backward": (2, backward(cross_entropy)),
    "`layer_norm(x, (2048,))`, backward": (
        3, backward(lambda lib, x: lib.nn.functional.layer_norm(x, (COLUMNS,)))),
    "`(((x * y).tanh() + x).exp()).sum()`, backward": (6, backward(elementwise_loss, 2)),
    "SGD step": (3, optimizer("SGD", lr=1e-9)),
    "Adam step": (7, optimizer("Adam", lr=1e-9)),
}


def product(size, double_precision):
    """A product of square matrices."""
    def prepare(lib):
        a, b = random_tensor(lib, size, size), random_tensor(lib, size, size, seed=1)
        if double_precision:
            a, b = a.double(), b.double()

        def run():
            with lib.no_grad():
                a @ b
        return run
    return prepare


# ---- limits

def copied():
    """Return a function: bytes per second, read and written, of a copy between large arrays."""
    source = np.ones((ROWS, COLUMNS), np.float32)
    target = np.zeros_like(source)

    def rate():
        return 2 * source.nbytes / seconds(lambda: np.copyto(target, source))
    return rate


def computed(double_precision):
    """Return a function: multiplications and additions per second in registers."""
    from cygrad._core.testing import probes

    def rate():
        begin = time.perf_counter()
        count = 2 * probes.multiply_adds(double_precision, REGISTER_ROUNDS)
        return count / (time.perf_counter() - begin)
    return rate


def seconds(function, times=3):
    """Return the shortest of a few calls."""
    return min(_seconds(function) for _ in range(times))


def _seconds(function):
    begin = time.perf_counter()
    function()
    return time.perf_counter() - begin


def shares(prepare, amount, limit, libraries):
    """Return (limit per second, library -> share), medians of the rounds."""
    functions = {name: prepare(lib) for name, lib in libraries.items()}
    for function in functions.values():
        function()
    limits, found = [], {name: [] for name in functions}
    for _ in range(ROUNDS):
        limits.append(limit())
        for name, function in functions.items():
            found[name].append(amount / seconds(function) / limits[-1])
    return median(limits), {name: median(values) for name, values in found.items()}


def measured(wanted, libraries):
    """Return title -> {"of": limit, "limit": per second, "shares": library -> share}."""
    found = {}
    copy, size = copied(), 4 * ROWS * COLUMNS
    for title, (streams, prepare) in KERNELS.items():
        if wanted(title):
            limit, of = shares(prepare, streams * size, copy, libraries)
            found[title] = {"of": f"{streams} × 32 MiB", "limit": limit, "shares": of}
    for double_precision, dtype in enumerate(("float32", "float64")):
        peak = computed(bool(double_precision))
        for side in SIZES:
            title = f"product of {side} × {side}, {dtype}"
            if wanted(title):
                limit, of = shares(product(side, double_precision), 2 * side ** 3, peak, libraries)
                found[title] = {"of": f"{2 * side ** 3:,} operations", "limit": limit, "shares": of}
    return found


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Shares of the bandwidth and of the peak of this machine.")
    parser.add_argument("--only", nargs="+", metavar="TEXT", help="what has one of these texts in its title")
    parser.add_argument("--write", action="store_true", help="rewrite the committed shares and the documents")
    options = parser.parse_args()
    libraries = {name: library(name, 1) for name in LIBRARIES if find_spec(name)}
    found = measured(lambda title: any(text in title for text in options.only or [""]), libraries)
    print(limits_table(found))
    if options.write:
        keep(limits=found)


if __name__ == "__main__":
    main()
