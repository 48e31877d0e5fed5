"""Losses of classes under vmap."""

from cygrad._core.table.operator import operators


def class_loss(call):
    """Compute the losses of all rows, then the sum or mean of each entry."""
    operation, names = call.operation, call.operation.names
    values, target, weight = call.args[:3]
    weight = weight if weight is None else weight.detach()
    ignored, reduction = call.args[names.index("ignore_index")], call.args[names.index("reduction")]
    if call.batched[2] or not call.batched[0] or 0 in values.shape or target.dtype.is_floating_point:
        return NotImplemented
    rank = call.rank(0)
    if rank == 1 and call.rank(1):
        return NotImplemented
    target = call.spread(1)
    rows = [operators.reshape(values, (-1, values.shape[-1])) if rank == 1 else call.fold(0),
            operators.reshape(target, (-1, *target.shape[2:]) if rank > 1 else (-1,)), weight, *call.args[3:]]
    rows[names.index("reduction")] = "none"
    results = list(call.run(rows))
    losses = operators.reshape(results[0], (call.size, *call.shape(1)))
    counted = target != ignored
    if weight is None:
        totals = operators.cast(counted, losses.dtype)
    else:
        chosen = operators.index(weight, [operators.reshape(operators.where(counted, target, 0), (-1,))])
        totals = operators.where(counted, operators.reshape(chosen, tuple(target.shape)), 0.0)
    inner = tuple(range(1, losses.ndim))
    total = operators.sum(totals, inner) if inner else totals
    if reduction != "none":
        losses = operators.sum(losses, inner) if inner else losses
        losses = losses / total if reduction == "mean" else losses
    made = [losses]
    if operation.name == "cross_entropy":
        made.append(operators.reshape(results[1], tuple(values.shape)))
    return (*made, total)
