"""
Softmax, log_softmax, their derivatives and attention weights, a row at a time while it is in the cache.

Rows along the last dimension are processed one by one; along another dimension, a tile of adjacent rows at a time, so
that memory is read in order. Rows are independent, so results are bit-identical for any number of threads.
"""

from libc.stdint cimport int64_t
from libc.stdio cimport snprintf

from cygrad._core.arrays.array cimport (
    MAX_DIMS, NOTHING, array_empty_like, array_t, as_real, is_true, register_kernel, release, set_array, shape_text,
    value_t,
)
from cygrad._core.arrays.dtype cimport BOOL, FLOAT32, dtype_name, is_floating, itemsize
from cygrad._core.elementwise.copying cimport as_contiguous
from cygrad._core.elementwise.rows cimport columns_per_tile, rows_along, rows_t
from cygrad._core.kernels.arguments cimport array_argument, array_result, check_same_shape, integer_argument, wrap_dim
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, NOT_IMPLEMENTED, OK, RUNTIME_ERROR, message
from cygrad._core.threads.grain cimport COMPUTED, rows_per_chunk
from cygrad._core.threads.parallel cimport parallel_for

cdef extern from "kernels/reduction/softmax_rows.h" nogil:
    enum:
        COLUMNS
    ctypedef enum softmax_operation_t:
        SOFTMAX
        LOG_SOFTMAX
        SOFTMAX_BACKWARD
        LOG_SOFTMAX_BACKWARD
    ctypedef void (*softmax_rows_t)(const void *x, const void *result, void *out, int64_t n,
                                    int64_t rows) noexcept nogil
    ctypedef void (*softmax_columns_t)(const void *x, const void *result, void *out, int64_t n, int64_t stride,
                                       int64_t width) noexcept nogil
    softmax_rows_t[4][2] softmax_rows
    softmax_columns_t[4][2] softmax_columns
    ctypedef struct attention_row_t:
        bint mask_is_bool
        int64_t mask_step, n
        double scale
    void (*attention_row[2])(const attention_row_t *row, const void *scores, const void *mask, void *out, int64_t size)
    void (*scaled_exponentials_of[2])(const void *x, double factor, double less, void *out, int64_t n)

ctypedef struct softmax_t:
    softmax_rows_t along  # for contiguous rows
    softmax_columns_t columns
    int64_t item          # bytes of an element
    rows_t rows
    int64_t width         # of a tile of adjacent rows
    int64_t tiles         # of one outer index
    char *self            # or grad
    char *result          # of the forward pass
    char *out


cdef void scaled_exponentials(int dtype, const char *x, double factor, double less, char *out,
                              long long n) noexcept nogil:
    scaled_exponentials_of[dtype != FLOAT32](x, factor, less, out, n)


