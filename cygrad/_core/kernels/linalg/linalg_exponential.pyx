"""
The exponential of matrices: scaling, a Padé approximant, squaring.

N. J. Higham, The scaling and squaring method for the matrix exponential revisited, SIAM J. Matrix Anal. Appl. 26
(2005), whose table 2.3 says up to which norm an approximant of each degree is exact to rounding, and whose
coefficients are those of (2m - j)! m! / ((2m)! (m - j)! j!), all multiplied until they are integers.
"""

from libc.math cimport ceil, fabs, isfinite, ldexp, log2
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcpy, memset
from cygrad._core.arrays.array cimport array_t, release
from cygrad._core.arrays.dtype cimport FLOAT64, is_complex, itemsize, real_of
from cygrad._core.arrays.value cimport register_kernel, value_t
from cygrad._core.elementwise.copying cimport as_copy
from cygrad._core.kernels.arguments cimport array_result
from cygrad._core.kernels.linalg.blas cimport blas_scalar_t, gemm
from cygrad._core.kernels.linalg.lapack cimport getrf, getrs
from cygrad._core.kernels.linalg.lapack_batches cimport batch_count, matrix_batch_t, run_batch, square_argument
from cygrad._core.kernels.linalg.matrix_elements cimport fill_nan, number_at
from cygrad._core.memory.errors cimport MEMORY_ERROR, OK

cdef enum:
    MATRICES = 7          # in scratch memory

ctypedef fused real_t:
    float
    double

# Coefficients of the numerators; the denominators have the same with alternating signs.
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
# The norms up to which the approximants of degree 3, 5, 7, 9 and 13 will do, in double and in single precision.
cdef double[5] NORMS = [1.495585217958292e-2, 2.539398330063230e-1, 9.504178996162932e-1, 2.097847961257068,
                        5.371920351148152]
cdef double[3] NORMS_32 = [4.258730016922831e-1, 1.880152677804762, 3.925724783138660]


cdef void _add_typed(real_t *sum, const real_t *matrix, double factor, int64_t count) noexcept nogil:
    """sum += factor * matrix."""
    cdef int64_t i
    for i in range(count):
        sum[i] += <real_t>factor * matrix[i]


cdef void _add(int dtype, char *sum, const char *matrix, double factor, int64_t n) noexcept nogil:
    """The same for square matrices of any type."""
    cdef int64_t count = n * n * (2 if is_complex(dtype) else 1)
    if real_of(dtype) == FLOAT64:
        _add_typed(<double *>sum, <const double *>matrix, factor, count)
    else:
        _add_typed(<float *>sum, <const float *>matrix, factor, count)


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
    """The largest sum of a row; real and imaginary parts count separately, which makes it larger, never smaller."""
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
    """a: the matrix, row after row, which its exponential replaces."""
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
        degree = 7                            # the lower terms are as for that degree
    for k in range(1, degree // 2 + 1):
        _add(dtype, odd, powers[k], b[2 * k + 1], n)
        _add(dtype, even, powers[k], b[2 * k], n)
    _add_identity(dtype, odd, b[1], n)
    _add_identity(dtype, even, b[0], n)
    _product(dtype, a, odd, other, n)
    # (even - odd)^-1 (even + odd); in column order these are transposed, and all of them commute.
    memcpy(a, even, nbytes)
    _add(dtype, a, other, 1, n)
    _add(dtype, even, other, -1, n)
    getrf(dtype, task.n, task.n, even, pivots)
    getrs(dtype, b"N", task.n, task.n, even, pivots, a)
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
