"""Padding with a constant or by reflection, replication or wrapping, and the gradients."""

from libc.stdint cimport int64_t
from libc.stdio cimport snprintf
from libc.string cimport memcpy, strcmp
from cygrad._core.arrays.array cimport (
    MAX_DIMS, NOTHING, array_empty, array_t, register_kernel, release, retain, shape_text, value_t,
)
from cygrad._core.arrays.dtype cimport INT64, itemsize
from cygrad._core.elementwise.copying cimport (
    ADD, as_contiguous, check_fits, copy_into, move_along, with_layout_of_images,
)
from cygrad._core.kernels.arguments cimport (
    array_argument, array_result, check_same_shape, integers_argument, list_text, new_array, new_zeros, text_argument,
)
from cygrad._core.kernels.indexing.index cimport scalar_array
from cygrad._core.kernels.shape.shape cimport expanded
from cygrad._core.kernels.shape.slicing cimport narrowed
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, NOT_IMPLEMENTED, OK, RUNTIME_ERROR, message
from cygrad._core.threads.grain cimport GATHERED, rows_per_chunk
from cygrad._core.threads.parallel cimport parallel_for

cdef extern from "kernels/nn/pad_rows.h" nogil:
    ctypedef struct pad_rows_t:
        int ndim
        int64_t bytes
        const int64_t *shape
        const int64_t *index[64]
        int64_t steps[64]
        int64_t first
        int64_t count
        const char *source
        char *result
    void pad_rows(const pad_rows_t *p, int64_t begin, int64_t end)

ctypedef enum mode_t:
    CONSTANT
    REFLECT
    REPLICATE
    CIRCULAR

cdef extern from * nogil:
    """
    #define LARGEST ((int64_t)(1LL << 60))    /* largest padding: sums of three such numbers do not overflow */
    """
    const int64_t LARGEST

ctypedef struct padding_t:
    const char *operation
    mode_t mode
    int ndim
    int64_t before[MAX_DIMS]
    int64_t after[MAX_DIMS]
    int64_t shape[MAX_DIMS]      # of the padded array


cdef int _mode(const value_t *value, mode_t *mode) noexcept nogil:
    """Read the mode."""
    cdef const char *text
    cdef int status = text_argument(b"pad", b"mode", value, &text)
    if status != OK:
        return status
    if strcmp(text, b"constant") == 0:
        mode[0] = CONSTANT
    elif strcmp(text, b"reflect") == 0:
        mode[0] = REFLECT
    elif strcmp(text, b"replicate") == 0:
        mode[0] = REPLICATE
    elif strcmp(text, b"circular") == 0:
        mode[0] = CIRCULAR
    else:
        snprintf(message(), MESSAGE, b"pad: unknown mode (got '%s', expected 'constant', 'reflect', 'replicate' "
                 b"or 'circular').", text)
        return NOT_IMPLEMENTED
    return OK


