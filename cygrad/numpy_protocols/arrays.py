"""What NumPy's functions mean by an array, a dtype and an axis: what all rows share."""

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

import cygrad
from cygrad import Tensor
from cygrad._core.creation.access import seen_as

__all__ = ["NUMBERS", "NotNumeric", "Rows", "as_tensor", "axes", "by_bits", "cast", "common_dtype", "full_name",
           "has_history", "holds_tensors", "inexact", "lead", "merged", "numpy_dtype", "our_dtype", "plain_arrays",
           "promoted", "ranked", "unranked", "widened"]

NUMBERS = (bool, int, float, complex)          # whose types say little in NumPy: they follow those of arrays
MOST_DIMENSIONS = 64                           # of NumPy's arrays
# What stands for dtypes of which there are no Tensors.
INSTEAD = {"longdouble": "float64", "clongdouble": "complex128", "float128": "float64", "complex256": "complex128"}


class NotNumeric(TypeError):
    """An array of texts, dates or objects, of which there are no Tensors: NumPy computes with it."""


class Rows(dict):
    """Functions by the names that NumPy has for them; as a decorator it takes one in."""

    def __call__(self, function):
        self[function.__name__] = function
        return function


# ---- dtypes

_theirs, _ours = {}, {}


def numpy_dtype(tensor):
    """The NumPy dtype of a Tensor's elements."""
    found = _theirs.get(tensor.dtype)
    if found is None:
        found = _theirs[tensor.dtype] = tensor.dtype.numpy_dtype
    return found


def our_dtype(dtype):
    """The dtype of Tensors for one of NumPy, or for whatever NumPy takes for one."""
    if isinstance(dtype, cygrad.dtype):
        return dtype
    found = _ours.get(dtype)
    if found is None:
        name = np.dtype(dtype).name
        found = getattr(cygrad, INSTEAD.get(name, name), None)
        if not isinstance(found, cygrad.dtype):
            raise TypeError(f"dtype: there are no Tensors of {np.dtype(dtype)}. Use a numeric dtype.")
        _ours[dtype] = found
    return found


def common_dtype(*values):
    """What NumPy promotes Tensors and numbers to, as a dtype of Tensors."""
    return our_dtype(np.result_type(*[numpy_dtype(value) if isinstance(value, Tensor) else value for value in values]))


def cast(tensor, dtype):
    """The Tensor in this dtype, which may be None."""
    return tensor if dtype is None or tensor.dtype is dtype else tensor.to(dtype)


def inexact(value, dtype=None):
    """A Tensor of floating or complex elements: integers become float64, as everywhere in NumPy."""
    tensor = as_tensor(value)
    if dtype is not None:
        return cast(tensor, our_dtype(dtype))
    return tensor if tensor.is_floating_point() or tensor.is_complex() else tensor.to(cygrad.float64)


def widened(value, dtype=None):
    """A Tensor in the dtype that NumPy adds its elements up in: small integers become 64 bits wide."""
    tensor = as_tensor(value)
    if dtype is None and tensor.dtype.itemsize < 8 and not tensor.is_floating_point() and not tensor.is_complex():
        dtype = np.uint64 if numpy_dtype(tensor).kind == "u" else np.int64
    return tensor if dtype is None else cast(tensor, our_dtype(dtype))


# ---- uint64, which kernels compute in int64 where that holds the elements

def by_bits(function, a, b):
    """A function of sums and products alone: in int64 they have the same bits."""
    if a.dtype is cygrad.uint64:
        return seen_as(function(seen_as(a, cygrad.int64), seen_as(b, cygrad.int64)), cygrad.uint64)
    return function(a, b)


def ranked(tensor):
    """Elements of uint64 as int64 of the same order."""
    return seen_as(tensor, cygrad.int64) ^ -2 ** 63 if tensor.dtype is cygrad.uint64 else tensor


def unranked(tensor, dtype):
    """What was made of `ranked` elements, in the dtype that they had."""
    return seen_as(tensor ^ -2 ** 63, dtype) if dtype is cygrad.uint64 else tensor


# ---- values

def as_tensor(value):
    """
    A Tensor of what NumPy would take for an array.

    Memory of ndarrays is shared, and Tensors in sequences keep their history.
    """
    if isinstance(value, Tensor):
        return value
    if isinstance(value, (list, tuple)) and holds_tensors(value):
        return cygrad.stack(promoted(*map(as_tensor, value)))
    array = np.asarray(value)
    if array.dtype.kind not in "biufc":
        raise NotNumeric(f"as_tensor: there are no Tensors of {array.dtype}. Use numbers.")
    if array.dtype.name in INSTEAD:
        array = array.astype(our_dtype(array.dtype).name)
    return cygrad.as_tensor(array)


def holds_tensors(value, depth=0):
    """Whether a value is a Tensor, or a list or tuple with one at any depth."""
    if not isinstance(value, (list, tuple)):
        return isinstance(value, Tensor)
    if depth > MOST_DIMENSIONS:
        raise TypeError(f"asarray: A nested list has at most {MOST_DIMENSIONS} levels (got more, or a list that "
                        "holds itself).")
    return any(holds_tensors(part, depth + 1) for part in value)


def promoted(*values, dtype=None):
    """Return the values as Tensors of the dtype that NumPy promotes them to."""
    values = [value if isinstance(value, Tensor) or type(value) in NUMBERS else as_tensor(value) for value in values]
    found = common_dtype(*values) if dtype is None else our_dtype(dtype)
    return [cast(value, found) if isinstance(value, Tensor) else cygrad.full((), value, dtype=found)
            for value in values]


def has_history(value):
    """Whether a gradient would get lost if it became an ndarray."""
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
    """``numpy.linalg.solve``, for messages."""
    return f"{getattr(function, '__module__', None) or 'numpy'}.{function.__name__}"


# ---- axes

def axes(tensor, axis):
    """The axes as a tuple of numbers from 0; None stands for all."""
    return tuple(range(tensor.ndim)) if axis is None else normalize_axis_tuple(axis, tensor.ndim)


def merged(tensor, axis):
    """
    The axes of a reduction as one, the last.

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
