"""
Attention weights: softmax of scaled and masked scores along the last dimension.

A fully masked row has the weights 0. Rows are independent, so results are bit-identical for any number of threads.
"""

from libc.math cimport INFINITY
from libc.stdint cimport int64_t, uint8_t
from libc.stdio cimport snprintf
from libc.string cimport memset
from cygrad._core.arrays.array cimport (
    MAX_DIMS, NOTHING, array_empty_like, array_t, as_real, is_true, register_kernel, release, shape_text, value_t,
)
from cygrad._core.arrays.dtype cimport BOOL, FLOAT32, dtype_name, is_floating, itemsize
from cygrad._core.elementwise.copying cimport as_contiguous
from cygrad._core.kernels.arguments cimport array_argument, array_result
from cygrad._core.kernels.reduction.reduce_engine cimport row_maximum, row_sum
from cygrad._core.kernels.reduction.softmax cimport exponentiate
from cygrad._core.memory.errors cimport MESSAGE, NOT_IMPLEMENTED, OK, RUNTIME_ERROR, message
from cygrad._core.threads.parallel cimport grain, parallel_for

cdef enum:
    COST = 4              # additions that an element costs

ctypedef fused floating:
    float
    double

ctypedef struct attention_t:
    const array_t *scores                # contiguous
    const array_t *mask                  # or NULL
    int64_t[MAX_DIMS] steps              # strides of the mask along the dimensions of the scores
    double scale
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


cdef void _row(attention_t *work, int64_t row, floating *out) noexcept nogil:
    cdef int64_t n = work.scores.shape[work.scores.ndim - 1], size = n, k, step
    cdef const floating *scores = <const floating *>work.scores.data + row * n
    cdef const char *mask
    cdef floating scale = <floating>work.scale, shift, factor
    cdef int dtype = work.scores.dtype
    if work.causal:
        size = min(n, row % work.scores.shape[work.scores.ndim - 2] + 1)
    for k in range(size):
        out[k] = scores[k] * scale
    if work.mask != NULL:
        mask = _mask_row(work, row)
        step = work.steps[work.scores.ndim - 1]
        if work.mask.dtype == BOOL:
            for k in range(size):
                if not (<const uint8_t *>mask)[k * step]:
                    out[k] = -INFINITY
        else:
            for k in range(size):
                out[k] = out[k] + (<const floating *>mask)[k * step]
    shift = <floating>row_maximum(dtype, <char *>out, size) if size > 0 else <floating>-INFINITY
    if shift == -INFINITY:
        memset(out, 0, n * sizeof(floating))
        return
    for k in range(size):
        out[k] = out[k] - shift
    exponentiate(dtype, <char *>out, size)
    factor = <floating>(1 / row_sum(dtype, <char *>out, size))
    for k in range(size):
        out[k] = out[k] * factor
    memset(out + size, 0, (n - size) * sizeof(floating))


cdef void _body(void *context, int64_t begin, int64_t end) noexcept nogil:
    cdef attention_t *work = <attention_t *>context
    cdef int64_t row, n = work.scores.shape[work.scores.ndim - 1]
    for row in range(begin, end):
        if work.scores.dtype == FLOAT32:
            _row(work, row, <float *>work.out.data + row * n)
        else:
            _row(work, row, <double *>work.out.data + row * n)


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
    return OK


cdef int attention_weights_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """attention_weights(scores, mask, scale, causal)."""
    cdef attention_t work
    cdef array_t *scores
    cdef array_t *held
    cdef int64_t n
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
    work.scale, work.causal = as_real(&arguments[2]), is_true(&arguments[3])
    if arguments[1].kind != NOTHING:
        status = _set_mask(&work, &arguments[1])
        if status != OK:
            return status
    held = as_contiguous(scores, -1)
    if held != NULL:
        work.scores = held
        work.out = array_empty_like(held, -1)
    if work.out != NULL and held.size:
        n = held.shape[held.ndim - 1]
        parallel_for(_body, &work, held.size // n, grain(COST * n))
    release(held)
    return array_result(work.out, &results[0])


register_kernel("attention_weights", attention_weights_kernel)
