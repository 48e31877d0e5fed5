"""Products followed by an addition are accumulated, with bit-identical results."""

import pytest

import cygrad
from cygrad.compiling import explain


def operations(step):
    return explain(step).programs[0]


def both(function, *tensors):
    step = cygrad.compile(function)
    for _ in range(3):
        expected, found = function(*tensors), step(*tensors)
        assert cygrad.equal(expected, found) and expected.stride() == found.stride()
    assert explain(step).executions == 2
    return operations(step)


@pytest.mark.parametrize("dtype", [cygrad.float32, cygrad.float64])
@pytest.mark.parametrize("inner", [1, 3, 16, 128])
@pytest.mark.parametrize(("rows", "columns"), [(2, 2), (5, 7), (16, 64), (65, 33), (130, 300)])
def test_bits_of_sums_of_products(rows, columns, inner, dtype):
    cygrad.manual_seed(0)
    a, b = cygrad.randn(rows, inner, dtype=dtype), cygrad.randn(inner, columns, dtype=dtype)
    c, d = cygrad.randn(inner, rows, dtype=dtype), cygrad.randn(columns, inner, dtype=dtype)
    x = cygrad.randn(rows, columns, dtype=dtype)
    lines = both(lambda x: x.sin() + a @ b + c.t() @ d.t(), x)
    assert len(lines) == 3 and all("accumulate" in line for line in lines[1:])
    lines = both(lambda x: c.t() @ b + x.sin(), x)
    assert len(lines) == 2 and "accumulate" in lines[1]


def test_gradients_of_shared_weights():
    cygrad.manual_seed(0)
    weight, bias = cygrad.randn(8, 8), cygrad.randn(8)
    inputs = [cygrad.randn(4, 8) for _ in range(5)]

    def step(weight, bias):
        weight, bias = weight.clone().requires_grad_(), bias.clone().requires_grad_()
        state = cygrad.zeros(4, 8)
        for x in inputs:
            state = (x @ weight + state @ weight + bias).tanh()
        return cygrad.cat(cygrad.autograd.grad(state.sum(), (weight, bias.unsqueeze(0)), allow_unused=True)[:1])

    lines = both(step, weight, bias)
    assert sum("accumulate" in line for line in lines) >= 12


@pytest.mark.parametrize("function", [
    lambda x, a: x + a @ a,                                       # the argument is not the program's own
    lambda x, a: (y := x.sin()) + a @ a + y,                      # the result is read again
    lambda x, a: x.sin() + cygrad.cat([a] * 20, 1) @ cygrad.cat([a] * 20, 0),         # long sums
    lambda x, a: x.sin().t() + a @ a,                             # another layout
    lambda x, a: x.sin()[:1] + a @ a,                             # it is broadcast
    lambda x, a: x.sin().double() + a @ a,                        # it has another dtype
])
def test_products_that_are_computed_apart(function):
    cygrad.manual_seed(0)
    assert not any("accumulate" in line for line in both(function, cygrad.randn(8, 8), cygrad.randn(8, 8)))


def test_what_a_product_reads_is_changed_before_it_is_added():
    def function(x, a):
        y, a = x.sin(), a.clone()
        product = a @ a
        a.mul_(2)
        return y + product + a

    assert not any("accumulate" in line for line in both(function, cygrad.randn(4, 4), cygrad.randn(4, 4)))
