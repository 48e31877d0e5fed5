"""
Batch, layer, group and RMS normalization, and their derivatives.

Channels (batch normalization) have statistics over all dimensions except 1, rows (layer normalization) over the last
`dims` dimensions. Both are a stack of lines (normalization.h). Statistics keep the reduced dimensions with size 1, so
that formulas can broadcast them.
"""

from libc.stdint cimport int64_t
from libc.stdio cimport snprintf
from libc.string cimport memset
from cygrad._core.arrays.array cimport (
    ARRAY, MAX_DIMS, NOTHING, array_t, as_real, register_kernel, release, shape_text, value_t,
)
from cygrad._core.arrays.dtype cimport FLOAT32, dtype_name, is_floating, itemsize
from cygrad._core.elementwise.copying cimport as_contiguous, with_layout_of_images
from cygrad._core.elementwise.rows cimport columns_per_tile, rows_t
from cygrad._core.kernels.arguments cimport (
    array_argument, array_result, check_same_shape, integer_argument, integers_argument, new_array,
)
from cygrad._core.kernels.reduction.reductions cimport SUM, reduce_array
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, NOT_IMPLEMENTED, OK, RUNTIME_ERROR, message
from cygrad._core.threads.grain cimport COMPUTED, MOVED, rows_per_chunk
from cygrad._core.threads.parallel cimport parallel_for

cdef extern from "kernels/nn/normalization.h" nogil:
    ctypedef struct channels_t:
        int64_t outer
        int64_t channels
        int64_t inner
        int64_t segments
        int64_t groups
        int by_channel
        int centered
        double eps
    int64_t tile_of(const channels_t *c)
    ctypedef void (*normalize_t)(const channels_t *c, int64_t first, int64_t n, void **x, void **out)
    normalize_t[2] normalize
    normalize_t[2] normalize_sums
    normalize_t[2] normalize_backward

cdef enum:
    ROWS_PIECE = 1 << 16     # elements of rows with separate column sums
    OPERANDS = 6

ctypedef enum normalization_task_t:
    NORMALIZE                  # x, weight, bias -> result, mean, rstd, variance
    SUMS                       # grad, x, no weight, mean, rstd -> along, total
    BACKWARD                   # grad, x, weight, mean, rstd -> result, along, total

ctypedef struct normalization_t:
    channels_t channels
    normalization_task_t task
    int dtype
    int64_t tile                         # channels or rows processed together
    bint parts                           # each tile has separate sums
    int64_t[MAX_DIMS] statistics         # their shape
    array_t *held[OPERANDS]              # contiguous operands
    void *operand[OPERANDS]
    void *result[4]


cdef void _body(void *context, int64_t begin, int64_t end) noexcept nogil:
    """Process tiles of channels or rows."""
    cdef normalization_t *work = <normalization_t *>context
    cdef channels_t *c = &work.channels
    cdef bint double_precision = work.dtype != FLOAT32
    cdef void *out[4]
    cdef int64_t tile, first, n, part = c.inner * itemsize(work.dtype)
    for tile in range(begin, end):
        first = tile * work.tile
        n = min(work.tile, c.channels - first)
        if work.task == NORMALIZE:
            normalize[double_precision](c, first, n, work.operand, work.result)
        elif work.task == SUMS:
            normalize_sums[double_precision](c, first, n, work.operand, work.result)
        else:
            out[0], out[1], out[2] = work.result[0], work.result[1], work.result[2]
            if work.parts:
                out[1] = <char *>out[1] + tile * part
                out[2] = <char *>out[2] + tile * part
            normalize_backward[double_precision](c, first, n, work.operand, out)


