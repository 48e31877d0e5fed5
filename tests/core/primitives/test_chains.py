"""Chained operations are bit-identical to NumPy and write only whole blocks."""

import itertools
import random

import numpy as np
import pytest

from cygrad._core.testing.interop import CHAINED, chain
from tests.core.primitives.test_short_loops import SPECIAL, UFUNCS, assert_same_bits

LONGEST = 256                   # elements of a block at most


def numbers(dtype, length, seed):
    """Special values among others, not at the beginning of a vector of memory."""
    generator = np.random.default_rng(seed)
    made = generator.standard_normal(length + 1).astype(dtype)
    special = generator.random(length + 1) < 0.5
    made[special] = generator.choice(np.array(SPECIAL, dtype), special.sum())
    return made[1:]


def check(steps, dtype, n):
    """Run steps (name, left, right, kept) and compare kept results with NumPy's."""
    held, given, expected = None, [], []
    with np.errstate(all="ignore"):
        for name, left, right, kept in steps:
            operands = [held if operand is None else operand for operand in (left, right)]
            held = UFUNCS[name](*operands[:1 if name in CHAINED[4:] else 2])
            given.append((name, left, right, np.full(n, 7, dtype) if kept else None))
            expected.append(held)
    done = chain(given, dtype, n)
    assert n - LONGEST < done <= n
    for (*_, found), wanted in zip(given, expected, strict=True):
        if found is not None:
            assert_same_bits(found[:done], wanted[:done])
            assert (found[done:] == 7).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CHAINED)
def test_operands_in_registers_in_memory_and_numbers(name, dtype):
    n = 3 * LONGEST
    start, x, y = (numbers(dtype, n, seed) for seed in range(3))
    begin = ("add", start, np.array(0, dtype), False)
    if name in CHAINED[4:]:
        for operand, kept in itertools.product([None, x], [False, True]):
            check([begin, (name, operand, None, kept), ("neg", None, None, True)], dtype, n)
        return
    for number in SPECIAL:
        one = np.array(number, dtype)
        for (left, right), kept in itertools.product(itertools.product([None, x, one], [None, y, one]), [False, True]):
            if left is not one or right is not one:
                check([begin, (name, left, right, kept), ("neg", None, None, True)], dtype, n)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [0, 1, 15, LONGEST - 1, LONGEST, LONGEST + 1, 5 * LONGEST, 2000])
def test_random_chains(n, dtype):
    chooser = random.Random(n)
    for seed in range(40):
        operands = [numbers(dtype, n, 10 * seed + k) for k in range(3)]
        operands += [np.array(chooser.choice(SPECIAL), dtype)]
        steps = [("mul", operands[0], operands[1], False)]
        for _ in range(chooser.randrange(12)):
            left, right = chooser.choice([(None, chooser.choice(operands)), (chooser.choice(operands), None),
                                          (chooser.choice(operands[:3]), chooser.choice(operands)), (None, None)])
            name = chooser.choice(CHAINED)
            if name in CHAINED[4:]:
                left, right = chooser.choice([None, operands[0]]), None
            steps.append((name, left, right, chooser.random() < 0.5))
        check([*steps, ("neg", None, None, True)], dtype, n)
