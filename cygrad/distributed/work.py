"""Pending collectives."""

import threading
import time

from cygrad._core.graph.inplace import increment_version
from cygrad.distributed.errors import DistBackendError
from cygrad.distributed.future import Future, _Later, in_turn, stage

__all__ = ["Work", "failing", "finish_all", "seconds_of", "written"]

# Poll for a short time in `Progress`, then sleep between polls.
IMPATIENT = 2e-2          # seconds to wait for a turn, which is not an MPI request
SHORTEST, LONGEST = 20e-6, 1e-3
ROLL_CALL = 0.25          # seconds between two checks of waiting ranks
# Pending operations, kept alive: MPI can write to their memory until they complete.
_in_progress = set()


class Work(Future):
    """
    Handle of a collective that was called with ``async_op=True``.

    MPI communicates only during calls; all methods of this handle make progress.

    Parameters
    ----------
    group : ProcessGroup
    name : str
        Name of the operation for error messages.
    steps : generator
        Generator that starts MPI requests one after the other, each when the previous one is complete, and returns the
        result.
    partners : list of int, optional
        Ranks that take part; those of the group if None.
    detail : str or callable, optional
        Description for error messages.
    several : bool
        Whether there can be several steps.
    request : MPI.Request or Reduction, optional
        Request of the first step, if it has been started and polled.

    Examples
    --------
    >>> from cygrad import distributed
    >>> distributed.init_process_group()
    >>> work = distributed.all_reduce(cygrad.ones(2), async_op=True)
    >>> work.wait()
    [tensor([1., 1.])]
    >>> distributed.destroy_process_group()
    """

    def __init__(self, group, name, steps, partners=None, detail=None, several=False, request=None):
        self._value = self._error = None
        self._request, self._asked = request, request is not None
        self._finished = False
        self.group, self.name, self.partners, self.detail = group, name, partners, detail
        self.channel = group.number, stage.later
        self.number = group.called[stage.later]
        self._steps = steps
        self._lock = threading.Lock()          # MPI allows one thread at a time
        self._queued = several and not stage.later
        if self._queued:
            group.queue[self] = None
        _in_progress.add(self)
        if request is None:
            self._go_on()

    def _go_on(self):
        """Start the next request, or store the result."""
        try:
            self._request = next(self._steps)
        except StopIteration as stop:
            self._value, self._finished = stop.value, True
        except BaseException as error:
            self._error, self._finished = error, True
        if self._finished:
            self._request = self._steps = None
            _in_progress.discard(self)
            if self._queued:
                self.group.queue.pop(self, None)
            if isinstance(self._error, (TypeError, ValueError)):
                raise self._error

    def _test(self):
        """Make progress; return whether it is complete."""
        if not self._lock.acquire(blocking=False):       # another thread makes progress
            return self._finished
        try:
            while not self._finished:
                request = self._request
                try:
                    if request is not None and not request.Test():
                        return False
                except Exception as error:
                    self._steps = failing(error)
                    self._go_on()
                    break
                self._request = None
                if self._queued:
                    if not in_turn(self, False):
                        return False
                    with _Later():
                        self._go_on()
                else:
                    self._go_on()
            return True
        finally:
            self._lock.release()

    def _ask(self):
        """Poll for a short time; return whether to continue polling instead of sleeping."""
        if not self._lock.acquire(blocking=False):
            return False
        try:
            return self.group.progress.ask(self._request)
        except Exception as error:
            self._steps, self._request = failing(error), None
            return True
        finally:
            self._lock.release()

    def _advance(self, wait):
        if wait:
            self.wait()
        return self._finished or self._test()

    def is_completed(self):
        """Make progress and return whether it is complete."""
        return self._finished or self._test()

    def is_success(self):
        """Return whether it is complete, without an error."""
        return self.is_completed() and self._error is None

    def exception(self):
        """Return the error, or None."""
        return self._error

    def result(self):
        """Return the written tensors."""
        return self.value()

    def get_future(self):
        """Return a future, whose value is the list of the written tensors."""
        return self

    def wait(self, timeout=None):
        """
        Wait until it is complete.

        Parameters
        ----------
        timeout : timedelta or float, optional
            Time limit in seconds; that of the group if None.

        Returns
        -------
        list of Tensor or None
            Result of `result`.

        Raises
        ------
        DistBackendError
            After the timeout; the message lists the ranks that have not arrived. The group cannot be used any more.
        """
        test = self._test
        timeout = seconds_of(timeout, self.group.timeout)
        if not self._finished and not test():
            begin = time.monotonic()
            while not self._asked and self._ask() and not test() and time.monotonic() < begin + IMPATIENT:
                pass
            if not self._finished:
                self._wait_long(begin, timeout)
        if self._error is not None:
            if isinstance(self._error, Exception) and type(self._error).__module__.startswith("mpi4py"):
                raise DistBackendError(f"{self.name}: MPI reports {self._error} on rank {self.group.own_global_rank} "
                                       f"(got it from {self.describe()}). All ranks must pass tensors of one size and "
                                       "dtype; CYGRAD_DISTRIBUTED_DEBUG=1 lists the others.") from self._error
            raise self._error
        return self._value

    def _wait_long(self, begin, timeout):
        roll = self.group.roll
        pause, next_look = SHORTEST, begin + ROLL_CALL
        while not self._test():
            time.sleep(pause)
            now = time.monotonic()
            if now - begin > 50 * pause:
                pause = min(1.5 * pause, LONGEST)
            if now > next_look and roll is not None:
                next_look = now + ROLL_CALL
                roll.announce_and_check(self)
            if now - begin > timeout + (2 * ROLL_CALL if roll else 0):      # so that all ranks have sent their messages
                raise DistBackendError(f"{self.name}: timeout (got {timeout:g} seconds on rank "
                                       f"{self.group.own_global_rank} in {self.describe()}). "
                                       f"{roll.missing_ranks_text(self) if roll else ''}")

    def describe(self):
        """Return a description for error messages."""
        detail = self.detail() if callable(self.detail) else self.detail
        number = f"number {self.number}{' of those that follow others' if self.channel[1] else ''}"
        return (f"{self.name}, {number if self.partners is None else 'a message'} of "
                f"{self.group.name}{', ' + detail if detail else ''}")


def failing(error):
    """Steps that raise an error."""
    raise error
    yield


def seconds_of(timeout, otherwise):
    """Return a number or a timedelta in seconds."""
    if timeout is None:
        return otherwise
    seconds = timeout.total_seconds() if hasattr(timeout, "total_seconds") else timeout
    if not isinstance(seconds, (int, float)) or not seconds > 0:
        raise ValueError(f"timeout: expected a positive number of seconds or a timedelta (got {timeout!r}).")
    return seconds


def written(*tensors):
    """Increment the versions of tensors that a collective has written to; return the tensors."""
    increment_version(tensors[0] if len(tensors) == 1 else tensors)
    return list(tensors)


def finish_all(timeout):
    """Wait for all pending work."""
    for work in list(_in_progress):
        work.wait(timeout)
