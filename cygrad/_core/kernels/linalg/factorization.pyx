"""Cholesky and QR factorizations, matrix exponentials, singular values and eigenvalues."""

from libc.math cimport ceil, fabs, isfinite, ldexp, log2
from libc.stdint cimport int32_t, int64_t
from libc.stdio cimport snprintf
from libc.string cimport memcpy, memset, strcmp
from cygrad._core.arrays.array cimport array_empty, array_t, is_true, register_kernel, release, set_array, value_t
from cygrad._core.arrays.dtype cimport FLOAT64, INT32, complex_of, is_complex, itemsize, real_of
from cygrad._core.elementwise.copying cimport as_copy
from cygrad._core.kernels.arguments cimport array_result, new_zeros, text_argument
from cygrad._core.kernels.linalg.blas cimport (
    all_finite, batch_count, blas_scalar_t, geev, gemm, geqrf, gesdd, getrf, getrs, heevd, in_columns, matrix_argument,
    matrix_batch_t, new_batch, orgqr, potrf, release_all, run_batch, square_argument, exchange_axes,
)
from cygrad._core.kernels.linalg.matrix_elements cimport fill_nan, number_at, set_identity
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, OK, RUNTIME_ERROR, message


# -------------------------------------------------------------------------------------------------------- linalg factor

cdef void _keep_triangle(int dtype, char *data, int64_t rows, int64_t columns, bint upper) noexcept nogil:
    """Zero the other triangle of a column-major matrix."""
    cdef int64_t j, size = itemsize(dtype), first
    for j in range(columns):
        if upper:
            first = min(j + 1, rows)
            memset(data + (j * rows + first) * size, 0, (rows - first) * size)
        else:
            memset(data + j * rows * size, 0, min(j, rows) * size)


cdef int _cholesky(matrix_batch_t *task, int64_t i, char *scratch) noexcept nogil:
    """Replace a matrix by its Cholesky factor."""
    cdef char *data = task.a + i * task.n * task.n * itemsize(task.dtype)
    cdef int info = potrf(task.dtype, task.uplo, task.n, data)
    cdef int64_t j
    if info == 0:                              # LAPACK does not check for nan
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
    status = status or exchange_axes(&made[0])
    if status != OK:
        release_all(2, made)
        return status
    set_array(&results[0], made[0])
    set_array(&results[1], made[1])
    return OK


# ---- QR

cdef int _reflect(matrix_batch_t *task, int64_t i, char *scratch) noexcept nogil:
    """Replace a matrix by its reflectors below the diagonal and R."""
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
    status = status or exchange_axes(&made[0])
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
    status = status or exchange_axes(&made[2])
    if task.flag:
        status = status or exchange_axes(&made[1])
    if status != OK:
        release_all(3, made)
        return status
    set_array(&results[0], made[1])
    set_array(&results[1], made[2])
    return OK


register_kernel("linalg_cholesky_ex", linalg_cholesky_ex_kernel)
register_kernel("linalg_geqrf", linalg_geqrf_kernel)
register_kernel("linalg_qr", linalg_qr_kernel)


# --------------------------------------------------------------------------------------------------- linalg exponential

# Matrix exponential by scaling, a Padé approximant and squaring: N. J. Higham, The scaling and squaring method for the
# matrix exponential revisited, SIAM J. Matrix Anal. Appl. 26 (2005). Table 2.3 has the largest norm for each degree;
# coefficients are (2m - j)! m! / ((2m)! (m - j)! j!), scaled to integers.

cdef enum:
    MATRICES = 7          # in scratch memory

cdef extern from "kernels/linalg/matrix_loops.h" nogil:
    void add_scaled(bint double_precision, void *sum, const void *matrix, double factor, int64_t n)
    void unpack_eigenvectors(bint double_precision, void *values, void *vectors, const void *parts,
                             const void *packed, int64_t n)

