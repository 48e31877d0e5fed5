"""
Locks of Python's that a forked child has to find free.

The functions that run around a fork are compiled: a signal handler of Python's cannot raise between their steps.
"""

import os
from threading import RLock, get_ident
from weakref import ref

cdef enum:
    MOST_SECONDS = 10          # that a fork waits for a lock

cdef set _locks = set()        # weak references, which leave the set by themselves
cdef dict _held = {}           # of a thread that forks: the locks that it holds meanwhile
cdef type _reentrant = type(RLock())


def renewed_at_fork(lock):
    """
    Let a forked child find a lock free, although the thread that holds it does not exist there.

    A re-entrant lock is also held during the fork, so that what it guards is complete in the child.

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
        if type(lock) is _reentrant and lock.acquire(timeout=MOST_SECONDS):
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
