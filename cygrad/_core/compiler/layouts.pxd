"""Give results the layout that they had in the trace."""

from cygrad._core.arrays.array cimport array_t
from cygrad._core.arrays.value cimport value_t

# Compare dtype, shape and strides.
cdef inline bint has_layout(const array_t *array, const array_t *layout) noexcept nogil:
    cdef int i
    if array.dtype != layout.dtype or array.ndim != layout.ndim:
        return False
    for i in range(layout.ndim):
        if array.shape[i] != layout.shape[i] or (array.strides[i] != layout.strides[i] and layout.shape[i] > 1):
            return False
    return True

# Reshape a contiguous array to the shape of the layout.
cdef int view_as_layout(value_t *value, const array_t *layout) noexcept nogil
# Copy a result to the strides of the layout; strides of fused expressions depend on their operands.
cdef int copy_to_layout(array_t **array, const array_t *layout) noexcept nogil
# Allocate or copy an array with these strides; return NULL and set a message if out of memory.
cdef array_t *empty_with_layout(const array_t *layout) noexcept nogil
cdef array_t *copy_with_layout(array_t *array) noexcept nogil
