"""Products that BLAS has not: integers, and the scaling of a result in which no product counts."""

from libc.stdint cimport int64_t
from cygrad._core.kernels.linalg.blas cimport blas_scalar_t

# c = alpha * a @ b + beta * c in wrapping arithmetic; b is row-major, steps are in elements.
cdef void multiply_integers(int dtype, int64_t m, int64_t n, int64_t k, int64_t alpha,
                            const void *a, int64_t a_row_step, int64_t a_column_step,
                            const void *b, int64_t b_step, int64_t beta, void *c, int64_t c_step) noexcept nogil
# The sum of x[i] * y[i] in wrapping arithmetic.
cdef void dot_integers(int dtype, int64_t n, const void *x, int64_t x_step, const void *y, int64_t y_step,
                       void *result) noexcept nogil
# c *= beta; 0 writes zeros whatever there was. Integer dtypes take `integer_beta`.
cdef void scale_tile(int dtype, int64_t m, int64_t n, blas_scalar_t beta, int64_t integer_beta,
                     void *c, int64_t c_step) noexcept nogil