cdef int _lay_out(normalization_t *work, const char *name, const array_t *input,
                  const value_t *dims_value) noexcept nogil:
    """Set channels and lines of the input, and the shape of the statistics."""
    cdef channels_t *c = &work.channels
    cdef int64_t dims
    cdef int i, status = integer_argument(name, b"dims", dims_value, &dims)
    if status != OK:
        return status
    if not is_floating(input.dtype):
        snprintf(message(), MESSAGE, b"%s: needs float32 or float64 (got %s). Convert with to() first.", name,
                 dtype_name(input.dtype))
        return NOT_IMPLEMENTED
    if not 0 <= dims <= input.ndim or (dims == 0 and input.ndim < 2):
        snprintf(message(), MESSAGE, b"%s: the input has too few dimensions (got shape %s, expected at least %lld).",
                 name, shape_text(input), <long long>(dims if dims else 2))
        return RUNTIME_ERROR
    work.dtype = input.dtype
    work.tile = 0
    c.outer = c.channels = c.inner = 1
    c.segments, c.groups = 0, 1
    c.by_channel = dims == 0
    c.centered = True
    work.parts = False
    for i in range(input.ndim):
        work.statistics[i] = 1
        if dims == 0 and i == 0:
            c.outer = input.shape[i]
        elif i == 1 if dims == 0 else i < input.ndim - dims:
            c.channels *= input.shape[i]
            work.statistics[i] = input.shape[i]
        else:
            c.inner *= input.shape[i]
    for i in range(OPERANDS):
        work.held[i] = NULL
        work.operand[i] = NULL
    for i in range(4):
        work.result[i] = NULL
    return OK


cdef int _hold(normalization_t *work, const char *name, int place, const char *what, const value_t *value, int64_t size,
               bint optional) noexcept nogil:
    """Return an operand of `n` elements, made contiguous."""
    cdef array_t *array
    cdef int status
    if optional and value.kind == NOTHING:
        return OK
    status = array_argument(name, what, value, &array)
    if status != OK:
        return status
    if array.dtype != work.dtype or array.size != size:
        snprintf(message(), MESSAGE, b"%s: %s does not match the input (got shape %s of %s, expected %lld elements of "
                 b"%s).", name, what, shape_text(array), dtype_name(array.dtype), <long long>size,
                 dtype_name(work.dtype))
        return RUNTIME_ERROR
    work.held[place] = as_contiguous(array, -1)
    if work.held[place] == NULL:
        return MEMORY_ERROR
    work.operand[place] = work.held[place].data
    return OK


cdef void _lay_segments(normalization_t *work, const array_t *input, int dims, int ndim) noexcept nogil:
    """
    Set groups and segments if weight or bias have more than one dimension.

    With one dimension more than a row they have an element for each index of the first dimension of rows and the one
    before, and are constant along the others.
    """
    if 0 < dims < ndim and dims < input.ndim:
        work.channels.segments = input.shape[input.ndim - dims]
        work.channels.groups = max(1, input.shape[input.ndim - dims - 1])


cdef int64_t _lay_weight(normalization_t *work, const array_t *input, int dims, const value_t *weight) noexcept nogil:
    """Return the size of weight or bias: one element per channel, element of a row, or segment."""
    cdef channels_t *c = &work.channels
    if weight.kind == ARRAY:
        _lay_segments(work, input, dims, weight.of.array.ndim)
    return c.channels if c.by_channel else c.segments * c.groups if c.segments else c.inner


cdef void _run(normalization_t *work) noexcept nogil:
    """Process all channels."""
    cdef channels_t *c = &work.channels
    cdef rows_t rows = rows_t(1, c.outer, c.channels * c.inner)
    if not work.tile:
        work.tile = tile_of(c)
        if work.tile:
            work.tile = columns_per_tile(&rows, work.tile * c.inner, COMPUTED) // c.inner
        work.tile = max(1, work.tile)
    parallel_for(_body, work, (c.channels + work.tile - 1) // work.tile,
                 rows_per_chunk(c.outer * c.inner * work.tile, COMPUTED))


cdef int _finish(normalization_t *work, int status, int count, array_t **made, value_t *results) noexcept nogil:
    """Release the operands; store the arrays as results unless `status` is an error."""
    cdef int i
    for i in range(OPERANDS):
        release(work.held[i])
    for i in range(count):
        if status == OK and made[i] != NULL:
            array_result(made[i], &results[i])
        elif made[i] != NULL:
            release(made[i])
    return status


