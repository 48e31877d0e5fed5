"""The standard's dtypes: their limits and promotion."""

from collections import namedtuple

import numpy as np

import cygrad
from cygrad import (
    Tensor,
    bool,
    complex64,
    complex128,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from cygrad.array_api.naming import finished
from cygrad.numpy_protocols import shapes
from cygrad.numpy_protocols.arrays import numpy_dtype, our_dtype

__all__ = ["DTYPES", "FUNCTIONS", "KINDS"]

DTYPES = {dtype.name: dtype for dtype in (
    bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float32, float64, complex64, complex128)}
KINDS = {"bool": "b", "signed integer": "i", "unsigned integer": "u", "integral": "iu", "real floating": "f",
         "complex floating": "c", "numeric": "iufc"}
Finfo = namedtuple("finfo_object", ["bits", "eps", "max", "min", "smallest_normal", "dtype"])
Iinfo = namedtuple("iinfo_object", ["bits", "max", "min", "dtype"])


def _dtype(value):
    return value.dtype if isinstance(value, Tensor) else our_dtype(value)


def finfo(type, /):
    """Return the limits of a floating dtype, or of the parts of a complex one."""
    dtype = _dtype(type)
    limits = np.finfo(dtype.numpy_dtype)
    return Finfo(limits.bits, *[float(getattr(limits, name)) for name in Finfo._fields[1:5]], dtype.to_real())


def iinfo(type, /):
    """Return the limits of an integer dtype."""
    dtype = _dtype(type)
    limits = np.iinfo(dtype.numpy_dtype)
    return Iinfo(limits.bits, limits.max, limits.min, dtype)


def isdtype(dtype, kind):
    """Return whether a dtype equals another one, is of a kind, or is one of several."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, part) for part in kind)
    if isinstance(kind, str):
        if kind not in KINDS:
            raise ValueError(f"isdtype: unknown kind (got {kind!r}, expected one of {', '.join(KINDS)}).")
        return our_dtype(dtype).numpy_dtype.kind in KINDS[kind]
    return our_dtype(dtype) is our_dtype(kind)


def result_type(*arrays_and_dtypes):
    """Return the dtype that arrays, dtypes and numbers are promoted to."""
    if not arrays_and_dtypes:
        raise ValueError("result_type: expected at least one array or dtype (got none).")
    return our_dtype(np.result_type(*[
        numpy_dtype(value) if isinstance(value, Tensor) else value.numpy_dtype if isinstance(value, cygrad.dtype)
        else value for value in arrays_and_dtypes]))


def can_cast(from_, to, /):
    """Return whether a dtype can be cast to another one by promotion or without loss of values."""
    from_, to = _dtype(from_).numpy_dtype, _dtype(to).numpy_dtype
    return np.can_cast(from_, to) and any({from_.kind, to.kind} <= set(kinds) for kinds in ("b", "iu", "fc"))


def astype(x, dtype, /, *, copy=True, device=None):
    """Return the array in another dtype."""
    result = shapes.astype(x, dtype, copy=copy)
    return result if device is None else result.to(device)


FUNCTIONS = finished("cygrad.array_api", {
    "finfo": finfo, "iinfo": iinfo, "isdtype": isdtype, "result_type": result_type, "can_cast": can_cast},
    arrays=False) | finished("cygrad.array_api", {"astype": astype})
