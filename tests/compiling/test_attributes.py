"""Attributes that a compiled function binds to other tensors."""

import pytest

import cygrad
from cygrad import nn
from cygrad.compiling import explain
from cygrad.compiling.verification import is_bit_identical


def numbers(*shape, seed=0):
    return cygrad.randn(*shape, generator=cygrad.Generator().manual_seed(seed))


class Accumulator:
    def __init__(self):
        self.state, self.last, self.count = numbers(3, seed=9), None, 3

    def step(self, x):
        self.state = (self.state * 0.5 + x).tanh()
        self.last = x * 2
        return self.state.sum() * self.count


class Average(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.register_buffer("mean", cygrad.zeros(3))
        self.hidden = None
        with cygrad.no_grad():
            self.linear.weight.copy_(numbers(3, 3, seed=4))
            self.linear.bias.zero_()

    def forward(self, x):
        y = self.linear(x)
        self.mean = self.mean * 0.9 + y.detach() * 0.1
        self.hidden = y.detach() if self.hidden is None else self.hidden + y.detach()
        return (y * self.mean).sum()


class Same:
    def __init__(self):
        self.a, self.b = cygrad.ones(3), cygrad.zeros(3)

    def step(self, x):
        self.a, self.b = self.b, self.a
        self.b.add_(x)
        view = self.a[1:]
        self.view = view
        return view * 2


def tensors(value):
    """All attributes that are tensors, by name."""
    found = dict(vars(value))
    found |= found.get("_buffers", {})
    return {name: item for name, item in found.items() if isinstance(item, cygrad.Tensor)}


@pytest.mark.parametrize("verify", [False, True])
@pytest.mark.parametrize(("make", "method"), [(Accumulator, "step"), (Average, "__call__"), (Same, "step")])
def test_attributes_are_those_of_eager(make, method, verify):
    one, other = make(), make()
    compiled = cygrad.compile(getattr(other, method), verify=verify)
    for step in range(8):
        x = numbers(3, seed=step)
        if step == 6 and make is Accumulator:           # another shape leads to another trace
            for each in (one, other):
                for name in tensors(each):
                    setattr(each, name, cygrad.ones(1))
        expected, found = getattr(one, method)(x), compiled(x)
        assert is_bit_identical(expected.detach(), found.detach())
        if expected.requires_grad:
            for each, result in ((one, expected), (other, found)):
                each.linear.weight.grad = None
                result.backward()
            assert is_bit_identical(one.linear.weight.grad, other.linear.weight.grad)
        a, b = tensors(one), tensors(other)
        assert a.keys() == b.keys()
        for name in a:
            assert is_bit_identical(a[name], b[name]) and a[name]._version == b[name]._version
            assert [a[name] is a[each] for each in a] == [b[name] is b[each] for each in b]
    assert explain(compiled).replays >= 2


def test_attribute_that_is_an_argument_too():
    one, other = Accumulator(), Accumulator()
    compiled = cygrad.compile(other.step)
    for step in range(6):
        expected = one.step(one.state if step % 2 else numbers(3))
        assert is_bit_identical(expected, compiled(other.state if step % 2 else numbers(3)))
        assert is_bit_identical(one.state, other.state)


def test_attribute_with_a_history():
    one, other = Accumulator(), Accumulator()
    w = numbers(3, seed=5).requires_grad_()
    compiled = cygrad.compile(lambda x: other.step(x * w))
    for step in range(4):
        expected, found = one.step(numbers(3, seed=step) * w), compiled(numbers(3, seed=step))
        gradients = [cygrad.autograd.grad(result, w, retain_graph=True)[0] for result in (expected, found)]
        assert is_bit_identical(expected.detach(), found.detach()) and is_bit_identical(*gradients)


def test_attribute_bound_to_a_number_stays_eager():
    class Counter:
        n = 0

        def step(self, x):
            self.n = self.n + 1
            return x * self.n
    counter = Counter()
    compiled = cygrad.compile(counter.step)
    assert [compiled(cygrad.ones(())).item() for _ in range(5)] == [1, 2, 3, 4, 5]