cdef void _body(void *context, int64_t begin, int64_t end) noexcept nogil:
    """Process rows, or tiles of adjacent rows."""
    cdef softmax_t *work = <softmax_t *>context
    cdef int64_t item, at, column, n = work.rows.n, inner = work.rows.inner
    if inner == 1:
        at = begin * n * work.item
        work.along(work.self + at, work.result + at, work.out + at, n, end - begin)
        return
    for item in range(begin, end):
        column = item % work.tiles * work.width
        at = (item // work.tiles * n * inner + column) * work.item
        work.columns(work.self + at, work.result + at, work.out + at, n, inner, min(work.width, inner - column))


cdef void _run(softmax_operation_t operation, array_t *self, array_t *result, int dim, array_t *out) noexcept nogil:
    """Run the operation on contiguous arrays of one floating dtype and shape."""
    cdef softmax_t work
    if out.size == 0:
        return
    work.along = softmax_rows[<int>operation][out.dtype != FLOAT32]
    work.columns = softmax_columns[<int>operation][out.dtype != FLOAT32]
    work.item = itemsize(out.dtype)
    rows_along(out, dim, &work.rows)
    work.width = columns_per_tile(&work.rows, COLUMNS, COMPUTED)
    work.tiles = (work.rows.inner + work.width - 1) // work.width
    work.self = self.data
    work.result = result.data if result != NULL else self.data    # not read by operations without it
    work.out = out.data
    parallel_for(_body, &work, work.rows.outer * work.tiles, rows_per_chunk(work.rows.n * work.width, COMPUTED))


cdef void log_softmax_into(array_t *self, int dim, array_t *out) noexcept nogil:
    _run(LOG_SOFTMAX, self, NULL, dim, out)


cdef int _new_result(softmax_operation_t operation, array_t *self, array_t *result, int dim,
                     value_t *results) noexcept nogil:
    """Run the operation; take over both references."""
    cdef array_t *out = NULL
    if self != NULL and (result != NULL or operation <= LOG_SOFTMAX):
        out = array_empty_like(self, -1)
    if out != NULL:
        _run(operation, self, result, dim, out)
        set_array(results, out)
    release(self)
    release(result)
    return OK if out != NULL else MEMORY_ERROR


cdef int _forward(const char *name, softmax_operation_t operation, const value_t *arguments,
                  value_t *results) noexcept nogil:
    cdef array_t *self
    cdef int64_t given
    cdef int dim, dtype, status = array_argument(name, b"self", &arguments[0], &self)
    if status == OK:
        status = integer_argument(name, b"dim", &arguments[1], &given)
    if status == OK:
        status = wrap_dim(name, given, self.ndim, &dim)
    if status != OK:
        return status
    dtype = <int>arguments[2].of.integer if arguments[2].kind != NOTHING else self.dtype
    if not is_floating(dtype):
        snprintf(message(), MESSAGE, b"%s: needs float32 or float64 (got %s). Pass dtype=float32 or convert "
                 b"self.",
                 name, dtype_name(dtype))
        return NOT_IMPLEMENTED
    return _new_result(operation, as_contiguous(self, dtype), NULL, dim, results)


cdef int softmax_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """softmax(self, dim, dtype)."""
    return _forward(b"softmax", SOFTMAX, arguments, results)


cdef int log_softmax_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """log_softmax(self, dim, dtype)."""
    return _forward(b"log_softmax", LOG_SOFTMAX, arguments, results)


cdef int _backward(const char *name, softmax_operation_t operation, const value_t *arguments,
                   value_t *results) noexcept nogil:
    cdef array_t *grad
    cdef array_t *result
    cdef int64_t given
    cdef int dim, status = array_argument(name, b"grad", &arguments[0], &grad)
    if status == OK:
        status = array_argument(name, b"result", &arguments[1], &result)
    if status == OK:
        status = integer_argument(name, b"dim", &arguments[2], &given)
    if status == OK:
        status = wrap_dim(name, given, result.ndim, &dim)
    if status == OK:
        status = check_same_shape(name, b"grad", grad, result.ndim, result.shape)
    if status != OK:
        return status
    if not is_floating(result.dtype):
        snprintf(message(), MESSAGE, b"%s: needs float32 or float64 (got %s).", name,
                 dtype_name(result.dtype))
        return RUNTIME_ERROR
    return _new_result(operation, as_contiguous(grad, result.dtype), as_contiguous(result, -1), dim, results)


cdef int softmax_backward_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """softmax_backward(grad, result, dim)."""
    return _backward(b"softmax_backward", SOFTMAX_BACKWARD, arguments, results)


cdef int log_softmax_backward_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """log_softmax_backward(grad, result, dim)."""
    return _backward(b"log_softmax_backward", LOG_SOFTMAX_BACKWARD, arguments, results)


register_kernel("softmax", softmax_kernel)
register_kernel("log_softmax", log_softmax_kernel)
register_kernel("softmax_backward", softmax_backward_kernel)
register_kernel("log_softmax_backward", log_softmax_backward_kernel)


# ---- attention: softmax of scaled and masked scores along the last dimension; fully masked rows have the weights 0

ctypedef struct attention_t:
    const array_t *scores                # contiguous
    const array_t *mask                  # or NULL
    int64_t[MAX_DIMS] steps              # strides of the mask along the dimensions of the scores
    attention_row_t row
    bint causal
    array_t *out


cdef const char *_mask_row(attention_t *work, int64_t row) noexcept nogil:
    """Return the row of the mask for a row of the scores."""
    cdef int64_t offset = 0, place
    cdef int i
    for i in range(work.scores.ndim - 2, -1, -1):
        place = row % work.scores.shape[i]
        row //= work.scores.shape[i]
        offset += place * work.steps[i]
    return work.mask.data + offset * itemsize(work.mask.dtype)


cdef void _attention_rows(void *context, int64_t begin, int64_t end) noexcept nogil:
    cdef attention_t *work = <attention_t *>context
    cdef int64_t row, at, n = work.row.n, lines = work.scores.shape[work.scores.ndim - 2]
    for row in range(begin, end):
        at = row * n * itemsize(work.out.dtype)
        attention_row[work.out.dtype != FLOAT32](
            &work.row, work.scores.data + at, _mask_row(work, row) if work.mask != NULL else NULL,
            work.out.data + at, min(n, row % lines + 1) if work.causal else n)


cdef int _set_mask(attention_t *work, const value_t *value) noexcept nogil:
    """Read the mask and broadcast it to the scores."""
    cdef array_t *mask
    cdef const array_t *scores = work.scores
    cdef int i, ahead
    cdef bint fits
    cdef int status = array_argument(b"scaled_dot_product_attention", b"attn_mask", value, &mask)
    if status != OK:
        return status
    if mask.dtype != BOOL and mask.dtype != scores.dtype:
        snprintf(message(), MESSAGE, b"scaled_dot_product_attention: attn_mask must be bool or of the type of the "
                 b"query (got %s, expected bool or %s). Convert with to() first.", dtype_name(mask.dtype),
                 dtype_name(scores.dtype))
        return RUNTIME_ERROR
    ahead = scores.ndim - mask.ndim
    fits = ahead >= 0
    for i in range(mask.ndim):
        fits = fits and (mask.shape[i] == 1 or mask.shape[i] == scores.shape[ahead + i])
    if not fits:
        snprintf(message(), MESSAGE, b"scaled_dot_product_attention: attn_mask does not broadcast to the scores (got "
                 b"shape %s, expected %s).", shape_text(mask), shape_text(scores))
        return RUNTIME_ERROR
    for i in range(scores.ndim):
        work.steps[i] = 0 if i < ahead or mask.shape[i - ahead] == 1 else mask.strides[i - ahead]
    work.mask = mask
    work.row.mask_is_bool, work.row.mask_step = mask.dtype == BOOL, work.steps[scores.ndim - 1]
    return OK


cdef int attention_weights_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """attention_weights(scores, mask, scale, causal)."""
    cdef attention_t work
    cdef array_t *scores
    cdef array_t *held
    cdef int status = array_argument(b"scaled_dot_product_attention", b"scores", &arguments[0], &scores)
    if status != OK:
        return status
    if not is_floating(scores.dtype):
        snprintf(message(), MESSAGE, b"scaled_dot_product_attention: needs float32 or float64 (got %s). Convert with "
                 b"to() first.", dtype_name(scores.dtype))
        return NOT_IMPLEMENTED
    if scores.ndim < 2:
        snprintf(message(), MESSAGE, b"scaled_dot_product_attention: scores must have at least two dimensions (got "
                 b"shape %s).", shape_text(scores))
        return RUNTIME_ERROR
    work.scores, work.mask, work.out = scores, NULL, NULL
    work.causal = is_true(&arguments[3])
    work.row.n, work.row.scale = scores.shape[scores.ndim - 1], as_real(&arguments[2])
    if arguments[1].kind != NOTHING:
        status = _set_mask(&work, &arguments[1])
        if status != OK:
            return status
    held = as_contiguous(scores, -1)
    if held != NULL:
        work.scores = held
        work.out = array_empty_like(held, -1)
    if work.out != NULL and held.size:
        parallel_for(_attention_rows, &work, held.size // work.row.n, rows_per_chunk(work.row.n, COMPUTED))
    release(held)
    return array_result(work.out, &results[0])


register_kernel("attention_weights", attention_weights_kernel)
