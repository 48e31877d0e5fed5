"""Samples: rounding and signs."""


from .sample import Sample, at, call, unary, without_gradient


def complex_values(make, dtype):
    """Away from 0, where the direction is not defined."""
    return Sample((make((2, 3), 0.5, 2),))


SAMPLES = {
    "floor": [*unary(0.1, 0.9), at([[1.0, -1.5]], [0.0, 0.0])],
    "ceil": [*unary(0.1, 0.9), at([[1.0, -1.5]], [0.0, 0.0])],
    "trunc": [*unary(0.1, 0.9), at([[1.0, -1.5]], [0.0, 0.0])],
    "round": [*unary(0.1, 0.4), at([[0.5, 1.5]], [0.0, 0.0]), call((2, 3), low=0.101, high=0.104, decimals=2)],
    "frac": unary(0.1, 0.9),
    "sign": [*unary(0.1, 2), at([[0.0, -1.0]], [0.0, 0.0])],
    "sgn": [*unary(0.5, 2), complex_values, at([[0.0, -1.0]], [0.0, 0.0])],
    "signbit": without_gradient(unary()),
}
COMPLEX = {"sgn"}
