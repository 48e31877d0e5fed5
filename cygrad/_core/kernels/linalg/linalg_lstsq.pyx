"""Least squares and pseudo-inverses."""

from libc.float cimport DBL_EPSILON, FLT_EPSILON
from libc.math cimport fabs
from libc.stdint cimport int32_t, int64_t
from libc.stdio cimport snprintf
from libc.string cimport memcpy, memset, strcmp
from cygrad._core.arrays.array cimport MAX_DIMS, array_t, array_view, release, shape_text
from cygrad._core.arrays.dtype cimport FLOAT64, INT32, INT64, itemsize, real_of
from cygrad._core.arrays.value cimport as_real, is_true, register_kernel, set_array, value_t
from cygrad._core.elementwise.copying cimport as_contiguous
from cygrad._core.kernels.arguments cimport array_argument, array_result, new_zeros, text_argument
from cygrad._core.kernels.linalg.blas cimport blas_scalar_t, gemm
from cygrad._core.kernels.linalg.lapack cimport gesdd, heevd, lstsq
from cygrad._core.kernels.linalg.lapack_batches cimport (
    all_finite, batch_count, check_pair, in_columns, matrix_argument, matrix_batch_t, new_batch, release_all, run_batch,
)
from cygrad._core.kernels.linalg.matrix_elements cimport conjugate, fill_nan, number_at, scale
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, OK, RUNTIME_ERROR, message

cdef enum:
    NOT_FINITE = -1       # info of a matrix with nan or inf, which LAPACK must not be given


cdef inline blas_scalar_t _real_scalar(double real) noexcept nogil:
    """A number without imaginary part."""
    cdef blas_scalar_t number
    number.real, number.imag = real, 0
    return number


# ---- least squares

cdef int _lstsq(matrix_batch_t *task, int64_t i, char *scratch) noexcept nogil:
    """a: the matrix, destroyed; b: max(m, n) rows of right-hand sides; c: singular values; d: ranks (int64)."""
    cdef int64_t size = itemsize(task.dtype), least = min(task.m, task.n), rows = max(task.m, task.n)
    cdef int64_t real_size = itemsize(real_of(task.dtype))
    cdef char *a = task.a + i * task.m * task.n * size
    cdef char *b = task.b + i * rows * task.k * size
    cdef char *s = task.c + i * least * real_size
    cdef int32_t rank = 0
    cdef int info = 0
    if least == 0 or task.k == 0:
        memset(b, 0, rows * task.k * size)
        (<int64_t *>task.d)[i] = 0
        if least == 0:
            return 0
    if not (all_finite(task.dtype, a, task.m * <int64_t>task.n) and all_finite(task.dtype, b, rows * task.k)):
        fill_nan(task.dtype, b, rows * task.k)
        fill_nan(real_of(task.dtype), s, least)
        (<int64_t *>task.d)[i] = 0
        return NOT_FINITE
    lstsq(task.dtype, task.job, task.m, task.n, task.k, a, b, s, task.limits[0], &rank, scratch, task.scratch, &info)
    (<int64_t *>task.d)[i] = rank
    return info


