"""
Looking for nan while gradients are computed: what has been seen since the watch began, and scans of arrays.

An element-wise program that runs under a watch looks at each tile as soon as it has written it, when the tile is in
the first-level cache: that costs little, and no second pass over memory. If it is plain arithmetic on gradients, which
are known to hold no nan, a look at the processor's status flag will do. (It will not for saved values: a nan among
them goes on into the result quietly.) What other kernels have computed is scanned afterwards.
"""

from libc.stdint cimport int64_t
from libc.stdlib cimport llabs
from cygrad._core.arrays.array cimport MAX_DIMS, array_t
from cygrad._core.arrays.dtype cimport FLOAT16, FLOAT32, is_complex, is_differentiable, is_short, itemsize, real_of
from cygrad._core.memory.atomic cimport atomic_decrement, atomic_increment, atomic_load, atomic_store
from cygrad._core.threads.parallel cimport parallel_for

cdef extern from "elementwise/nan_scan.h" nogil:
    bint nan_in_floats(const float *x, int64_t n)
    bint nan_in_floats_apart(const char *x, int64_t n, int64_t step)
    bint nan_in_doubles(const double *x, int64_t n)
    bint nan_in_doubles_apart(const char *x, int64_t n, int64_t step)
    bint nan_in_shorts(const char *x, int64_t n, int64_t step, int infinity)
    int has_status_flags, invalid "CYGRAD_INVALID"
    int feclearexcept(int)
    int fetestexcept(int)

cdef extern from * nogil:
    """
    #include "memory/thread_variable.h"
    THREAD_VARIABLE struct { int on, nan, plain, kernels; } own;
    """
    watch_t own

cdef enum:
    PIECE = 65536         # elements per chunk of a scan


cdef watch_t *watch() noexcept nogil:
    return <watch_t *>&own


cdef int how_to_watch() noexcept nogil:
    if not watch().on:
        return 0
    return LISTEN if watch().plain and has_status_flags else LOOK


cdef void clear_invalid() noexcept nogil:
    feclearexcept(invalid)


cdef bint was_invalid() noexcept nogil:
    return fetestexcept(invalid) != 0


cdef bint may_hold_nan(int watched, const char *data, int dtype, int64_t n) noexcept nogil:
    return was_invalid() if watched == LISTEN else row_holds_nan(data, dtype, n, itemsize(dtype))


cdef void begin_watch() noexcept nogil:
    watch().on += 1
    atomic_increment(&nan_watchers)


cdef void end_watch() noexcept nogil:
    watch().on -= 1
    atomic_decrement(&nan_watchers)


cdef bint row_holds_nan(const char *data, int dtype, int64_t n, int64_t step) noexcept nogil:
    cdef int64_t size = itemsize(dtype)
    if not is_differentiable(dtype):
        return False
    if step == 0:
        n = 1 if n else 0
    if is_complex(dtype):
        if n > 1 and step != size:
            return (row_holds_nan(data, real_of(dtype), n, step) or
                    row_holds_nan(data + size // 2, real_of(dtype), n, step))
        n, step, size, dtype = 2 * n, size // 2, size // 2, real_of(dtype)
    if is_short(dtype):
        return nan_in_shorts(data, n, step, 0x7c00 if dtype == FLOAT16 else 0x7f80)
    if dtype == FLOAT32:
        if step == size or n <= 1:
            return nan_in_floats(<const float *>data, n)
        return nan_in_floats_apart(data, n, step)
    if step == size or n <= 1:
        return nan_in_doubles(<const double *>data, n)
    return nan_in_doubles_apart(data, n, step)


ctypedef struct scan_t:
    const array_t *array
    int64_t found


cdef void _scan(void *context, int64_t begin, int64_t end) noexcept nogil:
    cdef scan_t *scan = <scan_t *>context
    cdef int64_t size = itemsize(scan.array.dtype)
    if atomic_load(&scan.found) == 0 and row_holds_nan(scan.array.data + begin * size, scan.array.dtype, end - begin,
                                                       size):
        atomic_store(&scan.found, 1)


cdef bint holds_nan(const array_t *array) noexcept nogil:
    cdef scan_t scan = scan_t(array, 0)
    cdef int64_t[MAX_DIMS] shape, strides, position
    cdef int64_t size = itemsize(array.dtype)
    cdef const char *data = array.data
    cdef int d, ndim = 0, inner = 0
    if array.size == 0 or not is_differentiable(array.dtype):
        return False
    if array.contiguous:
        parallel_for(_scan, &scan, array.size, PIECE)
        return scan.found != 0
    # Row by row along the dimension with the smallest stride; dimensions with stride 0 are scanned once.
    for d in range(array.ndim):
        if array.shape[d] > 1 and array.strides[d] != 0:
            shape[ndim] = array.shape[d]
            strides[ndim] = array.strides[d] * size
            if llabs(strides[ndim]) < llabs(strides[inner]):
                inner = ndim
            position[ndim] = 0
            ndim += 1
    if ndim == 0:
        return row_holds_nan(data, array.dtype, 1, size)
    while True:
        if row_holds_nan(data, array.dtype, shape[inner], strides[inner]):
            return True
        d = 0
        while d < ndim:
            if d != inner:
                position[d] += 1
                data += strides[d]
                if position[d] < shape[d]:
                    break
                data -= position[d] * strides[d]
                position[d] = 0
            d += 1
        if d == ndim:
            return False
