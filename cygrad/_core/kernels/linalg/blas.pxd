"""All calls of BLAS: products of float32, float64, complex64 and complex128, one thread per call."""

from libc.stdint cimport int64_t

# A scalar of any dtype: real and imaginary part.
ctypedef struct blas_scalar_t:
    double real
    double imag

cdef enum:
    BLAS_MAX = 2147483647      # largest size or stride that one call takes

# c = alpha * op(a) @ op(b) + beta * c, all row-major; a transposed operand is stored as its transpose.
# beta 0 writes c without reading it.
cdef void gemm(int dtype, bint transpose_a, bint transpose_b, int64_t m, int64_t n, int64_t k,
               blas_scalar_t alpha, const void *a, int64_t lda, const void *b, int64_t ldb,
               blas_scalar_t beta, void *c, int64_t ldc) noexcept nogil
# y = alpha * op(a) @ x + beta * y for the row-major matrix `a` of m x n as stored; strides are positive.
cdef void gemv(int dtype, bint transpose_a, int64_t m, int64_t n, blas_scalar_t alpha, const void *a, int64_t lda,
               const void *x, int64_t x_stride, blas_scalar_t beta, void *y, int64_t y_stride) noexcept nogil
# result = sum of x[i] * y[i], or conj(x[i]) * y[i].
cdef void dot(int dtype, bint conjugate, int64_t n, const void *x, int64_t x_stride,
              const void *y, int64_t y_stride, void *result) noexcept nogil
# Call around every other BLAS call that allocates memory: may wait for calls of other threads.
cdef void enter_blas() noexcept nogil
cdef void leave_blas() noexcept nogil

# Does OpenBLAS have kernels here that read small operands without packing?
cdef bint reads_in_place() noexcept nogil