cdef int linalg_lstsq_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """linalg_lstsq(self, B, rcond, driver) -> solution, rank, singular_values, info."""
    cdef array_t *input
    cdef array_t *other
    cdef array_t *columns
    cdef array_t *made[5]
    cdef int64_t shape[MAX_DIMS]
    cdef int64_t strides[MAX_DIMS]
    cdef matrix_batch_t task
    cdef const char *driver
    cdef int64_t m, n, k, i, j, rows, size
    cdef double limit
    cdef int info = 0, status = matrix_argument(b"linalg.lstsq", b"input", &arguments[0], &input)
    status = status or matrix_argument(b"linalg.lstsq", b"other", &arguments[1], &other)
    status = status or check_pair(b"linalg.lstsq", input, other)
    status = status or text_argument(b"linalg.lstsq", b"driver", &arguments[3], &driver)
    if status != OK:
        return status
    memset(&task, 0, sizeof(task))
    memset(made, 0, sizeof(made))
    m, n, k = input.shape[input.ndim - 2], input.shape[input.ndim - 1], other.shape[other.ndim - 1]
    if other.shape[other.ndim - 2] != m:
        snprintf(message(), MESSAGE, b"linalg.lstsq: input.size(-2) should match other.size(-2) (got shapes %s and "
                 b"%s).", shape_text(input), shape_text(other))
        return RUNTIME_ERROR
    task.job = b"s" if strcmp(driver, b"gels") == 0 else b"y" if strcmp(driver, b"gelsy") == 0 else b"d"
    rows, size = max(m, n), itemsize(input.dtype)
    status = in_columns(input, &made[0]) or new_batch(input, 2, input.dtype, k, rows, &made[1])
    status = status or new_batch(input, 2, real_of(input.dtype), min(m, n), -1, &made[2])
    status = status or new_zeros(b"linalg.lstsq", INT64, input.ndim - 2, input.shape, &made[3])
    status = status or new_zeros(b"linalg.lstsq", INT32, input.ndim - 2, input.shape, &made[4])
    if status == OK:
        status = in_columns(other, &columns)
    if status != OK:
        release_all(5, made)
        return status
    for i in range(batch_count(input)):
        for j in range(k):
            memset(made[1].data + (i * k + j) * rows * size, 0, rows * size)
            memcpy(made[1].data + (i * k + j) * rows * size, columns.data + (i * k + j) * m * size, m * size)
    release(columns)
    limit = as_real(&arguments[2])
    task.each, task.dtype, task.m, task.n, task.k = _lstsq, input.dtype, <int>m, <int>n, <int>k
    task.a, task.b, task.c, task.d = made[0].data, made[1].data, made[2].data, made[3].data
    task.info, task.limits = <int32_t *>made[4].data, &limit
    if min(m, n):
        task.scratch = lstsq(task.dtype, task.job, task.m, task.n, task.k, NULL, NULL, NULL, limit, NULL, NULL, 0,
                             &info)
    status = run_batch(&task, batch_count(input), 4.0 * m * n * (min(m, n) + k))
    release(made[0])
    made[0] = NULL
    if status == OK:
        for i in range(input.ndim - 2):
            shape[i], strides[i] = made[1].shape[i], made[1].strides[i]
        i = input.ndim - 2
        shape[i], strides[i], shape[i + 1], strides[i + 1] = n, 1, k, rows
        made[0] = array_view(made[1], input.dtype, input.ndim, shape, strides, 0)
        status = OK if made[0] != NULL else MEMORY_ERROR
    release(made[1])
    made[1] = NULL
    if status != OK:
        release_all(5, made)
        return status
    set_array(&results[0], made[0])
    set_array(&results[1], made[3])
    set_array(&results[2], made[2])
    set_array(&results[3], made[4])
    return OK


# ---- pseudo-inverses

cdef double _cutoff(matrix_batch_t *task, int64_t i, double largest) noexcept nogil:
    """Singular values up to this one count as zero."""
    cdef double epsilon = DBL_EPSILON if real_of(task.dtype) == FLOAT64 else FLT_EPSILON
    cdef double relative = max(task.m, task.n) * epsilon
    if task.limits == NULL:
        return relative * largest
    return max(task.limits[2 * i], task.limits[2 * i + 1] * largest)


