"""What a profiler is told: when an operation or a node begins, and when it ends."""

from cygrad._core.graph.modes cimport thread_state

import threading


class _Recorders(threading.local):
    """The recorder of each thread that is profiled."""

    current = None


_recorders = _Recorders()


cdef object begin_event(str name, str kind, list arguments):
    return _recorders.current.begin(name, kind, arguments) if profiled() and _recorders.current is not None else None


cdef int end_event(object event) except -1:
    recorder = _recorders.current
    if event is not None and recorder is not None:         # it may have been taken away in between
        recorder.end(event)
    return 0


def recorder():
    """The recorder of this thread, or None."""
    return _recorders.current


def set_recorder(recorder):
    """
    Tell `recorder` of every operation and node of this thread from now on; None: nobody.

    It has the methods ``begin(name, kind, arguments)``, which returns something, and ``end(that)``. While one is told
    of an operation, no others within it are reported.
    """
    former = _recorders.current
    _recorders.current = recorder
    if recorder is None:
        thread_state().anomaly &= ~PROFILED
    else:
        thread_state().anomaly |= PROFILED
    return former
