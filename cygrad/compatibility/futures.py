"""``futures``: results that are available later, with callbacks."""

import concurrent.futures

from cygrad._core.threads.parallel import renewed_at_fork

__all__ = ["Future", "collect_all", "wait_all"]


class Future:
    """
    A result that is available later.

    Examples
    --------
    >>> from cygrad.compatibility.futures import Future
    >>> later = Future()
    >>> doubled = later.then(lambda future: 2 * future.wait())
    >>> later.set_result(21)
    >>> doubled.wait()
    42
    """

    def __init__(self, *, devices=None):
        self._future = concurrent.futures.Future()
        renewed_at_fork(self._future._condition)

    @classmethod
    def __class_getitem__(cls, item):
        return cls

    def done(self):
        """Return whether the result or an error is available."""
        return self._future.done()

    def wait(self):
        """Wait for the result and return it, or raise the error."""
        return self._future.result()

    def value(self):
        """Return the result, which must be available."""
        if not self.done():
            raise RuntimeError("Future: the result is not available yet. Use wait().")
        return self.wait()

    def set_result(self, result):
        """Set the result, and run the callbacks."""
        self._future.set_result(result)

    def set_exception(self, result):
        """Set an error."""
        self._future.set_exception(result)

    def then(self, callback):
        """Return a Future of ``callback(future)``, called when the result is available."""
        following = Future()

        def go_on(_):
            try:
                following.set_result(callback(self))
            except Exception as error:
                following.set_exception(error)

        self._future.add_done_callback(go_on)
        return following

    def add_done_callback(self, callback):
        """Call ``callback(future)`` when the result is available."""
        self._future.add_done_callback(lambda _: callback(self))


def collect_all(futures):
    """Return a Future of all futures."""
    futures = list(futures)
    collected = Future()
    left = [len(futures)]

    def count(_):
        left[0] -= 1
        if left[0] == 0:
            collected.set_result(futures)

    for future in futures:
        future.add_done_callback(count)
    if not futures:
        collected.set_result([])
    return collected


def wait_all(futures):
    """Wait for all futures and return their results."""
    return [future.wait() for future in collect_all(futures).wait()]
