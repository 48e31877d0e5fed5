"""
The n-dimensional array of C: refcounted; its metadata is immutable once it is shared.

Shape and strides follow the struct in one block, so that up to three dimensions fit into 128 bytes and an array costs
one allocation (two with its storage).
"""

from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdio cimport snprintf
from libc.string cimport memset
from cygrad._core.arrays.dtype cimport itemsize
from cygrad._core.memory.atomic cimport atomic_increment, atomic_is_last
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, OK, message, sizes_text
from cygrad._core.memory.sizes cimport MOST_ELEMENTS, elements_of_huge, product_overflows
from cygrad._core.memory.storage cimport (
    NO_ELEMENTS, allocate, deallocate, storage_new, storage_release, storage_t, version_release)


cdef inline int64_t _block_bytes(int ndim) noexcept nogil:
    """Allocate the struct with shape and strides."""
    return sizeof(array_t) + 2 * ndim * sizeof(int64_t)


cdef inline array_t *_allocate_array(int dtype, int ndim) noexcept nogil:
    """Allocate an array without storage; the caller fills in shape and strides. NULL and a message on failure."""
    cdef array_t *array = <array_t *>allocate(_block_bytes(ndim))
    if array == NULL:
        snprintf(message(), MESSAGE, b"out of memory for the shape of an array of %d dimensions", ndim)
        return NULL
    array.count = 1
    array.dtype = dtype
    array.ndim = ndim
    array.own_version = array.array_api = array.detached = array.unused = False
    array.data = NULL
    array.storage = NULL
    array.version = NULL
    array.tensor = NULL
    array.shape = <int64_t *>(array + 1)
    array.strides = array.shape + ndim
    return array


cdef inline array_t *_new_array(int dtype, int ndim, const int64_t *shape, const int64_t *strides) noexcept nogil:
    """Create an array without storage, row-major without strides; NULL and a message on failure."""
    cdef array_t *array = _allocate_array(dtype, ndim)
    cdef int64_t size = 1
    cdef bint fits
    if array == NULL:
        return NULL
    fits = _set_contiguous(array, shape, &size) if strides == NULL else _set_strided(array, shape, strides, &size)
    if not fits or size > MOST_ELEMENTS:
        size = elements_of_huge(ndim, shape)
        if size < 0:
            deallocate(array, _block_bytes(ndim))
            return NULL
    array.size = size
    if size == 0:
        array.contiguous = True
    return array


cdef inline int64_t _times(int64_t step, int64_t size) noexcept nogil:
    """Multiply a stride by a size; wraps around for arrays without elements with other huge sizes."""
    return <int64_t>(<uint64_t>step * <uint64_t>size)


cdef inline bint _set_contiguous(array_t *array, const int64_t *shape, int64_t *size) noexcept nogil:
    """Set shape and row-major strides; set the size if it fits. A size of 0 counts as 1 in the strides, as in NumPy."""
    cdef int64_t step = 1
    cdef bint too_large = False
    cdef int i
    for i in range(array.ndim - 1, -1, -1):
        array.shape[i] = shape[i]
        array.strides[i] = step
        too_large |= product_overflows(size[0], shape[i], size)
        if shape[i] > 1:
            step = _times(step, shape[i])
    array.contiguous = True
    return not too_large


cdef inline bint _set_strided(
        array_t *array, const int64_t *shape, const int64_t *strides, int64_t *size) noexcept nogil:
    """Set shape, strides and the contiguous flag; set the size if it fits."""
    cdef int64_t expected = 1
    cdef int32_t contiguous = True
    cdef bint too_large = False
    cdef int i
    for i in range(array.ndim - 1, -1, -1):
        array.shape[i] = shape[i]
        array.strides[i] = strides[i]
        too_large |= product_overflows(size[0], shape[i], size)
        if shape[i] != 1:
            if strides[i] != expected:
                contiguous = False
            expected = _times(expected, shape[i])
    array.contiguous = contiguous
    return not too_large


cdef inline array_t *_shaped_like(const array_t *like, int dtype) noexcept nogil:
    """Create an array without storage of the shape and strides of another, without checking sizes."""
    cdef array_t *array = _allocate_array(dtype, like.ndim)
    cdef int i
    if array == NULL:
        return NULL
    for i in range(like.ndim):
        array.shape[i] = like.shape[i]
        array.strides[i] = like.strides[i]
    array.contiguous = like.contiguous
    array.size = like.size
    return array


cdef inline array_t *_with_storage(array_t *array) noexcept nogil:
    """Allocate the storage of a new array; NULL on failure."""
    if array == NULL:
        return NULL
    array.storage = storage_new(array.size * itemsize(array.dtype))
    if array.storage == NULL:
        deallocate(array, _block_bytes(array.ndim))
        return NULL
    array.data = array.storage.data
    array.version = &array.storage.version
    return array


cdef array_t *array_empty(int dtype, int ndim, const int64_t *shape) noexcept nogil:
    """Create a contiguous array, uninitialized."""
    return _with_storage(_new_array(dtype, ndim, shape, NULL))


