"""Samples that NumPy's generators draw, with ours as their source."""

import numpy as np

from cygrad._core.creation.creation import from_numpy, numpy_view
from cygrad.random.generator import chosen

__all__ = ["drawn", "numbers_of"]


def numbers_of(generator):
    """NumPy's generator within one of ours; of the stream of PyTorch, one that its next words are the seed of."""
    if generator.algorithm == "pcg64":
        return generator.numbers
    words = np.empty(4, np.int64)
    generator.numbers.integers(words, 0, 1 << 32, False)
    return np.random.default_rng(words.astype(np.uint64))


def drawn(method, dtype, shape, *parameters):
    """Return a sample of `shape` by the method of NumPy's generator of that name."""
    shape = tuple(shape)
    arrays = [np.broadcast_to(numpy_view(parameter.detach()), shape).astype("float64") for parameter in parameters]
    if method == "binomial":
        arrays[0] = arrays[0].astype("int64")
    generator = chosen(None, method)
    with generator.lock:
        found = getattr(numbers_of(generator), method)(*arrays)
    return from_numpy(np.asarray(found).reshape(shape).copy()).to(dtype)
