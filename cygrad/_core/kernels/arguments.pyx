"""Argument checks shared by array kernels: kinds, dimensions, sizes."""

from libc.stdint cimport int64_t
from libc.stdio cimport snprintf
from libc.string cimport memset
from cygrad._core.arrays.array cimport (
    ARRAY, ARRAYS, BOOLEAN, COMPLEX, DTYPE, INTEGER, INTEGERS, MAX_DIMS, NOTHING, REAL, TEXT, array_empty,
    array_empty_like, array_t, array_view, overlaps_itself, release, set_array, shape_text, value_t,
)
from cygrad._core.elementwise.copying cimport copy_into, fill_zeros
from cygrad._core.memory.errors cimport (
    INDEX_ERROR, MEMORY_ERROR, MESSAGE, OK, RUNTIME_ERROR, TYPE_ERROR, elements_of, message, sizes_text,
)


cdef const char *_kind_name(int kind) noexcept nogil:
    """Return the name of a boxed value's kind, for messages."""
    if kind == NOTHING:
        return b"None"
    if kind == ARRAY:
        return b"a tensor"
    if kind == ARRAYS:
        return b"a list of tensors"
    if kind == BOOLEAN:
        return b"a bool"
    if kind == INTEGER:
        return b"an int"
    if kind == REAL:
        return b"a float"
    if kind == COMPLEX:
        return b"a complex number"
    if kind == INTEGERS:
        return b"a list of ints"
    if kind == DTYPE:
        return b"a dtype"
    return b"a string"


cdef int _wrong_kind(const char *operation, const char *name, int kind, const char *expected) noexcept nogil:
    snprintf(message(), MESSAGE, b"%s: '%s' has the wrong type (got %s, expected %s).",
             operation, name, _kind_name(kind), expected)
    return TYPE_ERROR


cdef int array_argument(const char *operation, const char *name, const value_t *value, array_t **array) noexcept nogil:
    if value.kind != ARRAY:
        return _wrong_kind(operation, name, value.kind, b"a tensor")
    array[0] = value.of.array
    return OK


cdef int arrays_argument(const char *operation, const char *name, const value_t *value,
                         int *count, array_t ***arrays) noexcept nogil:
    if value.kind == ARRAY:
        count[0] = 1
        arrays[0] = <array_t **>&value.of.array
        return OK
    if value.kind == INTEGERS and value.count == 0:      # an empty list is of any kind
        count[0] = 0
        arrays[0] = NULL
        return OK
    if value.kind != ARRAYS:
        return _wrong_kind(operation, name, value.kind, b"a list of tensors")
    count[0] = value.count
    arrays[0] = value.of.arrays
    return OK


cdef int integer_argument(const char *operation, const char *name, const value_t *value,
                          int64_t *integer) noexcept nogil:
    if value.kind != INTEGER and value.kind != BOOLEAN:
        return _wrong_kind(operation, name, value.kind, b"an int")
    integer[0] = value.of.integer
    return OK


cdef int optional_integer(const char *operation, const char *name, const value_t *value,
                          int64_t default_value, int64_t *integer) noexcept nogil:
    if value.kind == NOTHING:
        integer[0] = default_value
        return OK
    return integer_argument(operation, name, value, integer)


cdef int integers_argument(const char *operation, const char *name, const value_t *value,
                           int *count, const int64_t **integers) noexcept nogil:
    if value.kind == INTEGERS:
        count[0] = value.count
        integers[0] = value.of.integers
    elif value.kind == INTEGER or value.kind == BOOLEAN:
        count[0] = 1
        integers[0] = &value.of.integer
    elif value.kind == NOTHING or (value.kind == ARRAYS and value.count == 0):
        count[0] = 0
        integers[0] = NULL
    else:
        return _wrong_kind(operation, name, value.kind, b"a list of ints")
    return OK


cdef int text_argument(const char *operation, const char *name, const value_t *value, const char **text) noexcept nogil:
    if value.kind != TEXT:
        return _wrong_kind(operation, name, value.kind, b"a string")
    text[0] = value.of.text
    return OK


cdef int wrap_dim(const char *operation, int64_t dim, int ndim, int *wrapped) noexcept nogil:
    cdef int n = ndim if ndim else 1
    if dim < -n or dim >= n:
        snprintf(message(), MESSAGE, b"%s: dimension out of range (got %lld, expected a value in [%d, %d]).",
                 operation, <long long>dim, -n, n - 1)
        return INDEX_ERROR
    wrapped[0] = <int>(dim + n if dim < 0 else dim)
    return OK


