"""Samples: indexing by tensors."""

import cygrad

from .sample import Sample, integers, only_floating, only_real


def with_index(shape, *arguments, **kwargs):
    """Lists of integers become int64 tensors; of bools, masks; tuples, random tensors of that shape."""

    def build(make, dtype):
        def argument(value):
            if isinstance(value, tuple):
                return make(value)
            return cygrad.tensor(value) if isinstance(value, list) else value

        return Sample((make(shape), *map(argument, arguments)), kwargs)

    return build


def wrong(error, match, shape, *arguments):
    def build(make, dtype):
        sample = with_index(shape, *arguments)(make, dtype)
        sample.error, sample.match = error, match
        return sample

    return build


def plain(*arguments):
    """Arguments without anything to differentiate."""
    return lambda make, dtype: Sample(
        tuple(cygrad.tensor(value) if isinstance(value, list) else value for value in arguments), check_gradient=False
    )


def transposed_gather(make, dtype):
    return Sample((make((3, 2)).t(), 1, integers([[0, 2], [1, 1]]).t()))


def table(*arguments, **kwargs):
    """Indices first, then a table of four rows."""
    return lambda make, dtype: Sample((cygrad.tensor(arguments[0]), make((4, 3)), *arguments[1:]), kwargs)


def bag(index, offsets=None, factors=False, **kwargs):
    """Bags of rows of a table of four rows, with a factor for each row or without."""

    def build(make, dtype):
        given = {"per_sample_weights": make((len(index),))} if factors else {}
        starts = [] if offsets is None else [integers(offsets)]
        return Sample((cygrad.tensor(index, dtype=cygrad.int64), make((4, 3)), *starts), {**kwargs, **given})

    return build


def padding(make, dtype):
    """Sample with a padding row, which gets no gradient."""
    rows = [[1.0] * 3, [0.0] * 3, [2.0] * 3, [0.0] * 3]
    return Sample(
        (integers([0, 1, 1, 2, 2]), make((4, 3))), {"padding_idx": 1}, check_gradient=False, gradients=(None, rows)
    )


def without_entries(make, dtype):
    return Sample((make((2, 3)), 0, cygrad.zeros((0,), dtype=cygrad.int64)))


MASK = [[True, False, True], [False, False, True]]

SAMPLES = {
    "gather": [
        with_index((2, 3), 1, [[0, 0], [2, 1]]),
        with_index((2, 3), 0, [[0, 1, 1]]),
        with_index((3,), 0, [2, 2, 0, 1]),
        with_index((), 0, [0]),
        with_index((3,), -1, [1]),
        transposed_gather,
        wrong((RuntimeError, IndexError), "index|bounds|range", (2, 3), 1, [[3], [0]]),
    ],
    "scatter": [
        with_index((2, 3), 1, [[0, 1], [2, 1]], (2, 2)),
        with_index((3,), 0, [2, 0], (2,)),
        with_index((3,), 0, [1], 2.5),
        wrong((RuntimeError, IndexError), "index|bounds|range", (3,), 0, [3], (1,)),
    ],
    "scatter_add": [
        with_index((2, 3), 1, [[0, 0], [2, 1]], (2, 2)),
        with_index((3,), 0, [2, 2], (2,)),
        wrong((RuntimeError, IndexError), "index|bounds|range", (3,), 0, [3], (1,)),
    ],
    "index_select": [
        with_index((2, 3), 1, [2, 0, 2]),
        with_index((2, 3), 0, [1]),
        with_index((3,), -1, [1, 1]),
        without_entries,
        with_index((), 0, [0]),
        wrong((IndexError, RuntimeError), "index|range|bounds", (3,), 0, [3]),
    ],
    "index_add": [
        with_index((2, 3), 1, [2, 2], (2, 2)),
        with_index((3,), 0, [1], (1,), alpha=2.5),
        wrong((IndexError, RuntimeError), "index|range|bounds", (3,), 0, [3], (1,)),
    ],
    "masked_fill": [
        with_index((2, 3), MASK, 1.5),
        with_index((2, 3), [True, False, True], 0),
        with_index((2, 3), MASK, ()),
        with_index((3,), MASK, 2.0),
        wrong(RuntimeError, "mask|value", (2, 3), MASK, (2,)),
    ],
    "masked_select": [
        with_index((2, 3), MASK),
        with_index((3,), MASK),
        with_index((2, 3), [True, False, False]),
        with_index((2, 3), [False, False, False]),
    ],
    "take_along_dim": [
        with_index((2, 3), [[1], [0]], 1),
        with_index((2, 3), [[2, 0]], 1),
        with_index((2, 3), [5, 0, 0]),
        with_index((1, 3), [[0, 2], [1, 1]], 1),
    ],
    "nonzero": [plain([[0, 1], [2, 0]]), plain([0, 0]), plain([True, False])],
    "embedding": [
        table([0, 3, 3]),
        table([[0, 1], [1, 2]]),
        padding,
        lambda make, dtype: Sample(
            (cygrad.tensor([4]), make((4, 3))), error=(IndexError, RuntimeError), match="index|range|bounds"
        ),
    ],
    "embedding_bag": only_real(only_floating([
        bag([[0, 3], [1, 1], [2, 0]], mode="sum"),
        bag([[0, 3], [1, 1]], padding_idx=1),
        bag([0, 3, 1, 2, 2], [0, 2, 2], factors=True, mode="sum"),
        bag([0, 3, 1, 2, 2], [0, 2, 5], include_last_offset=True),
        bag([0, 3, 1, 2, 2], [0, 2, 2], mode="max", padding_idx=3),
        bag([], [0, 0], mode="sum"),
        lambda make, dtype: Sample((integers([[4]]), make((4, 3))), error=RuntimeError, match="bounds"),
        lambda make, dtype: Sample((integers([1, 2]), make((4, 3)), integers([1])), error=RuntimeError,
                                   match="has to be 0|range"),
    ])),
    "one_hot": [
        plain([0, 2, 1]),
        plain([[0, 1]], 4),
        lambda make, dtype: Sample((cygrad.tensor([3]), 2), error=RuntimeError, match="class"),
    ],
    "__getitem__": [
        lambda make, dtype: Sample((make((4, 3)), (slice(1, None, 2), -1))),
        lambda make, dtype: Sample((make((4, 3)), (Ellipsis, None, slice(0, 2)))),
        lambda make, dtype: Sample((make((4, 3)), integers([0, 3, 3]))),
        lambda make, dtype: Sample((make((4, 3)), (slice(None), integers([[0], [2]])))),
        lambda make, dtype: Sample((make((4, 3, 2)), (integers([0, 3]), slice(None), integers([1, 0])))),
        lambda make, dtype: Sample((make((2, 3)), cygrad.tensor(MASK))),
        lambda make, dtype: Sample((make((4, 3)), (integers([0, 4]),)), error=IndexError, match="index"),
    ],
}
COMPLEX = set(SAMPLES) - {"embedding_bag", "one_hot", "nonzero"}
HELPERS = {
    "index": "__getitem__",
    "index_backward": "__getitem__",
    "index_put": "__setitem__",
    "index_take": "__setitem__",
    "scatter_backward": "scatter",
    "embedding_backward": "embedding",
    "embedding_bag_backward": "embedding_bag",
    "embedding_bag_maximum": "embedding_bag",
    "embedding_bag_products": "embedding_bag",
}
