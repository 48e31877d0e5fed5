"""Which Tensor wraps an array, and which array a Tensor wraps."""

from cpython.object cimport PyObject
from cygrad._core.arrays.array cimport array_t, retain
from cygrad._core.graph.borrowed_references cimport FREE_THREADED, Py_REFCNT, lock_lending, unlock_lending
from cygrad._core.graph.tensor cimport Tensor

# The Tensor of an array that is there already (a gradient, a saved value), made if it has none at the moment; takes
# over the caller's reference. Unlike `wrap` it does not make an inference tensor in inference mode.
cdef Tensor tensor_of(array_t *array)
# The living Tensor that wraps the array, or None. One that is being destroyed does not count: the callbacks of weak
# references run while the array still points to it.
cdef inline Tensor known_tensor(const array_t *array):
    if FREE_THREADED:
        return living_tensor(array)
    if array.tensor != NULL and Py_REFCNT(<PyObject *>array.tensor) > 0:
        return <Tensor>array.tensor
    return None
# What it does without a GIL, where the Tensor may be dying in another thread.
cdef Tensor living_tensor(const array_t *array)

# The array of a Tensor with a count of the caller's own: another thread may give the Tensor another array.
cdef inline array_t *held_array(Tensor tensor) noexcept:
    cdef array_t *array
    lock_lending(<void *>tensor)
    array = retain(tensor.array)
    unlock_lending(<void *>tensor)
    return array

# Give a Tensor another array, whose count it takes over.
cdef void replace_array(Tensor tensor, array_t *array) noexcept
# Give a Tensor the memory of another one, outside the graph.
# `keep_version`: it goes on to count changes with those it shares its memory with now.
cdef object adopt(Tensor self, Tensor source, bint keep_version)
