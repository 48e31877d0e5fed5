"""
AccumulateGrad: adds gradients to a leaf's ``.grad``.

A mutex guards accumulation, so that concurrent backward calls on shared leaves lose nothing. It is held while the
memory is modified, never while acquiring the GIL.
"""

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF
from libc.stdint cimport int64_t, uint32_t
from libc.stdio cimport snprintf
from libc.string cimport memcmp
from cygrad._core.arrays.array cimport (
    array_empty_like, array_meta, array_t, exclusive, release, retain, same_shape, shape_text)
from cygrad._core.arrays.value cimport ARRAY, NOTHING, clear, set_array, value_t
from cygrad._core.elementwise.elementwise cimport accumulate, copy_into
from cygrad._core.elementwise.layout cimport array_like, is_non_overlapping_and_dense
from cygrad._core.graph.borrowed_references cimport (
    FREE_THREADED, count_down, count_up, lock_lending, make_lendable, take_if_alive, unlock_lending)
from cygrad._core.graph.modes cimport ANOMALY_ON, thread_state
from cygrad._core.graph.node cimport (
    Node, gc_track, gc_unlink, gc_untrack, gradient_t, has_weak_references, install_collector, next_sequence_nr,
    node_new, node_t)
from cygrad._core.graph.version_errors cimport forget_place
from cygrad._core.memory.atomic cimport atomic_increment, atomic_load, lock, lock_patiently, unlock
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, OK, RUNTIME_ERROR, check, message


cdef array_t *_order_of(node_t *node) noexcept nogil:
    """Return shape and strides of a leaf that is not row-major, retained, or NULL."""
    cdef array_t *order = NULL
    if node.saved[0].value.kind == ARRAY:
        lock(&node.lock)
        if node.saved[0].value.kind == ARRAY:
            order = retain(node.saved[0].value.of.array)
        unlock(&node.lock)
    return order


cdef array_t *_own(node_t *node, array_t *array, bint copy) noexcept nogil:
    """
    Return the array itself if it may become .grad: its memory unshared, dense and in the layout of the leaf. Else a
    copy.
    """
    cdef array_t *order = _order_of(node)
    cdef array_t *own = NULL
    cdef bint ordered = order != NULL and same_shape(order, array)
    if ordered:
        if (memcmp(order.strides, array.strides, array.ndim * sizeof(int64_t)) == 0 and array.storage.owner == NULL
                and atomic_load(&array.count) == 1 and atomic_load(&array.storage.count) == 1):
            own = array
    elif exclusive(array):
        own = array
    if own == NULL and copy:
        own = array_like(order, array.dtype) if ordered else array_empty_like(array, -1)
        if own != NULL and copy_into(own, array) != OK:
            release(own)
            own = NULL
    release(order)
    return own


cdef int add_gradient(node_t *node, array_t *array) noexcept nogil:
    cdef gradient_t *gradient = node.gradient
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
    else:
        own = _own(node, array, True)
        if own != array:
            release(array)
        gradient.value = own
        if own == NULL:
            status = MEMORY_ERROR
    unlock(&gradient.lock)
    return status


cdef bint keep_gradient(node_t *node, array_t *array) noexcept nogil:
    cdef gradient_t *gradient = node.gradient
    cdef bint kept
    if _own(node, array, False) == NULL:
        return False
    lock_patiently(&gradient.lock)
    kept = gradient.value == NULL
    if kept:
        gradient.value = retain(array)
    unlock(&gradient.lock)
    return kept


cdef int _backward(node_t *node, value_t *grads, array_t **out, bint keep, uint32_t wanted) noexcept nogil:
    if grads[0].kind != ARRAY:
        return OK
    grads[0].kind = NOTHING
    if node.released:                   # requires_grad was set to False meanwhile
        release(grads[0].of.array)
        return OK
    return add_gradient(node, grads[0].of.array)


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
    # It may be dying in another thread: under this mutex its fields are still valid, because `_dealloc` needs it.
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
    """Return the node to which `take_if_alive` has added a reference, or NULL."""
    cdef AccumulateGrad node
    if found == NULL:
        return None
    node = <AccumulateGrad>found
    Py_DECREF(node)
    return node


