"""
Guards on memory that arguments, constants and gradients share.

A program may be valid only for one pattern of aliasing. Constants are fixed arrays, so only arguments and gradients
are looked up: among the preceding ones and in the table of constants.
"""

from cpython.object cimport PyObject
from libc.stdint cimport int32_t
from libc.stdlib cimport calloc, free, free
from cygrad._core.arrays.array cimport array_t, share_memory
from cygrad._core.compiler.frames cimport run_frame_t
from cygrad._core.graph.tensor cimport Tensor


cdef enum:
    MAX_INLINE = 32           # arguments whose storages are compared on the stack


cdef int index_constants(aliases_t *aliases, const tensor_guard_t *layouts, int n_own, int n_tensors) except -1:
    cdef int size = 4, i, slot
    while size < 4 * (n_tensors - n_own):
        size *= 2
    aliases.layouts, aliases.n_own, aliases.n_tensors, aliases.n_storages = layouts, n_own, n_tensors, size
    aliases.storages = <void **>calloc(size, sizeof(void *))
    aliases.owners = <int32_t *>calloc(size, sizeof(int32_t))
    if aliases.storages == NULL or aliases.owners == NULL:
        raise MemoryError("compile: no memory for guards")
    for i in range(n_own, n_tensors):
        slot = _find(aliases.storages, size, layouts[i].array.storage)
        if aliases.storages[slot] == NULL:
            aliases.storages[slot], aliases.owners[slot] = layouts[i].array.storage, i
    return 0


cdef void free_aliases(aliases_t *aliases) noexcept:
    free(aliases.storages)
    free(aliases.owners)


cdef inline int _find(void **storages, int size, const void *storage) noexcept:
    """Return the slot of a storage in the table, or the free slot for it."""
    cdef int slot = (<size_t>storage >> 6) * 0x9E3779B1u & (size - 1)
    while storages[slot] != NULL and storages[slot] != storage:
        slot = (slot + 1) & (size - 1)
    return slot


cdef inline array_t *_array(run_frame_t *frame, int number) noexcept:
    return (<Tensor><PyObject *>frame.tensors[number]).array


cdef inline int _constant_with(const aliases_t *aliases, const void *storage) noexcept:
    """Return the first constant with this storage, or -1."""
    cdef int slot = _find(aliases.storages, aliases.n_storages, storage)
    return -1 if aliases.storages[slot] == NULL else aliases.owners[slot]


cdef inline int _first_with(const aliases_t *aliases, run_frame_t *frame, const void *storage, int stop) noexcept:
    """Return the first of the arguments before `stop` with this storage, else the first such constant, else -1."""
    cdef int i
    for i in range(stop):
        if _array(frame, i).storage == storage:
            return i
    return _constant_with(aliases, storage)


cdef bint same_aliases(const aliases_t *aliases, run_frame_t *frame, bint sees_gradients,
                       bint any_written) noexcept:
    cdef const tensor_guard_t *layout
    cdef int i, k, found
    cdef int own = min(aliases.n_own, MAX_INLINE)
    cdef void *storages[MAX_INLINE]
    for i in range(own):
        storages[i] = _array(frame, i).storage
    for i in range(aliases.n_own):
        layout = &aliases.layouts[i]
        if i < MAX_INLINE:
            found = -1
            for k in range(i):
                if storages[k] == storages[i]:
                    found = k
                    break
            if found < 0 and aliases.n_own < aliases.n_tensors:
                found = _constant_with(aliases, storages[i])
        else:
            found = _first_with(aliases, frame, _array(frame, i).storage, i)
        if found != layout.same_as:
            return False
        if found < 0:
            continue
        if _array(frame, i).data - _array(frame, found).data != layout.offset:
            return False
        for k in range(aliases.n_tensors):
            if (frame.tensors[k] == frame.tensors[i]) != (
                    aliases.layouts[k].identity == layout.identity):
                return False
    if sees_gradients and not _same_gradients(aliases, frame):
        return False
    return not any_written or _foreign_memory_is_disjoint(aliases, frame)


cdef bint _same_gradients(const aliases_t *aliases, run_frame_t *frame) noexcept:
    """Check the aliasing of gradients that the program reads."""
    cdef const tensor_guard_t *layout
    cdef array_t *array
    cdef array_t *other
    cdef int i, k, found
    for i in range(aliases.n_tensors):
        layout = &aliases.layouts[i]
        array = frame.gradients[i]
        if layout.gradient != 1 or array == NULL:
            continue
        found = _first_with(aliases, frame, array.storage, aliases.n_own)
        if found >= 0:
            other = _array(frame, found)
        for k in range(i if found < 0 else 0):
            if aliases.layouts[k].gradient == 1 and found < 0 and (
                    frame.gradients[k].storage == array.storage):
                found, other = aliases.n_tensors + k, frame.gradients[k]
        if found != layout.gradient_same_as or (found >= 0 and array.data - other.data != layout.gradient_offset):
            return False
    return True


cdef bint _foreign_memory_is_disjoint(const aliases_t *aliases, run_frame_t *frame) noexcept:
    """Check that memory owned by another library does not overlap other tensors."""
    cdef array_t *array
    cdef array_t *other
    cdef int i, k
    for i in range(aliases.n_tensors):
        array = _array(frame, i)
        if array.storage.owner == NULL:
            continue
        for k in range(aliases.n_tensors):
            other = _array(frame, k)
            if other.storage != array.storage and share_memory(array, other):
                return False
    return True
