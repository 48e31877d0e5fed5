"""
PyTorch's stream of random numbers on CPUs: the Mersenne Twister, and how numbers are made of its 32-bit words.

The functions have the names and arguments of those in `draws`, with a `RandomStream` for the generator. They are
bit-identical to PyTorch, except where it uses another library: on Intel processors for ``bernoulli_`` with one
probability, dropout and ``exponential_``.
"""

import math

import numpy as np

from cygrad._core.creation.factories import RandomStream as Mersenne

__all__ = ["Mersenne", "bernoulli", "exponential", "integers", "normal", "permutation", "uniform", "weighted"]

WIDE_RANGE = 1 << 28          # ranges of integers that take two words each


def _filled(draw, shape, dtype, *arguments):
    """Return an array from a method that fills contiguous real numbers; a complex one from twice as many."""
    array = np.empty(shape, dtype)
    draw(array.reshape(-1).view(array.real.dtype), *arguments)
    return array


def uniform(numbers, shape, dtype, low=0.0, high=1.0):
    """Draw uniform numbers in [low, high)."""
    return _filled(numbers.uniform, shape, dtype, low, high)


def normal(numbers, shape, dtype, mean=0.0, std=1.0, in_blocks=True):
    """Draw normal numbers; for complex dtypes both parts have half of the variance."""
    if np.dtype(dtype).kind != "c":
        return _filled(numbers.normal, shape, dtype, mean, std, in_blocks)
    array = _filled(numbers.normal, shape, dtype, 0.0, std / math.sqrt(2), in_blocks)
    return array + array.dtype.type(mean) if mean else array


def exponential(numbers, shape, dtype, rate=1.0):
    """Draw exponential numbers with mean 1 / rate."""
    wide = np.complex128 if np.dtype(dtype).kind == "c" else np.float64
    return _filled(numbers.exponential, shape, wide, rate).astype(dtype)


def integers(numbers, shape, dtype, low, high):
    """Draw integers in [low, high), in any real dtype."""
    return _filled(numbers.integers, shape, np.int64, low, high, high - low >= WIDE_RANGE).astype(dtype)


def bernoulli(numbers, probabilities, shape, dtype):
    """Draw 1 with the probability given, a number or an array that broadcasts to the shape; else 0."""
    kind = np.float64 if getattr(probabilities, "dtype", np.float64) == np.float64 else np.float32
    return (uniform(numbers, shape, kind) < probabilities).astype(dtype)


def permutation(numbers, n, dtype):
    """Return a random permutation of the integers below n."""
    return _filled(numbers.permutation, (n,), np.int64, n >= (1 << 32) // 20).astype(dtype, copy=False)


def weighted(numbers, weights, n, replacement):
    """Draw indices with the weights along the last dimension, n for each row."""
    rows = weights.reshape(-1, weights.shape[-1])
    if n > 1 and replacement:
        ends = np.cumsum(rows, axis=1)
        ends = ends / ends[:, -1:]
        chances = uniform(numbers, (len(rows), n), np.float64)
        found = np.empty(chances.shape, np.int64)
        for row, end, chance in zip(found, ends, chances, strict=True):
            row[:] = np.searchsorted(end, chance)
        last = rows.shape[1] - 1 - np.argmax(rows[:, ::-1] > 0, axis=1)
        found = np.minimum(found, last[:, None])
    else:
        with np.errstate(divide="ignore"):
            scores = rows / exponential(numbers, rows.shape, rows.dtype)
        found = np.argsort(-scores, axis=1, kind="stable")[:, :n]
    return found.astype(np.int64).reshape((*weights.shape[:-1], n))
