"""
Differentiable collectives.

Backward sends gradients to the ranks of the inputs, so all ranks must run it, in the same order. Differentiable to any
order. Tensors are not modified in place.
"""

import cygrad
from cygrad._core.table.docstrings import documented
from cygrad.autograd import Function
from cygrad.distributed import collectives, point_to_point
from cygrad.distributed.reduce_op import ReduceOp
from cygrad.distributed.world import inside

__all__ = ["all_gather", "all_reduce", "all_to_all", "all_to_all_single", "broadcast", "gather", "recv", "reduce",
           "reduce_scatter", "scatter", "send"]

LINEAR = (ReduceOp.SUM, ReduceOp.AVG)


def _group(operation, group, *tensors):
    """Return the group; check that arguments are tensors."""
    for tensor in tensors:
        if not isinstance(tensor, cygrad.Tensor):
            raise TypeError(f"{operation}: expected a Tensor (got {type(tensor).__name__}).")
    return inside(operation, group)


def _listed(operation, name, tensors):
    if not isinstance(tensors, (list, tuple)):
        raise TypeError(f"{operation}: {name} must be a list with a tensor for each rank (got "
                        f"{type(tensors).__name__}).")
    return tensors


class _AllReduce(Function):
    """Sum or average, which is its own transpose."""

    @staticmethod
    def forward(ctx, tensor, op, group):
        ctx.op, ctx.group = op, group
        result = tensor.detach().clone()
        collectives.all_reduce(result, op, group)
        return result

    @staticmethod
    def backward(ctx, grad):
        return _AllReduce.apply(grad, ctx.op, ctx.group), None, None


@documented()
def all_reduce(tensor, op=ReduceOp.SUM, group=None):
    """
    Sum tensors over the ranks element-wise; all get the result.

    Parameters
    ----------
    tensor : Tensor
    op : ReduceOp, default ReduceOp.SUM
        Reduction. For PRODUCT, MAX and MIN all tensors are gathered, which takes more memory than SUM and AVG.
    group : ProcessGroup, optional

    Examples
    --------
    >>> from cygrad import distributed
    >>> distributed.init_process_group()
    >>> x = cygrad.ones(2, requires_grad=True)
    >>> distributed.nn.all_reduce(x * 3).sum().backward()
    >>> x.grad
    tensor([3., 3.])
    >>> distributed.destroy_process_group()
    """
    group = _group("all_reduce", group, tensor)
    if op in LINEAR:
        return _AllReduce.apply(tensor, op, group)
    together = cygrad.stack(all_gather(tensor, group))
    if op is ReduceOp.PRODUCT:
        return together.prod(0)
    if op not in (ReduceOp.MAX, ReduceOp.MIN):
        raise ValueError(f"all_reduce: ReduceOp.{getattr(op, 'name', op)} is not differentiable. Use detach() first.")
    return together.amax(0) if op is ReduceOp.MAX else together.amin(0)


class _Broadcast(Function):
    """Broadcast one rank's tensor; the transpose is a sum on that rank."""

    @staticmethod
    def forward(ctx, tensor, src, group):
        ctx.src, ctx.group = src, group
        result = tensor.detach().clone()
        collectives.broadcast(result, src, group)
        return result

    @staticmethod
    def backward(ctx, grad):
        return _Reduce.apply(grad, ctx.src, ReduceOp.SUM, ctx.group), None, None


class _Reduce(Function):
    """Sum on one rank, zeros on the others; the transpose broadcasts."""

    @staticmethod
    def forward(ctx, tensor, dst, op, group):
        ctx.dst, ctx.group, ctx.op = dst, group, op
        result = tensor.detach().clone()
        collectives.reduce(result, dst, op, group)
        return result if group.own_global_rank == dst else cygrad.zeros_like(result)

    @staticmethod
    def backward(ctx, grad):
        grad = grad / ctx.group.size() if ctx.op is ReduceOp.AVG else grad
        return _Broadcast.apply(grad, ctx.dst, ctx.group), None, None, None


