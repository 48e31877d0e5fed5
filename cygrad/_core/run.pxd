"""Running a plan: nodes one after the other, gradients moved from each to the next. No GIL."""

from libc.stdint cimport int64_t, uint32_t
from cygrad._core.array cimport array_t
from cygrad._core.plan cimport item_t, plan_t

# When to look for signals next.
ctypedef struct patience_t:
    int64_t work              # elements touched since the clock was read
    int64_t deadline          # nanoseconds; 0 before the first look at the clock

# Count a node that has run; True once in a few hundredths of a second.
cdef bint run_out(patience_t *patience, int64_t work) noexcept nogil

# Run an item and deliver what it gives.
cdef int run_item(plan_t *plan, item_t *item, bint keep) noexcept nogil
# The arguments of the item's operator whose gradients somebody behind them needs.
cdef uint32_t wanted_arguments(plan_t *plan, const item_t *item) noexcept nogil
# Run only its node, on the gradients in its buffers; out[n_edges] are the caller's.
cdef int run_node(plan_t *plan, item_t *item, array_t **out, bint keep) noexcept nogil
# Hand the gradient of an edge (taken over) to its target.
cdef int deliver(plan_t *plan, item_t *item, int edge, array_t *gradient) noexcept nogil
# *sum += part; takes `part` over and replaces *sum where it cannot be added to in place.
cdef int add_part(array_t **sum, array_t *part) noexcept nogil
