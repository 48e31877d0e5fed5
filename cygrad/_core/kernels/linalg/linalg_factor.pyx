"""Factorizations without iteration: Cholesky's and QR."""

from libc.stdint cimport int32_t, int64_t
from libc.stdio cimport snprintf
from libc.string cimport memcpy, memset, strcmp
from cygrad._core.arrays.array cimport array_empty, array_t, release
from cygrad._core.arrays.dtype cimport INT32, itemsize
from cygrad._core.arrays.value cimport is_true, register_kernel, set_array, value_t
from cygrad._core.kernels.arguments cimport new_zeros, text_argument
from cygrad._core.kernels.linalg.lapack cimport geqrf, orgqr, potrf
from cygrad._core.kernels.linalg.lapack_batches cimport (
    all_finite, batch_count, in_columns, matrix_argument, matrix_batch_t, new_batch, release_all, run_batch,
    square_argument, turn,
)
from cygrad._core.kernels.linalg.matrix_elements cimport set_identity
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, OK, RUNTIME_ERROR, message


cdef void _keep_triangle(int dtype, char *data, int64_t rows, int64_t columns, bint upper) noexcept nogil:
    """Zeros beyond the triangle of a matrix in column order."""
    cdef int64_t j, size = itemsize(dtype), first
    for j in range(columns):
        if upper:
            first = min(j + 1, rows)
            memset(data + (j * rows + first) * size, 0, (rows - first) * size)
        else:
            memset(data + j * rows * size, 0, min(j, rows) * size)


cdef int _cholesky(matrix_batch_t *task, int64_t i, char *scratch) noexcept nogil:
    """The factor in the place of the matrix."""
    cdef char *data = task.a + i * task.n * task.n * itemsize(task.dtype)
    cdef int info = potrf(task.dtype, task.uplo, task.n, data)
    cdef int64_t j
    if info == 0:                              # which does not look for nan
        for j in range(task.n):
            if not all_finite(task.dtype, data + j * (task.n + 1) * itemsize(task.dtype), 1):
                info = <int>j + 1
                break
    _keep_triangle(task.dtype, data, task.n, task.n, task.uplo == b"U")
    return info


cdef int linalg_cholesky_ex_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """linalg_cholesky_ex(self, upper) -> L, info."""
    cdef array_t *input
    cdef array_t *made[2]
    cdef matrix_batch_t task
    cdef int64_t n
    cdef int status = square_argument(b"linalg.cholesky", b"A", &arguments[0], &input)
    if status != OK:
        return status
    memset(&task, 0, sizeof(task))
    memset(made, 0, sizeof(made))
    n = input.shape[input.ndim - 1]
    status = in_columns(input, &made[0]) or new_zeros(b"linalg.cholesky", INT32, input.ndim - 2, input.shape, &made[1])
    if status == OK and input.size:
        task.each, task.dtype, task.n = _cholesky, input.dtype, <int>n
        task.uplo = b"U" if is_true(&arguments[1]) else b"L"
        task.a, task.info = made[0].data, <int32_t *>made[1].data
        status = run_batch(&task, batch_count(input), <double>n * n * n / 3)
    status = status or turn(&made[0])
    if status != OK:
        release_all(2, made)
        return status
    set_array(&results[0], made[0])
    set_array(&results[1], made[1])
    return OK


# ---- QR

cdef int _reflect(matrix_batch_t *task, int64_t i, char *scratch) noexcept nogil:
    """Reflections below the diagonal and R, in the place of the matrix."""
    cdef int info = 0
    cdef int64_t size = itemsize(task.dtype)
    geqrf(task.dtype, task.m, task.n, task.a + i * task.m * task.n * size,
          task.b + i * min(task.m, task.n) * size, scratch, task.scratch, &info)
    return info


cdef int linalg_geqrf_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """linalg_geqrf(self) -> a, tau."""
    cdef array_t *input
    cdef array_t *made[2]
    cdef matrix_batch_t task
    cdef int64_t m, n
    cdef int info = 0
    cdef int status = matrix_argument(b"geqrf", b"input", &arguments[0], &input)
    if status != OK:
        return status
    memset(&task, 0, sizeof(task))
    memset(made, 0, sizeof(made))
    m, n = input.shape[input.ndim - 2], input.shape[input.ndim - 1]
    status = in_columns(input, &made[0]) or new_batch(input, 2, input.dtype, min(m, n), -1, &made[1])
    if status == OK and input.size:
        task.each, task.dtype, task.m, task.n = _reflect, input.dtype, <int>m, <int>n
        task.a, task.b = made[0].data, made[1].data
        task.scratch = geqrf(task.dtype, task.m, task.n, NULL, NULL, NULL, 0, &info)
        status = run_batch(&task, batch_count(input), 2.0 * m * n * min(m, n))
    status = status or turn(&made[0])
    if status != OK:
        release_all(2, made)
        return status
    set_array(&results[0], made[0])
    set_array(&results[1], made[1])
    return OK


