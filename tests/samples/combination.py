"""Samples: element-wise functions of two or three operands."""

import cygrad

from .sample import Sample, at, binary, call, fails, only_floating


def condition(make, dtype):
    return Sample((cygrad.tensor([[True], [False]]), make((2, 3)), make((3,))))


def numbers(make, dtype):
    return Sample((cygrad.tensor([True, False]), make((2,)), 0))


def transposed(make, dtype):
    return Sample((cygrad.tensor([[True, False], [False, True]]).t(), make((2, 2)).t(), make((2, 2))))


SAMPLES = {
    "addcmul": [
        call((2, 3), (2, 1), (3,)),
        *only_floating([call((2,), (2,), (2,), value=2.5)]),
        call((2,), (2,), (2,), value=3),
        call((), (), ()),
        call((0, 2), (2,), (0, 2)),
    ],
    "addcdiv": [
        call((2, 3), (2, 1), (3,), low=0.5),
        call((2,), (2,), (2,), low=0.5, value=2.5),
        call((), (), (), low=0.5),
        call((0, 2), (2,), (0, 2)),
    ],
    "lerp": [
        call((2, 3), (2, 3), 0.25),
        call((2, 3), (2, 3), 0.75),
        call((2, 1), (3,), (2, 3), low=0.6, high=0.9),
        call((2, 1), (3,), (), low=0.1, high=0.4),
        call((0,), (0,), 0.5),
    ],
    "where": [
        condition,
        numbers,
        transposed,
        fails(RuntimeError, "size|shape", cygrad.tensor([True, False]), (2,), (3,)),
    ],
    "hypot": binary(0.5, 2),
    "copysign": [*binary(0.5, 2), call((3,), -1.0, low=0.5), at([[0.0], [-1.0]], [0.0], [0.0])],
    "logaddexp": binary(),
    "xlogy": [*binary(0.5, 2), call((2, 3), 2.0, low=0.5)],
}
COMPLEX = {"addcmul", "addcdiv", "where"}
HELPERS = {"hypot_slope": "hypot"}
