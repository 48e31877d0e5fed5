"""Products that BLAS has not: integers, and the scaling of a result in which no product counts.

Integers wrap around; so a factor may be applied to the operands instead of to the sum, in any order.
"""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t
from libc.string cimport memset
from cygrad._core.arrays.dtype cimport (
    COMPLEX64, COMPLEX128, FLOAT32, FLOAT64, INT8, INT16, INT32, INT64, UINT8, itemsize,
)

cdef enum:
    INNER_BLOCK = 128         # rows of b that are used together, ...
    COLUMN_BLOCK = 512        # ... and columns of them: they stay in the cache

ctypedef fused integer_t:
    uint8_t
    int8_t
    int16_t
    int32_t
    int64_t

ctypedef fused real_t:
    uint8_t
    int8_t
    int16_t
    int32_t
    int64_t
    float
    double

ctypedef fused floating_t:
    float
    double


cdef void _multiply_block(integer_t *c, const integer_t *a, int64_t a_step, const integer_t *b,
                          int64_t b_step, int64_t n, int64_t k, integer_t alpha) noexcept nogil:
    """One row of a times some rows of b, added to a row of c."""
    cdef int64_t p, j
    cdef integer_t factor
    for p in range(k):
        factor = <integer_t>(a[p * a_step] * alpha)
        for j in range(n):
            c[j] = <integer_t>(c[j] + factor * b[p * b_step + j])


cdef void _multiply_typed(integer_t *c, int64_t c_step, const integer_t *a, int64_t a_row_step,
                          int64_t a_column_step, const integer_t *b, int64_t b_step,
                          int64_t m, int64_t n, int64_t k, integer_t alpha) noexcept nogil:
    """c += alpha * a @ b, in blocks."""
    cdef int64_t i, j = 0, p, columns, inner
    while j < n:
        columns = min(<int64_t>COLUMN_BLOCK, n - j)
        p = 0
        while p < k:
            inner = min(<int64_t>INNER_BLOCK, k - p)
            for i in range(m):
                _multiply_block(c + i * c_step + j, a + i * a_row_step + p * a_column_step, a_column_step,
                                b + p * b_step + j, b_step, columns, inner, alpha)
            p += inner
        j += columns


cdef void multiply_integers(int dtype, int64_t m, int64_t n, int64_t k, int64_t alpha,
                            const void *a, int64_t a_row_step, int64_t a_column_step,
                            const void *b, int64_t b_step, int64_t beta, void *c, int64_t c_step) noexcept nogil:
    cdef blas_scalar_t unused
    unused.real = unused.imag = 0
    if beta != 1:
        scale_tile(dtype, m, n, unused, beta, c, c_step)
    if dtype == UINT8:
        _multiply_typed(<uint8_t *>c, c_step, <const uint8_t *>a, a_row_step, a_column_step,
                        <const uint8_t *>b, b_step, m, n, k, <uint8_t>alpha)
    elif dtype == INT8:
        _multiply_typed(<int8_t *>c, c_step, <const int8_t *>a, a_row_step, a_column_step,
                        <const int8_t *>b, b_step, m, n, k, <int8_t>alpha)
    elif dtype == INT16:
        _multiply_typed(<int16_t *>c, c_step, <const int16_t *>a, a_row_step, a_column_step,
                        <const int16_t *>b, b_step, m, n, k, <int16_t>alpha)
    elif dtype == INT32:
        _multiply_typed(<int32_t *>c, c_step, <const int32_t *>a, a_row_step, a_column_step,
                        <const int32_t *>b, b_step, m, n, k, <int32_t>alpha)
    elif dtype == INT64:
        _multiply_typed(<int64_t *>c, c_step, <const int64_t *>a, a_row_step, a_column_step,
                        <const int64_t *>b, b_step, m, n, k, alpha)


cdef void _dot_typed(const integer_t *x, int64_t x_step, const integer_t *y, int64_t y_step, int64_t n,
                     integer_t *result) noexcept nogil:
    """The sum of x[i] * y[i]."""
    cdef integer_t total = 0
    cdef int64_t i
    for i in range(n):
        total = <integer_t>(total + x[i * x_step] * y[i * y_step])
    result[0] = total


cdef void dot_integers(int dtype, int64_t n, const void *x, int64_t x_step, const void *y, int64_t y_step,
                       void *result) noexcept nogil:
    if dtype == UINT8:
        _dot_typed(<const uint8_t *>x, x_step, <const uint8_t *>y, y_step, n, <uint8_t *>result)
    elif dtype == INT8:
        _dot_typed(<const int8_t *>x, x_step, <const int8_t *>y, y_step, n, <int8_t *>result)
    elif dtype == INT16:
        _dot_typed(<const int16_t *>x, x_step, <const int16_t *>y, y_step, n, <int16_t *>result)
    elif dtype == INT32:
        _dot_typed(<const int32_t *>x, x_step, <const int32_t *>y, y_step, n, <int32_t *>result)
    elif dtype == INT64:
        _dot_typed(<const int64_t *>x, x_step, <const int64_t *>y, y_step, n, <int64_t *>result)


cdef void _scale_real(real_t *c, int64_t n, real_t beta) noexcept nogil:
    """c *= beta for a row."""
    cdef int64_t j
    for j in range(n):
        c[j] = <real_t>(c[j] * beta)


cdef void _scale_complex(floating_t *c, int64_t n, floating_t real, floating_t imag) noexcept nogil:
    """c *= beta for a row of pairs."""
    cdef int64_t j
    cdef floating_t x, y
    for j in range(n):
        x, y = c[2 * j], c[2 * j + 1]
        c[2 * j] = x * real - y * imag
        c[2 * j + 1] = x * imag + y * real


cdef void scale_tile(int dtype, int64_t m, int64_t n, blas_scalar_t beta, int64_t integer_beta,
                     void *c, int64_t c_step) noexcept nogil:
    cdef int64_t size = itemsize(dtype), i
    cdef char *row
    cdef bint zero = beta.real == 0 and beta.imag == 0 if dtype >= FLOAT32 else integer_beta == 0
    for i in range(m):
        row = <char *>c + i * c_step * size
        if zero:
            memset(row, 0, n * size)
        elif dtype == UINT8:
            _scale_real(<uint8_t *>row, n, <uint8_t>integer_beta)
        elif dtype == INT8:
            _scale_real(<int8_t *>row, n, <int8_t>integer_beta)
        elif dtype == INT16:
            _scale_real(<int16_t *>row, n, <int16_t>integer_beta)
        elif dtype == INT32:
            _scale_real(<int32_t *>row, n, <int32_t>integer_beta)
        elif dtype == INT64:
            _scale_real(<int64_t *>row, n, integer_beta)
        elif dtype == FLOAT32:
            _scale_real(<float *>row, n, <float>beta.real)
        elif dtype == FLOAT64:
            _scale_real(<double *>row, n, beta.real)
        elif dtype == COMPLEX64:
            _scale_complex(<float *>row, n, <float>beta.real, <float>beta.imag)
        elif dtype == COMPLEX128:
            _scale_complex(<double *>row, n, beta.real, beta.imag)
