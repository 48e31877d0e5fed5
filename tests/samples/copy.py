"""Samples: copies in another layout, order or number."""


from .sample import Sample, call, fails, unary
from .view import sizes, transposed, wrong


def lists(*shapes, **kwargs):
    """A list of tensors as first argument."""
    return lambda make, dtype: Sample(([make(shape) for shape in shapes],), kwargs)


def wrong_lists(error, match, *shapes, **kwargs):
    return lambda make, dtype: Sample(([make(shape) for shape in shapes],), kwargs, error=error, match=match)


PADS = [((4,), (1, 2)), ((4,), (-1, 2)), ((2, 3, 4), (1, 1, 0, 2)), ((2, 3, 4), (3, 2))]

SAMPLES = {
    "contiguous": unary(),
    "clone": unary(),
    "flip": [
        sizes((2, 3), (0,)),
        sizes((2, 3), (0, -1)),
        sizes((), ()),
        sizes((0, 3), (0,)),
        transposed((1,)),
        wrong(RuntimeError, "dim", (2, 3), (0, 0)),
    ],
    "roll": [
        call((5,), 2, 0),
        call((2, 3), 1),
        sizes((2, 3), (1, -4), (0, 1)),
        call((2, 3), -1, 1),
        call((0, 3), 1, 0),
        transposed(1, 0),
        call((), 1),
        wrong(RuntimeError, "roll", (2, 3), (1, 2), (0,)),
    ],
    "tril": [
        call((3, 3)),
        call((3, 4), 1),
        call((2, 3, 3), -1),
        call((0, 3)),
        transposed(),
        fails(RuntimeError, "tril|dim", (3,)),
    ],
    "triu": [
        call((3, 3)),
        call((3, 4), 1),
        call((2, 3, 3), -1),
        call((0, 3)),
        transposed(),
        fails(RuntimeError, "triu|dim", (3,)),
    ],
    "repeat": [
        sizes((2,), (2,)),
        sizes((2, 3), (2, 1, 2)),
        sizes((), (3,)),
        sizes((2,), (0,)),
        transposed((2, 2)),
        wrong(RuntimeError, "repeat", (2, 3), (2,)),
    ],
    "cat": [
        lists((2, 3), (1, 3)),
        lists((2, 3), (2, 1), dim=1),
        lists((2,)),
        lists((2,), (0,)),
        lists((0, 3), (2, 3)),
        lambda make, dtype: Sample(([make((3, 2)).t(), make((2, 2))], 1)),
        lists((1, 2), (1, 2), dim=-2),
        wrong_lists(RuntimeError, "cat|size", (2, 3), (2, 2)),
        wrong_lists(ValueError, "empty"),
    ],
    "stack": [
        lists((2, 3), (2, 3)),
        lists((2, 3), (2, 3), dim=1),
        lists((), ()),
        lists((2,), (2,), dim=-1),
        lists((0,), (0,)),
        wrong_lists(RuntimeError, "stack|shape|size", (2,), (3,)),
    ],
    "pad": [
        *(sizes(shape, pad) for shape, pad in PADS),
        sizes((4,), (1, 2), value=3.0),
        *(sizes((1, 2, 4), (1, 2), mode=mode) for mode in ("reflect", "replicate", "circular")),
        *(sizes((1, 2, 3, 4), (1, 2, 2, 1), mode=mode) for mode in ("reflect", "replicate", "circular")),
        wrong(RuntimeError, "pad", (4,), (1,)),
    ],
}
COMPLEX = {"contiguous", "clone", "flip", "roll", "tril", "triu", "repeat", "cat", "stack"}
HELPERS = {"cast": "to", "copy": "copy_", "cat_backward": "cat", "pad_backward": "pad"}
