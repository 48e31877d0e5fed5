"""The stand-in in child processes that are not forked."""

import multiprocessing.connection  # PyTorch imports it, and programs rely on that
import multiprocessing.spawn

__all__ = ["prepare"]

_plain_data = multiprocessing.spawn.get_preparation_data


class _Beginning:
    """An object that installs the stand-in when it is unpickled in the new process."""

    def __reduce__(self):
        from cygrad.compatibility import stand_in
        return stand_in, ()


def _preparation_data(name):
    """Return the object that a new process unpickles before it imports the program."""
    return {**_plain_data(name), "stand_in": _Beginning()}


def prepare():
    """Install the stand-in in processes started by spawn or forkserver."""
    multiprocessing.spawn.get_preparation_data = _preparation_data
