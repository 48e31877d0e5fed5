"""Programs to measure, for any library with the common interface; see also `networks`."""

import os
from functools import partial
from importlib import import_module

import numpy as np

from .measuring import usable_cores

OTHERS = ("torch", "jax", "jax.jit", "autograd")
FUNCTIONAL = (*OTHERS[1:], "torch.func")
ONLY_CYGRAD = os.environ.get("CYGRAD_BENCH_OTHERS") == ""         # set, and empty
# Parameters of the suite: libraries with modules, optimizers and tensors with a graph; and all libraries.
LIBRARIES = ("cygrad",) if ONLY_CYGRAD else ("cygrad", "torch")
ALL_LIBRARIES = ("cygrad",) if ONLY_CYGRAD else ("cygrad", *OTHERS)
EAGER = tuple(name for name in ALL_LIBRARIES if name != "jax.jit")
CHAIN = 2000                           # operations of a multiplication chain


def library(name, threads=1):
    """Return the library with that many threads; raise NotImplementedError if missing or excluded."""
    if name != "cygrad" and os.environ.get("CYGRAD_BENCH_OTHERS") == "":
        raise NotImplementedError("other libraries are excluded")
    if threads > usable_cores():
        raise NotImplementedError(f"needs {threads} cores")
    try:
        if name in FUNCTIONAL:
            from .array_libraries import load

            return load(name, threads)
        found = import_module(name)
        found.set_num_threads(threads)
    except (ImportError, AttributeError) as error:
        raise NotImplementedError(f"{name}: {error}") from None
    return found


def is_functional(lib):
    """Return whether the library differentiates functions of arrays, without a graph of tensors."""
    return hasattr(lib, "pull_back")


def needs(lib, *names):
    """Raise NotImplementedError unless the library has all names, which past versions may lack."""
    for name in names:
        place = lib
        for part in name.split("."):
            place = getattr(place, part, None)
            if place is None:
                raise NotImplementedError(f"{lib.__name__} has no {name}")


def random_tensor(lib, *shape, seed=0, scale=1, requires_grad=False):
    """Return normal float32 numbers, equal for all libraries."""
    values = np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)
    found = lib.from_numpy(values if scale == 1 else values * np.float32(scale))
    return found if is_functional(lib) else found.requires_grad_(requires_grad)


def leaf_of_ones(lib):
    """Return four ones that require grad."""
    return lib.from_numpy(np.ones(4, np.float32)) if is_functional(lib) else lib.ones(4, requires_grad=True)


def gradient_step(lib, loss, parameters):
    """Return a function: forward and backward of ``loss(*parameters)``, a scalar."""
    if is_functional(lib):
        return lib.gradient_step(loss, parameters)

    def step():
        loss(*parameters).backward()
        gradients = [parameter.grad for parameter in parameters]
        for parameter in parameters:
            parameter.grad = None
        return gradients
    step.loss = partial(loss, *parameters)         # for benchmarks of the graph
    return step


# ---- small tensors: per-operation overhead

def multiplications(first, factor):
    """A product of many factors."""
    product = first
    for _ in range(CHAIN):
        product = product * factor
    return product


def forward(lib):
    """Return a function: 2,000 multiplications of 4 elements, whose factors require grad."""
    first, factor = leaf_of_ones(lib), leaf_of_ones(lib)
    if is_functional(lib):
        return lambda: lib.ready(multiplications(first, factor))
    return lambda: multiplications(first, factor)


def forward_and_backward(lib):
    """Return a function: 2,000 multiplications of 4 elements, and backward."""
    return gradient_step(lib, lambda first, factor: multiplications(first, factor).sum(),
                         [leaf_of_ones(lib), leaf_of_ones(lib)])


def forward_under(mode):
    """Return a factory of the forward, run in `no_grad` or `inference_mode`."""
    def make(lib):
        run = forward(lib)
        if is_functional(lib):
            return run
        needs(lib, mode)

        def step():
            with getattr(lib, mode)():
                run()
        return step
    return make


# ---- graphs by shape; each returns the root, a scalar

def chain(lib, leaf, nodes):
    """Each node has one input: the one before."""
    result = leaf
    for _ in range(nodes):
        result = -result
    return result.sum()


def fan_out(lib, leaf, nodes):
    """All nodes use the same leaf, and one sum combines them."""
    return lib.stack([-leaf for _ in range(nodes)]).sum()


def tree(lib, leaf, nodes):
    """Pairs are added until one is left."""
    level = [-leaf for _ in range(nodes // 2)]
    while len(level) > 1:
        pairs = [level[i] + level[i + 1] for i in range(0, len(level) - 1, 2)]
        level = pairs + level[len(level) - len(level) % 2:]
    return level[0].sum()


def lattice(lib, leaf, nodes, width=32):
    """Rows of nodes that depend on two adjacent nodes of the row before."""
    row = [-leaf for _ in range(width)]
    for _ in range(max(nodes // width - 1, 1)):
        row = [lib.maximum(row[i], row[i - 1]) for i in range(width)]      # sums would overflow
    return lib.stack(row).sum()


GRAPHS = {"chain": chain, "fan-out": fan_out, "tree": tree, "lattice": lattice}


class Graph:
    """A graph of a shape, and its three phases."""

    def __init__(self, lib, shape, nodes):
        self.lib, self.nodes, make = lib, nodes, GRAPHS[shape]
        self.leaf = leaf_of_ones(lib)
        self.make = lambda leaf: make(lib, leaf, nodes)
        self.backward = None

    def build(self):
        """Run the forward; afterwards call `backward()`."""
        if is_functional(self.lib):
            self.backward = self.lib.pull_back(self.make, self.leaf)
        else:
            self.backward = self.make(self.leaf).backward

    def run(self):
        """Run the backward."""
        self.backward()

    def destroy(self):
        """Drop the graph, whether backward has run through it or not."""
        self.backward = None


def graph_backward(shape, nodes):
    """Return a factory of (preparation, backward)."""
    def make(lib):
        graph = Graph(lib, shape, nodes)

        def prepare():
            graph.destroy()
            graph.build()
        return prepare, graph.run
    return make


# ---- large tensors

def elementwise_loss(lib, a, b):
    """``(((a*b).tanh()+a).exp()).sum()``."""
    return lib.sum(lib.exp(lib.tanh(a * b) + a))


def mixed_expression(lib, size):
    """Return a function: forward and backward of an expression that reuses values."""
    def loss(x, y):
        return lib.sum(lib.tanh(x * y + 1) * lib.exp(-x * x) + lib.sqrt(lib.square(y) + 1) / (1 + x * x))
    return gradient_step(lib, loss, [random_tensor(lib, size, seed=seed, requires_grad=True) for seed in (1, 2)])


def elementwise_chain(lib, size):
    """Return a function: forward and backward of `elementwise_loss`."""
    operands = [random_tensor(lib, size, seed=seed, requires_grad=True) for seed in (1, 2)]
    return gradient_step(lib, partial(elementwise_loss, lib), operands)
