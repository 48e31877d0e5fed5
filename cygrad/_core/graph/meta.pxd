"""Tensors that have a shape and a dtype, and no memory for elements."""

from libc.stdint cimport int64_t
from cygrad._core.arrays.array cimport array_t
from cygrad._core.graph.tensor cimport Tensor
from cygrad._core.arrays.value cimport value_t

cdef bint any_meta                # such a tensor has been made: until then nothing asks further
cdef bint any_unusual             # such a tensor, or one by the array API standard (cygrad._core.graph.array_api_marks)
cdef void *meta_owner             # what storages of such tensors say that they belong to

cdef inline bint is_meta(const array_t *array) noexcept:
    return any_meta and array.storage != NULL and array.storage.owner == meta_owner

# Say that there is one of either.
cdef void note_unusual() noexcept
# A new one; NULL with a message if memory is exhausted.
cdef array_t *meta_array(int dtype, int ndim, const int64_t *shape)
# One of the shape and dtype of a tensor, which may be one itself.
cdef Tensor without_elements(Tensor tensor)
# Whether one of the values that an operation gets is such an array.
cdef bint any_is_meta(int n, const value_t *values) noexcept
# What an operation has computed, without its elements.
cdef int forget_elements(int n, value_t *results) except -1
# Refuse to read the elements.
cdef int check_elements(const array_t *array, str operation) except -1
