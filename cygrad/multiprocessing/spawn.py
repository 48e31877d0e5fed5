"""Run a function in several processes: `spawn`, and errors of failed processes."""

import multiprocessing
import multiprocessing.connection
import signal
import sys
import time
import traceback

__all__ = ["ProcessContext", "ProcessException", "ProcessExitedException", "ProcessRaisedException", "SpawnContext",
           "spawn", "start_processes"]


class ProcessException(Exception):
    """A process has failed: its number is ``error_index``, and ``pid`` what the system called it.

    Examples
    --------
    >>> from cygrad.multiprocessing import ProcessException
    >>> ProcessException("failed", error_index=1, pid=10).error_index
    1
    """

    def __init__(self, msg, error_index, pid):
        super().__init__(msg)
        self.msg, self.error_index, self.pid = msg, error_index, pid

    def __reduce__(self):
        return type(self), tuple(vars(self).values())


class ProcessRaisedException(ProcessException):
    """A process has raised an exception, whose traceback is the message.

    Examples
    --------
    >>> from cygrad.multiprocessing import ProcessRaisedException, start_processes
    >>> try:
    ...     start_processes(len, start_method="fork")
    ... except ProcessRaisedException as error:
    ...     print(error.error_index)
    0
    """


class ProcessExitedException(ProcessException):
    """A process has ended with another exit code than zero, or by a signal.

    Examples
    --------
    >>> import os
    >>> from cygrad.multiprocessing import ProcessExitedException, start_processes
    >>> try:
    ...     start_processes(os._exit, nprocs=2, start_method="fork")
    ... except ProcessExitedException as error:
    ...     print(error.exit_code)
    1
    """

    def __init__(self, msg, error_index, error_pid, exit_code, signal_name=None):
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name


def _run(function, number, args, errors):
    """Main function of each process."""
    try:
        function(number, *args)
    except KeyboardInterrupt:
        pass                                     # the parent reports it
    except Exception:
        errors.put(traceback.format_exc())
        sys.exit(1)


class ProcessContext:
    """The processes that `start_processes` has started.

    Examples
    --------
    >>> import time
    >>> context = cygrad.multiprocessing.start_processes(time.sleep, nprocs=2, join=False, start_method="fork")
    >>> len(context.pids())
    2
    >>> while not context.join():
    ...     pass
    """

    def __init__(self, processes, errors):
        self.processes = processes
        self._errors = errors
        self._left = {process.sentinel: number for number, process in enumerate(processes)}

    def pids(self):
        """Return the process ids."""
        return [process.pid for process in self.processes]

    def join(self, timeout=None, grace_period=None):
        """
        Wait for the next process to exit, and terminate the others if it failed.

        Parameters
        ----------
        timeout : float, optional
            Maximum seconds to wait.
        grace_period : float, optional
            Seconds in which the others may exit after a failure.

        Returns
        -------
        bool
            Whether all have exited.

        Raises
        ------
        ProcessRaisedException, ProcessExitedException
            If a process failed.
        """
        if not self._left:
            return True
        failed = None
        for sentinel in multiprocessing.connection.wait(list(self._left), timeout):
            number = self._left.pop(sentinel)
            self.processes[number].join()
            if self.processes[number].exitcode:
                failed = number
                break
        if failed is None:
            return not self._left
        self._end_all(grace_period)
        raise self._error(failed)

    def _end_all(self, grace_period):
        limit = time.monotonic() + (grace_period or 0)
        for process in self.processes if grace_period else ():
            process.join(max(0, limit - time.monotonic()))
        for process in self.processes:
            if process.is_alive():
                process.terminate()
        limit = time.monotonic() + 30
        for process in self.processes:
            process.join(max(0, limit - time.monotonic()))
            if process.is_alive():
                process.kill()
            process.join()

    def _error(self, number):
        process = self.processes[number]
        if not self._errors[number].empty():
            return ProcessRaisedException(
                f"process {number} has raised an exception:\n{self._errors[number].get()}", number,
                process.pid)
        if process.exitcode < 0:
            name = signal.Signals(-process.exitcode).name
            return ProcessExitedException(f"process {number} was ended by {name}", number, process.pid,
                                          process.exitcode, name)
        return ProcessExitedException(f"process {number} has ended with exit code {process.exitcode}", number,
                                      process.pid, process.exitcode)


class SpawnContext(ProcessContext):
    """The processes that `spawn` has started.

    Examples
    --------
    >>> import operator
    >>> context = cygrad.multiprocessing.spawn(operator.add, (1,), nprocs=1, join=False)
    >>> context.join()
    True
    """


def start_processes(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn"):
    """
    Run ``fn(number, *args)`` in several processes.

    Parameters
    ----------
    fn : callable
        Defined at the top level of a module, unless processes are forked.
    args : tuple
    nprocs : int, default 1
    join : bool, default True
        Whether to wait until all have exited.
    daemon : bool, default False
        Whether to terminate the processes at the exit of this one.
    start_method : {"spawn", "fork", "forkserver"}

    Returns
    -------
    ProcessContext or None
        None after waiting.

    Examples
    --------
    >>> import operator
    >>> cygrad.multiprocessing.start_processes(operator.add, (1,), nprocs=2, start_method="fork")
    """
    return _start(ProcessContext, fn, args, nprocs, join, daemon, start_method)


def spawn(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn"):
    """
    Run ``fn(number, *args)`` in several spawned processes; see `start_processes`.

    Parameters
    ----------
    fn, args, nprocs, join, daemon
        As for `start_processes`.
    start_method : {"spawn"}

    Returns
    -------
    SpawnContext or None

    Examples
    --------
    >>> import operator
    >>> cygrad.multiprocessing.spawn(operator.add, (1,), nprocs=2)
    """
    return _start(SpawnContext, fn, args, nprocs, join, daemon, start_method)


def _start(kind, function, args, count, join, daemon, method):
    context = multiprocessing.get_context(method)
    processes, errors = [], []
    for number in range(count):
        errors.append(context.SimpleQueue())
        processes.append(context.Process(target=_run, args=(function, number, args, errors[-1]), daemon=daemon))
        processes[-1].start()
    started = kind(processes, errors)
    if not join:
        return started
    while not started.join():
        pass
    return None
