"""Collectives of tensors."""

import math

import numpy as np

from cygrad._core.table.docstrings import documented
from cygrad.distributed.memory import alike, array_of, arrays_of, dtype_text, reading, widening, writing, written_back
from cygrad.distributed.reduce_op import ReduceOp, mpi_name
from cygrad.distributed.work import written
from cygrad.distributed.world import own_group

__all__ = [
    "all_gather", "all_gather_into_tensor", "all_reduce", "all_to_all", "all_to_all_single", "barrier", "broadcast",
    "gather", "reduce", "reduce_scatter", "reduce_scatter_tensor", "scatter",
]

# Shared parameter descriptions.
_PARAMETERS = {"group, async_op": "optional\n    See `barrier`."}
_RETURNED = "Work or None"
AVG = ReduceOp.AVG           # faster lookup


@documented(_PARAMETERS, returns=_RETURNED)
def barrier(group=None, async_op=False, device_ids=None):
    """
    Wait until all ranks have called the function.

    Parameters
    ----------
    group : ProcessGroup, optional
        Default group if None; the same in all collectives.
    async_op : bool, default False
        Whether to return a handle instead of waiting; the same in all collectives. Tensors must not be used before the
        handle's ``wait()`` has returned.
    device_ids : optional
        Accepted and ignored.

    Examples
    --------
    >>> from cygrad import distributed
    >>> distributed.init_process_group()
    >>> distributed.barrier()
    >>> distributed.destroy_process_group()
    """
    group = own_group("barrier", group)
    return group and group.run("barrier", _barrier(group), async_op)


def _barrier(group):
    yield group.comm.Ibarrier()


@documented(_PARAMETERS, returns=_RETURNED)
def broadcast(tensor, src=None, group=None, async_op=False, group_src=None):
    """
    Broadcast the elements of one rank's tensor to all ranks.

    Parameters
    ----------
    tensor : Tensor
        Tensor that is read on one rank and written on the others; via a contiguous copy if it is not contiguous, as in
        all collectives.
    src : int, optional
        Source rank in the world; 0 if None.
    group_src : int, optional
        Source rank in the group.

    Examples
    --------
    >>> from cygrad import distributed
    >>> distributed.init_process_group()
    >>> distributed.broadcast(cygrad.ones(2), src=0)
    >>> distributed.destroy_process_group()
    """
    group = own_group("broadcast", group)
    if group is None:
        return None
    root = group.rank_of("broadcast", src or 0, group_src)
    return group.run("broadcast", _broadcast(group, tensor, root), async_op, None, (tensor, root))


def _broadcast(group, tensor, root):
    array = array_of("broadcast", tensor)
    if group.own_rank == root:
        yield group.comm.Ibcast(reading(array), root)
        return [tensor]
    memory = writing("broadcast", array)
    yield group.comm.Ibcast(memory, root)
    written_back(array, memory)
    return written(tensor)


@documented(_PARAMETERS, returns=_RETURNED)
def all_reduce(tensor, op=ReduceOp.SUM, group=None, async_op=False, *, detail=None):
    """
    Sum tensors over the ranks element-wise, on all ranks.

    Parameters
    ----------
    tensor : Tensor
        Modified in place.
    op : ReduceOp, default ReduceOp.SUM
        Reduction; a sum by default.
    detail : str or callable, optional
        Description for error messages.

    Examples
    --------
    >>> from cygrad import distributed
    >>> distributed.init_process_group()
    >>> distributed.all_reduce(cygrad.ones(2), distributed.ReduceOp.MAX)
    >>> distributed.destroy_process_group()
    """
    group = own_group("all_reduce", group)
    if group is None:
        return None
    steps = type(op) is ReduceOp and group.progress.all_reduce(tensor, op.handles, group.handle)
    return group.run("all_reduce", steps or _all_reduce(group, "all_reduce", tensor, None, op), async_op, detail,
                     (tensor, op))