cdef int _normalize(const char *name, bint centered, const value_t *self, const value_t *weight, const value_t *bias,
                    const value_t *dims, const value_t *eps, array_t **made, normalization_t *work) noexcept nogil:
    """Compute result, mean, 1 / deviation, variance; mean and variance only if centered."""
    cdef array_t *input
    cdef int i, status = array_argument(name, b"input", self, &input)
    for i in range(4):
        made[i] = NULL
    if status == OK:
        status = _lay_out(work, name, input, dims)
    if status != OK:
        return status
    work.task = NORMALIZE
    work.channels.eps = as_real(eps)
    work.channels.centered = centered
    status = _hold(work, name, 0, b"input", self, input.size, False)
    if status == OK:
        status = _hold(work, name, 1, b"weight", weight, _lay_weight(work, input, <int>dims.of.integer, weight), True)
    if status == OK:
        status = _hold(work, name, 2, b"bias", bias, _lay_weight(work, input, <int>dims.of.integer, bias), True)
    for i in range(4):
        if status == OK and (centered or i % 2 == 0):
            status = new_array(name, work.dtype, input.ndim, input.shape if i == 0 else work.statistics, &made[i])
            work.result[i] = made[i].data if status == OK else NULL
    if status == OK:
        _run(work)
    return status


cdef int normalize_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """normalize(self, weight, bias, dims, eps) -> result, mean, 1 / deviation, variance."""
    cdef normalization_t work
    cdef array_t *made[4]
    cdef const char *name = b"layer_norm" if arguments[3].of.integer else b"batch_norm"
    cdef int status
    memset(&work, 0, sizeof(work))
    status = _normalize(name, True, &arguments[0], &arguments[1], &arguments[2], &arguments[3], &arguments[4], made,
                        &work)
    if status == OK and not arguments[3].of.integer:
        made[0] = with_layout_of_images(made[0], arguments[0].of.array)
        status = OK if made[0] != NULL else MEMORY_ERROR
    return _finish(&work, status, 4, made, results)


cdef int rms_norm_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """rms_norm(self, weight, dims, eps) -> result, 1 / root of the mean of squares."""
    cdef normalization_t work
    cdef value_t no_bias
    cdef array_t *made[4]
    cdef int status
    memset(&work, 0, sizeof(work))
    no_bias.kind = NOTHING
    status = _normalize(b"rms_norm", False, &arguments[0], &arguments[1], &no_bias, &arguments[2], &arguments[3], made,
                        &work)
    made[1] = made[2]
    return _finish(&work, status, 2, made, results)


cdef int _open_backward(normalization_t *work, const char *name, const value_t *arguments, int last, array_t **input,
                        int *dims) noexcept nogil:
    """Read gradient and input; argument number `last` is dims."""
    cdef array_t *grad
    cdef int status = array_argument(name, b"grad", &arguments[0], &grad)
    if status == OK:
        status = array_argument(name, b"images", &arguments[1], input)
    if status == OK:
        status = check_same_shape(name, b"grad", grad, input[0].ndim, input[0].shape)
    if status == OK:
        status = _lay_out(work, name, input[0], &arguments[last])
    if status == OK:
        dims[0] = <int>arguments[last].of.integer
        status = _hold(work, name, 0, b"grad", &arguments[0], input[0].size, False)
    if status == OK:
        status = _hold(work, name, 1, b"images", &arguments[1], input[0].size, False)
    return status


cdef int _hold_statistics(normalization_t *work, const char *name, const value_t *mean,
                          const value_t *rstd) noexcept nogil:
    """Read mean (None if not centered) and 1 / deviation."""
    cdef int status = _hold(work, name, 3, b"mean", mean, work.channels.channels,
                            not work.channels.by_channel)
    work.channels.centered = mean.kind != NOTHING
    if status == OK:
        status = _hold(work, name, 4, b"rstd", rstd, work.channels.channels, False)
    return status


