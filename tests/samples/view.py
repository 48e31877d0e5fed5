"""Samples: views."""

from .sample import Sample, call, fails, of_one_layout


def transposed(*arguments, shape=(2, 3)):
    return lambda make, dtype: Sample((make(shape).t(), *arguments))


def sizes(shape, *arguments, **kwargs):
    """Tuples that are arguments and not shapes of tensors."""
    return lambda make, dtype: Sample((make(shape), *arguments), kwargs)


def wrong(error, match, shape, *arguments):
    return lambda make, dtype: Sample((make(shape), *arguments), error=error, match=match)


SAMPLES = {
    "view": of_one_layout(
        [
            sizes((2, 3), (3, 2)),
            sizes((2, 3), (-1,)),
            sizes((), (1, 1)),
            sizes((0, 3), (3, 0)),
            wrong(RuntimeError, "view|shape", (2, 3), (4, 2)),
            lambda make, dtype: Sample((make((2, 3)).t(), (6,)), error=RuntimeError, match="reshape"),
        ]
    ),
    "reshape": [
        sizes((2, 3), (3, 2)),
        sizes((2, 3), (2, -1, 1)),
        transposed((6,)),
        sizes((), (1,)),
        sizes((0, 3), (0,)),
        wrong(RuntimeError, "shape", (2, 3), (4, 2)),
    ],
    "flatten": [
        call((2, 3, 2)),
        call((2, 3, 2), 1),
        call((2, 3, 2), 0, 1),
        call(()),
        call((0, 3)),
        transposed(),
        fails(RuntimeError, "start_dim", (2, 3), 1, 0),
    ],
    "unflatten": [
        sizes((6,), 0, (2, 3)),
        sizes((2, 6), 1, (-1, 2)),
        wrong(RuntimeError, "unflatten|size", (6,), 0, (4, 2)),
    ],
    "squeeze": [call((2, 1, 3, 1)), call((2, 1, 3, 1), 1), sizes((2, 1, 3, 1), (1, 3)), call((2, 3), 0), call(())],
    "unsqueeze": [call((2, 3), 0), call((2, 3), -1), call((), 0), call((0,), 1), fails(IndexError, "dim", (2,), 3)],
    "t": [
        call((2, 3)),
        call((0, 3)),
        call((3,)),
        call(()),
        transposed(),
        fails(RuntimeError, "at most two", (2, 3, 2)),
    ],
    "transpose": [
        call((2, 3), 0, 1),
        call((2, 3, 2), 0, -1),
        call((), 0, 0),
        call((0, 3), 0, 1),
        fails(IndexError, "dim", (2, 3), 0, 2),
    ],
    "permute": [
        sizes((2, 3, 4), (2, 0, 1)),
        sizes((2, 3), (-1, 0)),
        sizes((), ()),
        wrong(RuntimeError, "permute", (2, 3), (0, 0)),
        wrong(RuntimeError, "permute", (2, 3), (0,)),
    ],
    "movedim": [
        call((2, 3, 4), 0, 2),
        sizes((2, 3, 4), (0, 1), (2, 0)),
        wrong(RuntimeError, "movedim", (2, 3), (0, 1), (0,)),
    ],
    "broadcast_to": [
        sizes((3,), (2, 3)),
        sizes((2, 1), (2, 2, 3)),
        sizes((), (2,)),
        sizes((1,), (0,)),
        wrong(RuntimeError, "expand|broadcast|size", (2,), (3,)),
    ],
    "expand": [sizes((3,), (2, 3)), sizes((2, 1), (-1, 3)), sizes((), (2,)), wrong(RuntimeError, "expand", (2,), (3,))],
}
COMPLEX = set(SAMPLES)
HELPERS = {"alias": "positive", "transpose_all": "permute", "matrix_transpose": "matmul"}
