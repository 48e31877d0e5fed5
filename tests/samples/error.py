"""Samples: relatives of the error function and of logarithms."""

import cygrad

from .sample import Sample, at, binary, call, unary

INF, NAN = float("inf"), float("nan")


def values(*numbers):
    """The numbers themselves, with nothing to be differentiated."""
    return (
        lambda make, dtype: None
        if dtype.is_complex
        else Sample((cygrad.tensor(numbers, dtype=dtype),), check_gradient=False)
    )


SAMPLES = {
    "erfinv": [*unary(-0.9, 0.9), values(0.0, 1.0, -1.0, 0.9999, 2.0)],
    "erfcx": [*unary(-2, 4), call((3,), low=20, high=60)],
    "ndtr": [*unary(), call((3,), low=-12, high=-6)],
    "log_ndtr": [*unary(-4, 4), call((3,), low=-40, high=-20), at([[40.0]], [0.0])],
    "ndtri": [*unary(0.1, 0.9), values(0.0, 1.0, 1e-9, 2.0)],
    "entr": [*unary(0.2, 2), at([[0.0, -1.0]], [INF, NAN])],
    "xlog1py": [*binary(0.5, 2), call((2, 3), 2.0, low=0.5), at([[0.0, 1.0], [-1.0, 0.0]], [0.0, 0.0], [NAN, 1.0])],
    "logit": [
        *unary(0.2, 0.8),
        call((2, 3), 0.1, low=0.2, high=0.8),
        call((4,), eps=0.4),
        at([[0.1, 0.5]], [0.0, 4.0], eps=0.3),
        values(0.0, 1.0, -1.0),
    ],
}
HELPERS = {"normal_hazard": "log_ndtr", "logit_plain": "logit", "logit_between": "logit"}