@widening
def _all_reduce(group, operation, tensor, same, op):
    array = array_of(operation, tensor)
    name = mpi_name(operation, op, array.dtype)
    memory = writing(operation, array, keep=True)
    yield group.comm.Iallreduce(group.in_place, memory, group.mpi and getattr(group.mpi, name))
    if op is AVG:
        np.divide(memory, group.size(), out=memory)
    if memory is not array:
        written_back(array, memory)
    return written(tensor)


@documented(_PARAMETERS, returns=_RETURNED)
def reduce(tensor, dst=None, op=ReduceOp.SUM, group=None, async_op=False, group_dst=None):
    """
    Sum tensors over the ranks, on one rank; the others keep their tensors.

    Parameters
    ----------
    tensor : Tensor
    dst : int
        Destination rank in the world.
    op, group, async_op : optional
        See `all_reduce`.
    group_dst : int, optional
        Source rank in the group.

    Examples
    --------
    >>> from cygrad import distributed
    >>> distributed.init_process_group()
    >>> x = cygrad.ones(2)
    >>> distributed.reduce(x, dst=0)
    >>> x
    tensor([1., 1.])
    >>> distributed.destroy_process_group()
    """
    group = own_group("reduce", group)
    if group is None:
        return None
    root = group.rank_of("reduce", dst, group_dst)
    return group.run("reduce", _reduce(group, "reduce", tensor, None, op, root), async_op, None, (tensor, op, root))


@widening
def _reduce(group, operation, tensor, same, op, root):
    array = array_of(operation, tensor)
    name = mpi_name(operation, op, array.dtype)
    operation = group.mpi and getattr(group.mpi, name)
    if group.own_rank != root:
        yield group.comm.Ireduce(reading(array), None, operation, root)
        return [tensor]
    memory = writing(operation, array, keep=True)
    yield group.comm.Ireduce(group.in_place, memory, operation, root)
    if op is AVG:
        np.divide(memory, group.size(), out=memory)
    written_back(array, memory)
    return written(tensor)


@documented(_PARAMETERS, returns=_RETURNED)
def all_gather(tensor_list, tensor, group=None, async_op=False):
    """
    Gather the tensors of all ranks on all ranks.

    Parameters
    ----------
    tensor_list : list of Tensor
        Tensors that the results are written to: one for each rank, of the shape and dtype of `tensor`.
    tensor : Tensor
        Tensor of this rank.

    Examples
    --------
    >>> from cygrad import distributed
    >>> distributed.init_process_group()
    >>> parts = [cygrad.empty(2)]
    >>> distributed.all_gather(parts, cygrad.ones(2))
    >>> parts
    [tensor([1., 1.])]
    >>> distributed.destroy_process_group()
    """
    group = own_group("all_gather", group)
    return group and group.run("all_gather", _all_gather(group, tensor_list, tensor), async_op, None, (tensor,))


def _all_gather(group, outputs, tensor):
    array = array_of("all_gather", tensor)
    targets = arrays_of("all_gather", outputs, group.size(), "tensor_list", True)
    alike("all_gather", [array, *targets])
    memory = np.empty((group.size(), *array.shape), array.dtype)
    yield group.comm.Iallgather(reading(array), memory)
    return _handed_out(memory, targets, outputs)


def _handed_out(memory, targets, outputs):
    for target, part in zip(targets, memory, strict=True):
        target[...] = part
    return written(*outputs)


@documented(_PARAMETERS, returns=_RETURNED)
def all_gather_into_tensor(output_tensor, input_tensor, group=None, async_op=False):
    """
    Gather the tensors of all ranks on all ranks, in one tensor.

    Parameters
    ----------
    output_tensor : Tensor
        Tensor that the result is written to: concatenated along the first dimension, or stacked along a new one.
    input_tensor : Tensor
        Tensor of this rank.

    Examples
    --------
    >>> from cygrad import distributed
    >>> distributed.init_process_group()
    >>> everything = cygrad.empty(1, 2)
    >>> distributed.all_gather_into_tensor(everything, cygrad.ones(2))
    >>> everything
    tensor([[1., 1.]])
    >>> distributed.destroy_process_group()
    """
    group = own_group("all_gather_into_tensor", group)
    return group and group.run("all_gather_into_tensor", _all_gather_into(group, output_tensor, input_tensor), async_op,
                               None, (input_tensor,))


