"""
AccumulateGrad: where backward ends and a leaf's ``.grad`` begins.

Adding is locked, so that concurrent backward calls on shared leaves lose nothing. The lock is held while the
memory is added to, never while taking the GIL.
"""

from libc.stdio cimport snprintf
from cygrad._core.array cimport array_empty_like, array_t, exclusive, release, same_shape, shape_text
from cygrad._core.atomic cimport atomic_increment, lock_patiently, unlock
from cygrad._core.elementwise cimport accumulate, copy_into
from cygrad._core.errors cimport MEMORY_ERROR, MESSAGE, OK, RUNTIME_ERROR, message
from cygrad._core.node cimport Node, gradient_t, install_collector, node_new, node_t
from cygrad._core.value cimport ARRAY, NOTHING, value_t
from cygrad._core.versions cimport forget_place


cdef int add_gradient(gradient_t *gradient, array_t *array) noexcept nogil:
    cdef int status = OK
    cdef array_t *own
    lock_patiently(&gradient.lock)
    if gradient.value != NULL:
        if gradient.value.dtype == array.dtype and same_shape(gradient.value, array):
            status = accumulate(gradient.value, array)
            if gradient.value.version != NULL:
                atomic_increment(&gradient.value.version.value)
                forget_place(gradient.value.version)
        else:
            snprintf(message(), MESSAGE, b"backward: the gradient does not fit .grad (got shape %s, expected %s "
                     b"and the same dtype). Set .grad to None first.", shape_text(array), shape_text(gradient.value))
            status = RUNTIME_ERROR
        release(array)
    elif exclusive(array):
        gradient.value = array          # nobody else looks at it: keep it, copy nothing
    else:
        own = _copy(array)
        release(array)
        gradient.value = own
        if own == NULL:
            status = MEMORY_ERROR
    unlock(&gradient.lock)
    return status


cdef array_t *_copy(array_t *array) noexcept nogil:
    cdef array_t *copy = array_empty_like(array, -1)
    if copy != NULL and copy_into(copy, array) != OK:
        release(copy)
        return NULL
    return copy


cdef int _backward(node_t *node, value_t *grads, array_t **out, bint keep) noexcept nogil:
    if grads[0].kind != ARRAY:
        return OK
    grads[0].kind = NOTHING
    if node.released:                   # the leaf has been told since that it requires no grad
        release(grads[0].of.array)
        return OK
    return add_gradient(node.gradient, grads[0].of.array)


cdef class AccumulateGrad(Node):
    """The end of a path: adds the gradient to the leaf's ``.grad``."""

    @property
    def variable(self):
        """The leaf."""
        return self.payload


install_collector(AccumulateGrad)


cdef AccumulateGrad accumulator_of(object leaf, gradient_t *gradient):
    cdef AccumulateGrad node
    if gradient.accumulator != NULL:
        return <AccumulateGrad>gradient.accumulator.object
    node = <AccumulateGrad>node_new(AccumulateGrad, 0, 1, 0)
    node.payload = leaf
    node.c.backward = _backward
    node.c.gradient = gradient
    atomic_increment(&gradient.count)
    gradient.accumulator = node.c
    return node
