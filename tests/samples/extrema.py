"""Samples: maxima and minima of two operands, bounds."""

from .sample import at, binary, call, fails

NAN = float("nan")

SAMPLES = {
    "maximum": [*binary(), at([[1.0, 2.0], [1.0, 3.0]], [0.5, 0.0], [0.5, 1.0])],
    "minimum": [*binary(), at([[1.0, 2.0], [1.0, 3.0]], [0.5, 1.0], [0.5, 0.0])],
    "fmax": [*binary(), at([[1.0, NAN], [1.0, 3.0]], [1.0, 0.0], [0.0, 1.0])],
    "fmin": [*binary(), at([[1.0, NAN], [1.0, 3.0]], [1.0, 0.0], [0.0, 1.0])],
    "clamp_min": [*binary(number=0.3), at([[0.5, 0.0]], [1.0, 0.0], min=0.5)],
    "clamp_max": [*binary(number=0.3), at([[0.5, 1.0]], [1.0, 0.0], max=0.5)],
    "clamp": [
        call((2, 3), -0.5, 0.5),
        call((2, 3), min=0.1),
        call((2, 3), max=0.1),
        call((2, 3), (3,), (2, 1)),
        call((), -0.5, 0.5),
        call((0, 2), 0, 1),
        at([[0.0, 1.0, 2.0]], [1.0, 1.0, 0.0], min=0.0, max=1.0),
        fails(RuntimeError, "min.*max|max.*min", (2,)),
    ],
}
HELPERS = {"clamp_between": "clamp"}
