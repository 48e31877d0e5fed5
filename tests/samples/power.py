"""Samples: powers and roots."""

import cygrad

from .sample import Sample, at, binary, call, unary

INF = float("inf")


def number_as_base(make, dtype):
    return Sample((2.0, make((2, 3))))


def zero_to_powers(make, dtype):
    if dtype.is_complex:
        return None
    zero = cygrad.tensor([0.0, 0.0, 0.0], dtype=dtype)
    return Sample(
        (zero, cygrad.tensor([0.0, 1.0, 2.0], dtype=dtype)),
        check_gradient=False,
        gradients=([0.0, 1.0, 0.0], [0.0, 0.0, 0.0]),
    )


def integer_to_negative(make, dtype):
    return Sample((cygrad.tensor([2, 3]), -1), error=RuntimeError, match="negative")


SAMPLES = {
    "pow": [
        *binary(0.5, 2, -2, 2),
        number_as_base,
        zero_to_powers,
        integer_to_negative,
        *(call((2, 3), exponent, low=0.5) for exponent in (-1, 0, 0.5, 1, 2, 3, 2.5)),
        call((), 2),
        call((0,), 2),
        at([[0.0, 3.0]], [0.0, 6.0], exponent=2),
        at([[0.0, 3.0]], [0.0, 0.0], exponent=0),
        at([[0.0, 4.0]], [INF, 0.25], exponent=0.5),
    ],
    "reciprocal": unary(0.5, 2),
    "square": unary(),
    "sqrt": [*unary(0.5, 2), at([[0.0, 4.0]], [INF, 0.25])],
    "rsqrt": unary(0.5, 2),
}
COMPLEX = {"pow", "reciprocal", "square", "sqrt", "rsqrt"}
HELPERS = {"pow_tensor": "pow"}
