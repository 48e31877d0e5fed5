"""Views that change shapes, for other kernels."""

from libc.stdint cimport int64_t
from cygrad._core.arrays.array cimport array_t, value_t

# Compute the strides of a view of `array` with another shape of the same size; False if it needs a copy.
cdef bint view_strides(const array_t *array, int ndim, const int64_t *shape, int64_t *strides) noexcept nogil
# Reshape to equal size: a view if possible, else a copy. NULL if memory is exhausted.
cdef array_t *reshaped(array_t *array, int ndim, const int64_t *shape) noexcept nogil
# Broadcast a view to `shape`; on failure the message names both shapes.
cdef int expanded(const char *operation, array_t *array, int ndim, const int64_t *shape, array_t **view) noexcept nogil

cdef int view_kernel(const value_t *arguments, value_t *results) noexcept nogil
cdef int reshape_kernel(const value_t *arguments, value_t *results) noexcept nogil
cdef int expand_kernel(const value_t *arguments, value_t *results) noexcept nogil