cdef int wrap_dims(const char *operation, int count, const int64_t *dims, int ndim, int *wrapped) noexcept nogil:
    cdef bint seen[MAX_DIMS]
    cdef int i, dim = 0, status
    memset(seen, 0, sizeof(seen))
    for i in range(count):
        status = wrap_dim(operation, dims[i], ndim, &dim)
        if status != OK:
            return status
        if seen[dim]:
            snprintf(message(), MESSAGE, b"%s: dimension %d is given twice (got %s). Name each dimension once.",
                     operation, dim, list_text(count, dims))
            return RUNTIME_ERROR
        seen[dim] = True
        wrapped[i] = dim      # at most MAX_DIMS of them, as none repeats
    return OK


cdef int check_sizes(const char *operation, int64_t ndim, const int64_t *shape, int64_t *size) noexcept nogil:
    cdef int64_t i
    if ndim > MAX_DIMS:
        snprintf(message(), MESSAGE, b"%s: too many dimensions (got %lld, expected at most %d).",
                 operation, <long long>ndim, <int>MAX_DIMS)
        return RUNTIME_ERROR
    for i in range(ndim):
        if shape[i] < 0:
            snprintf(message(), MESSAGE, b"%s: negative size (got %lld for dimension %lld of %s).",
                     operation, <long long>shape[i], <long long>i, list_text(ndim, shape))
            return RUNTIME_ERROR
    size[0] = elements_of(<int>ndim, shape)
    if size[0] < 0:
        snprintf(message(), MESSAGE, b"%s: too many elements for 64-bit arithmetic (got shape %s).",
                 operation, list_text(ndim, shape))
        return RUNTIME_ERROR
    return OK


cdef int check_same_shape(const char *operation, const char *name, const array_t *array,
                          int ndim, const int64_t *shape) noexcept nogil:
    cdef int i
    cdef bint same = array.ndim == ndim
    if same:
        for i in range(ndim):
            same = same and array.shape[i] == shape[i]
    if not same:
        snprintf(message(), MESSAGE, b"%s: '%s' has the wrong shape (got %s, expected %s).",
                 operation, name, shape_text(array), list_text(ndim, shape))
        return RUNTIME_ERROR
    return OK


cdef int check_writable(const char *operation, const array_t *array) noexcept nogil:
    if array.storage != NULL and not array.storage.writable:
        snprintf(message(), MESSAGE, b"%s: the memory is read-only. Change a clone() instead.", operation)
        return RUNTIME_ERROR
    if overlaps_itself(array):
        snprintf(message(), MESSAGE, b"%s: several elements of the tensor share a memory location "
                 b"(got shape %s with strides %s). Change a clone() instead.",
                 operation, shape_text(array), list_text(array.ndim, array.strides))
        return RUNTIME_ERROR
    return OK


cdef int new_array(const char *operation, int dtype, int ndim, const int64_t *shape, array_t **array) noexcept nogil:
    cdef int64_t size = 0
    cdef int status = check_sizes(operation, ndim, shape, &size)
    if status != OK:
        return status
    array[0] = array_empty(dtype, ndim, shape)
    return OK if array[0] != NULL else MEMORY_ERROR


cdef int new_zeros(const char *operation, int dtype, int ndim, const int64_t *shape, array_t **array) noexcept nogil:
    cdef int status = new_array(operation, dtype, ndim, shape, array)
    if status == OK:
        fill_zeros(array[0])
    return status


cdef int fresh_copy(array_t *array, array_t **copy) noexcept nogil:
    cdef int status
    copy[0] = array_empty_like(array, -1)
    if copy[0] == NULL:
        return MEMORY_ERROR
    status = copy_into(copy[0], array)
    if status != OK:
        release(copy[0])
        copy[0] = NULL
    return status


cdef int view_result(array_t *base, int ndim, const int64_t *shape, const int64_t *strides,
                     int64_t offset, value_t *result) noexcept nogil:
    return array_result(array_view(base, base.dtype, ndim, shape, strides, offset), result)


cdef int array_result(array_t *array, value_t *result) noexcept nogil:
    if array == NULL:
        return MEMORY_ERROR
    set_array(result, array)
    return OK


cdef const char *list_text(int64_t count, const int64_t *values) noexcept nogil:
    cdef long long some[MAX_DIMS]
    cdef int i, shown = <int>min(count, MAX_DIMS)
    for i in range(shown):
        some[i] = values[i]
    return sizes_text(shown, some)
