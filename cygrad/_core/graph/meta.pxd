"""Tensors of the meta device: shape and dtype without memory."""

from libc.stdint cimport int64_t
from cygrad._core.arrays.array cimport array_t
from cygrad._core.graph.tensor cimport Tensor
from cygrad._core.arrays.value cimport value_t

cdef bint any_meta                # a meta tensor exists: until then no further check is needed
cdef bint any_unusual             # a meta tensor or Array API array exists (cygrad._core.graph.array_api_marks)
cdef void *meta_owner             # owner of the storages of meta tensors

cdef inline bint is_meta(const array_t *array) noexcept:
    return any_meta and array.storage != NULL and array.storage.owner == meta_owner

# Set these flags.
cdef void note_unusual() noexcept
# Create one; NULL with a message if memory is exhausted.
cdef array_t *meta_array(int dtype, int ndim, const int64_t *shape)
# Create one of the shape and dtype of a tensor, which may be on meta itself.
cdef Tensor without_elements(Tensor tensor)
# Is one of the arguments of an operation such an array?
cdef bint any_is_meta(int n, const value_t *values) noexcept
# Return the result of an operation without its elements.
cdef int forget_elements(int n, value_t *results) except -1
# Raise the error for reading elements.
cdef int check_elements(const array_t *array, str operation) except -1
