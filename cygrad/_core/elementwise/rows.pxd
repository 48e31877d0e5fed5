"""An array seen as rows along one dimension."""

from libc.stdint cimport int64_t
from cygrad._core.arrays.array cimport array_t
from cygrad._core.threads.grain cimport CHUNK
from cygrad._core.threads.parallel cimport loop_threads

cdef enum:
    NARROW = 32            # columns: a narrower tile takes much longer per column

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


cdef inline int64_t columns_per_tile(const rows_t *rows, int64_t most, int64_t cost) noexcept nogil:
    """
    Return how many adjacent columns are processed together: `most`, or fewer for a tile per thread.

    The columns must be independent, so that results are bit-identical for any width. `cost` is one of grain.pxd.
    """
    cdef int64_t width = max(<int64_t>1, min(rows.inner, most)), tiles, threads
    if width <= NARROW or rows.n * rows.inner * rows.outer * cost <= CHUNK:
        return width
    threads = loop_threads()
    tiles = rows.outer * ((rows.inner - 1) // width + 1)
    if tiles % threads == 0 or tiles > 4 * threads:
        return width
    tiles = ((tiles - 1) // threads + 1) * threads
    width = (rows.inner * rows.outer - 1) // tiles + 1
    return ((width - 1) // NARROW + 1) * NARROW
