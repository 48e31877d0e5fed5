"""The n-dimensional array of C: refcounted; its metadata is immutable once it is shared."""

from libc.stdint cimport int32_t, int64_t, uint8_t
from cygrad._core.arrays.dtype cimport itemsize
from cygrad._core.memory.atomic cimport atomic_increment, atomic_load
from cygrad._core.memory.storage cimport storage_t, version_t

# ---------------------------------------------------------------------------------------------------------------- array

cdef enum:
    MAX_DIMS = 64

ctypedef struct array_t:
    int64_t count         # atomic: refcount
    int32_t dtype
    int32_t ndim
    int32_t contiguous    # row-major without gaps (size 0 and size 1 included)
    uint8_t own_version   # `version` has its own refcount, is not embedded in the storage
    uint8_t array_api     # promoted by the rules of the array API standard
    uint8_t detached      # detach_() removed its Tensor from the graph
    uint8_t is_gradient   # its Tensor is, or was, the gradient of a leaf
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
# Replace the version counter of an array and take over the reference; MEMORY_ERROR if it is NULL.
cdef int replace_version(array_t *array, version_t *version) noexcept nogil
cdef void array_free(array_t *array) noexcept nogil
cdef void release(array_t *array) noexcept nogil         # accepts NULL
cdef const char *shape_text(const array_t *array) noexcept nogil    # "(2, 3)", for messages
# Return whether elements of the array can share memory (a stride of 0 in a dimension > 1, or overlapping rows).
cdef bint overlaps_itself(const array_t *array) noexcept nogil
# Return whether the byte ranges of the two arrays overlap.
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

cdef inline bint same_layout(const array_t *a, const array_t *b) noexcept nogil:
    """Return whether dtype, shape and strides are equal."""
    cdef int i
    if a.dtype != b.dtype or a.ndim != b.ndim:
        return False
    for i in range(a.ndim):
        if a.shape[i] != b.shape[i] or a.strides[i] != b.strides[i]:
            return False
    return True

cdef inline bint exclusive(array_t *array) noexcept nogil:
    """Return whether the memory can be reused in-place, because only the caller holds a reference."""
    return (array.contiguous and array.storage != NULL and array.storage.owner == NULL
            and atomic_load(&array.count) == 1 and atomic_load(&array.storage.count) == 1)

# ----------------------------------------------------------------------------------------------------------------- size

cdef object size_of(const array_t *array)

# ---------------------------------------------------------------------------------------------------------------- value

ctypedef enum kind_t:
    NOTHING = 0        # None, or an argument that was not given
    ARRAY              # of.array
    ARRAYS             # of.arrays, `count` of them (an entry may be NULL)
    BOOLEAN            # of.integer 0 or 1
    INTEGER            # of.integer
    REAL               # of.real
    COMPLEX            # of.real and imag
    INTEGERS           # of.integers, `count` of them
    DTYPE              # of.integer
    TEXT               # of.text: interned, never freed

ctypedef union payload_t:
    array_t *array
    array_t **arrays
    int64_t integer
    int64_t *integers
    double real
    const char *text

ctypedef struct value_t:
    int32_t kind
    int32_t count
    payload_t of
    double imag

# A kernel checks its arguments, allocates its results and returns a status (cygrad._core.memory.errors). Arguments are
# borrowed, results are owned by the caller. On failure it leaves no result.
ctypedef int (*kernel_t)(const value_t *arguments, value_t *results) noexcept nogil

# Kernels by name; kernel modules register theirs when they are imported.
cdef int register_kernel(str name, kernel_t kernel) except -1
cdef kernel_t find_kernel(str name) noexcept

# Constructors that own their memory; return MEMORY_ERROR on failure.
cdef int set_integers(value_t *value, int count, const int64_t *integers) noexcept nogil   # NULL: zeros
cdef int set_arrays(value_t *value, int count) noexcept nogil       # all entries NULL
cdef void clear(value_t *value) noexcept nogil                     # releases owned memory; the value becomes NOTHING
cdef int copy_value(value_t *to, const value_t *source) noexcept nogil  # retains arrays, copies lists

cdef inline void set_array(value_t *value, array_t *array) noexcept nogil:
    """Set an array and take over the caller's reference."""
    value.kind = ARRAY
    value.count = 1
    value.of.array = array

cdef inline bint is_number(const value_t *value) noexcept nogil:
    return BOOLEAN <= value.kind <= COMPLEX

cdef inline double as_real(const value_t *value) noexcept nogil:
    return value.of.real if value.kind >= REAL else <double>value.of.integer

cdef inline bint is_true(const value_t *value) noexcept nogil:
    return value.kind != NOTHING and value.of.integer != 0

# ------------------------------------------------------------------------------------------------------------ promotion

# Type promotion of operands, in the order: arrays with dimensions, 0-dim arrays, numbers.

cdef enum:
    # Ranks of operands, highest first.
    DIMENSIONED = 0
    ZERO_DIM = 1
    WEAK = 2          # Python numbers, and results computed from them alone

# Return rank and dtype of an operand. A number has the widest dtype of its category until it meets an array.
cdef int rank_of(const value_t *operand) noexcept nogil
cdef int dtype_of(const value_t *operand) noexcept nogil
# Return the dtype of the operation; each of the three is the promoted dtype of that rank, or -1 for none.
cdef int common_dtype(int dimensioned, int zero_dim, int weak) noexcept nogil
# Return the dtype of an array made from a number of this wide dtype.
cdef int resolve_weak(int weak) noexcept nogil
# Return the result dtype of n operands.
cdef int result_type(const value_t *operands, int n) noexcept nogil

# -------------------------------------------------------------------------------------------------------------- interop

# Return an array over the ndarray's memory, which keeps the ndarray alive. Raises TypeError or ValueError for what
# cannot be shared: unsupported dtypes, byte-swapped or unaligned elements.
cdef array_t *array_from_numpy(object ndarray, bint writable) except NULL
# Return an ndarray over the array's memory; `owner` keeps it alive and becomes its `base`.
cdef object numpy_from_array(array_t *array, object owner)
# Return an ndarray over the memory of an array, whose reference it takes over.
cdef object owned_ndarray(array_t *array)

# ------------------------------------------------------------------------------------------------------------ placement

cdef class device:
    """A device. Only the CPU has memory; `meta` tensors have none."""
    cdef readonly str type
    cdef readonly object index
    cdef tuple entered                # (the default before, what was entered before), or None

# Return 1 for meta, 0 for the CPU; raise for unavailable devices. None: the default device.
cdef int meta_place(object place, str operation) except -1
