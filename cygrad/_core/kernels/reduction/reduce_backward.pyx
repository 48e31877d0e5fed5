"""Kernels for the derivatives of reductions, and the comparison of whole arrays."""

from libc.stdint cimport int64_t
from libc.stdio cimport snprintf
from libc.string cimport memcmp, memcpy
from cygrad._core.arrays.array cimport MAX_DIMS, array_t, release, same_shape
from cygrad._core.arrays.dtype cimport COMPLEX64, INT64, is_differentiable, itemsize, promote
from cygrad._core.arrays.value cimport BOOLEAN, register_kernel, set_array, value_t
from cygrad._core.elementwise.copying cimport as_contiguous
from cygrad._core.elementwise.rows cimport rows_along, rows_t
from cygrad._core.kernels.arguments cimport (
    array_argument, check_same_shape, integer_argument, integers_argument, new_zeros, view_result,
    wrap_dim,
)
from cygrad._core.kernels.reduction.reduce_kernels cimport read_reduction, reduction_t
from cygrad._core.memory.atomic cimport atomic_load, atomic_store
from cygrad._core.memory.errors cimport INDEX_ERROR, MEMORY_ERROR, MESSAGE, OK, RUNTIME_ERROR, message
from cygrad._core.threads.parallel cimport parallel_for

cdef enum:
    BLOCK = 4096           # numbers compared before anyone looks whether a difference has been found
    PIECE = 65536          # numbers worth a thread

ctypedef fused real:
    float
    double

cdef int unreduce_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """unreduce(grad, shape, dims, keepdim): the gradient of a reduction, repeated without a copy."""
    cdef reduction_t reduction
    cdef array_t like
    cdef value_t self
    cdef array_t *grad
    cdef const int64_t *shape
    cdef int64_t[MAX_DIMS] strides
    cdef int64_t[MAX_DIMS] sizes
    cdef int i, at = 0, count, status = array_argument(b"unreduce", b"grad", &arguments[0], &grad)
    if status == OK:
        status = integers_argument(b"unreduce", b"shape", &arguments[1], &count, &shape)
    if status == OK and count > MAX_DIMS:
        snprintf(message(), MESSAGE, b"unreduce: too many dimensions (got %d, expected at most %d).",
                 count, <int>MAX_DIMS)
        status = RUNTIME_ERROR
    if status != OK:
        return status
    for i in range(count):
        sizes[i] = shape[i]
    like.ndim, like.shape, like.dtype = count, sizes, grad.dtype
    set_array(&self, &like)
    status = read_reduction(b"unreduce", &self, &arguments[2], &arguments[3], &reduction)
    if status == OK:
        status = check_same_shape(b"unreduce", b"grad", grad, reduction.ndim, reduction.shape)
    if status != OK:
        return status
    for i in range(count):
        strides[i] = 0 if reduction.reduced[i] else grad.strides[at]
        if not reduction.reduced[i] or reduction.ndim == count:
            at += 1
    return view_result(grad, count, sizes, strides, 0, results)


