"""Fused loops are bit-identical to eager for all sizes, layouts and threads."""

import random

import pytest

import cygrad
from cygrad.compiling import explain

SIZES = [(4096,), (5000,), (70, 61), (3, 1, 4099), (300_001,)]


def operands(shape, dtype=cygrad.float32):
    generator = cygrad.Generator().manual_seed(len(shape) + shape[0])
    return [cygrad.randn(shape, dtype=dtype, generator=generator) for _ in range(2)]


def mixed(x, y):
    a = (x * y + 1).tanh()
    b = (-x * x).exp()
    c = (y.square() + 1).sqrt() / (1 + x * x)
    return a * b + c, a - c, b


def gradients(x, y):
    x, y = x.detach().requires_grad_(), y.detach().requires_grad_()
    first, second, third = mixed(x, y)
    return cygrad.autograd.grad((first * second).sum() + third.mean(), [x, y])


def views(x, y):
    a = x.sin() * y
    flat = a.reshape(-1) * 2
    return flat.cos() + a.reshape(-1), (a * 3).reshape(-1)[1:] * 2, a + a.reshape(-1)[0]


def broadcast(x, y):
    scalar = x.reshape(-1)[0]
    ones = cygrad.ones(()).expand(x.shape)
    a = x * scalar + ones
    return a.exp() * y, a * ones, a / cygrad.full_like(y, 2.0)


def changed(x, y):
    a = x * y + 1
    b = a.sin() * x
    a += b
    c = a * b
    b.zero_()
    return a * c, b + c, x.clone().mul_(a)


def mixed_types(x, y):
    a = x * y
    b = (a > 0)
    c = a.double() * 2
    return a.sin() + a.cos(), cygrad.where(b, a, x), c + a, (c * c).float() - a


def loss_and_gradients(x, y):
    x, y = x.detach().requires_grad_(), y.detach().requires_grad_()
    first, second, third = mixed(x, y)
    loss = first.sum() + (second * third).mean()
    return loss.detach(), *cygrad.autograd.grad(loss, [x, y])


def gradients_of_a_squared_sum(x, y):
    x = x.detach().requires_grad_()
    loss = ((x * y).tanh() * x.sin()).sum().square()          # its gradient needs its value
    return loss.detach(), *cygrad.autograd.grad(loss, x)


FUNCTIONS = [mixed, loss_and_gradients, gradients_of_a_squared_sum, gradients, views, broadcast, changed, mixed_types]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("shape", SIZES, ids=str)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_bits_are_those_of_eager(function, shape, threads):
    before = cygrad.get_num_threads()
    compiled = cygrad.compile(lambda x, y: tuple(part + 0 for part in function(x, y)))
    try:
        for number in range(3):
            x, y = (part + number for part in operands(shape))
            cygrad.set_num_threads(1)
            expected = function(x, y)
            cygrad.set_num_threads(threads)
            for a, b in zip(expected, compiled(x, y), strict=True):
                assert cygrad.equal(a, b)
                assert a.stride() == b.stride()
    finally:
        cygrad.set_num_threads(before)
    assert explain(compiled).executions == 2


def test_sum_does_not_part_forward_and_backward():
    compiled = cygrad.compile(loss_and_gradients)
    compiled(*operands((5000,)))
    (program,) = explain(compiled).programs
    assert sum(";" in line for line in program) == 1
    assert not any("tanh" in line for line in program if ";" not in line)


def test_operations_that_follow_each_other_are_one():
    x, y = operands((5000,))
    compiled = cygrad.compile(mixed)
    compiled(x, y)
    (program,) = explain(compiled).programs
    assert len(program) == 1
    assert "t0 = " in program[0]
    assert cygrad.compiling.draw(compiled)[:4] == "<svg"


def test_special_values():
    special = cygrad.tensor([0.0, -0.0, float("inf"), float("-inf"), float("nan"), 1e-45, 3e38]).repeat(700)
    x, y = special[:4900].clone(), special.flip(0)[:4900].clone()
    compiled = cygrad.compile(mixed)
    for _ in range(3):
        for a, b in zip(mixed(x, y), compiled(x, y), strict=True):
            assert (a.numpy().view("i4") == b.numpy().view("i4")).all()


OPERATIONS = [
    lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: a / b, lambda a, b: -a,
    lambda a, b: a.square(), lambda a, b: a.sqrt(), lambda a, b: a + a, lambda a, b: a * 1.5, lambda a, b: 0.5 - a,
    lambda a, b: a.sin(), lambda a, b: a.double().to(b.dtype)]


def random_program(seed):
    """A function of cheap operations, and a few others, some of whose results are read again and again."""
    chooser = random.Random(seed)
    steps = [(chooser.choice(OPERATIONS), chooser.randrange(max(k - 4, 0), k), chooser.randrange(k))
             for k in range(3, 40)]

    def program(x, y, number):
        made = [number, x, y]
        for operation, first, second in steps:
            made.append(operation(made[first], made[second]))
        return made[-1], made[-2], made[-4]
    return program


@pytest.mark.parametrize("dtype", [cygrad.float32, cygrad.float64], ids=str)
@pytest.mark.parametrize("size", [4096, 4351, 20_000])
def test_cheap_operations_that_follow_each_other(size, dtype):
    special = cygrad.tensor([0.0, -0.0, float("inf"), float("-inf"), float("nan"), 1e-45, 3e38], dtype=dtype)
    sweeps = 0
    for seed in range(25):
        x, y = operands((size,), dtype)
        x[:70], y[:70] = special.repeat(10), special.repeat_interleave(10)
        program = random_program(seed)
        compiled = cygrad.compile(program)
        for number in (0.7, -1.2, float("nan")):
            given = x, y, cygrad.tensor(number, dtype=dtype)
            for a, b in zip(program(*given), compiled(*given), strict=True):
                assert cygrad.equal(a.isnan(), b.isnan())
                a, b = (part.nan_to_num(0.0, float("inf"), float("-inf")) for part in (a, b))
                assert cygrad.equal(a, b) and cygrad.equal(a.signbit(), b.signbit())
        assert explain(compiled).executions == 2, str(explain(compiled))
        sweeps += any("; " in line for lines in explain(compiled).programs for line in lines)
    assert sweeps > 10


def test_constants_are_folded_and_factors_of_one_left_out():
    def step(x):
        x = x.detach().requires_grad_()
        return cygrad.autograd.grad(x.sin().mean(), x)[0]

    compiled = cygrad.compile(step)
    for shape in ((3,), (5000,)):
        x = operands(shape)[0]
        for _ in range(3):
            assert cygrad.equal(compiled(x), step(x))
    assert all(len(program) <= 1 for program in explain(compiled).programs), str(explain(compiled))


def test_a_constant_that_leaves_or_is_changed_is_new_each_time():
    def function(x):
        one = cygrad.ones(3)
        two, three = one + 1, (one + 1) * 1.5
        three += x
        return two, three, one * x

    compiled = cygrad.compile(function)
    for _ in range(3):
        two, three, same = compiled(cygrad.ones(3))
        assert (two.tolist(), three.tolist(), same.tolist()) == ([2.0] * 3, [4.0] * 3, [1.0] * 3)
        two.zero_(), three.zero_(), same.zero_()
