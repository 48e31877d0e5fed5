"""Why a tensor is outside the graph, so that backward cannot start from it."""

# Values of Tensor.untracked, for error messages.
cdef enum:
    NO_REASON = 0
    UNTRACKED                 # created without recording: thread_state_t.grad_disabled
    DETACHED                  # by detach()
    DETACHED_IN_PLACE         # by detach_()
    DATA                      # by .data
    CONSTANT_OUTPUT           # by a custom Function that called mark_non_differentiable
    GRADIENT                  # by a backward that was not recorded
