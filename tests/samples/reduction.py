"""Samples: sums, means and other reductions."""

import cygrad

from .sample import Sample, at, call, fails

INF = float("inf")


def reductions(low=-2, high=2, dims=(0, -1, (0, 2), (0, 1, 2)), **kwargs):
    """Builders: over everything, along some dimensions, keeping them, transposed, 0-dim."""
    shape = (2, 3, 2)
    builders = [call(shape, low=low, high=high, **kwargs), call((), low=low, high=high, **kwargs)]
    for dim in dims:
        builders += [
            call(shape, dim=dim, low=low, high=high, **kwargs),
            call(shape, dim=dim, keepdim=True, low=low, high=high, **kwargs),
        ]
    builders.append(lambda make, dtype: Sample((make(shape, low, high).transpose(0, 1),), {"dim": dims[0], **kwargs}))
    return builders


def with_zeros(*values, **kwargs):
    def build(make, dtype):
        return Sample((cygrad.tensor(values, dtype=dtype),), kwargs)

    return build


EMPTY = [call((0, 3)), call((0, 3), dim=0), call((0, 3), dim=1)]
BAD_DIM = fails(IndexError, "dim", (2, 3), dim=2)

SAMPLES = {
    "sum": [
        *reductions(),
        *EMPTY,
        BAD_DIM,
        call((2, 3), dtype=cygrad.float64),
        fails(RuntimeError, "dim", (2, 3), dim=(0, 0)),
    ],
    "mean": [
        *reductions(),
        *EMPTY,
        BAD_DIM,
        lambda make, dtype: Sample((cygrad.tensor([1, 2]),), error=RuntimeError, match="float"),
    ],
    "prod": [
        *reductions(dims=(0, -1)),
        *EMPTY,
        with_zeros(2.0, 0.0, 3.0),
        with_zeros(2.0, 0.0, 0.0),
        with_zeros([2.0, 0.0, 3.0], [1.0, 2.0, 4.0], [0.0, 0.0, 1.0], dim=1),
        with_zeros([2.0, 0.0, 3.0], [1.0, 2.0, 4.0], [0.0, 0.0, 1.0], dim=0, keepdim=True),
        BAD_DIM,
    ],
    "var": [*reductions()[:1], *reductions()[2:], call((2, 3), dim=1, correction=0), call((3,), correction=2)],
    "std": [*reductions()[:1], *reductions()[2:], call((2, 3), dim=1, correction=0), at([[2.0, 2.0]], [0.0, 0.0])],
    "norm": [
        *reductions(0.5, 2),
        *reductions(-2, -0.5, p=1),
        *reductions(0.5, 2, p=3),
        *reductions(0.5, 2, p=1.5),
        *reductions(0.5, 2, p=0.5),
        *reductions(0.5, 2, p=INF, dims=(0,)),
        *reductions(0.5, 2, p=-INF, dims=(0,)),
        at([[0.0, 0.0]], [0.0, 0.0]),
        at([[0.0, 0.0]], [0.0, 0.0], p=1),
        at([[0.0, 0.0]], [0.0, 0.0], p=3),
        at([[2.0, -2.0, 1.0]], [0.5, -0.5, 0.0], p=INF),
        at([[2.0, 1.0]], [0.0, 0.0], p=0),
    ],
    "amax": [*reductions(), at([[1.0, 3.0, 3.0]], [0.0, 0.5, 0.5]), fails(IndexError, "amax", (0,), dim=0)],
    "amin": [*reductions(), at([[1.0, 1.0, 3.0]], [0.5, 0.5, 0.0]), fails(IndexError, "amin", (0,), dim=0)],
    "max": [
        *reductions(dims=(0, -1)),
        call((2, 3), (2, 3)),
        at([[1.0, 3.0, 3.0]], [0.0, 0.5, 0.5]),
        fails(IndexError, "max", (0, 2), dim=0),
    ],
    "min": [
        *reductions(dims=(0, -1)),
        call((2, 3), (2, 3)),
        at([[1.0, 1.0, 3.0]], [0.5, 0.5, 0.0]),
        fails(IndexError, "min", (0, 2), dim=0),
    ],
    "argmax": reductions(dims=(0, -1)),
    "argmin": reductions(dims=(0, -1)),
    "logsumexp": [
        call((2, 3), dim=1),
        call((2, 3), dim=0, keepdim=True),
        call((2, 3, 2), dim=(0, 2)),
        call((), dim=0),
        call((2,), dim=0, low=900, high=1000),
        call((2, 0), dim=0),
    ],
}
for _name in ("argmax", "argmin"):
    SAMPLES[_name] = [
        lambda make, dtype, build=build: Sample(
            build(make, dtype).args, build(make, dtype).kwargs, check_gradient=False
        )
        for build in SAMPLES[_name]
    ]
COMPLEX = {"sum", "mean", "prod", "var", "std", "norm"}
HELPERS = {"max_all": "max", "max_dim": "max", "min_all": "min", "min_dim": "min", "sum_to": "add", "unreduce": "sum",
           "select_backward_index": "max"}
