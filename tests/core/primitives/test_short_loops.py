"""Custom arithmetic loops are bit-identical to NumPy for all values, lengths and layouts."""

import numpy as np
import pytest

import cygrad._core.elementwise.elementwise  # noqa: F401 - fills the table of primitives
from cygrad._core.primitives.primitive_table import arity_of
from cygrad._core.testing.interop import apply

UFUNCS = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.true_divide, "neg": np.negative,
          "square": np.square, "sqrt": np.sqrt, "reciprocal": np.reciprocal}
SPECIAL = [0.0, -0.0, 1.0, -1.5, 3e-39, -1e-45, 3.4e38, np.inf, -np.inf, np.nan, -np.nan, 1 / 3]


def all_pairs(dtype):
    special = np.array(SPECIAL, dtype)
    return [np.ascontiguousarray(x.ravel()) for x in np.meshgrid(special, special)]


def assert_same_bits(found, expected):
    """The sign of nan apart: of nan and -nan a compiler may take either, and does in builds with a sanitizer."""
    words = {4: np.uint32, 8: np.uint64}[expected.dtype.itemsize]
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    found, expected = (np.where(np.isnan(values), np.nan, values).view(words) for values in (found, expected))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", UFUNCS)
def test_bits_are_those_of_numpy(name, dtype):
    operands = all_pairs(dtype)[:arity_of(name)]
    with np.errstate(all="ignore"):
        for length in (1, 15, 16, 17, 33, 144):
            given = [operand[:length] for operand in operands]
            assert_same_bits(apply(name, *given), UFUNCS[name](*given))
            reversed_ones = [operand[::-1][:length] for operand in operands]
            assert_same_bits(apply(name, *reversed_ones), UFUNCS[name](*reversed_ones))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div"])
def test_one_number_for_all(name, dtype):
    x = np.resize(np.array(SPECIAL, dtype), 52)
    with np.errstate(all="ignore"):
        for number in SPECIAL:
            one = np.array(number, dtype)
            assert_same_bits(apply(name, x, one), UFUNCS[name](x, one))
            assert_same_bits(apply(name, one, x), UFUNCS[name](one, x))
