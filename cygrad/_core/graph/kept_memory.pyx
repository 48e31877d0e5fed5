"""Memory that nodes save for backward, as storages."""

from cygrad._core.arrays.array cimport array_t
from cygrad._core.arrays.value cimport ARRAY, ARRAYS, value_t
from cygrad._core.graph.node cimport Node, node_t
from cygrad._core.graph.tensor cimport Tensor
from cygrad._core.memory.atomic cimport lock, unlock


cdef int _add(dict storages, const array_t *array) except -1:
    if array != NULL and array.storage != NULL:
        storages[<size_t>array.storage] = array.storage.nbytes
    return 0


cdef int _add_saved(dict storages, node_t *c) except -1:
    cdef const value_t *value
    cdef int i, j
    lock(&c.lock)                # another thread's backward may release them; no foreign code runs below
    try:
        for i in range(c.n_saved):
            value = &c.saved[i].value
            if value.kind == ARRAY:
                _add(storages, value.of.array)
            elif value.kind == ARRAYS:
                for j in range(value.count):
                    _add(storages, value.of.arrays[j])
    finally:
        unlock(&c.lock)
    return 0


def kept(Node node not None):
    """
    Return the storages that a node saves for backward.

    What saved-tensor hooks have packed is not among them: it may be any object.

    Parameters
    ----------
    node : Node

    Returns
    -------
    dict
        From an identity of each storage to its bytes.
    """
    cdef dict storages = {}
    _add_saved(storages, node.c)
    if node.c.inner != NULL:     # the node of a slice that was modified in place: the payload keeps it alive
        _add_saved(storages, node.c.inner)
    return storages


def storage_of(Tensor tensor not None):
    """
    The identity of a tensor's storage, as in `kept`.

    Parameters
    ----------
    tensor : Tensor

    Returns
    -------
    int
    """
    return <size_t>tensor.array.storage
