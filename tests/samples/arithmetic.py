"""Samples: sums, products, quotients."""

import cygrad

from .sample import Sample, at, binary, call, fails, only_real, unary

NAN, INF = float("nan"), float("inf")


def powers_of(make, dtype):
    """A quotient of integers is floating."""
    return Sample((cygrad.tensor([1, 2, 3]), cygrad.tensor([2, 2, 2])), check_gradient=False)


def boolean_difference(make, dtype):
    flags = cygrad.tensor([True, False])
    return Sample((flags, flags), error=RuntimeError, match="bool")


SAMPLES = {
    "add": [*binary(number=2), *binary(number=3, alpha=2.5), fails(RuntimeError, r"\(2,\).*\(3,\)|size", (2,), (3,))],
    "sub": [
        *binary(number=2),
        *binary(number=3, alpha=2.5),
        boolean_difference,
        fails(RuntimeError, r"\(2,\).*\(3,\)|size", (2,), (3,)),
    ],
    "rsub": [*binary(number=2), *binary(number=3, alpha=2)],
    "mul": [*binary(number=2.5), fails(RuntimeError, r"\(2,\).*\(3,\)|size", (2,), (3,))],
    "div": [
        *binary(other_low=0.5, other_high=2, number=4),
        powers_of,
        *only_real(binary(low=0.6, high=0.9, other_low=0.5, other_high=0.55, rounding_mode="floor")),
        *only_real(binary(low=-0.9, high=-0.6, other_low=0.5, other_high=0.55, rounding_mode="trunc")),
        fails(RuntimeError, "rounding_mode", (2,), (2,), rounding_mode="up"),
    ],
    "floor_divide": binary(low=0.6, high=0.9, other_low=0.5, other_high=0.55),
    "remainder": [
        *binary(low=0.6, high=0.9, other_low=0.5, other_high=0.55),
        call((2, 3), 10.0),
        *binary(low=-0.9, high=-0.6, other_low=0.5, other_high=0.55),
    ],
    "fmod": [
        *binary(low=0.6, high=0.9, other_low=0.5, other_high=0.55),
        call((2, 3), 10.0),
        *binary(low=-0.9, high=-0.6, other_low=0.5, other_high=0.55),
    ],
    "neg": unary(),
    "positive": unary(),
    "abs": [*unary(0.1, 2), *unary(-2, -0.1), at([[-1.0, 0.0, 2.0]], [-1.0, 0.0, 1.0])],
}
COMPLEX = {"add", "sub", "rsub", "mul", "div", "neg", "positive", "abs"}
HELPERS = {"add_scaled": "add", "sub_scaled": "sub", "trunc_divide": "div", "floored_quotient": "floor_divide",
           "ratio": "atan2"}
