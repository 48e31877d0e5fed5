"""Sampling by NumPy's algorithms from our random streams."""

import numpy as np

from cygrad._core.arrays.dtype import float32
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
    generator = chosen(None, method)
    if generator.algorithm == "vmap":
        generator = generator.for_all()
    if generator.algorithm == "mt19937" and method in ("poisson", "binomial"):
        found = np.empty(shape)
        options = (dtype is float32,) if method == "binomial" else ()
        with generator.lock:
            getattr(generator.numbers, method)(found.reshape(-1), *(array.reshape(-1) for array in arrays), *options)
        return from_numpy(found).to(dtype)
    if method == "binomial":
        arrays[0] = arrays[0].astype("int64")
    with generator.lock:
        found = getattr(numbers_of(generator), method)(*arrays)
    return from_numpy(np.asarray(found).reshape(shape).copy()).to(dtype)
