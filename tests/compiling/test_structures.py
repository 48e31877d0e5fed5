"""Dataclasses and namedtuples as arguments and results of compiled functions."""

from dataclasses import dataclass, field
from typing import NamedTuple

import pytest

import cygrad
from cygrad.compiling import explain


@dataclass
class Batch:
    x: cygrad.Tensor
    scale: float = 2.0
    parts: list = field(default_factory=list)

    def scaled(self):
        return self.x * self.scale


@dataclass
class Labeled(Batch):
    label: str = "none"


@dataclass(frozen=True)
class Frozen:
    x: cygrad.Tensor


@dataclass(slots=True)
class Slotted:
    x: cygrad.Tensor
    scale: float = 2.0


@dataclass(slots=True, weakref_slot=True)
class Derived(Slotted):
    label: str = "none"


class Pair(NamedTuple):
    x: cygrad.Tensor
    scale: float


def numbers(seed=0):
    return cygrad.randn(4, generator=cygrad.Generator().manual_seed(seed))


def test_each_dataclass_is_read():
    compiled = cygrad.compile(lambda batch: batch.scaled() + sum(batch.parts))
    for seed in range(5):
        batch = Batch(numbers(seed), parts=[numbers(seed + 1), numbers(seed + 2)])
        assert cygrad.equal(compiled(batch), batch.x * 2 + (batch.parts[0] + batch.parts[1]))
    assert explain(compiled).replays == 4
    batch = Batch(numbers(), 3.0, [numbers(1)])
    assert cygrad.equal(compiled(batch), batch.x * 3 + batch.parts[0])


@pytest.mark.parametrize("make", [lambda x: Batch(x * 2, 1.5, [x]), lambda x: Labeled(x.exp(), label="a"),
                                  lambda x: Frozen(x.sin()), lambda x: Derived(x.cos(), label="a"),
                                  lambda x: {"a": (Frozen(x + 1), Pair(x - 1, 0.5))}])
def test_results_are_made_anew(make):
    compiled = cygrad.compile(make)
    found = [compiled(numbers(seed)) for seed in range(4)]
    assert explain(compiled).replays == 3
    for seed, result in enumerate(found):
        expected = make(numbers(seed))
        assert repr(result) == repr(expected) and type(result) is type(expected)
    assert len({id(result) for result in found}) == 4


def test_changed_method_of_a_dataclass(monkeypatch):
    compiled = cygrad.compile(lambda batch: batch.scaled())
    for _ in range(2):
        compiled(Batch(numbers()))
    monkeypatch.setattr(Batch, "scaled", lambda self: self.x - 1)
    assert cygrad.equal(compiled(Batch(numbers())), numbers() - 1)


@pytest.mark.parametrize("kind", [Batch, Slotted, Derived])
def test_changed_argument_runs_as_the_function(kind):
    def function(batch):
        batch.x = batch.x * 2
        return batch.x + 1
    compiled = cygrad.compile(function)
    for _ in range(3):
        batch = kind(numbers())
        assert cygrad.equal(compiled(batch), numbers() * 2 + 1)
        assert cygrad.equal(batch.x, numbers() * 2)


@pytest.mark.parametrize("kind", [Batch, Slotted, Derived])
def test_one_dataclass_twice(kind):
    def function(a, b):
        return a.x + b.x if a is not b else a.x
    compiled, batch = cygrad.compile(function), kind(numbers())
    for _ in range(3):
        assert cygrad.equal(compiled(batch, batch), numbers())
        assert cygrad.equal(compiled(batch, kind(numbers(1))), numbers() + numbers(1))


def test_dataclasses_with_slots():
    compiled = cygrad.compile(lambda batch: batch.x * batch.scale)
    for kind in (Slotted, Derived):
        for seed in range(3):
            assert cygrad.equal(compiled(kind(numbers(seed))), numbers(seed) * 2)
        assert cygrad.equal(compiled(kind(numbers(), 3.0)), numbers() * 3)
    assert explain(compiled).replays == 4
    incomplete = Slotted(numbers())
    del incomplete.scale
    for _ in range(3):
        with pytest.raises(AttributeError):
            compiled(incomplete)


def test_gradient_through_a_dataclass():
    compiled = cygrad.compile(lambda batch: Frozen(batch.x.tanh() * batch.scale))
    for seed in range(4):
        x = numbers(seed).requires_grad_()
        compiled(Batch(x)).x.sum().backward()
        assert cygrad.equal(x.grad, cygrad.autograd.grad((x.tanh() * 2.0).sum(), x)[0])
    assert explain(compiled).replays == 3