cdef int _make_padding(const char *operation, mode_t mode, const value_t *pad_value, int ndim, const int64_t *shape,
                       padding_t *padding) noexcept nogil:
    """Read paddings (pairs, from the last dimension on) and set the shape of the result."""
    cdef const int64_t *pad
    cdef int64_t before, after, size, most
    cdef int i, dim, count, status = integers_argument(operation, b"pad", pad_value, &count, &pad)
    if status != OK:
        return status
    if count % 2 or count > 2 * ndim:
        snprintf(message(), MESSAGE, b"%s: pad must hold a pair for each of the last dimensions "
                 b"(got %s for a tensor of shape %s).", operation, list_text(count, pad), list_text(ndim, shape))
        return RUNTIME_ERROR
    padding.operation, padding.mode, padding.ndim = operation, mode, ndim
    for dim in range(ndim):
        padding.before[dim] = padding.after[dim] = 0
        padding.shape[dim] = shape[dim]
    for i in range(count // 2):
        dim = ndim - 1 - i
        before, after, size = pad[2 * i], pad[2 * i + 1], shape[dim]
        # A reflection does not repeat the border; circular padding wraps around once.
        most = LARGEST if mode == CONSTANT or (mode == REPLICATE and size) else size - 1 if mode == REFLECT else size
        if mode == CIRCULAR:
            most += min(before, 0) + min(after, 0) if before > -LARGEST and after > -LARGEST else 0
        if before == 0 and after == 0:
            continue
        if not -LARGEST < before <= most or not -LARGEST < after <= most or size + before + after < 0:
            snprintf(message(), MESSAGE, b"%s: padding out of range (got %lld and %lld for dimension %d with "
                     b"size %lld, expected at most %lld each, and no negative size).", operation,
                     <long long>before, <long long>after, dim, <long long>size, <long long>max(most, 0))
            return RUNTIME_ERROR
        padding.before[dim], padding.after[dim] = before, after
        padding.shape[dim] = size + before + after
    return OK


cdef int _inner(const padding_t *padding, array_t *padded, array_t *array, array_t **padded_part,
                array_t **array_part) noexcept nogil:
    """Make views of the elements that both arrays have."""
    cdef array_t *narrower
    cdef int64_t length
    cdef int dim
    padded_part[0], array_part[0] = retain(padded), retain(array)
    for dim in range(padding.ndim):
        length = array.shape[dim] + min(padding.before[dim], 0) + min(padding.after[dim], 0)
        narrower = narrowed(padded_part[0], dim, max(padding.before[dim], 0), max(length, 0))
        release(padded_part[0])
        padded_part[0] = narrower
        narrower = narrowed(array_part[0], dim, max(-padding.before[dim], 0), max(length, 0))
        release(array_part[0])
        array_part[0] = narrower
        if padded_part[0] == NULL or array_part[0] == NULL:
            release(padded_part[0])
            release(array_part[0])
            return MEMORY_ERROR
    return OK


cdef int _copy_inner(const padding_t *padding, array_t *padded, array_t *array, bint back) noexcept nogil:
    """Copy the elements that both arrays have from the array to the padded one, or back."""
    cdef array_t *padded_part
    cdef array_t *array_part
    cdef int status = _inner(padding, padded, array, &padded_part, &array_part)
    if status != OK:
        return status
    status = copy_into(array_part, padded_part) if back else copy_into(padded_part, array_part)
    release(padded_part)
    release(array_part)
    return status


cdef int _pad_constant(const padding_t *padding, array_t *self, const value_t *value, value_t *result) noexcept nogil:
    """Copy the array into a new one filled with the value."""
    cdef array_t *padded = NULL
    cdef array_t *scalar = NULL
    cdef array_t *wide = NULL
    cdef int status = OK
    if value.kind == NOTHING:
        status = new_zeros(b"pad", self.dtype, padding.ndim, padding.shape, &padded)
    else:
        status = check_fits(b"pad", value, self.dtype, wraps=False)
        if status == OK:
            status = scalar_array(b"pad", value, self.dtype, &scalar)
        if status == OK:
            status = new_array(b"pad", self.dtype, padding.ndim, padding.shape, &padded)
        if status == OK:
            status = expanded(b"pad", scalar, padding.ndim, padding.shape, &wide)
        if status == OK:
            status = copy_into(padded, wide)
    if status == OK:
        status = _copy_inner(padding, padded, self, False)
    release(scalar)
    release(wide)
    if status != OK:
        release(padded)
        return status
    return array_result(with_layout_of_images(padded, self), result)


cdef int64_t _source_of(mode_t mode, int64_t position, int64_t size) noexcept nogil:
    """Return the element of a dimension that a position outside of it repeats."""
    if mode == REFLECT:
        return -position if position < 0 else 2 * (size - 1) - position if position >= size else position
    if mode == REPLICATE:
        return 0 if position < 0 else size - 1 if position >= size else position
    return position + size if position < 0 else position - size if position >= size else position


cdef bint _unpadded(const padding_t *padding, int dim) noexcept nogil:
    """Return whether this dimension has no padding."""
    return padding.before[dim] == 0 and padding.after[dim] == 0


cdef void _rows_body(void *context, int64_t begin, int64_t end) noexcept nogil:
    pad_rows(<const pad_rows_t *>context, begin, end)


cdef void _fill_index(const padding_t *padding, int dim, int64_t size, int64_t *index) noexcept nogil:
    """List the element that each position of a padded dimension repeats."""
    cdef int64_t i, before = padding.before[dim], first = 0
    if padding.mode == CIRCULAR:             # negative paddings crop before wrapping
        first = max(-before, 0)
        before = max(before, 0)
        size -= first + max(-padding.after[dim], 0)
    for i in range(padding.shape[dim]):
        index[i] = first + (i if _unpadded(padding, dim) else _source_of(padding.mode, i - before, size))


cdef int _source_offsets(const padding_t *padding, const array_t *array, int dim, int64_t size,
                         array_t **offsets) noexcept nogil:
    """List the byte offset of the source of each position of a padded dimension."""
    cdef int64_t i, length = padding.shape[dim], step = array.strides[dim] * itemsize(array.dtype)
    offsets[0] = array_empty(INT64, 1, &length)
    if offsets[0] == NULL:
        return MEMORY_ERROR
    _fill_index(padding, dim, size, <int64_t *>offsets[0].data)
    for i in range(length):
        (<int64_t *>offsets[0].data)[i] *= step
    return OK


cdef int _pad_own(padding_t *padding, array_t *self, value_t *result) noexcept nogil:
    """Copy each row from the row that it repeats."""
    cdef pad_rows_t rows
    cdef array_t *source = as_contiguous(self, -1)
    cdef array_t *padded = NULL
    cdef array_t *table = NULL
    cdef int64_t *index
    cdef int64_t total = 0, lines = 1
    cdef int dim, last = padding.ndim - 1
    if source == NULL:
        return MEMORY_ERROR
    for dim in range(padding.ndim):
        total += padding.shape[dim]
        lines *= padding.shape[dim] if dim < last else 1
    cdef int status = new_array(b"pad", self.dtype, padding.ndim, padding.shape, &padded)
    if status == OK:
        status = new_array(b"pad", INT64, 1, &total, &table)
    if status == OK and padded.size:
        index = <int64_t *>table.data
        for dim in range(padding.ndim):
            _fill_index(padding, dim, source.shape[dim], index)
            rows.index[dim] = index
            rows.steps[dim] = source.strides[dim] * itemsize(source.dtype)
            index += padding.shape[dim]
        rows.ndim, rows.shape, rows.bytes = padding.ndim, padding.shape, itemsize(source.dtype)
        rows.first = min(max(padding.before[last], 0), padding.shape[last] - 1)
        rows.count = 1
        while rows.first + rows.count < padding.shape[last] and (
                rows.index[last][rows.first + rows.count] == rows.index[last][rows.first] + rows.count):
            rows.count += 1
        rows.source, rows.result = source.data, padded.data
        parallel_for(_rows_body, &rows, lines, rows_per_chunk(padding.shape[last], GATHERED))
    release(source)
    release(table)
    if status != OK:
        release(padded)
        return status
    return array_result(with_layout_of_images(padded, self), result)


cdef int pad_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """pad(self, pad, mode, value): negative paddings crop."""
    cdef array_t *self
    cdef padding_t padding
    cdef mode_t mode = CONSTANT
    cdef int dim, status = array_argument(b"pad", b"self", &arguments[0], &self)
    if status == OK:
        status = _mode(&arguments[2], &mode)
    if status == OK:
        status = _make_padding(b"pad", mode, &arguments[1], self.ndim, self.shape, &padding)
    if status != OK:
        return status
    if mode == REFLECT or mode == REPLICATE:
        for dim in range(max(0, self.ndim - arguments[1].count // 2 - 1), self.ndim):
            if self.shape[dim] == 0:
                snprintf(message(), MESSAGE, b"pad: expected possibly 0 batch size and other non-zero dimensions for "
                         b"the input (got shape %s). Pad with a constant.", shape_text(self))
                return RUNTIME_ERROR
    if mode == CONSTANT:
        return _pad_constant(&padding, self, &arguments[3], &results[0])
    return _pad_own(&padding, self, &results[0])


cdef int _sum_own(const padding_t *padding, array_t *grad, const int64_t *shape, value_t *result) noexcept nogil:
    """Add the gradient of each position to its source, by dimension, the last one first."""
    cdef array_t *current = as_contiguous(grad, -1)
    cdef array_t *offsets = NULL
    cdef array_t *smaller = NULL
    cdef int64_t sizes[MAX_DIMS]
    cdef int dim, status = OK if current != NULL else MEMORY_ERROR
    for dim in range(padding.ndim - 1, -1, -1):
        if status != OK or _unpadded(padding, dim):
            continue
        memcpy(sizes, current.shape, padding.ndim * sizeof(int64_t))
        sizes[dim] = shape[dim]
        smaller = offsets = NULL
        status = new_zeros(b"pad_backward", grad.dtype, padding.ndim, sizes, &smaller)
        if status == OK:
            status = _source_offsets(padding, smaller, dim, shape[dim], &offsets)
        if status == OK:
            move_along(ADD, smaller, dim, current, <const int64_t *>offsets.data, offsets.size)
        release(offsets)
        release(current)
        current = smaller
    if status != OK:
        release(current)
        return status
    return array_result(current, result)


cdef int pad_backward_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """pad_backward(grad, shape, pad, mode): the gradient of the padded array's input."""
    cdef array_t *grad
    cdef array_t *zeros = NULL
    cdef padding_t padding
    cdef const int64_t *shape
    cdef mode_t mode = CONSTANT
    cdef int ndim, status = array_argument(b"pad_backward", b"grad", &arguments[0], &grad)
    if status == OK:
        status = integers_argument(b"pad_backward", b"shape", &arguments[1], &ndim, &shape)
    if status == OK:
        status = _mode(&arguments[3], &mode)
    if status == OK and ndim > MAX_DIMS:
        snprintf(message(), MESSAGE, b"pad_backward: too many dimensions (got %d).", ndim)
        status = RUNTIME_ERROR
    if status == OK:
        status = _make_padding(b"pad_backward", mode, &arguments[2], ndim, shape, &padding)
    if status == OK:
        status = check_same_shape(b"pad_backward", b"grad", grad, ndim, padding.shape)
    if status != OK:
        return status
    if mode != CONSTANT:
        return _sum_own(&padding, grad, shape, &results[0])
    status = new_zeros(b"pad_backward", grad.dtype, ndim, shape, &zeros)
    if status == OK:
        status = _copy_inner(&padding, grad, zeros, True)
    if status != OK:
        release(zeros)
        return status
    return array_result(zeros, &results[0])


register_kernel("pad", pad_kernel)
register_kernel("pad_backward", pad_backward_kernel)
