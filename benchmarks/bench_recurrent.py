"""Recurrent networks: loops of elementary operations, and the layers; forward and backward."""

from . import suite
from .workloads import LIBRARIES, library, needs, random_tensor

STEPS, SIZE, BATCH = 100, 64, 16


def layer(lib, kind, size=SIZE, batch=BATCH, steps=STEPS, backward=True):
    """-> function: a layer over a sequence."""
    needs(lib, f"nn.{kind}")
    module = getattr(lib.nn, kind)(size, size)
    input = random_tensor(lib, steps, batch, size)

    def step():
        module.zero_grad()
        output = module(input)[0]
        if backward:
            output.sum().backward()
    return step


class Loops(suite._Scenarios):
    """Written out by the user."""

    params = suite.over("rnn", "lstm")


class Layers:
    """The sizes of the tanh network as a module."""

    params = (LIBRARIES, ("RNN", "LSTM", "GRU"), (False, True), suite.THREADS)
    param_names = ("library", "kind", "backward", "threads")

    def setup(self, name, kind, backward, threads):
        self.step = layer(library(name, threads), kind, backward=backward)
        self.step()

    def time_step(self, name, kind, backward, threads):
        self.step()


class WideLayers:
    """50 steps, batch 32, 256 units."""

    params = (LIBRARIES, ("LSTM", "GRU"), suite.THREADS)
    param_names = ("library", "kind", "threads")

    def setup(self, name, kind, threads):
        self.step = layer(library(name, threads), kind, 256, 32, 50)
        self.step()

    def time_step(self, name, kind, threads):
        self.step()
