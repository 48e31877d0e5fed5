"""Inputs of concatenations are computed in the result, with bit-identical results."""

import re

import pytest

import cygrad
from cygrad.compiling import explain


def lines_of(function, *tensors, calls=3):
    """The operations of a compiled function, after it has given what eager gives."""
    step = cygrad.compile(function)
    for _ in range(calls):
        for expected, found in zip(function(*tensors), step(*tensors), strict=True):
            assert expected.numpy().tobytes() == found.numpy().tobytes() and expected.stride() == found.stride()
            assert expected.dtype == found.dtype and expected._version == found._version
    assert explain(step).executions == calls - 1
    return explain(step).programs[0]


def names(lines):
    return [re.split(" (?:=|:=|<-) ", line)[1].partition("(")[0] for line in lines]


@pytest.mark.parametrize("dtype", [cygrad.float32, cygrad.float64, cygrad.int64, cygrad.complex64])
@pytest.mark.parametrize("dim", [0, 1, 2, -2])
@pytest.mark.parametrize("join", [cygrad.cat, cygrad.stack])
def test_parts_are_computed_in_place(join, dim, dtype):
    x = (cygrad.arange(3 * 2 * 32).reshape(3, 2, 32) % 7 - 3).to(dtype)
    found = names(lines_of(lambda x: [join([x * 2, x - 1, x * x], dim) + 1], x))
    assert join.__name__ not in found and found.count("allocate") == 1 and "fill" not in found


def test_signs_of_zero_and_nan():
    x = cygrad.tensor([[-0.0, 0.0, float("nan"), -float("nan"), float("inf")] * 16])
    assert "allocate" in names(lines_of(lambda x: [cygrad.cat([x * -1, x * 0, x - x], 1).abs() * -1], x))


def test_backward_of_chunks():
    def step(x):
        leaf = x.detach().requires_grad_()
        a, b, c = (leaf * 2).chunk(3, 1)
        return cygrad.autograd.grad((a.sigmoid() * b.tanh() + c.sin()).sum(), leaf)
    assert "split_backward" not in names(lines_of(step, cygrad.randn(4, 48)))


def test_parts_within_parts():
    x = cygrad.randn(4, 32)
    found = names(lines_of(lambda x: [cygrad.cat([cygrad.cat([x * 2, x - 1]), x.sin()]) + 1], x))
    assert "cat" not in found and found.count("allocate") == 1


@pytest.mark.parametrize("function", [
    lambda x: [cygrad.cat([x, x])],                                       # from outside
    lambda x: [cygrad.cat([y := x.sin(), y]) + 1],                        # one is read twice,
    lambda x: [cygrad.cat([y := x.sin(), z := x.cos()]) + 1, y, z],       # or leaves,
    lambda x: [cygrad.cat([x.sin().t(), x.cos().t()]) + 1],               # or is a view,
    lambda x: [cygrad.cat([x.sin().mul_(2), x.cos().mul_(2)]) + 1],       # or is modified in place
    lambda x: [cygrad.cat([x.sin(), x.cos()]).mul_(2)],                   # the whole is
    lambda x: [cygrad.cat([x.sin(), x.double()]) + 1],                    # of another dtype
    lambda x: [cygrad.cat([x[:, :5].sin(), x[:, :5].cos()], 1) + 1],      # short rows
    lambda x: [cygrad.stack([x.sin(), x.cos()], -1) + 1],                 # rows with gaps
    lambda x: [cygrad.cat([x[:0].sin(), x[:0].cos()]) + 1],               # nothing
])
def test_parts_that_are_copied(function):
    assert "allocate" not in names(lines_of(function, cygrad.randn(16, 16)))


def test_some_are_computed_and_some_copied():
    x = cygrad.randn(16, 16)
    found = names(lines_of(lambda x: [cygrad.cat([x.sin(), x, x.cos()]), x + 1], x))
    assert found.count("fill") == 1 and "cat" not in found


def test_result_in_the_memory_of_what_was_changed_has_its_own_version():
    lines_of(lambda x: [(x * 2).mul_(3).sin()], cygrad.randn(4, 4))
