"""
Batching rules that cannot be derived from rows: products, views of a given shape, layers, losses, and functions that
are no operators.
"""

from cygrad._core.creation.factories import arange
from cygrad._core.graph.tensor import Tensor
from cygrad._core.table.operator import operators
from cygrad.func import rules_of_indices
from cygrad.func.batched import entry, value_at
from cygrad.func.batching import (
    RULES,
    Call,
    aligned,
    along_dims,
    counted,
    one_by_one,
    operation_of,
    padded,
    refuse_change,
)
from cygrad.func.custom import apply_to_batch

__all__ = ["BY_NAME"]


def rule(*names):
    """Register the decorated function as the rule of these rows."""
    def register(function):
        RULES.update(dict.fromkeys(names, function))
        return function
    return register


# ---- products

def product(call, first, second):
    """Compute the matrix product of two arguments of 1 or more dimensions each, as `matmul` does."""
    a, b = call.args[first], call.args[second]
    rank_a, rank_b = call.rank(first), call.rank(second)
    if 0 in (rank_a, rank_b):
        return NotImplemented
    if rank_a == 2 and rank_b == 1 and not call.batched[first]:         # the vectors as rows of one matrix
        return operators.matmul(b, operators.matrix_transpose(a))
    if rank_a == 1:
        a = operators.unsqueeze(a, -2)
    if rank_b == 1:
        b = operators.unsqueeze(b, -1)
    rank = max(rank_a, rank_b, 2)
    a = padded(a, call.batched[first], max(rank_a, 2), rank)
    b = padded(b, call.batched[second], max(rank_b, 2), rank)
    result = operators.matmul(a, b)
    if rank_a == 1:
        result = operators.squeeze(result, -2)
    return operators.squeeze(result, -1) if rank_b == 1 else result


@rule("mm", "bmm", "mv", "dot", "matmul")
def _matmul(call):
    if call.operation.name != "matmul":
        wanted = {"mm": (2, 2), "bmm": (3, 3), "mv": (2, 1), "dot": (1, 1)}[call.operation.name]
        if (call.rank(0), call.rank(1)) != wanted or (
                call.operation.name == "bmm" and call.shape(0)[0] != call.shape(1)[0]):
            return NotImplemented
    return product(call, 0, 1)


@rule("vdot")
def _vdot(call):
    if (call.rank(0), call.rank(1)) != (1, 1):
        return NotImplemented
    call.args[0] = operators.conj(call.args[0]) if call.args[0].dtype.is_complex else call.args[0]
    return product(call, 0, 1)


@rule("outer")
def _outer(call):
    if (call.rank(0), call.rank(1)) != (1, 1):
        return NotImplemented
    return operators.mul(operators.unsqueeze(call.args[0], -1), operators.unsqueeze(call.args[1], -2))


@rule("addmm")
def _addmm(call):
    self, _, _, beta, alpha = call.args
    if call.operation.inplace or call.rank(0) > 2 or (call.rank(1), call.rank(2)) != (2, 2):
        return NotImplemented
    result = product(call, 1, 2)
    result = result if alpha == 1 else operators.mul(result, alpha)
    if beta == 0:
        return operators.expand(result, (call.size, *result.shape[-2:]))
    self = padded(self, call.batched[0], call.rank(0), 2)
    return operators.add(result, self if beta == 1 else operators.mul(self, beta))


@rule("linear", "linear_in_panels")
def _linear(call):
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
    if bias is None:
        return result
    return operators.add(result, padded(bias, in_bias, call.rank(len(call.args) - 1), rank))


# ---- views of a given shape

@rule("view", "reshape")
def _reshape(call):
    shape = call.args[1] if isinstance(call.args[1], (list, tuple)) else (call.args[1],)
    if -1 in shape and 0 in call.args[0].shape:
        return NotImplemented
    return call.operation([call.args[0], (call.size, *shape)])


@rule("expand", "broadcast_to")
def _expand(call):
    shape = call.args[1] if isinstance(call.args[1], (list, tuple)) else (call.args[1],)
    if len(shape) < call.rank(0):
        return NotImplemented
    value = call.args[0]
    for _ in range(len(shape) - call.rank(0)):
        value = operators.unsqueeze(value, 1)
    return call.operation([value, (call.size, *shape)])


@rule("sum_to")
def _sum_to(call):
    shape = tuple(call.args[1])
    ones = (1,) * (call.rank(0) - len(shape))
    return operators.reshape(operators.sum_to(call.args[0], (call.size, *ones, *shape)), (call.size, *shape))


@rule("repeat")
def _repeat(call):
    repeats = call.args[1] if isinstance(call.args[1], (list, tuple)) else (call.args[1],)
    if len(repeats) < call.rank(0):
        return NotImplemented
    value = padded(call.args[0], True, call.rank(0), len(repeats))
    return operators.repeat(value, (1, *repeats))


