"""Recurrent networks: loops of elementary operations, and the layers; forward and backward."""

from .workloads import LIBRARIES, library, needs, random_tensor

STEPS, SIZE, BATCH = 100, 64, 16


def weights(lib, gates):
    """Matrices for input and state, and a bias."""
    matrices = [(random_tensor(lib, SIZE, gates * SIZE, seed=seed) / 8).requires_grad_() for seed in (1, 2)]
    return *matrices, lib.zeros(gates * SIZE).requires_grad_()


def plain_loop(lib):
    """-> function: a tanh network, step by step."""
    of_input, of_state, bias = parameters = weights(lib, 1)
    steps = random_tensor(lib, STEPS, BATCH, SIZE)

    def step():
        for parameter in parameters:
            parameter.grad = None
        hidden = lib.zeros(BATCH, SIZE)
        for number in range(STEPS):
            hidden = lib.tanh(steps[number] @ of_input + hidden @ of_state + bias)
        hidden.sum().backward()
    return step


def lstm_loop(lib):
    """-> function: an LSTM of elementary operations, step by step."""
    of_input, of_state, bias = parameters = weights(lib, 4)
    steps = random_tensor(lib, STEPS, BATCH, SIZE)

    def step():
        for parameter in parameters:
            parameter.grad = None
        hidden, cell = lib.zeros(BATCH, SIZE), lib.zeros(BATCH, SIZE)
        for number in range(STEPS):
            logits = steps[number] @ of_input + hidden @ of_state + bias
            enter, forget, candidate, leave = logits.chunk(4, 1)
            cell = lib.sigmoid(forget) * cell + lib.sigmoid(enter) * lib.tanh(candidate)
            hidden = lib.sigmoid(leave) * lib.tanh(cell)
        hidden.sum().backward()
    return step


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


class Loops:
    """100 steps, batch 16, 64 units, written out by the user."""

    params = (LIBRARIES, ("tanh", "lstm"))
    param_names = ("library", "network")

    def setup(self, name, network):
        self.step = {"tanh": plain_loop, "lstm": lstm_loop}[network](library(name))
        self.step()

    def time_step(self, name, network):
        self.step()


class Layers:
    """The same sizes as a module."""

    params = (LIBRARIES, ("RNN", "LSTM", "GRU"), (False, True))
    param_names = ("library", "kind", "backward")

    def setup(self, name, kind, backward):
        self.step = layer(library(name), kind, backward=backward)
        self.step()

    def time_step(self, name, kind, backward):
        self.step()


class WideLayers(Layers):
    """50 steps, batch 32, 256 units."""

    params = (LIBRARIES, ("LSTM", "GRU"))
    param_names = ("library", "kind")

    def setup(self, name, kind):
        self.step = layer(library(name), kind, 256, 32, 50)
        self.step()

    def time_step(self, name, kind):
        self.step()
