"""Linear recurrences along a dimension, of which the gradients of running products are made."""

from libc.stdint cimport int64_t
from libc.stdio cimport snprintf
from cygrad._core.arrays.array cimport array_empty_like, array_t, release, same_shape, shape_text
from cygrad._core.arrays.dtype cimport COMPLEX64, FLOAT32, FLOAT64, dtype_name, is_differentiable, promote
from cygrad._core.arrays.value cimport is_true, register_kernel, value_t
from cygrad._core.elementwise.elementwise cimport as_contiguous
from cygrad._core.elementwise.rows cimport rows_along, rows_t
from cygrad._core.kernels.arguments cimport array_argument, array_result, integer_argument, wrap_dim
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, OK, RUNTIME_ERROR, message
from cygrad._core.threads.parallel cimport parallel_for

cdef enum:
    PIECE = 16384          # elements worth a thread
    LINES = 8

ctypedef fused number_t:
    float
    double
    float complex
    double complex


cdef struct recurrence_t:
    int dtype
    rows_t rows
    bint reverse
    char *input
    char *coefficient
    char *result


cdef void _run(recurrence_t *work, number_t *tag, int64_t begin, int64_t end) noexcept nogil:
    """
    Lines begin..end-1 along the dimension, LINES of them side by side: each step waits for the one before.

    A coefficient of 0 ends what came before, even where that has overflowed.
    """
    cdef const number_t *input = <const number_t *>work.input
    cdef const number_t *coefficient = <const number_t *>work.coefficient
    cdef number_t *result = <number_t *>work.result
    cdef int64_t n = work.rows.n, inner = work.rows.inner, step = -inner if work.reverse else inner
    cdef int64_t i, k, row, before, count
    cdef int64_t[LINES] at
    cdef number_t[LINES] last
    cdef number_t factor
    while begin < end:
        count = min(<int64_t>LINES, end - begin)
        for k in range(count):
            row = begin + k
            at[k] = row // inner * n * inner + row % inner + ((n - 1) * inner if work.reverse else 0)
            last[k] = result[at[k]] = input[at[k]]
        # Reversed, the coefficient belongs to the element that was before.
        before = 0 if work.reverse else step
        for i in range(1, n):
            for k in range(LINES if count == LINES else count):
                factor = coefficient[at[k] + before]
                at[k] += step
                last[k] = input[at[k]] + factor * last[k] if factor != 0 else input[at[k]]
                result[at[k]] = last[k]
        begin += count


cdef void _run_body(void *context, int64_t begin, int64_t end) noexcept nogil:
    cdef recurrence_t *work = <recurrence_t *>context
    if work.dtype == FLOAT32:
        _run(work, <float *>NULL, begin, end)
    elif work.dtype == FLOAT64:
        _run(work, <double *>NULL, begin, end)
    elif work.dtype == COMPLEX64:
        _run(work, <float complex *>NULL, begin, end)
    else:
        _run(work, <double complex *>NULL, begin, end)


cdef int linear_recurrence_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """linear_recurrence(self, coefficient, dim, reverse)."""
    cdef array_t *input
    cdef array_t *coefficient
    cdef array_t *x
    cdef array_t *c
    cdef array_t *result
    cdef recurrence_t work
    cdef int64_t dim
    cdef int axis, dtype, status
    status = array_argument(b"linear_recurrence", b"input", &arguments[0], &input)
    if status == OK:
        status = array_argument(b"linear_recurrence", b"coefficient", &arguments[1], &coefficient)
    if status == OK:
        status = integer_argument(b"linear_recurrence", b"dim", &arguments[2], &dim)
    if status == OK:
        status = wrap_dim(b"linear_recurrence", dim, input.ndim, &axis)
    if status != OK:
        return status
    dtype = promote(input.dtype, coefficient.dtype)
    if not same_shape(input, coefficient) or not is_differentiable(dtype):
        snprintf(message(), MESSAGE, b"linear_recurrence: input and coefficient must have one shape and floating dtype "
                 b"(got %s %s and %s %s).", dtype_name(input.dtype), shape_text(input), dtype_name(coefficient.dtype),
                 shape_text(coefficient))
        return RUNTIME_ERROR
    x = as_contiguous(input, dtype)
    c = as_contiguous(coefficient, dtype)
    result = array_empty_like(input, dtype)
    if x == NULL or c == NULL or result == NULL:
        release(x)
        release(c)
        release(result)
        return MEMORY_ERROR
    rows_along(input, axis, &work.rows)
    work.dtype, work.reverse = dtype, is_true(&arguments[3])
    work.input, work.coefficient, work.result = x.data, c.data, result.data
    if result.size:
        parallel_for(_run_body, &work, work.rows.outer * work.rows.inner, max(<int64_t>LINES, PIECE // work.rows.n))
    release(x)
    release(c)
    return array_result(result, &results[0])


register_kernel("linear_recurrence", linear_recurrence_kernel)
