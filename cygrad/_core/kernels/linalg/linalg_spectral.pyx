"""Factorizations by iteration: singular values and eigenvalues, with and without vectors."""

from libc.stdint cimport int32_t, int64_t
from libc.stdio cimport snprintf
from libc.string cimport memset
from cygrad._core.arrays.array cimport array_t, release
from cygrad._core.arrays.dtype cimport FLOAT64, INT32, complex_of, itemsize, real_of
from cygrad._core.arrays.value cimport is_true, register_kernel, set_array, value_t
from cygrad._core.kernels.arguments cimport new_zeros, text_argument
from cygrad._core.kernels.linalg.lapack cimport geev, gesdd, heevd
from cygrad._core.kernels.linalg.lapack_batches cimport (
    all_finite, batch_count, in_columns, matrix_argument, matrix_batch_t, new_batch, release_all, run_batch,
    square_argument, turn,
)
from cygrad._core.kernels.linalg.matrix_elements cimport fill_nan, set_identity
from cygrad._core.memory.errors cimport MESSAGE, OK, RUNTIME_ERROR, message

cdef enum:
    MADE = 5              # arrays that a factorization makes, at most
    NOT_FINITE = -1       # info of a matrix with nan or inf, which LAPACK must not be given


cdef void _drop(array_t **array) noexcept nogil:
    """Release arrays that are no longer needed, to make room for new ones."""
    release(array[0])
    array[0] = NULL


cdef int _give(int status, array_t **made, int count, const int *given, value_t *results) noexcept nogil:
    """Those of MADE arrays that are the results; the others, and all of them if something failed, are let go of."""
    cdef int i
    for i in range(count):
        if status == OK:
            set_array(&results[i], made[given[i]])
            made[given[i]] = NULL
    release_all(MADE, made)
    return status


# ---- singular values

cdef int _svd(matrix_batch_t *task, int64_t i, char *scratch) noexcept nogil:
    """a: m x n, destroyed; b: U, c: singular values, d: V^H. job as in gesdd."""
    cdef int64_t size = itemsize(task.dtype), least = min(task.m, task.n)
    cdef int64_t rows = task.n if task.job == b"A" else least, columns = task.m if task.job == b"A" else least
    cdef char *a = task.a + i * task.m * task.n * size
    cdef char *u = task.b + i * task.m * columns * size
    cdef char *s = task.c + i * least * itemsize(real_of(task.dtype))
    cdef char *vh = task.d + i * task.n * rows * size
    cdef int info = 0
    if least == 0:
        if task.job == b"A":
            set_identity(task.dtype, u, task.m, task.m)
            set_identity(task.dtype, vh, task.n, task.n)
        return 0
    if all_finite(task.dtype, a, task.m * <int64_t>task.n):
        gesdd(task.dtype, task.job, task.m, task.n, a, s, u, vh, scratch, task.scratch, &info)
        return info
    fill_nan(real_of(task.dtype), s, least)
    if task.job != b"N":
        fill_nan(task.dtype, u, task.m * columns)
        fill_nan(task.dtype, vh, task.n * rows)
    return NOT_FINITE


cdef int _svd_arrays(array_t *input, char job, array_t **made) noexcept nogil:
    """made: copy of the matrices, U, S, V^H, info; the vectors in column order, and NULL for job 'N'."""
    cdef matrix_batch_t task
    cdef int64_t m = input.shape[input.ndim - 2], n = input.shape[input.ndim - 1], least = min(m, n)
    cdef int info = 0
    cdef int status = in_columns(input, &made[0]) or new_batch(input, 2, real_of(input.dtype), least, -1, &made[2])
    status = status or new_zeros(b"linalg.svd", INT32, input.ndim - 2, input.shape, &made[4])
    if status == OK and job != b"N":
        status = (new_batch(input, 2, input.dtype, m if job == b"A" else least, m, &made[1])
                  or new_batch(input, 2, input.dtype, n, n if job == b"A" else least, &made[3]))
    if status != OK:
        return status
    memset(&task, 0, sizeof(task))
    task.each, task.dtype, task.m, task.n, task.job = _svd, input.dtype, <int>m, <int>n, job
    task.a, task.c, task.info = made[0].data, made[2].data, <int32_t *>made[4].data
    if job != b"N":
        task.b, task.d = made[1].data, made[3].data
    if least:
        task.scratch = gesdd(task.dtype, job, task.m, task.n, NULL, NULL, NULL, NULL, NULL, 0, &info)
    return run_batch(&task, batch_count(input), 20.0 * m * n * least)


