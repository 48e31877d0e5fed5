"""An array seen as rows along one dimension."""

from libc.stdint cimport int64_t
from cygrad._core.arrays.array cimport array_t

# Element (o, i, k) is at (o * n + i) * inner + k.
ctypedef struct rows_t:
    int64_t outer
    int64_t n
    int64_t inner


cdef inline void rows_along(const array_t *array, int dim, rows_t *rows) noexcept nogil:
    cdef int i
    rows.outer = rows.inner = rows.n = 1
    for i in range(array.ndim):
        if i < dim:
            rows.outer *= array.shape[i]
        elif i > dim:
            rows.inner *= array.shape[i]
        else:
            rows.n = array.shape[i]
