"""Callbacks at the end of a backward."""

from libc.stdint cimport int64_t
from cygrad._core.engine.plan cimport plan_t, plans_of_thread

callbacks = {}


cdef int call_back(int64_t call) except -1:
    cdef list functions = callbacks.get(call, [])
    cdef Py_ssize_t done = 0
    while done < len(functions):             # a callback may queue another
        functions[done]()
        done += 1
    return 0


def queue_callback(callback):
    """
    Queue a callback for the end of the running backward.

    That is the innermost running backward of this thread; it is called from there, as Python code in backward is,
    after all nodes have run and before the call returns. Functions are called in the order in which they were queued;
    one that is queued by another comes last. If backward fails, none is called.

    Parameters
    ----------
    callback : callable
        Called without arguments.

    Raises
    ------
    RuntimeError
        Outside of backward.

    Examples
    --------
    >>> import cygrad
    >>> x = cygrad.ones(2, requires_grad=True)
    >>> def hook(grad):
    ...     cygrad.autograd.graph.queue_callback(lambda: print("gradient:", x.grad))
    >>> handle = x.register_hook(hook)
    >>> (x * 3).sum().backward()
    gradient: tensor([3., 3.])
    """
    cdef plan_t *plan
    if not callable(callback):
        raise TypeError(f"queue_callback: the callback must be callable (got {type(callback).__name__}).")
    if plans_of_thread(&plan, 1) == 0:
        raise RuntimeError("queue_callback: final callbacks can only be installed during backward pass (got a call "
                           "outside of it). Call it in a hook or in the backward of a custom Function.")
    callbacks.setdefault(plan.id, []).append(callback)
