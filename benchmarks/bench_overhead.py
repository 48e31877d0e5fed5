"""What an operation costs besides its arithmetic: long products of tensors with four elements."""

from .workloads import LIBRARIES, library, multiplication_chain, needs

LENGTH = 2000


class MultiplicationChain:
    """A chain of 2,000 products, in each of the modes."""

    params = (LIBRARIES,)
    param_names = ("library",)

    def setup(self, name):
        self.lib = library(name)
        needs(self.lib, "no_grad", "inference_mode")
        self.leaf, self.forward = multiplication_chain(self.lib, LENGTH)

    def time_recorded(self, name):
        self.forward()

    def time_forward_and_backward(self, name):
        self.forward().sum().backward()
        self.leaf.grad = None

    def time_no_grad(self, name):
        with self.lib.no_grad():
            self.forward()

    def time_inference_mode(self, name):
        with self.lib.inference_mode():
            self.forward()
