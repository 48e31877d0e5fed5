"""The methods of NumPy's ufuncs on Tensors: reduce, accumulate, outer, at and reduceat."""

import functools

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

import cygrad
from cygrad import Tensor
from cygrad.numpy_protocols import reductions
from cygrad.numpy_protocols.arrays import as_tensor, axes, cast, full_name, has_history, our_dtype, widened
from cygrad.numpy_protocols.outputs import write
from cygrad.numpy_protocols.ufuncs import call, row_of

__all__ = ["METHODS"]

# Ufuncs whose reductions and cumulative forms are operators.
_REDUCTIONS = {np.add: "sum", np.multiply: "prod", np.maximum: "max", np.minimum: "min", np.logical_and: "all",
               np.logical_or: "any"}
_RUNNING = {np.add: "cumsum", np.multiply: "cumprod"}
_EXTREMA = {np.maximum: cygrad.cummax, np.minimum: cygrad.cummin}


def _checked(ufunc, method):
    if row_of(ufunc) is None or ufunc.nin != 2 or ufunc.nout != 1 or ufunc.signature is not None:
        raise TypeError(f"{full_name(ufunc)}.{method}: is not supported for Tensors.")


def _finished(ufunc, method, result, out):
    return result if out is None else write(f"{full_name(ufunc)}.{method}", result, out)


def reduce(ufunc, array, axis=0, dtype=None, out=None, keepdims=False, initial=None, where=True):
    """Reduce the elements along axes by the ufunc."""
    _checked(ufunc, "reduce")
    options = {} if where is True else {"where": where}
    if ufunc in _REDUCTIONS:
        name = _REDUCTIONS[ufunc]
        if initial is not None and name not in ("all", "any"):
            options["initial"] = initial
        if dtype is not None:
            array = cast(as_tensor(array), our_dtype(dtype))
        result = reductions.rows[name](array, axis, keepdims=keepdims, **options)
        if initial is not None and name in ("all", "any"):
            result = call(ufunc, result, initial)
        return _finished(ufunc, "reduce", result, out)
    if options:
        raise TypeError(f"{full_name(ufunc)}.reduce: not supported for Tensors with where.")
    tensor = cast(as_tensor(array), None if dtype is None else our_dtype(dtype))
    gone = axes(tensor, axis)
    if len(gone) > 1 and ufunc.identity is None:
        raise ValueError(f"{full_name(ufunc)}.reduce: is not reorderable, so it takes one axis (got {axis}).")
    parts = tensor.permute((*gone, *[dim for dim in range(tensor.ndim) if dim not in gone])).flatten(
        0, len(gone) - 1).unbind(0)
    if initial is None and not parts and ufunc.identity is None:
        raise ValueError(f"{full_name(ufunc)}.reduce: no elements, and the operation has no identity.")
    if initial is not None:
        none = tensor.flatten()[:0]
        initial = reductions.start_of(initial, call(ufunc, none, none).dtype)
    if initial is not None or not parts:
        start = as_tensor(ufunc.identity if initial is None else initial)
        parts = (start.expand([size for dim, size in enumerate(tensor.shape) if dim not in gone]), *parts)
    result = as_tensor(functools.reduce(functools.partial(call, ufunc), parts))
    if keepdims:
        result = result.reshape([1 if dim in gone else size for dim, size in enumerate(tensor.shape)])
    return _finished(ufunc, "reduce", result, out)


def accumulate(ufunc, array, axis=0, dtype=None, out=None):
    """Return all partial results of a reduction."""
    _checked(ufunc, "accumulate")
    tensor = cast(as_tensor(array), None if dtype is None else our_dtype(dtype))
    if ufunc in _RUNNING:
        result = getattr(cygrad, _RUNNING[ufunc])(widened(tensor), axis)
    elif ufunc in _EXTREMA:
        result = _EXTREMA[ufunc](tensor, axis)[0]
    else:
        found = []
        for part in tensor.unbind(normalize_axis_index(axis, tensor.ndim)):
            found.append(call(ufunc, found[-1], part) if found else part)
        result = cygrad.stack(found, axis) if found else tensor
    return _finished(ufunc, "accumulate", result, out)


def outer(ufunc, first, second, **options):
    """Return the ufunc of all pairs."""
    _checked(ufunc, "outer")
    first, second = as_tensor(first), as_tensor(second)
    return call(ufunc, first.reshape(tuple(first.shape) + (1,) * second.ndim), second, **options)


def at(ufunc, target, indices, *operands):
    """
    Modify elements of a Tensor in place, repeated indices repeatedly.

    One pass for each repetition of an index; sums need only one.
    """
    name = f"{full_name(ufunc)}.at"
    if row_of(ufunc) is None or ufunc.nout != 1 or ufunc.signature is not None:
        raise TypeError(f"{name}: is not supported for Tensors.")
    if not isinstance(target, Tensor):
        if has_history(operands):
            raise TypeError(f"{name}: the operands would lose their history in an ndarray. Change a Tensor.")
        target = as_tensor(target)
    places = np.arange(target.numel()).reshape(target.shape)[_plain_index(indices)]
    operands = [as_tensor(value).expand(places.shape).reshape(-1) for value in operands]
    flat = places.reshape(-1)
    if ufunc in (np.add, np.subtract):
        operand = cast(operands[0], target.dtype)
        change = operand if ufunc is np.add else -operand
        where = tuple(map(as_tensor, np.unravel_index(flat, tuple(target.shape))))
        target.index_put_(where, change, accumulate=True)
        return
    order = np.argsort(flat, kind="stable")
    first = np.searchsorted(flat[order], flat[order])
    times = np.empty_like(flat)
    times[order] = np.arange(flat.size) - first            # how often the position occurred before
    for time in range(int(times.max(initial=-1)) + 1):
        chosen = np.flatnonzero(times == time)
        where = tuple(map(as_tensor, np.unravel_index(flat[chosen], tuple(target.shape))))
        target.index_put_(where, cast(call(ufunc, target[where], *[value[as_tensor(chosen)] for value in operands]),
                                      target.dtype))


def _plain_index(index):
    if isinstance(index, Tensor):
        return index.detach().numpy()
    return tuple(map(_plain_index, index)) if isinstance(index, tuple) else index


def reduceat(ufunc, array, indices, axis=0, dtype=None, out=None):
    """Reduce the slices that begin at the indices."""
    _checked(ufunc, "reduceat")
    tensor = as_tensor(array)
    starts = [int(index) for index in indices]
    size = tensor.shape[axis]
    found = []
    for start, end in zip(starts, [*starts[1:], size], strict=True):
        part = tensor.narrow(axis, start, max(end - start, 1))
        found.append(reduce(ufunc, part, axis, dtype))
    return _finished(ufunc, "reduceat", cygrad.stack(found, normalize_axis_index(axis, tensor.ndim)), out)


METHODS = {"reduce": reduce, "accumulate": accumulate, "outer": outer, "at": at, "reduceat": reduceat}
