"""
Random numbers in ndarrays: each function makes a new contiguous array of a shape and dtype.

They draw from NumPy's generator; for a `Generator` of the algorithm "mt19937" the functions of the same names in
`mersenne` do it.
"""

import functools
import math

import numpy as np

from cygrad._core.creation.creation import elements, from_numpy
from cygrad._core.creation.factories import empty
from cygrad._core.graph.operation_names import called_operation
from cygrad.random.generator import noting

FEW = 2048                    # weights that are sorted all
LARGE = 1 << 16               # bytes of an array
# Mantissa bits of floating dtypes: integers up to 2**bits are exact.
DIGITS = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}
# Numbers of other dtypes are drawn in these and rounded.
WIDER = {"float16": np.dtype("f4"), "bfloat16": np.dtype("f4"), "complex32": np.dtype("c8")}


@functools.cache
def drawn_in(dtype):
    """Return the NumPy dtype in which numbers for tensors of a dtype are drawn."""
    return WIDER.get(dtype.name) or dtype.numpy_dtype


def _by_algorithm(draw):
    """Return the function, or the one of its name in `mersenne`, for the generator."""
    def plain(generator, *arguments):
        if generator.algorithm == "pcg64":
            return draw(generator, *arguments)
        if generator.algorithm == "vmap":
            return generator.draw(drawn, *arguments)
        from cygrad.random import mersenne
        with generator.lock:
            return getattr(mersenne, draw.__name__)(generator.numbers, *arguments)

    @functools.wraps(draw)
    def drawn(generator, *arguments):
        if noting.draws is not None:
            return noting.draws.draw(drawn, generator, arguments)
        return (draw if generator.algorithm == "pcg64" else plain)(generator, *arguments)

    drawn.plain = plain  # type: ignore[attr-defined]
    return drawn


def tensor_over(array):
    """Return the tensor of drawn numbers, which may be those of all entries of a batch."""
    made = noting.draws.tensor(array) if noting.draws is not None else None
    if made is not None:
        return made
    if type(array) is np.ndarray:
        return from_numpy(array)
    return array.tensor() if hasattr(array, "tensor") else from_numpy(np.asarray(array))


def _parts(array):
    """Return a contiguous array as one of real numbers; a complex one as its parts."""
    kind = array.dtype.char
    return array.reshape(-1).view(kind.lower()) if kind in "FD" else array


def _memory(shape, dtype):
    """Return an array without values: a large one in memory of our own, which vectors of any width fit."""
    array = np.empty(shape, dtype)
    return array if array.nbytes < LARGE else elements(empty(shape, dtype=dtype))


@_by_algorithm
def uniform(generator, shape, dtype, low=0.0, high=1.0):
    """Draw uniform numbers in [low, high), real and imaginary parts alike."""
    array = _memory(shape, dtype)
    flat = _parts(array)
    generator.fill("random", flat)
    if low != 0 or high != 1:
        flat *= high - low
        flat += low
        # Rounding may have reached the upper end, which is excluded.
        np.copyto(flat, np.nextafter(flat.dtype.type(high), flat.dtype.type(low)),
                  where=flat >= high if high > low else False)
    return array


@_by_algorithm
def normal(generator, shape, dtype, mean=0.0, std=1.0):
    """Draw normal numbers; for complex dtypes both parts have half of the variance."""
    array = _memory(shape, dtype)
    flat = _parts(array)
    generator.fill("standard_normal", flat)
    scale = std if flat is array else std / math.sqrt(2)
    if scale != 1:
        flat *= scale
    if mean != 0:
        array += mean
    return array


@functools.cache
def _tiny(dtype):
    return np.finfo(dtype).tiny


@_by_algorithm
def exponential(generator, shape, dtype, rate=1.0):
    """Draw exponential numbers with mean 1 / rate, never zero."""
    array = _memory(shape, dtype)
    flat = _parts(array)
    with generator.lock:
        generator.numbers.standard_exponential(out=flat, dtype=flat.dtype)
    np.maximum(flat, _tiny(flat.dtype), out=flat)
    if rate != 1:
        flat /= rate
    return array


@_by_algorithm
def integers(generator, shape, dtype, low, high):
    """Draw integers in [low, high), in any real dtype."""
    dtype = np.dtype(dtype)
    drawn = dtype if dtype.kind in "iu" else np.dtype(np.int64)
    with generator.lock:
        array = generator.numbers.integers(low, high, size=shape, dtype=drawn)
    return np.asarray(array).astype(dtype, copy=False).reshape(shape)


@functools.cache
def limits(dtype):
    """Return the range of integers that the dtype of a tensor represents exactly, both ends included."""
    if dtype.name == "bool":
        return 0, 1
    if dtype.is_floating_point:
        return -(1 << DIGITS[dtype.name]), 1 << DIGITS[dtype.name]
    return np.iinfo(dtype.name).min, np.iinfo(dtype.name).max


@_by_algorithm
def bernoulli(generator, probabilities, shape, dtype):
    """Draw 1 with the probability given, a number or an array that broadcasts to the shape; else 0."""
    wide = getattr(probabilities, "dtype", None)
    chance = uniform(generator, shape, wide if wide is not None and wide.kind == "f" else np.float64)
    try:
        return (chance < probabilities).astype(dtype)
    except ValueError:
        raise RuntimeError(f"{called_operation('bernoulli')}: probabilities of shape {np.shape(probabilities)} do not "
                           f"broadcast to shape {tuple(shape)}.") from None


@_by_algorithm
def permutation(generator, n, dtype):
    """Return the integers below n in random order."""
    numbers = generator.permutation(n)
    return numbers if numbers.dtype is dtype else numbers.astype(dtype, copy=False)


@_by_algorithm
def weighted(generator, weights, n, replacement):
    """Draw indices with the weights along the last dimension, n for each row."""
    rows = weights.reshape(-1, weights.shape[-1]).astype(np.float64)
    if replacement:
        ends = np.cumsum(rows, axis=1)
        chances = uniform(generator, (len(rows), n), np.float64) * ends[:, -1:]
        found = np.empty(chances.shape, np.int64)
        for row, end, chance in zip(found, ends, chances, strict=True):
            row[:] = np.searchsorted(end, chance, side="right")
        # Rounding must not choose an entry of weight 0 after the last with weight.
        last = rows.shape[1] - 1 - np.argmax(rows[:, ::-1] > 0, axis=1)
        found = np.minimum(found, last[:, None])
    else:
        # The n first of independent waiting times: the same as drawing one after the other.
        times = exponential(generator, rows.shape, np.float64)
        if rows.all():
            times /= rows
        else:
            with np.errstate(divide="ignore"):
                times /= rows
        if rows.size < FEW:
            found = np.argsort(times, axis=1, kind="stable")[:, :n]
        else:                              # the first n alone, then in order
            first = np.argpartition(times, n - 1, axis=1)[:, :n]
            order = np.argsort(np.take_along_axis(times, first, 1), axis=1, kind="stable")
            found = np.take_along_axis(first, order, 1)
    return found.astype(np.int64).reshape((*weights.shape[:-1], n))
