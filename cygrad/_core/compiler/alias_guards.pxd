"""Guards on memory that arguments, constants and gradients share."""

from libc.stdint cimport int32_t, int64_t
from cygrad._core.arrays.array cimport array_t
from cygrad._core.compiler.frames cimport run_frame_t

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
