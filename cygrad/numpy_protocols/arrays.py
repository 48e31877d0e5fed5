"""Conversion of NumPy's arrays, dtypes and axes: shared helpers of all rows."""

from collections.abc import Hashable

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

import cygrad
from cygrad import Tensor
from cygrad._core.creation.creation import seen_as
from cygrad._core.graph.argument_errors import described

__all__ = ["NUMBERS", "NotNumeric", "Rows", "as_tensor", "axes", "by_bits", "cast", "common_dtype", "full_name",
           "has_history", "holds_tensors", "inexact", "lead", "merged", "numpy_dtype", "our_dtype", "plain_arrays",
           "promoted", "ranked", "unranked", "widened"]

NUMBERS = (bool, int, float, complex)          # types that NumPy promotes weakly
MAX_DIMENSIONS = 64                           # of NumPy's arrays
# Represents dtypes that Tensors lack.
INSTEAD = {"longdouble": "float64", "clongdouble": "complex128", "float128": "float64", "complex256": "complex128"}


class NotNumeric(TypeError):
    """An array of strings, dates or objects, which Tensors lack: NumPy computes with it."""


class Rows(dict):
    """Functions by their NumPy names; as a decorator it adds one."""

    def __call__(self, function):
        self[function.__name__] = function
        return function


# ---- dtypes

_theirs, _ours = {}, {}


def numpy_dtype(tensor):
    """Return the NumPy dtype of a Tensor's elements."""
    found = _theirs.get(tensor.dtype)
    if found is None:
        found = _theirs[tensor.dtype] = tensor.dtype.numpy_dtype
    return found


def our_dtype(dtype):
    """Return the Tensor dtype of a NumPy dtype, or of anything NumPy converts to one."""
    if isinstance(dtype, cygrad.dtype):
        return dtype
    found = _ours.get(dtype) if isinstance(dtype, Hashable) else None
    if found is None:
        try:
            name = np.dtype(dtype).name
        except (TypeError, ValueError):
            raise TypeError(f"astype: not a dtype (got {described(dtype)}, expected one of NumPy or cygrad).") from None
        found = getattr(cygrad, INSTEAD.get(name, name), None)
        if not isinstance(found, cygrad.dtype):
            raise TypeError(f"dtype: Tensors do not support {np.dtype(dtype)}. Use a numeric dtype.")
        _ours[dtype] = found
    return found


def common_dtype(*values):
    """Return the dtype that NumPy promotes Tensors and numbers to, as a Tensor dtype."""
    return our_dtype(np.result_type(*[numpy_dtype(value) if isinstance(value, Tensor) else value for value in values]))


def cast(tensor, dtype):
    """Return the Tensor in this dtype, which may be None."""
    return tensor if dtype is None or tensor.dtype is dtype else tensor.to(dtype)


def inexact(value, dtype=None):
    """Return a Tensor of floating or complex elements: integers become float64, as in NumPy."""
    tensor = as_tensor(value)
    if dtype is not None:
        return cast(tensor, our_dtype(dtype))
    return tensor if tensor.is_floating_point() or tensor.is_complex() else tensor.to(cygrad.float64)


def widened(value, dtype=None):
    """Return a Tensor in the dtype that NumPy sums in: small integers become 64 bits wide."""
    tensor = as_tensor(value)
    if dtype is None and tensor.dtype.itemsize < 8 and not tensor.is_floating_point() and not tensor.is_complex():
        dtype = np.uint64 if numpy_dtype(tensor).kind == "u" else np.int64
    return tensor if dtype is None else cast(tensor, our_dtype(dtype))


# ---- uint64: kernels compute in int64

def by_bits(function, a, b):
    """Compute a function of sums and products of uint64 in int64, with bit-identical results."""
    if a.dtype is cygrad.uint64:
        return seen_as(function(seen_as(a, cygrad.int64), seen_as(b, cygrad.int64)), cygrad.uint64)
    return function(a, b)


def ranked(tensor):
    """Map uint64 to int64 of the same order."""
    return seen_as(tensor, cygrad.int64) ^ -2 ** 63 if tensor.dtype is cygrad.uint64 else tensor


