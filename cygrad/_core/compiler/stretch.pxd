"""Memory of a stretch of operations that threads share."""

from libc.stdint cimport int32_t
from cygrad._core.threads.tasks cimport tasks_t

cdef class Stretch:
    cdef tasks_t tasks
    cdef readonly int start           # its first operation
    cdef readonly int stop            # the first one behind it
