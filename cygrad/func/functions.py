"""Batching rules of functions that are not operators: indexing with keys, factories, and custom functions."""

from numpy import ndarray

from cygrad._core.arrays.dtype import bool as boolean
from cygrad._core.creation.creation import tensor as tensor_of
from cygrad._core.graph.tensor import Tensor
from cygrad._core.table.operator import operators
from cygrad.func.batched import Batched, entry, value_at
from cygrad.func.batching import Call, refuse_change
from cygrad.func.custom import apply_to_batch

__all__ = ["FUNCTIONS"]


def _plain(item):
    """Return an item of a key as an integer, slice, None, Ellipsis or Tensor."""
    if isinstance(item, (list, tuple, range, ndarray, bool)):
        item = tensor_of(item if isinstance(item, (ndarray, bool)) else list(item))
    if isinstance(item, Tensor):
        if type(item) is not Batched and item.ndim == 0 and item.dtype is not boolean:
            return item.item()
        return item
    if item is None or item is Ellipsis or isinstance(item, slice):
        return item
    return item.__index__()


def _parts(key, rank):
    """Return the basic part of a key, and the index tensors for the dimensions of its view."""
    if not isinstance(key, tuple):
        key = (key,)
    key = [_plain(item) for item in key]
    taken = sum(0 if item is None or item is Ellipsis
                else item.ndim if isinstance(item, Tensor) and item.dtype is boolean else 1 for item in key)
    basic, advanced = [], []
    if not any(item is Ellipsis for item in key):
        key.append(Ellipsis)
    for item in key:
        if item is Ellipsis:
            basic += [slice(None)] * (rank - taken)
            advanced += [None] * (rank - taken)
        elif isinstance(item, Tensor):
            if item.dtype is boolean and item.ndim == 0:
                raise NotImplementedError("vmap: a single bool cannot be an index under vmap. Use where().")
            basic += [slice(None)] * (item.ndim if item.dtype is boolean else 1)
            advanced.append(item)
        else:
            basic.append(item)
            if item is None or isinstance(item, slice):
                advanced.append(None)
    while advanced and advanced[-1] is None:
        advanced.pop()
    return tuple(basic), advanced


def _view(tensor, basic):
    """Return the view of the basic part of a key."""
    if type(tensor) is Batched:
        return entry(_view(tensor._value, (slice(None), *basic)), tensor._level)
    return tensor[basic]


def getitem(function, level, args, kwargs):
    """Batching rule of ``x[key]``."""
    tensor, key = args
    basic, advanced = _parts(key, tensor.ndim)
    view = _view(tensor, basic)
    return operators.index(view, advanced) if advanced else view


def setitem(function, level, args, kwargs):
    """Batching rule of ``x[key] = value``."""
    tensor, key, value = args
    basic, advanced = _parts(key, tensor.ndim)
    view = _view(tensor, basic)
    if not isinstance(value, Tensor):
        value = tensor_of(value, dtype=tensor.dtype)
    if advanced:
        value = operators.cast(value, tensor.dtype) if value.dtype != tensor.dtype else value
        operators.index_put_(view, advanced, value, False)
    else:
        view.copy_(value)


def _like(function, level, args, kwargs):
    """Batching rule of factories such as `zeros_like`: the result is batched, too, and can be written to."""
    value = args[0]._value
    if function.__name__ == "full_like":
        return entry(function(value, args[1], **kwargs), args[0]._level)
    return entry(function(value, **kwargs), args[0]._level)


def _assigned(function, level, args, kwargs):
    """Batching rule of ``copy_``: the source has no more dimensions than the destination."""
    target, source = args
    held, given = value_at(target, level), value_at(source, level)
    if held is None:
        refuse_change("copy", level)
    if given is not None:
        while given.ndim > held.ndim and given.shape[1] == 1:
            given = operators.squeeze(given, 1)
        given = Call.pad(given, True, held.ndim - 1)
    held.copy_(source if given is None else given)
    return target


def _filled(function, level, args, kwargs):
    target, value = args
    if isinstance(value, Tensor):
        return _assigned(function, level, (target, value), {})
    value_at(target, level).fill_(value)
    return target


def _viewed(function, level, args, kwargs):
    tensor, dtype = args
    value = value_at(tensor, level)
    if not tensor.ndim and dtype.itemsize != tensor.dtype.itemsize:
        function(value[0], dtype)                      # raises: a 0-dim entry cannot change its size
    return entry(function(value, dtype), level)


FUNCTIONS = {
    **dict.fromkeys(("zeros_like", "ones_like", "empty_like", "full_like"), _like), "copy_": _assigned,
    "fill_": _filled, "view_as": _viewed, "apply": apply_to_batch, "__getitem__": getitem,
    "__setitem__": setitem,
}
