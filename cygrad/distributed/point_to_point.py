"""Messages from one rank to another."""

from cygrad.distributed.memory import array_of, reading, writing, written_back
from cygrad.distributed.work import Work, written
from cygrad.distributed.world import own_group

__all__ = ["P2POp", "batch_isend_irecv", "irecv", "isend", "recv", "send"]


def isend(tensor, dst=None, group=None, tag=0, group_dst=None):
    """
    Start sending a tensor to another rank, which calls `recv` or `irecv`.

    Parameters
    ----------
    tensor : Tensor
        Must not be modified before the handle's ``wait()`` has returned.
    dst : int
        Destination rank in the world.
    group : ProcessGroup, optional
    tag : int, default 0
        Tag that identifies the message.
    group_dst : int, optional
        The other rank in the group.

    Returns
    -------
    Work

    Examples
    --------
    >>> from cygrad import distributed
    >>> distributed.init_process_group()
    >>> if distributed.get_world_size() > 1 and distributed.get_rank() == 0:
    ...     distributed.isend(cygrad.ones(2), dst=1).wait()
    >>> distributed.destroy_process_group()
    """
    group = own_group("isend", group)
    if group is None:
        return None
    other = _partner(group, "isend", "destination", dst, group_dst)
    return Work(group, "send", _send(group, tensor, other, tag), [group.ranks[other]],
                lambda: f"to rank {group.ranks[other]} with tag {tag}")


def _partner(group, operation, kind, rank, group_rank):
    other = group.rank_of(operation, rank, group_rank)
    if other == group.own_rank:
        raise ValueError(f"{operation}: a rank cannot send to itself (got {kind} {group.own_global_rank}). "
                         "Use clone() for a copy.")
    return other


def _send(group, tensor, other, tag):
    array = array_of("send", tensor)
    yield group.comm.Isend(reading(array), other, tag)
    return [tensor]


def irecv(tensor, src=None, group=None, tag=0, group_src=None):
    """
    Start receiving a tensor from another rank.

    Parameters
    ----------
    tensor : Tensor
        Tensor that the message is written to.
    src : int, optional
        Source rank in the world; any if None.
    group : ProcessGroup, optional
    tag : int, default 0
        Tag of the message.
    group_src : int, optional
        The other rank in the group.

    Returns
    -------
    Work

    Examples
    --------
    >>> from cygrad import distributed
    >>> distributed.init_process_group()
    >>> if distributed.get_world_size() > 1 and distributed.get_rank() == 1:
    ...     distributed.irecv(cygrad.empty(2), src=0).wait()
    >>> distributed.destroy_process_group()
    """
    group = own_group("irecv", group)
    return group and _receive(group, "irecv", tensor, src, group_src, tag)


def _receive(group, operation, tensor, src, group_src, tag, status=None):
    if src is None and group_src is None:
        other, partners = -1, [rank for rank in group.ranks if rank != group.own_global_rank]
        if not partners:
            raise ValueError(f"{operation}: no other rank to receive from (got a world of one rank).")
    else:
        other = _partner(group, operation, "source", src, group_src)
        partners = [group.ranks[other]]
    return Work(group, "recv", _recv(group, tensor, other, tag, status), partners,
                lambda: f"from {'any rank' if other < 0 else f'rank {group.ranks[other]}'} with tag {tag}")


def _recv(group, tensor, other, tag, status):
    array = array_of("recv", tensor)
    memory = writing("recv", array)
    request = group.comm.Irecv(memory, group.mpi.ANY_SOURCE if other < 0 else other, tag)
    yield _WithStatus(request, status) if status is not None else request
    written_back(array, memory)
    return written(tensor)


class _WithStatus:
    """A request that records the sender."""

    def __init__(self, request, status):
        self.request, self.status = request, status

    def Test(self):
        return self.request.Test(self.status)


def send(tensor, dst=None, group=None, tag=0, group_dst=None):
    """Send a tensor to another rank, and wait until its memory can be reused; see `isend`.

    Examples
    --------
    >>> from cygrad import distributed
    >>> distributed.init_process_group()
    >>> if distributed.get_world_size() > 1 and distributed.get_rank() == 0:
    ...     distributed.send(cygrad.ones(2), dst=1)
    >>> distributed.destroy_process_group()
    """
    work = isend(tensor, dst, group, tag, group_dst)
    if work is not None:
        work.wait()


def recv(tensor, src=None, group=None, tag=0, group_src=None):
    """
    Receive a tensor from another rank; see `irecv`.

    Returns
    -------
    int
        Source rank in the world; -1 if this process is not in the group.

    Examples
    --------
    >>> from cygrad import distributed
    >>> distributed.init_process_group()
    >>> if distributed.get_world_size() > 1 and distributed.get_rank() == 1:
    ...     distributed.recv(cygrad.empty(2), src=0)
    >>> distributed.destroy_process_group()
    """
    group = own_group("recv", group)
    if group is None:
        return -1
    status = group.mpi and group.mpi.Status()
    _receive(group, "recv", tensor, src, group_src, tag, status).wait()
    return group.ranks[status.Get_source()]


class P2POp:
    """
    Message to send or to receive, for `batch_isend_irecv`.

    Parameters
    ----------
    op : isend or irecv
    tensor : Tensor
    peer : int, optional
        Destination rank in the world.
    group : ProcessGroup, optional
    tag : int, default 0
    group_peer : int, optional
        The other rank in the group.

    Examples
    --------
    >>> from cygrad.distributed import P2POp, isend
    >>> P2POp(isend, cygrad.ones(2), peer=1).peer
    1
    """

    def __init__(self, op, tensor, peer=None, group=None, tag=0, group_peer=None):
        if op not in (isend, irecv):
            raise ValueError(f"P2POp: Invalid `op`: expected distributed.isend or distributed.irecv (got {op!r}).")
        self.op, self.tensor, self.peer, self.group, self.tag = op, tensor, peer, group, tag
        self.group_peer = group_peer


def batch_isend_irecv(p2p_op_list):
    """
    Start several messages.

    Parameters
    ----------
    p2p_op_list : list of P2POp

    Returns
    -------
    list of Work

    Examples
    --------
    >>> from cygrad import distributed
    >>> distributed.init_process_group()
    >>> if distributed.get_world_size() == 2:
    ...     peer, x = 1 - distributed.get_rank(), cygrad.empty(2)
    ...     messages = [distributed.P2POp(distributed.isend, cygrad.ones(2), peer),
    ...                 distributed.P2POp(distributed.irecv, x, peer)]
    ...     for work in distributed.batch_isend_irecv(messages):
    ...         work.wait()
    >>> distributed.destroy_process_group()
    """
    if not isinstance(p2p_op_list, (list, tuple)) or not all(isinstance(one, P2POp) for one in p2p_op_list):
        raise TypeError(f"batch_isend_irecv: expected a list of P2POp (got {p2p_op_list!r:.100}).")
    return [one.op(one.tensor, one.peer, one.group, one.tag, one.group_peer) for one in p2p_op_list]
