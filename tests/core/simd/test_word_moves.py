"""Transposed and reversed copies around the sizes of vector blocks."""

import numpy as np
import pytest

import cygrad

SIDES = (1, 3, 8, 15, 16, 17, 33, 64, 100)
DTYPES = ("uint8", "int16", "int32", "int64", "float32", "float64", "complex64", "complex128", "bool")


def numbers(shape, dtype):
    return np.random.default_rng(0).integers(0, 250, shape).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_matrices_are_turned(dtype):
    for rows in SIDES:
        for columns in SIDES:
            array = numbers((rows + 1, columns + 2), dtype)
            tensor = cygrad.from_numpy(array)
            assert np.array_equal(tensor.t().contiguous().numpy(), array.T)
            inner = tensor[1:, 1:-1]                       # rows farther apart than they are long
            assert np.array_equal(inner.t().contiguous().numpy(), array[1:, 1:-1].T)
            target = cygrad.zeros(columns + 4, rows + 5, dtype=tensor.dtype)
            target[2:-2, 3:-2] = inner.t()
            expected = np.zeros((columns + 4, rows + 5), dtype)
            expected[2:-2, 3:-2] = array[1:, 1:-1].T
            assert np.array_equal(target.numpy(), expected)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("shape", [(512, 40), (512, 21), (520, 1024), (1024, 512), (2048, 17)])
def test_rows_a_power_of_two_apart_are_turned(dtype, shape):
    array = numbers(shape, dtype)
    assert np.array_equal(cygrad.from_numpy(array).t().contiguous().numpy(), array.T)
    assert np.array_equal(cygrad.from_numpy(array[:-3]).t().contiguous().numpy(), array[:-3].T)


@pytest.mark.parametrize("dtype", DTYPES)
def test_order_is_reversed(dtype):
    for length in (*SIDES, 1000):
        array = numbers((3, length), dtype)
        tensor = cygrad.from_numpy(array)
        assert np.array_equal(cygrad.flip(tensor, (1,)).numpy(), array[:, ::-1])
        assert np.array_equal(cygrad.flip(tensor, (0, 1)).numpy(), array[::-1, ::-1])
        assert np.array_equal(cygrad.flip(tensor.t(), (0,)).numpy(), array.T[::-1])


def test_all_orders_of_three_dimensions():
    array = numbers((17, 33, 16), "float32")
    for order in ((0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)):
        assert np.array_equal(cygrad.from_numpy(array).permute(order).contiguous().numpy(), array.transpose(order))
