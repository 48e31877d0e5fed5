"""Results that have to lie as they did in the recording."""

from cygrad._core.arrays.array cimport array_t
from cygrad._core.arrays.value cimport value_t

# Has it the dtype, the shape and the strides of the recording?
cdef inline bint lies_as(const array_t *array, const array_t *layout) noexcept nogil:
    cdef int i
    if array.dtype != layout.dtype or array.ndim != layout.ndim:
        return False
    for i in range(layout.ndim):
        if array.shape[i] != layout.shape[i] or (array.strides[i] != layout.strides[i] and layout.shape[i] > 1):
            return False
    return True

# A contiguous array gets another shape of as many elements.
cdef int take_dimensions(value_t *value, const array_t *layout) noexcept nogil
# A result gets the strides that it had in the recording: those of a fused program follow from other operands.
cdef int lay_out_as(array_t **array, const array_t *layout) noexcept nogil
# An array, and a copy of one, with these strides; NULL with a message if memory is exhausted.
cdef array_t *empty_with_layout(const array_t *layout) noexcept nogil
cdef array_t *copy_with_layout(array_t *array) noexcept nogil