cdef int normalize_sums_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """normalize_sums(grad, x, mean, rstd, dims) -> sum(grad * (x - mean) * rstd), sum(grad)."""
    cdef normalization_t work
    cdef array_t *input
    cdef array_t *made[2]
    cdef const char *name = b"normalize_sums"
    cdef int i, dims, status
    memset(&work, 0, sizeof(work))
    made[0] = made[1] = NULL
    status = _open_backward(&work, name, arguments, 4, &input, &dims)
    if status == OK:
        status = _hold_statistics(&work, name, &arguments[2], &arguments[3])
    work.task = SUMS
    for i in range(2):
        if status == OK:
            status = new_array(name, work.dtype, input.ndim, work.statistics, &made[i])
            work.result[i] = made[i].data if status == OK else NULL
    if status == OK:
        _run(&work)
    return _finish(&work, status, 2, made, results)


cdef enum:
    RESULT = 1  # requested results of normalize_backward, as bits
    ALONG = 2
    TOTAL = 4


cdef int normalize_backward_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """
    normalize_backward(grad, x, weight, mean, rstd, shape, dims, which), in one pass.

    The bits of `which` select the gradient of x and, in the shape of a weight, the sums of grad * (x - mean) * rstd and
    of grad.
    """
    cdef normalization_t work
    cdef array_t *input
    cdef array_t *made[3]
    cdef array_t *partial[2]
    cdef const int64_t *shape
    cdef int64_t[2] parts
    cdef int64_t size, which
    cdef bint[2] reduced
    cdef const char *name = b"normalize_backward"
    cdef channels_t *c = &work.channels
    cdef int i, ndim, dims, status
    memset(&work, 0, sizeof(work))
    for i in range(3):
        made[i] = NULL
    partial[0] = partial[1] = NULL
    status = _open_backward(&work, name, arguments, 6, &input, &dims)
    if status == OK:
        status = _hold_statistics(&work, name, &arguments[3], &arguments[4])
    if status == OK:
        status = integers_argument(name, b"shape", &arguments[5], &ndim, &shape)
    if status == OK:
        status = integer_argument(name, b"which", &arguments[7], &which)
    if status == OK and (which & (ALONG | TOTAL) or arguments[2].kind == ARRAY):
        _lay_segments(&work, input, dims, ndim if which & (ALONG | TOTAL) else arguments[2].of.array.ndim)
    size = c.channels if c.by_channel else c.segments * c.groups if c.segments else c.inner
    if status == OK:
        status = _hold(&work, name, 2, b"weight", &arguments[2], size, True)
    if status == OK and which & RESULT:
        status = new_array(name, work.dtype, input.ndim, input.shape, &made[0])
    for i in range(1, 3):
        if status == OK and which >> i & 1:
            status = new_array(name, work.dtype, ndim, shape, &made[i])
        if status == OK and made[i] != NULL and made[i].size != size:
            snprintf(message(), MESSAGE, b"%s: the shape of the weight does not match (got %s, expected %lld "
                                         b"elements).",
                     name, shape_text(made[i]), <long long>size)
            status = RUNTIME_ERROR
    if status == OK and not c.by_channel and (made[1] != NULL or made[2] != NULL):
        # Sums of chunks of rows, or of the segments of each row, are added afterwards.
        if not c.segments:
            work.parts = True
            work.tile = rows_per_chunk(c.inner, MOVED)
        parts[0] = c.channels // c.groups if c.segments else (c.channels + work.tile - 1) // work.tile
        parts[1] = size
        for i in range(2):
            if status == OK:
                status = new_array(name, work.dtype, 2, parts, &partial[i])
    if status == OK:
        work.task = BACKWARD
        for i in range(3):
            work.result[i] = made[i].data if made[i] != NULL else NULL
        if partial[0] != NULL:
            work.result[1], work.result[2] = partial[0].data, partial[1].data
        _run(&work)
    reduced[0], reduced[1] = True, False
    for i in range(2):
        if status == OK and partial[i] != NULL and made[i + 1] != NULL:
            status = reduce_array(SUM, 0, partial[i], reduced, made[i + 1], NULL)
        release(partial[i])
    return _finish(&work, status, 3, made, results)


register_kernel("normalize", normalize_kernel)
register_kernel("normalize_sums", normalize_sums_kernel)
register_kernel("normalize_backward", normalize_backward_kernel)
register_kernel("rms_norm", rms_norm_kernel)
