"""The limits of numeric types: `finfo` and `iinfo`."""

import numpy as np

from cygrad._core.arrays import dtype as dtypes
from cygrad._core.arrays.dtype import dtype as Dtype
from cygrad._core.arrays.dtype import get_default_dtype

__all__ = ["finfo", "iinfo"]

# Types that NumPy lacks: bits of the fraction, smallest and largest exponent, largest fraction.
OTHER = {
    "bfloat16": (7, -126, 127, 2 - 2**-7), "float8_e4m3fn": (3, -6, 8, 1.75), "float8_e5m2": (2, -14, 15, 1.75),
    "float8_e4m3fnuz": (3, -7, 7, 1.875), "float8_e5m2fnuz": (2, -15, 15, 1.75), "float8_e8m0fnu": (0, -127, 127, 1.0),
}


class _Limits:
    """Base class of `finfo` and `iinfo`."""

    def __repr__(self):
        shown = {name: value if isinstance(value, str) else f"{value:g}" for name, value in self.__dict__.items()}
        shown.pop("bits", None)
        return f"{type(self).__name__}({', '.join(f'{name}={value}' for name, value in shown.items())})"

    def __eq__(self, other):
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self):
        return hash((type(self), self.dtype))


class finfo(_Limits):
    """
    Limits of a floating dtype; of a complex dtype those of its parts.

    Parameters
    ----------
    type : dtype, optional
        Default: the default floating dtype.

    Attributes
    ----------
    resolution : float
        ``10**-digits`` for the number of decimal digits that the type holds.
    min, max : float
        The smallest and the largest finite number.
    eps : float
        Difference between 1 and the next larger number.
    smallest_normal, tiny : float
        The smallest positive normal number.
    bits : int
        Of one number.
    dtype : str
        The name of the type.

    Examples
    --------
    >>> cygrad.finfo(cygrad.float64).eps, cygrad.finfo().bits
    (2.220446049250313e-16, 32)
    """

    def __init__(self, type=None):
        kind = get_default_dtype() if type is None else type
        kind = kind.to_real() if isinstance(kind, Dtype) else kind
        if not isinstance(kind, Dtype) or not kind.is_floating_point:
            raise TypeError(f"finfo: expected a floating point dtype (got {type!r}). Use iinfo for integers.")
        if kind.name in OTHER:
            fraction, low, high, largest = OTHER[kind.name]
            eps, tiny, most = 2.0**-fraction, 2.0**low, largest * 2.0**high
            resolution = 10.0 ** -int(fraction * 0.30103)
        else:
            found = np.finfo(kind.name)
            eps, tiny, most, resolution = map(float, (found.eps, found.tiny, found.max, str(found.resolution)))
        self.resolution, self.min, self.max, self.eps = resolution, -most, most, eps
        self.smallest_normal = self.tiny = tiny
        self.bits, self.dtype = 8 * kind.itemsize, kind.name


class iinfo(_Limits):
    """
    Limits of an integer dtype.

    Parameters
    ----------
    type : dtype

    Attributes
    ----------
    min, max : int
        The smallest and the largest number.
    bits : int
        Of one number.
    dtype : str
        The name of the type.

    Examples
    --------
    >>> cygrad.iinfo(cygrad.int8)
    iinfo(min=-128, max=127, dtype=int8)
    """

    def __init__(self, type):
        if not isinstance(type, Dtype) or type.is_floating_point or type.is_complex or type is dtypes.bool:
            raise TypeError(f"iinfo: expected an integer dtype (got {type!r}). Use finfo for floating point types.")
        self.bits = 8 * type.itemsize
        self.min, self.max = (-(1 << self.bits - 1), (1 << self.bits - 1) - 1) if type.is_signed else (
            0, (1 << self.bits) - 1)
        self.dtype = type.name
