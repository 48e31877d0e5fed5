"""What is measured, for any library with the common interface."""

import os
from importlib import import_module
from itertools import pairwise

import numpy as np

LIBRARIES = ("cygrad", "torch")
MLP_SIZES = (784, 256, 128, 10)


def usable_cores():
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def library(name, threads=1):
    """The library, told to use that many threads; NotImplementedError if it or they are not there, or not wanted."""
    if name != LIBRARIES[0] and os.environ.get("CYGRAD_BENCH_PEERS") == "":
        raise NotImplementedError("peers are not wanted")
    if threads > usable_cores():
        raise NotImplementedError(f"needs {threads} cores")
    try:
        found = import_module(name)
        found.set_num_threads(threads)
    except (ImportError, AttributeError) as error:
        raise NotImplementedError(f"{name}: {error}") from None
    return found


def needs(lib, *names):
    """NotImplementedError unless the library has them all: past versions may not."""
    for name in names:
        place = lib
        for part in name.split("."):
            place = getattr(place, part, None)
            if place is None:
                raise NotImplementedError(f"{lib.__name__} has no {name}")


def random_tensor(lib, *shape, seed=0, requires_grad=False):
    """Standard normal float32 numbers, the same for every library."""
    values = np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)
    return lib.from_numpy(values).requires_grad_(requires_grad)


# ---- small tensors: what an operation costs besides its arithmetic

def multiplication_chain(lib, length):
    """-> (leaf, function): a product of `length` factors of 4 elements each, both factors needing gradients."""
    first, factor = lib.ones(4, requires_grad=True), lib.ones(4, requires_grad=True)

    def forward():
        product = first
        for _ in range(length):
            product = product * factor
        return product
    return factor, forward


# ---- graphs by shape; each returns the root, a scalar

def chain(lib, leaf, nodes):
    """Each node has one input: the one before."""
    result = leaf
    for _ in range(nodes):
        result = -result
    return result.sum()


def fan_out(lib, leaf, nodes):
    """All nodes hang on the same leaf, and one sum joins them."""
    return lib.stack([-leaf for _ in range(nodes)]).sum()


def tree(lib, leaf, nodes):
    """Pairs are added until one is left."""
    level = [-leaf for _ in range(nodes // 2)]
    while len(level) > 1:
        pairs = [level[i] + level[i + 1] for i in range(0, len(level) - 1, 2)]
        level = pairs + level[len(level) - len(level) % 2:]
    return level[0].sum()


def lattice(lib, leaf, nodes, width=32):
    """Rows of nodes, each of which depends on two neighbours in the row before."""
    row = [-leaf for _ in range(width)]
    for _ in range(max(nodes // width - 1, 1)):
        row = [lib.maximum(row[i], row[i - 1]) for i in range(width)]      # sums would overflow
    return lib.stack(row).sum()


GRAPHS = {"chain": chain, "fan-out": fan_out, "tree": tree, "lattice": lattice}


# ---- large tensors

def elementwise_chain(lib, size):
    """-> function: forward and backward of ``(((a*b).tanh()+a).exp()).sum()``."""
    a = random_tensor(lib, size, seed=1, requires_grad=True)
    b = random_tensor(lib, size, seed=2, requires_grad=True)

    def step():
        ((a * b).tanh() + a).exp().sum().backward()
        a.grad = b.grad = None
    return step


# ---- training

def perceptron(lib, sizes=MLP_SIZES):
    """A multi-layer perceptron with ReLU."""
    layers = []
    for inputs, outputs in pairwise(sizes):
        layers += [lib.nn.Linear(inputs, outputs), lib.nn.ReLU()]
    return lib.nn.Sequential(*layers[:-1])


def training_step(lib, batch=64, optimiser="SGD", **options):
    """-> function: one step on one batch, with a model, data and optimiser of its own."""
    needs(lib, "nn.Sequential", f"optim.{optimiser}", "nn.functional.cross_entropy")
    model = perceptron(lib)
    images = random_tensor(lib, batch, MLP_SIZES[0])
    classes = lib.from_numpy(np.arange(batch) % MLP_SIZES[-1])
    optimiser = getattr(lib.optim, optimiser)(model.parameters(), **{"lr": 0.01, **options})

    def step():
        optimiser.zero_grad()
        lib.nn.functional.cross_entropy(model(images), classes).backward()
        optimiser.step()
    return step


# ---- memory

def resident_bytes():
    """What the process holds in memory at the moment."""
    try:
        with open("/proc/self/statm") as pages:
            return int(pages.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        raise NotImplementedError("reads /proc") from None
