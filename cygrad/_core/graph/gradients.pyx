"""
The gradient slot of a leaf: created once, read and replaced as a whole.

The slot's mutex guards its array, because backward adds to it without the GIL. The Tensor object of it is stored in the
leaf, under the leaf's critical section: ``x.grad is x.grad``.
"""

cimport cython
from libc.stdint cimport int64_t
from cygrad._core.arrays.array cimport array_t, overlaps_itself, release, retain
from cygrad._core.graph.meta cimport any_unusual
from cygrad._core.graph.node cimport HAS_SPARSE_GRADIENT, gc_track_all, gradient_new, gradient_release, gradient_t
from cygrad._core.graph.array_api_marks cimport propagate_array_api
from cygrad._core.graph.tensor cimport Tensor, is_bare
from cygrad._core.graph.tensor_identity cimport held_array, tensor_of
from cygrad._core.graph.untracked_reason cimport GRADIENT, NOTHING_TO_TELL, UNTRACKED
from cygrad._core.memory.atomic cimport atomic_claim, atomic_load, lock_patiently, unlock
from cygrad._core.graph.user_warnings import warn_user


cdef gradient_t *slot_of(Tensor leaf, const char *operation) except NULL:
    cdef gradient_t *made
    if leaf.gradient == NULL:
        made = gradient_new()
        if made == NULL:
            raise MemoryError(f"{operation.decode()}: no memory for a gradient slot")
        # Without a GIL two threads may use a new leaf at the same time: the second uses the slot of the first.
        if not atomic_claim(<int64_t *>&leaf.gradient, 0, <int64_t>made):
            gradient_release(made)
    return leaf.gradient


cdef Tensor gradient_of(Tensor leaf):
    cdef Tensor found = None
    if leaf.gradient != NULL:
        # Two threads that read concurrently get one object, and neither drops it while the other takes a reference.
        with cython.critical_section(leaf):
            found = _known_gradient(leaf)
    if found is None and leaf.node is not None and not _retains_grad(leaf):
        warn_user(f".grad of a non-leaf is not kept (got a tensor made by {leaf.node.name()}), so it is None. "
                  "Call retain_grad() on it before backward, or ask autograd.grad for it.")
    return found


cdef Tensor _known_gradient(Tensor leaf):
    cdef array_t *value
    lock_patiently(&leaf.gradient.lock)
    value = leaf.gradient.value
    if value != NULL:
        retain(value)
    unlock(&leaf.gradient.lock)
    if value == NULL:
        leaf.grad_tensor = None
    elif leaf.grad_tensor is None or leaf.grad_tensor.array != value:
        if any_unusual and value.tensor == NULL:
            propagate_array_api(value, leaf.array)
        leaf.grad_tensor = tensor_of(value)
        if not is_bare(leaf):
            gc_track_all()
        if leaf.grad_tensor.untracked in (NOTHING_TO_TELL, UNTRACKED):
            leaf.grad_tensor.untracked = GRADIENT
    else:
        release(value)
    return leaf.grad_tensor


cdef bint _retains_grad(Tensor tensor):
    return (tensor.node is not None and tensor.node.hooks is not None
            and tensor.output_nr in tensor.node.hooks.retained)


cdef object set_gradient(Tensor leaf, Tensor value):
    if leaf.gradient != NULL or value is not None:
        _replace(leaf, value, True, NULL, 0)
    return None


cdef int64_t version_of_gradient(const array_t *array) noexcept nogil:
    return 0 if array == NULL or array.version == NULL else atomic_load(&array.version.value)


cdef bint replace_gradient(Tensor leaf, Tensor former, int64_t version, Tensor value) except -1:
    return _replace(leaf, value, False, NULL if former is None else former.array, version)


cdef bint _replace(Tensor leaf, Tensor value, bint always, array_t *former, int64_t version) except -1:
    cdef gradient_t *slot = slot_of(leaf, b"grad")
    cdef array_t *array
    cdef array_t *replaced
    cdef bint sparse
    # Array and Tensor object change together: if two threads set .grad, one of them wins with both.
    with cython.critical_section(leaf):
        array = NULL if value is None else held_array(value)
        if value is not None:
            slot_of(value, b"grad")                    # marks it as known to the graph, see `set_node`
        sparse = array != NULL and not array.contiguous and type(value) is not Tensor and overlaps_itself(array)
        lock_patiently(&slot.lock)
        replaced = slot.value
        if not always and (replaced != former or version != version_of_gradient(replaced)):
            unlock(&slot.lock)
            release(array)
            return False
        slot.value = array
        slot.sparse = sparse
        if sparse and slot.accumulator != NULL:        # a running backward may have scheduled it on a worker
            slot.accumulator.python |= HAS_SPARSE_GRADIENT
        unlock(&slot.lock)
        leaf.grad_tensor = value
        if value is not None and value.node is not None and value.untracked == NOTHING_TO_TELL:
            value.untracked = GRADIENT
        if value is not None and not is_bare(leaf):
            gc_track_all()
    release(replaced)
    return True
