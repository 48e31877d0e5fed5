"""Samples: composite functions: stacking, diagonals, differences, grids, products, distances."""

import cygrad

from .copy import lists, wrong_lists
from .sample import Sample, call, fails, only_floating, only_real, unary, without_gradient
from .view import sizes


def rows(*arguments, **kwargs):
    """A transposed matrix as first argument."""
    return lambda make, dtype: Sample((make((3, 2)).t(), *arguments), kwargs)


STACKED = [lists((2,), (3,)), lists((2, 3), (2, 3)), lists((2, 3))]
WEIGHTED = {"beta": 2, "alpha": 3}
SAMPLES = {
    "atleast_1d": unary(),
    "atleast_2d": unary(),
    "atleast_3d": unary(),
    "hstack": [
        *STACKED,
        lists((), ()),
        wrong_lists(RuntimeError, "hstack|cat", (2,), (2, 2)),
        fails(TypeError, "sequence", 3),
    ],
    "vstack": [lists((2,), (3, 2)), *STACKED[1:], wrong_lists(RuntimeError, "vstack|cat", (2,), (3,))],
    "dstack": [lists((2,), (2,)), *STACKED[1:]],
    "column_stack": [lists((2,), (2, 3)), lists((), ()), *STACKED[1:]],
    "block_diag": [
        call((2, 3), (1, 2)),
        call((2,), ()),
        call((0, 2), (1, 1)),
        fails(RuntimeError, "two dimensions", (1, 1, 1)),
    ],
    "tensor_split": [
        call((5,), 2),
        call((5,), 7),
        sizes((2, 5), (1, 3), 1),
        sizes((5,), (3, 1)),
        fails(RuntimeError, "positive", (3,), 0),
        fails(IndexError, "dim", (3,), 2, 1),
    ],
    "hsplit": [call((4,), 2), call((2, 4), 2), sizes((2, 4), (1, 3)), fails(RuntimeError, "divided", (3,), 2)],
    "vsplit": [call((4, 2), 2), sizes((4, 2), (1, 3)), fails(RuntimeError, "dimensions", (3,), 3)],
    "dsplit": [call((1, 2, 4), 2), fails(RuntimeError, "dimensions", (3, 3), 3)],
    "diag": [
        call((3,)),
        call((3,), -1),
        call((2, 3)),
        call((2, 3), 1),
        rows(),
        call((0,)),
        fails(RuntimeError, "vector", (1, 1, 1)),
    ],
    "diag_embed": [
        call((2, 3)),
        call((3,), 1),
        call((2, 3), -1, 0, 2),
        rows(),
        fails(RuntimeError, "differ", (3,), 0, 1, 1),
    ],
    "diagflat": [call((3,)), call((2, 2), 1), call(())],
    "trace": [call((3, 3)), call((2, 3)), rows(), call((0, 2)), fails(RuntimeError, "matrix", (3,))],
    "diagonal_scatter": [
        call((3, 3), (3,)),
        call((2, 3), (2,), 1),
        call((3, 2), (2,)),
        fails(RuntimeError, "shape", (3, 3), (2,)),
    ],
    "select_scatter": [
        call((2, 3), (3,), 0, 1),
        call((2, 3), (2,), 1, -1),
        fails(RuntimeError, "shape", (3, 3), (2,), 0, 0),
    ],
    "slice_scatter": [
        call((4,), (2,), 0, 1, 3),
        call((2, 4), (2, 2), 1, 0, 4, 2),
        fails(RuntimeError, "shape", (3, 3), (2,), 0),
    ],
    "as_strided_scatter": [lambda make, dtype: Sample((make((4,)), make((2,)), (2,), (2,), 1), any_layout=False)],
    "tril_indices": without_gradient([call(3, 4), call(4, 3, -1), call(0, 3)]),
    "triu_indices": without_gradient(
        [call(3, 4), call(4, 3, -1), call(3, 3, dtype=cygrad.int32), fails(RuntimeError, "negative", -1, 3)]
    ),
    "rot90": [
        call((2, 3)),
        call((2, 3), 2),
        call((2, 3), -1),
        call((2, 3), 4),
        rows(),
        fails(RuntimeError, "two", (3,)),
    ],
    "fliplr": [call((2, 3)), rows(), fails(RuntimeError, "two", (3,))],
    "flipud": [call((2, 3)), call((3,)), rows(), fails(RuntimeError, "one", ())],
    "ravel": unary(),
    "adjoint": [call((2, 3)), call((2, 2, 3)), rows(), fails(RuntimeError, "matrix", (3,))],
    "diff": [
        call((5,)),
        call((2, 4), 2),
        call((3, 2), 1, 0),
        call((3,), 5),
        call((3,), 0),
        rows(),
        lambda make, dtype: Sample((make((3,)),), {"prepend": make((1,)), "append": make((2,))}),
        fails(RuntimeError, "dimension", ()),
        fails(RuntimeError, "negative", (3,), -1),
        fails(IndexError, "dim", (3,), 1, 1),
    ],
    "gradient": [
        *only_floating(
            [
                call((4,)),
                call((3, 4)),
                call((3, 4), dim=1, edge_order=2),
                call((4,), spacing=0.5),
                lambda make, dtype: Sample(
                    (make((4,)),),
                    {"spacing": (cygrad.tensor([0.0, 1.0, 3.0, 4.5], dtype=cygrad.float64),), "edge_order": 2},
                    fixed=("spacing",),
                ),
            ]
        ),
        fails(RuntimeError, "edge_order", (3,), edge_order=3),
        fails(RuntimeError, "elements", (1,)),
    ],
    "trapezoid": [
        call((4,)),
        call((2, 3), (3,)),
        call((2, 3), (2, 3), dim=0),
        call((2, 3), dx=0.5),
        rows(),
        fails(RuntimeError, "one coordinate for each sample", (3,), (4,)),
    ],
    "cumulative_trapezoid": [*only_floating([call((4,))]), call((2, 3), (3,)), call((2, 3), dx=2, dim=0)],
    "meshgrid": [call((2,), (3,)), call((2,), (3,), (), indexing="xy"), fails(RuntimeError, "vectors", (2, 2))],
    "cartesian_prod": [call((2,), (3,)), call((3,)), fails(RuntimeError, "vectors", (2, 2))],
    "combinations": [
        call((4,)),
        call((4,), 3),
        call((3,), 2, True),
        call((2,), 3),
        fails(RuntimeError, "vector", (2, 2)),
    ],
    "vander": [
        call((3,)),
        call((3,), 5, True),
        call((0,), 2),
        lambda make, dtype: Sample((make((3,)), 1), fixed=(0,)),
        fails(RuntimeError, "vector", (2, 2)),
    ],
    "addmv": [
        call((2,), (2, 3), (3,)),
        call((1,), (2, 3), (3,), **WEIGHTED),
        call((2,), (2, 3), (3,), beta=0),
        fails(RuntimeError, "dimension", (2,), (2, 3), (3, 1)),
        fails(RuntimeError, "broadcast", (3,), (2, 3), (3,)),
    ],
    "addr": [
        call((2, 3), (2,), (3,)),
        call((3,), (2,), (3,), **WEIGHTED),
        fails(RuntimeError, "dimension", (2,), (2,), ()),
    ],
    "baddbmm": [call((2, 2, 2), (2, 2, 3), (2, 3, 2)), call((2,), (2, 2, 3), (2, 3, 2), **WEIGHTED)],
    "addbmm": [call((2, 2), (2, 2, 3), (2, 3, 2)), call((2,), (2, 2, 3), (2, 3, 2), **WEIGHTED)],
    "chain_matmul": [call((2, 3), (3, 1), (1, 4)), call((2, 3)), fails(RuntimeError, "dimension", (2,), (2, 2))],
    "tensordot": [
        call((2, 3), (3, 2), 1),
        call((2, 3), (2, 3)),
        call((2, 3), (4,), 0),
        lambda make, dtype: Sample((make((2, 3, 4)), make((4, 2)), ([0, 2], [1, 0]))),
        fails(RuntimeError, "match", (2, 3), (4, 3), 1),
    ],
    "inner": [call((3,), (3,)), call((2, 3), (4, 3)), call((2,), ()), fails(RuntimeError, "match", (3,), (4,))],
    "kron": [call((2,), (3,)), call((2, 2), (1, 3)), call((2,), (2, 2)), call((), (2,))],
    "dist": only_floating([call((2, 3), (3,)), call((3,), (3,), 1), call((3,), (3,), 3)]),
    "cdist": [
        *only_real(only_floating([call((3, 2), (4, 2)), call((2, 3, 2), (1, 2), 1.0), call((3, 2), (2, 2), 3.0),
                                   call((3, 4), (5, 4), cygrad.inf), call((2, 3, 2), (1, 2), cygrad.inf),
                                   call((3, 0), (2, 0), cygrad.inf)])),
        fails(RuntimeError, "negative", (2, 2), (2, 2), -1.0),
        fails(RuntimeError, "size", (2, 2), (2, 3)),
    ],
    "pdist": [*only_real(only_floating([call((4, 2)), call((3, 2), 1.0), call((4, 3), cygrad.inf)])),
              fails(RuntimeError, "matrix", (3,))],
    "renorm": [
        *only_floating([call((3, 2), 2, 0, 1), call((2, 3), 1, 1, 0.5), call((3, 2), 2, 0, 100)]),
        fails(RuntimeError, "positive", (2, 2), 0, 0, 1),
        fails(IndexError, "dim", (2, 2), 2, 2, 1),
    ],
    "hann_window": without_gradient([call(5), call(5, False), call(1), call(0), fails(RuntimeError, "negative", -1)]),
    "hamming_window": without_gradient([call(5), call(5, False, 0.6, 0.4)]),
    "blackman_window": without_gradient([call(6), call(5, False)]),
    "bartlett_window": without_gradient([call(6), call(5, False)]),
    "kaiser_window": without_gradient(
        [call(6), call(5, False, 3.0), fails(RuntimeError, "floating", 3, dtype=cygrad.int64)]
    ),
}
# PyTorch swaps the gradients of the elements that stay and of those that go.
BEYOND = {"as_strided_scatter"}
COMPLEX = set(SAMPLES) - {"cdist", "pdist", "renorm", "gradient"}
COMPLEX -= {name for name in SAMPLES if name.endswith(("_window", "_indices"))}
