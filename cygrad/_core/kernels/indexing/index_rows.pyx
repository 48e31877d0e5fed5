"""Rows chosen along one dimension: index_select, index_add, embedding and its gradient, one_hot."""

from libc.stdint cimport int64_t
from libc.stdio cimport snprintf
from libc.string cimport memcpy, memset
from cygrad._core.arrays.array cimport MAX_DIMS, array_empty_like, array_t, release, shape_text
from cygrad._core.arrays.dtype cimport INT64, dtype_name, itemsize
from cygrad._core.arrays.value cimport INTEGER, NOTHING, register_kernel, value_t
from cygrad._core.elementwise.copying cimport as_contiguous
from cygrad._core.elementwise.offset_moves cimport ADD, READ, move_along
from cygrad._core.kernels.arguments cimport (
    array_argument, array_result, check_same_shape, fresh_copy, integer_argument, new_array, new_zeros,
    optional_integer, wrap_dim,
)
from cygrad._core.kernels.indexing.index cimport scalar_array
from cygrad._core.kernels.indexing.positions cimport check_index_dtype, index_rule_t, offsets_of
from cygrad._core.memory.errors cimport (
    INDEX_ERROR, MEMORY_ERROR, MESSAGE, OK, RUNTIME_ERROR, message,
)
from cygrad._core.primitives.primitive_table cimport entries, entry_t, primitive

cimport cygrad._core.elementwise.elementwise     # fills the table of loops when it is imported

cdef int _multiply = primitive("mul")


cdef int _row_offsets(const char *operation, const array_t *self, int dim, array_t *index, int error,
                      array_t **offsets) noexcept nogil:
    """Offsets of the rows along `dim` that an index without negative entries chooses."""
    cdef index_rule_t rule
    memset(&rule, 0, sizeof(rule))
    rule.operation, rule.dim, rule.error = operation, dim, error
    rule.size = self.shape[dim] if self.ndim else 1
    rule.step = self.strides[dim] * itemsize(self.dtype) if self.ndim else 0
    return offsets_of(index, &rule, offsets)


cdef int _open(const char *operation, const value_t *arguments, array_t **self, int *dim,
               array_t **index) noexcept nogil:
    """The arguments (self, dim, index) of index_select and index_add; the index is a vector."""
    cdef int64_t given
    cdef int status = array_argument(operation, b"self", &arguments[0], self)
    if status == OK:
        status = integer_argument(operation, b"dim", &arguments[1], &given)
    if status == OK:
        status = array_argument(operation, b"index", &arguments[2], index)
    if status == OK:
        status = wrap_dim(operation, given, self[0].ndim, dim)
    if status == OK:
        status = check_index_dtype(operation, index[0], RUNTIME_ERROR)
    if status == OK and index[0].ndim > 1:
        snprintf(message(), MESSAGE, b"%s: the index must be a vector (got shape %s).", operation, shape_text(index[0]))
        return INDEX_ERROR
    return status


cdef int index_select_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """index_select(self, dim, index): these rows along `dim`, copied."""
    cdef array_t *self
    cdef array_t *index
    cdef array_t *offsets = NULL
    cdef array_t *chosen = NULL
    cdef int64_t shape[MAX_DIMS]
    cdef int dim, status = _open(b"index_select", arguments, &self, &dim, &index)
    if status == OK and self.ndim == 0 and index.size != 1:
        snprintf(message(), MESSAGE, b"index_select: a 0-dim tensor has one element (got an index of shape %s).",
                 shape_text(index))
        status = RUNTIME_ERROR
    if status == OK:
        status = _row_offsets(b"index_select", self, dim, index, INDEX_ERROR, &offsets)
    if status != OK:
        return status
    memcpy(shape, self.shape, self.ndim * sizeof(int64_t))
    if self.ndim:
        shape[dim] = index.size
    status = new_array(b"index_select", self.dtype, self.ndim, shape, &chosen)
    if status == OK:
        move_along(READ, self, dim, chosen, <const int64_t *>offsets.data, index.size)
    release(offsets)
    return array_result(chosen, &results[0]) if status == OK else status