@rule("t", "transpose_all")
def _reversed(call):
    rank = call.rank(0)
    if call.operation.name == "t" and rank > 2:
        return NotImplemented
    return operators.permute(call.args[0], (0, *range(rank, 0, -1)))


@rule("permute")
def _permute(call):
    dims = counted(call.args[1], call.rank(0))
    return NotImplemented if dims is None else operators.permute(call.args[0], (0, *dims))


@rule("max_all", "min_all")
def _extremum(call):
    """Reduce all elements of an entry; ties share the gradient."""
    extremum = operators.amax if call.operation.name == "max_all" else operators.amin
    return along_dims(Call(operation_of(extremum), call.level,
                           [entry(call.args[0], call.level), *call.args[1:]]))


@rule("as_strided")
def _as_strided(call):
    """View memory that holds one entry after the other."""
    value, size, stride, offset = call.args
    step, begin = value.stride()[0] if call.size else 0, value.storage_offset()
    offset = begin if offset is None else offset
    size = size if isinstance(size, (list, tuple)) else (size,)
    stride = stride if isinstance(stride, (list, tuple)) else (stride,)
    return operators.as_strided(value, (call.size, *size), (step, *stride), offset)


@rule("pad")
def _pad(call):
    if call.args[2] != "constant" or not call.batched[0]:
        return NotImplemented
    return call.run()


# ---- masks, operands

@rule("pad_backward")
def _pad_backward(call):
    return along_dims(call) if call.args[3] == "constant" else NotImplemented


# Whose `dims` is a number of dimensions.
rule("normalize_backward", "normalize_sums")(one_by_one)


@rule("attention_weights")
def _attention(call):
    return call.run(aligned(call)) if call.rank(0) >= 2 else NotImplemented


@rule("masked_fill")
def _masked_fill(call):
    self, mask, value = call.args
    if isinstance(value, Tensor):
        if call.rank(2):
            return NotImplemented
        value = operators.cast(value, self.dtype) if value.dtype != self.dtype else value
    if call.operation.inplace:
        if not (call.batched[1] or call.batched[2]):
            return call.run()
        if call.rank(1) > call.rank(0):
            return NotImplemented
    call.args[2] = value
    self, mask, value = aligned(call)
    if not call.batched[2] and not call.operation.inplace:
        if 0 in (*self.shape, *mask.shape):
            return NotImplemented
        rank = max(call.rank(0), call.rank(1))
        shape = tuple(map(max, _shape_of(call, 0, rank), _shape_of(call, 1, rank)))
        return operators.masked_fill(operators.expand(self, shape), mask, value)
    filled = operators.where(mask, value, self)
    return self.copy_(filled) if call.operation.inplace else filled


def _shape_of(call, place, rank):
    """Return the shape of an aligned operand whose entries have `rank` dimensions."""
    shape = call.shape(place)
    return (call.size if call.batched[place] else 1, *[1] * (rank - len(shape)), *shape)


@rule("copy")
def _copy(call):
    if call.rank(1) > call.rank(0):
        return NotImplemented
    source = padded(call.args[1], call.batched[1], call.rank(1), call.rank(0))
    return call.run([call.args[0], source, *call.args[2:]])


@rule("var_mean", "std_mean", "aminmax", "lu_unpack")
def _together(call):
    return call.run([[call.spread(*pair) for pair in zip(call.args[0], call.batched[0], strict=True)]])


# ---- layers

def folded(call, place):
    """Merge the batch with the leading dimension of an argument."""
    value = call.spread(call.args[place], call.batched[place])
    return operators.reshape(value, (value.shape[0] * value.shape[1], *value.shape[2:]))


