"""Views of all parts of an array at once: split, unbind."""

from libc.stdint cimport int64_t
from libc.stdio cimport snprintf
from cygrad._core.arrays.array cimport array_t, array_view, replace_version
from cygrad._core.arrays.value cimport clear, register_kernel, set_arrays, value_t
from cygrad._core.kernels.arguments cimport (
    array_argument, integers_argument, list_text, optional_integer, wrap_dim,
)
from cygrad._core.kernels.shape.slicing cimport narrowed, selected
from cygrad._core.memory.errors cimport INDEX_ERROR, MEMORY_ERROR, MESSAGE, OK, RUNTIME_ERROR, message
from cygrad._core.memory.storage cimport version_new

cdef enum:
    LONGEST_LIST = 1 << 24        # more Tensors fill the memory of most machines


cdef int _new_list(int64_t count, value_t *result) noexcept nogil:
    """Allocate a list of n arrays, all NULL."""
    if count > LONGEST_LIST:
        snprintf(message(), MESSAGE, b"split: too many parts for one list (got %lld, expected at most %d).",
                 <long long>count, <int>LONGEST_LIST)
        return RUNTIME_ERROR
    return set_arrays(result, <int>count)


cdef int _open(const char *operation, const value_t *self_value, const value_t *dim_value, int status_if_0dim,
               array_t **self, int *dim) noexcept nogil:
    """The array, which must have a dimension, and that dimension (0 if it is not given)."""
    cdef int64_t given
    cdef int status = array_argument(operation, b"self", self_value, self)
    if status == OK:
        status = optional_integer(operation, b"dim", dim_value, 0, &given)
    if status == OK and self[0].ndim == 0:
        snprintf(message(), MESSAGE, b"%s: a 0-dim tensor cannot be divided (got shape (), expected at least "
                 b"1 dimension).", operation)
        return status_if_0dim
    return wrap_dim(operation, given, self[0].ndim, dim) if status == OK else status


cdef int split_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """split(self, sizes, dim): consecutive parts of these sizes, as a list of views."""
    cdef array_t *self
    cdef const int64_t *sizes
    cdef int64_t left, start = 0
    cdef int i, count, dim, status = _open(b"split", &arguments[0], &arguments[2], RUNTIME_ERROR, &self, &dim)
    if status == OK:
        status = integers_argument(b"split", b"split_sizes", &arguments[1], &count, &sizes)
    if status != OK:
        return status
    left = self.shape[dim]
    for i in range(count):
        if sizes[i] < 0 or sizes[i] > left:      # a difference cannot overflow where a sum can
            left = -1
            break
        left -= sizes[i]
    if left != 0:
        snprintf(message(), MESSAGE, b"split: sizes do not add up to the size of dimension %d "
                 b"(got %s, expected non-negative sizes with the sum %lld).",
                 dim, list_text(count, sizes), <long long>self.shape[dim])
        return RUNTIME_ERROR
    status = _new_list(count, &results[0])
    if status != OK:
        return status
    for i in range(count):
        results[0].of.arrays[i] = narrowed(self, dim, start, sizes[i])
        if results[0].of.arrays[i] == NULL:
            clear(&results[0])
            return MEMORY_ERROR
        start += sizes[i]
    return OK


cdef int unsafe_split_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """unsafe_split(self, sizes, dim): as `split`, but each part counts changes by itself."""
    cdef array_t *part
    cdef int i, status = split_kernel(arguments, results)
    if status != OK:
        return status
    for i in range(results[0].count):
        part = results[0].of.arrays[i]
        if part.version == NULL:
            continue
        if replace_version(part, version_new()) != OK:
            clear(&results[0])
            return MEMORY_ERROR
    return OK


cdef int together_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """together(arrays): the same arrays again."""
    cdef array_t *array
    cdef int i, status = _new_list(arguments[0].count, &results[0])
    if status != OK:
        return status
    for i in range(arguments[0].count):
        array = arguments[0].of.arrays[i]
        results[0].of.arrays[i] = array_view(array, array.dtype, array.ndim, array.shape, array.strides, 0)
        if results[0].of.arrays[i] == NULL:
            clear(&results[0])
            return MEMORY_ERROR
    return OK


cdef int unbind_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """unbind(self, dim): the slices along a dimension, without it, as a list of views."""
    cdef array_t *self
    cdef int i, dim, status = _open(b"unbind", &arguments[0], &arguments[1], INDEX_ERROR, &self, &dim)
    if status == OK:
        status = _new_list(self.shape[dim], &results[0])
    if status != OK:
        return status
    for i in range(results[0].count):
        results[0].of.arrays[i] = selected(self, dim, i)
        if results[0].of.arrays[i] == NULL:
            clear(&results[0])
            return MEMORY_ERROR
    return OK


register_kernel("split", split_kernel)
register_kernel("together", together_kernel)
register_kernel("unsafe_split", unsafe_split_kernel)
register_kernel("unbind", unbind_kernel)
