"""Matrix products under vmap: the batch is another leading dimension."""

from cygrad._core.table.operator import operators

RANKS = {"mm": (2, 2), "bmm": (3, 3), "mv": (2, 1), "dot": (1, 1)}


def product(call, first, second):
    """Return the matrix product of two arguments of 1 or more dimensions each, as `matmul` does."""
    a, b, rank_a, rank_b = call.args[first], call.args[second], call.rank(first), call.rank(second)
    if 0 in (rank_a, rank_b):
        return NotImplemented
    if rank_a == 2 and rank_b == 1 and not call.batched[first]:         # the vectors as rows of one matrix
        return operators.matmul(b, operators.matrix_transpose(a))
    if rank_a == 1:
        call.args[first] = operators.unsqueeze(a, -2)
    if rank_b == 1:
        call.args[second] = operators.unsqueeze(b, -1)
    rank = max(rank_a, rank_b, 2)
    result = operators.matmul(call.padded(first, rank), call.padded(second, rank))
    if rank_a == 1:
        result = operators.squeeze(result, -2)
    return operators.squeeze(result, -1) if rank_b == 1 else result


def matmul(call):
    """Multiply matrices or vectors; the others than `matmul` take fixed numbers of dimensions."""
    name = call.operation.name
    if (call.rank(0), call.rank(1)) != RANKS.get(name, (call.rank(0), call.rank(1))) or (
            name == "bmm" and call.shape(0)[0] != call.shape(1)[0]):
        return NotImplemented
    return product(call, 0, 1)


def vdot(call):
    """Multiply vectors, the first one conjugated."""
    if (call.rank(0), call.rank(1)) != (1, 1):
        return NotImplemented
    call.args[0] = operators.conj(call.args[0]) if call.args[0].dtype.is_complex else call.args[0]
    return product(call, 0, 1)


def outer(call):
    """Multiply each element of one vector by each of another."""
    if (call.rank(0), call.rank(1)) != (1, 1):
        return NotImplemented
    return operators.mul(operators.unsqueeze(call.args[0], -1), operators.unsqueeze(call.args[1], -2))


def cross(call):
    """Multiply vectors with three elements, aligned at the last dimension."""
    rank, dim = call.rank(0), call.args[2]
    if rank != call.rank(1):
        return NotImplemented
    if dim is None:
        dim = next((k - rank for k in range(rank) if 3 in (call.shape(0)[k], call.shape(1)[k])), 0)
    if not -rank <= dim < rank:
        return NotImplemented
    return operators.cross(call.spread(0), call.spread(1), dim - rank if dim >= 0 else dim)


def addmm(call):
    """Add a batch of products to a batch of matrices."""
    _, _, _, beta, alpha = call.args
    if call.operation.inplace or call.rank(0) > 2 or (call.rank(1), call.rank(2)) != (2, 2):
        return NotImplemented
    result = product(call, 1, 2)
    result = result if alpha == 1 else operators.mul(result, alpha)
    if beta == 0:
        return operators.expand(result, (call.size, *result.shape[-2:]))
    self = call.padded(0, 2)
    return operators.add(result, self if beta == 1 else operators.mul(self, beta))


def linear(call):
    """With one weight the batch is a dimension of the input; with a weight for each entry, a batched product."""
    x, weight, bias = call.args[0], call.args[1], call.args[-1]
    in_x, in_weight, in_bias = call.batched[0], call.batched[1], call.batched[-1]
    if not in_weight and not in_bias and in_x and (bias is None or bias.ndim == 1):
        return operators.linear(x, weight, bias)
    rank = call.rank(0)
    if call.rank(1) != 2 or rank == 0:
        return NotImplemented
    if not in_weight:
        result = operators.linear(x, weight)
    else:
        if rank == 1:
            x = operators.unsqueeze(x, -2)
        elif rank > 2:
            x = operators.reshape(x, (*([call.size] if in_x else []), -1, x.shape[-1]))
        result = operators.matmul(x, operators.matrix_transpose(weight))
        result = operators.reshape(result, (call.size, *call.shape(0)[:-1], weight.shape[1]))
    return result if bias is None else operators.add(result, call.padded(len(call.args) - 1, rank))
