"""
Deterministic sums over ranks, with optional compression.

Each rank receives one part of the data of all ranks and adds them pairwise (0 and 1, 2 and 3, then their sums); then
the parts of the sum are gathered. This sends as many bytes as a ring. The order of MPI's sums can differ between runs.
"""

import numpy as np

from cygrad import from_numpy
from cygrad._core.creation.creation import numpy_view
from cygrad.distributed.memory import SHORT, array_of, tensor_over, widening, writing, written_back
from cygrad.distributed.work import written
from cygrad.distributed.world import own_group

__all__ = ["tree_all_reduce"]


def tree_all_reduce(tensor, group=None, async_op=False, *, form=None, factor=None, detail=None):
    """
    Sum tensors over the ranks with bit-identical results in each run, on all ranks.

    Parameters
    ----------
    tensor : Tensor
        Its elements are replaced.
    group, async_op : optional
        See `barrier`.
    form : dtype, optional
        16-bit dtype for communication; the sum is computed in the dtype of the tensor, or in float32 for 16-bit
        ones.
    factor : float, optional
        Factor of the sum.
    detail : str or callable, optional
        What it is about, for messages.

    Returns
    -------
    Work or None

    Examples
    --------
    >>> from cygrad import distributed
    >>> distributed.init_process_group()
    >>> x = cygrad.ones(2)
    >>> distributed.tree_all_reduce(x, factor=0.5)
    >>> x
    tensor([0.5000, 0.5000])
    >>> distributed.destroy_process_group()
    """
    group = own_group("tree_all_reduce", group)
    form = form or getattr(tensor, "dtype", None)
    return group and group.run("tree_all_reduce", _steps(group, "tree_all_reduce", tensor, None, form, factor),
                               async_op, detail, (tensor,), True)


def add_up(rows):
    """Add all rows to the first, pairwise."""
    step = 1
    while step < len(rows):
        for number in range(0, len(rows) - step, 2 * step):
            rows[number] += rows[number + step]
        step *= 2
    return rows[0]


@widening
def _steps(group, operation, tensor, same, form, factor):
    array = array_of(operation, tensor)
    if array.dtype.kind == "b":
        raise TypeError("tree_all_reduce: bool is not supported (got a tensor of dtype bool). Use all_reduce.")
    memory = writing(operation, array, keep=True)
    elements, n = memory.reshape(-1), group.size()

    def encode(part):
        return array_of(operation, from_numpy(part).to(form)) if form in SHORT else part

    def decode(part):
        return numpy_view(tensor_over(part, form).to(tensor.dtype)) if form in SHORT else part
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
