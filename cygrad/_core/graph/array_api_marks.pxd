"""
Marks of Array API arrays: tensors returned by functions of that namespace.

For such operands, types are promoted by the standard. Results computed from them are marked, too.
"""

from cygrad._core.arrays.array cimport array_t
from cygrad._core.arrays.value cimport value_t

cdef inline bint is_array_api(const array_t *array) noexcept:
    return array.array_api

# Mark the array.
cdef void mark_array_api(array_t *array) noexcept
# Mark the array if the other one is marked, for a gradient and its tensor.
cdef void propagate_array_api(array_t *array, const array_t *example) noexcept

# Return what is unusual about the arguments of an operation, as bits.
cdef enum:
    WITHOUT_ELEMENTS = 1
    BY_STANDARD = 2
cdef int unusual_among(int n, const value_t *values) noexcept
# Mark the results of an operation on such arguments.
cdef int adapt(int unusual, int n, value_t *results) except -1
