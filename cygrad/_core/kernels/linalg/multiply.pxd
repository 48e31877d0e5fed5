"""The engine of products: batches of matrices in tiles that depend on the problem alone."""

from libc.stdint cimport int64_t
from cygrad._core.arrays.array cimport MAX_DIMS
from cygrad._core.kernels.linalg.blas cimport blas_scalar_t
from cygrad._core.kernels.linalg.matrix cimport matrix_t

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
    int batch_ndim            # dimensions of the batch, and how far apart its matrices are
    int64_t batch_shape[MAX_DIMS]
    int64_t a_steps[MAX_DIMS]
    int64_t b_steps[MAX_DIMS]
    # set by multiply():
    int64_t tile_rows
    int64_t tile_columns
    int64_t row_tiles
    int64_t column_tiles
    int64_t c_step            # elements of one matrix of c
    bint small                # not worth a call of BLAS
    bint in_blocks            # faster without packing than by BLAS, which copies the operands

# A product without addend, batch or factors yet: alpha is 1 and beta is 0.
cdef void start_product(product_t *product, int dtype, int64_t m, int64_t n, int64_t k) noexcept nogil
cdef void multiply(product_t *product) noexcept nogil
