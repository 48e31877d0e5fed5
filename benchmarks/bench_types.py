"""16-bit floats: the same work in each dtype, large tensors, forward and backward."""

from .workloads import LIBRARIES, library, needs, random_tensor

DTYPES = ("float32", "bfloat16", "float16")
THREADS = (1, 2)


class ShortFloats:
    """A million elements, and square matrices of 512."""

    params = (LIBRARIES, DTYPES, THREADS)
    param_names = ("library", "dtype", "threads")

    def setup(self, name, dtype, threads):
        lib = library(name, threads)
        needs(lib, dtype)
        dtype = getattr(lib, dtype)
        self.elements = random_tensor(lib, 1000, 1000).to(dtype)
        self.leaf = random_tensor(lib, 1000, 1000, seed=1).to(dtype).requires_grad_()
        self.matrix = random_tensor(lib, 512, 512, seed=2).to(dtype)

    def time_multiply(self, name, dtype, threads):
        self.elements * self.elements

    def time_sum(self, name, dtype, threads):
        self.elements.sum()

    def time_softmax(self, name, dtype, threads):
        self.elements.softmax(-1)

    def time_matmul(self, name, dtype, threads):
        self.matrix @ self.matrix

    def time_forward_and_backward(self, name, dtype, threads):
        (self.leaf * self.elements).tanh().sum().backward()
        self.leaf.grad = None
