"""Single kernels on large tensors: products, reductions, softmax, and allocation."""

from .workloads import LIBRARIES, library, random_tensor

THREADS = (1, 2)


class MatrixProduct:
    """Square matrices, float32."""

    params = (LIBRARIES, (128, 512, 1024), THREADS)
    param_names = ("library", "size", "threads")

    def setup(self, name, size, threads):
        self.lib = library(name, threads)
        self.a, self.b = random_tensor(self.lib, size, size), random_tensor(self.lib, size, size, seed=1)

    def time_matmul(self, name, size, threads):
        self.lib.matmul(self.a, self.b)


class LayerProducts:
    """The products of a layer: its output, and the gradients of its input and of its weight."""

    params = (LIBRARIES, ("output", "input", "weight"), ((16, 64, 64), (64, 784, 256), (256, 512, 512)), THREADS)
    param_names = ("library", "product", "batch, inputs, outputs", "threads")

    def setup(self, name, product, sizes, threads):
        self.lib = lib = library(name, threads)
        batch, inputs, outputs = sizes
        x, grad = random_tensor(lib, batch, inputs), random_tensor(lib, batch, outputs, seed=1)
        weight = random_tensor(lib, outputs, inputs, seed=2)
        self.a, self.b = {"output": (x, weight.T), "input": (grad, weight), "weight": (grad.T, x)}[product]

    def time_matmul(self, name, product, sizes, threads):
        self.lib.matmul(self.a, self.b)


class Reductions:
    """A matrix of 4 million elements, along each dimension and along both."""

    params = (LIBRARIES, (0, 1, None), THREADS)
    param_names = ("library", "dim", "threads")

    def setup(self, name, dim, threads):
        self.lib = library(name, threads)
        self.a = random_tensor(self.lib, 2048, 2048)

    def time_sum(self, name, dim, threads):
        self.lib.sum(self.a) if dim is None else self.lib.sum(self.a, dim)

    def time_softmax(self, name, dim, threads):
        self.lib.softmax(self.a, -1 if dim is None else dim)


class FreshMemory:
    """Allocation and release of a result of 40 MB: page faults cost more than the arithmetic."""

    params = (LIBRARIES, THREADS)
    param_names = ("library", "threads")

    def setup(self, name, threads):
        self.a = random_tensor(library(name, threads), 10_000_000)

    def time_add(self, name, threads):
        self.a + 1.0
