"""Products of two vectors."""

from cygrad._core.array cimport array_t
from cygrad._core.product_checks cimport text_t
from cygrad._core.value cimport value_t

# The sum of a[i] * b[i], or of conj(a[i]) * b[i]; vectors of one dtype that has products.
cdef int dot_arrays(text_t operation, bint conjugate, array_t *a, array_t *b, value_t *results) noexcept nogil
