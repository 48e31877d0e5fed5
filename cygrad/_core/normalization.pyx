"""
Normalisation: elements less their mean, divided by their deviation; over channels or over rows.

Channels, as in batch normalisation, are what dimension 1 counts: statistics over all other dimensions. Rows, as in
layer normalisation, are the last `dims` dimensions. Both are a stack of lines (normalization.h). Statistics have
the shape of the input with sizes 1 where it was reduced, so that formulas can broadcast them.
"""

from libc.stdint cimport int64_t
from libc.stdio cimport snprintf
from cygrad._core.arguments cimport array_argument, array_result, check_same_shape, integer_argument, new_array
from cygrad._core.array cimport MAX_DIMS, array_t, release, shape_text
from cygrad._core.copy cimport as_contiguous
from cygrad._core.dtype cimport FLOAT32, dtype_name, is_floating
from cygrad._core.errors cimport MEMORY_ERROR, MESSAGE, NOT_IMPLEMENTED, OK, RUNTIME_ERROR, message
from cygrad._core.parallel cimport parallel_for
from cygrad._core.value cimport NOTHING, as_real, register_kernel, value_t

cdef extern from "normalization.h" nogil:
    ctypedef struct channels_t:
        int64_t outer
        int64_t channels
        int64_t inner
        int by_channel
        double eps
    void normalize_float(const channels_t *c, int64_t channel, const void *x, const void *weight, const void *bias,
                         void *result, void *mean, void *rstd, void *variance)
    void normalize_double(const channels_t *c, int64_t channel, const void *x, const void *weight, const void *bias,
                          void *result, void *mean, void *rstd, void *variance)
    void normalize_sums_float(const channels_t *c, int64_t channel, const void *grad, const void *x,
                              const void *weight, const void *mean, const void *rstd, void *along, void *total)
    void normalize_sums_double(const channels_t *c, int64_t channel, const void *grad, const void *x,
                               const void *weight, const void *mean, const void *rstd, void *along, void *total)
    void normalize_columns_float(const channels_t *c, int64_t begin, int64_t end, const void *grad, const void *x,
                                 const void *mean, const void *rstd, void *result)
    void normalize_columns_double(const channels_t *c, int64_t begin, int64_t end, const void *grad, const void *x,
                                  const void *mean, const void *rstd, void *result)
    void normalize_backward_float(const channels_t *c, int64_t channel, const void *grad, const void *x,
                                  const void *weight, const void *mean, const void *rstd, void *result)
    void normalize_backward_double(const channels_t *c, int64_t channel, const void *grad, const void *x,
                                   const void *weight, const void *mean, const void *rstd, void *result)

cdef enum:
    PIECE = 1 << 14            # elements worth a thread
    COLUMN_PIECE = 256         # columns summed at a time
    OPERANDS = 6

ctypedef enum task_t:
    NORMALIZE                  # x, weight, bias -> result, mean, rstd, variance
    SUMS                       # grad, x, mean, rstd, no weight -> along, total
    COLUMNS                    # the same, over rows -> along
    BACKWARD                   # grad, x, weight, mean, rstd -> result

ctypedef struct work_t:
    channels_t channels
    task_t task
    int dtype
    int64_t[MAX_DIMS] statistics         # their shape
    array_t *held[OPERANDS]              # contiguous operands
    void *operand[OPERANDS]
    void *result[4]


