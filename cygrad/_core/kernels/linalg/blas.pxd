"""All calls of BLAS and LAPACK, one thread per call, and batches of matrices as their operands."""

from libc.stdint cimport int32_t, int64_t
from cygrad._core.arrays.array cimport array_t, value_t

# ----------------------------------------------------------------------------------------------------------------- blas

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

# Return whether OpenBLAS has kernels here that read small operands without packing.
cdef bint reads_in_place() noexcept nogil

# --------------------------------------------------------------------------------------------------------------- lapack

# All calls of LAPACK: factorizations of one matrix in column order, of float32, float64, complex64 and complex128.

# Each returns LAPACK's info. The leading dimension of a matrix is the number of its rows, so all sizes must be at least
# 1. Routines that need scratch memory return the number of bytes if `scratch` is NULL, and read only the sizes.
cdef int potrf(int dtype, char uplo, int n, void *a) noexcept nogil
# getrf and getrs take `count` consecutive matrices, at most lu_width; getrf writes an info for each, unless it is NULL.
cdef int lu_width(int dtype, int m, int n) noexcept nogil
cdef void getrf(int dtype, int count, int m, int n, void *a, int32_t *pivots, int32_t *info) noexcept nogil
cdef void getrs(int dtype, int count, char trans, int n, int k, const void *lu, const int32_t *pivots,
                void *b) noexcept nogil
# b (m x n) becomes op(a)^-1 b for side 'L', b op(a)^-1 for 'R'; `a` is triangular, `lda` the step between its columns.
cdef void trsm(int dtype, char side, char uplo, char trans, char diag, int m, int n, const void *a, int lda,
               void *b) noexcept nogil
# Factor a symmetric or Hermitian matrix, given by its lower triangle, as L D L^T or L D L^H; solve with the factors.
cdef int64_t sytrf(int dtype, bint hermitian, int n, void *a, int32_t *pivots, void *scratch, int64_t size,
                   int *info) noexcept nogil
cdef void sytrs(int dtype, bint hermitian, int n, int k, const void *ld, const int32_t *pivots, void *b) noexcept nogil
cdef int64_t geqrf(int dtype, int m, int n, void *a, void *tau, void *scratch, int64_t size, int *info) noexcept nogil
# Compute the first n columns of the product of k reflectors.
cdef int64_t orgqr(int dtype, int m, int n, int k, void *a, const void *tau, void *scratch, int64_t size,
                   int *info) noexcept nogil
# job 'N': singular values only; 'S': thin; 'A': full.
cdef int64_t gesdd(int dtype, char job, int m, int n, void *a, void *s, void *u, void *vh, void *scratch, int64_t size,
                   int *info) noexcept nogil
# Symmetric and Hermitian matrices; job 'N': eigenvalues only; 'V': eigenvectors, in the place of the matrix.
cdef int64_t heevd(int dtype, char job, char uplo, int n, void *a, void *w, void *scratch, int64_t size,
                   int *info) noexcept nogil
# For a real matrix `w` has n real parts, then n imaginary ones, and `vectors` is packed as in LAPACK.
cdef int64_t geev(int dtype, char job, int n, void *a, void *w, void *vectors, void *scratch, int64_t size,
                  int *info) noexcept nogil
# Least squares; `b` has max(m, n) rows, the first n become the solution. driver 's': gels (full rank), 'y': gelsy, 'd':
# gelsd, which sets the singular values `s`.
cdef int64_t lstsq(int dtype, char driver, int m, int n, int k, void *a, void *b, void *s, double rcond, int32_t *rank,
                   void *scratch, int64_t size, int *info) noexcept nogil

# ------------------------------------------------------------------------------------------------------- lapack batches

# Batches of matrices for LAPACK: checked arguments, copies in column order, and loops over matrices on the team.

# Process matrix `i` of a batch, or a group from it on; return LAPACK's info. `scratch` has task.scratch bytes.
ctypedef int (*each_t)(matrix_batch_t *task, int64_t i, char *scratch) noexcept nogil

# The matrices of a call: dtype, sizes, data of each operand, and parameters of the function for one matrix.
ctypedef struct matrix_batch_t:
    each_t each
    int dtype
    int m
    int n
    int k
    char *a
    char *b
    char *c
    char *d
    int32_t *pivots
    int32_t *info         # one for each matrix, or NULL
    int width             # `each` processes up to this number of matrices from i on, and writes their info (0: one)
    int64_t count         # all matrices, set by run_batch
    int64_t scratch
    char job
    char trans
    char uplo
    bint flag
    double *limits
    int64_t failed        # atomic: memory was exhausted

# Read an array of (square) matrices of a floating or complex dtype whose sizes fit into a C int.
cdef int matrix_argument(const char *operation, const char *name, const value_t *value, array_t **array) noexcept nogil
cdef int square_argument(const char *operation, const char *name, const value_t *value, array_t **array) noexcept nogil
# Refuse two operands of different dtypes or leading dimensions.
cdef int check_pair(const char *operation, const array_t *a, const array_t *b) noexcept nogil
# Return the number of matrices.
cdef int64_t batch_count(const array_t *array) noexcept nogil
# Allocate the leading dimensions of `like` (without its last `drop` ones), then up to two sizes (-1: none).
cdef int new_batch(const array_t *like, int drop, int dtype, int64_t rows, int64_t columns,
                   array_t **array) noexcept nogil
# Copy each matrix in column-major order; the shape is (..., columns, rows).
cdef int in_columns(array_t *array, array_t **copy) noexcept nogil
# A view with the last two dimensions exchanged; NULL if memory is exhausted.
cdef array_t *transposed(array_t *array) noexcept nogil
# Replace an array by that view; NULL if memory is exhausted.
cdef int exchange_axes(array_t **columns) noexcept nogil
# Store that view as a result and take over the reference.
cdef int transposed_result(array_t *columns, value_t *result) noexcept nogil
# Call task.each for all matrices; `work` is the number of operations for one.
cdef int run_batch(matrix_batch_t *task, int64_t count, double work) noexcept nogil
# Release the arrays that are not NULL.
cdef void release_all(int count, array_t **arrays) noexcept nogil
# Return whether all elements of the matrix are finite.
cdef bint all_finite(int dtype, const char *data, int64_t count) noexcept nogil

# --------------------------------------------------------------------------------------------------------------- matrix

# Operands of products: arrays as batches of matrices in a layout that BLAS reads.

ctypedef struct matrix_t:
    array_t *array            # strong reference
    char *data
    int64_t rows
    int64_t columns
    int64_t row_step          # strides in elements
    int64_t column_step
    int batch_ndim            # dimensions in front of the matrix
    const int64_t *batch_shape
    const int64_t *batch_steps
    bint transposed           # set by lay_out: the memory holds the transpose ...
    int64_t leading           # ... whose rows have this stride

# View the last two dimensions of an array as a matrix, a vector as one row or one column.
cdef matrix_t matrix_of(array_t *array) noexcept nogil
cdef matrix_t row_of(array_t *vector) noexcept nogil
cdef matrix_t column_of(array_t *vector) noexcept nogil
cdef void transpose_matrix(matrix_t *matrix) noexcept nogil
# Merge all leading dimensions and the rows into the rows of one matrix, if the strides allow; else False.
cdef bint fold_rows(matrix_t *matrix) noexcept nogil
# Set the layout in which BLAS reads the matrix; copy it only if no stride is 1 (or one is negative or 0). `row_major`
# forbids the transpose.
cdef int lay_out(matrix_t *matrix, bint row_major) noexcept nogil
cdef void release_matrix(matrix_t *matrix) noexcept nogil
