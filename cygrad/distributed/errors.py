"""What can go wrong between processes."""

__all__ = ["DistBackendError", "DistError"]


class DistError(RuntimeError):
    """Something between the processes of a job went wrong."""


class DistBackendError(DistError):
    """A collective did not come to its end: the time was up, a rank has left, or MPI reported an error."""
