"""In which order the dimensions of a result lie in memory: as those of the operands do."""

from libc.stdint cimport int64_t
from cygrad._core.arrays.array cimport array_t
from cygrad._core.arrays.value cimport value_t

# Has the array neither gaps nor elements that share memory, and runs forwards?
cdef bint fills_its_memory(const array_t *array) noexcept nogil
# New arrays, uninitialized; NULL and a message when memory is exhausted.
#   array_in_order   `shape` is what the operands broadcast to: row-major if they all are, else as they lie.
#   array_like       of the shape of `like` and as it lies, without its gaps; `dtype` -1 for its dtype.
#   array_strided    with these strides, which fill its memory.
cdef array_t *array_in_order(int dtype, int ndim, const int64_t *shape, const value_t *operands, int n) noexcept nogil
cdef array_t *array_like(const array_t *like, int dtype) noexcept nogil
cdef array_t *array_strided(int dtype, int ndim, const int64_t *shape, const int64_t *strides) noexcept nogil
# Would that first array be row-major?
cdef bint lie_in_rows(int ndim, const int64_t *shape, const value_t *operands, int n) noexcept nogil
# A copy that lies as `like` does, which has the same shape and may be `array` itself; `dtype` -1 for its own.
cdef array_t *copy_like(array_t *array, const array_t *like, int dtype) noexcept nogil
# The strides in which an array of this shape has its channels, dimension 1, next to each other.
cdef void channels_last_strides(int ndim, const int64_t *shape, int64_t *strides) noexcept nogil
# Images, of two or three dimensions, whose channels are next to each other?
cdef bint is_channels_last(const array_t *array) noexcept nogil
# What a kernel has made row-major, as its images lie: `result` itself or, in its place, a copy.
cdef array_t *as_images_lie(array_t *result, const array_t *images) noexcept nogil
