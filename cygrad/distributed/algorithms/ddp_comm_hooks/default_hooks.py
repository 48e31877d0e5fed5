"""Hooks that send gradients unchanged or in 16-bit dtypes."""

import cygrad
from cygrad.distributed.collectives import all_reduce
from cygrad.distributed.fixed_tree import tree_all_reduce
from cygrad.distributed.world import member

__all__ = ["allreduce_hook", "bf16_compress_hook", "bf16_compress_wrapper", "fp16_compress_hook",
           "fp16_compress_wrapper"]


def allreduce_hook(process_group, bucket):
    """
    Average the gradients, as without a hook.

    Parameters
    ----------
    process_group : ProcessGroup or None
    bucket : GradBucket

    Returns
    -------
    Future

    Examples
    --------
    >>> from cygrad import distributed
    >>> from cygrad.distributed.algorithms.ddp_comm_hooks import default_hooks
    >>> distributed.init_process_group()
    >>> model = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
    >>> model.register_comm_hook(None, default_hooks.allreduce_hook)
    >>> model(cygrad.ones(1, 2)).sum().backward()
    >>> model.module.weight.grad
    tensor([[1., 1.]])
    >>> distributed.destroy_process_group()
    """
    group = member(process_group)
    work = all_reduce(bucket.buffer(), group=group, async_op=True, detail=bucket.describe)
    return work.get_future().then(lambda future: future.value()[0].div_(group.size()))


def _numbers(buffer):
    """Return the elements, or the real and imaginary parts of complex ones."""
    return cygrad.view_as_real(buffer).view(-1) if buffer.is_complex() else buffer


def _compressed(process_group, bucket, form):
    """Average a bucket whose elements are sent in another dtype."""
    group = member(process_group)
    buffer = bucket.buffer()
    work = tree_all_reduce(_numbers(buffer), group, True, form=form, factor=1 / group.size(),
                           detail=lambda: f"{bucket.describe()} as {form.name}")
    return work.get_future().then(lambda future: buffer)


def bf16_compress_hook(process_group, bucket):
    """
    Send gradients as bfloat16, in half the bytes: with the range of float32 and three decimal digits.

    Elements are rounded before they are sent. Sums are computed in float32, in the order of ranks, and rounded once.

    Parameters
    ----------
    process_group : ProcessGroup or None
    bucket : GradBucket

    Returns
    -------
    Future

    Examples
    --------
    >>> from cygrad import distributed
    >>> from cygrad.distributed.algorithms.ddp_comm_hooks import default_hooks
    >>> distributed.init_process_group()
    >>> model = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
    >>> model.register_comm_hook(None, default_hooks.bf16_compress_hook)
    >>> model(cygrad.ones(1, 2)).sum().backward()
    >>> model.module.weight.grad
    tensor([[1., 1.]])
    >>> distributed.destroy_process_group()
    """
    return _compressed(process_group, bucket, cygrad.bfloat16)


def fp16_compress_hook(process_group, bucket):
    """
    Send gradients as float16: four decimal digits, at most 65,504. See `bf16_compress_hook`.

    Parameters
    ----------
    process_group : ProcessGroup or None
    bucket : GradBucket

    Returns
    -------
    Future

    Examples
    --------
    >>> from cygrad import distributed
    >>> from cygrad.distributed.algorithms.ddp_comm_hooks import default_hooks
    >>> distributed.init_process_group()
    >>> model = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
    >>> model.register_comm_hook(None, default_hooks.fp16_compress_hook)
    >>> model(cygrad.ones(1, 2)).sum().backward()
    >>> model.module.weight.grad
    tensor([[1., 1.]])
    >>> distributed.destroy_process_group()
    """
    return _compressed(process_group, bucket, cygrad.float16)


def _wrapped(hook, form):
    def compressing(state, bucket):
        numbers = _numbers(bucket.buffer())
        numbers.copy_(numbers.to(form))
        return hook(state, bucket)
    return compressing


def bf16_compress_wrapper(hook):
    """Return a hook that rounds gradients to bfloat16 before another hook.

    Examples
    --------
    >>> from cygrad import distributed
    >>> from cygrad.distributed.algorithms.ddp_comm_hooks import default_hooks
    >>> distributed.init_process_group()
    >>> model = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
    >>> model.register_comm_hook(None, default_hooks.bf16_compress_wrapper(default_hooks.allreduce_hook))
    >>> model(cygrad.ones(1, 2)).sum().backward()
    >>> model.module.weight.grad
    tensor([[1., 1.]])
    >>> distributed.destroy_process_group()
    """
    return _wrapped(hook, cygrad.bfloat16)


def fp16_compress_wrapper(hook):
    """Return a hook that rounds gradients to float16 before another hook.

    Examples
    --------
    >>> from cygrad import distributed
    >>> from cygrad.distributed.algorithms.ddp_comm_hooks import default_hooks
    >>> distributed.init_process_group()
    >>> model = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
    >>> model.register_comm_hook(None, default_hooks.fp16_compress_wrapper(default_hooks.allreduce_hook))
    >>> model(cygrad.ones(1, 2)).sum().backward()
    >>> model.module.weight.grad
    tensor([[1., 1.]])
    >>> distributed.destroy_process_group()
    """
    return _wrapped(hook, cygrad.float16)
