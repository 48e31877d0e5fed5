"""Pickle tensors for another process: metadata, and the descriptor of the shared memory."""

from multiprocessing import context, reduction

from cygrad import Tensor
from cygrad._core.graph.type_slots import make_subclass
from cygrad.multiprocessing.memory import Region, placed, region_of, share
from cygrad.nn import Parameter

__all__ = ["reduce_tensor", "register"]


def reduce_tensor(tensor):
    """Reduce a tensor, after moving it to shared memory."""
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError("multiprocessing: a non-leaf tensor that requires grad cannot be sent to another process, "
                           f"because its graph would be lost (got one created by {tensor.grad_fn.name()}). Use "
                           "detach() first.")
    if tensor.is_meta:
        return tensor.__reduce_ex__(2)
    share(tensor)
    region = region_of(tensor)
    return _rebuild, (type(tensor), _passed_on(region.descriptor), len(region), tensor.dtype, tuple(tensor.shape),
                      tensor.stride(), tensor.storage_offset(), tensor.requires_grad, dict(tensor.__dict__))


def _passed_on(descriptor):
    """Return an object that unpickles as a descriptor of the same file."""
    starting = context.get_spawning_popen()
    if starting is not None and starting.method == "spawn" and descriptor in starting._fds:
        return starting.DupFd(descriptor)        # listing a descriptor twice is an error
    return reduction.DupFd(descriptor)


def _rebuild(cls, descriptor, length, dtype, size, stride, offset, requires_grad, attributes):
    """Return the tensor in the other process."""
    tensor = placed(Region.opened(descriptor.detach(), length), dtype, size, stride, offset)
    if cls is Tensor:
        tensor.requires_grad = requires_grad
    else:
        tensor = make_subclass(cls, tensor, requires_grad)
    if attributes:
        tensor.__dict__.update(attributes)
    return tensor


def register():
    """Register the reductions with Python's module."""
    for cls in (Tensor, Parameter):
        reduction.ForkingPickler.register(cls, reduce_tensor)
