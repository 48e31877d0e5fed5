"""Samples: trigonometric and hyperbolic functions."""

from .sample import at, binary, unary

INF = float("inf")

SAMPLES = {
    **{name: unary() for name in ("sin", "cos", "atan", "sinh", "cosh", "tanh", "asinh")},
    "tan": unary(-1, 1),
    "asin": [*unary(-0.9, 0.9), at([[1.0, 0.0]], [INF, 1.0])],
    "acos": [*unary(-0.9, 0.9), at([[1.0, 0.0]], [-INF, -1.0])],
    "acosh": unary(1.1, 2),
    "atanh": unary(-0.9, 0.9),
    "atan2": [*binary(0.5, 2), *binary(-2, -0.5), at([[0.0], [0.0]], [0.0], [0.0])],
    "sinc": [*unary(0.2, 2), at([[0.0]], [0.0])],
}
COMPLEX = {"sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "sinc"}
HELPERS = {"tanh_backward": "tanh", "complex_asin_slope": "asin", "acosh_slope": "acosh"}
