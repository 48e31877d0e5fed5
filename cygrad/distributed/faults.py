"""End of a job: a failure on one rank ends all, and no rank waits for one that has exited."""

import atexit
import sys
import time
import traceback

__all__ = ["install"]

PAUSE = 1e-3
FAREWELL = 0.2          # seconds for the launcher to flush output before Abort ends it, too


def install(comm, world):
    """
    End all ranks on an uncaught exception, and synchronize the exit of ranks.

    Parameters
    ----------
    comm : MPI.Comm
        Communicator of all ranks.
    world : object
        State with the open groups (``groups``) and the messages between collectives (``roll``).
    """
    before = sys.excepthook

    def report(kind, error, where):
        interrupted = issubclass(kind, KeyboardInterrupt)
        try:
            sys.stdout.flush()
            if interrupted:
                place = traceback.extract_tb(where)[-1] if where else None
                position = f" in {place.filename}, line {place.lineno}" if place else ""
                print(f"rank {comm.rank} of {comm.size} was interrupted{position}", file=sys.stderr)
            else:
                print(f"rank {comm.rank} of {comm.size} failed; the job is aborted:", file=sys.stderr, flush=True)
                before(kind, error, where)
            sys.stderr.flush()
            time.sleep(FAREWELL)
        finally:
            comm.Abort(130 if interrupted else 1)

    def leave():
        """Report ranks that exited early, without waiting for their answers; called before MPI is finalized."""
        from mpi4py import MPI
        if MPI.Is_finalized():
            return
        try:
            request = world.roll.leave(world.groups)
            while not request.Test():
                time.sleep(PAUSE)
                world.roll.receive()
            world.roll.receive()
        except KeyboardInterrupt:
            report(KeyboardInterrupt, KeyboardInterrupt(), None)

    sys.excepthook = report
    atexit.register(leave)
