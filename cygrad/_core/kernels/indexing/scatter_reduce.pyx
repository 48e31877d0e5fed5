"""Products and extrema of the elements that an index sends to one place: scatter_prod, scatter_amax, scatter_amin."""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t
from libc.stdio cimport snprintf
from cygrad._core.arrays.array cimport MAX_DIMS, array_t, array_view, release, shape_text
from cygrad._core.arrays.dtype cimport (
    BOOL, COMPLEX64, COMPLEX128, FLOAT32, FLOAT64, INT8, INT16, INT32, INT64, UINT8, dtype_name, is_complex,
)
from cygrad._core.arrays.value cimport register_kernel, value_t
from cygrad._core.elementwise.copying cimport as_contiguous
from cygrad._core.kernels.arguments cimport array_argument, array_result, fresh_copy, integer_argument, wrap_dim
from cygrad._core.kernels.indexing.positions cimport check_index_dtype, out_of_bounds
from cygrad._core.memory.atomic cimport atomic_load, atomic_store
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, OK, RUNTIME_ERROR, message
from cygrad._core.threads.parallel cimport parallel_for

cdef enum:
    GRAIN = 16384          # elements worth a thread

ctypedef enum scatter_kind_t:
    PROD
    AMAX
    AMIN

ctypedef float complex complex64_t
ctypedef double complex complex128_t

ctypedef fused number_t:
    uint8_t
    int8_t
    int16_t
    int32_t
    int64_t
    float
    double
    complex64_t
    complex128_t

ctypedef struct scatter_t:
    scatter_kind_t reduction
    int ndim, dim
    int64_t shape[MAX_DIMS]       # of index and src
    int64_t strides[MAX_DIMS]     # of the target, in elements
    int64_t group                 # elements whose places before `dim` are the same: they may meet
    int64_t size                  # of the target along dim
    const int64_t *indices
    char *target
    char *src
    int dtype
    int64_t failed                # 1 once some index was out of bounds


cdef void _reduce(scatter_t *work, number_t *target, const number_t *src, int64_t begin, int64_t end) noexcept nogil:
    """Groups begin..end-1, in order."""
    cdef int64_t[MAX_DIMS] position
    cdef int64_t i, rest, index, offset = 0
    cdef int k
    cdef number_t value
    cdef number_t *place
    cdef bint better
    rest = begin * work.group
    for k in range(work.ndim - 1, -1, -1):
        position[k] = rest % work.shape[k]
        rest //= work.shape[k]
        if k != work.dim:
            offset += position[k] * work.strides[k]
    for i in range(begin * work.group, end * work.group):
        index = work.indices[i]
        if 0 <= index < work.size:
            place = target + offset + index * work.strides[work.dim]
            value = src[i]
            if work.reduction == PROD:
                place[0] = place[0] * value
            elif number_t is not complex64_t and number_t is not complex128_t:
                better = value > place[0] if work.reduction == AMAX else value < place[0]
                if number_t is float or number_t is double:
                    better = better or value != value
                if better:
                    place[0] = value
        else:
            atomic_store(&work.failed, 1)
        for k in range(work.ndim - 1, -1, -1):
            position[k] += 1
            if k != work.dim:
                offset += work.strides[k]
            if position[k] < work.shape[k]:
                break
            if k != work.dim:
                offset -= position[k] * work.strides[k]
            position[k] = 0


cdef void _body(void *context, int64_t begin, int64_t end) noexcept nogil:
    cdef scatter_t *work = <scatter_t *>context
    cdef int d = work.dtype
    if d == BOOL or d == UINT8:
        _reduce(work, <uint8_t *>work.target, <const uint8_t *>work.src, begin, end)
    elif d == INT8:
        _reduce(work, <int8_t *>work.target, <const int8_t *>work.src, begin, end)
    elif d == INT16:
        _reduce(work, <int16_t *>work.target, <const int16_t *>work.src, begin, end)
    elif d == INT32:
        _reduce(work, <int32_t *>work.target, <const int32_t *>work.src, begin, end)
    elif d == INT64:
        _reduce(work, <int64_t *>work.target, <const int64_t *>work.src, begin, end)
    elif d == FLOAT32:
        _reduce(work, <float *>work.target, <const float *>work.src, begin, end)
    elif d == FLOAT64:
        _reduce(work, <double *>work.target, <const double *>work.src, begin, end)
    elif d == COMPLEX64:
        _reduce(work, <complex64_t *>work.target, <const complex64_t *>work.src, begin, end)
    elif d == COMPLEX128:
        _reduce(work, <complex128_t *>work.target, <const complex128_t *>work.src, begin, end)


