"""Advanced indexing; and the value that operations which fill accept."""

from cygrad._core.arrays.array cimport array_t
from cygrad._core.arrays.value cimport value_t

# An array of shape () and this dtype, from a number or a 0-dim array of any dtype.
cdef int scalar_array(const char *operation, const value_t *value, int dtype, array_t **scalar) noexcept nogil
