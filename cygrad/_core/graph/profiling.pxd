"""What a profiler is told: when an operation or a node begins, and when it ends; and taking operations over."""

from cygrad._core.arrays.value cimport value_t
from cygrad._core.graph.modes cimport thread_state
from cygrad._core.table.operator cimport Operator, operator_t

cdef enum:
    PROFILED = 4               # the flag of a thread that is profiled, beside those of anomaly mode
    WATCHED = 7                # any of them: backward tells somebody of each node
    GIVEN = 16                 # an operation has its results already, and is called only to be recorded

# Threads that are not profiled pay for one look at a flag.
cdef inline bint profiled() noexcept:
    return thread_state().anomaly & PROFILED != 0

# Something begins: what to end it with, or None if nobody wants to know.
cdef object begin_event(str name, str kind, list arguments)
cdef int end_event(object event) except -1

cdef tuple intercept(Operator operator, list values, object out, bint inplace)
cdef tuple take_given(str name)
cdef int fill_given(tuple given, const operator_t *op, value_t *results) except -1