cdef int _check(const char *name, const array_t *self, int dim, const array_t *index,
                const array_t *src) noexcept nogil:
    cdef int k
    if src.dtype != self.dtype:
        snprintf(message(), MESSAGE, b"%s: dtypes differ (got src of %s, expected %s). Convert src first.", name,
                 dtype_name(src.dtype), dtype_name(self.dtype))
        return RUNTIME_ERROR
    if is_complex(self.dtype) and name[8] == c'a':
        snprintf(message(), MESSAGE, b"%s: complex numbers have no order (got %s).", name, dtype_name(self.dtype))
        return RUNTIME_ERROR
    if index.size == 0:
        return OK
    if (index.ndim or 1) != (self.ndim or 1) or (index.ndim or 1) != (src.ndim or 1):
        snprintf(message(), MESSAGE, b"%s: index, self and src differ in their number of dimensions (got shapes %s, %s "
                 b"and %s).", name, shape_text(index), shape_text(self), shape_text(src))
        return RUNTIME_ERROR
    for k in range(index.ndim):
        if (index.shape[k] > (src.shape[k] if src.ndim else 1)
                or (k != dim and index.shape[k] > (self.shape[k] if self.ndim else 1))):
            snprintf(message(), MESSAGE, b"%s: index is larger than self or src in dimension %d (got shapes %s, %s and "
                     b"%s).", name, k, shape_text(index), shape_text(self), shape_text(src))
            return RUNTIME_ERROR
    return OK


cdef int _prepare(const char *name, array_t *self, const value_t *arguments, int *dim, array_t **indices,
                  array_t **part) noexcept nogil:
    """The index as int64 and the part of src that it covers, both contiguous; to be released in any case."""
    cdef array_t *index
    cdef array_t *src
    cdef array_t *covered
    cdef int64_t given
    cdef int status = integer_argument(name, b"dim", &arguments[1], &given)
    if status == OK:
        status = array_argument(name, b"index", &arguments[2], &index)
    if status == OK:
        status = array_argument(name, b"src", &arguments[3], &src)
    if status == OK:
        status = wrap_dim(name, given, self.ndim, dim)
    if status == OK:
        status = check_index_dtype(name, index, RUNTIME_ERROR)
    if status == OK:
        status = _check(name, self, dim[0], index, src)
    if status != OK:
        return status
    indices[0] = as_contiguous(index, INT64)
    if index.size and src.ndim and index.ndim:
        covered = array_view(src, src.dtype, src.ndim, index.shape, src.strides, 0)
    else:
        covered = array_view(src, src.dtype, src.ndim, src.shape, src.strides, 0)
    part[0] = as_contiguous(covered, -1) if covered != NULL else NULL
    release(covered)
    return OK if indices[0] != NULL and part[0] != NULL else MEMORY_ERROR


cdef int _first_failure(const char *name, const scatter_t *work, int64_t n) noexcept nogil:
    cdef int64_t i
    for i in range(n):
        if not 0 <= work.indices[i] < work.size:
            return out_of_bounds(name, work.indices[i], work.dim, work.size, RUNTIME_ERROR)
    return OK


cdef int _scattered(const char *name, scatter_kind_t reduction, const value_t *arguments,
                    value_t *results) noexcept nogil:
    cdef scatter_t work
    cdef array_t *self
    cdef array_t *indices = NULL
    cdef array_t *part = NULL
    cdef array_t *target = NULL
    cdef int k, status = array_argument(name, b"self", &arguments[0], &self)
    cdef int64_t groups = 1
    if status != OK:
        return status
    status = _prepare(name, self, arguments, &work.dim, &indices, &part)
    if status == OK:
        status = fresh_copy(self, &target)
    if status == OK and indices.size:
        work.reduction, work.dtype, work.failed = reduction, self.dtype, 0
        work.ndim = max(1, indices.ndim)
        work.group = 1
        for k in range(work.ndim):
            work.shape[k] = indices.shape[k] if indices.ndim else 1
            work.strides[k] = target.strides[k] if target.ndim else 1
            if k < work.dim:
                groups *= work.shape[k]
            else:
                work.group *= work.shape[k]
        work.size = target.shape[work.dim] if target.ndim else 1
        work.indices, work.target, work.src = <const int64_t *>indices.data, target.data, part.data
        parallel_for(_body, &work, groups, max(1, GRAIN // work.group))
        if atomic_load(&work.failed):
            status = _first_failure(name, &work, indices.size)
    release(indices)
    release(part)
    if status != OK:
        release(target)
        return status
    return array_result(target, &results[0])


cdef int scatter_prod_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """scatter_prod(self, dim, index, src)."""
    return _scattered(b"scatter_prod", PROD, arguments, results)


cdef int scatter_amax_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """scatter_amax(self, dim, index, src); nan wins."""
    return _scattered(b"scatter_amax", AMAX, arguments, results)


cdef int scatter_amin_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """scatter_amin(self, dim, index, src); nan wins."""
    return _scattered(b"scatter_amin", AMIN, arguments, results)


register_kernel("scatter_prod", scatter_prod_kernel)
register_kernel("scatter_amax", scatter_amax_kernel)
register_kernel("scatter_amin", scatter_amin_kernel)
