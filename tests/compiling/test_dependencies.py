"""Any order that respects dependencies gives bit-identical results."""

import random

import pytest

import cygrad
from cygrad._core.compiler import lowering
from cygrad._core.compiler.dependencies import dependencies
from cygrad.compiling import explain
from tests.compiling.random_functions import numbers, random_function


@pytest.fixture
def orders(monkeypatch):
    """Programs run their operations in an order that is drawn; return the orders."""
    choice, drawn = random.Random(0), []

    def draw_order(program):
        before, order, there = dependencies(program), [], set()
        while len(order) < len(before):
            order.append(choice.choice([place for place, needs in enumerate(before)
                                        if place not in there and needs <= there]))
            there.add(order[-1])
        drawn.append(order)
        program.operations = [program.operations[place] for place in order]

    monkeypatch.setattr(lowering, "PASSES", (*lowering.PASSES, draw_order))
    return drawn


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("seed", range(40))
def test_any_order_will_do(seed, fast, monkeypatch, orders):
    function, mode = random_function(seed), "fast" if fast else "default"
    inputs = [numbers(16, 16, seed=seed * 5 + place) for place in range(4)]
    with monkeypatch.context() as usual:
        usual.setattr(lowering, "PASSES", lowering.PASSES[:-1])
        compiled = cygrad.compile(function, mode=mode)
        for _ in range(2):
            expected = compiled(*inputs)
    for _ in range(5):
        compiled = cygrad.compile(function, mode=mode)
        for _ in range(2):
            found = compiled(*inputs)
        assert explain(compiled).executions == 1
        for a, b in zip(found, expected, strict=True):
            assert a is b is None or (cygrad.equal(a, b) and a.stride() == b.stride())
    assert any(order != sorted(order) for order in orders)
