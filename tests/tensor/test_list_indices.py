"""Lists and uint8 masks as keys, compared with PyTorch."""

import warnings

import numpy as np
import pytest

import cygrad
from tests.reference import torch

LISTS = {
    "sequences": lambda lib: [[0, 1], [0, 1]], "slice": lambda lib: [slice(None), 1], "None": lambda lib: [None, 0],
    "ellipsis": lambda lib: [..., 0], "tensor": lambda lib: [lib.tensor(0), 1],
    "tensors": lambda lib: [lib.tensor([0, 1]), lib.tensor([1, 2])], "mixed": lambda lib: [[0], slice(None)],
    "tuples": lambda lib: [(0, 1), (0, 1)], "mask": lambda lib: [[True, False]],
    "one tensor": lambda lib: [lib.tensor([0])],
    "range": lambda lib: [range(2)], "arrays": lambda lib: [np.array([0, 1]), np.array([0, 1])],
    "nested": lambda lib: [[[0, 1]]], "one mask": lambda lib: [lib.tensor(True)],
}
PLAIN = {
    "numbers": [0, 1], "bools": [True, False], "nothing": [], "NumPy's": [np.int64(1), 0], "long": [0] * 40,
    "a tuple in a key": ([0, 1], [1, 2]), "a list in a key": (slice(None), [0, 2]),
}


def read(library, key):
    return library.arange(24).reshape(2, 3, 4)[key].tolist()


def written(library, key):
    x = library.arange(24).reshape(2, 3, 4)
    x[key] = -1
    return x.tolist()


@pytest.mark.parametrize("use", [read, written])
@pytest.mark.parametrize("name", LISTS)
def test_lists_that_hold_more_than_numbers_are_tuples(name, use):
    key = LISTS[name]
    with pytest.warns(UserWarning, match="read as a tuple; in a later version") as caught:
        found = use(cygrad, key(cygrad))
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert found == use(torch, key(torch))


@pytest.mark.parametrize("use", [read, written])
@pytest.mark.parametrize("name", PLAIN)
def test_other_keys_are_read_as_ever(name, use):
    assert use(cygrad, PLAIN[name]) == use(torch, PLAIN[name])


def test_long_lists_are_tensors():
    rows = [[0, 1]] * 32
    assert cygrad.arange(6).reshape(2, 3)[rows].shape == (32, 2, 3)


@pytest.mark.filterwarnings("ignore:index. a list")
@pytest.mark.parametrize("key", [[object()], ["a"]])
def test_lists_of_anything_else_are_refused(key):
    with pytest.raises((IndexError, TypeError, RuntimeError, ValueError)):
        cygrad.arange(6)[key]


@pytest.mark.parametrize("value", [0, 1, 7])
def test_bytes_without_dimensions_are_masks(value):
    def shapes(library):
        mask = library.tensor(value, dtype=library.uint8)
        matrix, number = library.zeros(2, 3), library.tensor(1.0)
        found = [tuple(entry.shape) for entry in (matrix[mask], number[mask], matrix[mask, 0], matrix[..., mask])]
        matrix[mask] = 1
        return found, matrix.sum().item()
    with pytest.warns(UserWarning, match="uint8"):
        ours = shapes(cygrad)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert ours == shapes(torch)
    assert ours[0][0] == (int(value != 0), 2, 3)


def test_other_integers_without_dimensions_are_positions():
    for dtype in (cygrad.int8, cygrad.int32, cygrad.int64):
        assert cygrad.zeros(2, 3)[cygrad.tensor(1, dtype=dtype)].shape == (3,)
