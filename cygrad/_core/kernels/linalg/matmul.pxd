"""Matrix products: integer loops, checks, tiles, and the parts that product kernels share."""

from libc.stdint cimport int64_t
from cygrad._core.arrays.array cimport MAX_DIMS, array_t, value_t
from cygrad._core.kernels.linalg.blas cimport blas_scalar_t, matrix_t

# ------------------------------------------------------------------------------------------------------- integer matmul

# c = alpha * a @ b + beta * c in wrapping arithmetic; b is row-major, steps are in elements.
cdef void multiply_integers(int dtype, int64_t m, int64_t n, int64_t k, int64_t alpha,
                            const void *a, int64_t a_row_step, int64_t a_column_step,
                            const void *b, int64_t b_step, int64_t beta, void *c, int64_t c_step) noexcept nogil
# result = sum of x[i] * y[i] in wrapping arithmetic.
cdef void dot_integers(int dtype, int64_t n, const void *x, int64_t x_step, const void *y, int64_t y_step,
                       void *result) noexcept nogil
# c *= beta; 0 writes zeros without reading c. Integer dtypes take `integer_beta`.
cdef void scale_tile(int dtype, int64_t m, int64_t n, blas_scalar_t beta, int64_t integer_beta,
                     void *c, int64_t c_step) noexcept nogil

# ------------------------------------------------------------------------------------------------------- product checks

ctypedef const char *text_t

# Check that the first `n` arguments are arrays of one dtype that has products.
cdef int check_arrays(text_t operation, const value_t *arguments, int n) noexcept nogil
cdef int check_ndim(text_t operation, text_t name, const array_t *array, int ndim) noexcept nogil
# Set the message that the inner dimensions differ; return RUNTIME_ERROR.
cdef int cannot_multiply(text_t operation, const array_t *a, const array_t *b) noexcept nogil

# ------------------------------------------------------------------------------------------------------------- multiply

# c = alpha * a @ b + beta * addend, for each matrix of a batch; c is contiguous.
ctypedef struct product_t:
    int dtype
    int64_t m                 # rows of a and c
    int64_t n                 # columns of b and c
    int64_t k
    blas_scalar_t alpha       # floating and complex dtypes
    blas_scalar_t beta
    int64_t integer_alpha     # integer dtypes
    int64_t integer_beta
    matrix_t a                # laid out
    matrix_t b                # laid out; row-major for integer dtypes
    char *c
    const char *addend        # NULL: none
    int64_t addend_row_step   # in elements; 0 where it is broadcast
    int64_t addend_column_step
    int batch_ndim            # dimensions of the batch, and strides of its matrices
    int64_t batch_shape[MAX_DIMS]
    int64_t a_steps[MAX_DIMS]
    int64_t b_steps[MAX_DIMS]
    # set by multiply():
    int64_t tile_rows
    int64_t tile_columns
    int64_t row_tiles
    int64_t column_tiles
    int64_t c_step            # elements of one matrix of c
    bint small                # cheaper than a call of BLAS
    bint in_blocks            # faster without packing than by BLAS, which copies the operands

# Initialize a product without addend or batch; alpha is 1 and beta is 0.
cdef void start_product(product_t *product, int dtype, int64_t m, int64_t n, int64_t k) noexcept nogil
cdef void multiply(product_t *product) noexcept nogil

# ------------------------------------------------------------------------------------------------------ vector products

# Compute the sum of a[i] * b[i], or of conj(a[i]) * b[i]; vectors of one dtype that has products.
cdef int dot_arrays(text_t operation, bint conjugate, array_t *a, array_t *b, value_t *results) noexcept nogil

# ------------------------------------------------------------------------------------------------------------- products

# Initialize a product and the layout of its matrices, whose references it takes over, also on failure.
cdef int prepare(text_t operation, product_t *product, array_t *like, matrix_t *a, matrix_t *b) noexcept nogil
# If `status` is OK, allocate the result of this shape and multiply. Release the operands in any case.
cdef int finish(product_t *product, int status, int ndim, const int64_t *shape, value_t *results) noexcept nogil
