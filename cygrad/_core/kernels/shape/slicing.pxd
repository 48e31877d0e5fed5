"""Views of a part of an array: narrow, select, slice, diagonal, unfold, as_strided."""

from libc.stdint cimport int64_t
from cygrad._core.arrays.array cimport array_t, value_t

# `length` elements from `start` along a wrapped dimension; NULL if memory is exhausted. Not checked.
cdef array_t *narrowed(array_t *array, int dim, int64_t start, int64_t length) noexcept nogil
# Element `index` along a wrapped dimension, without the dimension; NULL if memory is exhausted. Not checked.
cdef array_t *selected(array_t *array, int dim, int64_t index) noexcept nogil

# The kernels that the backward kernels apply to zeros.
cdef int select_kernel(const value_t *arguments, value_t *results) noexcept nogil
cdef int slice_kernel(const value_t *arguments, value_t *results) noexcept nogil
cdef int diagonal_kernel(const value_t *arguments, value_t *results) noexcept nogil
cdef int unfold_kernel(const value_t *arguments, value_t *results) noexcept nogil
# Is a geometry (offset in elements from the start of the storage) inside `nbytes` of memory? -> first and last element
# that it accesses (first > last if it has no elements).
cdef int check_geometry(const char *operation, int n_sizes, const int64_t *sizes, int n_strides, const int64_t *strides,
                        int64_t offset, int64_t elements, int64_t *first, int64_t *last) noexcept nogil