cdef int _scaled(array_t *source, const value_t *alpha, array_t **scaled) noexcept nogil:
    """alpha * source, contiguous; the source itself if it is contiguous and alpha is not given."""
    cdef array_t *factor = NULL
    cdef array_t *dense = as_contiguous(source, -1)
    cdef char *arguments[3]
    cdef int64_t steps[3]
    cdef entry_t entry = entries[_multiply][source.dtype]
    cdef int status = OK
    scaled[0] = dense
    if dense == NULL:
        return MEMORY_ERROR
    if alpha.kind == NOTHING or dense.size == 0 or (alpha.kind == INTEGER and alpha.of.integer == 1):
        return OK
    status = scalar_array(b"index_add", alpha, source.dtype, &factor)
    if status == OK:
        scaled[0] = array_empty_like(dense, -1)
        if scaled[0] == NULL:
            status = MEMORY_ERROR
        else:
            arguments[0], arguments[1], arguments[2] = dense.data, factor.data, scaled[0].data
            steps[0], steps[1], steps[2] = itemsize(source.dtype), 0, itemsize(source.dtype)
            entry.loop(arguments, &dense.size, steps, entry.data)
    else:
        scaled[0] = NULL
    release(factor)
    release(dense)
    return status


cdef int index_add_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """index_add(self, dim, index, source, alpha): a copy with alpha * source added to these rows, in order."""
    cdef array_t *self
    cdef array_t *index
    cdef array_t *source
    cdef array_t *scaled = NULL
    cdef array_t *offsets = NULL
    cdef array_t *total = NULL
    cdef int64_t shape[MAX_DIMS]
    cdef int dim, status = _open(b"index_add", arguments, &self, &dim, &index)
    if status == OK:
        status = array_argument(b"index_add", b"source", &arguments[3], &source)
    if status != OK:
        return status
    if source.dtype != self.dtype:
        snprintf(message(), MESSAGE, b"index_add: dtypes differ (got source of %s, expected %s). Convert source first.",
                 dtype_name(source.dtype), dtype_name(self.dtype))
        return RUNTIME_ERROR
    memcpy(shape, self.shape, self.ndim * sizeof(int64_t))
    if self.ndim:
        shape[dim] = index.size
    status = check_same_shape(b"index_add", b"source", source, self.ndim, shape)
    if status == OK and self.ndim == 0 and index.size != 1:
        snprintf(message(), MESSAGE, b"index_add: a 0-dim tensor has one element (got an index of shape %s).",
                 shape_text(index))
        status = RUNTIME_ERROR
    if status == OK:
        status = fresh_copy(self, &total)
    if status != OK:
        return status
    status = _row_offsets(b"index_add", total, dim, index, RUNTIME_ERROR, &offsets)
    if status == OK:
        status = _scaled(source, &arguments[4], &scaled)
    if status == OK:
        move_along(ADD, total, dim, scaled, <const int64_t *>offsets.data, index.size)
    release(scaled)
    release(offsets)
    if status != OK:
        release(total)
        return status
    return array_result(total, &results[0])


cdef int _check_weight(const char *operation, int ndim) noexcept nogil:
    """Refuse weights that are no table of rows."""
    if ndim == 2:
        return OK
    snprintf(message(), MESSAGE, b"%s: the weight must be a matrix (got %d dimensions, expected 2).", operation, ndim)
    return RUNTIME_ERROR


cdef int embedding_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """embedding(weight, index, padding_idx): the rows of a matrix that the index names, in the index's shape."""
    cdef array_t *weight
    cdef array_t *index
    cdef array_t *offsets = NULL
    cdef array_t *rows = NULL
    cdef int64_t shape[MAX_DIMS + 1]
    cdef int status = array_argument(b"embedding", b"weight", &arguments[0], &weight)
    if status == OK:
        status = array_argument(b"embedding", b"index", &arguments[1], &index)
    if status == OK:
        status = _check_weight(b"embedding", weight.ndim)
    if status == OK:
        status = check_index_dtype(b"embedding", index, RUNTIME_ERROR)
    if status == OK:
        status = _row_offsets(b"embedding", weight, 0, index, INDEX_ERROR, &offsets)
    if status != OK:
        return status
    memcpy(shape, index.shape, index.ndim * sizeof(int64_t))
    shape[index.ndim] = weight.shape[1]
    status = new_array(b"embedding", weight.dtype, index.ndim + 1, shape, &rows)
    if status == OK:
        move_along(READ, weight, 0, rows, <const int64_t *>offsets.data, index.size)
    release(offsets)
    return array_result(rows, &results[0]) if status == OK else status


