"""
Futures of communication.

MPI requires that all ranks call collectives in the same order. A continuation (the second step of an operation, or a
function passed to ``then``) starts when a thread finds the first step complete, at different times on different ranks.
Therefore continuations use a separate communicator, in the order of the first steps.
"""

import threading

__all__ = ["Future", "in_turn", "stage"]


class _Stage(threading.local):
    """Whether this thread runs a continuation."""

    later = False


stage = _Stage()


class _Later:
    """Context manager for a continuation."""

    def __enter__(self):
        self.before, stage.later = stage.later, True

    def __exit__(self, *_):
        stage.later = self.before


def in_turn(one, wait):
    """Make progress on the predecessors of `one` in its group; return whether they are complete."""
    for other in list(one.group.queue):
        if other is one:
            break
        if not other._advance(wait):
            return False
    return True


class Future:
    """
    A value that will be available later.

    Calls of `done` and `wait` make progress; nothing runs in the background.

    Examples
    --------
    >>> from cygrad.distributed import Future
    >>> future = Future()
    >>> later = future.then(lambda future: future.value() + 1)
    >>> future.set_result(2)
    >>> later.wait()
    3
    """

    group = None                 # group whose communicators it uses

    def __init__(self, *, devices=None):
        self._value = None
        self._finished = False

    def _advance(self, wait):
        """Make progress, to completion if `wait`; return whether it is complete."""
        if wait and not self._finished:
            raise RuntimeError("Future: wait() before set_result() would block forever. Call set_result first.")
        return self._finished

    def done(self):
        """Return whether the value is available."""
        return self._finished or self._advance(False)

    def wait(self):
        """Wait for the value, and return it."""
        if not self._finished:
            self._advance(True)
        return self._value

    def value(self):
        """Return the value, which must be available."""
        if not self.done():
            raise RuntimeError("Future: the value is not available yet (got an incomplete future). Use wait().")
        return self._value

    def set_result(self, result):
        """Set the value."""
        if self._finished:
            raise RuntimeError("Future: the result is already set (got a second one).")
        self._value, self._finished = result, True

    def then(self, callback):
        """
        Return the future of a function of this future's value.

        Parameters
        ----------
        callback : callable
            Called with this future. If it returns a future, its value is used.

        Returns
        -------
        Future
        """
        return _Then(self, callback)


class _Then(Future):
    """Return the result of a function of another future."""

    def __init__(self, source, callback):
        super().__init__()
        self._source, self._callback = source, callback
        self.group = source.group if getattr(source, "partners", None) is None else None     # the order is irrelevant
        self._queued = self.group is not None and not stage.later
        if self._queued:
            self.group.queue[self] = None

    def _advance(self, wait):
        while not self._finished:
            if not (self._source._finished or self._source._advance(wait)):
                return False
            if self._callback is None:
                self._end(self._source._value)
                break
            if self._queued and not in_turn(self, wait):
                return False
            callback, self._callback = self._callback, None
            try:
                with _Later():
                    result = callback(self._source)
            except BaseException:
                self._end(None)
                raise
            if isinstance(result, Future):
                self._source = result
            else:
                self._end(result)
        return True

    def _end(self, result):
        self.set_result(result)
        self._source = None
        if self._queued:
            self.group.queue.pop(self, None)
