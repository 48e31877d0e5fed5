"""Guards on memory that several tensors share: arguments, constants, gradients."""

from libc.stdint cimport int32_t, int64_t
from cygrad._core.arrays.array cimport array_t
from cygrad._core.compiler.frames cimport replay_frame_t

# What a tensor from outside has to look like.
ctypedef struct layout_t:
    array_t *array            # shape, strides and dtype; of a constant: the very array
    void *type                # of the Tensor, borrowed from `Variant.keep`
    int32_t exact             # it must be this array
    int32_t requires_grad
    int32_t is_view
    int32_t normal            # its changes are counted
    int32_t gradient          # .grad must be: 1 there, 0 None, -1 of no interest
    array_t *gradient_array   # ... and look like this
    int32_t is_leaf
    int32_t has_attributes    # set by users
    int32_t written           # the program changes its memory
    int32_t identity          # the first tensor that is the same object
    int32_t same_as           # the first one over the same memory: an argument before it, or a constant; -1: none
    int32_t gradient_same_as  # the same of .grad, if it is read; n_tensors + the number of a leaf for other gradients
    int64_t offset            # from same_as, in bytes
    int64_t gradient_offset

# A hash table of the storages of constants: which one is the first over each.
ctypedef struct aliases_t:
    const layout_t *layouts   # borrowed: of all tensors from outside, arguments first
    int n_own
    int n_tensors
    int n_storages            # size of the two tables, a power of two
    void **storages
    int32_t *owners

# Fill the table, once the layouts are there.
cdef int index_constants(aliases_t *aliases, const layout_t *layouts, int n_own, int n_tensors) except -1
cdef void free_aliases(aliases_t *aliases) noexcept
# Do tensors share memory, and are they one object, exactly where they did and were in the traced call?
cdef bint same_aliases(const aliases_t *aliases, replay_frame_t *frame, bint sees_gradients,
                       bint any_written) noexcept
