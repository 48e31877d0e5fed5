"""Copies, casts and fills of whole arrays."""

from cygrad._core.arrays.array cimport array_t
from cygrad._core.arrays.value cimport value_t

# to[...] = source[...], cast and broadcast; any strides; overlap handled.
cdef int copy_into(array_t *to, array_t *source) noexcept nogil
# Return the array itself (retained) if it has this dtype (-1: any) and is contiguous, else a contiguous copy.
cdef array_t *as_contiguous(array_t *array, int dtype) noexcept nogil
# Return the array itself (retained) if it has this dtype, else a cast contiguous copy.
cdef array_t *as_dtype(array_t *array, int dtype) noexcept nogil
# Return a contiguous copy.
cdef array_t *as_copy(array_t *array, int dtype) noexcept nogil
cdef int fill(array_t *array, const value_t *number) noexcept nogil
# Return RUNTIME_ERROR if several elements of the array share memory, so that it cannot be written.
cdef int check_writable(array_t *array, const char *operation) noexcept nogil
