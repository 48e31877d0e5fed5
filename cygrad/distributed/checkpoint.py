"""Checkpoints of a job: one file, written atomically, and read by one rank."""

import contextlib
import io
import os
import tempfile
import traceback

from cygrad import Tensor, no_grad
from cygrad.distributed.objects import broadcast_object_list
from cygrad.distributed.world import is_initialized, member
from cygrad.serialization import load as load_file
from cygrad.serialization import save as save_file

__all__ = ["load", "save"]


def save(state_dict, *, checkpoint_id, process_group=None):
    """
    Write a checkpoint on rank 0. All ranks must call it; the file exists when it returns.

    The file is written under another name, synchronized to disk, and renamed; if that fails, the previous file is
    unchanged.

    Parameters
    ----------
    state_dict : object
        Object for ``cygrad.save``; that of the first rank of the group is saved.
    checkpoint_id : str or path
        Path of the file.
    process_group : ProcessGroup, optional
        Default group if None.

    Raises
    ------
    RuntimeError
        On all ranks, if the file cannot be written.

    Examples
    --------
    >>> from cygrad.distributed import checkpoint
    >>> checkpoint.save({"weight": cygrad.ones(2), "epoch": 3}, checkpoint_id="job.checkpoint")
    >>> checkpoint.load(checkpoint_id="job.checkpoint")
    {'weight': tensor([1., 1.]), 'epoch': 3}
    """
    def write():
        path = os.path.abspath(os.fspath(checkpoint_id))
        handle, name = tempfile.mkstemp(prefix=f".{os.path.basename(path)}.", dir=os.path.dirname(path))
        try:
            with os.fdopen(handle, "wb") as file:
                save_file(state_dict, file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(name, path)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name)
            raise
        folder = os.open(os.path.dirname(path), os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    _on_first_rank("checkpoint.save", write, process_group)


def load(state_dict=None, *, checkpoint_id, process_group=None):
    """
    Read a checkpoint on rank 0 and send it to all ranks. All ranks must call it.

    Parameters
    ----------
    state_dict : dict, optional
        Destination: tensors in it, and in nested dicts, are set to the saved values, in place; other entries are
        replaced.
    checkpoint_id : str or path
        Path of the file; it needs to exist on rank 0 only.
    process_group : ProcessGroup, optional
        Default group if None.

    Returns
    -------
    object
        The saved object.

    Raises
    ------
    RuntimeError
        On all ranks, if the file cannot be read.

    Examples
    --------
    >>> from cygrad.distributed import checkpoint
    >>> from cygrad import distributed
    >>> distributed.init_process_group()
    >>> checkpoint.save({"step": 3}, checkpoint_id="state.pt")
    >>> checkpoint.load(checkpoint_id="state.pt")
    {'step': 3}
    >>> distributed.destroy_process_group()
    """
    def read():
        with open(checkpoint_id, "rb") as file:
            return file.read()
    found = load_file(io.BytesIO(_on_first_rank("checkpoint.load", read, process_group)))
    if state_dict is not None:
        with no_grad():
            _fill(state_dict, found, "state_dict")
    return found


def _on_first_rank(operation, work, process_group):
    """Run a function on the first rank and return its result on all ranks, or raise its error on all."""
    if not is_initialized():
        return work()
    group = member(process_group)
    outcome, error = [None, None], None
    if group.own_rank == 0:
        try:
            outcome[0] = work()
        except Exception as caught:
            error = caught
            outcome[1] = "".join(traceback.format_exception_only(caught)).strip()
    broadcast_object_list(outcome, group=group, group_src=0)
    if outcome[1] is not None:
        raise RuntimeError(f"{operation}: rank {group.ranks[0]} failed (got {outcome[1]}). Nothing was "
                           "changed.") from error
    return outcome[0]


def _fill(target, found, place):
    if not isinstance(found, dict) or not target.keys() <= found.keys():
        missing = [key for key in target if not isinstance(found, dict) or key not in found]
        raise ValueError(f"checkpoint.load: {place} has entries that were not saved (got {missing}). Remove them.")
    for key, value in target.items():
        if isinstance(value, Tensor):
            if tuple(value.shape) != tuple(found[key].shape):
                raise ValueError(f"checkpoint.load: {place}[{key!r}] must have the saved shape (got "
                                 f"{tuple(value.shape)}, expected {tuple(found[key].shape)}).")
            value.copy_(found[key])
        elif isinstance(value, dict):
            _fill(value, found[key], f"{place}[{key!r}]")
        else:
            target[key] = found[key]
