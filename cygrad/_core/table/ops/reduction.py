"""Reductions to one element under vmap."""

from cygrad._core.table.operator import operators


def sum_to(call):
    """Sum the entries to a shape."""
    shape = call.sizes(1)
    ones = (1,) * (call.rank(0) - len(shape))
    return operators.reshape(operators.sum_to(call.args[0], (call.size, *ones, *shape)), (call.size, *shape))


def extremum(call):
    """Reduce all elements of an entry; ties share the gradient."""
    return call.instead(operators.amax if call.operation.name == "max_all" else operators.amin).dims()
