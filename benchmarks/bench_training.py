"""A perceptron 784-256-128-10: whole training steps, the steps of the optimisers, and the memory of it."""

from .workloads import LIBRARIES, library, needs, perceptron, training_step

OPTIMISERS = {
    "SGD": {},
    "SGD with momentum": {"momentum": 0.9},
    "Adam": {},
    "AdamW": {},
}


class TrainingStep:
    """Forward, backward and plain SGD on a batch of 64."""

    params = (LIBRARIES, (1, 2))
    param_names = ("library", "threads")

    def setup(self, name, threads):
        self.step = training_step(library(name, threads))
        self.step()

    def time_step(self, name, threads):
        self.step()


class TrainingMemory:
    """The most memory that a process needs for it, library and all."""

    params = (LIBRARIES,)
    param_names = ("library",)

    def setup(self, name):
        self.step = training_step(library(name))

    def peakmem_steps(self, name):
        for _ in range(20):
            self.step()


class OptimiserStep:
    """The optimiser alone, on given gradients."""

    params = (LIBRARIES, tuple(OPTIMISERS))
    param_names = ("library", "optimiser")

    def setup(self, name, optimiser):
        lib = library(name)
        kind, options = optimiser.partition(" ")[0], OPTIMISERS[optimiser]
        needs(lib, f"optim.{kind}")
        model = perceptron(lib)
        for parameter in model.parameters():
            parameter.grad = lib.ones_like(parameter) * 1e-3
        self.optimiser = getattr(lib.optim, kind)(model.parameters(), lr=0.01, **options)
        self.optimiser.step()

    def time_step(self, name, optimiser):
        self.optimiser.step()
