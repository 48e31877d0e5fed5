"""Operand checks of product kernels."""

from cygrad._core.arrays.array cimport array_t
from cygrad._core.arrays.value cimport value_t

ctypedef const char *text_t

# The first `n` arguments are arrays of one dtype that has products.
cdef int check_arrays(text_t operation, const value_t *arguments, int n) noexcept nogil
cdef int check_ndim(text_t operation, text_t name, const array_t *array, int ndim) noexcept nogil
# RUNTIME_ERROR with a message: the inner dimensions differ.
cdef int cannot_multiply(text_t operation, const array_t *a, const array_t *b) noexcept nogil
