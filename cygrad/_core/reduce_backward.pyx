"""Kernels for the derivatives of reductions, and the comparison of whole arrays."""

from libc.stdint cimport int64_t
from libc.stdio cimport snprintf
from libc.string cimport memcmp, memcpy
from cygrad._core.arguments cimport (
    array_argument, check_same_shape, integer_argument, integers_argument, new_zeros, view_result,
    wrap_dim,
)
from cygrad._core.array cimport MAX_DIMS, array_empty_like, array_t, array_view, release, same_shape
from cygrad._core.copy cimport as_contiguous, copy_into
from cygrad._core.dtype cimport (
    COMPLEX64, FLOAT32, FLOAT64, INT64, dtype_name, is_differentiable, itemsize, promote,
)
from cygrad._core.errors cimport INDEX_ERROR, MEMORY_ERROR, MESSAGE, OK, RUNTIME_ERROR, message
from cygrad._core.parallel cimport parallel_for
from cygrad._core.reduce cimport read_reduction, reduction_t
from cygrad._core.softmax cimport rows_along, rows_t
from cygrad._core.value cimport BOOLEAN, register_kernel, set_array, value_t

cdef enum:
    PIECE = 32768          # elements worth a thread

ctypedef float complex complex64_t
ctypedef double complex complex128_t

ctypedef fused inexact:
    float
    double
    complex64_t
    complex128_t

ctypedef struct work_t:
    int dtype
    int64_t n              # elements of one product
    char *self
    char *grad
    char *out


cdef inline inexact _conjugate(inexact z) noexcept nogil:
    if inexact is complex64_t or inexact is complex128_t:
        return z.conjugate()
    else:
        return z


cdef void _prod_backward(work_t *work, inexact *x, inexact *grad, inexact *out, int64_t begin,
                         int64_t end) noexcept nogil:
    """Products of all other factors, from both ends: nothing is divided, so zeros need no care."""
    cdef int64_t row, i, at, n = work.n
    cdef inexact before, behind
    for row in range(begin, end):
        at = row * n
        before = 1
        for i in range(n):
            out[at + i] = before
            before = before * x[at + i]
        behind = 1
        i = n - 1
        while i >= 0:
            out[at + i] = grad[row] * _conjugate(out[at + i] * behind)
            behind = behind * x[at + i]
            i -= 1


cdef void _prod_backward_body(void *context, int64_t begin, int64_t end) noexcept nogil:
    cdef work_t *work = <work_t *>context
    if work.dtype == FLOAT32:
        _prod_backward(work, <float *>work.self, <float *>work.grad, <float *>work.out, begin, end)
    elif work.dtype == FLOAT64:
        _prod_backward(work, <double *>work.self, <double *>work.grad, <double *>work.out, begin, end)
    elif work.dtype == COMPLEX64:
        _prod_backward(work, <complex64_t *>work.self, <complex64_t *>work.grad, <complex64_t *>work.out,
                       begin, end)
    else:
        _prod_backward(work, <complex128_t *>work.self, <complex128_t *>work.grad, <complex128_t *>work.out,
                       begin, end)


cdef array_t *_reduced_last(array_t *array, const bint *reduced) noexcept nogil:
    """A view with the reduced dimensions behind the others."""
    cdef int64_t[MAX_DIMS] shape
    cdef int64_t[MAX_DIMS] strides
    cdef int i, n = 0, last
    for last in range(2):
        for i in range(array.ndim):
            if (reduced[i] != 0) == (last != 0):
                shape[n], strides[n] = array.shape[i], array.strides[i]
                n += 1
    return array_view(array, array.dtype, array.ndim, shape, strides, 0)


cdef int _run_prod_backward(reduction_t *reduction, array_t *grad, array_t *out) noexcept nogil:
    """Into `out`, of the shape of self, by way of arrays in which factors of one product are neighbours."""
    cdef work_t work
    cdef array_t *view = _reduced_last(reduction.self, reduction.reduced)
    cdef array_t *target = _reduced_last(out, reduction.reduced)
    cdef array_t *source = as_contiguous(view, out.dtype) if view != NULL else NULL
    cdef array_t *gradient = as_contiguous(grad, out.dtype)
    cdef array_t *rows = array_empty_like(source, -1) if source != NULL else NULL
    cdef int status = MEMORY_ERROR
    if target != NULL and gradient != NULL and rows != NULL:
        work.dtype, work.n = out.dtype, reduction.count
        work.self, work.grad, work.out = source.data, gradient.data, rows.data
        if out.size:
            parallel_for(_prod_backward_body, &work, out.size // work.n, max(1, PIECE // work.n))
        status = copy_into(target, rows)
    release(view)
    release(target)
    release(source)
    release(gradient)
    release(rows)
    return status


cdef int prod_backward_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """prod_backward(grad, self, result, dims, keepdim)."""
    cdef reduction_t reduction
    cdef array_t *grad
    cdef array_t *out
    cdef int status = array_argument(b"prod_backward", b"grad", &arguments[0], &grad)
    if status == OK:
        status = read_reduction(b"prod_backward", &arguments[1], &arguments[3], &arguments[4], &reduction)
    if status == OK:
        status = check_same_shape(b"prod_backward", b"grad", grad, reduction.ndim, reduction.shape)
    if status != OK:
        return status
    if not is_differentiable(grad.dtype):
        snprintf(message(), MESSAGE, b"prod_backward: needs a floating or complex dtype (got %s).",
                 dtype_name(grad.dtype))
        return RUNTIME_ERROR
    out = array_empty_like(reduction.self, promote(grad.dtype, reduction.self.dtype))
    if out == NULL:
        return MEMORY_ERROR
    status = _run_prod_backward(&reduction, grad, out)
    if status == OK:
        set_array(results, out)
    else:
        release(out)
    return status


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
    like.ndim, like.shape = count, sizes
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


cdef bint _same_reals(const char *a, const char *b, int64_t n, int dtype) noexcept nogil:
    cdef int64_t i
    if dtype == FLOAT32:
        for i in range(n):
            if (<float *>a)[i] != (<float *>b)[i]:
                return False
    else:
        for i in range(n):
            if (<double *>a)[i] != (<double *>b)[i]:
                return False
    return True


cdef int equal_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """equal(a, b): same shape and elements; nan equals nothing."""
    cdef array_t *a
    cdef array_t *b
    cdef int dtype, status = array_argument(b"equal", b"self", &arguments[0], &a)
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
    elif not is_differentiable(dtype):
        results[0].of.integer = a.size == 0 or memcmp(a.data, b.data, a.size * itemsize(dtype)) == 0
    elif dtype >= COMPLEX64:
        results[0].of.integer = _same_reals(a.data, b.data, 2 * a.size,
                                            FLOAT32 if dtype == COMPLEX64 else FLOAT64)
    else:
        results[0].of.integer = _same_reals(a.data, b.data, a.size, dtype)
    release(a)
    release(b)
    if status != OK:
        results[0].kind = 0
    return status


register_kernel("prod_backward", prod_backward_kernel)
register_kernel("unreduce", unreduce_kernel)
register_kernel("select_backward_index", select_backward_index_kernel)
register_kernel("equal", equal_kernel)
