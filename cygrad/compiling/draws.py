"""
Random numbers in recorded functions.

Nothing that is drawn depends on what is computed: other draws are not noted. So a replay draws all numbers before it
begins, in the order of the recording, and from the same generators: these are the numbers, and the states of
generators, that the function itself would have left.
"""

import numpy as np

from cygrad.random import draws
from cygrad.random.generator import chosen, current, noting

__all__ = ["Draws"]

PLAIN = (int, float, bool, str, type(None), np.dtype, type)


class Draws:
    """
    What a function draws while it is recorded; called later, it draws as much again.

    Parameters
    ----------
    recorder : Recorder
    """

    def __init__(self, recorder):
        self.recorder = recorder
        self.calls = []               # (function of `draws`, generator or None for the default one, arguments)
        self.generators = []          # (generator or None, what stood for it, its algorithm)
        self.made = {}                # id of an ndarray -> (it, number of the call, is it a tensor by now)
        self.inside = False

    def __enter__(self):
        noting.draws = self
        return self

    def __exit__(self, *error):
        noting.draws = None
        if not all(used for _, _, used in self.made.values()):
            self.recorder.lose("it draws random numbers of which it makes no tensor")
        self.made = {}

    def draw(self, function, generator, arguments):
        """Draw as ever, and note it; the generators that draw for a batch are not ours to note."""
        if self.inside:
            return function.plain(generator, *arguments)
        self.inside = True
        try:
            array = function.plain(generator, *arguments)
        finally:
            self.inside = False
        if generator.algorithm == "vmap" or not all(map(is_plain, arguments)):
            self.used("what it draws depends on elements")
            return array
        kept = None if generator is current() else generator
        self.generators.append((kept, generator, generator.algorithm))
        self.made[id(array)] = array, len(self.calls), False
        self.calls.append((function, kept, arguments))
        return array

    def tensor(self, array):
        """The tensor of what was drawn, which comes from outside next time; None: it was not drawn just so."""
        found, number, _ = self.made.get(id(array), (None, None, None))
        if found is not array or self.recorder.reason is not None:
            return None
        self.made[id(array)] = array, number, True
        return self.recorder.drawn(array, number)

    def used(self, reason="it reads or sets the state of a random number generator"):
        """Generators were used in another way."""
        if not self.inside:
            self.recorder.lose(reason)

    def fits(self):
        """Are the generators what they were?"""
        return all((current() if kept is None else kept) is generator and generator.algorithm == algorithm
                   for kept, generator, algorithm in self.generators)

    def __call__(self):
        """The next numbers, as tensors."""
        return [draws.tensor_over(function(chosen(generator, "compile"), *arguments))
                for function, generator, arguments in self.calls]


def is_plain(value):
    """Will it be the same next time?"""
    return isinstance(value, PLAIN) or (isinstance(value, tuple) and all(map(is_plain, value)))