@documented()
def broadcast(tensor, src=0, group=None):
    """
    Broadcast the elements of one rank's tensor; the gradient on that rank is the sum of all.

    Parameters
    ----------
    tensor : Tensor
        Of the same shape and dtype on all ranks. The gradient on other ranks than `src` is zero.
    src : int, default 0
        Rank in the world.
    group : ProcessGroup, optional

    Examples
    --------
    >>> from cygrad import distributed
    >>> distributed.init_process_group()
    >>> x = cygrad.ones(2, requires_grad=True)
    >>> distributed.nn.broadcast(3 * x).sum().backward()
    >>> x.grad
    tensor([3., 3.])
    >>> distributed.destroy_process_group()
    """
    return _Broadcast.apply(tensor, src, _group("broadcast", group, tensor))


@documented()
def reduce(tensor, dst, op=ReduceOp.SUM, group=None):
    """
    Sum tensors over the ranks, on one rank; the result on others is zero.

    Parameters
    ----------
    tensor : Tensor
    dst : int
        Rank in the world.
    op : ReduceOp, default ReduceOp.SUM
        SUM or AVG.
    group : ProcessGroup, optional

    Examples
    --------
    >>> from cygrad import distributed
    >>> distributed.init_process_group()
    >>> x = cygrad.ones(2, requires_grad=True)
    >>> distributed.nn.reduce(3 * x, dst=0).sum().backward()
    >>> x.grad
    tensor([3., 3.])
    >>> distributed.destroy_process_group()
    """
    if op not in LINEAR:
        raise ValueError(f"reduce: op must be SUM or AVG (got {op}). Use all_reduce.")
    return _Reduce.apply(tensor, dst, op, _group("reduce", group, tensor))


class _AllToAll(Function):
    """
    All-to-all: what rank *i* has at index *j* is sent to index *i* on rank *j*; the transpose is the same in reverse.
    """

    @staticmethod
    def forward(ctx, group, shapes, *tensors):
        ctx.group, ctx.shapes = group, [tuple(tensor.shape) for tensor in tensors]
        results = tuple(cygrad.empty(shape, dtype=tensors[0].dtype) for shape in shapes)
        collectives.all_to_all(list(results), [tensor.detach() for tensor in tensors], group)
        return results

    @staticmethod
    def backward(ctx, *grads):
        return None, None, *_AllToAll.apply(ctx.group, ctx.shapes, *grads)


def all_to_all(output_tensor_list, input_tensor_list, group=None):
    """
    Send each rank the tensor at its index, and gather what the others send to this one.

    Parameters
    ----------
    output_tensor_list : list of Tensor
        Tensors of the shapes of the results; not written to.
    input_tensor_list : list of Tensor
        One for each rank.
    group : ProcessGroup, optional

    Returns
    -------
    tuple of Tensor

    Examples
    --------
    >>> from cygrad import distributed
    >>> distributed.init_process_group()
    >>> x = cygrad.ones(2, requires_grad=True)
    >>> received, = distributed.nn.all_to_all([cygrad.empty(2)], [3 * x])
    >>> received.sum().backward()
    >>> x.grad
    tensor([3., 3.])
    >>> distributed.destroy_process_group()
    """
    group = _group("all_to_all", group, *_listed("all_to_all", "output_tensor_list", output_tensor_list),
                   *_listed("all_to_all", "input_tensor_list", input_tensor_list))
    return _AllToAll.apply(group, [tuple(tensor.shape) for tensor in output_tensor_list], *input_tensor_list)


@documented()
def all_to_all_single(output, input, output_split_sizes=None, input_split_sizes=None, group=None):
    """
    Split a tensor along its first dimension, send one part to each rank, and concatenate what the others send.

    Parameters
    ----------
    output : Tensor
        Tensor of the shape of the result; not written to.
    output_split_sizes, input_split_sizes : list of int, optional
        Sizes of the parts; equal ones if None.
    group : ProcessGroup, optional

    Examples
    --------
    >>> from cygrad import distributed
    >>> distributed.init_process_group()
    >>> x = cygrad.ones(2, requires_grad=True)
    >>> distributed.nn.all_to_all_single(cygrad.empty(2), 3 * x).sum().backward()
    >>> x.grad
    tensor([3., 3.])
    >>> distributed.destroy_process_group()
    """
    group = _group("all_to_all_single", group, output, input)
    parts = [tensor.split(collectives.split_sizes(tensor.shape, sizes, group.size(), name)) for tensor, sizes, name in
             ((output, output_split_sizes, "output"), (input, input_split_sizes, "input"))]
    return cygrad.cat(all_to_all(*parts, group))


