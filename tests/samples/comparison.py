"""Samples: comparisons and tests."""

import cygrad

from .sample import Sample, binary, call, fails, unary, without_gradient

NAN, INF = float("nan"), float("inf")


def equal_elements(make, dtype):
    return Sample(
        (cygrad.tensor([1.0, 2.0, NAN], dtype=dtype), cygrad.tensor([1.0, 3.0, NAN], dtype=dtype)), check_gradient=False
    )


def special(make, dtype):
    return Sample((cygrad.tensor([0.0, NAN, INF, -INF], dtype=dtype),), check_gradient=False)


COMPARISONS = without_gradient([*binary(number=1), equal_elements])
SAMPLES = {
    name: [*COMPARISONS, fails(RuntimeError, r"\(2,\).*\(3,\)|size", (2,), (3,))]
    for name in ("eq", "ne", "lt", "le", "gt", "ge")
}
SAMPLES |= {name: [*without_gradient(unary()), special] for name in ("isnan", "isinf", "isfinite")}
SAMPLES["isclose"] = [
    *without_gradient(binary()),
    equal_elements,
    *without_gradient([call((2, 3), (2, 3), rtol=1.0, atol=0.5, equal_nan=True)]),
]
COMPLEX = {"eq", "ne", "isnan", "isinf", "isfinite", "isclose"}
# Its result is a Python bool: tested with the compositions and as a kernel.
HELPERS = {"equal": "equal"}
