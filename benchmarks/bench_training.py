"""Perceptrons: training steps, optimizer steps, and memory."""

from . import suite
from .networks import deep_training_step, optimizer_step, perceptron, training_step
from .workloads import LIBRARIES, library

OPTIMIZERS = {
    "SGD": {},
    "SGD with momentum": {"momentum": 0.9},
    "Adam": {},
    "AdamW": {},
}


class TrainingStep(suite._Scenarios):
    """Forward, backward and plain SGD."""

    params = suite.over("mlp-tiny", "mlp-small", "mlp-large")


class SmallParameters(suite._Scenarios):
    """The optimizer alone, on 100 parameters of 1,000."""

    params = suite.over("step-sgd", "step-adam", libraries=LIBRARIES)


class OptimizerStep:
    """The optimizer alone, on the parameters of 784-256-128-10."""

    params = (LIBRARIES, tuple(OPTIMIZERS), suite.THREADS)
    param_names = ("library", "optimizer", "threads")

    def setup(self, name, optimizer, threads):
        lib = library(name, threads)
        kind, options = optimizer.partition(" ")[0], OPTIMIZERS[optimizer]
        self.step = optimizer_step(lib, list(perceptron(lib).parameters()), kind, **options)
        self.step()

    def time_step(self, name, optimizer, threads):
        self.step()


class Memory:
    """Peak memory of a process, with the library."""

    params = (LIBRARIES, suite.THREADS)
    param_names = ("library", "threads")

    def setup(self, name, threads):
        self.lib = library(name, threads)

    def peakmem_small(self, name, threads):
        """784-256-128-10, batch 64."""
        step = training_step(self.lib)
        for _ in range(20):
            step()

    def peakmem_deep(self, name, threads):
        """50 layers of 1,024, batch 512."""
        step = deep_training_step(self.lib)
        for _ in range(2):
            step()
