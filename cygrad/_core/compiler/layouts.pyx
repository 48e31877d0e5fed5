"""Give results the layout that they had in the trace."""

from libc.stdint cimport int64_t
from cygrad._core.arrays.array cimport array_empty_like, array_over, array_t, array_view, release
from cygrad._core.arrays.dtype cimport itemsize
from cygrad._core.arrays.value cimport NOTHING, value_t
from cygrad._core.elementwise.elementwise cimport copy_into
from cygrad._core.memory.errors cimport MEMORY_ERROR, OK
from cygrad._core.memory.storage cimport storage_new, storage_release, storage_t


cdef int view_as_layout(value_t *value, const array_t *layout) noexcept nogil:
    cdef array_t *array = value.of.array
    value.of.array = array_view(array, layout.dtype, layout.ndim, layout.shape, layout.strides, 0)
    release(array)
    if value.of.array != NULL:
        return OK
    value.kind = NOTHING
    return MEMORY_ERROR


cdef array_t *empty_with_layout(const array_t *layout) noexcept nogil:
    cdef storage_t *storage
    cdef array_t *fresh
    cdef int64_t reach = 1
    cdef int i
    if layout.contiguous:
        return array_empty_like(layout, -1)
    for i in range(layout.ndim):
        reach += (layout.shape[i] - 1) * layout.strides[i]
    storage = storage_new(max(reach, layout.size) * itemsize(layout.dtype))
    if storage == NULL:
        return NULL
    fresh = array_over(storage, layout.dtype, layout.ndim, layout.shape, layout.strides, 0)
    if fresh == NULL:
        storage_release(storage)
    return fresh


cdef array_t *copy_with_layout(array_t *array) noexcept nogil:
    cdef array_t *fresh = empty_with_layout(array)
    if fresh != NULL and copy_into(fresh, array) != OK:
        release(fresh)
        return NULL
    return fresh


cdef int copy_to_layout(array_t **array, const array_t *layout) noexcept nogil:
    cdef array_t *fresh = empty_with_layout(layout)
    cdef int status
    if fresh == NULL:
        return MEMORY_ERROR
    status = copy_into(fresh, array[0])
    release(array[0])
    array[0] = fresh
    return status
