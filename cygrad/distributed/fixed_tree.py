"""
Sums in the order of ranks, by a tree that depends on their number alone, with elements that may travel in another form.

Each rank gets the same part of the data of all ranks, adds them up pairwise (0 and 1, 2 and 3, then their sums), and
the parts of the sum are collected. As much travels as in a ring. MPI's own sums may take another order from one run
to the next.
"""

import numpy as np

from cygrad.distributed.memory import array_of, writing, written_back
from cygrad.distributed.work import written
from cygrad.distributed.world import own_group

__all__ = ["tree_all_reduce"]


def tree_all_reduce(tensor, group=None, async_op=False, *, form=None, factor=None, detail=None):
    """
    Sum tensors over the ranks with the same bits in each run; all get the result.

    Parameters
    ----------
    tensor : Tensor
        Its elements are replaced.
    group, async_op : optional
        See `barrier`.
    form : (callable, callable), optional
        Makes of elements what travels, and elements of that; the sum is computed with elements.
    factor : float, optional
        What the sum is multiplied by.
    detail : str or callable, optional
        What it is about, for messages.

    Returns
    -------
    Work or None
    """
    group = own_group("tree_all_reduce", group)
    return group and group.run("tree_all_reduce", _steps(group, tensor, form, factor), async_op, detail, (tensor,),
                              True)


def add_up(rows):
    """Add all rows to the first, pairwise."""
    step = 1
    while step < len(rows):
        for number in range(0, len(rows) - step, 2 * step):
            rows[number] += rows[number + step]
        step *= 2
    return rows[0]


def _steps(group, tensor, form, factor):
    array = array_of("tree_all_reduce", tensor)
    if array.dtype.kind == "b":
        raise TypeError("tree_all_reduce: booleans have no sum (got a tensor of dtype bool). Use all_reduce.")
    memory = writing("tree_all_reduce", array, keep=True)
    encode, decode = form or (lambda part: part, lambda part: part)
    elements, n = memory.reshape(-1), group.size()
    if n > 1:
        counts = [elements.size // n + (rank < elements.size % n) for rank in range(n)]
        own = counts[group.own_rank]
        going = np.ascontiguousarray(encode(elements))
        coming = np.empty((n, own), going.dtype)
        yield group.comm.Ialltoallv([going, counts], [coming, [own] * n])
        rows = decode(coming)
        part = np.ascontiguousarray(encode(add_up(rows)))
        yield group.comm.Iallgatherv([part, own], [going, counts])
        elements[...] = decode(going)
    if factor is not None:
        elements *= factor
    written_back(array, memory)
    return written(tensor)
