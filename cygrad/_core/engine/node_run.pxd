"""Running a plan: nodes one after the other, gradients moved from each to the next. No GIL."""

from libc.stdint cimport int32_t, int64_t, uint32_t
from cygrad._core.arrays.array cimport array_t
from cygrad._core.engine.plan cimport item_t, plan_t

# When to look for signals next.
ctypedef struct signal_check_t:
    int64_t work              # elements touched since the clock was read
    int64_t deadline          # nanoseconds; 0 before the first look at the clock

# Count a node that has run; True once in a few hundredths of a second.
cdef bint should_check_signals(signal_check_t *patience, int64_t work) noexcept nogil

cdef enum:
    MOST_FUSED = 16

# What has been run at once: an item, and those fused with it.
ctypedef struct fused_t:
    int32_t count
    item_t *items[MOST_FUSED]

# Run the item at a place of the order, whose gradient is there, along with those after it that may be fused with it;
# these are marked `fused`. False: it has not been run, as there is nothing to gain. *status: what failed, or OK.
ctypedef bint (*fuser_t)(plan_t *plan, int64_t place, bint keep, int *status, fused_t *done) noexcept nogil
# What does so for nodes of `elements` and more; it knows what operators compute and is therefore above all this.
cdef void set_fuser(fuser_t fuser, int64_t elements) noexcept

# Run a native item and deliver what it gives; with it whatever may be fused.
cdef int run_items(plan_t *plan, item_t *item, bint keep, fused_t *done) noexcept nogil
# Run it alone.
cdef int run_item(plan_t *plan, item_t *item, bint keep) noexcept nogil
# The arguments of the item's operator whose gradients are needed.
cdef uint32_t wanted_arguments(plan_t *plan, const item_t *item) noexcept nogil
# Run only its node, on the gradients in its buffers; out[n_edges] are the caller's.
cdef int run_node(plan_t *plan, item_t *item, array_t **out, bint keep) noexcept nogil
# Hand the gradient of an edge (taken over) to its target.
cdef int deliver(plan_t *plan, item_t *item, int edge, array_t *gradient) noexcept nogil
# *sum += part; takes `part` over and replaces *sum where it cannot be added to in place.
cdef int add_part(array_t **sum, array_t *part) noexcept nogil
