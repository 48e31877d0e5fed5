"""The common part of the kernels of products."""

from libc.stdint cimport int64_t
from cygrad._core.arrays.array cimport array_t
from cygrad._core.arrays.value cimport value_t
from cygrad._core.kernels.linalg.matrix cimport matrix_t
from cygrad._core.kernels.linalg.multiply cimport product_t
from cygrad._core.kernels.linalg.product_checks cimport text_t

# Start a product of two matrices and lay them out; they belong to the product then, also on failure.
cdef int prepare(text_t operation, product_t *product, array_t *like, matrix_t *a, matrix_t *b) noexcept nogil
# If `status` is OK: allocate the result of this shape and multiply. In any case let go of the operands.
cdef int finish(product_t *product, int status, int ndim, const int64_t *shape, value_t *results) noexcept nogil
