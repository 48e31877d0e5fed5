"""Views of a part of an array, for other kernels."""

from libc.stdint cimport int64_t
from cygrad._core.arrays.array cimport array_t, value_t

# Return `length` elements from `start` along a wrapped dimension, unchecked; NULL if memory is exhausted.
cdef array_t *narrowed(array_t *array, int dim, int64_t start, int64_t length) noexcept nogil
# Return element `index` along a wrapped dimension, which is removed, unchecked; NULL if memory is exhausted.
cdef array_t *selected(array_t *array, int dim, int64_t index) noexcept nogil

# Kernels that backward kernels apply to zeros.
cdef int select_kernel(const value_t *arguments, value_t *results) noexcept nogil
cdef int slice_kernel(const value_t *arguments, value_t *results) noexcept nogil
cdef int diagonal_kernel(const value_t *arguments, value_t *results) noexcept nogil
cdef int unfold_kernel(const value_t *arguments, value_t *results) noexcept nogil
# Check that a geometry (offset in elements from the start of the storage) is inside `nbytes` of memory; set the first
# and last element that it accesses (first > last if it is empty).
cdef int check_geometry(const char *operation, int n_sizes, const int64_t *sizes, int n_strides, const int64_t *strides,
                        int64_t offset, int64_t elements, int64_t *first, int64_t *last) noexcept nogil