def unranked(tensor, dtype):
    """Map the result for `ranked` elements back to their dtype."""
    return seen_as(tensor ^ -2 ** 63, dtype) if dtype is cygrad.uint64 else tensor


# ---- values

def as_tensor(value):
    """
    Return a Tensor for any array-like.

    Memory of ndarrays is shared, and Tensors in sequences keep their history.
    """
    if isinstance(value, Tensor):
        return value
    if isinstance(value, (list, tuple)) and holds_tensors(value):
        return cygrad.stack(promoted(*map(as_tensor, value)))
    array = np.asarray(value)
    if array.dtype.kind not in "biufc":
        raise NotNumeric(f"as_tensor: Tensors do not support {array.dtype}. Use numbers.")
    if array.dtype.name in INSTEAD:
        array = array.astype(our_dtype(array.dtype).name)
    return cygrad.as_tensor(array)


def holds_tensors(value, depth=0):
    """Return whether a value is a Tensor, or a list or tuple that contains one at any depth."""
    if not isinstance(value, (list, tuple)):
        return isinstance(value, Tensor)
    if depth > MAX_DIMENSIONS:
        raise TypeError(f"asarray: A nested list has at most {MAX_DIMENSIONS} levels (got more, or a list that "
                        "holds itself).")
    return any(holds_tensors(part, depth + 1) for part in value)


def promoted(*values, dtype=None):
    """Return the values as Tensors of the dtype that NumPy promotes them to."""
    values = [value if isinstance(value, Tensor) or type(value) in NUMBERS else as_tensor(value) for value in values]
    found = common_dtype(*values) if dtype is None else our_dtype(dtype)
    return [cast(value, found) if isinstance(value, Tensor) else cygrad.full((), value, dtype=found)
            for value in values]


def has_history(value):
    """Return whether conversion to an ndarray would lose a gradient."""
    if isinstance(value, Tensor):
        return value.requires_grad and cygrad.is_grad_enabled()
    if isinstance(value, (list, tuple)):
        return any(map(has_history, value))
    return isinstance(value, dict) and any(map(has_history, value.values()))


def plain_arrays(value):
    """Return the value with ndarrays in place of Tensors."""
    if isinstance(value, Tensor):
        return value.detach().numpy()
    if isinstance(value, (list, tuple)) and holds_tensors(value):
        return type(value)(map(plain_arrays, value))
    return {name: plain_arrays(part) for name, part in value.items()} if isinstance(value, dict) else value


def full_name(function):
    """Return the full name of a function, such as ``numpy.linalg.solve``, for messages."""
    return f"{getattr(function, '__module__', None) or 'numpy'}.{function.__name__}"


# ---- axes

def axes(tensor, axis):
    """Return the axes as a tuple of nonnegative numbers; None means all."""
    return tuple(range(tensor.ndim)) if axis is None else normalize_axis_tuple(axis, tensor.ndim)


def merged(tensor, axis):
    """
    Move the axes of a reduction to the end and flatten them into one.

    Returns
    -------
    Tensor
        With as many axes as remain, and that one.
    callable
        ``restore(result, keepdims)``: the result of the reduction, with axes of size 1 where they shall be kept.
    """
    gone = axes(tensor, axis)
    shape = tuple(tensor.shape)
    left = [dim for dim in range(tensor.ndim) if dim not in gone]
    kept = tuple(1 if dim in gone else size for dim, size in enumerate(shape))

    def restore(result, keepdims):
        return result.reshape(kept) if keepdims else result

    if len(gone) == 1:
        return tensor.movedim(gone[0], -1), restore
    size = 1
    for dim in gone:
        size *= shape[dim]
    return tensor.permute((*left, *gone)).reshape((*[shape[dim] for dim in left], size)), restore


def lead(tensor, ndim):
    """Prepend axes of size 1 until there are at least that many."""
    return tensor.reshape((1,) * (ndim - tensor.ndim) + tuple(tensor.shape)) if tensor.ndim < ndim else tensor
