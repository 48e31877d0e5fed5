"""The n-dimensional array of C: refcounted; its metadata is immutable once it is shared."""

from libc.stdint cimport int32_t, int64_t, uint8_t
from cygrad._core.arrays.dtype cimport itemsize
from cygrad._core.memory.atomic cimport atomic_increment, atomic_load
from cygrad._core.memory.storage cimport storage_t, version_t

cdef enum:
    MAX_DIMS = 64

ctypedef struct array_t:
    int64_t count         # atomic: refcount
    int32_t dtype
    int32_t ndim
    int32_t contiguous    # row-major without gaps (size 0 and size 1 included)
    uint8_t own_version   # `version` is counted by itself, not embedded in the storage
    uint8_t array_api     # of the namespace of the array API standard: types are promoted as that says
    uint8_t detached      # detach_() has taken the Tensor that had this array out of the graph
    uint8_t unused
    int64_t size          # number of elements
    char *data            # first element
    storage_t *storage    # NULL: metadata only (shape and dtype of an array that was not saved)
    version_t *version    # NULL: an inference tensor
    void *tensor          # the Tensor object that wraps this array, borrowed, or NULL
    int64_t *shape        # ndim sizes, stored after the struct
    int64_t *strides      # ndim steps in elements, stored after the shape

# All return NULL and set a message when memory is exhausted. They do not check sizes.
cdef array_t *array_empty(int dtype, int ndim, const int64_t *shape) noexcept nogil
# The same, for the shape of `like`: contiguous, `dtype` -1 for its dtype.
cdef array_t *array_empty_like(const array_t *like, int dtype) noexcept nogil
# A view: shares storage and version; `offset` in elements from base.data (itemsize of `dtype`, which is base.dtype
# except for view_as_real, view_as_complex and bit-compatible views).
cdef array_t *array_view(array_t *base, int dtype, int ndim, const int64_t *shape,
                         const int64_t *strides, int64_t offset) noexcept nogil
# Shape, strides, offset (in `data`, as bytes from NULL) and dtype of an array without its memory.
cdef array_t *array_meta(const array_t *base) noexcept nogil
# An array over a storage whose reference it takes over.
cdef array_t *array_over(storage_t *storage, int dtype, int ndim, const int64_t *shape,
                         const int64_t *strides, int64_t offset) noexcept nogil
# Give an array another version counter, which it takes over; MEMORY_ERROR if that is NULL.
cdef int replace_version(array_t *array, version_t *version) noexcept nogil
cdef void array_free(array_t *array) noexcept nogil
cdef void release(array_t *array) noexcept nogil         # accepts NULL
cdef const char *shape_text(const array_t *array) noexcept nogil    # "(2, 3)", for messages
# May elements of the array share memory (a stride of 0 in a dimension > 1, or overlapping rows)?
cdef bint overlaps_itself(const array_t *array) noexcept nogil
# Do the byte ranges of the two arrays overlap?
cdef bint share_memory(const array_t *a, const array_t *b) noexcept nogil

cdef inline array_t *retain(array_t *array) noexcept nogil:
    atomic_increment(&array.count)
    return array

cdef inline bint same_shape(const array_t *a, const array_t *b) noexcept nogil:
    cdef int i
    if a.ndim != b.ndim:
        return False
    for i in range(a.ndim):
        if a.shape[i] != b.shape[i]:
            return False
    return True

cdef inline bint exclusive(array_t *array) noexcept nogil:
    """May the memory be reused in place, because only the caller holds it?"""
    return (array.contiguous and array.storage != NULL and array.storage.owner == NULL
            and atomic_load(&array.count) == 1 and atomic_load(&array.storage.count) == 1)
