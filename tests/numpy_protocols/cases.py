"""Calls of NumPy functions as text; results on ndarrays are the expected ones for Tensors."""

from pathlib import Path

import numpy as np

_rng = np.random.default_rng(7)


def _distinct(*shape):
    """Numbers between 0.3 and 2.3, no two of them near each other, nor near those of another array."""
    count = int(np.prod(shape))
    return ((_rng.permutation(count) + _rng.random()) / count * 2 + 0.3).reshape(shape)


_square = _distinct(3, 3)
VALUES = {
    "v": _distinct(5), "w": _distinct(5), "A": _distinct(3, 4), "B": _distinct(3, 4), "C": _distinct(4, 2),
    "T": _distinct(2, 3, 4), "U": _distinct(2, 3, 4), "S": _square + 3 * np.eye(3),
    "P": _square @ _square.T + np.eye(3), "s": np.array(0.7), "d": _distinct(3, 4) / 2.5 - 0.45,      # within -1..1
    "sorted_": np.array([0.1234, 0.6123, 1.1321, 1.9213, 2.6132]), "wide": _distinct(2, 5), "tall": _distinct(5, 2),
    "z": _distinct(4) + 1j * _distinct(4), "Z": _distinct(3, 3) + 1j * _distinct(3, 3) + 3 * np.eye(3),
    # without gradients
    "f": _distinct(5).astype(np.float32), "k": np.array([3, 1, 2, 0, 5]), "K": np.arange(12).reshape(3, 4) * 7 % 5,
    "k8": np.array([3, -1, 2, 0, 5], np.int8),
    "u8": np.array([3, 1, 200, 0, 255], np.uint8), "k32": np.array([3, 1, 2, 0, 5], np.int32),
    "m": _distinct(3, 4) > 1.2, "mv": np.array([True, False, True, True, False]),
    "n": np.array([[0.5, np.nan, 1.5, 0.25], [np.nan, np.nan, 2.0, 1.0], [0.1, 0.2, 0.3, 0.7]]),
    "i": np.array([2, 0, 1]), "zeros_": np.array([0.0, 0.0, 1.0, 2.0, 0.0]),
    "inf_": np.array([np.inf, -np.inf, np.nan, 1.0]),
}
DIFFERENTIATED = {"v", "w", "A", "B", "C", "T", "U", "S", "P", "s", "d", "sorted_", "wide", "tall", "z", "Z"}

UNARY = {
    "absolute": "A z", "arccos": "d", "arccosh": "A+1", "arcsin": "d", "arcsinh": "A", "arctan": "A", "arctanh": "d",
    "cbrt": "A", "ceil": "A", "conjugate": "z A", "cos": "A z", "cosh": "A", "deg2rad": "A", "degrees": "A",
    "exp": "A z", "exp2": "A", "expm1": "A", "fabs": "A", "floor": "A", "isfinite": "inf_", "isinf": "inf_",
    "isnan": "inf_", "log": "A z", "log10": "A", "log1p": "A", "log2": "A", "logical_not": "m k", "negative": "A k z",
    "positive": "A", "rad2deg": "A", "radians": "A", "reciprocal": "A z", "rint": "A", "sign": "A d", "signbit": "d",
    "sin": "A k f k8 k32 z s", "sinh": "A", "sqrt": "A k", "square": "A k z", "tan": "A", "tanh": "A", "trunc": "A k",
    "invert": "m k",
}
BINARY = {
    "add": "A,B A,2 A,s k,2.5 f,k z,A k,k32 m,m", "subtract": "A,B 2,A f,2", "multiply": "A,B A,C.T[:1] f,2.0",
    "divide": "A,B k,k+1 k,2", "floor_divide": "A,B k,2", "remainder": "A,0.37 k,2", "fmod": "A,0.37",
    "power": "A,B A,2 k,2 2.0,A", "float_power": "A,B k,2", "arctan2": "A,B d,A", "hypot": "A,B", "copysign": "A,d",
    "logaddexp": "A,B", "logaddexp2": "A,B", "maximum": "A,B A,1.2 k,2", "minimum": "A,B", "fmax": "A,B",
    "fmin": "A,B", "heaviside": "d,s", "nextafter": "A,B", "equal": "A,B k,2", "not_equal": "A,B", "less": "A,B A,1",
    "less_equal": "A,B", "greater": "A,B", "greater_equal": "A,B", "logical_and": "m,m k,mv", "logical_or": "k,mv",
    "logical_xor": "k,mv", "bitwise_and": "k,3 m,m", "bitwise_or": "k,3", "bitwise_xor": "k,3", "left_shift": "k,1",
    "right_shift": "k,1", "gcd": "k,4", "lcm": "k,4", "ldexp": "v,k", "matmul": "A,C A,C[:,0] T,C",
    "vecdot": "A,B z,z", "divmod": "A,0.37", "matvec": "S,S[0]", "vecmat": "S[0],S",
}
OTHER_UFUNCS = ["np.modf(A)", "np.frexp(A)"]




FFT = [
    *[f"np.fft.{name}({call})" for name in ("fft", "ifft", "hfft", "irfft")
      for call in ("v", "A, 6, 0", "z, norm='ortho'")],
    *[f"np.fft.{name}({call})" for name in ("rfft", "ihfft") for call in ("v", "A, 3, axis=0", "v, norm='forward'")],
    *[f"np.fft.{name}({call})" for name in ("fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn")
      for call in ("A", "T, axes=(0, 2)", "A, (2, 3), (0, 1), 'ortho'")],
    "np.fft.fftshift(v)", "np.fft.fftshift(A, 0)", "np.fft.ifftshift(A)"]


def _calls():
    """The calls of calls.txt, by the headings there."""
    found = {}
    for line in Path(__file__).with_name("calls.txt").read_text().splitlines():
        if line.startswith("# "):
            heading = found.setdefault(line.removeprefix("# "), [])
        else:
            heading.extend(call for call in line.split(" | ") if call)
    return found


_read = _calls()
CHANGES = _read.pop("what writes into its argument x")


ALL = [
    *[f"np.{name}({argument})" for name, arguments in UNARY.items() for argument in arguments.split()],
    *[f"np.{name}({argument})" for name, arguments in BINARY.items() if hasattr(np, name)
      for argument in arguments.split()],
    *OTHER_UFUNCS, *_read["methods of ufuncs"], *_read["functions"], *_read["numpy.linalg"], *FFT,
]
