"""Layout of results: the order of their dimensions in memory, following the operands."""

from libc.stdint cimport int64_t
from cygrad._core.arrays.array cimport array_t
from cygrad._core.arrays.value cimport value_t

# As in PyTorch: no gaps, no elements that share memory, no negative strides.
cdef bint is_non_overlapping_and_dense(const array_t *array) noexcept nogil
# New arrays, uninitialized; NULL and a message when memory is exhausted. array_for_operands: of the broadcast shape of
# the operands; row-major if they all are, else in their layout. array_like: of the shape and layout of `like`, without
# its gaps; `dtype` -1 for its dtype. array_strided: with these strides, which must be dense.
cdef array_t *array_for_operands(int dtype, int ndim, const int64_t *shape, const value_t *operands,
                                 int n) noexcept nogil
cdef array_t *array_like(const array_t *like, int dtype) noexcept nogil
cdef array_t *array_strided(int dtype, int ndim, const int64_t *shape, const int64_t *strides) noexcept nogil
# Would array_for_operands be row-major?
cdef bint is_row_major_result(int ndim, const int64_t *shape, const value_t *operands, int n) noexcept nogil
# Copy in the layout of `like`, which has the same shape and may be `array` itself; `dtype` -1 for its own.
cdef array_t *copy_like(array_t *array, const array_t *like, int dtype) noexcept nogil
# Strides of a channels_last array of this shape.
cdef void channels_last_strides(int ndim, const int64_t *shape, int64_t *strides) noexcept nogil
# Is it a channels_last batch of images of two or three dimensions?
cdef bint is_channels_last(const array_t *array) noexcept nogil
# Convert a row-major result to the memory format of its images: `result` itself or, in its place, a copy.
cdef array_t *with_layout_of_images(array_t *result, const array_t *images) noexcept nogil