def _parts_fit(operation, group, whole, part, names):
    """Raise an error unless the size of one is that of the other times the number of ranks."""
    shapes = [(group.size(), *part.shape), (group.size() * part.shape[0], *part.shape[1:]) if part.ndim else None]
    if dtype_text(whole) != dtype_text(part) or whole.shape not in shapes:
        raise ValueError(f"{operation}: {names[0]} must be {group.size()} times {names[1]}, of the same dtype (got "
                         f"{dtype_text(whole)} of shape {whole.shape} and {dtype_text(part)} of shape {part.shape}).")


def _all_gather_into(group, output, tensor):
    array, target = array_of("all_gather_into_tensor", tensor), array_of("all_gather_into_tensor", output)
    _parts_fit("all_gather_into_tensor", group, target, array, ("output_tensor", "input_tensor"))
    memory = writing("all_gather_into_tensor", target)
    yield group.comm.Iallgather(reading(array), memory)
    written_back(target, memory)
    return written(output)


@documented(_PARAMETERS, returns=_RETURNED)
def gather(tensor, gather_list=None, dst=None, group=None, async_op=False, group_dst=None):
    """
    Gather the tensors of all ranks on one rank.

    Parameters
    ----------
    tensor : Tensor
        Tensor of this rank.
    gather_list : list of Tensor, optional
        On that rank only: tensors that the results are written to, one for each rank, of the shape and dtype of
        `tensor`.
    dst : int, optional
        Destination rank in the world; 0 if None.
    group_dst : int, optional
        Source rank in the group.

    Examples
    --------
    >>> from cygrad import distributed
    >>> distributed.init_process_group()
    >>> parts = [cygrad.empty(2)]
    >>> distributed.gather(cygrad.ones(2), parts)
    >>> parts
    [tensor([1., 1.])]
    >>> distributed.destroy_process_group()
    """
    group = own_group("gather", group)
    if group is None:
        return None
    root = group.rank_of("gather", dst or 0, group_dst)
    return group.run("gather", _gather(group, tensor, gather_list, root), async_op, None, (tensor, root))


def _only_on(operation, group, root, tensors, name):
    if group.own_rank != root and tensors:
        raise ValueError(f"{operation}: {name} is for rank {group.ranks[root]} only (got one on rank "
                         f"{group.own_global_rank}). Omit it on other ranks.")


def _gather(group, tensor, outputs, root):
    array = array_of("gather", tensor)
    _only_on("gather", group, root, outputs, "gather_list")
    if group.own_rank != root:
        yield group.comm.Igather(reading(array), None, root)
        return []
    targets = arrays_of("gather", outputs, group.size(), "gather_list", True)
    alike("gather", [array, *targets])
    memory = np.empty((group.size(), *array.shape), array.dtype)
    yield group.comm.Igather(reading(array), memory, root)
    return _handed_out(memory, targets, outputs)


@documented(_PARAMETERS, returns=_RETURNED)
def scatter(tensor, scatter_list=None, src=None, group=None, async_op=False, group_src=None):
    """
    Scatter the tensors of one rank, one to each rank.

    Parameters
    ----------
    tensor : Tensor
        Tensor that the result is written to.
    scatter_list : list of Tensor, optional
        On that rank only: one for each rank, of the shape and dtype of `tensor`.
    src : int, optional
        Destination rank in the world; 0 if None.
    group_src : int, optional
        Source rank in the group.

    Examples
    --------
    >>> from cygrad import distributed
    >>> distributed.init_process_group()
    >>> output = cygrad.empty(2)
    >>> distributed.scatter(output, [cygrad.ones(2)])
    >>> output
    tensor([1., 1.])
    >>> distributed.destroy_process_group()
    """
    group = own_group("scatter", group)
    if group is None:
        return None
    root = group.rank_of("scatter", src or 0, group_src)
    return group.run("scatter", _scatter(group, tensor, scatter_list, root), async_op, None, (tensor, root))


