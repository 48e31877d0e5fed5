"""Sums fused with the loop of their input are bit-identical to eager."""

import pytest

import cygrad
from cygrad.compiling import explain


@pytest.mark.parametrize("dtype", [cygrad.float32, cygrad.float64])
@pytest.mark.parametrize("shape", [(), (1,), (5,), (3, 1, 4), (40, 30, 20), (3, 0, 2), (70000,)])
@pytest.mark.parametrize("dims", [None, 0, -1, (0, -1)])
@pytest.mark.parametrize("keepdim", [False, True])
def test_bits_and_shapes(shape, dims, keepdim, dtype):
    if dims == (0, -1) and len(shape) < 2:
        dims = (0,)
    cygrad.manual_seed(0)
    x = cygrad.randn(shape).to(dtype)

    def function(x):
        return x.exp().mul(2).sum() if dims is None else x.exp().mul(2).sum(dims, keepdim=keepdim)

    step = cygrad.compile(function)
    for _ in range(3):
        expected, found = function(x), step(x)
        assert cygrad.equal(expected, found) and expected.shape == found.shape and expected.dtype == found.dtype
        assert expected.stride() == found.stride() and not found._is_view()
    assert explain(step).executions == 2
    assert len(explain(step).programs[0]) <= 2


def test_sum_is_one_operation_with_what_it_adds_up():
    x, means = cygrad.randn(200, 1, 8), cygrad.randn(5, 8)
    step = cygrad.compile(lambda: (x - means).square().sum(-1) + 1)
    expected = (x - means).square().sum(-1) + 1
    for _ in range(3):
        assert cygrad.equal(step(), expected)
    assert len(explain(step).programs[0]) == 2


@pytest.mark.parametrize("function", [
    lambda x: x.exp().sum(0, dtype=cygrad.float64),
    lambda x: (x > 0).sum(0),
    lambda x: (y := x.exp()).sum(0) + y[0],
])
def test_sums_apart(function):
    x = cygrad.randn(100, 60)
    step = cygrad.compile(function)
    for _ in range(3):
        assert cygrad.equal(step(x), function(x))


@pytest.mark.parametrize("shapes", [[(30, 1, 32), (25, 32)], [(7, 1, 5), (4, 5)], [(6, 1, 1, 3), (4, 5, 3)],
                                    [(50, 1, 3), (1, 9, 3), (9, 1)], [(300, 1), (300,)]])
def test_broadcast_operands_whose_rows_follow_each_other(shapes):
    cygrad.manual_seed(0)
    operands = [cygrad.randn(shape) for shape in shapes]
    total, full = operands[0], [operand.expand(cygrad.broadcast_shapes(*shapes)).contiguous() for operand in operands]
    expected = full[0]
    for operand, copy in zip(operands[1:], full[1:], strict=True):
        total, expected = total - operand, expected - copy
    assert cygrad.equal(total, expected)
    strided = cygrad.zeros(*total.shape, 2)[..., 0]               # a strided result
    cygrad.sub(operands[0], operands[1], out=strided) if len(operands) == 2 else strided.copy_(total)
    assert cygrad.equal(strided, expected)


@pytest.mark.parametrize("size", [4, 8, 80])
@pytest.mark.parametrize("function", [
    lambda x, y: (x * (y.t() * 1.5 + x)).sum(), lambda x, y: (x * (y.t() * 1.5)).sum(),
    lambda x, y: (x * (y.t().sin() * y)).sum(0), lambda x, y: (x * (y.t() * x[0])).sum(),
    lambda x, y: (x.t() * (y - 0.5)).sum()])
def test_sum_over_operands_of_several_layouts_adds_in_the_order_of_eager(function, size):
    compiled = cygrad.compile(function)
    for seed in range(10):
        cygrad.manual_seed(seed)
        x, y = cygrad.randn(size, size), cygrad.randn(size, size)
        assert cygrad.equal(compiled(x, y), function(x, y))
    assert explain(compiled).executions == 9
