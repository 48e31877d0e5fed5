"""Linear recurrences along a dimension, of which the gradients of running products are made."""

from libc.stdint cimport int64_t
from libc.stdio cimport snprintf
from cygrad._core.arrays.array cimport array_empty_like, array_t, release, same_shape, shape_text
from cygrad._core.arrays.dtype cimport COMPLEX64, COMPLEX128, FLOAT32, FLOAT64, dtype_name, is_differentiable, promote
from cygrad._core.arrays.value cimport is_true, register_kernel, value_t
from cygrad._core.elementwise.elementwise cimport as_contiguous
from cygrad._core.kernels.arguments cimport array_argument, array_result, integer_argument, wrap_dim
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, OK, RUNTIME_ERROR, message

ctypedef fused number_t:
    float
    double
    float complex
    double complex


cdef void _run(number_t *result, const number_t *input, const number_t *coefficient, int64_t outer, int64_t n,
               int64_t inner, bint reverse) noexcept nogil:
    """
    The lines of one dimension of contiguous arrays: `inner` is the step along a line.

    A coefficient of 0 ends what came before, even where that has overflowed.
    """
    cdef int64_t o, i, k, at
    for o in range(outer):
        at = o * n * inner
        if reverse:
            for i in range(n - 1, -1, -1):
                for k in range(inner):
                    result[at + i * inner + k] = input[at + i * inner + k]
                    if i < n - 1 and coefficient[at + (i + 1) * inner + k] != 0:
                        result[at + i * inner + k] = (result[at + i * inner + k] + coefficient[at + (i + 1) * inner + k]
                                                      * result[at + (i + 1) * inner + k])
        else:
            for i in range(n):
                for k in range(inner):
                    result[at + i * inner + k] = input[at + i * inner + k]
                    if i > 0 and coefficient[at + i * inner + k] != 0:
                        result[at + i * inner + k] = (result[at + i * inner + k] + coefficient[at + i * inner + k]
                                                      * result[at + (i - 1) * inner + k])


cdef int linear_recurrence_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """linear_recurrence(self, coefficient, dim, reverse)."""
    cdef array_t *input
    cdef array_t *coefficient
    cdef array_t *x
    cdef array_t *c
    cdef array_t *result
    cdef int64_t dim, outer = 1, inner = 1, n
    cdef int i, axis, dtype, status
    cdef bint reverse = is_true(&arguments[3])
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
    for i in range(axis):
        outer *= input.shape[i]
    for i in range(axis + 1, input.ndim):
        inner *= input.shape[i]
    n = input.shape[axis] if input.ndim else 1
    if dtype == FLOAT32:
        _run(<float *>result.data, <float *>x.data, <float *>c.data, outer, n, inner, reverse)
    elif dtype == FLOAT64:
        _run(<double *>result.data, <double *>x.data, <double *>c.data, outer, n, inner, reverse)
    elif dtype == COMPLEX64:
        _run(<float complex *>result.data, <float complex *>x.data, <float complex *>c.data, outer, n, inner, reverse)
    elif dtype == COMPLEX128:
        _run(<double complex *>result.data, <double complex *>x.data, <double complex *>c.data, outer, n, inner,
             reverse)
    release(x)
    release(c)
    return array_result(result, &results[0])


register_kernel("linear_recurrence", linear_recurrence_kernel)