def all_gather(tensor, group=None):
    """
    Gather the tensors of all ranks on all ranks; the gradient is the sum of all ranks' gradients.

    Parameters
    ----------
    tensor : Tensor
        Of the same shape and dtype on all ranks.
    group : ProcessGroup, optional

    Returns
    -------
    tuple of Tensor

    Examples
    --------
    >>> from cygrad import distributed
    >>> distributed.init_process_group()
    >>> distributed.nn.all_gather(cygrad.ones(2))
    (tensor([1., 1.]),)
    >>> distributed.destroy_process_group()
    """
    return _AllGather.apply(tensor, _group("all_gather", group, tensor)).unbind(0)


class _AllGather(Function):
    """Stack all tensors along a new dimension; the transpose sums the part of each rank."""

    @staticmethod
    def forward(ctx, tensor, group):
        ctx.group = group
        result = cygrad.empty((group.size(), *tensor.shape), dtype=tensor.dtype)
        collectives.all_gather_into_tensor(result, tensor.detach(), group)
        return result

    @staticmethod
    def backward(ctx, grad):
        return _ReduceScatter.apply(grad, ReduceOp.SUM, ctx.group), None


class _ReduceScatter(Function):
    """Reduce-scatter along the first dimension; the transpose gathers."""

    @staticmethod
    def forward(ctx, tensor, op, group):
        ctx.group, ctx.op = group, op
        result = cygrad.empty(tensor.shape[1:], dtype=tensor.dtype)
        collectives.reduce_scatter_tensor(result, tensor.detach(), op, group)
        return result

    @staticmethod
    def backward(ctx, grad):
        grad = grad / ctx.group.size() if ctx.op is ReduceOp.AVG else grad
        return _AllGather.apply(grad, ctx.group), None, None


@documented()
def reduce_scatter(output, input_list, op=ReduceOp.SUM, group=None):
    """
    Sum the lists of all ranks, tensor by tensor; each rank gets the tensor at its index.

    Parameters
    ----------
    output : Tensor
        Accepted and ignored; not written to.
    input_list : list of Tensor
        One for each rank, of the same shape.
    op : ReduceOp, default ReduceOp.SUM
        SUM or AVG.
    group : ProcessGroup, optional

    Examples
    --------
    >>> from cygrad import distributed
    >>> distributed.init_process_group()
    >>> x = cygrad.ones(2, requires_grad=True)
    >>> distributed.nn.reduce_scatter(cygrad.empty(2), [3 * x]).sum().backward()
    >>> x.grad
    tensor([3., 3.])
    >>> distributed.destroy_process_group()
    """
    if op not in LINEAR:
        raise ValueError(f"reduce_scatter: op must be SUM or AVG (got {op}). Use all_to_all.")
    group = _group("reduce_scatter", group, *_listed("reduce_scatter", "input_list", input_list))
    return _ReduceScatter.apply(cygrad.stack(list(input_list)), op, group)


def gather(tensor, dst=0, group=None):
    """
    Gather the tensors of all ranks on one rank.

    Parameters
    ----------
    tensor : Tensor
        Of the same shape and dtype on all ranks.
    dst : int, default 0
        Rank in the world.
    group : ProcessGroup, optional

    Returns
    -------
    tuple of Tensor
        Zeros on the other ranks.

    Examples
    --------
    >>> from cygrad import distributed
    >>> distributed.init_process_group()
    >>> x = cygrad.ones(2, requires_grad=True)
    >>> distributed.nn.gather(3 * x)[0].sum().backward()
    >>> x.grad
    tensor([3., 3.])
    >>> distributed.destroy_process_group()
    """
    group = _group("gather", group, tensor)
    target = group.rank_of("gather", dst)
    none = tensor.reshape(-1)[:0]
    inputs = [tensor if rank == target else none for rank in range(group.size())]
    shape = tensor.shape if group.own_rank == target else (0,)
    results = _AllToAll.apply(group, [tuple(shape)] * group.size(), *inputs)
    return results if group.own_rank == target else tuple(cygrad.zeros_like(tensor) + part.sum() for part in results)