cdef int embedding_backward_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """embedding_backward(grad, index, num_weights, padding_idx): rows summed in order, but for the padding's."""
    cdef array_t *grad
    cdef array_t *index
    cdef array_t *dense = NULL
    cdef array_t *offsets = NULL
    cdef array_t *zeros = NULL
    cdef index_rule_t rule
    cdef int64_t shape[MAX_DIMS + 1]
    cdef int64_t rows, padding
    cdef int status = array_argument(b"embedding_backward", b"grad", &arguments[0], &grad)
    if status == OK:
        status = array_argument(b"embedding_backward", b"index", &arguments[1], &index)
    if status == OK:
        status = check_index_dtype(b"embedding_backward", index, RUNTIME_ERROR)
    if status == OK:
        status = integer_argument(b"embedding_backward", b"num_weights", &arguments[2], &rows)
    if status == OK:
        status = optional_integer(b"embedding_backward", b"padding_idx", &arguments[3], -1, &padding)
    if status != OK:
        return status
    memcpy(shape, index.shape, index.ndim * sizeof(int64_t))
    shape[index.ndim] = grad.shape[grad.ndim - 1] if grad.ndim else 1
    status = check_same_shape(b"embedding_backward", b"grad", grad, index.ndim + 1, shape)
    if status == OK:
        shape[0], shape[1] = rows, grad.shape[grad.ndim - 1]
        status = new_zeros(b"embedding_backward", grad.dtype, 2, shape, &zeros)
    if status != OK:
        return status
    memset(&rule, 0, sizeof(rule))
    rule.operation, rule.error, rule.size = b"embedding_backward", INDEX_ERROR, rows
    rule.step = zeros.shape[1] * itemsize(grad.dtype)
    rule.skipping, rule.skipped = padding >= 0, padding
    status = offsets_of(index, &rule, &offsets)
    if status == OK:
        dense = as_contiguous(grad, -1)
        status = OK if dense != NULL else MEMORY_ERROR
    if status == OK:
        move_along(ADD, zeros, 0, dense, <const int64_t *>offsets.data, index.size)
    release(dense)
    release(offsets)
    if status != OK:
        release(zeros)
        return status
    return array_result(zeros, &results[0])


cdef int one_hot_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """one_hot(self, num_classes): a last dimension with 1 at the class and 0 elsewhere; -1: as many as needed."""
    cdef array_t *self
    cdef array_t *classes
    cdef array_t *zeros = NULL
    cdef const int64_t *values
    cdef int64_t shape[MAX_DIMS + 1]
    cdef int64_t number, i, low = 0, high = -1
    cdef int status = array_argument(b"one_hot", b"self", &arguments[0], &self)
    if status == OK:
        status = optional_integer(b"one_hot", b"num_classes", &arguments[1], -1, &number)
    if status != OK:
        return status
    if self.dtype != INT64:
        snprintf(message(), MESSAGE, b"one_hot: classes must be int64 (got %s). Convert them first.",
                 dtype_name(self.dtype))
        return RUNTIME_ERROR
    if self.size == 0 and number <= 0:
        snprintf(message(), MESSAGE, b"one_hot: the number of classes cannot be told from an empty tensor "
                 b"(got num_classes %lld). Give it.", <long long>number)
        return RUNTIME_ERROR
    classes = as_contiguous(self, -1)
    if classes == NULL:
        return MEMORY_ERROR
    values = <const int64_t *>classes.data
    for i in range(classes.size):
        low = min(low, values[i])
        high = max(high, values[i])
    if low < 0 or (number >= 0 and high >= number) or number < -1:
        snprintf(message(), MESSAGE, b"one_hot: class out of range (got classes from %lld to %lld with "
                 b"num_classes %lld, "
                 b"expected 0 <= class < num_classes).", <long long>low, <long long>high, <long long>number)
        release(classes)
        return RUNTIME_ERROR
    number = high + 1 if number < 0 else number
    memcpy(shape, self.shape, self.ndim * sizeof(int64_t))
    shape[self.ndim] = number
    status = new_zeros(b"one_hot", INT64, self.ndim + 1, shape, &zeros)
    if status == OK:
        for i in range(classes.size):
            # Checked again: another thread may have changed it since.
            if 0 <= values[i] < number:
                (<int64_t *>zeros.data)[i * number + values[i]] = 1
    release(classes)
    return array_result(zeros, &results[0]) if status == OK else status


register_kernel("index_select", index_select_kernel)
register_kernel("index_add", index_add_kernel)
register_kernel("embedding", embedding_kernel)
register_kernel("embedding_backward", embedding_backward_kernel)
register_kernel("one_hot", one_hot_kernel)
