"""
Python locks that are free in a forked child.

The fork handlers are compiled, so that no Python signal handler can raise between their steps.
"""

import os
from threading import RLock, get_ident
from weakref import ref

cdef enum:
    MAX_SECONDS = 10           # that a fork waits for a lock

cdef set _locks = set()        # weak references, which remove themselves
cdef dict _held = {}           # thread id -> locks that it holds during a fork
cdef type _reentrant = type(RLock())


def renewed_at_fork(lock):
    """
    Release a lock in a forked child, where the thread that held it does not exist.

    An RLock is acquired during the fork, so that the data it guards is consistent in the child.

    Parameters
    ----------
    lock : Lock, RLock or Condition of `threading`

    Returns
    -------
    lock
    """
    _locks.add(ref(lock, _locks.discard))
    return lock


cdef list _alive():
    return [lock for lock in [reference() for reference in list(_locks)] if lock is not None]


def _hold():
    cdef list held = []
    _held[get_ident()] = held
    for lock in _alive():
        if type(lock) is _reentrant and lock.acquire(timeout=MAX_SECONDS):
            held.append(lock)


def _release():
    for lock in _held.pop(get_ident(), ()):
        lock.release()


def _renew():
    _held.clear()
    for lock in _alive():
        lock._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_hold, after_in_parent=_release, after_in_child=_renew)
