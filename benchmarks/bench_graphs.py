"""Graphs by shape and size: time of forward, backward and destruction, and memory of a node."""

import gc

from .measuring import resident_bytes
from .suite import THREADS
from .workloads import EAGER, GRAPHS, LIBRARIES, Graph, library

NODES = 10_000


def graph(name, shape, threads=1):
    """A graph of 10,000 nodes."""
    if shape == "fan-out" and name not in LIBRARIES:
        raise NotImplementedError("compiles the stack of all results, for minutes, or needs quadratic time for it")
    return Graph(library(name, threads), shape, NODES)


class Phases:
    """The three phases of a graph, built anew in setup for each sample."""

    number = 1
    warmup_time = 0


class Build(Phases):
    """The forward part of 10,000 nodes."""

    params = (EAGER, tuple(GRAPHS))
    param_names = ("library", "shape")

    def setup(self, name, shape):
        self.graph = graph(name, shape)

    def time_build(self, name, shape):
        self.graph.build()


class Backward(Phases):
    """The backward part of 10,000 nodes."""

    params = (EAGER, tuple(GRAPHS), THREADS)
    param_names = ("library", "shape", "threads")

    def setup(self, name, shape, threads):
        self.graph = graph(name, shape, threads)
        self.graph.build()

    def time_backward(self, name, shape, threads):
        self.graph.run()


class Destroy(Build):
    """Destruction of 10,000 nodes without a backward."""

    def setup(self, name, shape):
        super().setup(name, shape)
        self.graph.build()

    def time_destroy(self, name, shape):
        self.graph.destroy()

    time_build = None


class Chain(Phases):
    """Chains of up to a million nodes, without recursion."""

    params = (LIBRARIES, (1_000, 10_000, 100_000, 1_000_000))
    param_names = ("library", "nodes")

    def setup(self, name, nodes):
        self.graph = Graph(library(name), "chain", nodes)
        self.graph.build()

    def time_backward(self, name, nodes):
        self.graph.run()

    def time_destroy(self, name, nodes):
        self.graph.destroy()


class ChainBuild(Phases):
    """The forward part of chains."""

    params = Chain.params
    param_names = Chain.param_names

    def setup(self, name, nodes):
        self.graph = Graph(library(name), "chain", nodes)

    def time_build(self, name, nodes):
        self.graph.build()


class NodeMemory(Phases):
    """Memory of a node of a chain, with its result."""

    params = (LIBRARIES,)
    param_names = ("library",)
    unit = "bytes"

    def setup(self, name):
        self.graph = Graph(library(name), "chain", 200_000)

    def track_bytes_per_node(self, name):
        before = resident_bytes()
        self.graph.build()
        return (resident_bytes() - before) / self.graph.nodes


def _element_wise(lib, state, weight):
    return lib.sigmoid(state * weight)


def _write_into_clone(lib, state, weight):
    made = state.clone().detach()
    made[0] = lib.sigmoid(state[0] * weight[0])
    return made


def _write_through_views(lib, state, weight):
    made = lib.zeros(8, 14)
    made[:4].copy_(state[4:] * weight[0])
    made.t()[0].add_(weight[:, 0])
    return made.mul_(0.5)


def _list_of_rows(lib, state, weight):
    rows = list(state.unbind())
    rows[0] = lib.tanh(rows[0] * weight[0])
    return lib.stack(rows)


STEPS = {"element-wise": _element_wise, "setitem into a clone": _write_into_clone,
         "in-place through views": _write_through_views, "list of rows": _list_of_rows}


class TrackedObjects(Phases):
    """Objects of a graph that the cyclic garbage collector still tracks after a collection."""

    params = (LIBRARIES, tuple(STEPS))
    param_names = ("library", "step")
    unit = "objects"

    def setup(self, name, step):
        self.lib = library(name)

    def track_objects_per_step(self, name, step):
        weight, state = self.lib.ones(8, 14, requires_grad=True), self.lib.ones(8, 14)
        for steps in (10, 1000):
            gc.collect()
            before = len(gc.get_objects())
            for _ in range(steps):
                state = STEPS[step](self.lib, state, weight)
            gc.collect()
        return (len(gc.get_objects()) - before) / steps
