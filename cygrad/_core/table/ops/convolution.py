"""Convolutions under vmap, and the per-sample gradients of their parameters."""

from cygrad._core.table.operator import operators


def as_groups(call, place):
    """Return an argument with the channels of all entries in its second dimension."""
    value = operators.movedim(call.spread(place), 0, 1)
    return operators.reshape(value, (value.shape[0], -1, *value.shape[3:]))


def convolution(call):
    """Treat entries as further images; with a weight for each entry, as further groups of channels."""
    _, weight, bias, *options, groups = call.args
    in_images, in_weight, in_bias = call.batched[:3]
    if 0 in (*call.args[0].shape, *weight.shape):
        return NotImplemented
    shape = options.pop(0) if call.operation.name == "convolution_input_backward" else None
    if not in_weight:
        if not in_images:
            return NotImplemented
        options = options if shape is None else [(call.size * shape[0], *shape[1:]), *options]
        result = call.unfold(call.run([call.fold(0), weight, None if in_bias else bias, *options, groups]))
    else:
        options = options if shape is None else [(shape[0], call.size * shape[1], *shape[2:]), *options]
        result = call.run([as_groups(call, 0), operators.reshape(weight, (-1, *weight.shape[2:])), None, *options,
                           groups * call.size])
        result = operators.reshape(result, (result.shape[0], call.size, -1, *result.shape[2:]))
        result = operators.movedim(result, 1, 0)
    if bias is None or not (in_weight or in_bias):
        return result
    ones = [1] * (result.ndim - 3)
    return operators.add(result, operators.reshape(bias, ((call.size if in_bias else 1), 1, -1, *ones)))


def weight_backward(call):
    """Concatenate the channels of all entries: as groups, if there are images of each."""
    _, images, shape, *options, groups = call.args
    if call.is_empty() or (groups != 1 and not call.batched[1]):
        return NotImplemented
    if call.batched[1]:
        images, groups = as_groups(call, 1), call.size * groups
    result = call.run([as_groups(call, 0), images, (call.size * shape[0], *shape[1:]), *options, groups])
    return operators.reshape(result, (call.size, *shape))


def kernel_per_sample(gradient, saved, like):
    """Multiply the patches of each image by the gradients of the outputs."""
    images, groups = saved("self"), saved("groups")
    options = [list(saved(name)) for name in ("dilation", "padding", "stride")]
    kernel, n = list(like.shape[2:]), gradient.shape[0]
    if images.ndim == 3:                                  # of one row
        images, kernel = images.unsqueeze(2), [1, *kernel]
        options = [[neutral, *option] for neutral, option in zip((1, 0, 1), options, strict=True)]
    if images.ndim != 4 or images.is_complex():
        return None
    patches = operators.im2col(images, kernel, *options)
    patches = patches.reshape(n, groups, -1, patches.shape[-1])
    gradient = gradient.reshape(n, groups, like.shape[0] // groups, -1)
    return operators.matmul(gradient, patches.mT).reshape(n, *like.shape)


def bias_per_sample(gradient, saved, like):
    """Sum over the positions of each image."""
    return gradient.flatten(2).sum(2)