cdef int linalg_svd_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """linalg_svd(self, full_matrices) -> U, S, Vh, info."""
    cdef array_t *input
    cdef array_t *made[MADE]
    cdef int[4] given = [1, 2, 3, 4]
    cdef int status = matrix_argument(b"linalg.svd", b"A", &arguments[0], &input)
    if status != OK:
        return status
    memset(made, 0, sizeof(made))
    status = _svd_arrays(input, b"A" if is_true(&arguments[1]) else b"S", made)
    _drop(&made[0])
    return _give(status or turn(&made[1]) or turn(&made[3]), made, 4, given, results)


cdef int linalg_svdvals_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """linalg_svdvals(self) -> S, info."""
    cdef array_t *input
    cdef array_t *made[MADE]
    cdef int[2] given = [2, 4]
    cdef int status = matrix_argument(b"linalg.svdvals", b"A", &arguments[0], &input)
    if status != OK:
        return status
    memset(made, 0, sizeof(made))
    status = _svd_arrays(input, b"N", made)
    _drop(&made[0])
    return _give(status, made, 2, given, results)


# ---- eigenvalues of symmetric and Hermitian matrices

cdef int _eigh(matrix_batch_t *task, int64_t i, char *scratch) noexcept nogil:
    """a: the matrix, which the vectors replace; b: eigenvalues."""
    cdef int64_t n = task.n
    cdef char *a = task.a + i * n * n * itemsize(task.dtype)
    cdef char *w = task.b + i * n * itemsize(real_of(task.dtype))
    cdef int info = 0
    if all_finite(task.dtype, a, n * n):
        heevd(task.dtype, task.job, task.uplo, task.n, a, w, scratch, task.scratch, &info)
    else:
        fill_nan(real_of(task.dtype), w, n)
        fill_nan(task.dtype, a, n * n)
    return info


cdef int _eigh_arrays(const value_t *arguments, char job, array_t **made) noexcept nogil:
    """made: vectors in column order, eigenvalues, info."""
    cdef array_t *input
    cdef const char *uplo
    cdef matrix_batch_t task
    cdef int64_t n
    cdef int info = 0, status = square_argument(b"linalg.eigh", b"A", &arguments[0], &input)
    status = status or text_argument(b"linalg.eigh", b"UPLO", &arguments[1], &uplo)
    if status != OK:
        return status
    memset(&task, 0, sizeof(task))
    task.uplo = uplo[0] & ~32 if uplo[0] else 0
    if (task.uplo != b"L" and task.uplo != b"U") or uplo[1]:
        snprintf(message(), MESSAGE, b"linalg.eigh: Expected UPLO argument to be 'L' or 'U' (got '%s').", uplo)
        return RUNTIME_ERROR
    n = input.shape[input.ndim - 1]
    status = in_columns(input, &made[0]) or new_batch(input, 2, real_of(input.dtype), n, -1, &made[1])
    status = status or new_zeros(b"linalg.eigh", INT32, input.ndim - 2, input.shape, &made[2])
    if status != OK or input.size == 0:
        return status
    task.each, task.dtype, task.n, task.job = _eigh, input.dtype, <int>n, job
    task.a, task.b, task.info = made[0].data, made[1].data, <int32_t *>made[2].data
    task.scratch = heevd(task.dtype, job, task.uplo, task.n, NULL, NULL, NULL, 0, &info)
    return run_batch(&task, batch_count(input), 9.0 * n * n * n)


cdef int linalg_eigh_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """linalg_eigh(self, UPLO) -> L, V, info."""
    cdef array_t *made[MADE]
    cdef int[3] given = [1, 0, 2]
    memset(made, 0, sizeof(made))
    return _give(_eigh_arrays(arguments, b"V", made) or turn(&made[0]), made, 3, given, results)


cdef int linalg_eigvalsh_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """linalg_eigvalsh(self, UPLO) -> L, info."""
    cdef array_t *made[MADE]
    cdef int[2] given = [1, 2]
    memset(made, 0, sizeof(made))
    return _give(_eigh_arrays(arguments, b"N", made), made, 2, given, results)


# ---- eigenvalues of any square matrix

ctypedef fused real_t:
    float
    double


cdef void _unpack(real_t *values, real_t *vectors, const real_t *parts, const real_t *packed, int64_t n) noexcept nogil:
    """Complex eigenvalues and vectors from what geev gives for a real matrix: of a pair, both parts of one vector."""
    cdef int64_t j = 0, i
    cdef const real_t *real_part
    cdef const real_t *imaginary
    for i in range(n):
        values[2 * i], values[2 * i + 1] = parts[i], parts[n + i]
    while packed != NULL and j < n:
        real_part, imaginary = packed + j * n, packed + (j + 1) * n
        if parts[n + j] == 0 or j + 1 == n:
            for i in range(n):
                vectors[2 * (j * n + i)], vectors[2 * (j * n + i) + 1] = real_part[i], 0
            j += 1
            continue
        for i in range(n):
            vectors[2 * (j * n + i)], vectors[2 * (j * n + i) + 1] = real_part[i], imaginary[i]
            vectors[2 * ((j + 1) * n + i)], vectors[2 * ((j + 1) * n + i) + 1] = real_part[i], -imaginary[i]
        j += 2


