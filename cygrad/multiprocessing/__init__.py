"""
Python's `multiprocessing`, with tensors in shared memory.

Has all names of Python's module. Tensors in the arguments of a `Process` or in a `Queue` are moved to shared memory,
not copied; `share_memory_` and ``Module.share_memory`` move them immediately, for example for Hogwild training.
Processes may be forked or spawned.
"""

import multiprocessing
from multiprocessing import *  # noqa: F403

from cygrad.multiprocessing import memory, reductions
from cygrad.multiprocessing.spawn import (
    ProcessContext,
    ProcessException,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    spawn,
    start_processes,
)

__all__ = [
    *multiprocessing.__all__, "ProcessContext", "ProcessException", "ProcessExitedException", "ProcessRaisedException",
    "SpawnContext", "get_all_sharing_strategies", "get_sharing_strategy", "set_sharing_strategy", "spawn",
    "start_processes",
]


def get_all_sharing_strategies():
    """Return the supported sharing strategies: {"file_descriptor"}.

    Examples
    --------
    >>> sorted(cygrad.multiprocessing.get_all_sharing_strategies())
    ['file_descriptor']
    """
    return {"file_descriptor"}


def get_sharing_strategy():
    """Return the sharing strategy.

    Examples
    --------
    >>> cygrad.multiprocessing.get_sharing_strategy() in cygrad.multiprocessing.get_all_sharing_strategies()
    True
    """
    return "file_descriptor"


def set_sharing_strategy(new_strategy):
    """
    Set the sharing strategy; file descriptors are always used.

    Parameters
    ----------
    new_strategy : {"file_descriptor", "file_system"}
        Both are taken; descriptors are passed on in any case, so nothing is left in the file system.

    Examples
    --------
    >>> cygrad.multiprocessing.set_sharing_strategy("file_system")
    """
    if new_strategy not in ("file_descriptor", "file_system"):
        raise ValueError(f"set_sharing_strategy: expected 'file_descriptor' or 'file_system' (got {new_strategy!r}).")


reductions.register()
