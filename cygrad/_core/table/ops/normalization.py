"""Normalization under vmap, and the per-sample gradients of its parameters."""

from cygrad._core.table.operator import operators


def layer_norm(call):
    """Apply the weights of the entries after the normalization, which is the same for all."""
    names = call.operation.names
    weights = [place for place, name in enumerate(names) if name in ("weight", "bias")]
    if not any(call.batched[place] for place in weights):
        return call.run()
    if not call.batched[0]:
        call.args[0], call.batched[0] = call.spread(0), True
    results = list(call.run([None if place in weights else value for place, value in enumerate(call.args)]))
    for place in weights:
        if call.args[place] is not None:
            apply = operators.mul if names[place] == "weight" else operators.add
            results[0] = apply(results[0], call.padded(place, call.rank(0)))
    return tuple(results)


def batch_norm(call):
    """Return the channels of all entries, concatenated."""
    _, *weights, dims, eps = call.args
    if call.rank(0) < 2 or 0 in call.args[0].shape:
        return NotImplemented
    images = operators.movedim(call.spread(0), 0, 1)
    joined = [None if weight is None else operators.reshape(call.spread(place), (-1,))
              for place, weight in enumerate(weights, 1)]
    results = call.run([operators.reshape(images, (images.shape[0], -1, *images.shape[3:])), *joined, dims, eps])
    return tuple(operators.movedim(operators.reshape(result, (result.shape[0], call.size, -1, *result.shape[2:])), 1, 0)
                 for result in results)


def scale_per_sample(gradient, saved, like):
    """Multiply by the normalized values."""
    return gradient * ((saved("self") - saved("mean")) * saved("rstd"))


def uncentered_scale_per_sample(gradient, saved, like):
    """Multiply by the values over their root mean square."""
    return gradient * (saved("self") * saved("rstd"))
