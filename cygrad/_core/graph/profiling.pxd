"""What a profiler is told: when an operation or a node begins, and when it ends."""

from cygrad._core.graph.modes cimport thread_state

cdef enum:
    PROFILED = 4               # the flag of a thread that is profiled, beside those of anomaly mode
    WATCHED = 7                # any of them: backward tells somebody of each node

# Threads that are not profiled pay for one look at a flag.
cdef inline bint profiled() noexcept:
    return thread_state().anomaly & PROFILED != 0

# Something begins: what to end it with, or None if nobody wants to know.
cdef object begin_event(str name, str kind, list arguments)
cdef int end_event(object event) except -1
