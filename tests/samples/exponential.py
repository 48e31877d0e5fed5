"""Samples: exponentials, logarithms and error functions."""

from .sample import at, unary

INF = float("inf")

SAMPLES = {
    "exp": unary(),
    "expm1": unary(),
    "exp2": unary(),
    "log": [*unary(0.5, 2), at([[0.0, 2.0]], [INF, 0.5])],
    "log1p": unary(-0.5, 2),
    "log2": unary(0.5, 2),
    "log10": unary(0.5, 2),
    "erf": unary(),
    "erfc": unary(),
}
COMPLEX = {"exp", "expm1", "exp2", "log", "log1p", "log2", "log10"}
