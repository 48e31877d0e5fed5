"""Pending collectives: polling makes progress, and waiting has a time limit."""

import threading
import time

from cygrad._core.graph.inplace import increment_version
from cygrad.distributed.errors import DistBackendError
from cygrad.distributed.future import Future, _Later, in_turn, stage

__all__ = ["Work", "failing", "finish_all", "seconds_of", "written"]

# Poll for a short time, in `Progress`, then sleep between polls.
IMPATIENT = 2e-2          # seconds to wait for a turn, which is no MPI request
SHORTEST, LONGEST = 20e-6, 1e-3
ROLL_CALL = 0.25          # seconds between two checks of who else waits
# Pending operations: MPI may write to their memory until they complete, even if their handles are dropped.
_under_way = set()


class Work(Future):
    """
    A handle of a collective that was called with ``async_op=True``.

    MPI brings communication forward while it is called; so does every question to this handle.

    Parameters
    ----------
    group : ProcessGroup
    name : str
        Of the operation, in messages.
    steps : generator
        Starts one request of MPI after the other, each when the one before is complete, and returns the result.
    partners : list of int, optional
        The ranks that have to come; those of the group if None.
    detail : str or callable, optional
        What it is about, in messages.
    several : bool
        Whether there may be several steps.
    request : MPI.Request or Reduction, optional
        The first step's, if it has been started, and has been asked for a short time.

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
        _under_way.add(self)
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
            _under_way.discard(self)
            if self._queued:
                self.group.queue.pop(self, None)
            if isinstance(self._error, (TypeError, ValueError)):
                raise self._error

    def _test(self):
        """Make progress; -> whether it is complete."""
        if not self._lock.acquire(blocking=False):       # another thread does
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
        """Poll for a short time; -> whether to go on polling, or to sleep in between."""
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
        """Return whether it is complete; makes progress."""
        return self._finished or self._test()

    def is_success(self):
        """Return whether it is complete, without an error."""
        return self.is_completed() and self._error is None

    def exception(self):
        """Return the error, or None."""
        return self._error

    def result(self):
        """Return the tensors that were written."""
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
            In seconds; that of the group if None.

        Returns
        -------
        list of Tensor or None
            What `result` returns.

        Raises
        ------
        DistBackendError
            If the time is up; it says which ranks have not come. The group cannot be used any more.
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
                                       f"(got it from {self.told()}). All ranks have to pass tensors of one size and "
                                       "dtype; CYGRAD_DISTRIBUTED_DEBUG=1 names those that do not.") from self._error
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
                roll.look(self)
            if now - begin > timeout + (2 * ROLL_CALL if roll else 0):      # so that all have told that they wait
                raise DistBackendError(f"{self.name}: the time is up (got {timeout:g} seconds on rank "
                                       f"{self.group.own_global_rank} in {self.told()}). "
                                       f"{roll.who_is_missing(self) if roll else ''}")

    def told(self):
        """Describe it, for messages."""
        detail = self.detail() if callable(self.detail) else self.detail
        number = f"number {self.number}{' of those that follow others' if self.channel[1] else ''}"
        return (f"{self.name}, {number if self.partners is None else 'a message'} of "
                f"{self.group.name}{', ' + detail if detail else ''}")


def failing(error):
    """Steps that end with an error."""
    raise error
    yield


def seconds_of(timeout, otherwise):
    """Return a time in seconds, given as a number or a timedelta."""
    if timeout is None:
        return otherwise
    seconds = timeout.total_seconds() if hasattr(timeout, "total_seconds") else timeout
    if not isinstance(seconds, (int, float)) or not seconds > 0:
        raise ValueError(f"timeout: expected a positive number of seconds or a timedelta (got {timeout!r}).")
    return seconds


def written(*tensors):
    """Count an in-place operation on tensors that a collective has written to; -> the tensors."""
    increment_version(tensors[0] if len(tensors) == 1 else tensors)
    return list(tensors)


def finish_all(timeout):
    """Wait for all pending work."""
    for work in list(_under_way):
        work.wait(timeout)
