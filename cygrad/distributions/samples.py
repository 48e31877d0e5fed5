"""Sampling by NumPy's algorithms from our random streams."""

import numpy as np

from cygrad._core.creation.creation import from_numpy, numpy_view
from cygrad.random.generator import chosen

__all__ = ["drawn", "numbers_of"]


def numbers_of(generator):
    """Return the NumPy generator of one of ours; one in PyTorch's stream seeds a new one."""
    if generator.algorithm == "pcg64":
        return generator.numbers
    words = np.empty(4, np.int64)
    generator.numbers.integers(words, 0, 1 << 32, False)
    return np.random.default_rng(words.astype(np.uint64))


def drawn(method, dtype, shape, *parameters):
    """Return a sample of `shape` by the named method of NumPy's generator."""
    shape = tuple(shape)
    arrays = [np.broadcast_to(numpy_view(parameter.detach()), shape).astype("float64") for parameter in parameters]
    if method == "binomial":
        arrays[0] = arrays[0].astype("int64")
    generator = chosen(None, method)
    with generator.lock:
        found = getattr(numbers_of(generator), method)(*arrays)
    return from_numpy(np.asarray(found).reshape(shape).copy()).to(dtype)
