"""Samples: sorting and searching."""

import cygrad

from .indexing import plain
from .sample import Sample, call, fails, only_floating, without_gradient

SAMPLES = {
    "sort": [
        call((5,)),
        call((3, 4), 0),
        call((3, 4), -1, True),
        call((3, 4), dim=1, stable=True),
        call(()),
        call((0, 3), 0),
        lambda make, dtype: Sample((make((4, 3)).t(), 1)),
        fails(IndexError, "dim", (3,), 1),
    ],
    "argsort": without_gradient([call((5,)), call((3, 4), 0), call((3, 4), -1, True), call(())]),
    "topk": [
        # The order of equal elements is unspecified, so no random integers.
        *only_floating([
            call((5,), 2),
            call((3, 4), 2, 0),
            call((3, 4), 3, 1, False),
            call((3, 4), 2, 0, True, True),
        ]),
        plain([3, 1, 4, 2], 2),
        call((5,), 0),
        fails(RuntimeError, "topk|k", (3,), 4),
    ],
    "unique": [
        plain([3, 1, 3, 2]),
        plain([[1, 1], [2, 2]]),
        lambda make, dtype: Sample(
            (cygrad.tensor([3, 1, 3]),), {"return_inverse": True, "return_counts": True}, check_gradient=False
        ),
        lambda make, dtype: Sample((cygrad.tensor([[1, 2], [1, 2]]),), {"dim": 0}, check_gradient=False),
    ],
    "searchsorted": [
        plain([1, 3, 5], [3, 4, 9]),
        plain([[1, 3], [2, 4]], [[3, 0], [3, 9]]),
        lambda make, dtype: Sample(
            (cygrad.tensor([1, 3, 5]), cygrad.tensor([3])), {"right": True}, check_gradient=False
        ),
    ],
}
HELPERS = {"count_in_bins": "histc", "count_integers": "bincount", "repeated_indices": "repeat_interleave",
           "unique_dim": "unique"}
