"""
AccumulateGrad: where backward ends and a leaf's ``.grad`` begins.

Adding is locked, so that concurrent backward calls on shared leaves lose nothing. The lock is held while the
memory is added to, never while taking the GIL.
"""

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF
from libc.stdint cimport uint32_t
from libc.stdio cimport snprintf
from cygrad._core.arrays.array cimport array_empty_like, array_t, exclusive, release, retain, same_shape, shape_text
from cygrad._core.arrays.value cimport ARRAY, NOTHING, value_t
from cygrad._core.elementwise.elementwise cimport accumulate, copy_into
from cygrad._core.graph.borrowed_references cimport (
    FREE_THREADED, lock_lending, make_lendable, take_if_alive, unlock_lending)
from cygrad._core.graph.node cimport Node, gradient_t, install_collector, node_new, node_t
from cygrad._core.graph.version_errors cimport forget_place
from cygrad._core.memory.atomic cimport atomic_increment, lock_patiently, unlock
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, OK, RUNTIME_ERROR, message


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


cdef bint keep_gradient(gradient_t *gradient, array_t *array) noexcept nogil:
    cdef bint kept
    if not exclusive(array):
        return False
    lock_patiently(&gradient.lock)
    kept = gradient.value == NULL
    if kept:
        gradient.value = retain(array)
    unlock(&gradient.lock)
    return kept


cdef array_t *_copy(array_t *array) noexcept nogil:
    cdef array_t *copy = array_empty_like(array, -1)
    if copy != NULL and copy_into(copy, array) != OK:
        release(copy)
        return NULL
    return copy


cdef int _backward(node_t *node, value_t *grads, array_t **out, bint keep, uint32_t wanted) noexcept nogil:
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


cdef AccumulateGrad known_accumulator(gradient_t *gradient):
    cdef PyObject *found = NULL
    if gradient.accumulator == NULL:
        return None
    if not FREE_THREADED:
        return <AccumulateGrad>gradient.accumulator.object
    # It may be dying in another thread: below this lock it is still whole, as `_dealloc` has to get by.
    lock_lending(gradient)
    if gradient.accumulator != NULL and take_if_alive(gradient.accumulator.object):
        found = gradient.accumulator.object
    unlock_lending(gradient)
    return _taken(found)


cdef void forget_accumulator(gradient_t *gradient) noexcept:
    lock_lending(gradient)
    gradient.accumulator = NULL
    unlock_lending(gradient)


cdef AccumulateGrad _taken(PyObject *found):
    """The node of which `take_if_alive` has given us a reference, or NULL."""
    cdef AccumulateGrad node
    if found == NULL:
        return None
    node = <AccumulateGrad>found
    Py_DECREF(node)
    return node


cdef AccumulateGrad accumulator_of(object leaf, gradient_t *gradient):
    cdef AccumulateGrad node = known_accumulator(gradient)
    cdef PyObject *other = NULL
    if node is not None:
        return node
    node = <AccumulateGrad>node_new(AccumulateGrad, 0, 1, 0)
    node.payload = leaf
    node.c.backward = _backward
    node.c.gradient = gradient
    atomic_increment(&gradient.count)
    make_lendable(<PyObject *>node)
    # Another thread may have made one meanwhile (with a GIL too: anomaly mode runs Python code in node_new). Hooks and
    # `autograd.grad` take it for granted that a leaf has one node: ours is dropped.
    lock_lending(gradient)
    if gradient.accumulator != NULL and take_if_alive(gradient.accumulator.object):
        other = gradient.accumulator.object
    else:
        gradient.accumulator = node.c
    unlock_lending(gradient)
    return node if other == NULL else _taken(other)


cdef extern from "Python.h":
    ctypedef struct _Type "PyTypeObject":
        void (*tp_dealloc)(PyObject *) noexcept

cdef void (*_node_dealloc)(PyObject *) noexcept


cdef void _dealloc(PyObject *self) noexcept:
    """
    Without a GIL: erase the borrowed pointer to a node whose count is zero. This comes before Cython's own function, as
    that one raises the count for a moment, and the node would seem to live.
    """
    cdef node_t *c = (<Node>self).c
    if c != NULL and c.gradient != NULL:
        lock_lending(c.gradient)
        if c.gradient.accumulator == c:
            c.gradient.accumulator = NULL
        unlock_lending(c.gradient)
    _node_dealloc(self)


_node_dealloc = (<_Type *>AccumulateGrad).tp_dealloc
if FREE_THREADED:
    (<_Type *>AccumulateGrad).tp_dealloc = _dealloc
install_collector(AccumulateGrad)
