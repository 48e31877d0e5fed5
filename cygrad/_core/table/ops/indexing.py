"""Index tensors, masks and embeddings under vmap, and the per-sample gradients of embeddings."""

from cygrad._core.arrays.dtype import bool as boolean
from cygrad._core.creation.factories import arange
from cygrad._core.graph.tensor import Tensor
from cygrad._core.table.operator import operators


class Places:
    """Return index tensors for a whole batch, and the positions of the dimensions of what they read."""

    def __init__(self, call, indices, batched):
        given = [(number, index) for number, index in enumerate(indices) if index is not None]
        batched = batched or [False] * len(indices)
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
        self.indices = [None if index is None else call.pad(index, batched[number], k)
                        for number, index in enumerate(indices)]
        if call.batched[0]:
            self.indices.insert(0, operators.reshape(arange(call.size), (call.size, *[1] * k)))
            if together:
                self.source, self.destination = tuple(range(1 + k, 1 + k + first)), tuple(range(1, 1 + first))
        elif together:
            self.source, self.destination = (first,), (0,)

    def read(self, result):
        """Return a result with the batch first, and the other dimensions in the order of an entry's."""
        return operators.movedim(result, self.source, self.destination) if self.source else result

    def written(self, values, batched, rank):
        """Return values for the index tensors; `rank`: number of dimensions of those of an entry."""
        if batched:
            values = operators.reshape(values, (values.shape[0], *[1] * (rank + 1 - values.ndim), *values.shape[1:]))
        elif self.source:
            values = operators.reshape(values, (1, *[1] * (rank - values.ndim), *values.shape))
        return operators.movedim(values, self.destination, self.source) if self.source else values


def index(call):
    """Read elements at index tensors."""
    places = Places(call, call.args[1], call.batched[1])
    return places.read(call.run([call.args[0], places.indices])) if places.possible else NotImplemented


def index_put(call):
    """Write values at index tensors."""
    self, indices, values, *options = call.args
    places = Places(call, indices, call.batched[1])
    rank = call.rank(0) + places.change
    if not places.possible or call.rank(2) > rank:
        return NotImplemented
    return call.run([self, places.indices, places.written(values, call.batched[2], rank), *options])


def index_backward(call):
    """Add the gradients of elements that were read."""
    grad, shape, indices = call.args
    places = Places(call, indices, call.batched[2])
    if not places.possible or any(call.batched[2]):
        return NotImplemented
    return call.run([places.written(grad, True, grad.ndim - 1), (call.size, *shape), places.indices])


def index_select(call):
    """Read along a dimension: with an index for each entry, as `index` does."""
    self, dim, index = call.args
    rank = call.rank(0)
    if not call.batched[2]:
        return call.dims(shared=2)
    if not rank or not -rank <= dim < rank:
        return NotImplemented
    before = dim % rank
    index = index if call.rank(2) else operators.unsqueeze(index, 1)
    places = Places(call, [None] * before + [index], [False] * before + [True])
    return places.read(operators.index(self, places.indices))


def index_add(call):
    """Add along a dimension at one index for all entries."""
    return call.dims(shared=2)


def scatter_backward(call):
    """Read along a dimension; `shape` is that of another tensor."""
    return call.dims(rank=call.rank(0))


def masked_fill(call):
    """Align the mask; values of the entries are chosen by `where`."""
    self, mask, value = call.args
    if isinstance(value, Tensor):
        if call.rank(2):
            return NotImplemented
        call.args[2] = operators.cast(value, self.dtype) if value.dtype != self.dtype else value
    if call.operation.inplace:
        if not (call.batched[1] or call.batched[2]):
            return call.run()
        if call.rank(1) > call.rank(0):
            return NotImplemented
    self, mask, value = call.aligned()
    if not call.batched[2] and not call.operation.inplace:
        if 0 in (*self.shape, *mask.shape):
            return NotImplemented
        rank = max(call.rank(0), call.rank(1))
        shapes = [(call.size if call.batched[place] else 1, *[1] * (rank - call.rank(place)), *call.shape(place))
                  for place in (0, 1)]
        return operators.masked_fill(operators.expand(self, tuple(map(max, *shapes))), mask, value)
    filled = operators.where(mask, value, self)
    return self.copy_(filled) if call.operation.inplace else filled


def embedding(call):
    """With a table for each entry, concatenate the tables."""
    weight, _, padding = call.args
    if not call.batched[0]:
        return call.run()
    rows = weight.shape[1]
    if padding >= 0:
        kept = operators.reshape(arange(rows), (rows, 1)) != padding
        weight = operators.where(kept, weight, weight.detach())
    index = call.spread(1)
    index = operators.where(index < 0, rows * call.size, index + offsets(call.size, rows, index)) if rows else index
    return operators.embedding(operators.reshape(weight, (-1, weight.shape[2])), index, -1)


def embedding_backward(call):
    """Concatenate the tables."""
    _, _, rows, padding = call.args
    index = call.spread(1)
    result = operators.embedding_backward(call.spread(0), index + offsets(call.size, rows, index), rows * call.size, -1)
    result = operators.reshape(result, (call.size, rows, -1))
    if padding < 0:
        return result
    return operators.where(operators.reshape(arange(rows), (rows, 1)) != padding, result, 0.0)


def offsets(n, rows, index):
    """Return the first row of each of n concatenated tables, for indices whose first dimension counts them."""
    return operators.reshape(arange(n) * rows, (n, *[1] * (index.ndim - 1)))


def table_per_sample(gradient, saved, like):
    """Scatter into rows of a table of all samples' tables."""
    index, padding, n = saved("index"), saved("padding_idx"), gradient.shape[0]
    if padding >= 0:
        gradient = gradient.masked_fill((index == padding).unsqueeze(-1), 0)
    return operators.embedding_backward(gradient.contiguous(), index + offsets(n, like.shape[0], index),
                                        n * like.shape[0], -1).reshape(n, *like.shape)
