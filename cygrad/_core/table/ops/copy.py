"""Repetition, padding and copies under vmap."""

from cygrad._core.table.operator import operators


def repeat(call):
    """Repeat the entries; new dimensions come after the batch."""
    repeats = call.sizes(1)
    return NotImplemented if len(repeats) < call.rank(0) else operators.repeat(
        call.padded(0, len(repeats)), (1, *repeats))


def pad(call):
    """Pad the last dimensions with a constant."""
    return call.run() if call.args[2] == "constant" and call.batched[0] else NotImplemented


def pad_backward(call):
    """Take what was padded from the last dimensions."""
    return call.dims() if call.args[3] == "constant" else NotImplemented


def cat_backward(call):
    """Split a gradient; empty vectors among the inputs of cat have no dimension for the batch."""
    return NotImplemented if -1 in call.args[1] else call.dims()


def copy(call):
    """Copy a source that has no more dimensions than the destination."""
    if call.rank(1) > call.rank(0):
        return NotImplemented
    return call.run([call.spread(0), call.padded(1, call.rank(0)), *call.args[2:]])
