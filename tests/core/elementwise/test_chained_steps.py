"""Chained steps are bit-identical to single steps for any size and layout."""

import numpy as np
import pytest

from cygrad._core.testing.interop import Expression, apply

# a + b * c * number, a - 1 / sqrt(b), and b * b that is read again after the next step
PROGRAMS = {
    "addcmul": (4, [("mul", 4, 1, 2), ("mul", 5, 4, 3), ("add", 6, 0, 5)]),
    "rsqrt": (2, [("sqrt", 2, 1), ("reciprocal", 3, 2), ("sub", 4, 0, 3)]),
    "kept": (2, [("square", 2, 1), ("neg", 3, 2), ("div", 4, 3, 0), ("add", 5, 4, 2)]),
}


def step_by_step(code, operands):
    registers = dict(enumerate(operands))
    for name, out, *inputs in code:
        registers[out] = apply(name, *(registers[k] for k in inputs))
    return registers[code[-1][1]]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [1, 255, 256, 257, 2000, 70_001])
@pytest.mark.parametrize("name", PROGRAMS)
def test_one_chain_is_its_steps(name, n, dtype):
    n_inputs, code = PROGRAMS[name]
    generator = np.random.default_rng(n)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -3e38], dtype)
    operands = [generator.standard_normal(n).astype(dtype) for _ in range(min(n_inputs, 3))]
    for operand in operands:
        operand[::7] = generator.choice(special, len(operand[::7]))
    operands += [0.3] * (n_inputs - len(operands))
    found, wanted = Expression(n_inputs, code)(*operands), step_by_step(code, operands)
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(np.signbit(found[~np.isnan(found)]), np.signbit(wanted[~np.isnan(wanted)]))


@pytest.mark.parametrize("name", PROGRAMS)
def test_operands_that_are_broadcast_or_strided(name):
    n_inputs, code = PROGRAMS[name]
    generator = np.random.default_rng(5)
    base = generator.standard_normal((300, 900)).astype("float32")
    for operand in (base[:, ::3], base[:1, :300], base[:, :1], base.T[:300, :300]):
        operands = [base[:, 300:600], operand, base[:, 600:]][:n_inputs] + [0.3] * (n_inputs - 3)
        wanted = step_by_step(code, [np.broadcast_to(x, (300, 300)).copy() if isinstance(x, np.ndarray) else x
                                     for x in operands])
        np.testing.assert_array_equal(Expression(n_inputs, code)(*operands), wanted)
