"""`Size`: the sizes of a tensor as a tuple of its own type."""

from cygrad._core.arrays.array cimport array_t

cdef object size_of(const array_t *array)
