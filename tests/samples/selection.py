"""Samples: order statistics, quantiles and other statistics."""

import cygrad

from .reduction import with_zeros
from .sample import Sample, at, call, fails, integers, only_floating, only_real, without_gradient

NAN = float("nan")


def with_nan(*args, **kwargs):
    """Rows with and without nan; for floating types."""
    return lambda make, dtype: Sample(
        (cygrad.tensor([[1.0, NAN, 3.0, 2.0], [4.0, 1.0, 2.0, 0.0]], dtype=dtype), *args), kwargs, check_gradient=False
    )


def along(*before, **kwargs):
    """Return distinct elements along some dimensions, because the choice among equals is unspecified."""
    return only_floating(
        [
            call((5,), *before, **kwargs),
            call((3, 4), *before, dim=0, **kwargs),
            call((3, 4), *before, dim=1, keepdim=True, **kwargs),
            call((2, 3, 4), *before, dim=-2, **kwargs),
            call((), *before, **kwargs),
            lambda make, dtype: Sample((make((4, 3)).t(), *before), {"dim": 1, **kwargs}),
        ]
    )


def quantiles(*q):
    """A call whose q is a tensor of the type of the elements."""
    return lambda make, dtype: Sample((make((3, 4)), cygrad.tensor(q, dtype=dtype)), {"dim": 1}, fixed=(1,))


QUANTILES = only_floating(
    [
        call((7,), 0.3),
        call((3, 4), 0.5),
        call((3, 4), 0.3, 0),
        call((3, 4), 0.3, 1, True),
        call((), 0.3),
        *(call((3, 4), 0.4, dim=1, interpolation=kind) for kind in ("lower", "higher", "midpoint", "nearest")),
        quantiles(0.1, 0.55, 1.0),
        with_nan(0.4, dim=1),
        with_nan(0.4),
        lambda make, dtype: Sample((make((4, 3)).t(), 0.7), {"dim": 0, "keepdim": True}),
    ]
)
BAD_QUANTILES = [
    fails(RuntimeError, "q must", (3,), 1.5),
    fails(RuntimeError, "non-empty", (0,), 0.5),
    fails(RuntimeError, "interpolation", (3,), 0.5, interpolation="cubic"),
    fails(RuntimeError, "floating", integers([1, 2]), 0.5),
    fails(IndexError, "dim", (3,), 0.5, 1),
]

SAMPLES = {
    "kthvalue": [
        *along(1)[:-2],
        *only_floating([call((5,), 5), call((3, 4), 2, 0), call((), 1)]),
        with_nan(4),
        fails(RuntimeError, "k out of range", (3,), 0),
        fails(RuntimeError, "k out of range", (3,), 4),
        fails(IndexError, "dim", (3,), 1, 1),
    ],
    "median": [
        *along(),
        *only_floating([call((3, 4))]),
        with_nan(),
        with_nan(1),
        at([[1.0, 2.0, 2.0, 3.0]], [0.0, 0.5, 0.5, 0.0]),
        *without_gradient(only_floating([call((0,))])),
        fails(IndexError, "median", (0, 2), 0),
        fails(IndexError, "dim", (3,), 1),
    ],
    "nanmedian": [
        *along(),
        *only_floating([call((3, 4))]),
        with_nan(),
        with_nan(1),
        fails(IndexError, "nanmedian", (0, 2), 0),
    ],
    "mode": [
        *only_floating([call((1, 1))]),
        lambda make, dtype: None
        if dtype is cygrad.bool
        else Sample((cygrad.tensor([[2, 1, 2], [1, 1, 0]], dtype=dtype),), check_gradient=False),
        fails(IndexError, "mode", (0, 2), 0),
    ],
    "msort": [call((5,)), call((3, 4)), call((0, 3)), lambda make, dtype: Sample((make((4, 3)).t(),))],
    "quantile": [*QUANTILES, *BAD_QUANTILES],
    "nanquantile": [*QUANTILES, *BAD_QUANTILES],
    "nansum": [
        *only_real(
            [call((2, 3)), call((2, 3), 0), call((2, 3, 2), dim=(0, 2), keepdim=True), call(()), call((0, 3), 0)]
        ),
        with_nan(),
        with_nan(1),
        at([[1.0, NAN]], [1.0, 0.0]),
    ],
    "nanmean": [
        *only_floating([call((2, 3)), call((2, 3), 0), call((2, 3, 2), dim=(0, 2), keepdim=True), call(())]),
        with_nan(),
        with_nan(1),
        at([[1.0, NAN, 2.0]], [0.5, 0.0, 0.5]),
        fails(RuntimeError, "floating", integers([1])),
    ],
    "count_nonzero": without_gradient(
        [
            call((2, 3)),
            call((2, 3), 0),
            call((2, 3, 2), dim=(0, 2)),
            call(()),
            call((0, 3), 0),
            with_zeros(1.0, 0.0, 2.0),
        ]
    ),
    "cov": [
        call((3, 5)),
        call((5,)),
        call((3, 5), correction=0),
        *only_floating(
            [
                lambda make, dtype: Sample((make((3, 3)),), {"fweights": integers([1, 2, 3])}),
                lambda make, dtype: None
                if dtype.is_complex
                else Sample((make((3, 3)),), {"aweights": make((3,), 0.5, 2), "fweights": integers([1, 2, 3])}),
            ]
        ),
        fails(RuntimeError, "two dimensions", (2, 2, 2)),
        fails(RuntimeError, "fweights", (2, 2), fweights=integers([1])),
    ],
    "corrcoef": [*only_floating([call((3, 5)), call((2, 7))]), fails(RuntimeError, "two dimensions", (2, 2, 2))],
}
COMPLEX = {"count_nonzero", "cov"}
HELPERS = {"median_dim": "median", "nanmedian_dim": "nanmedian", "median_of_all": "median"}
