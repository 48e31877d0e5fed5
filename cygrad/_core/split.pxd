"""Views of all parts of an array at once: split, chunk, unbind."""

from libc.stdint cimport int64_t
from cygrad._core.array cimport array_t
from cygrad._core.value cimport value_t

# `count` consecutive parts along a wrapped dimension: of the given sizes, which are not checked, or
# (sizes NULL) all of `size`, the last as long as what is left.
cdef int split_into(array_t *self, int dim, int64_t count, const int64_t *sizes, int64_t size,
                    value_t *result) noexcept nogil
