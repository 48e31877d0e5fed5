"""Attention and transformer blocks, forward and backward."""

from .workloads import LIBRARIES, library, needs, random_tensor

# features, heads, batch, steps
SIZES = {"small": (128, 4, 4, 64), "large": (512, 8, 4, 128)}


def block(lib, features, heads, batch, steps):
    """-> function: one encoder layer."""
    needs(lib, "nn.TransformerEncoderLayer")
    module = lib.nn.TransformerEncoderLayer(features, heads, 4 * features, dropout=0.0, batch_first=True)
    input = random_tensor(lib, batch, steps, features)

    def step():
        module.zero_grad()
        module(input).sum().backward()
    return step


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


class Block:
    """An encoder layer, with a feed-forward part four times as wide."""

    params = (LIBRARIES, tuple(SIZES), (1, 2))
    param_names = ("library", "size", "threads")

    def setup(self, name, size, threads):
        self.step = block(library(name, threads), *SIZES[size])
        self.step()

    def time_step(self, name, size, threads):
        self.step()


class Attention:
    """Queries, keys and values of several heads; each query sees what is before it."""

    params = (LIBRARIES, tuple(SIZES))
    param_names = ("library", "size")

    def setup(self, name, size):
        self.step = attention(library(name), *SIZES[size])
        self.step()

    def time_step(self, name, size):
        self.step()
