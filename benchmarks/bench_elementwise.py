"""Large tensors: forward and backward of ``(((a*b).tanh()+a).exp()).sum()``."""

from .workloads import LIBRARIES, elementwise_chain, library


class ElementwiseChain:
    """From what fits into a cache to what does not; with one thread and with two."""

    params = (LIBRARIES, (10_000, 100_000, 1_000_000, 10_000_000), (1, 2))
    param_names = ("library", "elements", "threads")

    def setup(self, name, elements, threads):
        self.step = elementwise_chain(library(name, threads), elements)
        self.step()

    def time_forward_and_backward(self, name, elements, threads):
        self.step()