cdef void _body(void *context, int64_t begin, int64_t end) noexcept nogil:
    cdef work_t *work = <work_t *>context
    cdef channels_t *c = &work.channels
    cdef void **x = work.operand
    cdef void **out = work.result
    cdef bint single = work.dtype == FLOAT32
    cdef int64_t channel
    if work.task == COLUMNS:
        if single:
            normalize_columns_float(c, begin, end, x[0], x[1], x[2], x[3], out[0])
        else:
            normalize_columns_double(c, begin, end, x[0], x[1], x[2], x[3], out[0])
        return
    for channel in range(begin, end):
        if work.task == NORMALIZE:
            if single:
                normalize_float(c, channel, x[0], x[1], x[2], out[0], out[1], out[2], out[3])
            else:
                normalize_double(c, channel, x[0], x[1], x[2], out[0], out[1], out[2], out[3])
        elif work.task == SUMS:
            if single:
                normalize_sums_float(c, channel, x[0], x[1], x[4], x[2], x[3], out[0], out[1])
            else:
                normalize_sums_double(c, channel, x[0], x[1], x[4], x[2], x[3], out[0], out[1])
        elif single:
            normalize_backward_float(c, channel, x[0], x[1], x[2], x[3], x[4], out[0])
        else:
            normalize_backward_double(c, channel, x[0], x[1], x[2], x[3], x[4], out[0])


cdef int _lay_out(work_t *work, const char *name, const array_t *input, const value_t *dims_value) noexcept nogil:
    """Channels and lines of the input, and the shape of their statistics."""
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
    c.outer = c.channels = c.inner = 1
    c.by_channel = dims == 0
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
    return OK


cdef int _hold(work_t *work, const char *name, int place, const char *what, const value_t *value, int64_t size,
               bint optional) noexcept nogil:
    """An operand of so many elements, made contiguous."""
    cdef array_t *array
    cdef int status
    if optional and value.kind == NOTHING:
        return OK
    status = array_argument(name, what, value, &array)
    if status != OK:
        return status
    if array.dtype != work.dtype or array.size != size:
        snprintf(message(), MESSAGE, b"%s: %s does not fit the input (got shape %s of %s, expected %lld elements of "
                 b"%s).", name, what, shape_text(array), dtype_name(array.dtype), <long long>size,
                 dtype_name(work.dtype))
        return RUNTIME_ERROR
    work.held[place] = as_contiguous(array, -1)
    if work.held[place] == NULL:
        return MEMORY_ERROR
    work.operand[place] = work.held[place].data
    return OK