def _scatter(group, tensor, inputs, root):
    array = array_of("scatter", tensor)
    _only_on("scatter", group, root, inputs, "scatter_list")
    memory, parts = writing("scatter", array), None
    if group.own_rank == root:
        parts = arrays_of("scatter", inputs, group.size(), "scatter_list")
        alike("scatter", [array, *parts])
        parts = np.ascontiguousarray(np.stack(parts))
    yield group.comm.Iscatter(parts, memory, root)
    written_back(array, memory)
    return written(tensor)


@documented(_PARAMETERS, returns=_RETURNED)
def reduce_scatter(output, input_list, op=ReduceOp.SUM, group=None, async_op=False):
    """
    Sum the lists of all ranks, tensor by tensor; each rank receives the sum at its index.

    Parameters
    ----------
    output : Tensor
        Tensor that the result is written to.
    input_list : list of Tensor
        One for each rank, of the shape and dtype of `output`.
    op, group, async_op : optional
        See `all_reduce`.

    Examples
    --------
    >>> from cygrad import distributed
    >>> distributed.init_process_group()
    >>> output = cygrad.empty(2)
    >>> distributed.reduce_scatter(output, [cygrad.ones(2)])
    >>> output
    tensor([1., 1.])
    >>> distributed.destroy_process_group()
    """
    group = own_group("reduce_scatter", group)
    return group and group.run("reduce_scatter", _reduce_scatter(group, "reduce_scatter", output, input_list, op),
                               async_op, None, (output, op))


@widening
def _reduce_scatter(group, operation, output, inputs, op):
    target = array_of(operation, output)
    if isinstance(inputs, (list, tuple)):
        parts = arrays_of(operation, inputs, group.size(), "input_list")
        alike(operation, [target, *parts])
        parts = np.ascontiguousarray(np.stack(parts))
    else:
        parts = reading(array_of(operation, inputs))
        _parts_fit(operation, group, parts, target, ("input", "output"))
    name = mpi_name(operation, op, target.dtype)
    memory = writing(operation, target)
    yield group.comm.Ireduce_scatter_block(parts, memory, group.mpi and getattr(group.mpi, name))
    if op is AVG:
        np.divide(memory, group.size(), out=memory)
    written_back(target, memory)
    return written(output)


@documented(_PARAMETERS, returns=_RETURNED)
def reduce_scatter_tensor(output, input, op=ReduceOp.SUM, group=None, async_op=False):
    """
    Sum the tensors of all ranks; each rank receives its part of the sum.

    Parameters
    ----------
    output : Tensor
        Tensor that the result is written to.
    input : Tensor
        Parts for all ranks, concatenated along the first dimension, or stacked along a new one.
    op, group, async_op : optional
        See `all_reduce`.

    Examples
    --------
    >>> from cygrad import distributed
    >>> distributed.init_process_group()
    >>> output = cygrad.empty(2)
    >>> distributed.reduce_scatter_tensor(output, cygrad.ones(2))
    >>> output
    tensor([1., 1.])
    >>> distributed.destroy_process_group()
    """
    group = own_group("reduce_scatter_tensor", group)
    if group is None:
        return None
    if isinstance(input, (list, tuple)):
        raise TypeError("reduce_scatter_tensor: input must be one Tensor (got a list). Use reduce_scatter.")
    return group.run("reduce_scatter_tensor", _reduce_scatter(group, "reduce_scatter_tensor", output, input, op),
                     async_op, None, (input, op))


@documented(_PARAMETERS, returns=_RETURNED)
def all_to_all(output_tensor_list, input_tensor_list, group=None, async_op=False):
    """
    Send each rank the tensor at its index, and receive one tensor from each rank.

    Parameters
    ----------
    output_tensor_list : list of Tensor
        Tensors that the results are written to: that of rank *i* to index *i*. Shapes may differ.
    input_tensor_list : list of Tensor
        One for each rank.

    Examples
    --------
    >>> from cygrad import distributed
    >>> distributed.init_process_group()
    >>> outputs = [cygrad.empty(2)]
    >>> distributed.all_to_all(outputs, [cygrad.ones(2)])
    >>> outputs
    [tensor([1., 1.])]
    >>> distributed.destroy_process_group()
    """
    group = own_group("all_to_all", group)
    return group and group.run("all_to_all", _all_to_all(group, output_tensor_list, input_tensor_list), async_op,
                              None, ([getattr(tensor, "dtype", None) for tensor in input_tensor_list],))


