"""The mapping between Tensors and arrays."""

from cpython.object cimport PyObject
from cygrad._core.arrays.array cimport array_t, retain
from cygrad._core.graph.borrowed_references cimport FREE_THREADED, Py_REFCNT, lock_lending, unlock_lending
from cygrad._core.graph.tensor cimport Tensor

# Return the Tensor of an existing array (a gradient, a saved value), created if necessary; takes over the caller's
# reference. Unlike `wrap` it does not create an inference tensor in inference mode.
cdef Tensor tensor_of(array_t *array)
# Return the living Tensor that wraps the array, or None. One that is being destroyed does not count: callbacks of weak
# references run while the array still points to it.
cdef inline Tensor known_tensor(const array_t *array):
    if FREE_THREADED:
        return living_tensor(array)
    if array.tensor != NULL and Py_REFCNT(<PyObject *>array.tensor) > 0:
        return <Tensor>array.tensor
    return None
# The same without a GIL, where the Tensor may be dying in another thread.
cdef Tensor living_tensor(const array_t *array)

# Return the array of a Tensor with a new reference, because another thread may replace it.
cdef inline array_t *held_array(Tensor tensor) noexcept:
    cdef array_t *array
    lock_lending(<void *>tensor)
    array = retain(tensor.array)
    unlock_lending(<void *>tensor)
    return array

# Replace the array of a Tensor; takes over the reference.
cdef void replace_array(Tensor tensor, array_t *array) noexcept
# Make a Tensor share the memory of another one, outside the graph. `keep_version`: it keeps sharing its version counter
# with its former memory.
cdef object adopt(Tensor self, Tensor source, bint keep_version)
