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
    """Raised if a collective does not complete: after the timeout, if a rank has exited, or if MPI reports an error.

    Examples
    --------
    >>> from cygrad import distributed
    >>> issubclass(distributed.DistBackendError, distributed.DistError)
    True
    """
