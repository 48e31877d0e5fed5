"""State of hooks during one backward."""

import threading

from cygrad._core.engine.plan import running

__all__ = ["PerBackward"]


class PerBackward(threading.local):
    """
    A separate value for each running backward.

    All hooks of a backward run in the calling thread, so values are thread-local and need no lock. The next backward
    discards values of an aborted one.

    Examples
    --------
    >>> from cygrad.autograd.per_backward import PerBackward
    >>> PerBackward().take() is None        # outside of backward there is nothing
    True
    """

    def __init__(self):
        self.values = {}

    def get(self, default=None):
        """Return the value of the innermost backward of this thread, or `default`."""
        calls = running()
        return self.values.get(calls[0], default) if calls else default

    def set(self, value):
        """Set the value of the innermost backward; no effect outside of backward."""
        calls = running()
        if calls:
            for call in self.values.keys() - set(calls):
                del self.values[call]
            self.values[calls[0]] = value

    def take(self, default=None):
        """Remove and return the value of the innermost backward of this thread, or `default`."""
        calls = running()
        return self.values.pop(calls[0], default) if calls else default
