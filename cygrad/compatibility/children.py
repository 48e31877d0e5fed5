"""Processes that a program starts find the stand-in in place, too: those that are not forked have to be told."""

import multiprocessing.spawn

__all__ = ["prepare"]

_plain_data = multiprocessing.spawn.get_preparation_data


class _Beginning:
    """Something that, unpickled in the new process, puts the stand-in in place there."""

    def __reduce__(self):
        from cygrad.compatibility import stand_in
        return stand_in, ()


def _preparation_data(name):
    """What a new process unpickles first, before it imports the program."""
    return {**_plain_data(name), "stand_in": _Beginning()}


def prepare():
    """Let processes that are spawned, or come from a fork server, begin with the stand-in."""
    multiprocessing.spawn.get_preparation_data = _preparation_data
