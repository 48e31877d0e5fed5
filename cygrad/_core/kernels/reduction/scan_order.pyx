"""Running extrema with their places, and running sums of exponentials: cummax, cummin, logcumsumexp."""

from libc.math cimport INFINITY, exp, log1p
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t
from libc.stdio cimport snprintf
from cygrad._core.arrays.array cimport array_empty_like, array_t, release
from cygrad._core.arrays.dtype cimport (
    BOOL, FLOAT32, INT8, INT16, INT32, INT64, UINT8, dtype_name, is_complex, is_floating,
)
from cygrad._core.arrays.value cimport register_kernel, set_array, value_t
from cygrad._core.elementwise.copying cimport as_contiguous
from cygrad._core.elementwise.rows cimport rows_along, rows_t
from cygrad._core.kernels.arguments cimport array_argument, integer_argument, wrap_dim
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, NOT_IMPLEMENTED, OK, message
from cygrad._core.threads.parallel cimport parallel_for

cdef enum:
    PIECE = 16384          # elements worth a thread

ctypedef fused element_t:
    uint8_t
    int8_t
    int16_t
    int32_t
    int64_t
    float
    double

ctypedef fused real_t:
    float
    double

ctypedef struct ordered_scan_t:
    bint largest
    int dtype
    rows_t rows
    char *self
    char *out
    int64_t *indices


cdef void _extrema(ordered_scan_t *work, element_t *x, element_t *out, int64_t begin, int64_t end) noexcept nogil:
    """Rows begin..end-1, neighbors side by side: the last of equals, and nan from the first one on."""
    cdef int64_t row = begin, i, k, at, width, place, n = work.rows.n, inner = work.rows.inner
    cdef int64_t *indices = work.indices
    cdef element_t best, value
    cdef bint better
    while row < end:
        at = row // inner * n * inner + row % inner
        width = min(inner - row % inner, end - row)
        if inner == 1:
            # The best so far in a register.
            best, place = x[at], 0
            for i in range(n):
                value = x[at + i]
                better = value >= best if work.largest else value <= best
                if element_t is float or element_t is double:
                    better = better or value != value
                if better:
                    best, place = value, i
                out[at + i] = best
                indices[at + i] = place
            row += 1
            continue
        for k in range(at, at + width):
            out[k] = x[k]
            indices[k] = 0
        for i in range(1, n):
            at += inner
            for k in range(at, at + width):
                best, value = out[k - inner], x[k]
                better = value >= best if work.largest else value <= best
                # Of the comparisons with nan none holds but this one.
                if element_t is float or element_t is double:
                    better = better or value != value
                out[k] = value if better else best
                indices[k] = i if better else indices[k - inner]
        row += width


cdef void _extrema_body(void *context, int64_t begin, int64_t end) noexcept nogil:
    cdef ordered_scan_t *work = <ordered_scan_t *>context
    cdef int d = work.dtype
    if d == BOOL or d == UINT8:
        _extrema(work, <uint8_t *>work.self, <uint8_t *>work.out, begin, end)
    elif d == INT8:
        _extrema(work, <int8_t *>work.self, <int8_t *>work.out, begin, end)
    elif d == INT16:
        _extrema(work, <int16_t *>work.self, <int16_t *>work.out, begin, end)
    elif d == INT32:
        _extrema(work, <int32_t *>work.self, <int32_t *>work.out, begin, end)
    elif d == INT64:
        _extrema(work, <int64_t *>work.self, <int64_t *>work.out, begin, end)
    elif d == FLOAT32:
        _extrema(work, <float *>work.self, <float *>work.out, begin, end)
    else:
        _extrema(work, <double *>work.self, <double *>work.out, begin, end)


cdef inline double _log_sum(double a, double b) noexcept nogil:
    """log(exp(a) + exp(b))"""
    cdef double low = b if b < a else a, high = a if b < a else b
    if high == INFINITY or high == -INFINITY:
        return high + 0 * (0 if low == low else low)
    return high + log1p(exp(low - high))


cdef void _exponentials(ordered_scan_t *work, real_t *x, real_t *out, int64_t begin, int64_t end) noexcept nogil:
    cdef int64_t row, i, at, n = work.rows.n, inner = work.rows.inner
    cdef double total
    for row in range(begin, end):
        at = row // inner * n * inner + row % inner
        total = -INFINITY
        for i in range(n):
            total = _log_sum(total, x[at + i * inner])
            out[at + i * inner] = <real_t>total


cdef void _exponentials_body(void *context, int64_t begin, int64_t end) noexcept nogil:
    cdef ordered_scan_t *work = <ordered_scan_t *>context
    if work.dtype == FLOAT32:
        _exponentials(work, <float *>work.self, <float *>work.out, begin, end)
    else:
        _exponentials(work, <double *>work.self, <double *>work.out, begin, end)


cdef int _read(const char *name, bint exponentials, const value_t *arguments, array_t **self,
               int *dim) noexcept nogil:
    cdef int64_t given
    cdef int status = array_argument(name, b"self", &arguments[0], self)
    if status == OK:
        status = integer_argument(name, b"dim", &arguments[1], &given)
    if status == OK:
        status = wrap_dim(name, given, self[0].ndim, dim)
    if status == OK and is_complex(self[0].dtype):
        snprintf(message(), MESSAGE, b"%s: not for complex numbers (got %s). Take the real part or the absolute value.",
                 name, dtype_name(self[0].dtype))
        status = NOT_IMPLEMENTED
    if status == OK and exponentials and not is_floating(self[0].dtype):
        snprintf(message(), MESSAGE, b"%s: expected a floating tensor (got %s). Convert with to() first.", name,
                 dtype_name(self[0].dtype))
        status = NOT_IMPLEMENTED
    return status


cdef int _running(const char *name, bint exponentials, bint largest, const value_t *arguments,
                  value_t *results) noexcept nogil:
    cdef ordered_scan_t work
    cdef array_t *self
    cdef array_t *source
    cdef array_t *out = NULL
    cdef array_t *indices = NULL
    cdef int dim, status = _read(name, exponentials, arguments, &self, &dim)
    if status != OK:
        return status
    work.dtype = self.dtype
    source = as_contiguous(self, work.dtype)
    if source != NULL:
        out = array_empty_like(self, work.dtype)
    if out != NULL and not exponentials:
        indices = array_empty_like(self, INT64)
    if out == NULL or (indices == NULL and not exponentials):
        release(source)
        release(out)
        return MEMORY_ERROR
    work.largest, work.self, work.out = largest, source.data, out.data
    work.indices = <int64_t *>indices.data if indices != NULL else NULL
    rows_along(self, dim, &work.rows)
    if out.size:
        parallel_for(_exponentials_body if exponentials else _extrema_body, &work, work.rows.outer * work.rows.inner,
                     max(1, PIECE // work.rows.n))
    release(source)
    set_array(&results[0], out)
    if not exponentials:
        set_array(&results[1], indices)
    return OK


cdef int cummax_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """cummax(self, dim) -> values, indices."""
    return _running(b"cummax", False, True, arguments, results)


cdef int cummin_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """cummin(self, dim) -> values, indices."""
    return _running(b"cummin", False, False, arguments, results)


cdef int logcumsumexp_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """logcumsumexp(self, dim)."""
    return _running(b"logcumsumexp", True, False, arguments, results)


register_kernel("cummax", cummax_kernel)
register_kernel("cummin", cummin_kernel)
register_kernel("logcumsumexp", logcumsumexp_kernel)