cdef int _eig(matrix_batch_t *task, int64_t i, char *scratch) noexcept nogil:
    """a: the matrix, destroyed; b: eigenvalues; c: vectors or NULL."""
    cdef int64_t n = task.n, size = itemsize(task.dtype), complex_size = itemsize(complex_of(task.dtype))
    cdef char *a = task.a + i * n * n * size
    cdef char *w = task.b + i * n * complex_size
    cdef char *v = task.c + i * n * n * complex_size if task.c != NULL else NULL
    cdef int64_t front = (2 * n * size + 63) // 64 * 64, after = 0
    cdef char *packed = NULL
    cdef int info = 0
    if not all_finite(task.dtype, a, n * n):
        fill_nan(complex_of(task.dtype), w, n)
        if v != NULL:
            fill_nan(complex_of(task.dtype), v, n * n)
        return NOT_FINITE
    if complex_size == size:
        geev(task.dtype, task.job, task.n, a, w, v, scratch, task.scratch, &info)
        return info
    if v != NULL:
        packed = scratch + front
        after = (n * n * size + 63) // 64 * 64
    geev(task.dtype, task.job, task.n, a, scratch, packed, scratch + front + after, task.scratch - front - after,
         &info)
    if task.dtype == FLOAT64:
        _unpack(<double *>w, <double *>v, <double *>scratch, <double *>packed, n)
    else:
        _unpack(<float *>w, <float *>v, <float *>scratch, <float *>packed, n)
    return info


cdef int _eig_arrays(const value_t *arguments, char job, array_t **made) noexcept nogil:
    """made: copy of the matrices, eigenvalues, vectors in column order, info."""
    cdef array_t *input
    cdef matrix_batch_t task
    cdef int64_t n
    cdef int info = 0, dtype, status = square_argument(b"linalg.eig", b"A", &arguments[0], &input)
    if status != OK:
        return status
    n, dtype = input.shape[input.ndim - 1], complex_of(input.dtype)
    status = in_columns(input, &made[0]) or new_batch(input, 2, dtype, n, -1, &made[1])
    status = status or new_zeros(b"linalg.eig", INT32, input.ndim - 2, input.shape, &made[3])
    if status == OK and job == b"V":
        status = new_batch(input, 2, dtype, n, n, &made[2])
    if status != OK or input.size == 0:
        return status
    memset(&task, 0, sizeof(task))
    task.each, task.dtype, task.n, task.job = _eig, input.dtype, <int>n, job
    task.a, task.b, task.info = made[0].data, made[1].data, <int32_t *>made[3].data
    task.c = made[2].data if job == b"V" else NULL
    task.scratch = geev(task.dtype, job, task.n, NULL, NULL, NULL, NULL, 0, &info)
    if dtype != input.dtype:
        task.scratch += (2 * n * itemsize(input.dtype) + 63) // 64 * 64
        task.scratch += (n * n * itemsize(input.dtype) + 63) // 64 * 64
    return run_batch(&task, batch_count(input), 25.0 * n * n * n)


cdef int linalg_eig_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """linalg_eig(self) -> L, V, info."""
    cdef array_t *made[MADE]
    cdef int[3] given = [1, 2, 3]
    cdef int status
    memset(made, 0, sizeof(made))
    status = _eig_arrays(arguments, b"V", made)
    _drop(&made[0])
    return _give(status or turn(&made[2]), made, 3, given, results)


cdef int linalg_eigvals_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """linalg_eigvals(self) -> L, info."""
    cdef array_t *made[MADE]
    cdef int[2] given = [1, 3]
    cdef int status
    memset(made, 0, sizeof(made))
    status = _eig_arrays(arguments, b"N", made)
    _drop(&made[0])
    return _give(status, made, 2, given, results)


register_kernel("linalg_svd", linalg_svd_kernel)
register_kernel("linalg_svdvals", linalg_svdvals_kernel)
register_kernel("linalg_eigh", linalg_eigh_kernel)
register_kernel("linalg_eigvalsh", linalg_eigvalsh_kernel)
register_kernel("linalg_eig", linalg_eig_kernel)
register_kernel("linalg_eigvals", linalg_eigvals_kernel)
