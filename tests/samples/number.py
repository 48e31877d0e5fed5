"""Samples: functions of single numbers."""

import cygrad

from .sample import Sample, at, binary, call, fails, integers, only_floating, unary, without_gradient

INF, NAN = float("inf"), float("nan")


def special(*numbers, **kwargs):
    """These numbers, in each floating type."""
    return (
        lambda make, dtype: None
        if dtype.is_complex
        else Sample((cygrad.tensor(numbers, dtype=dtype),), kwargs, check_gradient=False)
    )


def whole(first, second):
    """Integers of each integer type."""
    return (
        lambda make, dtype: None
        if dtype.is_floating_point or dtype.is_complex or dtype is cygrad.bool
        else Sample((cygrad.tensor(first, dtype=dtype), cygrad.tensor(second, dtype=dtype)))
    )


WHOLE = [whole([12, 9, 0, 0, 7], [18, 6, 4, 0, 7]), whole([[12], [9]], [18, 6, 5]), whole(8, 12), whole([], [])]
SAMPLES = {
    "deg2rad": unary(-180, 180),
    "rad2deg": unary(),
    "gcd": [*WHOLE, fails(RuntimeError, "gcd", (2,), (2,))],
    "lcm": [*WHOLE, fails(RuntimeError, "lcm", (2,), (2,))],
    "heaviside": [*binary(0.5, 2), at([[-1.0, 0.0, 2.0], [5.0, 5.0, 5.0]], [0.0, 0.0, 0.0], [0.0, 1.0, 0.0])],
    "nextafter": without_gradient(only_floating(binary())),
    "logaddexp2": only_floating(binary()),
    "isposinf": [*unary(), special(INF, -INF, NAN, 0.0)],
    "isneginf": [*unary(), special(INF, -INF, NAN, 0.0)],
    "isreal": [*unary(), lambda make, dtype: Sample((make((3,)) * 0,))],
    "frexp": [
        *only_floating(unary(0.6, 0.9)),
        call((3,), low=20, high=30),
        special(0.0, INF, -INF, NAN),
        fails(RuntimeError, "floating", integers([1])),
    ],
    "ldexp": [
        *only_floating(binary()),
        lambda make, dtype: Sample((make((3,)), integers([1, 2, 0]))),
        call((2,), (2,), low=1, high=3),
    ],
    "float_power": [
        *binary(0.5, 2),
        call((3,), 2.0, low=0.5),
        call(2.0, (3,)),
        call((2,), 3),
        fails(TypeError, "Tensor", 2, 3),
    ],
    "nan_to_num": [
        *unary(),
        special(INF, -INF, NAN, 0.0),
        special(INF, -INF, NAN, 0.0, nan=1.0, posinf=2.0, neginf=3.0),
        at([[INF, -INF, NAN, 2.0]], [0.0, 0.0, 0.0, 1.0]),
    ],
    "isin": without_gradient(
        [
            lambda make, dtype: None
            if dtype is cygrad.bool
            else Sample((cygrad.tensor([[1, 2], [3, 4]], dtype=dtype), cygrad.tensor([1, 4, 9], dtype=dtype))),
            lambda make, dtype: Sample((cygrad.tensor([1, 50, 3]), cygrad.arange(40)), {"invert": True}),
            call((2, 3), 1),
            call((0, 3), (2,)),
            call((3,), (0,)),
            call(1, (3,)),
            fails(TypeError, "Tensor", 2, 3),
        ]
    ),
}
COMPLEX = {"isreal", "ldexp", "float_power", "nan_to_num"}
HELPERS = {
    "finite_backward": "nan_to_num", "zeroed": "sign",
    "frexp_mantissa": "frexp",
    "frexp_exponent": "frexp",
    "replace_non_finite": "nan_to_num",
    "present_backward": "nansum",
    "ldexp_scale": "ldexp",
    "written": "cov",
}
