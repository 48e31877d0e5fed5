"""Samples: complex numbers."""

import cygrad

from .sample import Sample, fails, of_one_layout, unary


def real_only(error=None, match=""):
    """An argument that must be complex."""
    return lambda make, dtype: Sample((cygrad.tensor([1.0]),), error=RuntimeError, match="complex")


def parts(*shapes):
    """Return real tensors for any dtype."""

    def build(make, dtype):
        tensors = [make(shape, 0.5, 2) for shape in shapes]
        return Sample(tuple(tensor.real if tensor.is_complex() else tensor for tensor in tensors))

    return build


SAMPLES = {
    "complex": [parts((2, 3), (2, 3)), parts((), ()), parts((2, 1), (3,)), parts((0,), (0,))],
    "polar": [parts((2, 3), (2, 3)), parts((), ()), parts((2, 1), (3,)), parts((0,), (0,))],
    "conj": unary(),
    "real": unary(),
    "imag": [
        lambda make, dtype: Sample((make((2, 3)) if dtype.is_complex else cygrad.complex(make((2, 3)), make((2, 3))),))
    ],
    "angle": unary(0.5, 2),
    "view_as_real": [
        lambda make, dtype: Sample((make((2, 3)) if dtype.is_complex else cygrad.complex(make((2, 3)), make((2, 3))),)),
        real_only(),
    ],
    "view_as_complex": of_one_layout(
        [parts((2, 2)), parts((3, 4, 2)), parts((0, 2)), fails(RuntimeError, "view_as_complex", (3,))]
    ),
}
COMPLEX = {"complex", "polar", "conj", "real", "imag", "angle", "view_as_real"}
HELPERS = {"real_view": "real", "imag_view": "imag", "real": "angle", "imag": "angle"}