@documented()
def scatter(tensors, src=0, group=None):
    """
    Scatter the tensors of one rank, one to each rank.

    Parameters
    ----------
    tensors : list of Tensor
        One for each rank, of the same shape; on the other ranks only the shape is used.
    src : int, default 0
        Rank in the world.
    group : ProcessGroup, optional

    Examples
    --------
    >>> from cygrad import distributed
    >>> distributed.init_process_group()
    >>> x = cygrad.ones(2, requires_grad=True)
    >>> distributed.nn.scatter([3 * x]).sum().backward()
    >>> x.grad
    tensor([3., 3.])
    >>> distributed.destroy_process_group()
    """
    group = _group("scatter", group, *_listed("scatter", "tensors", tensors))
    if len(tensors) != group.size():
        raise ValueError(f"scatter: tensors must have one Tensor for each rank (got {len(tensors)}, expected "
                         f"{group.size()}).")
    source = group.rank_of("scatter", src)
    own = group.own_rank == source
    inputs = list(tensors) if own else [tensor.reshape(-1)[:0] for tensor in tensors]
    shape = tuple(tensors[group.own_rank].shape)
    results = _AllToAll.apply(group, [shape if rank == source else (0,) for rank in range(group.size())], *inputs)
    return results[source]


class _Send(Function):
    """Send a tensor; receive its gradient."""

    @staticmethod
    def forward(ctx, tensor, dst, group, tag):
        ctx.shape, ctx.dtype, ctx.options = tuple(tensor.shape), tensor.dtype, (dst, group, tag)
        point_to_point.send(tensor.detach(), *ctx.options)
        return cygrad.zeros((), dtype=tensor.dtype)

    @staticmethod
    def backward(ctx, grad):
        return _Recv.apply(grad, cygrad.empty(ctx.shape, dtype=ctx.dtype), *ctx.options), None, None, None


class _Recv(Function):
    """Receive a tensor; send its gradient."""

    @staticmethod
    def forward(ctx, token, like, src, group, tag):
        ctx.options = src, group, tag
        result = cygrad.empty_like(like)
        point_to_point.recv(result, *ctx.options)
        return result

    @staticmethod
    def backward(ctx, grad):
        return _Send.apply(grad, *ctx.options), None, None, None, None


def send(tensor, dst, group=None, tag=0):
    """
    Send a tensor to another rank, where `recv` returns it.

    Parameters
    ----------
    tensor : Tensor
    dst : int
        Rank in the world.
    group : ProcessGroup, optional
    tag : int, default 0

    Returns
    -------
    Tensor
        A 0-dim zero. Add it to the loss, or call its ``backward()``, to receive the gradient in backward.

    Examples
    --------
    >>> from cygrad import distributed
    >>> distributed.init_process_group()
    >>> x = cygrad.ones(2, requires_grad=True)
    >>> if distributed.get_world_size() > 1 and distributed.get_rank() == 0:
    ...     distributed.nn.send(x, dst=1).backward()
    >>> distributed.destroy_process_group()
    """
    return _Send.apply(tensor, dst, _group("send", group, tensor), tag)


def recv(like, src, group=None, tag=0):
    """
    Receive a tensor that another rank sends with `send`; backward sends the gradient to that rank.

    Parameters
    ----------
    like : Tensor
        Tensor of the shape and dtype of the result; not written to.
    src : int
        Rank in the world.
    group : ProcessGroup, optional
    tag : int, default 0

    Returns
    -------
    Tensor
        The received tensor, which requires grad.

    Examples
    --------
    >>> from cygrad import distributed
    >>> distributed.init_process_group()
    >>> if distributed.get_world_size() > 1 and distributed.get_rank() == 1:
    ...     distributed.nn.recv(cygrad.empty(2), src=0).sum().backward()
    >>> distributed.destroy_process_group()
    """
    group = _group("recv", group, like)
    token = cygrad.zeros((), dtype=like.dtype, requires_grad=True)
    return _Recv.apply(token, like, src, group, tag)
