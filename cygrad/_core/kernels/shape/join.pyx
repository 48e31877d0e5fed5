"""Arrays put together: cat, stack, and how a gradient is taken apart again."""

from libc.stdint cimport int64_t
from libc.stdio cimport snprintf
from libc.string cimport memcpy
from cygrad._core.arrays.array cimport MAX_DIMS, array_t, array_view, release, same_shape, shape_text
from cygrad._core.arrays.dtype cimport promote
from cygrad._core.arrays.value cimport clear, register_kernel, set_arrays, value_t
from cygrad._core.elementwise.copying cimport copy_into
from cygrad._core.elementwise.layout cimport array_strided, channels_last_strides, is_channels_last
from cygrad._core.kernels.arguments cimport (
    array_argument, array_result, arrays_argument, integers_argument, list_text, new_array, optional_integer, wrap_dim,
)
from cygrad._core.kernels.shape.slicing cimport narrowed
from cygrad._core.memory.errors cimport (
    MEMORY_ERROR, MESSAGE, OK, RUNTIME_ERROR, TYPE_ERROR, VALUE_ERROR, message,
)


cdef bint _skipped(const array_t *array) noexcept nogil:
    """Skip empty one-dimensional arrays, with which loops that collect arrays begin."""
    return array.ndim == 1 and array.shape[0] == 0


cdef int _check_list(const char *operation, int count, array_t **arrays, int *dtype) noexcept nogil:
    """Refuse missing entries; -> the dtype that all entries are promoted to."""
    cdef int i
    for i in range(count):
        if arrays[i] == NULL:
            snprintf(message(), MESSAGE, b"%s: entry %d of the list is not a tensor (got None).", operation, i)
            return TYPE_ERROR
        dtype[0] = promote(dtype[0], arrays[i].dtype) if i else arrays[i].dtype
    return OK


cdef int _joined_shape(int count, array_t **arrays, int64_t given, int *dim, int64_t *shape, int *ndim) noexcept nogil:
    """The shape of the result of cat, and the dimension along which it grows."""
    cdef array_t *first = NULL
    cdef int i, k, status
    for i in range(count):
        if arrays[i].ndim == 0:
            snprintf(message(), MESSAGE, b"cat: a 0-dim tensor cannot be concatenated (got shape () at entry %d). "
                     b"Use stack() instead.", i)
            return RUNTIME_ERROR
        if first == NULL and not _skipped(arrays[i]):
            first = arrays[i]
    if first == NULL:      # only such arrays: they fit whatever the dimension
        shape[0], ndim[0], dim[0] = 0, 1, 0
        return OK
    status = wrap_dim(b"cat", given, first.ndim, dim)
    if status != OK:
        return status
    ndim[0] = first.ndim
    memcpy(shape, first.shape, first.ndim * sizeof(int64_t))
    shape[dim[0]] = 0
    for i in range(count):
        if _skipped(arrays[i]):
            continue
        for k in range(first.ndim):
            if arrays[i].ndim != first.ndim or (k != dim[0] and arrays[i].shape[k] != first.shape[k]):
                snprintf(message(), MESSAGE, b"cat: shapes differ outside dimension %d (got %s at entry %d, "
                         b"expected one like %s).", dim[0], shape_text(arrays[i]), i, shape_text(first))
                return RUNTIME_ERROR
        shape[dim[0]] += arrays[i].shape[dim[0]]
    return OK


cdef int _new_joined(int count, array_t **arrays, int dtype, int ndim, const int64_t *shape,
                     array_t **result) noexcept nogil:
    """The array for all of them: with its channels next to each other, if those of each image are."""
    cdef int64_t[MAX_DIMS] strides
    cdef int i, status = new_array(b"cat", dtype, ndim, shape, result)
    if status != OK:
        return status
    for i in range(count):
        if not is_channels_last(arrays[i]) and not _skipped(arrays[i]):
            return OK
    if ndim < 4:                    # only skipped arrays
        return OK
    release(result[0])
    channels_last_strides(ndim, shape, strides)
    result[0] = array_strided(dtype, ndim, shape, strides)
    return OK if result[0] != NULL else MEMORY_ERROR


