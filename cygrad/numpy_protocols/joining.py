"""NumPy's functions that join arrays: concatenate, stack, block, insert and others."""

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

import cygrad as c
from cygrad import Tensor
from cygrad.numpy_protocols.arrays import Rows, as_tensor, cast, common_dtype, lead, our_dtype

__all__ = ["rows"]

rows = Rows()


def _parts(arrays, dtype=None):
    """Return the arrays of a sequence, or along the first axis of one, as Tensors of one dtype."""
    arrays = list(arrays.unbind(0)) if isinstance(arrays, Tensor) else [as_tensor(array) for array in arrays]
    dtype = common_dtype(*arrays) if dtype is None else our_dtype(dtype)
    return [cast(array, dtype) for array in arrays]


@rows
def concatenate(arrays, /, axis=0, *, dtype=None, casting="same_kind"):
    parts = _parts(arrays, dtype)
    if axis is None:
        return c.cat([part.reshape(-1) for part in parts], 0)
    axis = normalize_axis_index(axis, parts[0].ndim)
    for part in parts:
        if part.ndim != parts[0].ndim or any(size != other for dim, (size, other) in enumerate(zip(
                part.shape, parts[0].shape, strict=True)) if dim != axis):
            raise ValueError(f"concatenate: shapes must match except along the axis (got {tuple(part.shape)} and "
                             f"{tuple(parts[0].shape)}, axis {axis}).")
    return c.cat(parts, axis)


@rows
def stack(arrays, axis=0, *, dtype=None, casting="same_kind"):
    parts = _parts(arrays, dtype)
    if any(part.shape != parts[0].shape for part in parts):
        raise ValueError(f"stack: all shapes must be equal (got {[tuple(part.shape) for part in parts]}).")
    return c.stack(parts, axis)


def _block(arrays, depth):
    if not isinstance(arrays, list):
        return as_tensor(arrays)
    parts = [_block(array, depth - 1) for array in arrays]
    ndim = max(depth, *[part.ndim for part in parts])
    return concatenate([lead(part, ndim) for part in parts], -depth)


def _depth(arrays):
    return 1 + max(map(_depth, arrays)) if isinstance(arrays, list) else 0


@rows
def append(arr, values, axis=None):
    return concatenate((arr, values), axis) if axis is not None else concatenate(
        (as_tensor(arr).reshape(-1), as_tensor(values).reshape(-1)))


def _without_axis(arr, axis):
    arr = as_tensor(arr)
    return (arr.reshape(-1), 0) if axis is None else (arr, normalize_axis_index(axis, arr.ndim))


def _plain(obj):
    return obj.tolist() if isinstance(obj, Tensor) else obj


@rows
def delete(arr, obj, axis=None):
    arr, axis = _without_axis(arr, axis)
    places = np.delete(np.arange(arr.shape[axis]), _plain(obj))
    return c.index_select(arr, axis, as_tensor(places))


@rows
def insert(arr, obj, values, axis=None):
    arr, axis = _without_axis(arr, axis)
    values = cast(as_tensor(values), arr.dtype)
    obj = _plain(obj)
    single = not isinstance(obj, slice) and np.ndim(obj) == 0
    shape = list(arr.shape)
    if single:              # any number of values along the axis, all at one position
        values = lead(values, arr.ndim)
        if axis and values.ndim == arr.ndim:
            values = values.movedim(0, axis)
        shape[axis] = values.shape[axis]
        obj = [obj] * shape[axis]
    else:
        obj = np.arange(arr.shape[axis])[obj] if isinstance(obj, slice) else np.flatnonzero(obj) if np.asarray(
            obj).dtype == bool else np.asarray(obj)
        shape[axis] = len(obj)
    places = np.insert(np.arange(arr.shape[axis]), obj, np.arange(len(obj)) + arr.shape[axis])
    return c.index_select(c.cat((arr, values.expand(shape)), axis), axis, as_tensor(places))


rows.update({
    "concat": concatenate,
    "block": lambda arrays: _block(arrays, _depth(arrays)),
    "vstack": lambda tup, *, dtype=None, casting="same_kind": concatenate(
        [c.atleast_2d(part) for part in _parts(tup)], 0, dtype=dtype),
    "hstack": lambda tup, *, dtype=None, casting="same_kind": concatenate(
        parts := [c.atleast_1d(part) for part in _parts(tup)], 0 if parts[0].ndim == 1 else 1, dtype=dtype),
    "dstack": lambda tup: concatenate([c.atleast_3d(part) for part in _parts(tup)], 2),
    "column_stack": lambda tup: concatenate(
        [part.reshape(-1, 1) if part.ndim < 2 else part for part in _parts(tup)], 1),
})