# Coefficients of the numerators; those of the denominators alternate in sign.
cdef double[4] PADE_3 = [120, 60, 12, 1]
cdef double[6] PADE_5 = [30240, 15120, 3360, 420, 30, 1]
cdef double[8] PADE_7 = [17297280, 8648640, 1995840, 277200, 25200, 1512, 56, 1]
cdef double[10] PADE_9 = [17643225600, 8821612800, 2075673600, 302702400, 30270240, 2162160, 110880, 3960, 90, 1]
cdef double[14] PADE_13 = [
    64764752532480000., 32382376266240000., 7771770303897600., 1187353796428800., 129060195264000., 10559470521600.,
    670442572800., 33522128640., 1323241920., 40840800., 960960., 16380., 182., 1.]
cdef double *COEFFICIENTS[5]
COEFFICIENTS[0], COEFFICIENTS[1], COEFFICIENTS[2], COEFFICIENTS[3] = PADE_3, PADE_5, PADE_7, PADE_9
COEFFICIENTS[4] = PADE_13
# Largest norms for the approximants of degree 3, 5, 7, 9 and 13, in double and in single precision.
cdef double[5] NORMS = [1.495585217958292e-2, 2.539398330063230e-1, 9.504178996162932e-1, 2.097847961257068,
                        5.371920351148152]
cdef double[3] NORMS_32 = [4.258730016922831e-1, 1.880152677804762, 3.925724783138660]


cdef void _add(int dtype, char *sum, const char *matrix, double factor, int64_t n) noexcept nogil:
    """sum += factor * matrix for square matrices of any dtype."""
    cdef int64_t count = n * n * (2 if is_complex(dtype) else 1)
    add_scaled(real_of(dtype) == FLOAT64, sum, matrix, factor, count)


cdef void _add_identity(int dtype, char *sum, double factor, int64_t n) noexcept nogil:
    """sum += factor on the diagonal."""
    cdef int64_t i
    for i in range(n):
        if real_of(dtype) == FLOAT64:
            (<double *>(sum + i * (n + 1) * itemsize(dtype)))[0] += factor
        else:
            (<float *>(sum + i * (n + 1) * itemsize(dtype)))[0] += <float>factor


cdef void _product(int dtype, const char *a, const char *b, char *c, int64_t n) noexcept nogil:
    """c = a @ b."""
    cdef blas_scalar_t one, zero
    one.real, one.imag, zero.real, zero.imag = 1, 0, 0, 0
    gemm(dtype, False, False, n, n, n, one, a, n, b, n, zero, c, n)


cdef double _norm_of(int dtype, const char *a, int64_t n) noexcept nogil:
    """Bound the largest row sum of absolute values; real and imaginary parts count separately."""
    cdef double largest = 0, total
    cdef blas_scalar_t number
    cdef int64_t i, j
    for i in range(n):
        total = 0
        for j in range(n):
            number = number_at(dtype, a, i * n + j)
            total += fabs(number.real) + fabs(number.imag)
        if not total <= largest:
            largest = total
    return largest


