"""Running a plan: nodes one after the other, gradients moved from each to the next. No GIL."""

from libc.stdint cimport int32_t, int64_t, uint32_t
from cygrad._core.array cimport array_t
from cygrad._core.plan cimport item_t, plan_t

# When to look for signals next.
ctypedef struct patience_t:
    int64_t work              # elements touched since the clock was read
    int64_t deadline          # nanoseconds; 0 before the first look at the clock

# Count a node that has run; True once in a few hundredths of a second.
cdef bint run_out(patience_t *patience, int64_t work) noexcept nogil

cdef enum:
    MOST_SWEPT = 16

# What has been run at once: an item, and those swept with it.
ctypedef struct swept_t:
    int32_t count
    item_t *items[MOST_SWEPT]

# Run the item at a place of the order, whose gradient is there, along with those behind it that may be swept with it;
# these are marked `swept`. False: it has not been run, as there is nothing to gain. *status: what failed, or OK.
ctypedef bint (*sweeper_t)(plan_t *plan, int64_t place, bint keep, int *status, swept_t *done) noexcept nogil
# What does so for nodes of `elements` and more; it knows what operators compute and is therefore above all this.
cdef void set_sweeper(sweeper_t sweeper, int64_t elements) noexcept

# Run a native item and deliver what it gives; with it whatever may be swept.
cdef int run_items(plan_t *plan, item_t *item, bint keep, swept_t *done) noexcept nogil
# Run it alone.
cdef int run_item(plan_t *plan, item_t *item, bint keep) noexcept nogil
# The arguments of the item's operator whose gradients somebody behind them needs.
cdef uint32_t wanted_arguments(plan_t *plan, const item_t *item) noexcept nogil
# Run only its node, on the gradients in its buffers; out[n_edges] are the caller's.
cdef int run_node(plan_t *plan, item_t *item, array_t **out, bint keep) noexcept nogil
# Hand the gradient of an edge (taken over) to its target.
cdef int deliver(plan_t *plan, item_t *item, int edge, array_t *gradient) noexcept nogil
# *sum += part; takes `part` over and replaces *sum where it cannot be added to in place.
cdef int add_part(array_t **sum, array_t *part) noexcept nogil
