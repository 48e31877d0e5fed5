"""
Random numbers in traced functions.

Traced draws do not depend on computed values, so an execution draws all numbers before it starts, in the traced order
and from the same generators. Numbers and generator states equal those of the function itself.
"""

import numpy as np

from cygrad.random import draws
from cygrad.random.generator import chosen, current, noting

__all__ = ["Draws"]

PLAIN = (int, float, bool, str, type(None), np.dtype, type)


class Draws:
    """
    The draws of a traced function; calling it repeats them.

    Parameters
    ----------
    tracer : Tracer
    """

    def __init__(self, tracer):
        self.tracer = tracer
        self.calls = []               # (function, generator or None for the default one, arguments)
        self.generators = []          # (generator or None, the traced generator, its algorithm)
        self.made = {}                # id of an ndarray -> (ndarray, index in calls, has a tensor)
        self.inside = False

    def __enter__(self):
        noting.draws = self
        return self

    def __exit__(self, *error):
        noting.draws = None
        if not all(used for _, _, used in self.made.values()):
            self.tracer.abort("it draws random numbers without creating a tensor of them")
        self.made = {}

    def draw(self, function, generator, arguments):
        """Draw and trace random numbers; draws of batched generators are not traced."""
        if self.inside:
            return function.plain(generator, *arguments)
        self.inside = True
        try:
            array = function.plain(generator, *arguments)
        finally:
            self.inside = False
        if generator.algorithm == "vmap" or not all(map(is_plain, arguments)):
            self.used("its random numbers depend on values of tensors")
            return array
        kept = None if generator is current() else generator
        if not any(known is generator for _, known, _ in self.generators):
            self.generators.append((kept, generator, generator.algorithm))
        self.made[id(array)] = array, len(self.calls), False
        self.calls.append((function, kept, arguments))
        return array

    def tensor(self, array):
        """Return the input tensor over drawn numbers; None if the array is not one of the draws."""
        found, number, _ = self.made.get(id(array), (None, None, None))
        if found is not array or self.tracer.reason is not None:
            return None
        self.made[id(array)] = array, number, True
        return self.tracer.trace_draw(array, number)

    def used(self, reason="it reads or sets the state of a random number generator"):
        """Abort the trace because a generator is used in another way."""
        if not self.inside:
            self.tracer.abort(reason)

    def matches(self):
        """Return whether the generators are the traced ones."""
        return all((current() if kept is None else kept) is generator and generator.algorithm == algorithm
                   for kept, generator, algorithm in self.generators)

    def states(self):
        """Return the states of all generators; reading that of PCG64 as it is takes a third of the time."""
        return [generator._packed() if algorithm == "mt19937" else generator.numbers.bit_generator.state
                for _, generator, algorithm in self.generators]

    def restore(self, states):
        """Restore the states of all generators."""
        for (_, generator, _), state in zip(self.generators, states, strict=True):
            if isinstance(state, bytes):
                generator._unpack(state)
            else:
                generator.numbers.bit_generator.state = state

    def __call__(self):
        """Draw the next numbers and return them as tensors."""
        return [draws.tensor_over(function(chosen(generator, "compile"), *arguments))
                for function, generator, arguments in self.calls]


def is_plain(value):
    """Return whether the value is the same in each call."""
    return isinstance(value, PLAIN) or (isinstance(value, tuple) and all(map(is_plain, value)))

