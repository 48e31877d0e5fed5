"""
Which tensors are arrays by the array API standard: those that functions of its namespace return.

Where they are operands, types are promoted as the standard says. What is computed from them is of their kind.
"""

from cygrad._core.arrays.array cimport array_t
from cygrad._core.arrays.value cimport value_t

cdef inline bint is_array_api(const array_t *array) noexcept:
    return array.array_api

# From now on it is one.
cdef void mark_array_api(array_t *array) noexcept
# It is one if the other one is: a gradient, and what it is the gradient of.
cdef void propagate_array_api(array_t *array, const array_t *example) noexcept

# What is unusual about the values that an operation gets, as bits.
cdef enum:
    WITHOUT_ELEMENTS = 1
    BY_STANDARD = 2
cdef int unusual_among(int n, const value_t *values) noexcept
# What an operation on such values has computed becomes of their kind.
cdef int adapt(int unusual, int n, value_t *results) except -1
