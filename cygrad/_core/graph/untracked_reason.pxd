"""Why a tensor is outside the graph, so that backward cannot start from it."""

# Values of Tensor.untracked. Set where such tensors are made, read only for messages.
cdef enum:
    NOTHING_TO_TELL = 0
    UNTRACKED                 # made while nothing was recorded: thread_state_t.grad_disabled
    DETACHED                  # by detach()
    DETACHED_IN_PLACE         # by detach_()
    DATA                      # by .data
    CONSTANT_OUTPUT           # by a custom Function that called mark_non_differentiable
    GRADIENT                  # by a backward that was not recorded
