"""Why a tensor is outside the graph, so that backward cannot start from it."""

# Values of view_kind for tensors that are no views (0: no reason known). Set where such tensors are created, read only
# for messages.
cdef enum:
    UNTRACKED = -1            # created while grad mode was disabled: minus thread_state_t.grad_disabled
    DETACHED = -2             # by detach()
    DETACHED_IN_PLACE = -3    # by detach_()
    DATA = -4                 # by .data
    CONSTANT_OUTPUT = -5      # by a custom Function that called mark_non_differentiable
    GRADIENT = -6             # by a backward without create_graph

# A bit of array_t.external: detach_() has removed the Tensor that an array was saved with from the graph.
cdef enum:
    TAKEN_OUT = 2
