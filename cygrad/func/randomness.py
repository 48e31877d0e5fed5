"""Random numbers under `vmap`: an error, the same for all entries, or different for each."""

import numpy as np

from cygrad._core.creation.creation import from_numpy, numpy_view
from cygrad._core.creation.factories import empty_like
from cygrad.func.batched import dress, peel, restore, strip
from cygrad.random.generator import current, own_generator

__all__ = ["Chunks", "Entries", "drawing", "entries_of"]


class Entries(np.ndarray):
    """An array whose first dimensions are batches."""

    levels = ()

    def __array_finalize__(self, other):
        self.levels = getattr(other, "levels", ())

    def tensor(self):
        """Return the `Batched` tensor with these elements."""
        return dress(from_numpy(np.asarray(self)), self.levels)


def entries(array, levels):
    """Create an array with the batches of these levels as first dimensions."""
    array = np.asarray(array).view(Entries)
    array.levels = tuple(levels)
    return array


def entries_of(tensor):
    """Return the elements of a batched tensor."""
    value, levels = peel(tensor)
    return entries(numpy_view(value), levels)


class EntryGenerator:
    """The default generator under `vmap`."""

    algorithm = "vmap"

    def __init__(self, level, outer, chunks):
        self.level, self.outer, self.chunks = level, outer, chunks
        if chunks is not None:
            chunks.start(outer)

    def over(self, generator):
        """Return what draws from another generator in the modes of these levels."""
        outer = self.outer.over(generator) if isinstance(self.outer, EntryGenerator) else generator
        return EntryGenerator(self.level, outer, self.chunks)

    def draw(self, function, *arguments):
        """Draw numbers in the mode of the level."""
        level = self.level
        self.check()
        if level.randomness == "same":
            if function.__name__ == "weighted" and level in getattr(arguments[0], "levels", ()):
                raise RuntimeError("multinomial: Vmap does not currently support same randomness with a batched "
                                   "tensor input, because weights that differ between entries require different draws "
                                   "(got randomness='same'). Use randomness='different'.")
            return function(self.outer, *arguments)
        levels = self.outer.different() if isinstance(self.outer, EntryGenerator) else ()
        name, first = function.__name__, arguments[0]
        if name == "permutation":
            drawn = np.stack([function(self.outer, *arguments) for _ in range(level.size)], len(levels))
        elif name == "weighted":
            if level not in getattr(first, "levels", ()):
                first = np.broadcast_to(first, (level.size, *np.shape(first)))
            drawn = function(self.outer, first, *arguments[1:])
        elif name == "bernoulli":
            drawn = function(self.outer, first, (level.size, *arguments[1]), *arguments[2:])
        else:
            drawn = function(self.outer, (level.size, *first), *arguments[1:])
        return entries(drawn, (*levels, level))

    def check(self):
        """Raise an error if the mode of the level is "error"."""
        if self.level.randomness == "error":
            raise RuntimeError("vmap: called random operation while in randomness error mode (got "
                               "randomness='error'). Pass randomness='different' or 'same', or draw outside of vmap.")

    def different(self):
        """Return the levels in the mode "different"."""
        outer = self.outer.different() if isinstance(self.outer, EntryGenerator) else ()
        return (*outer, self.level) if self.level.randomness == "different" else outer

    def per_entry(self, memory):
        """Return uninitialized memory for the entries of these levels."""
        levels = list(self.different())
        return restore(empty_like(strip(memory, levels)), levels)

    def for_all(self):
        """Return the generator whose numbers are those of all entries; raise if they have different ones."""
        self.check()
        if self.level.randomness == "different":
            raise RuntimeError("vmap: this distribution does not support randomness='different'. Draw outside of vmap, "
                               "or use randomness='same'.")
        return self.outer.for_all() if isinstance(self.outer, EntryGenerator) else self.outer

    def __getattr__(self, name):
        return getattr(self.for_all(), name)


class Chunks:
    """Chunks of a batch that draw the same numbers: each begins with the states of generators of the first."""

    def __init__(self):
        self.states, self.started = {}, set()

    def start(self, generator):
        """Set the state of a generator that this chunk has not used yet."""
        while isinstance(generator, EntryGenerator):
            generator = generator.outer
        if generator in self.started:
            return
        self.started.add(generator)
        if generator in self.states:
            generator.set_state(self.states[generator])
        else:
            self.states[generator] = generator.get_state()


def drawing(level, chunks):
    """Draw random numbers in the mode of the level within a block; `chunks` is None if they may differ."""
    if chunks is not None:
        chunks.started.clear()
    return own_generator(EntryGenerator(level, current(), chunks))

