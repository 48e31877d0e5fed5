"""Samples: views of a part."""

from .sample import Sample, call, fails, of_one_layout
from .view import sizes, transposed, wrong

SAMPLES = {
    "narrow": [
        call((4, 3), 0, 1, 2),
        call((4, 3), 1, -2, 2),
        call((4, 3), 0, 2, 0),
        transposed(0, 1, 2),
        fails(RuntimeError, "narrow", (4,), 0, 3, 2),
    ],
    "select": [
        call((4, 3), 0, 1),
        call((4, 3), -1, -1),
        call((3,), 0, 2),
        transposed(0, 1),
        fails(IndexError, "select|index", (4,), 0, 4),
    ],
    "diagonal": [
        call((3, 3)),
        call((3, 4), 1),
        call((2, 3, 4), -1, 1, 2),
        call((2, 2), 5),
        fails(RuntimeError, "diagonal", (2, 2), 0, 1, 1),
    ],
    "unfold": [
        call((7,), 0, 3, 2),
        call((7,), 0, 3, 1),
        call((2, 6), 1, 2, 3),
        call((), 0, 1, 1),
        fails(RuntimeError, "unfold", (3,), 0, 4, 1),
    ],
    "as_strided": of_one_layout(
        [
            sizes((6,), (2, 3), (3, 1)),
            sizes((6,), (4, 3), (1, 1)),
            sizes((2, 4), (2, 2), (2, 1), 1),
            lambda make, dtype: Sample((make((4, 3)).t(), (2, 3), (1, 2))),
            wrong(RuntimeError, "as_strided|storage|memory", (4,), (4, 4), (4, 1)),
        ]
    ),
    "split": [
        call((5, 2), 2),
        call((5, 2), 5),
        sizes((5, 2), (1, 4)),
        call((2, 4), 2, dim=1),
        call((0, 2), 1),
        wrong(RuntimeError, "split", (5,), (1, 2)),
        fails(RuntimeError, "split", (5,), -1),
    ],
    "chunk": [call((5, 2), 2), call((5, 2), 4), call((2, 4), 2, dim=1), fails(RuntimeError, "chunk", (5,), 0)],
    "unbind": [call((3, 2)), call((3, 2), 1), call((0, 2)), fails((IndexError, RuntimeError), "unbind|dim", ())],
}
COMPLEX = set(SAMPLES)
HELPERS = {
    "slice": "__getitem__",
    "slice_backward": "narrow",
    "select_backward": "select",
    "diagonal_backward": "diagonal",
    "unfold_backward": "unfold",
    "as_strided_backward": "as_strided",
    "split_backward": "split",
    "unbind_backward": "unbind",
    "unsafe_split": "split", "var_mean": "var", "std_mean": "std", "aminmax": "amax", "lu_unpack": "lu_unpack",
    "triangular_solve": "triangular_solve", "linalg_lstsq_results": "linalg.lstsq",
}
