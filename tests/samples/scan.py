"""Samples: cumulative sums and products, softmax."""

import cygrad

from .sample import Sample, call, fails, only_floating, only_real, without_gradient

INF, NAN = float("inf"), float("nan")


def along(**kwargs):
    return [
        call((2, 3), 0, **kwargs),
        call((2, 3), -1, **kwargs),
        call((2, 3, 2), 1, **kwargs),
        call((), 0, **kwargs),
        call((0, 3), 0, **kwargs),
        call((2, 0), 0, **kwargs),
        lambda make, dtype: Sample((make((3, 2)).t(), 1), kwargs),
    ]


def with_zeros(values, dim):
    return lambda make, dtype: Sample((cygrad.tensor(values, dtype=dtype), dim))


BAD_DIM = fails(IndexError, "dim", (2, 3), 2)

SAMPLES = {
    "cumsum": [*along(), BAD_DIM],
    "cumprod": [
        *along(),
        with_zeros([2.0, 0.0, 3.0, 4.0], 0),
        with_zeros([0.0, 0.0, 3.0], 0),
        with_zeros([[2.0, 0.0, 3.0], [0.0, 2.0, 0.0]], 1),
        with_zeros([[2.0, 0.0], [0.0, 2.0], [1.0, 3.0]], 0),
        BAD_DIM,
    ],
    "cummax": [
        *only_real(along()),
        *without_gradient([with_zeros([1.0, 3.0, 3.0, 0.0], 0)]),
        lambda make, dtype: Sample((cygrad.tensor([1.0, NAN, 2.0], dtype=dtype), 0), check_gradient=False),
        BAD_DIM,
    ],
    "cummin": [
        *only_real(along()),
        *without_gradient([with_zeros([3.0, 1.0, 1.0, 2.0], 0)]),
        lambda make, dtype: Sample((cygrad.tensor([3.0, NAN, 2.0], dtype=dtype), 0), check_gradient=False),
        BAD_DIM,
    ],
    "logcumsumexp": [
        *only_floating(along()),
        call((3,), 0, low=900, high=1000),
        lambda make, dtype: Sample((cygrad.tensor([-INF, -INF, 1.0, 2.0], dtype=dtype), 0), fixed=(0,)),
        BAD_DIM,
    ],
    "softmax": [*along(), call((3,), 0, low=900, high=1000), BAD_DIM],
    "log_softmax": [*along(), call((3,), 0, low=900, high=1000), BAD_DIM],
}
COMPLEX = {"cumsum", "cumprod"}
HELPERS = {
    "cumsum_reverse": "cumsum",
    "linear_recurrence": "cumprod",
    "product_before": "cumprod",
    "exclusive_product": "prod",
    "softmax_backward": "softmax",
    "log_softmax_backward": "log_softmax",
}
