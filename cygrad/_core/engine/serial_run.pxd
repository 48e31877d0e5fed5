"""Execution of a plan on one thread."""

from libc.stdint cimport int64_t
from cygrad._core.engine.plan cimport plan_t

cdef enum:
    FINISHED = -1             # the plan is done
    NEEDS_PYTHON = -2         # the item at *place needs the calling thread and the GIL
    CHECK_SIGNALS = -3     # some time has passed: check for signals

# Run from *place on; returns one of the above, or an error status.
cdef int advance(plan_t *plan, int64_t *place, bint keep) noexcept nogil
