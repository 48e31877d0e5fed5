"""Samples: orthogonal polynomials."""

import cygrad

from .sample import Sample, call, integers, only_floating, without_gradient


def degrees():
    """Degrees from 0 to 5 for each element, inside and outside of [-1, 1], and numbers."""
    return without_gradient([
        *only_floating([
            lambda make, dtype: Sample((make((2, 6), -0.99, 0.99), cygrad.tensor([0, 1, 2, 3, 4, 5], dtype=dtype))),
            lambda make, dtype: Sample((make((6,), 1.1, 2), integers([0, 1, 2, 3, 4, 5]))),
            lambda make, dtype: Sample((make((6,), -2, -1.1), integers([0, 1, 2, 3, 4, -1]))),
            lambda make, dtype: Sample((cygrad.tensor([1.0, -1.0], dtype=dtype), integers([[2], [3]]))),
        ]),
        call((3,), 9, low=-0.99, high=0.99),
        call((), 3),
        call((0, 2), 3),
    ])


NAMES = [f"{shifted}chebyshev_polynomial_{kind}" for shifted in ("", "shifted_") for kind in "tuvw"]
NAMES += ["hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p"]
SAMPLES = {name: degrees() for name in NAMES}