cdef void _run(work_t *work) noexcept nogil:
    """All channels, or all columns."""
    cdef int64_t elements = work.channels.outer * work.channels.inner
    if work.task == COLUMNS:
        parallel_for(_body, work, work.channels.inner, COLUMN_PIECE)
        return
    parallel_for(_body, work, work.channels.channels, max(1, PIECE // max(elements, 1)))


cdef int _finish(work_t *work, int status, int count, array_t **made, value_t *results) noexcept nogil:
    """Let go of the operands; the arrays become results, unless something failed."""
    cdef int i
    for i in range(OPERANDS):
        release(work.held[i])
    for i in range(count):
        if status == OK:
            array_result(made[i], &results[i])
        else:
            release(made[i])
    return status


cdef int normalize_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """normalize(self, weight, bias, dims, eps) -> result, mean, 1 / deviation, variance."""
    cdef work_t work
    cdef array_t *input
    cdef array_t *made[4]
    cdef const char *name = b"layer_norm" if arguments[3].of.integer else b"batch_norm"
    cdef int64_t size
    cdef int i, status = array_argument(name, b"input", &arguments[0], &input)
    if status == OK:
        status = _lay_out(&work, name, input, &arguments[3])
    if status != OK:
        return status
    work.task = NORMALIZE
    work.channels.eps = as_real(&arguments[4])
    size = work.channels.channels if work.channels.by_channel else work.channels.inner
    for i in range(4):
        made[i] = NULL
    status = _hold(&work, name, 0, b"input", &arguments[0], input.size, False)
    if status == OK:
        status = _hold(&work, name, 1, b"weight", &arguments[1], size, True)
    if status == OK:
        status = _hold(&work, name, 2, b"bias", &arguments[2], size, True)
    for i in range(4):
        if status == OK:
            status = new_array(name, work.dtype, input.ndim, input.shape if i == 0 else work.statistics, &made[i])
            work.result[i] = made[i].data if status == OK else NULL
    if status == OK:
        _run(&work)
    return _finish(&work, status, 4, made, results)


cdef int normalize_sums_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """normalize_sums(grad, x, mean, rstd, dims) -> sum(grad * (x - mean) * rstd), sum(grad)."""
    cdef work_t work
    cdef array_t *grad
    cdef array_t *input
    cdef array_t *made[2]
    cdef const char *name = b"normalize_sums"
    cdef int i, status = array_argument(name, b"grad", &arguments[0], &grad)
    if status == OK:
        status = array_argument(name, b"images", &arguments[1], &input)
    if status == OK:
        status = check_same_shape(name, b"grad", grad, input.ndim, input.shape)
    if status == OK:
        status = _lay_out(&work, name, input, &arguments[4])
    if status != OK:
        return status
    work.task = SUMS
    made[0] = made[1] = NULL
    for i in range(4):
        if status == OK:
            status = _hold(&work, name, i, b"an operand", &arguments[i],
                           input.size if i < 2 else work.channels.channels, False)
    for i in range(2):
        if status == OK:
            status = new_array(name, work.dtype, input.ndim, work.statistics, &made[i])
            work.result[i] = made[i].data if status == OK else NULL
    if status == OK:
        _run(&work)
    return _finish(&work, status, 2, made, results)


cdef int normalize_columns_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """normalize_columns(grad, x, mean, rstd, dims): sum(grad * (x - mean) * rstd) over all rows."""
    cdef work_t work
    cdef array_t *grad
    cdef array_t *input
    cdef array_t *made[1]
    cdef const char *name = b"normalize_columns"
    cdef int i, status = array_argument(name, b"grad", &arguments[0], &grad)
    if status == OK:
        status = array_argument(name, b"images", &arguments[1], &input)
    if status == OK:
        status = check_same_shape(name, b"grad", grad, input.ndim, input.shape)
    if status == OK:
        status = _lay_out(&work, name, input, &arguments[4])
    if status != OK:
        return status
    work.task = COLUMNS
    made[0] = NULL
    if work.channels.by_channel:
        snprintf(message(), MESSAGE, b"%s: sums over rows need rows (got dims 0).", name)
        return RUNTIME_ERROR
    for i in range(4):
        if status == OK:
            status = _hold(&work, name, i, b"an operand", &arguments[i],
                           input.size if i < 2 else work.channels.channels, False)
    if status == OK:
        i = <int>arguments[4].of.integer
        status = new_array(name, work.dtype, i, input.shape + input.ndim - i, &made[0])
    if status == OK:
        work.result[0] = made[0].data
        _run(&work)
    return _finish(&work, status, 1, made, results)


cdef int normalize_backward_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """normalize_backward(grad, x, weight, mean, rstd, dims)."""
    cdef work_t work
    cdef array_t *grad
    cdef array_t *input
    cdef array_t *made[1]
    cdef const char *name = b"normalize_backward"
    cdef int64_t size
    cdef int i, status = array_argument(name, b"grad", &arguments[0], &grad)
    if status == OK:
        status = array_argument(name, b"images", &arguments[1], &input)
    if status == OK:
        status = check_same_shape(name, b"grad", grad, input.ndim, input.shape)
    if status == OK:
        status = _lay_out(&work, name, input, &arguments[5])
    if status != OK:
        return status
    work.task = BACKWARD
    made[0] = NULL
    for i in range(5):
        size = input.size if i < 2 else work.channels.channels
        if i == 2 and not work.channels.by_channel:
            size = work.channels.inner
        if status == OK:
            status = _hold(&work, name, i, b"an operand", &arguments[i], size, i == 2)
    if status == OK:
        status = new_array(name, work.dtype, input.ndim, input.shape, &made[0])
    if status == OK:
        work.result[0] = made[0].data
        _run(&work)
    return _finish(&work, status, 1, made, results)


register_kernel("normalize", normalize_kernel)
register_kernel("normalize_sums", normalize_sums_kernel)
register_kernel("normalize_columns", normalize_columns_kernel)
register_kernel("normalize_backward", normalize_backward_kernel)