def unfolded(call, result):
    return operators.reshape(result, (call.size, result.shape[0] // max(call.size, 1), *result.shape[1:]))


@rule("convolution", "convolution_input_backward")
def _convolution(call):
    """Entries are further images; with a weight for each entry, further groups of channels."""
    images, weight, bias, *options, groups = call.args
    in_images, in_weight, in_bias = call.batched[:3]
    if 0 in (*images.shape, *weight.shape):
        return NotImplemented
    shape = options.pop(0) if call.operation.name == "convolution_input_backward" else None
    if not in_weight:
        if not in_images:
            return NotImplemented
        options = options if shape is None else [(call.size * shape[0], *shape[1:]), *options]
        result = call.run([folded(call, 0), weight, None if in_bias else bias, *options, groups])
        result = unfolded(call, result)
    else:
        options = options if shape is None else [(shape[0], call.size * shape[1], *shape[2:]), *options]
        images = operators.movedim(call.spread(images, in_images), 0, 1)
        images = operators.reshape(images, (images.shape[0], -1, *images.shape[3:]))
        result = call.run([images, operators.reshape(weight, (-1, *weight.shape[2:])), None, *options,
                           groups * call.size])
        result = operators.reshape(result, (result.shape[0], call.size, -1, *result.shape[2:]))
        result = operators.movedim(result, 1, 0)
    if bias is None or not (in_weight or in_bias):
        return result
    ones = [1] * (result.ndim - 3)
    return operators.add(result, operators.reshape(bias, ((call.size if in_bias else 1), 1, -1, *ones)))


@rule("convolution_weight_backward")
def _convolution_weight(call):
    """Concatenate the channels of all entries: as groups, if there are images of each."""
    grad, images, shape, *options, groups = call.args
    if 0 in (*grad.shape, *images.shape) or (groups != 1 and not call.batched[1]):
        return NotImplemented
    if call.batched[1]:
        grad, images = [operators.movedim(call.spread(value, batched), 0, 1)
                        for value, batched in zip((grad, images), call.batched, strict=False)]
        grad, images = [operators.reshape(value, (value.shape[0], -1, *value.shape[3:])) for value in (grad, images)]
        result = call.run([grad, images, (call.size * shape[0], *shape[1:]), *options, call.size * groups])
        return operators.reshape(result, (call.size, *shape))
    grad = operators.movedim(grad, 0, 1)
    grad = operators.reshape(grad, (grad.shape[0], -1, *grad.shape[3:]))
    result = call.run([grad, images, (call.size * shape[0], *shape[1:]), *options, groups])
    return operators.reshape(result, (call.size, *shape))


@rule("im2col", "col2im")
def _patches(call):
    return NotImplemented if 0 in call.args[0].shape else unfolded(call, call.run([folded(call, 0), *call.args[1:]]))


@rule("grid_taps", "grid_taps_backward", "grid_taps_along", "gather_weighted", "scatter_weighted", "gather_products")
def _grids(call):
    """Entries are further images."""
    if any(0 in value.shape for _, value, _ in call.tensors()):
        return NotImplemented
    for place, *_ in call.tensors():
        call.args[place] = folded(call, place)
    results = call.run()
    return unfolded(call, results) if isinstance(results, Tensor) else tuple(unfolded(call, each) for each in results)


PLANES = {"max_pool": "kernel_size", "avg_pool": "kernel_size", "avg_pool_backward": "kernel_size",
          "adaptive_max_pool": "output_size", "adaptive_avg_pool": "output_size",
          "adaptive_avg_pool_backward": "output_size", "resample": "size", "resample_backward": "size"}


@rule(*PLANES, "max_pool_backward", "max_pool_gather", "max_unpool")
def _planes(call):
    """Run channel by channel: each plane of each entry is an image of one channel."""
    name = call.operation.name
    n = len(call.args[call.named(PLANES[name])]) if name in PLANES else call.args[-1]
    arguments, lead = list(call.args), call.shape(0)[:call.rank(0) - n]
    for place, value, batched in call.tensors():
        value = call.spread(value, batched)
        if 0 in value.shape:
            return NotImplemented
        arguments[place] = operators.reshape(value, (-1, 1, *value.shape[value.ndim - n:]))
    if "shape" in call.operation.names:
        place = call.named("shape")
        shape = call.args[place]
        if len(shape) != call.rank(0):
            return NotImplemented
        arguments[place] = (arguments[0].shape[0], 1, *shape[len(shape) - n:])
    results = call.run(arguments)
    single = isinstance(results, Tensor)
    made = [operators.reshape(result, (call.size, *lead, *result.shape[2:]))
            for result in ([results] if single else results)]
    return made[0] if single else type(results)(*made)


@rule("layer_norm", "rms_norm")
def _layer_norm(call):
    """Apply the weights of the entries after the normalization, which is the same for all."""
    names = call.operation.names
    weights = [place for place, name in enumerate(names) if name in ("weight", "bias")]
    if not any(call.batched[place] for place in weights):
        return call.run()
    if not call.batched[0]:
        call.args[0], call.batched[0] = call.spread(call.args[0], False), True
    arguments = [None if place in weights else value for place, value in enumerate(call.args)]
    results = list(call.run(arguments))
    for place in weights:
        if call.args[place] is not None:
            weight = padded(call.args[place], call.batched[place], call.rank(place), call.rank(0))
            results[0] = (operators.mul if names[place] == "weight" else operators.add)(results[0], weight)
    return tuple(results)


@rule("batch_norm")
def _batch_norm(call):
    """Return the channels of all entries side by side."""
    images, *weights, dims, eps = call.args
    if call.rank(0) < 2 or 0 in images.shape:
        return NotImplemented
    images = operators.movedim(call.spread(images, call.batched[0]), 0, 1)
    shape = images.shape
    joined = [None if weight is None else operators.reshape(call.spread(weight, batched), (-1,))
              for weight, batched in zip(weights, call.batched[1:3], strict=True)]
    results = call.run([operators.reshape(images, (shape[0], -1, *shape[3:])), *joined, dims, eps])
    return tuple(operators.movedim(operators.reshape(result, (result.shape[0], call.size, -1, *result.shape[2:])), 1, 0)
                 for result in results)


@rule("lstm_gates", "gru_gates")
def _gates(call):
    """Concatenate the rows of all entries; the activations have their kinds as first dimension."""
    lead = call.shape(0)[:-1]
    if any(0 in value.shape for _, value, _ in call.tensors()):
        return NotImplemented
    arguments = [operators.reshape(call.spread(value, batched), (-1, value.shape[-1]))
                 for _, value, batched in call.tensors()]
    results = call.run(arguments)
    made = [operators.reshape(result, (call.size, *lead, -1)) for result in results[:-1]]
    activations = operators.reshape(results[-1], (results[-1].shape[0], call.size, *lead, -1))
    return (*made, operators.movedim(activations, 1, 0))


@rule("embedding")
def _embedding(call):
    """With a table for each entry, concatenate the tables."""
    weight, index, padding = call.args
    if not call.batched[0]:
        return call.run()
    rows, offset = weight.shape[1], call.size
    if padding >= 0:
        kept = operators.reshape(arange(rows), (rows, 1)) != padding
        weight = operators.where(kept, weight, weight.detach())
    index = call.spread(index, call.batched[1])
    offset = operators.reshape(arange(call.size), (call.size, *[1] * (index.ndim - 1))) * rows
    index = operators.where(index < 0, rows * call.size, index + offset) if rows else index
    return operators.embedding(operators.reshape(weight, (-1, weight.shape[2])), index, -1)


@rule("embedding_backward")
def _embedding_backward(call):
    """Concatenate the tables."""
    grad, index, rows, padding = call.args
    grad, index = call.spread(grad, call.batched[0]), call.spread(index, call.batched[1])
    offset = operators.reshape(arange(call.size), (call.size, *[1] * (index.ndim - 1))) * rows
    result = operators.embedding_backward(grad, index + offset, rows * call.size, -1)
    result = operators.reshape(result, (call.size, rows, -1))
    if padding < 0:
        return result
    return operators.where(operators.reshape(arange(rows), (rows, 1)) != padding, result, 0.0)


@rule("nll_loss", "cross_entropy")
def _nll_loss(call):
    """Compute the losses of all rows, then the sum or mean of each entry."""
    operation, names = call.operation, call.operation.names
    values, target, weight = call.args[:3]
    weight = weight if weight is None else weight.detach()
    ignored, reduction = call.args[names.index("ignore_index")], call.args[names.index("reduction")]
    if call.batched[2] or not call.batched[0] or 0 in values.shape or target.dtype.is_floating_point:
        return NotImplemented
    rank = call.rank(0)
    target = call.spread(target, call.batched[1])
    rows = [operators.reshape(values, (-1, values.shape[-1])) if rank == 1 else folded(call, 0),
            operators.reshape(target, (-1, *target.shape[2:]) if rank > 1 else (-1,)), weight, *call.args[3:]]
    if rank == 1 and call.rank(1):
        return NotImplemented
    rows[names.index("reduction")] = "none"
    results = list(operation(rows))
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


# ---- functions that are no operators

def _like(function, level, args, kwargs):
    """Factories like a batched tensor are batched, too: they can be written to."""
    value = args[0]._value
    if function.__name__ == "full_like":
        return entry(function(value, args[1], **kwargs), args[0]._level)
    return entry(function(value, **kwargs), args[0]._level)


def _assigned(function, level, args, kwargs):
    """``copy_``: the source has no more dimensions than the destination."""
    target, source = args
    held, given = value_at(target, level), value_at(source, level)
    if held is None:
        refuse_change("copy", type("Batch", (), {"size": level.size}))
    if given is not None:
        while given.ndim > held.ndim and given.shape[1] == 1:
            given = operators.squeeze(given, 1)
        given = padded(given, True, given.ndim - 1, held.ndim - 1)
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


BY_NAME = {
    **dict.fromkeys(("zeros_like", "ones_like", "empty_like", "full_like"), _like), "copy_": _assigned,
    "fill_": _filled, "view_as": _viewed, "apply": apply_to_batch, "__getitem__": rules_of_indices.getitem,
    "__setitem__": rules_of_indices.setitem,
}
