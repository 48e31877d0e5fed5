"""What one run of a program works on."""

from libc.stdint cimport int64_t
from cygrad._core.arrays.array cimport array_t
from cygrad._core.arrays.value cimport value_t
from cygrad._core.graph.node cimport gradient_t
from cygrad._core.optimizers.update_batch cimport update_t

# A program has as many as there are threads that run it at a time.
ctypedef struct replay_frame_t:
    array_t **table           # array of each slot
    array_t **views           # of slots that are views: arrays that belong to the frame
    value_t *arguments
    array_t **entries         # of lists among the arguments
    update_t *updates
    void **tensors            # Tensors from outside, borrowed
    gradient_t **targets      # where new gradients of tensors go
    array_t **gradients       # what was in .grad of tensors when that was compared, owned; or NULL
    array_t **outgoing        # results that leave, owned
    array_t **drawn           # random numbers, owned
    int64_t *untouched        # of slots, atomic: operations of a stretch that are still to touch them
    bint filled               # there may be arrays in the table
    replay_frame_t *next

# With room for that many of each; NULL if there is no memory.
cdef replay_frame_t *new_frame(int n_slots, int n_arguments, int n_entries, int n_updates, int n_tensors,
                               int n_outgoing, int n_draws) noexcept
cdef void free_frame(replay_frame_t *frame, int n_slots) noexcept