def _all_to_all(group, outputs, inputs):
    targets = arrays_of("all_to_all", outputs, group.size(), "output_tensor_list", True)
    arrays = arrays_of("all_to_all", inputs, group.size(), "input_tensor_list")
    alike("all_to_all", [np.empty(0, array.dtype) for array in (*arrays, *targets)])
    sent = np.concatenate([array.reshape(-1) for array in arrays])
    received = np.empty(sum(target.size for target in targets), sent.dtype)
    yield group.comm.Ialltoallv([sent, [array.size for array in arrays]], [received, [part.size for part in targets]])
    ends = np.cumsum([target.size for target in targets])
    parts = [part.reshape(target.shape) for part, target in zip(np.split(received, ends[:-1]), targets, strict=True)]
    return _handed_out(parts, targets, outputs)


@documented(_PARAMETERS, returns=_RETURNED)
def all_to_all_single(output, input, output_split_sizes=None, input_split_sizes=None, group=None, async_op=False):
    """
    Split a tensor along its first dimension, send one part to each rank, and concatenate the received parts.

    Parameters
    ----------
    output : Tensor
        Tensor that the result is written to.
    output_split_sizes, input_split_sizes : list of int, optional
        Sizes of the parts along the first dimension; equal ones if None.

    Examples
    --------
    >>> from cygrad import distributed
    >>> distributed.init_process_group()
    >>> output = cygrad.empty(2)
    >>> distributed.all_to_all_single(output, cygrad.ones(2))
    >>> output
    tensor([1., 1.])
    >>> distributed.destroy_process_group()
    """
    group = own_group("all_to_all_single", group)
    return group and group.run(
        "all_to_all_single", _all_to_all_single(group, output, input, output_split_sizes, input_split_sizes), async_op,
        None, (getattr(input, "dtype", None), getattr(input, "shape", ())[1:]))


def split_sizes(shape, sizes, n, name):
    """Return the sizes of the parts along the first dimension."""
    length = shape[0] if shape else 0
    if not sizes:
        if not shape or length % n:
            raise ValueError(f"all_to_all_single: the first dimension of {name} must be divisible by the number of "
                             f"ranks (got shape {tuple(shape)}, expected a multiple of {n}). Pass {name}_split_sizes.")
        return [length // n] * n
    if not isinstance(sizes, (list, tuple)) or not all(type(size) is int for size in sizes):
        raise TypeError(f"all_to_all_single: {name}_split_sizes must be a list of int (got {sizes!r}).")
    if len(sizes) != n or sum(sizes) != length or min(sizes) < 0:
        raise ValueError(f"all_to_all_single: {name}_split_sizes must have one size for each rank, and their sum must "
                         f"be that of the first dimension (got {list(sizes)}, expected {n} of sum {length}).")
    return list(sizes)


def _all_to_all_single(group, output, input, output_sizes, input_sizes):
    target, array = array_of("all_to_all_single", output), array_of("all_to_all_single", input)
    if dtype_text(target) != dtype_text(array) or target.shape[1:] != array.shape[1:]:
        raise ValueError("all_to_all_single: output and input must have the same dtype, and the same shape except for "
                         f"the first dimension (got {dtype_text(target)} of shape {target.shape} and "
                         f"{dtype_text(array)} of shape {array.shape}).")
    row = math.prod(array.shape[1:])
    coming = [row * size for size in split_sizes(target.shape, output_sizes, group.size(), "output")]
    going = [row * size for size in split_sizes(array.shape, input_sizes, group.size(), "input")]
    memory = writing("all_to_all_single", target)
    yield group.comm.Ialltoallv([reading(array), going], [memory, coming])
    written_back(target, memory)
    return written(output)
