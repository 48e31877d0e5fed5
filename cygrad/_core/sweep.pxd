"""Backward of element-wise nodes that follow each other, in one sweep over memory."""

from libc.stdint cimport int32_t, int64_t
from cygrad._core.plan cimport item_t, plan_t

cdef enum:
    MOST_NODES = 16

# The items that a sweep has run, in the order of the plan. They are marked `swept`.
ctypedef struct swept_t:
    int32_t count
    item_t *items[MOST_NODES]

# Run the item at `place` of the order, a native one whose gradient is there, along with those behind it that may be
# swept with it. False: it has not been run, as there is nothing to gain. *status: what failed, or OK.
cdef bint sweep(plan_t *plan, int64_t place, bint keep, int *status, swept_t *done) noexcept nogil
# For tests: elements from which nodes are swept (as many as can be: never).
cdef int64_t sweep_from
