"""Gradients of a traced backward, in the layout that eager gives them."""

from libc.stdint cimport uint32_t
from cygrad._core.arrays.value cimport ARRAY, ARRAYS, value_t
from cygrad._core.graph.node cimport Node
from cygrad._core.graph.tensor cimport Tensor

cdef inline bint has_memory(const value_t *value) noexcept nogil:
    """Is a saved value an array, or a list with an array, of which more is kept than shape and dtype?"""
    cdef int i
    if value.kind == ARRAY:
        return value.of.array.storage != NULL
    if value.kind == ARRAYS:
        for i in range(value.count):
            if value.of.arrays[i] != NULL and value.of.arrays[i].storage != NULL:
                return True
    return False

# What the native execution of a node gives for these gradients; nothing is released.
cdef list native_gradients(Node node, list grads, uint32_t wanted)
# A traced gradient with the strides of the native one; the trace ends if it has other bits, or no copy those strides.
cdef object laid_out_as(Tensor gradient, Tensor native, str name)
