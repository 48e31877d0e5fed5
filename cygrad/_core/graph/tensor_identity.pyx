"""
The mapping between Tensors and arrays.

An array has a borrowed pointer to its Tensor, so that the same memory is the same object for users. Without a GIL that
Tensor may be dying in another thread, or another thread may replace its array: see `borrowed_references`.
"""

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF
from cygrad._core.arrays.array cimport array_t, array_view, release, replace_version, same_shape
from cygrad._core.graph.borrowed_references cimport (
    FREE_THREADED, lock_lending, make_lendable, take_if_alive, unlock_lending)
from cygrad._core.graph.tensor_free_list cimport bare_tensor
from cygrad._core.graph.tensor cimport Tensor
from cygrad._core.graph.untracked_reason cimport GRADIENT
from cygrad._core.memory.atomic cimport atomic_increment
from cygrad._core.memory.errors cimport MEMORY_ERROR, OK, check
from cygrad._core.memory.storage cimport version_new


cdef Tensor tensor_of(array_t *array):
    cdef Tensor tensor = known_tensor(array)
    if tensor is not None:
        release(array)
        return tensor
    tensor = bare_tensor()
    if FREE_THREADED:
        return _published(tensor, array)
    tensor.array = array
    array.tensor = <void *>tensor
    return tensor


cdef Tensor _published(Tensor made, array_t *array):
    """Return the Tensor of an array that other threads may use: `made`, or one that another thread made meanwhile."""
    cdef PyObject *other = NULL
    made.array = array
    make_lendable(<PyObject *>made)
    lock_lending(array)
    if array.tensor != NULL and take_if_alive(<PyObject *>array.tensor):
        other = <PyObject *>array.tensor
    else:
        array.tensor = <void *>made
    unlock_lending(array)
    return made if other == NULL else _taken(other)


cdef Tensor _taken(PyObject *found):
    """Return the Tensor to which `take_if_alive` has added a reference."""
    cdef Tensor tensor = <Tensor>found
    Py_DECREF(tensor)
    return tensor


cdef Tensor living_tensor(const array_t *array):
    cdef PyObject *found = NULL
    # A dying Tensor erases the pointer under this mutex before its memory is freed (cygrad._core.graph.tensor_type).
    lock_lending(array)
    if array.tensor != NULL and take_if_alive(<PyObject *>array.tensor):
        found = <PyObject *>array.tensor
    unlock_lending(array)
    return None if found == NULL else _taken(found)


cdef void replace_array(Tensor tensor, array_t *array) noexcept:
    cdef array_t *replaced
    array.tensor = <void *>tensor
    make_lendable(<PyObject *>tensor)
    lock_lending(<void *>tensor)             # a reader of the pointer adds its reference there
    replaced = tensor.array
    tensor.array = array
    unlock_lending(<void *>tensor)
    if replaced == NULL:
        return
    lock_lending(replaced)
    if replaced.tensor == <void *>tensor:
        replaced.tensor = NULL
    unlock_lending(replaced)
    if (replaced.count > 1 and (tensor.untracked == GRADIENT or tensor.node is None and not tensor.leaf_requires_grad)
            and replaced.dtype == array.dtype and same_shape(replaced, array)):
        _replace_gradient(tensor, replaced)
    release(replaced)


cdef void _replace_gradient(Tensor gradient, const array_t *replaced):
    """Let the leaf of which this is the ``.grad`` accumulate into its new memory (``x.grad.data = t``)."""
    import gc                                # here: few programs need it
    for leaf in gc.get_referrers(gradient):
        if (isinstance(leaf, Tensor) and (<Tensor>leaf).grad_tensor is gradient and (<Tensor>leaf).gradient != NULL
                and (<Tensor>leaf).gradient.value == replaced):
            (<object>Tensor).grad.__set__(leaf, gradient)


cdef object adopt(Tensor self, Tensor source, bint keep_version):
    cdef array_t *own = held_array(source)
    cdef array_t *view = array_view(own, own.dtype, own.ndim, own.shape, own.strides, 0)
    release(own)
    if view == NULL:
        check(MEMORY_ERROR)
    if keep_version:
        if self.array.version != NULL:
            atomic_increment(&self.array.version.count)
        replace_version(view, self.array.version)
        view.array_api = self.array.array_api
    elif view.version == NULL and self.array != NULL and self.array.version != NULL:
        # Memory of an inference tensor has no version counter. The normal tensor gets one of its own.
        if replace_version(view, version_new()) != OK:
            release(view)
            raise MemoryError("set_: no memory for a version counter")
    replace_array(self, view)
