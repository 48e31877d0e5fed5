"""Compiled steps: execution and tracing."""

import cygrad

from . import suite
from .networks import transformer_block
from .scenarios import EVERY
from .workloads import library, needs


class Replay:
    """A compiled step."""

    params = (("cygrad",), ("mlp-tiny", "mlp-tiny-adam", "mlp-small", "rnn", "lstm", "mixed-1e4", "hvp", "hessian",
                            "mixture"), suite.THREADS)
    param_names = ("library", "program", "threads")

    def setup(self, name, key, threads):
        lib = library(name, threads)
        needs(lib, "compile")
        self.step = lib.compile(EVERY[key].make(lib))
        for _ in range(4):
            self.step()

    def time_step(self, name, key, threads):
        self.step()


class Recording:
    """Tracing and lowering of a transformer block, with its first step."""

    params = (("cygrad",), suite.THREADS)
    param_names = ("library", "threads")

    def setup(self, name, threads):
        lib = library(name, threads)
        needs(lib, "compile")
        self.step = transformer_block(lib, 128, 64)
        self.step()

    def time_first_call(self, name, threads):
        cygrad.compile(self.step)()
