"""Gradients of a traced backward, in the layout of the eager ones."""

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

# Return what the native execution of a node gives for these gradients; releases nothing.
cdef list native_gradients(Node node, list grads, uint32_t wanted)
# Return a traced gradient with the strides of the native one; aborts the trace if it is not bit-identical, or no copy
# has those strides.
cdef object laid_out_as(Tensor gradient, Tensor native, str name)
