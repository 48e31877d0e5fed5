"""Operand checks of product kernels."""

from libc.stdio cimport snprintf
from cygrad._core.arrays.array cimport array_t, shape_text
from cygrad._core.arrays.dtype cimport BOOL, dtype_name
from cygrad._core.arrays.value cimport ARRAY, value_t
from cygrad._core.memory.errors cimport MESSAGE, NOT_IMPLEMENTED, OK, RUNTIME_ERROR, TYPE_ERROR, message


cdef int check_arrays(text_t operation, const value_t *arguments, int n) noexcept nogil:
    cdef array_t *first
    cdef array_t *other
    cdef int i
    for i in range(n):
        if arguments[i].kind != ARRAY:
            snprintf(message(), MESSAGE, b"%s: argument %d must be a tensor", operation, i + 1)
            return TYPE_ERROR
    first = arguments[0].of.array
    for i in range(1, n):
        other = arguments[i].of.array
        if other.dtype != first.dtype:
            snprintf(message(), MESSAGE, b"%s: expected the operands to have the same dtype (got %s and %s). "
                     b"Convert one of them first.", operation, dtype_name(first.dtype), dtype_name(other.dtype))
            return RUNTIME_ERROR
    if first.dtype == BOOL:
        snprintf(message(), MESSAGE, b"%s: not implemented for bool. Convert to an integer or floating "
                 b"dtype first.", operation)
        return NOT_IMPLEMENTED
    return OK


cdef int check_ndim(text_t operation, text_t name, const array_t *array, int ndim) noexcept nogil:
    """Check the number of dimensions of the array."""
    if array.ndim == ndim:
        return OK
    snprintf(message(), MESSAGE, b"%s: %s must be a %s (got shape %s, expected %d dimension%s)", operation, name,
             b"vector" if ndim == 1 else b"matrix" if ndim == 2 else b"3-D tensor", shape_text(array), ndim,
             b"" if ndim == 1 else b"s")
    return RUNTIME_ERROR


cdef int cannot_multiply(text_t operation, const array_t *a, const array_t *b) noexcept nogil:
    snprintf(message(), MESSAGE, b"%s: mat1 and mat2 shapes cannot be multiplied (got %s and %s, expected the "
             b"last dimension of the first to match the rows of the second)",
             operation, shape_text(a), shape_text(b))
    return RUNTIME_ERROR
