"""Errors of distributed jobs."""

__all__ = ["DistBackendError", "DistError"]


class DistError(RuntimeError):
    """Base class of errors in the communication of a job.

    Examples
    --------
    >>> from cygrad import distributed
    >>> issubclass(distributed.DistError, RuntimeError)
    True
    """


class DistBackendError(DistError):
    """Raised if a collective did not complete: after the timeout, if a rank has left, or if MPI reported an error.

    Examples
    --------
    >>> from cygrad import distributed
    >>> issubclass(distributed.DistBackendError, distributed.DistError)
    True
    """
