"""Arrays of the tests in this folder."""

import re

import numpy as np

ARRAYS = {
    "x": np.array([[1.0, 4.0, 4.0], [-3.0, 2.5, -0.5]]),
    "y": np.array([2.0, -4.0, 0.5]),
    "w": np.array([1.0, 2.0, 3.0, 4.0, 7.0]),
    "c": np.random.default_rng(0).standard_normal((2, 3, 4)),
    "f": np.array([0.5, -1.5], dtype=np.float32),
    "z": np.array([[1 + 2j, -3j], [2.0, 0.5]]),
    "n": np.array([[1.0, np.nan, 3.0], [np.nan, np.nan, np.nan]]),
    "k": np.array([[3, 1, 2], [0, 5, 4]]),
    "v": np.array([2, 0, 1, 1, 5]),
    "b": np.array([True, False, True]),
}


def names_in(text):
    """The arrays that an expression names."""
    return [name for name in ARRAYS if re.search(rf"\b{name}\b", text)]
