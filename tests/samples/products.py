"""Samples: matrix products."""

from .sample import Sample, call, fails, only_floating

NOT_APPLICABLE = r"\(2, 3\)|shape|size"


def transposed(first, second):
    """Both factors as transposes of contiguous matrices."""
    return lambda make, dtype: Sample((make(first[::-1]).t(), make(second[::-1]).t()))


SAMPLES = {
    "mm": [
        call((2, 3), (3, 4)),
        call((2, 0), (0, 3)),
        call((0, 2), (2, 3)),
        transposed((2, 3), (3, 4)),
        fails(RuntimeError, NOT_APPLICABLE, (2, 3), (2, 3)),
        fails(RuntimeError, "mm", (2,), (2, 3)),
    ],
    "bmm": [
        call((2, 2, 3), (2, 3, 1)),
        call((0, 2, 3), (0, 3, 1)),
        call((2, 2, 0), (2, 0, 1)),
        fails(RuntimeError, NOT_APPLICABLE, (2, 2, 3), (2, 2, 3)),
    ],
    "mv": [call((2, 3), (3,)), call((2, 0), (0,)), fails(RuntimeError, NOT_APPLICABLE, (2, 3), (2,))],
    "dot": [call((3,), (3,)), call((0,), (0,)), fails(RuntimeError, "dot", (2,), (3,))],
    "vdot": [call((3,), (3,)), call((0,), (0,)), fails(RuntimeError, "vdot", (2,), (3,))],
    "outer": [call((2,), (3,)), call((0,), (3,)), fails(RuntimeError, "outer|ger", (2, 2), (3,))],
    "cross": [
        call((3,), (3,)),
        call((2, 3), (2, 3)),
        call((3, 1, 2), (3, 4, 1), 0),
        call((2, 3, 3), (2, 3, 3)),
        call((3, 0), (3, 0)),
        transposed((2, 3), (2, 3)),
        fails(RuntimeError, "size 3", (2,), (2,)),
        fails(RuntimeError, "size 3", (3, 1), (3, 3), 1),
        fails(RuntimeError, "number of dimensions", (3,), (2, 3)),
        fails(IndexError, "dim", (3,), (3,), 1),
    ],
    "matmul": [
        *(
            call(first, second)
            for first, second in [
                ((3,), (3,)),
                ((3,), (3, 2)),
                ((3,), (2, 3, 2)),
                ((2, 3), (3,)),
                ((2, 2, 3), (3,)),
                ((2, 3), (3, 2)),
                ((2, 2, 3), (3, 2)),
                ((2, 3), (2, 3, 2)),
                ((2, 1, 2, 3), (2, 3, 2)),
                ((0, 2, 3), (3, 2)),
                ((2, 0), (0, 2)),
                ((0,), (0, 2)),
                ((2, 0, 3), (3,)),
            ]
        ),
        transposed((2, 3), (3, 4)),
        fails(RuntimeError, NOT_APPLICABLE, (2, 3), (2, 3)),
        fails(RuntimeError, "matmul", (), (2,)),
    ],
    "addmm": [
        call((2, 4), (2, 3), (3, 4)),
        *only_floating([call((4,), (2, 3), (3, 4), beta=0.5, alpha=2)]),
        call((4,), (2, 3), (3, 4), beta=3, alpha=2),
        call((), (2, 3), (3, 4)),
        call((2, 1), (2, 0), (0, 4)),
        fails(RuntimeError, NOT_APPLICABLE, (2, 2), (2, 3), (2, 3)),
    ],
    "linear": [
        call((2, 3), (4, 3), (4,)),
        call((2, 3), (4, 3)),
        call((3,), (4, 3), (4,)),
        call((2, 2, 3), (4, 3), (4,)),
        call((2, 3), (3,)),
        call((0, 3), (4, 3), (4,)),
        fails(RuntimeError, NOT_APPLICABLE, (2, 3), (4, 2)),
    ],
}
COMPLEX = set(SAMPLES)
HELPERS = {"distances": "cdist", "distances_backward": "cdist", "distances_within": "pdist", "above_diagonal": "pdist",
           "above_diagonal_backward": "pdist"}