cdef int _exponential(matrix_batch_t *task, int64_t i, char *scratch) noexcept nogil:
    """Replace a row-major matrix by its exponential."""
    cdef int dtype = task.dtype
    cdef int64_t n = task.n, nbytes = n * n * itemsize(dtype), k
    cdef char *a = task.a + i * nbytes
    cdef char *powers[5]                      # 1: A^2, 2: A^4, 3: A^6, 4: A^8
    cdef char *odd = scratch + 4 * nbytes
    cdef char *even = scratch + 5 * nbytes
    cdef char *other = scratch + 6 * nbytes
    cdef int32_t *pivots = <int32_t *>(scratch + MATRICES * nbytes)
    cdef double norm = _norm_of(dtype, a, n), bound
    cdef double *b
    cdef int choice = 0, squarings = 0, choices = 5 if real_of(dtype) == FLOAT64 else 3, degree
    if not isfinite(norm):
        fill_nan(dtype, a, n * n)
        return 0
    while choice < choices and norm > (NORMS[choice] if choices == 5 else NORMS_32[choice]):
        choice += 1
    if choice == choices:
        choice -= 1
        bound = NORMS[choice] if choices == 5 else NORMS_32[choice]
        squarings = <int>max(0.0, ceil(log2(norm / bound)))
    degree = 13 if choice == 4 else 3 + 2 * choice
    b = COEFFICIENTS[choice]
    memset(other, 0, nbytes)
    _add(dtype, other, a, ldexp(1, -squarings), n)
    memcpy(a, other, nbytes)
    for k in range(1, 5):
        powers[k] = scratch + (k - 1) * nbytes
    _product(dtype, a, a, powers[1], n)
    if degree >= 5:
        _product(dtype, powers[1], powers[1], powers[2], n)
    if degree >= 7:
        _product(dtype, powers[2], powers[1], powers[3], n)
    if degree == 9:
        _product(dtype, powers[2], powers[2], powers[4], n)
    memset(odd, 0, nbytes)
    memset(even, 0, nbytes)
    if degree == 13:
        for k in range(1, 4):
            _add(dtype, odd, powers[k], b[2 * k + 7], n)
            _add(dtype, even, powers[k], b[2 * k + 6], n)
        _product(dtype, powers[3], odd, other, n)
        memcpy(odd, other, nbytes)
        _product(dtype, powers[3], even, other, n)
        memcpy(even, other, nbytes)
        degree = 7                            # the lower terms have that form
    for k in range(1, degree // 2 + 1):
        _add(dtype, odd, powers[k], b[2 * k + 1], n)
        _add(dtype, even, powers[k], b[2 * k], n)
    _add_identity(dtype, odd, b[1], n)
    _add_identity(dtype, even, b[0], n)
    _product(dtype, a, odd, other, n)
    # (even - odd)^-1 (even + odd); column-major ones are transposed, and all of them commute.
    memcpy(a, even, nbytes)
    _add(dtype, a, other, 1, n)
    _add(dtype, even, other, -1, n)
    getrf(dtype, 1, task.n, task.n, even, pivots, NULL)
    getrs(dtype, 1, b"N", task.n, task.n, even, pivots, a)
    for k in range(squarings):
        _product(dtype, a, a, other, n)
        memcpy(a, other, nbytes)
    return 0


cdef int linalg_matrix_exp_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """linalg_matrix_exp(self)."""
    cdef array_t *input
    cdef array_t *copy
    cdef matrix_batch_t task
    cdef int64_t n
    cdef int status = square_argument(b"linalg.matrix_exp", b"A", &arguments[0], &input)
    if status != OK:
        return status
    copy = as_copy(input, input.dtype)
    if copy == NULL:
        return MEMORY_ERROR
    n = input.shape[input.ndim - 1]
    if input.size:
        memset(&task, 0, sizeof(task))
        task.each, task.dtype, task.n, task.a = _exponential, input.dtype, <int>n, copy.data
        task.scratch = MATRICES * n * n * itemsize(input.dtype) + n * <int64_t>sizeof(int32_t)
        status = run_batch(&task, batch_count(input), 20.0 * n * n * n)
    if status != OK:
        release(copy)
        return status
    return array_result(copy, &results[0])


register_kernel("linalg_matrix_exp", linalg_matrix_exp_kernel)


# ------------------------------------------------------------------------------------------------------ linalg spectral

# Singular values and eigenvalues, with and without vectors.

cdef enum:
    MADE = 5              # maximum number of arrays made by a factorization
    NOT_FINITE = -1       # info of a matrix with nan or inf, which LAPACK must not get


cdef void _drop(array_t **array) noexcept nogil:
    """Release an array early, to save memory."""
    release(array[0])
    array[0] = NULL


cdef int _give(int status, array_t **made, int count, const int *given, value_t *results) noexcept nogil:
    """Store the results among MADE arrays; release the others, or all of them on failure."""
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
    return _give(status or exchange_axes(&made[1]) or exchange_axes(&made[3]), made, 4, given, results)


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
    return _give(_eigh_arrays(arguments, b"V", made) or exchange_axes(&made[0]), made, 3, given, results)


cdef int linalg_eigvalsh_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """linalg_eigvalsh(self, UPLO) -> L, info."""
    cdef array_t *made[MADE]
    cdef int[2] given = [1, 2]
    memset(made, 0, sizeof(made))
    return _give(_eigh_arrays(arguments, b"N", made), made, 2, given, results)


# ---- eigenvalues of general matrices

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
    unpack_eigenvectors(task.dtype == FLOAT64, w, v, scratch, packed, n)
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
    return _give(status or exchange_axes(&made[2]), made, 3, given, results)


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