cdef int select_backward_index_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """select_backward_index(grad, shape, dim, indices, keepdim): zeros, with grad at the indices along
    dim."""
    cdef array_t *grad
    cdef array_t *indices
    cdef array_t *values = NULL
    cdef array_t *places = NULL
    cdef array_t *out = NULL
    cdef rows_t rows
    cdef const int64_t *shape
    cdef int64_t given, i, item
    cdef int count, dim, status = array_argument(b"select_backward_index", b"grad", &arguments[0], &grad)
    if status == OK:
        status = integers_argument(b"select_backward_index", b"shape", &arguments[1], &count, &shape)
    if status == OK:
        status = integer_argument(b"select_backward_index", b"dim", &arguments[2], &given)
    if status == OK:
        status = array_argument(b"select_backward_index", b"indices", &arguments[3], &indices)
    if status == OK:
        status = wrap_dim(b"select_backward_index", given, count, &dim)
    if status == OK:
        status = check_same_shape(b"select_backward_index", b"grad", grad, indices.ndim, indices.shape)
    if status == OK:
        status = new_zeros(b"select_backward_index", grad.dtype, count, shape, &out)
    if status != OK:
        return status
    rows_along(out, dim, &rows)
    values = as_contiguous(grad, -1)
    places = as_contiguous(indices, INT64)
    if values == NULL or places == NULL:
        status = MEMORY_ERROR
    elif rows.outer * rows.inner != values.size:
        snprintf(message(), MESSAGE, b"select_backward_index: grad has the wrong size (got %lld, expected "
                 b"%lld).",
                 <long long>values.size, <long long>(rows.outer * rows.inner))
        status = RUNTIME_ERROR
    else:
        item = itemsize(grad.dtype)
        for i in range(values.size):
            given = (<int64_t *>places.data)[i]
            if given < 0 or given >= rows.n:
                snprintf(message(), MESSAGE, b"select_backward_index: index out of range (got %lld, "
                         b"expected 0 to %lld).",
                         <long long>given, <long long>(rows.n - 1))
                status = INDEX_ERROR
                break
            memcpy(out.data + item * ((i // rows.inner * rows.n + given) * rows.inner + i % rows.inner),
                   values.data + item * i, item)
    release(values)
    release(places)
    if status == OK:
        set_array(results, out)
    else:
        release(out)
    return status


ctypedef struct comparison_t:
    const char *a
    const char *b
    int width                  # bytes of one number
    bint real                  # -0 equals 0 and nan never compares equal; else the bytes decide
    int64_t different          # was a difference found?


cdef bint _differ(const real *a, const real *b, int64_t begin, int64_t end) noexcept nogil:
    """Without an early end, so that compilers turn it into vector code."""
    cdef int64_t i
    cdef bint different = False
    for i in range(begin, end):
        different |= a[i] != b[i]
    return different


cdef void _compare_piece(void *context, int64_t begin, int64_t end) noexcept nogil:
    """Numbers begin..end-1, block by block up to the first difference that any thread finds."""
    cdef comparison_t *job = <comparison_t *>context
    cdef int64_t until
    cdef bint different
    while begin < end and not atomic_load(&job.different):
        until = min(begin + BLOCK, end)
        if not job.real:
            different = memcmp(job.a + begin * job.width, job.b + begin * job.width, (until - begin) * job.width) != 0
        elif job.width == sizeof(float):
            different = _differ(<const float *>job.a, <const float *>job.b, begin, until)
        else:
            different = _differ(<const double *>job.a, <const double *>job.b, begin, until)
        if different:
            atomic_store(&job.different, 1)
        begin = until


cdef int equal_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """equal(a, b): same shape and elements; nan never compares equal."""
    cdef array_t *a
    cdef array_t *b
    cdef comparison_t job
    cdef int parts, dtype, status = array_argument(b"equal", b"self", &arguments[0], &a)
    if status == OK:
        status = array_argument(b"equal", b"other", &arguments[1], &b)
    if status != OK:
        return status
    results[0].kind = BOOLEAN
    results[0].of.integer = 0
    if not same_shape(a, b):
        return OK
    dtype = promote(a.dtype, b.dtype)
    a = as_contiguous(a, dtype)
    b = as_contiguous(b, dtype)
    if a == NULL or b == NULL:
        status = MEMORY_ERROR
    else:
        parts = 2 if dtype >= COMPLEX64 else 1
        job.a, job.b, job.width, job.real = a.data, b.data, itemsize(dtype) // parts, is_differentiable(dtype)
        job.different = 0
        parallel_for(_compare_piece, &job, parts * a.size, PIECE)
        results[0].of.integer = not job.different
    release(a)
    release(b)
    if status != OK:
        results[0].kind = 0
    return status


register_kernel("unreduce", unreduce_kernel)
register_kernel("select_backward_index", select_backward_index_kernel)
register_kernel("equal", equal_kernel)
