"""Broadcast of many tensors in few messages."""

import numpy as np

from cygrad.distributed.collectives import broadcast
from cygrad.distributed.memory import array_of
from cygrad.distributed.work import written

__all__ = ["broadcast_coalesced"]

LARGE = 2 ** 20           # bytes of a tensor that is sent in a separate message


def broadcast_coalesced(group, tensors, root=0, detail="tensors"):
    """
    Broadcast tensors to all ranks.

    Parameters
    ----------
    group : ProcessGroup
    tensors : iterable of Tensor
        Of the same shapes and dtypes on all ranks.
    root : int, default 0
        Source rank in the group.
    detail : str
        Description for error messages.
    """
    small = {}
    for tensor in tensors:
        if tensor.numel() * tensor.itemsize >= LARGE:
            broadcast(tensor, group=group, group_src=root)
        elif tensor.numel():
            small.setdefault(tensor.dtype.name, []).append(tensor)
    for together in small.values():
        group.run("broadcast", _packed(group, together, root), detail=detail, facts=(together, root))


def _packed(group, tensors, root):
    arrays = [array_of("broadcast", tensor) for tensor in tensors]
    if group.own_rank == root:
        yield group.comm.Ibcast(np.concatenate([array.reshape(-1) for array in arrays]), root)
        return
    memory = np.empty(sum(array.size for array in arrays), arrays[0].dtype)
    yield group.comm.Ibcast(memory, root)
    for array, part in zip(arrays, np.split(memory, np.cumsum([array.size for array in arrays])[:-1]), strict=True):
        array[...] = part.reshape(array.shape)
    written(*tensors)
