"""How a tensor came to be outside the graph: why backward cannot start from it."""

# Values of view_kind of a tensor that is no view (and has, with 0, nothing to tell). Set where such tensors are made,
# read only for messages.
cdef enum:
    UNTRACKED = -1            # made while nothing was recorded: minus thread_state_t.grad_disabled
    DETACHED = -2             # by detach()
    DETACHED_IN_PLACE = -3    # by detach_()
    DATA = -4                 # by .data
    CONSTANT_OUTPUT = -5      # by a custom Function that called mark_non_differentiable
    GRADIENT = -6             # by a backward that was not recorded

# A bit of array_t.external: the Tensor that an array was saved with has been taken out of the graph by detach_().
cdef enum:
    TAKEN_OUT = 2