cdef int _note_order(node_t *node, const array_t *array) except -1:
    """Copy the gradient in the layout of the leaf, if that is dense."""
    cdef array_t *order = NULL
    cdef value_t former
    if not array.contiguous and is_non_overlapping_and_dense(array):
        order = array_meta(array)
        if order == NULL:
            check(MEMORY_ERROR)
    lock(&node.lock)
    former = node.saved[0].value
    node.saved[0].value.kind = NOTHING
    if order != NULL:
        set_array(&node.saved[0].value, order)
    unlock(&node.lock)
    clear(&former)
    return 0


cdef AccumulateGrad _new_or_parked(gradient_t *gradient):
    cdef node_t *c = gradient.parked
    cdef AccumulateGrad node
    if c == NULL or thread_state().anomaly & ANOMALY_ON:         # anomaly mode stores where each node was created
        node = <AccumulateGrad>node_new(AccumulateGrad, 0, 1, 1, False)
        gc_unlink(node.c)
        node.c.backward = _backward
        return node
    gradient.parked = NULL
    _wake(c, NULL)
    node = <AccumulateGrad>c.object              # its first reference
    return node


cdef inline void _wake(node_t *c, gradient_t *gradient) noexcept:
    """Reinitialize a parked node, with the gradient, if there is one."""
    c.sequence_nr = next_sequence_nr()
    c.task = c.index = c.work = 0
    c.released = 0
    if gradient != NULL:
        c.gradient = gradient
        count_up(&gradient.count)


cdef AccumulateGrad accumulator_of(object leaf, gradient_t *gradient, const array_t *array, bint bare):
    cdef AccumulateGrad node
    cdef node_t *c = gradient.parked
    cdef PyObject *other = NULL
    if not FREE_THREADED and c != NULL and gradient.accumulator == NULL and array.contiguous \
            and not thread_state().anomaly & ANOMALY_ON:
        gradient.parked = NULL
        node = <AccumulateGrad>c.object          # its first reference
        _wake(c, gradient)
        node.payload = leaf
        gradient.accumulator = c
        if bare and node.notes is None:
            gc_untrack(c)
        else:
            gc_track(c)
        return node
    node = known_accumulator(gradient)
    if node is not None:
        if not array.contiguous or node.c.saved[0].value.kind == ARRAY:
            _note_order(node.c, array)
        return node
    node = _new_or_parked(gradient)
    if not array.contiguous:
        _note_order(node.c, array)
    node.payload = leaf
    node.c.gradient = gradient
    count_up(&gradient.count)
    if bare and node.notes is None:
        gc_untrack(node.c)
    else:
        gc_track(node.c)
    make_lendable(<PyObject *>node)
    # Another thread may have created one meanwhile (with a GIL too: anomaly mode runs Python code in node_new). A leaf
    # has one node, which hooks and `autograd.grad` rely on: drop ours.
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


cdef void _park(PyObject *self) noexcept:
    """
    With a GIL: the node is unreferenced, but the leaf may need it again immediately. A node without pending additions
    is parked in the gradient's slot, without the leaf.
    """
    cdef node_t *c = (<Node>self).c
    cdef gradient_t *gradient = NULL if c == NULL else c.gradient
    if (gradient == NULL or gradient.accumulator != c or gradient.parked != NULL or atomic_load(&gradient.count) == 1
            or (<Node>self).hooks is not None or (<Node>self).notes is not None or has_weak_references(self)):
        _node_dealloc(self)
        return
    gc_unlink(c)
    if c.saved[0].value.kind == ARRAY:
        clear(&c.saved[0].value)
    gradient.accumulator = NULL
    gradient.parked = c
    c.gradient = NULL
    count_down(&gradient.count)
    _leaf = (<Node>self).payload
    (<Node>self).payload = None
    # If the leaf dies now, so does this node.


cdef void _dealloc(PyObject *self) noexcept:
    """
    Without a GIL: erase the borrowed pointer to a node whose refcount is zero. This runs before Cython's deallocator,
    which raises the refcount temporarily, so that the node would seem alive.
    """
    cdef node_t *c = (<Node>self).c
    if c != NULL and c.gradient != NULL:
        lock_lending(c.gradient)
        if c.gradient.accumulator == c:
            c.gradient.accumulator = NULL
        unlock_lending(c.gradient)
    _node_dealloc(self)


_node_dealloc = (<_Type *>AccumulateGrad).tp_dealloc
(<_Type *>AccumulateGrad).tp_dealloc = _dealloc if FREE_THREADED else _park
install_collector(AccumulateGrad, False)
