"""Running a plan on one thread."""

from libc.stdint cimport int64_t
from cygrad._core.engine.plan cimport plan_t

cdef enum:
    FINISHED = -1             # the plan is done
    NEEDS_PYTHON = -2         # the item at *place has to run on the calling thread, under the GIL
    CHECK_SIGNALS = -3     # some time has passed: the caller may want to be interrupted

# Run from *place on; returns one of the above, or the status of what failed.
cdef int advance(plan_t *plan, int64_t *place, bint keep) noexcept nogil
