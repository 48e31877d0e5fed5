"""Graphs by shape and size: building, running and destroying them, each apart; and what a node weighs."""

from .workloads import GRAPHS, LIBRARIES, library, resident_bytes

NODES = 10_000


class Phases:
    """The three phases of a graph's life. Each sample has a graph of its own, made in setup."""

    number = 1
    warmup_time = 0

    def prepare(self, name, shape, nodes):
        self.lib = library(name)
        self.make, self.nodes = GRAPHS[shape], nodes
        self.leaf = self.lib.ones(4, requires_grad=True)

    def build(self):
        self.root = self.make(self.lib, self.leaf, self.nodes)


class Shapes(Phases):
    """Graphs of 10,000 nodes."""

    params = (LIBRARIES, tuple(GRAPHS))
    param_names = ("library", "shape")

    def setup(self, name, shape):
        self.prepare(name, shape, NODES)


class Build(Shapes):
    """The forward part."""

    def time_build(self, name, shape):
        self.build()


class Backward(Shapes):
    """The backward part."""

    def setup(self, name, shape):
        super().setup(name, shape)
        self.build()

    def time_backward(self, name, shape):
        self.root.backward()


class Destroy(Backward):
    """Dropping a graph that no backward has run through."""

    def time_destroy(self, name, shape):
        self.root = None

    time_backward = None


class Chain(Phases):
    """Chains up to a million nodes: nothing may recurse."""

    params = (LIBRARIES, (1_000, 10_000, 100_000, 1_000_000))
    param_names = ("library", "nodes")

    def setup(self, name, nodes):
        self.prepare(name, "chain", nodes)
        self.build()

    def time_backward(self, name, nodes):
        self.root.backward()

    def time_destroy(self, name, nodes):
        self.root = None


class ChainBuild(Phases):
    """The forward part of chains."""

    params = Chain.params
    param_names = Chain.param_names

    def setup(self, name, nodes):
        self.prepare(name, "chain", nodes)

    def time_build(self, name, nodes):
        self.build()


class NodeMemory(Phases):
    """What a node of a chain keeps in memory, its result included."""

    params = (LIBRARIES,)
    param_names = ("library",)
    unit = "bytes"

    def setup(self, name):
        self.prepare(name, "chain", 200_000)

    def track_bytes_per_node(self, name):
        before = resident_bytes()
        self.build()
        return (resident_bytes() - before) / self.nodes
