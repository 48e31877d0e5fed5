"""Section of a program whose operations run in parallel."""

from libc.stdint cimport int32_t
from cygrad._core.threads.tasks cimport tasks_t

cdef class ParallelSection:
    cdef tasks_t tasks
    cdef readonly int start           # first operation
    cdef readonly int stop            # one past the last operation
