"""Boxed arguments and results: what operators, kernels and formulas exchange without the GIL."""

from libc.stdint cimport int64_t
from libc.stdio cimport snprintf
from libc.string cimport memcpy, memset
from cygrad._core.arrays.array cimport array_t, release, retain
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, OK, message
from cygrad._core.memory.storage cimport allocate, deallocate

cdef dict _kernels = {}


cdef int register_kernel(str name, kernel_t kernel) except -1:
    if name in _kernels:
        raise RuntimeError(f"register_kernel: '{name}' is registered twice")
    _kernels[name] = <size_t><void *>kernel
    return 0


cdef kernel_t find_kernel(str name) noexcept:
    return <kernel_t><void *><size_t>_kernels.get(name, 0)


cdef int _no_memory(int64_t nbytes) noexcept nogil:
    snprintf(message(), MESSAGE, b"out of memory for a list of %lld bytes", <long long>nbytes)
    return MEMORY_ERROR


cdef int set_integers(value_t *value, int count, const int64_t *integers) noexcept nogil:
    value.kind = INTEGERS
    value.count = count
    value.of.integers = NULL
    if count:
        value.of.integers = <int64_t *>allocate(count * sizeof(int64_t))
        if value.of.integers == NULL:
            value.kind = NOTHING
            return _no_memory(count * sizeof(int64_t))
        if integers == NULL:
            memset(value.of.integers, 0, count * sizeof(int64_t))
        else:
            memcpy(value.of.integers, integers, count * sizeof(int64_t))
    return OK


cdef int set_arrays(value_t *value, int count) noexcept nogil:
    value.kind = ARRAYS
    value.count = count
    value.of.arrays = NULL
    if count:
        value.of.arrays = <array_t **>allocate(count * sizeof(array_t *))
        if value.of.arrays == NULL:
            value.kind = NOTHING
            return _no_memory(count * sizeof(array_t *))
        memset(value.of.arrays, 0, count * sizeof(array_t *))
    return OK


cdef void clear(value_t *value) noexcept nogil:
    cdef int i
    if value.kind == ARRAY:
        release(value.of.array)
    elif value.kind == ARRAYS:
        for i in range(value.count):
            release(value.of.arrays[i])
        if value.count:
            deallocate(value.of.arrays, value.count * sizeof(array_t *))
    elif value.kind == INTEGERS and value.count:
        deallocate(value.of.integers, value.count * sizeof(int64_t))
    value.kind = NOTHING


cdef int copy_value(value_t *to, const value_t *source) noexcept nogil:
    cdef int i, status
    if source.kind == INTEGERS:
        return set_integers(to, source.count, source.of.integers)
    if source.kind == ARRAYS:
        status = set_arrays(to, source.count)
        if status == OK:
            for i in range(source.count):
                if source.of.arrays[i] != NULL:
                    to.of.arrays[i] = retain(source.of.arrays[i])
        return status
    to[0] = source[0]
    if source.kind == ARRAY:
        retain(source.of.array)
    return OK