cdef int _qr(matrix_batch_t *task, int64_t i, char *scratch) noexcept nogil:
    """a: m x n, b: Q of m x k if `flag`, c: R; tau is at the front of the scratch memory."""
    cdef int64_t size = itemsize(task.dtype), least = min(task.m, task.n), j
    cdef int64_t front = (least * size + 63) // 64 * 64
    cdef int64_t rows = task.k if task.flag else least
    cdef char *a = task.a + i * task.m * task.n * size
    cdef char *q = task.b + i * task.m * task.k * size
    cdef char *r = task.c + i * rows * task.n * size
    cdef int info = 0
    if least:
        geqrf(task.dtype, task.m, task.n, a, scratch, scratch + front, task.scratch - front, &info)
    for j in range(task.n):
        memcpy(r + j * rows * size, a + j * task.m * size, min(rows, task.m) * size)
    _keep_triangle(task.dtype, r, rows, task.n, True)
    if task.flag and task.k and task.m:
        if least == 0:
            set_identity(task.dtype, q, task.m, task.k)
        else:
            memcpy(q, a, task.m * least * size)
            if task.k > least:
                memset(q + task.m * least * size, 0, task.m * (task.k - least) * size)
            orgqr(task.dtype, task.m, task.k, <int>least, q, scratch, scratch + front, task.scratch - front, &info)
    return info


cdef int linalg_qr_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """linalg_qr(self, mode) -> Q, R."""
    cdef array_t *input
    cdef array_t *made[3]
    cdef matrix_batch_t task
    cdef const char *mode
    cdef int64_t m, n, k, rows, none = 0
    cdef int info = 0, status = matrix_argument(b"linalg.qr", b"A", &arguments[0], &input)
    status = status or text_argument(b"linalg.qr", b"mode", &arguments[1], &mode)
    if status != OK:
        return status
    memset(&task, 0, sizeof(task))
    memset(made, 0, sizeof(made))
    m, n = input.shape[input.ndim - 2], input.shape[input.ndim - 1]
    if strcmp(mode, b"reduced") == 0:
        k = rows = min(m, n)
    elif strcmp(mode, b"complete") == 0:
        k = rows = m
    elif strcmp(mode, b"r") == 0:
        k, rows = 0, min(m, n)
    else:
        snprintf(message(), MESSAGE, b"linalg.qr: unrecognized mode (got '%s', expected one of 'reduced', 'r', "
                 b"'complete').", mode)
        return RUNTIME_ERROR
    task.flag = strcmp(mode, b"r") != 0
    status = in_columns(input, &made[0]) or new_batch(input, 2, input.dtype, n, rows, &made[2])
    if status == OK and task.flag:
        status = new_batch(input, 2, input.dtype, k, m, &made[1])
    elif status == OK:
        made[1] = array_empty(input.dtype, 1, &none)
        status = OK if made[1] != NULL else MEMORY_ERROR
    if status == OK and (made[1].size or made[2].size):
        task.each, task.dtype, task.m, task.n, task.k = _qr, input.dtype, <int>m, <int>n, <int>k
        task.a, task.b, task.c = made[0].data, made[1].data, made[2].data
        if min(m, n):
            task.scratch = geqrf(task.dtype, task.m, task.n, NULL, NULL, NULL, 0, &info)
            if task.flag:
                task.scratch = max(task.scratch, orgqr(task.dtype, task.m, task.k, <int>min(m, n), NULL, NULL, NULL, 0,
                                                       &info))
        task.scratch += (min(m, n) * itemsize(task.dtype) + 63) // 64 * 64
        status = run_batch(&task, batch_count(input), 2.0 * m * max(n, k) * min(m, n))
    release(made[0])
    made[0] = NULL
    status = status or turn(&made[2])
    if task.flag:
        status = status or turn(&made[1])
    if status != OK:
        release_all(3, made)
        return status
    set_array(&results[0], made[1])
    set_array(&results[1], made[2])
    return OK


register_kernel("linalg_cholesky_ex", linalg_cholesky_ex_kernel)
register_kernel("linalg_geqrf", linalg_geqrf_kernel)
register_kernel("linalg_qr", linalg_qr_kernel)
