"""Tensors as Python numbers: int(), float(), complex(), bool(), indices."""

import math

import pytest

import cygrad


@pytest.mark.parametrize("convert", [int, float, complex, math.floor])
@pytest.mark.parametrize("value", [[], [1.0, 2.0], [[1, 2]]])
def test_only_one_element_is_a_python_number(convert, value):
    with pytest.raises(ValueError, match="only one element tensors can be converted to Python scalars"):
        convert(cygrad.tensor(value))
    with pytest.raises(RuntimeError, match=r"item: a Tensor with \d elements cannot be converted to Scalar"):
        cygrad.tensor(value).item()


@pytest.mark.parametrize("convert", [int, float])
def test_real_numbers_of_complex_tensors(convert):
    assert convert(cygrad.tensor([3 + 0j])) == 3
    with pytest.raises(RuntimeError, match=r"without losing its imaginary part \(got \(1\+1j\)\)"):
        convert(cygrad.tensor(1 + 1j))


def test_truth_of_several_elements_and_of_none():
    with pytest.raises(RuntimeError, match="Boolean value of Tensor with more than one value is ambiguous"):
        bool(cygrad.ones(2) > 0)
    with pytest.raises(RuntimeError, match="Boolean value of Tensor with no values is ambiguous"):
        bool(cygrad.ones(0))


@pytest.mark.parametrize("value", [1.0, [1, 2], [], 1j])
def test_only_integer_tensors_of_a_single_element_are_indices(value):
    with pytest.raises(TypeError, match="only integer tensors of a single element can be converted to an index"):
        range(10)[cygrad.tensor(value)]
    assert range(10)[cygrad.tensor([3])] == 3


def test_round_rounds_to_decimals():
    assert round(cygrad.tensor([2.567, -0.25], dtype=cygrad.float64), 1).tolist() == [2.6, -0.2]
    assert round(cygrad.tensor(2.5)).item() == 2
