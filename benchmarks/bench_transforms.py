"""Function transforms: vmap relative to the batched function, and per-sample gradients."""

from .workloads import LIBRARIES, library, needs, random_tensor

THREADS = (1, 2)
SAMPLES = 64


class Transforms:
    """A perceptron of two layers on 64 samples; a function of a vector of 50."""

    params = (LIBRARIES, THREADS)
    param_names = ("library", "threads")

    def setup(self, name, threads):
        lib = library(name, threads)
        needs(lib, "func.vmap", "func.grad", "func.jacrev", "func.jacfwd")
        self.weights = [random_tensor(lib, 32, 64, scale=0.1), random_tensor(lib, 64, 10, seed=1, scale=0.1)]
        self.inputs, self.vector = random_tensor(lib, SAMPLES, 32, seed=2), random_tensor(lib, 50, seed=3)

        def loss(weights, sample):
            return ((sample @ weights[0]).tanh() @ weights[1]).square().sum()

        def quartic(vector):
            return (vector.square() * vector.square().sum()).sum()

        def layer(sample):
            return (sample @ self.weights[0]).tanh()

        self.batched = lib.func.vmap(layer)
        self.gradients = lib.func.vmap(lib.func.grad(loss), in_dims=(None, 0))
        self.jacobian = lib.func.jacrev(layer)
        self.hessian = lib.func.jacfwd(lib.func.grad(quartic))

    def time_vmap(self, name, threads):
        self.batched(self.inputs)

    def time_gradients_of_samples(self, name, threads):
        self.gradients(self.weights, self.inputs)

    def time_jacobian(self, name, threads):
        self.jacobian(self.inputs)

    def time_hessian(self, name, threads):
        self.hessian(self.vector)
