"""Products of two vectors."""

from cygrad._core.arrays.array cimport array_t
from cygrad._core.arrays.value cimport value_t
from cygrad._core.kernels.linalg.product_checks cimport text_t

# The sum of a[i] * b[i], or of conj(a[i]) * b[i]; vectors of one dtype that has products.
cdef int dot_arrays(text_t operation, bint conjugate, array_t *a, array_t *b, value_t *results) noexcept nogil
