"""Samples: scatter and gather by indices and masks."""

import cygrad

from .indexing import with_index, wrong
from .sample import Sample, call, fails, integers, only_floating, only_real, without_gradient


def reductions(*names):
    """Each reduction with and without the elements that are there."""
    builders = []
    for name in names:
        for include in (True, False):
            builders += only_floating(
                [
                    with_index((4,), 0, [0, 2, 0], (3,), name, include_self=include),
                    with_index((2, 3), 1, [[0, 0, 2], [1, 1, 1]], (2, 3), name, include_self=include),
                    larger(name, include),
                ]
            )
    return builders


def larger(name, include):
    """The part of src that the index does not reach changes nothing."""
    return lambda make, dtype: Sample(
        (make((3, 2)), 0, integers([[0, 2]]), make((2, 2)), name), {"include_self": include}, fixed=(3,)
    )


def zeros(*values):
    """Products of elements of which some are zero."""

    def build(make, dtype):
        return Sample(
            (
                cygrad.tensor([2.0, 0.0, 3.0], dtype=dtype),
                0,
                integers([0, 0, 1, 2, 2]),
                cygrad.tensor(values, dtype=dtype),
                "prod",
            )
        )

    return build


MASK = [[True, False, True], [False, True, False]]
SAMPLES = {
    "scatter_reduce": [
        *reductions("sum", "mean", "prod"),
        *only_real(reductions("amax", "amin")),
        *only_floating([zeros(0.0, 2.0, 1.0, 4.0, 5.0), zeros(0.0, 0.0, 1.0, 0.0, 5.0)]),
        with_index((), 0, [0], (1,), "sum"),
        with_index((3,), 0, [1], (1,), "prod"),
        wrong(RuntimeError, "reduction", (3,), 0, [0], (1,), "median"),
        wrong(RuntimeError, "bounds", (3,), 0, [3], (1,), "prod"),
        wrong(RuntimeError, "bounds", (3,), 0, [-1], (1,), "amax"),
        wrong(RuntimeError, "larger", (3,), 0, [0, 1], (1,), "prod"),
    ],
    "index_reduce": [
        *only_floating(
            [
                with_index((3, 2), 0, [0, 2, 0], (3, 2), name, include_self=include)
                for name in ("prod", "mean")
                for include in (True,)
            ]
        ),
        *only_real(
            only_floating(
                [with_index((3, 2), 0, [0, 2, 0], (3, 2), name, include_self=False) for name in ("prod", "mean")]
            )
        ),
        *only_real(only_floating([with_index((2, 3), 1, [2, 2], (2, 2), name) for name in ("amax", "amin")])),
        wrong(RuntimeError, "reduction", (3,), 0, [0], (1,), "sum"),
    ],
    "index_copy": [
        with_index((3, 2), 0, [2, 0], (2, 2)),
        with_index((2, 3), -1, [1], (2, 1)),
        with_index((2, 3, 2), 1, [2, 0], (2, 2, 2)),
        with_index((), 0, [0], ()),
        wrong(IndexError, "range", (3,), 0, [3], (1,)),
        wrong(IndexError, "shape", (3,), 0, [0], (2,)),
        wrong(IndexError, "vector", (3,), 0, [[0]], (1,)),
        wrong(IndexError, "dim", (3,), 1, [0], (1,)),
    ],
    "index_fill": [
        with_index((3, 2), 0, [2, 0], 1),
        with_index((2, 3), 1, [-1], 0),
        with_index((2, 3), 1, [2, 2], ()),
        with_index((), 0, [0], 1),
        wrong(IndexError, "range", (3,), 0, [3], 1),
        wrong(RuntimeError, "value", (3,), 0, [0], (2,)),
    ],
    "put": [
        with_index((2, 3), [0, -1], (2,)),
        with_index((2, 3), [[4], [2]], (2, 1)),
        with_index((3,), [1, 1], (2,), True),
        wrong(IndexError, "bounds", (3,), [3], (1,)),
        wrong(IndexError, "one element", (3,), [0], (2,)),
    ],
    "take": [
        with_index((2, 3), [0, -1, 0]),
        with_index((2, 3), [[4], [2]]),
        with_index((), [0]),
        wrong(IndexError, "bounds", (3,), [3]),
        fails(RuntimeError, "int64", (3,), cygrad.tensor([0.0])),
    ],
    "masked_scatter": [
        with_index((2, 3), MASK, (3,)),
        with_index((2, 3), MASK, (2, 4)),
        with_index((3,), MASK, (5,)),
        with_index((2, 3), [True, False, True], (5,)),
        with_index((2, 3), [False, False, False], (0,)),
        wrong(RuntimeError, "few", (2, 3), MASK, (2,)),
        wrong(RuntimeError, "bool", (3,), [1, 0, 1], (3,)),
    ],
    "repeat_interleave": [
        call((3,), 2),
        call((2, 3), 2),
        call((2, 3), 2, 1),
        call((2, 3), 0, dim=0),
        call((), 3),
        call((3,), 1),
        with_index((3,), [1, 0, 2]),
        with_index((2, 3), [1, 0, 2], 1),
        with_index((2, 3), [2], 0),
        lambda make, dtype: Sample((integers([2, 0, 1]),), check_gradient=False),
        fails(RuntimeError, "negative", (3,), -1),
        wrong(RuntimeError, "each slice", (3,), [1, 2]),
    ],
    "unique_consecutive": without_gradient(
        [
            lambda make, dtype: Sample((integers([1, 1, 2, 2, 1]),)),
            lambda make, dtype: Sample((integers([1, 1, 2, 2, 1]), True, True)),
            lambda make, dtype: Sample((integers([[1, 1, 2], [1, 1, 2], [0, 1, 2]]), True, True), {"dim": 0}),
            lambda make, dtype: Sample((integers([]), True, True)),
        ]
    ),
    "argwhere": without_gradient([call((2, 3)), call(()), call((0, 3))]),
    "bincount": without_gradient(
        [
            lambda make, dtype: Sample((integers([0, 3, 3]),)),
            lambda make, dtype: Sample((integers([1, 0]),), {"minlength": 4}),
            lambda make, dtype: None if dtype.is_complex else Sample((integers([1, 0, 1]), make((3,))), fixed=(1,)),
            lambda make, dtype: Sample((integers([]),), {"minlength": 2}),
            fails(RuntimeError, "negative", integers([-1])),
            fails(RuntimeError, "vector", integers([[1]])),
            fails(NotImplementedError, "integers", (3,)),
        ]
    ),
    "histc": without_gradient(
        [
            *only_floating([call((20,), 5), call((4, 5), 4, -1, 1), call((3,), 2, 5, 6), call((0,), 3)]),
            fails(RuntimeError, "bins", (3,), 0),
            fails(RuntimeError, "limit", (3,), 2, 3, 1),
        ]
    ),
    "histogram": without_gradient(
        [
            *only_floating(
                [
                    lambda make, dtype: Sample((make((20,)), 5), fixed=(0,)),
                    lambda make, dtype: Sample((make((4, 5)), 4), {"range": (-1.0, 1.0), "density": True}, fixed=(0,)),
                    lambda make, dtype: Sample(
                        (make((7,)), cygrad.tensor([-1.0, 0.0, 0.5], dtype=dtype)), fixed=(0, 1)
                    ),
                ]
            ),
            fails(RuntimeError, "bins", (3,), 0),
        ]
    ),
    "bucketize": without_gradient(
        [
            lambda make, dtype: Sample((cygrad.tensor([1, 3, 6]), cygrad.tensor([1, 3, 5]))),
            lambda make, dtype: Sample(
                (cygrad.tensor([[1, 3, 6]]), cygrad.tensor([1, 3, 5])), {"right": True, "out_int32": True}
            ),
            lambda make, dtype: Sample((4, cygrad.tensor([1, 3, 5]))),
            fails(RuntimeError, "vector", (3,), (2, 2)),
        ]
    ),
}
COMPLEX = {
    "scatter_reduce",
    "index_reduce",
    "index_copy",
    "index_fill",
    "put",
    "take",
    "masked_scatter",
    "repeat_interleave",
    "argwhere",
}
HELPERS = dict.fromkeys(("scatter_prod", "scatter_amax", "scatter_amin"), "scatter_reduce")