cdef int cat_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """cat(tensors, dim): concatenate along an existing dimension."""
    cdef array_t *result = NULL
    cdef array_t *part
    cdef array_t **arrays
    cdef int64_t shape[MAX_DIMS]
    cdef int64_t given, start = 0
    cdef int i, count, dim = 0, ndim = 0, dtype = 0
    cdef int status = arrays_argument(b"cat", b"tensors", &arguments[0], &count, &arrays)
    if status == OK:
        status = optional_integer(b"cat", b"dim", &arguments[1], 0, &given)
    if status == OK:
        status = _check_list(b"cat", count, arrays, &dtype)
    if status != OK:
        return status
    if count == 0:
        snprintf(message(), MESSAGE, b"cat: the list of tensors is empty (expected at least one tensor).")
        return VALUE_ERROR
    status = _joined_shape(count, arrays, given, &dim, shape, &ndim)
    if status == OK:
        status = _new_joined(count, arrays, dtype, ndim, shape, &result)
    if status != OK:
        return status
    for i in range(count):
        if arrays[i].size == 0:
            if not _skipped(arrays[i]):
                start += arrays[i].shape[dim]
            continue
        part = narrowed(result, dim, start, arrays[i].shape[dim])
        status = copy_into(part, arrays[i]) if part != NULL else MEMORY_ERROR
        release(part)
        if status != OK:
            release(result)
            return status
        start += arrays[i].shape[dim]
    return array_result(result, &results[0])


cdef int stack_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """stack(tensors, dim): side by side along a new dimension."""
    cdef array_t *result = NULL
    cdef array_t *part
    cdef array_t **arrays
    cdef int64_t shape[MAX_DIMS + 1]
    cdef int64_t strides[MAX_DIMS]
    cdef int64_t given
    cdef int i, k, count, dim = 0, dtype = 0
    cdef int status = arrays_argument(b"stack", b"tensors", &arguments[0], &count, &arrays)
    if status == OK:
        status = optional_integer(b"stack", b"dim", &arguments[1], 0, &given)
    if status == OK:
        status = _check_list(b"stack", count, arrays, &dtype)
    if status != OK:
        return status
    if count == 0:
        snprintf(message(), MESSAGE, b"stack: the list of tensors is empty (expected at least one tensor).")
        return RUNTIME_ERROR
    status = wrap_dim(b"stack", given, arrays[0].ndim + 1, &dim)
    if status != OK:
        return status
    for i in range(1, count):
        if not same_shape(arrays[i], arrays[0]):
            snprintf(message(), MESSAGE, b"stack: shapes differ (got %s at entry %d, expected %s as at entry 0).",
                     shape_text(arrays[i]), i, shape_text(arrays[0]))
            return RUNTIME_ERROR
    for k in range(arrays[0].ndim):
        shape[k + (k >= dim)] = arrays[0].shape[k]
    shape[dim] = count
    status = new_array(b"stack", dtype, arrays[0].ndim + 1, shape, &result)
    if status != OK or arrays[0].size == 0:
        return array_result(result, &results[0]) if status == OK else status
    for k in range(arrays[0].ndim):
        strides[k] = result.strides[k + (k >= dim)]
    for i in range(count):
        part = array_view(result, dtype, arrays[0].ndim, arrays[0].shape, strides, i * result.strides[dim])
        status = copy_into(part, arrays[i]) if part != NULL else MEMORY_ERROR
        release(part)
        if status != OK:
            release(result)
            return status
    return array_result(result, &results[0])


cdef int cat_backward_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """cat_backward(grad, sizes, dim): the parts of the gradient; a size of -1 marks an input that was skipped."""
    cdef array_t *grad
    cdef const int64_t *sizes
    cdef int64_t given, start = 0, left
    cdef int i, count, dim = 0, status = array_argument(b"cat_backward", b"grad", &arguments[0], &grad)
    if status == OK:
        status = integers_argument(b"cat_backward", b"sizes", &arguments[1], &count, &sizes)
    if status == OK:
        status = optional_integer(b"cat_backward", b"dim", &arguments[2], 0, &given)
    if status != OK:
        return status
    if grad.ndim == 1 and grad.shape[0] == 0:       # only skipped inputs: `dim` was not looked at
        given = 0
    status = wrap_dim(b"cat_backward", given, grad.ndim, &dim)
    if status != OK:
        return status
    left = grad.shape[dim] if grad.ndim else -1
    for i in range(count):
        if sizes[i] != -1 and not 0 <= sizes[i] <= left:
            left = -1
            break
        left -= sizes[i] if sizes[i] > 0 else 0
    if left != 0:
        snprintf(message(), MESSAGE, b"cat_backward: sizes do not add up to dimension %d of the gradient "
                 b"(got %s for shape %s).", dim, list_text(count, sizes), shape_text(grad))
        return RUNTIME_ERROR
    status = set_arrays(&results[0], count)
    if status != OK:
        return status
    for i in range(count):
        if sizes[i] == -1:
            continue
        results[0].of.arrays[i] = narrowed(grad, dim, start, sizes[i])
        if results[0].of.arrays[i] == NULL:
            clear(&results[0])
            return MEMORY_ERROR
        start += sizes[i]
    return OK


register_kernel("cat", cat_kernel)
register_kernel("stack", stack_kernel)
register_kernel("cat_backward", cat_backward_kernel)
