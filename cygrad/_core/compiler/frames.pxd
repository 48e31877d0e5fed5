"""Working memory of one execution of a program."""

from libc.stdint cimport int64_t
from cygrad._core.arrays.array cimport array_t
from cygrad._core.arrays.value cimport value_t
from cygrad._core.graph.node cimport gradient_t
from cygrad._core.optimizers.update_batch cimport update_t

# A program has one frame per thread that executes it at a time.
ctypedef struct run_frame_t:
    array_t **table           # array in each slot
    array_t **views           # arrays of the slots that are views, owned by the frame
    value_t *arguments
    array_t **entries         # entries of list arguments
    update_t *updates
    void **tensors            # input Tensors, borrowed
    gradient_t **targets      # slots that receive new gradients
    array_t **gradients       # .grad of the inputs when the guards were checked, owned; or NULL
    array_t **outgoing        # outputs, owned
    array_t **drawn           # random numbers, owned
    int64_t *pending_uses     # atomic; per slot, operations of a parallel section that still use it
    bint filled               # the table may hold arrays
    run_frame_t *next

# Return a frame with these capacities, or NULL if out of memory.
cdef run_frame_t *new_frame(int n_slots, int n_arguments, int n_entries, int n_updates, int n_tensors,
                               int n_outgoing, int n_draws) noexcept
cdef void free_frame(run_frame_t *frame, int n_slots) noexcept
