"""Views that change the shape or the order of dimensions; those that other kernels call."""

from libc.stdint cimport int64_t
from cygrad._core.arrays.array cimport array_t, value_t

# Steps under which `array` can be seen with another shape of the same size; False if it would need a copy.
cdef bint view_strides(const array_t *array, int ndim, const int64_t *shape, int64_t *strides) noexcept nogil
# The array with this shape (equal size): a view where possible, else a copy. NULL if memory is exhausted.
cdef array_t *reshaped(array_t *array, int ndim, const int64_t *shape) noexcept nogil
# A view with the shape broadcast to `shape`; a status with a message naming both shapes if that is impossible.
cdef int expanded(const char *operation, array_t *array, int ndim, const int64_t *shape, array_t **view) noexcept nogil

cdef int view_kernel(const value_t *arguments, value_t *results) noexcept nogil
cdef int reshape_kernel(const value_t *arguments, value_t *results) noexcept nogil
cdef int expand_kernel(const value_t *arguments, value_t *results) noexcept nogil
