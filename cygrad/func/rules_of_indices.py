"""Batching rules of indexing, reading and writing."""

from numpy import ndarray

from cygrad._core.arrays.dtype import bool as boolean
from cygrad._core.creation.creation import tensor as tensor_of
from cygrad._core.creation.factories import arange
from cygrad._core.graph.tensor import Tensor
from cygrad._core.table.operator import operators
from cygrad.func.batched import Batched, entry
from cygrad.func.batching import RULES, along_dims, padded

__all__ = ["getitem", "setitem"]


class Places:
    """Return index tensors for a whole batch, and the positions of the dimensions of what they read."""

    def __init__(self, size, in_self, indices, batched):
        given = [(number, index) for number, index in enumerate(indices) if index is not None]
        self.ranks = [index.ndim - batched[number] for number, index in given]
        masks = any(index.dtype is boolean for _, index in given)
        k = max([1 if index.dtype is boolean else rank for (_, index), rank in zip(given, self.ranks, strict=True)])
        first, last = given[0][0], given[-1][0]
        together = last - first == len(given) - 1
        self.possible = not (masks and any(batched))
        self.source: tuple = ()
        self.destination: tuple = ()
        covered = sum(index.ndim if index.dtype is boolean else 1 for _, index in given)
        self.change = k - covered                 # of the number of dimensions
        if not any(batched):
            self.indices = [None, *indices]
            if not together:
                self.source, self.destination = (k,), (0,)
            return
        self.indices = [None if index is None else padded(index, batched[number], index.ndim - batched[number], k)
                        for number, index in enumerate(indices)]
        if in_self:
            self.indices.insert(0, operators.reshape(arange(size), (size, *[1] * k)))
            if together:
                self.source, self.destination = tuple(range(1 + k, 1 + k + first)), tuple(range(1, 1 + first))
        elif together:
            self.source, self.destination = (first,), (0,)

    def read(self, result):
        """Return a result with the batch first, and the other dimensions in the order of an entry's."""
        return operators.movedim(result, self.source, self.destination) if self.source else result

    def written(self, values, batched, rank):
        """Return values for the index tensors; `rank`: number of dimensions of those of an entry."""
        if not batched:
            if not self.source:
                return values
            values = operators.reshape(values, (1, *[1] * (rank - values.ndim), *values.shape))
        else:
            values = padded(values, True, values.ndim - 1, rank)
        return operators.movedim(values, self.destination, self.source) if self.source else values


def _places(call, place):
    found = Places(call.size, call.batched[0], call.args[place], call.batched[place] or [False] * len(call.args[place]))
    return found if found.possible else None


def _index(call):
    places = _places(call, 1)
    return NotImplemented if places is None else places.read(call.operation([call.args[0], places.indices]))


def _index_put(call):
    self, _, values, *options = call.args
    places = _places(call, 1)
    if places is None or call.rank(2) > call.rank(0) + places.change:
        return NotImplemented
    values = places.written(values, call.batched[2], call.rank(0) + places.change)
    return call.operation([self, places.indices, values, *options])


def _index_backward(call):
    grad, shape, _ = call.args
    places = _places(call, 2)
    if places is None or any(call.batched[2]):
        return NotImplemented
    return call.operation([places.written(grad, True, grad.ndim - 1), (call.size, *shape), places.indices])


def _index_select(call):
    self, dim, index = call.args
    rank = call.rank(0)
    if not call.batched[2]:
        return along_dims(call)
    if not rank or not -rank <= dim < rank:
        return NotImplemented
    index = index if call.rank(2) else operators.unsqueeze(index, 1)
    batched = [False] * (dim % rank) + [True]
    places = Places(call.size, call.batched[0], [None] * (dim % rank) + [index], batched)
    return places.read(operators.index(self, places.indices))


RULES.update({"index": _index, "index_put_into": _index_put, "index_backward": _index_backward,
              "index_select": _index_select})


# ---- indexing

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
    """``x[key]``."""
    tensor, key = args
    basic, advanced = _parts(key, tensor.ndim)
    view = _view(tensor, basic)
    return operators.index(view, advanced) if advanced else view


def setitem(function, level, args, kwargs):
    """``x[key] = value``."""
    tensor, key, value = args
    basic, advanced = _parts(key, tensor.ndim)
    view = _view(tensor, basic)
    if not isinstance(value, Tensor):
        value = tensor_of(value, dtype=tensor.dtype)
    if advanced:
        value = operators.cast(value, tensor.dtype) if value.dtype != tensor.dtype else value
        operators.index_put_into_(view, advanced, value, False)
    else:
        view.copy_(value)
