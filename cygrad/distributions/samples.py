"""Samples that NumPy's generators draw, with ours as their source."""

import numpy as np

from cygrad._core.creation.access import numpy_view
from cygrad._core.creation.creation import from_numpy
from cygrad.random.generator import chosen

__all__ = ["drawn"]


def drawn(method, dtype, shape, *parameters):
    """A sample of `shape` by the method of NumPy's generator of that name."""
    shape = tuple(shape)
    arrays = [np.broadcast_to(numpy_view(parameter.detach()), shape).astype("float64") for parameter in parameters]
    if method == "binomial":
        arrays[0] = arrays[0].astype("int64")
    generator = chosen(None, method)
    with generator.lock:
        found = getattr(generator.numbers, method)(*arrays)
    return from_numpy(np.asarray(found).reshape(shape).copy()).to(dtype)
