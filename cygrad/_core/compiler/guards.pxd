"""Guards on what a function reads besides its arguments."""

from libc.stdint cimport int32_t, int64_t, uint64_t
from cygrad._core.arrays.array cimport array_t, value_t
from cygrad._core.graph.node cimport gradient_t
from cygrad._core.optimizers.optimize cimport update_t
from cygrad._core.program.executor cimport values_t

# --------------------------------------------------------------------------------------------------------------- frames

# Working memory of one execution of a program.

# A program has one frame per thread that executes it at a time.
ctypedef struct run_frame_t:
    values_t values           # first, because optimizer steps find the frame by it
    value_t *table            # the temporaries, one per slot; views belong to the frame
    value_t *lists
    array_t **entries         # of all lists
    update_t *updates
    void **tensors            # input Tensors, borrowed
    gradient_t **targets      # slots that receive new gradients
    array_t **gradients       # .grad of the inputs when the guards were checked, owned; or NULL
    array_t **outgoing        # outputs, owned
    int64_t *pending_uses     # atomic; per slot, operations of a parallel section that still use it
    bint filled               # the table may hold arrays
    run_frame_t *next

# Return a frame with these capacities, or NULL if out of memory.
cdef run_frame_t *new_frame(int n_slots, int n_lists, int n_entries, int n_updates, int n_tensors,
                            int n_outgoing) noexcept
# Free a frame; `is_view` by slot.
cdef void free_frame(run_frame_t *frame, int n_slots, const char *is_view) noexcept

# --------------------------------------------------------------------------------------------------------------- guards

ctypedef struct guard_t:
    int32_t kind
    void *container
    void *key
    void *value               # NULL: the key must be missing
    int64_t number            # index of an entry, a length, or a version

# Guards on the items of one dict; skipped while the version of the dict is unchanged.
ctypedef struct watched_t:
    void *dict
    uint64_t version
    int32_t first
    int32_t n

# Return the version tag of a dict, which changes with each change and is unique; 0 if Python has none.
cdef uint64_t version_of_dict(void *dict) noexcept
# Compare by identity, or numbers and strings by type and value.
cdef bint is_same_value(object a, object b) except -1

cdef class Guards:
    """Guards to check before a program runs."""
    cdef guard_t *guards          # guards on dicts follow the `n_others` other ones
    cdef watched_t *watched
    cdef int n_guards, n_others, n_watched
    cdef list entries
    cdef bint hold(self) except -1
    cdef bint all_hold(self, guard_t *guards, int n) except -1

# --------------------------------------------------------------------------------------------------------- alias guards

# Guards on memory that arguments, constants and gradients share.

# Guard on one input tensor.
ctypedef struct tensor_guard_t:
    array_t *array            # shape, strides and dtype; for a constant, the array itself
    void *type                # of the Tensor, borrowed from `Variant.keep`
    int32_t exact             # the array must be this one
    int32_t requires_grad
    int32_t is_view
    int32_t normal            # has a version counter
    int32_t gradient          # .grad: 1 present, 0 None, -1 not checked
    array_t *gradient_array   # layout of .grad
    int32_t is_leaf
    int32_t has_attributes    # user attributes
    int32_t written           # the program writes to its memory
    int32_t identity          # first tensor that is the same object
    int32_t same_as           # first tensor with the same storage (an earlier argument or a constant), or -1
    int32_t gradient_same_as  # the same for .grad; n_tensors + i: .grad of tensor i
    int64_t offset            # from same_as, in bytes
    int64_t gradient_offset

# Hash table from a storage to the first constant that uses it.
ctypedef struct aliases_t:
    const tensor_guard_t *layouts  # borrowed; all input tensors, arguments first
    int n_own
    int n_tensors
    int n_storages            # capacity of both tables, a power of two
    void **storages
    int32_t *owners

# Fill the table from the guards on constants.
cdef int index_constants(aliases_t *aliases, const tensor_guard_t *layouts, int n_own, int n_tensors) except -1
cdef void free_aliases(aliases_t *aliases) noexcept
# Check that the same tensors share memory, or are one object, as in the traced call.
cdef bint same_aliases(const aliases_t *aliases, run_frame_t *frame, bint sees_gradients,
                       bint any_written) noexcept
