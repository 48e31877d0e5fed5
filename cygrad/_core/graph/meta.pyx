"""
Tensors of the meta device: shape and dtype without memory.

All such arrays share one zero as their only element: every stride is 0. So operations read valid memory and raise the
usual errors. Their computed results are discarded and replaced by arrays of this kind.
"""

from libc.stdint cimport int64_t
from cygrad._core.arrays.array cimport MAX_DIMS, array_over, array_t, release
from cygrad._core.memory.errors cimport MEMORY_ERROR, check
from cygrad._core.memory.storage cimport NO_ELEMENTS, storage_foreign, storage_release, storage_t
from cygrad._core.graph.tensor cimport Tensor, wrap
from cygrad._core.arrays.value cimport ARRAY, ARRAYS, value_t

cdef char[16] _zero
cdef object _owner = object()
any_meta = any_unusual = False
meta_owner = <void *>_owner


cdef void note_unusual() noexcept:
    global any_unusual
    any_unusual = True


cdef array_t *meta_array(int dtype, int ndim, const int64_t *shape):
    global any_meta, any_unusual
    cdef int64_t[MAX_DIMS] strides
    cdef storage_t *storage = storage_foreign(_zero, sizeof(_zero), _owner, False)
    cdef array_t *array
    cdef int i
    if storage == NULL:
        return NULL
    storage.size_class = NO_ELEMENTS
    for i in range(ndim):
        strides[i] = 0
    array = array_over(storage, dtype, ndim, shape, strides, 0)
    if array == NULL:
        storage_release(storage)
        return NULL
    any_meta = any_unusual = True
    return array


cdef Tensor without_elements(Tensor tensor):
    if is_meta(tensor.array):
        return tensor
    return wrap(meta_array(tensor.array.dtype, tensor.array.ndim, tensor.array.shape))


cdef bint any_is_meta(int n, const value_t *values) noexcept:
    cdef int i, j
    for i in range(n):
        if values[i].kind == ARRAY and is_meta(values[i].of.array):
            return True
        if values[i].kind == ARRAYS:
            for j in range(values[i].count):
                if values[i].of.arrays[j] != NULL and is_meta(values[i].of.arrays[j]):
                    return True
    return False


cdef int _forget(array_t **array) except -1:
    cdef array_t *made
    if array[0] == NULL or is_meta(array[0]):
        return 0
    made = meta_array(array[0].dtype, array[0].ndim, array[0].shape)
    if made == NULL:
        check(MEMORY_ERROR)
    release(array[0])
    array[0] = made
    return 0


cdef int forget_elements(int n, value_t *results) except -1:
    cdef int i, j
    for i in range(n):
        if results[i].kind == ARRAY:
            _forget(&results[i].of.array)
        elif results[i].kind == ARRAYS:
            for j in range(results[i].count):
                _forget(&results[i].of.arrays[j])
    return 0


cdef int check_elements(const array_t *array, str operation) except -1:
    if is_meta(array):
        raise NotImplementedError(f"{operation}: a tensor of device 'meta' has no elements. Make memory for it with "
                                  "to_empty(device='cpu') of its module, or empty_like(x, device='cpu').")
    return 0
