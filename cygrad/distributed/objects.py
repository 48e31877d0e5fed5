"""Collectives of pickled Python objects."""

import pickle

import numpy as np

from cygrad.distributed.world import own_group

__all__ = ["all_gather_object", "broadcast_object_list", "gather_object", "scatter_object_list"]


def _bytes(thing):
    return np.frombuffer(pickle.dumps(thing, protocol=pickle.HIGHEST_PROTOCOL), np.uint8)


def broadcast_object_list(object_list, src=None, group=None, device=None, group_src=None):
    """
    Broadcast the objects of one rank to all ranks.

    Parameters
    ----------
    object_list : list
        Of the same length on all ranks; modified in place.
    src : int, optional
        The rank in the world that has them, 0 if None.
    group : ProcessGroup, optional
    device : optional
        Accepted and ignored.
    group_src : int, optional
        The same as a rank in the group.

    Examples
    --------
    >>> from cygrad import distributed
    >>> distributed.init_process_group()
    >>> distributed.broadcast_object_list(["anything", 3])
    >>> distributed.destroy_process_group()
    """
    group = own_group("broadcast_object_list", group)
    if not isinstance(object_list, list):
        raise TypeError(f"broadcast_object_list: expected a list (got {type(object_list).__name__}).")
    if group is not None:
        root = group.rank_of("broadcast_object_list", src or 0, group_src)
        group.run("broadcast_object_list", _broadcast(group, object_list, root), facts=(root, len(object_list)),
                  several=True)


def _broadcast(group, object_list, root):
    own = group.own_rank == root
    data = _bytes(list(object_list)) if own else None
    size = np.array([data.size if own else 0])
    yield group.comm.Ibcast(size, root)
    if not own:
        data = np.empty(int(size[0]), np.uint8)
    yield group.comm.Ibcast(data, root)
    if not own:
        found = pickle.loads(data)
        if len(found) != len(object_list):
            raise ValueError("broadcast_object_list: lists must have the same length on all ranks (got "
                             f"{len(object_list)} on rank {group.own_global_rank}, expected {len(found)}).")
        object_list[:] = found


def all_gather_object(object_list, obj, group=None):
    """
    Gather the objects of all ranks on all ranks.

    Parameters
    ----------
    object_list : list
        List that the results are written to: of one item for each rank.
    obj : object
        What this rank gives.
    group : ProcessGroup, optional

    Examples
    --------
    >>> from cygrad import distributed
    >>> distributed.init_process_group()
    >>> objects = [None]
    >>> distributed.all_gather_object(objects, {"loss": 0.5})
    >>> objects
    [{'loss': 0.5}]
    >>> distributed.destroy_process_group()
    """
    group = own_group("all_gather_object", group)
    if group is not None:
        _check_places("all_gather_object", object_list, group)
        group.run("all_gather_object", _all_gather(group, object_list, obj), several=True)


def _check_places(operation, object_list, group):
    if not isinstance(object_list, list) or len(object_list) != group.size():
        got = len(object_list) if isinstance(object_list, list) else type(object_list).__name__
        raise ValueError(f"{operation}: expected a list with an item for each rank (got {got}, expected "
                         f"{group.size()}).")


def _all_gather(group, object_list, obj):
    data = _bytes(obj)
    sizes = np.empty(group.size(), np.int64)
    yield group.comm.Iallgather(np.array([data.size]), sizes)
    everything = np.empty(int(sizes.sum()), np.uint8)
    yield group.comm.Iallgatherv(data if group.mpi is None else [data, group.mpi.BYTE],
                                 everything if group.mpi is None else [everything, sizes.tolist()])
    object_list[:] = [pickle.loads(part) for part in np.split(everything, np.cumsum(sizes)[:-1])]


def gather_object(obj, object_gather_list=None, dst=None, group=None, group_dst=None):
    """
    Gather the objects of all ranks on one rank.

    Parameters
    ----------
    obj : object
        What this rank gives.
    object_gather_list : list, optional
        On that rank only: list that the results are written to, of one item for each rank.
    dst : int, optional
        That rank, in the world; 0 if None.
    group : ProcessGroup, optional
    group_dst : int, optional
        The same as a rank in the group.

    Examples
    --------
    >>> from cygrad import distributed
    >>> distributed.init_process_group()
    >>> objects = [None]
    >>> distributed.gather_object("loss", objects)
    >>> objects
    ['loss']
    >>> distributed.destroy_process_group()
    """
    group = own_group("gather_object", group)
    if group is None:
        return
    root = group.rank_of("gather_object", dst or 0, group_dst)
    if group.own_rank == root:
        _check_places("gather_object", object_gather_list or [], group)
    elif object_gather_list is not None:
        raise ValueError("gather_object: object_gather_list is for the destination only (got one on rank "
                         f"{group.own_global_rank}). Omit it on other ranks.")
    group.run("gather_object", _gather(group, object_gather_list, obj, root), facts=(root,), several=True)


def _gather(group, object_list, obj, root):
    data, own = _bytes(obj), group.own_rank == root
    sizes = np.empty(group.size(), np.int64) if own else None
    yield group.comm.Igather(np.array([data.size]), sizes, root)
    everything = np.empty(int(sizes.sum()), np.uint8) if own else None
    yield group.comm.Igatherv(data, [everything, sizes.tolist()] if own and group.mpi else everything, root)
    if own:
        object_list[:] = [pickle.loads(part) for part in np.split(everything, np.cumsum(sizes)[:-1])]


def scatter_object_list(scatter_object_output_list, scatter_object_input_list=None, src=None, group=None,
                        group_src=None):
    """
    Scatter the objects of one rank, one to each rank.

    Parameters
    ----------
    scatter_object_output_list : list
        The object is written to its first item.
    scatter_object_input_list : list, optional
        On that rank only: one for each rank.
    src : int, optional
        That rank, in the world; 0 if None.
    group : ProcessGroup, optional
    group_src : int, optional
        The same as a rank in the group.

    Examples
    --------
    >>> from cygrad import distributed
    >>> distributed.init_process_group()
    >>> objects = [None]
    >>> distributed.scatter_object_list(objects, ["loss"])
    >>> objects
    ['loss']
    >>> distributed.destroy_process_group()
    """
    group = own_group("scatter_object_list", group)
    if group is None:
        return
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ValueError("scatter_object_list: scatter_object_output_list must be a list of at least one item (got "
                         f"{scatter_object_output_list!r}).")
    root = group.rank_of("scatter_object_list", src or 0, group_src)
    if group.own_rank == root:
        _check_places("scatter_object_list", scatter_object_input_list or [], group)
    group.run("scatter_object_list", _scatter(group, scatter_object_output_list, scatter_object_input_list, root),
              facts=(root,), several=True)


def _scatter(group, outputs, inputs, root):
    own = group.own_rank == root
    parts = [_bytes(thing) for thing in inputs] if own else None
    sizes = [part.size for part in parts] if own else None
    size = np.empty(1, np.int64)
    yield group.comm.Iscatter(np.array(sizes) if own else None, size, root)
    data = np.empty(int(size[0]), np.uint8)
    everything = np.concatenate(parts) if own else None
    yield group.comm.Iscatterv([everything, sizes] if own and group.mpi else everything, data, root)
    outputs[0] = pickle.loads(data)