cdef array_t *array_empty_like(const array_t *like, int dtype) noexcept nogil:
    """Create a contiguous array of the same shape, uninitialized."""
    if dtype < 0:
        dtype = like.dtype
    if like.ndim == 0 or like.ndim == 1 and like.strides[0] == 1 and like.size:
        return _with_storage(_shaped_like(like, dtype))
    return array_empty(dtype, like.ndim, like.shape)


cdef array_t *array_view(array_t *base, int dtype, int ndim, const int64_t *shape,
                         const int64_t *strides, int64_t offset) noexcept nogil:
    """Create an array that shares storage and version with `base`."""
    cdef array_t *array = _new_array(dtype, ndim, shape, strides)
    if array == NULL:
        return NULL
    array.storage = base.storage
    array.data = base.data + offset * itemsize(dtype)     # without storage: an offset, see array_meta
    if base.storage != NULL:
        atomic_increment(&base.storage.count)
        if base.storage.size_class == NO_ELEMENTS:        # all views refer to the one zero
            memset(array.strides, 0, ndim * sizeof(int64_t))
            array.data = base.storage.data
    array.version = base.version
    array.array_api = base.array_api
    array.own_version = base.own_version
    if base.own_version and base.version != NULL:
        atomic_increment(&base.version.count)
    return array


cdef int replace_version(array_t *array, version_t *version) noexcept nogil:
    if array.own_version:
        version_release(array.version)
    array.version, array.own_version = version, True
    return OK if version != NULL else MEMORY_ERROR


cdef array_t *array_meta(const array_t *base) noexcept nogil:
    cdef array_t *array = _shaped_like(base, base.dtype)
    if array == NULL:
        return NULL
    array.data = <char *>(base.data - (base.storage.data if base.storage != NULL else NULL))
    return array


cdef array_t *array_over(storage_t *storage, int dtype, int ndim, const int64_t *shape,
                         const int64_t *strides, int64_t offset) noexcept nogil:
    """Create an array over a storage, whose reference it takes over unless it fails."""
    cdef array_t *array = _new_array(dtype, ndim, shape, strides)
    if array == NULL:
        return NULL
    array.storage = storage
    array.data = storage.data + offset * itemsize(dtype)
    array.version = &storage.version
    return array


cdef void array_free(array_t *array) noexcept nogil:
    """Free an unreferenced array, with its share of storage and version."""
    if array.own_version:
        version_release(array.version)
    storage_release(array.storage)
    deallocate(array, _block_bytes(array.ndim))


cdef void release(array_t *array) noexcept nogil:
    """Drop one reference; the last one frees."""
    if array != NULL and atomic_is_last(&array.count):
        array_free(array)


cdef const char *shape_text(const array_t *array) noexcept nogil:
    """Return the shape as text, for messages; valid until eight texts later."""
    return sizes_text(array.ndim, <const long long *>array.shape)


cdef bint overlaps_itself(const array_t *array) noexcept nogil:
    """
    May two elements of the array share memory?

    Sorted by stride, each stride must exceed the reach of all smaller ones. Arrays of ``as_strided`` that interleave
    without overlap count as overlapping.
    """
    cdef int64_t[MAX_DIMS] steps
    cdef int64_t[MAX_DIMS] sizes
    cdef int64_t step, reach = 0
    cdef int i, j, n = 0
    if array.contiguous or array.size <= 1:
        return False
    for i in range(array.ndim):
        if array.shape[i] == 1:
            continue
        step = array.strides[i] if array.strides[i] >= 0 else -array.strides[i]
        j = n
        while j > 0 and steps[j - 1] > step:
            steps[j] = steps[j - 1]
            sizes[j] = sizes[j - 1]
            j -= 1
        steps[j] = step
        sizes[j] = array.shape[i]
        n += 1
    for i in range(n):
        if steps[i] <= reach:
            return True
        reach += steps[i] * (sizes[i] - 1)
    return False


cdef void _byte_range(const array_t *array, char **begin, char **end) noexcept nogil:
    """Return the address of the first byte and the one after the last."""
    cdef int64_t low = 0, high = 0, reach
    cdef int i
    for i in range(array.ndim):
        reach = (array.shape[i] - 1) * array.strides[i]
        if reach < 0:
            low += reach
        else:
            high += reach
    begin[0] = array.data + low * itemsize(array.dtype)
    end[0] = array.data + (high + 1) * itemsize(array.dtype)


cdef bint share_memory(const array_t *a, const array_t *b) noexcept nogil:
    """Do the byte ranges of the two arrays overlap? (Elements may still interleave without sharing memory.)"""
    cdef char *a_begin
    cdef char *a_end
    cdef char *b_begin
    cdef char *b_end
    if a.storage == NULL or b.storage == NULL or a.size == 0 or b.size == 0:
        return False
    _byte_range(a, &a_begin, &a_end)
    _byte_range(b, &b_begin, &b_end)
    return a_begin < b_end and b_begin < a_end
