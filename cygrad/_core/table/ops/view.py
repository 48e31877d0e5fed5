"""Views of a given shape or order under vmap."""

from cygrad._core.table.operator import operators


def reshape(call):
    """Keep the batch in front of the new shape."""
    shape = call.sizes(1)
    return NotImplemented if -1 in shape and call.is_empty() else call.run([call.args[0], (call.size, *shape)])


def expand(call):
    """Expand the entries; new dimensions come after the batch."""
    shape, value = call.sizes(1), call.args[0]
    if len(shape) < call.rank(0):
        return NotImplemented
    for _ in range(len(shape) - call.rank(0)):
        value = operators.unsqueeze(value, 1)
    return call.run([value, (call.size, *shape)])


def reverse(call):
    """Reverse all dimensions of the entries."""
    rank = call.rank(0)
    if call.operation.name == "t" and rank > 2:
        return NotImplemented
    return operators.permute(call.args[0], (0, *range(rank, 0, -1)))


def permute(call):
    """Permute the dimensions of the entries."""
    dims = call.counted(call.args[1], call.rank(0))
    return NotImplemented if dims is None else operators.permute(call.args[0], (0, *dims))


def squeeze(call):
    """Remove dimensions of size 1 from the entries: without `dim` all of theirs."""
    if call.args[1] is None and call.rank(0):
        call.args[1] = tuple(dim for dim, size in enumerate(call.shape(0)) if size == 1)
    return call.dims()
