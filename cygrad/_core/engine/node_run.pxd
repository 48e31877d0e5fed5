"""Execution of a plan: nodes one after the other, with gradients moved to the next. No GIL."""

from libc.stdint cimport int32_t, int64_t, uint32_t
from cygrad._core.arrays.array cimport array_t
from cygrad._core.engine.plan cimport item_t, plan_t

# ------------------------------------------------------------------------------------------------------------- node run

# When to check for signals next.
ctypedef struct signal_check_t:
    int64_t work              # elements accessed since the clock was read
    int64_t deadline          # nanoseconds; 0 before the clock was first read

# Count a node that has run; True every few hundredths of a second.
cdef bint should_check_signals(signal_check_t *check, int64_t work) noexcept nogil

cdef enum:
    MAX_FUSED_NODES = 16

# An item, and those fused with it.
ctypedef struct fused_t:
    int32_t count
    item_t *items[MAX_FUSED_NODES]

# Run the item at a position of the order, whose gradient has been computed, with later items that can be fused with
# it; mark these `fused`. Return False without running it if fusion gains nothing. *status: the error, or OK.
ctypedef bint (*fuser_t)(plan_t *plan, int64_t position, bint keep, int *status, fused_t *done) noexcept nogil
# Set that function, for nodes of at least `elements` elements. It reads formulas, so it belongs to a higher layer.
cdef void set_fuser(fuser_t fuser, int64_t elements) noexcept

# Run a native item with the items fused with it, and deliver the gradients.
cdef int run_items(plan_t *plan, item_t *item, bint keep, fused_t *done) noexcept nogil
# Run an item unfused.
cdef int run_item(plan_t *plan, item_t *item, bint keep) noexcept nogil
# Return the arguments of the item's operator whose gradients are needed.
cdef uint32_t wanted_arguments(plan_t *plan, const item_t *item) noexcept nogil
# Run only the node of an item, on the gradients in its buffers; out[n_edges] belongs to the caller.
cdef int run_node(plan_t *plan, item_t *item, array_t **out, bint keep) noexcept nogil
# Pass the gradient of an edge (taken over) to its target.
cdef int deliver(plan_t *plan, item_t *item, int edge, array_t *gradient) noexcept nogil
# *sum += contribution; takes `contribution` over and replaces *sum if it cannot be modified in place.
cdef int add_contribution(array_t **sum, array_t *contribution) noexcept nogil

# ----------------------------------------------------------------------------------------------------------- serial run

# Execution of a plan on one thread.

cdef enum:
    FINISHED = -1             # the plan is done
    NEEDS_PYTHON = -2         # the item at *position needs the calling thread and the GIL
    CHECK_SIGNALS = -3        # some time has passed: check for signals

# Run from *position on; returns one of the above, or an error status.
cdef int advance(plan_t *plan, int64_t *position, bint keep) noexcept nogil

# ---------------------------------------------------------------------------------------------------------- watched run

# Execution of nodes in anomaly mode: one at a time, checking each result for nan.

# Run a native item and deliver its gradients. With `look`, *nan_in is the index of a gradient that contains nan, if
# any, and nothing is delivered; else -1. *clean: no earlier nan in this backward.
cdef int run_watched_item(plan_t *plan, item_t *item, bint keep, bint look, bint *clean, int *nan_in) noexcept nogil

# --------------------------------------------------------------------------------------------------------- parallel run

# Execution of a plan by a team: members take ready nodes from one queue; Python code runs on the calling thread.

# Run one item under the GIL on the calling thread, or check for signals if it is NULL; nonzero if that raised (the
# exception is kept).
ctypedef int (*python_item_t)(void *task, item_t *item) noexcept with gil

# Return whether the plan has enough work, and this thread the budget, for a team.
cdef bint should_use_team(const plan_t *plan) noexcept nogil
cdef int run_with_team(plan_t *plan, bint keep, python_item_t python_item, void *task) noexcept nogil
