"""State of hooks for the length of one backward."""

import threading

from cygrad._core.engine.plan import running

__all__ = ["PerBackward"]


class PerBackward(threading.local):
    """
    A value for each running backward.

    Hooks of one backward all run on the thread that called it, so every thread has its own values and none needs a
    lock. The next backward discards what an aborted one left.

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
        """Set it; no effect outside of backward."""
        calls = running()
        if calls:
            for call in self.values.keys() - set(calls):
                del self.values[call]
            self.values[calls[0]] = value

    def take(self, default=None):
        """Remove and return the value of the innermost backward of this thread, or `default`."""
        calls = running()
        return self.values.pop(calls[0], default) if calls else default