cdef int _pinv(matrix_batch_t *task, int64_t i, char *scratch) noexcept nogil:
    """a: the matrix in column order, destroyed; b: its pseudo-inverse, row after row."""
    cdef int dtype = task.dtype, real = real_of(task.dtype)
    cdef int64_t size = itemsize(dtype), least = min(task.m, task.n), m = task.m, n = task.n, j
    cdef char *a = task.a + i * m * n * size
    cdef char *b = task.b + i * m * n * size
    cdef char *s = scratch
    cdef char *u = s + (least * 8 + 63) // 64 * 64
    cdef char *vh = u + (m * least * size + 63) // 64 * 64
    cdef char *rest = vh + (n * least * size + 63) // 64 * 64
    cdef double value, limit
    cdef int info = 0
    if not all_finite(dtype, a, m * n):
        fill_nan(dtype, b, m * n)
        return NOT_FINITE
    if task.flag:
        heevd(dtype, b"V", b"L", task.n, a, s, rest, task.scratch - (rest - scratch), &info)
        limit = _cutoff(task, i, max(fabs(number_at(real, s, 0).real), fabs(number_at(real, s, n - 1).real)))
        memcpy(u, a, n * n * size)
        conjugate(dtype, u, n * n)
    else:
        gesdd(dtype, b"S", task.m, task.n, a, s, u, vh, rest, task.scratch - (rest - scratch), &info)
        limit = _cutoff(task, i, number_at(real, s, 0).real)
    for j in range(least):
        value = number_at(real, s, j).real
        scale(dtype, u + j * m * size, m, _real_scalar(1 / value if fabs(value) > limit else 0))
    if task.flag:
        gemm(dtype, True, False, n, n, n, _real_scalar(1), a, n, u, n, _real_scalar(0), b, n)
    else:
        # The conjugate of V S^-1 U^H.
        gemm(dtype, False, False, n, m, least, _real_scalar(1), vh, least, u, m, _real_scalar(0), b, m)
        conjugate(dtype, b, m * n)
    return info


cdef int linalg_pinv_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """linalg_pinv(self, limits, hermitian) -> result, info; limits: absolute and relative tolerance of each matrix."""
    cdef array_t *input
    cdef array_t *limits = NULL
    cdef array_t *made[4]
    cdef matrix_batch_t task
    cdef int64_t m, n, least
    cdef int info = 0, status = matrix_argument(b"linalg.pinv", b"A", &arguments[0], &input)
    if status == OK and arguments[1].kind:
        status = array_argument(b"linalg.pinv", b"limits", &arguments[1], &limits)
    if status != OK:
        return status
    memset(&task, 0, sizeof(task))
    memset(made, 0, sizeof(made))
    m, n = input.shape[input.ndim - 2], input.shape[input.ndim - 1]
    task.flag = is_true(&arguments[2])
    if task.flag and m != n:
        snprintf(message(), MESSAGE, b"linalg.pinv: A must be batches of square matrices if hermitian (got shape %s).",
                 shape_text(input))
        return RUNTIME_ERROR
    if limits != NULL:
        if limits.dtype != FLOAT64 or limits.size != 2 * batch_count(input):
            snprintf(message(), MESSAGE, b"linalg.pinv: two float64 limits are needed for each matrix (got shape %s "
                     b"for matrices of shape %s).", shape_text(limits), shape_text(input))
            return RUNTIME_ERROR
        made[3] = as_contiguous(limits, -1)
        status = OK if made[3] != NULL else MEMORY_ERROR
    status = status or in_columns(input, &made[0]) or new_batch(input, 2, input.dtype, n, m, &made[1])
    status = status or new_zeros(b"linalg.pinv", INT32, input.ndim - 2, input.shape, &made[2])
    if status == OK and input.size:
        least = min(m, n)
        task.each, task.dtype, task.m, task.n = _pinv, input.dtype, <int>m, <int>n
        task.a, task.b, task.info = made[0].data, made[1].data, <int32_t *>made[2].data
        task.limits = <double *>made[3].data if limits != NULL else NULL
        if task.flag:
            task.scratch = heevd(task.dtype, b"V", b"L", task.n, NULL, NULL, NULL, 0, &info)
        else:
            task.scratch = gesdd(task.dtype, b"S", task.m, task.n, NULL, NULL, NULL, NULL, NULL, 0, &info)
        task.scratch += (least * 8 + (m + n) * least * itemsize(task.dtype)) + 256
        status = run_batch(&task, batch_count(input), 25.0 * m * n * least)
    release(made[0])
    release(made[3])
    if status != OK:
        release(made[1])
        release(made[2])
        return status
    set_array(&results[1], made[2])
    return array_result(made[1], &results[0])


register_kernel("linalg_lstsq", linalg_lstsq_kernel)
register_kernel("linalg_pinv", linalg_pinv_kernel)
