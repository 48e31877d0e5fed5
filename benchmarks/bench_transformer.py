"""Attention and transformer blocks, forward and backward."""

from . import suite
from .workloads import LIBRARIES, library, needs, random_tensor

# features, heads, batch, steps
SIZES = {"small": (128, 4, 4, 64), "large": (512, 8, 4, 128)}


def attention(lib, features, heads, batch, steps):
    """-> function: causal attention alone, in heads already."""
    needs(lib, "nn.functional.scaled_dot_product_attention")
    parts = [random_tensor(lib, batch, heads, steps, features // heads, seed=seed, requires_grad=True)
             for seed in range(3)]

    def step():
        for part in parts:
            part.grad = None
        lib.nn.functional.scaled_dot_product_attention(*parts, is_causal=True).sum().backward()
    return step


class Block(suite._Scenarios):
    """Blocks of elementary operators, and the encoder layer of `nn`; the feed-forward part is four times as wide."""

    params = suite.over("block-128", "block-512", "layer-128")


class Attention:
    """Causal attention with several heads."""

    params = (LIBRARIES, tuple(SIZES), suite.THREADS)
    param_names = ("library", "size", "threads")

    def setup(self, name, size, threads):
        self.step = attention(library(name, threads), *SIZES[size])
        self.step()

    def time_step(self, name, size, threads):
        self.step()
