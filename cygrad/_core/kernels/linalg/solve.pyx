"""LU factors, linear systems, inverses, least squares, pseudo-inverses, determinants and L D L^T factors."""

from libc.float cimport DBL_EPSILON, FLT_EPSILON
from libc.math cimport INFINITY, fabs, hypot, isfinite, log
from libc.stdint cimport int32_t, int64_t
from libc.stdio cimport snprintf
from libc.string cimport memcpy, memset, strcmp
from cygrad._core.arrays.array cimport (
    MAX_DIMS, array_t, array_view, as_real, is_true, register_kernel, release, retain, set_array, shape_text, value_t,
)
from cygrad._core.arrays.dtype cimport COMPLEX128, COMPLEX64, FLOAT64, INT32, INT64, is_complex, itemsize, real_of
from cygrad._core.elementwise.copying cimport as_contiguous, as_copy
from cygrad._core.kernels.arguments cimport array_argument, array_result, new_zeros, text_argument
from cygrad._core.kernels.linalg.blas cimport (
    all_finite, batch_count, blas_scalar_t, check_pair, gemm, gesdd, getrf, getrs, heevd, in_columns, lstsq,
    lu_width, matrix_argument, matrix_batch_t, new_batch, release_all, run_batch, square_argument, sytrf, sytrs, trsm,
    exchange_axes, transposed, transposed_result,
)
from cygrad._core.kernels.linalg.matrix_elements cimport (
    conjugate, fill_nan, number_at, put_number, scale, set_identity, times,
)
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, NOT_IMPLEMENTED, OK, RUNTIME_ERROR, message


# --------------------------------------------------------------------------------------------------------- linalg solve

# ---- factors

cdef int _factor(matrix_batch_t *task, int64_t i, char *scratch) noexcept nogil:
    """Triangular factors in the place of the matrices."""
    getrf(task.dtype, <int>min(task.width, task.count - i), task.m, task.n,
          task.a + i * task.m * task.n * itemsize(task.dtype), task.pivots + i * min(task.m, task.n), task.info + i)
    return task.info[i]


cdef int linalg_lu_factor_ex_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """linalg_lu_factor_ex(self) -> LU, pivots, info."""
    cdef array_t *input
    cdef array_t *made[3]
    cdef matrix_batch_t task
    cdef int64_t m, n
    cdef int status = matrix_argument(b"linalg.lu_factor", b"A", &arguments[0], &input)
    if status != OK:
        return status
    memset(&task, 0, sizeof(task))
    memset(made, 0, sizeof(made))
    m, n = input.shape[input.ndim - 2], input.shape[input.ndim - 1]
    status = in_columns(input, &made[0]) or new_batch(input, 2, INT32, min(m, n), -1, &made[1])
    status = status or new_zeros(b"linalg.lu_factor", INT32, input.ndim - 2, input.shape, &made[2])
    if status == OK and input.size:
        task.each, task.dtype, task.m, task.n = _factor, input.dtype, <int>m, <int>n
        task.width = lu_width(task.dtype, task.m, task.n)
        task.a, task.pivots, task.info = made[0].data, <int32_t *>made[1].data, <int32_t *>made[2].data
        status = run_batch(&task, batch_count(input), <double>m * n * min(m, n))
    status = status or exchange_axes(&made[0])
    if status != OK:
        release_all(3, made)
        return status
    set_array(&results[0], made[0])
    set_array(&results[1], made[1])
    set_array(&results[2], made[2])
    return OK


cdef int linalg_permute_rows_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """linalg_permute_rows(self, pivots, inverse): exchange row i with row pivots[i] - 1, for i = 0, 1, ... or back."""
    cdef array_t *input
    cdef array_t *pivots
    cdef array_t *copy
    cdef array_t *exchanges
    cdef int64_t i, j, k, m, n, count, size, at, other
    cdef bint inverse = is_true(&arguments[2])
    cdef char *row
    cdef char *second
    cdef char byte
    cdef int64_t position
    cdef int status = matrix_argument(b"linalg.lu", b"input", &arguments[0], &input)
    if status == OK:
        status = array_argument(b"linalg.lu", b"pivots", &arguments[1], &pivots)
    if status != OK:
        return status
    m, n, count = input.shape[input.ndim - 2], input.shape[input.ndim - 1], batch_count(input)
    status = _check_pivots(input, pivots)
    if status != OK:
        return status
    exchanges = as_contiguous(pivots, INT32)
    copy = as_copy(input, input.dtype)
    if copy == NULL or exchanges == NULL:
        release(exchanges)
        release(copy)
        return MEMORY_ERROR
    k = pivots.shape[pivots.ndim - 1]
    size = n * itemsize(input.dtype)
    for i in range(count):
        for j in range(k):
            at = j if not inverse else k - 1 - j
            other = (<int32_t *>exchanges.data)[i * k + at] - 1
            if other < 0 or other >= m:
                release(exchanges)
                release(copy)
                snprintf(message(), MESSAGE, b"linalg.lu: pivots must count rows from 1 (got %lld for matrices of "
                         b"%lld rows).", <long long>other + 1, <long long>m)
                return RUNTIME_ERROR
            if other != at:
                row = copy.data + (i * m + at) * size
                second = copy.data + (i * m + other) * size
                for position in range(size):
                    byte = row[position]
                    row[position] = second[position]
                    second[position] = byte
    release(exchanges)
    return array_result(copy, &results[0])


cdef int _check_pivots(const array_t *matrices, const array_t *pivots) noexcept nogil:
    """Read the pivots of a batch of matrices: int32, at most one for each row."""
    cdef int i
    cdef bint fit = pivots.dtype == INT32 and pivots.ndim == matrices.ndim - 1
    if fit:
        for i in range(pivots.ndim - 1):
            fit = fit and pivots.shape[i] == matrices.shape[i]
        fit = fit and pivots.shape[pivots.ndim - 1] <= matrices.shape[matrices.ndim - 2]
    if not fit:
        snprintf(message(), MESSAGE, b"linalg.lu_solve: pivots must be int32 and fit the matrices (got shape %s for "
                 b"matrices of shape %s).", shape_text(pivots), shape_text(matrices))
        return RUNTIME_ERROR
    return OK


# ---- solutions

cdef int _solve(matrix_batch_t *task, int64_t i, char *scratch) noexcept nogil:
    """Matrices of right-hand sides, with factors that are there."""
    cdef int64_t size = itemsize(task.dtype)
    getrs(task.dtype, <int>min(task.width, task.count - i), task.trans, task.n, task.k,
          task.a + i * task.n * task.n * size, task.pivots + i * task.n, task.b + i * task.n * task.k * size)
    return 0


cdef int linalg_solve_with_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """linalg_solve_with(self, LU, pivots, B, adjoint): of A X = B, or of A^H X = B, by the factors of A."""
    cdef array_t *factors
    cdef array_t *pivots
    cdef array_t *other
    cdef array_t *made[3]
    cdef matrix_batch_t task
    cdef int64_t i
    cdef int status = square_argument(b"linalg.lu_solve", b"LU", &arguments[1], &factors)
    if status == OK:
        status = matrix_argument(b"linalg.lu_solve", b"B", &arguments[3], &other)
    if status == OK:
        status = array_argument(b"linalg.lu_solve", b"pivots", &arguments[2], &pivots)
    status = status or check_pair(b"linalg.lu_solve", factors, other) or _check_pivots(factors, pivots)
    if status != OK:
        return status
    memset(&task, 0, sizeof(task))
    memset(made, 0, sizeof(made))
    task.n, task.k = <int>factors.shape[factors.ndim - 1], <int>other.shape[other.ndim - 1]
    if other.shape[other.ndim - 2] != task.n or pivots.shape[pivots.ndim - 1] != task.n:
        snprintf(message(), MESSAGE, b"linalg.lu_solve: Incompatible shapes of the system: each matrix B must have as "
                 b"many rows as A (got shapes %s and %s).", shape_text(factors), shape_text(other))
        return RUNTIME_ERROR
    made[0] = transposed(factors)
    if made[0] != NULL:
        made[1] = as_contiguous(made[0], -1)
        release(made[0])
    made[0] = as_contiguous(pivots, -1)
    status = in_columns(other, &made[2])
    if made[0] == NULL or made[1] == NULL:
        status = MEMORY_ERROR
    if status == OK and other.size:
        task.each, task.dtype, task.width = _solve, other.dtype, lu_width(other.dtype, task.n, task.n)
        task.trans = b"N" if not is_true(&arguments[4]) else b"C"
        task.a, task.b, task.pivots = made[1].data, made[2].data, <int32_t *>made[0].data
        for i in range(made[0].size):
            if task.pivots[i] < 1 or task.pivots[i] > task.n:
                snprintf(message(), MESSAGE, b"linalg.lu_solve: pivots must count rows from 1 (got %d for matrices of "
                         b"%d rows).", <int>task.pivots[i], task.n)
                status = RUNTIME_ERROR
        if status == OK:
            status = run_batch(&task, batch_count(other), 2.0 * task.n * task.n * task.k)
    release(made[0])
    release(made[1])
    if status != OK:
        release(made[2])
        return status
    return transposed_result(made[2], &results[0])


cdef int _invert(matrix_batch_t *task, int64_t i, char *scratch) noexcept nogil:
    """The inverses, by the factors."""
    cdef int64_t nbytes = task.n * task.n * itemsize(task.dtype), at = i * nbytes
    cdef int j, count = <int>min(task.width, task.count - i)
    getrf(task.dtype, count, task.n, task.n, task.a + at, <int32_t *>scratch, task.info + i)
    for j in range(count):
        set_identity(task.dtype, task.b + at + j * nbytes, task.n, task.n)
    getrs(task.dtype, count, b"N", task.n, task.n, task.a + at, <int32_t *>scratch, task.b + at)
    return task.info[i]


cdef int linalg_inv_ex_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """linalg_inv_ex(self) -> inverse, info."""
    cdef array_t *input
    cdef array_t *made[3]
    cdef matrix_batch_t task
    cdef int64_t n
    cdef int status = square_argument(b"linalg.inv", b"A", &arguments[0], &input)
    if status != OK:
        return status
    memset(&task, 0, sizeof(task))
    memset(made, 0, sizeof(made))
    n = input.shape[input.ndim - 1]
    status = in_columns(input, &made[0]) or new_batch(input, 0, input.dtype, -1, -1, &made[1])
    status = status or new_zeros(b"linalg.inv", INT32, input.ndim - 2, input.shape, &made[2])
    if status == OK and input.size:
        task.each, task.dtype, task.n, task.width = _invert, input.dtype, <int>n, lu_width(input.dtype, <int>n, <int>n)
        task.scratch = task.width * n * sizeof(int)
        task.a, task.b, task.info = made[0].data, made[1].data, <int32_t *>made[2].data
        status = run_batch(&task, batch_count(input), 3.0 * n * n * n)
    status = status or exchange_axes(&made[1])
    release(made[0])
    if status != OK:
        release(made[1])
        release(made[2])
        return status
    set_array(&results[0], made[1])
    set_array(&results[1], made[2])
    return OK


# ---- triangular systems

cdef int _solve_triangle(matrix_batch_t *task, int64_t i, char *scratch) noexcept nogil:
    """Solve for one matrix of right-hand sides; `m` is the size of the triangle, `n` and `k` are the sizes of B."""
    cdef int64_t size = itemsize(task.dtype)
    trsm(task.dtype, task.job, task.uplo, task.trans, b"U" if task.flag else b"N", task.n, task.k,
         task.a + i * task.m * task.m * size, task.m, task.b + i * task.n * task.k * size)
    return 0


cdef int linalg_solve_triangular_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """linalg_solve_triangular(self, B, upper, left, unitriangular)."""
    cdef array_t *input
    cdef array_t *other
    cdef array_t *columns
    cdef array_t *triangle
    cdef array_t *copy
    cdef matrix_batch_t task
    cdef bint upper = is_true(&arguments[2]), left = is_true(&arguments[3]), flipped
    cdef int status = square_argument(b"linalg.solve_triangular", b"A", &arguments[0], &input)
    if status == OK:
        status = matrix_argument(b"linalg.solve_triangular", b"B", &arguments[1], &other)
    status = status or check_pair(b"linalg.solve_triangular", input, other)
    if status != OK:
        return status
    memset(&task, 0, sizeof(task))
    task.m = <int>input.shape[input.ndim - 1]
    task.n, task.k = <int>other.shape[other.ndim - 2], <int>other.shape[other.ndim - 1]
    if task.m != (task.n if left else task.k):
        snprintf(message(), MESSAGE, b"linalg.solve_triangular: Incompatible shapes of A and B for the equation %s "
                 b"(got shapes %s and %s).", b"AX = B" if left else b"XA = B", shape_text(input), shape_text(other))
        return RUNTIME_ERROR
    # BLAS reads the triangle in either layout.
    columns = transposed(input)
    flipped = columns == NULL or not columns.contiguous
    triangle = as_contiguous(input, -1) if flipped else retain(columns)
    release(columns)
    status = in_columns(other, &copy)
    if triangle == NULL or status != OK:
        release(triangle)
        release(copy)
        return MEMORY_ERROR
    if other.size:
        task.each, task.dtype, task.job = _solve_triangle, other.dtype, b"L" if left else b"R"
        task.uplo = b"U" if upper != flipped else b"L"
        task.trans, task.flag = b"T" if flipped else b"N", is_true(&arguments[4])
        task.a, task.b = triangle.data, copy.data
        status = run_batch(&task, batch_count(other), <double>task.m * task.n * task.k)
    release(triangle)
    if status != OK:
        release(copy)
        return status
    return transposed_result(copy, &results[0])


cdef int identity_like_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """identity_like(self): an identity matrix for each matrix."""
    cdef array_t *input
    cdef array_t *result
    cdef int64_t i, size
    cdef int status = matrix_argument(b"identity_like", b"input", &arguments[0], &input)
    if status == OK:
        status = new_batch(input, 0, input.dtype, -1, -1, &result)
    if status != OK:
        return status
    size = input.shape[input.ndim - 1] * input.shape[input.ndim - 2]
    if size:
        for i in range(batch_count(input)):
            set_identity(input.dtype, result.data + i * size * itemsize(input.dtype), input.shape[input.ndim - 2],
                         input.shape[input.ndim - 1])
    return array_result(result, &results[0])


cdef int adjoint_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """adjoint(self): a copy of each matrix, transposed and conjugated."""
    cdef array_t *input
    cdef array_t *copy
    cdef int64_t i
    cdef int status = matrix_argument(b"adjoint", b"input", &arguments[0], &input)
    status = status or in_columns(input, &copy)
    if status != OK:
        return status
    if input.dtype == COMPLEX64:
        for i in range(input.size):
            (<float *>copy.data)[2 * i + 1] = -(<float *>copy.data)[2 * i + 1]
    elif input.dtype == COMPLEX128:
        for i in range(input.size):
            (<double *>copy.data)[2 * i + 1] = -(<double *>copy.data)[2 * i + 1]
    return array_result(copy, &results[0])


cdef int check_phase_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """linalg_check_phase(self, other, operation): return `self` if the diagonal of self + other is nearly real."""
    cdef array_t *arrays[2]
    cdef const char *operation
    cdef int64_t i, j, k, n
    cdef double real, imaginary
    cdef int part, status = matrix_argument(b"backward", b"input", &arguments[0], &arrays[0])
    arrays[1] = NULL
    if status == OK and arguments[1].kind:
        status = matrix_argument(b"backward", b"other", &arguments[1], &arrays[1])
    status = status or text_argument(b"backward", b"operation", &arguments[2], &operation)
    if status != OK:
        return status
    if not is_complex(arrays[0].dtype):
        set_array(&results[0], retain(arguments[0].of.array))
        return OK
    for part in range(2):
        if arrays[part] != NULL:
            arrays[part] = as_contiguous(arrays[part], COMPLEX128)
            if arrays[part] == NULL:
                release(arrays[0])
                return MEMORY_ERROR
    n = arrays[0].shape[arrays[0].ndim - 1]
    for i in range(batch_count(arrays[0])):
        for j in range(n):
            k = (i * n * n + j * (n + 1)) * 2
            real, imaginary = (<double *>arrays[0].data)[k], (<double *>arrays[0].data)[k + 1]
            if arrays[1] != NULL:
                real += (<double *>arrays[1].data)[k]
                imaginary += (<double *>arrays[1].data)[k + 1]
            if fabs(imaginary) > 1e-2 + 1e-2 * fabs(real):
                status = RUNTIME_ERROR
    release(arrays[0])
    release(arrays[1])
    if status != OK:
        snprintf(message(), MESSAGE, b"%s: the vectors of a complex matrix are determined up to a factor of size 1, "
                 b"and the function to be differentiated depends on this factor: its gradient has no meaning. Make it "
                 b"independent of the factor.", operation)
        return status
    set_array(&results[0], retain(arguments[0].of.array))
    return OK


cdef int refuse_gradient_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """refuse_gradient(self, text): raise an error."""
    cdef const char *text
    cdef int status = text_argument(b"backward", b"text", &arguments[1], &text)
    if status != OK:
        return status
    snprintf(message(), MESSAGE, b"%s", text)
    return RUNTIME_ERROR


cdef int unknown_gradient_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """unknown_gradient(self, name): raise an error."""
    cdef const char *name
    cdef int status = text_argument(b"backward", b"name", &arguments[1], &name)
    if status != OK:
        return status
    snprintf(message(), MESSAGE, b"the derivative for %s is not implemented (got an argument that requires grad). Use "
             b"detach() on it.", name)
    return NOT_IMPLEMENTED


register_kernel("adjoint", adjoint_kernel)
register_kernel("unknown_gradient", unknown_gradient_kernel)
register_kernel("linalg_check_phase", check_phase_kernel)
register_kernel("refuse_gradient", refuse_gradient_kernel)
register_kernel("linalg_lu_factor_ex", linalg_lu_factor_ex_kernel)
register_kernel("linalg_permute_rows", linalg_permute_rows_kernel)
register_kernel("linalg_solve_with", linalg_solve_with_kernel)
register_kernel("linalg_inv_ex", linalg_inv_ex_kernel)
register_kernel("linalg_solve_triangular", linalg_solve_triangular_kernel)
register_kernel("identity_like", identity_like_kernel)


# --------------------------------------------------------------------------------------------------------- linalg lstsq

cdef enum:
    NOT_FINITE = -1       # info of a matrix with nan or inf, which LAPACK must not get


cdef inline blas_scalar_t _real_scalar(double real) noexcept nogil:
    """Return a real number."""
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
    if task.flag:                         # gelss drops all values; gelsd uses the default instead
        memset(b, 0, rows * task.k * size)
        rank = 0
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
    task.flag = limit >= 1 and strcmp(driver, b"gelss") == 0
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
    """Return the largest singular value that counts as zero."""
    cdef double epsilon = DBL_EPSILON if real_of(task.dtype) == FLOAT64 else FLT_EPSILON
    cdef double relative = max(task.m, task.n) * epsilon
    if task.limits == NULL:
        return relative * largest
    return max(task.limits[2 * i], task.limits[2 * i + 1] * largest)


cdef int _pinv(matrix_batch_t *task, int64_t i, char *scratch) noexcept nogil:
    """a: the matrix, column-major, destroyed; b: its pseudo-inverse, row-major."""
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


# --------------------------------------------------------------------------------------------------- linalg determinant

# Determinants and their derivatives, also of singular matrices. The gradient is the (conjugated) matrix of cofactors:
# with A = U S V^H it is conj(d) U G V^H, where d = det(U) det(V^H) and G is the diagonal matrix of products of all
# singular values except one, so it needs no division; its derivative has the products of all except two (J. R. Magnus
# and H. Neudecker, Matrix Differential Calculus, section 8.3; N. J. Higham, What is the adjugate of a matrix?, 2020).

cdef inline blas_scalar_t _scalar(double real, double imag) noexcept nogil:
    """Return a complex number."""
    cdef blas_scalar_t number
    number.real, number.imag = real, imag
    return number


cdef blas_scalar_t _determinant(int dtype, const char *lu, const int32_t *pivots, int64_t n) noexcept nogil:
    """Compute the determinant from the LU factors."""
    cdef blas_scalar_t product = _scalar(1, 0)
    cdef int64_t i
    for i in range(n):
        product = times(product, number_at(dtype, lu, i * (n + 1)))
        if pivots[i] != i + 1:
            product.real, product.imag = -product.real, -product.imag
    return product


# ---- values

cdef int _det(matrix_batch_t *task, int64_t i, char *scratch) noexcept nogil:
    """a: the matrix, destroyed; b: the determinant, or its sign; c: the logarithm of its size, or NULL."""
    cdef int64_t n = task.n, j
    cdef char *a = task.a + i * n * n * itemsize(task.dtype)
    cdef int32_t *pivots = <int32_t *>scratch
    cdef blas_scalar_t number, sign = _scalar(1, 0)
    cdef double size, total = 0
    if n:
        getrf(task.dtype, 1, task.n, task.n, a, pivots, NULL)
    if task.c == NULL:
        put_number(task.dtype, task.b, i, _determinant(task.dtype, a, pivots, n))
        return 0
    for j in range(n):
        number = number_at(task.dtype, a, j * (n + 1))
        size = hypot(number.real, number.imag)
        if size == 0:
            sign, total = _scalar(0, 0), -INFINITY
            break
        sign = times(sign, _scalar(number.real / size, number.imag / size))
        if pivots[j] != j + 1:
            sign.real, sign.imag = -sign.real, -sign.imag
        total += log(size)
    put_number(task.dtype, task.b, i, sign)
    put_number(real_of(task.dtype), task.c, i, _scalar(total, 0))
    return 0


cdef int _determinants(const char *operation, bint logarithm, const value_t *arguments,
                       value_t *results) noexcept nogil:
    """Implement linalg_det and linalg_slogdet."""
    cdef array_t *input
    cdef array_t *made[3]
    cdef matrix_batch_t task
    cdef int64_t n
    cdef int status = square_argument(operation, b"A", &arguments[0], &input)
    if status != OK:
        return status
    memset(&task, 0, sizeof(task))
    memset(made, 0, sizeof(made))
    n = input.shape[input.ndim - 1]
    status = in_columns(input, &made[0]) or new_batch(input, 2, input.dtype, -1, -1, &made[1])
    if logarithm:
        status = status or new_batch(input, 2, real_of(input.dtype), -1, -1, &made[2])
    if status == OK:
        task.each, task.dtype, task.n, task.scratch = _det, input.dtype, <int>n, n * sizeof(int32_t)
        task.a, task.b, task.c = made[0].data, made[1].data, made[2].data if logarithm else NULL
        status = run_batch(&task, batch_count(input), <double>n * n * n)
    release(made[0])
    if status != OK:
        release(made[1])
        release(made[2])
        return status
    set_array(&results[0], made[1])
    if logarithm:
        set_array(&results[1], made[2])
    return OK


cdef int linalg_det_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """linalg_det(self)."""
    return _determinants(b"linalg.det", False, arguments, results)


cdef int linalg_slogdet_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """linalg_slogdet(self) -> sign, logabsdet."""
    return _determinants(b"linalg.slogdet", True, arguments, results)


# ---- derivatives

ctypedef struct decomposed_t:
    char *u               # rows are the left singular vectors
    char *s
    char *vh              # columns of V^H, one after the other
    char *own             # scratch memory for a matrix and the pivots
    int32_t *pivots
    char *rest
    int64_t rest_size

cdef int64_t _lay_out(decomposed_t *parts, int dtype, int n, char *scratch) noexcept nogil:
    """Divide the scratch memory; returns its size, and for NULL does nothing else."""
    cdef int64_t matrix = (<int64_t>n * n * itemsize(dtype) + 63) // 64 * 64
    cdef int64_t vector = (<int64_t>n * 8 + 63) // 64 * 64
    cdef int info = 0
    cdef int64_t used = 3 * matrix + 2 * vector
    if scratch == NULL:
        return used + gesdd(dtype, b"S", n, n, NULL, NULL, NULL, NULL, NULL, 0, &info)
    parts.u, parts.vh, parts.own = scratch, scratch + matrix, scratch + 2 * matrix
    parts.s = scratch + 3 * matrix
    parts.pivots = <int32_t *>(parts.s + vector)
    parts.rest = parts.s + 2 * vector
    return 0


cdef blas_scalar_t _decompose(matrix_batch_t *task, decomposed_t *parts, char *a) noexcept nogil:
    """Compute singular values and vectors of a column-major matrix, which is destroyed, and det(U) det(V^H)."""
    cdef int64_t nbytes = <int64_t>task.n * task.n * itemsize(task.dtype)
    cdef blas_scalar_t product
    cdef int info = 0
    gesdd(task.dtype, b"S", task.n, task.n, a, parts.s, parts.u, parts.vh, parts.rest,
          task.scratch - (parts.rest - parts.u), &info)
    memcpy(parts.own, parts.u, nbytes)
    getrf(task.dtype, 1, task.n, task.n, parts.own, parts.pivots, NULL)
    product = _determinant(task.dtype, parts.own, parts.pivots, task.n)
    memcpy(parts.own, parts.vh, nbytes)
    getrf(task.dtype, 1, task.n, task.n, parts.own, parts.pivots, NULL)
    return times(product, _determinant(task.dtype, parts.own, parts.pivots, task.n))


cdef int _cofactor(matrix_batch_t *task, int64_t i, char *scratch) noexcept nogil:
    """a: the matrix, column-major, destroyed; b: its cofactors, conjugated, row-major."""
    cdef int dtype = task.dtype
    cdef int64_t n = task.n, j, nbytes = n * n * itemsize(dtype)
    cdef char *a = task.a + i * nbytes
    cdef char *b = task.b + i * nbytes
    cdef decomposed_t parts
    cdef blas_scalar_t number, zero = _scalar(0, 0)
    cdef double least = INFINITY, most = 0, size, product
    _lay_out(&parts, dtype, task.n, scratch)
    if not all_finite(dtype, a, n * n):
        fill_nan(dtype, b, n * n)
        return 0
    memcpy(parts.own, a, nbytes)
    getrf(dtype, 1, task.n, task.n, parts.own, parts.pivots, NULL)
    for j in range(n):
        number = number_at(dtype, parts.own, j * (n + 1))
        size = hypot(number.real, number.imag)
        least, most = min(least, size), max(most, size)
    if least > 64 * n * most * (DBL_EPSILON if real_of(dtype) == FLOAT64 else FLT_EPSILON):
        # Well-conditioned: determinant times inverse. Column-major b is A^-1, row-major A^-T.
        number = _determinant(dtype, parts.own, parts.pivots, n)
        if isfinite(number.real) and isfinite(number.imag):
            set_identity(dtype, b, n, n)
            getrs(dtype, 1, b"N", task.n, task.n, parts.own, parts.pivots, b)
            scale(dtype, b, n * n, number)
            conjugate(dtype, b, n * n)
            return 0
    number = _decompose(task, &parts, a)
    product = 1
    for j in range(n):                                  # products of all singular values before the j-th ...
        put_number(real_of(dtype), parts.own, j, _scalar(product, 0))
        product *= number_at(real_of(dtype), parts.s, j).real
    product = 1
    for j in range(n - 1, -1, -1):                      # ... times those after it
        scale(dtype, parts.u + j * n * itemsize(dtype), n,
              _scalar(product * number_at(real_of(dtype), parts.own, j).real, 0))
        product *= number_at(real_of(dtype), parts.s, j).real
    gemm(dtype, True, True, n, n, n, _scalar(number.real, -number.imag), parts.u, n, parts.vh, n, zero, b, n)
    return 0


cdef int _cofactor_backward(matrix_batch_t *task, int64_t i, char *scratch) noexcept nogil:
    """a: the matrix in column order, destroyed; b: the gradient row after row, destroyed; c: the result."""
    cdef int dtype = task.dtype, real = real_of(task.dtype)
    cdef int64_t n = task.n, j, k, m, nbytes = n * n * itemsize(task.dtype)
    cdef char *a = task.a + i * nbytes
    cdef char *g = task.b + i * nbytes
    cdef char *c = task.c + i * nbytes
    cdef decomposed_t parts
    cdef blas_scalar_t phase, first, second
    cdef double before, between, after, product
    _lay_out(&parts, dtype, task.n, scratch)
    if not all_finite(dtype, a, n * n):
        fill_nan(dtype, c, n * n)
        return 0
    phase = _decompose(task, &parts, a)
    _rotate(&parts, dtype, n, _scalar(phase.real, -phase.imag), g, c)
    memset(c, 0, nbytes)
    before = 1
    for j in range(n):
        between = 1
        for k in range(j + 1, n):
            after = 1
            for m in range(k + 1, n):
                after *= number_at(real, parts.s, m).real
                if after == 0:
                    break
            product = before * between * after
            first, second = number_at(dtype, c, j * (n + 1)), number_at(dtype, g, k * (n + 1))
            put_number(dtype, c, j * (n + 1), _scalar(first.real + product * second.real,
                                                      first.imag + product * second.imag))
            first, second = number_at(dtype, c, k * (n + 1)), number_at(dtype, g, j * (n + 1))
            put_number(dtype, c, k * (n + 1), _scalar(first.real + product * second.real,
                                                      first.imag + product * second.imag))
            first, second = number_at(dtype, g, j * n + k), number_at(dtype, g, k * n + j)
            put_number(dtype, c, k * n + j, _scalar(-product * first.real, -product * first.imag))
            put_number(dtype, c, j * n + k, _scalar(-product * second.real, -product * second.imag))
            between *= number_at(real, parts.s, k).real
        before *= number_at(real, parts.s, j).real
    _rotate_back(&parts, dtype, n, c, g)
    return 0


cdef void _rotate(decomposed_t *parts, int dtype, int64_t n, blas_scalar_t factor, char *g, char *space) noexcept nogil:
    """Replace g by factor times the conjugate of U^H g V."""
    cdef blas_scalar_t zero = _scalar(0, 0), one = _scalar(1, 0)
    conjugate(dtype, g, n * n)
    gemm(dtype, False, False, n, n, n, one, parts.u, n, g, n, zero, space, n)
    gemm(dtype, False, False, n, n, n, factor, space, n, parts.vh, n, zero, g, n)


cdef void _rotate_back(decomposed_t *parts, int dtype, int64_t n, char *c, char *space) noexcept nogil:
    """Replace c by U c V^H."""
    cdef blas_scalar_t zero = _scalar(0, 0), one = _scalar(1, 0)
    gemm(dtype, False, True, n, n, n, one, c, n, parts.vh, n, zero, space, n)
    gemm(dtype, True, False, n, n, n, one, parts.u, n, space, n, zero, c, n)


cdef inline void _add_product(int dtype, char *c, int64_t at, double factor, const char *p, int64_t first,
                              const char *q, int64_t second) noexcept nogil:
    """c[at] += factor * p[first] * q[second]"""
    cdef blas_scalar_t number = number_at(dtype, c, at)
    cdef blas_scalar_t product = times(number_at(dtype, p, first), number_at(dtype, q, second))
    put_number(dtype, c, at, _scalar(number.real + factor * product.real, number.imag + factor * product.imag))


cdef int _cofactor_second(matrix_batch_t *task, int64_t number, char *scratch) noexcept nogil:
    """a: the matrix in column order; b, c: two directions row after row; all destroyed. d: the result."""
    cdef int dtype = task.dtype, real = real_of(task.dtype), term
    cdef int64_t n = task.n, first, second, third, m, i, j, k, nbytes = n * n * itemsize(task.dtype)
    cdef char *a = task.a + number * nbytes
    cdef char *p = task.b + number * nbytes
    cdef char *q = task.c + number * nbytes
    cdef char *d = task.d + number * nbytes
    cdef decomposed_t parts
    cdef blas_scalar_t phase
    cdef double w
    _lay_out(&parts, dtype, task.n, scratch)
    if not all_finite(dtype, a, n * n):
        fill_nan(dtype, d, n * n)
        return 0
    phase = _decompose(task, &parts, a)
    _rotate(&parts, dtype, n, _scalar(phase.real, -phase.imag), p, d)
    _rotate(&parts, dtype, n, _scalar(1, 0), q, d)
    memset(d, 0, nbytes)
    # Sum over pairs of three rows for p and q and the six permutations of the columns.
    for first in range(n):
        for second in range(first + 1, n):
            for third in range(second + 1, n):
                w = 1
                for m in range(n):
                    if m != first and m != second and m != third:
                        w *= number_at(real, parts.s, m).real
                if w == 0:
                    continue
                for term in range(6):
                    i = first if term < 2 else second if term < 4 else third
                    j = second if term == 0 or term == 4 else third if term == 1 or term == 2 else first
                    k = first + second + third - i - j
                    _add_product(dtype, d, k * n + k, w, p, i * n + i, q, j * n + j)
                    _add_product(dtype, d, k * n + k, -w, p, i * n + j, q, j * n + i)
                    _add_product(dtype, d, k * n + i, w, p, i * n + j, q, j * n + k)
                    _add_product(dtype, d, k * n + i, -w, p, i * n + k, q, j * n + j)
                    _add_product(dtype, d, k * n + j, w, p, i * n + k, q, j * n + i)
                    _add_product(dtype, d, k * n + j, -w, p, i * n + i, q, j * n + k)
    _rotate_back(&parts, dtype, n, d, q)
    return 0


cdef int linalg_cofactor_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """linalg_cofactor(self): the gradient of the determinant."""
    cdef array_t *input
    cdef array_t *made[2]
    cdef matrix_batch_t task
    cdef int status = square_argument(b"linalg.det", b"A", &arguments[0], &input)
    if status != OK:
        return status
    memset(&task, 0, sizeof(task))
    memset(made, 0, sizeof(made))
    status = in_columns(input, &made[0]) or new_batch(input, 0, input.dtype, -1, -1, &made[1])
    if status == OK and input.size:
        task.each, task.dtype, task.n = _cofactor, input.dtype, <int>input.shape[input.ndim - 1]
        task.a, task.b = made[0].data, made[1].data
        task.scratch = _lay_out(NULL, task.dtype, task.n, NULL)
        status = run_batch(&task, batch_count(input), 6.0 * task.n * task.n * task.n)
    release(made[0])
    if status != OK:
        release(made[1])
        return status
    return array_result(made[1], &results[0])


cdef int _derivative(const value_t *arguments, int directions, value_t *results) noexcept nogil:
    """Implement linalg_cofactor_backward (one direction) and linalg_cofactor_second (two)."""
    cdef array_t *gradients[2]
    cdef array_t *input
    cdef array_t *made[4]
    cdef matrix_batch_t task
    cdef int i, status = square_argument(b"linalg.det", b"A", &arguments[directions], &input)
    for i in range(directions):
        status = status or square_argument(b"linalg.det", b"grad", &arguments[i], &gradients[i])
        status = status or check_pair(b"linalg.det", gradients[i], input)
    if status != OK:
        return status
    memset(&task, 0, sizeof(task))
    memset(made, 0, sizeof(made))
    status = in_columns(input, &made[0]) or new_batch(input, 0, input.dtype, -1, -1, &made[1])
    for i in range(directions):
        made[2 + i] = as_copy(gradients[i], input.dtype)
        status = status or (OK if made[2 + i] != NULL else MEMORY_ERROR)
    if status == OK and input.size:
        task.dtype, task.n = input.dtype, <int>input.shape[input.ndim - 1]
        task.a, task.b = made[0].data, made[2].data
        if directions == 1:
            task.each, task.c = _cofactor_backward, made[1].data
        else:
            task.each, task.c, task.d = _cofactor_second, made[3].data, made[1].data
        task.scratch = _lay_out(NULL, task.dtype, task.n, NULL)
        status = run_batch(&task, batch_count(input), 30.0 * task.n * task.n * task.n * directions)
    release(made[0])
    release(made[2])
    release(made[3])
    if status != OK:
        release(made[1])
        return status
    return array_result(made[1], &results[0])


cdef int linalg_cofactor_backward_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """linalg_cofactor_backward(self, A): of the gradient `self` of the cofactors of A."""
    return _derivative(arguments, 1, results)


cdef int linalg_cofactor_second_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """linalg_cofactor_second(self, other, A): the third derivative of the determinant, in two directions."""
    return _derivative(arguments, 2, results)


register_kernel("linalg_det", linalg_det_kernel)
register_kernel("linalg_slogdet", linalg_slogdet_kernel)
register_kernel("linalg_cofactor", linalg_cofactor_kernel)
register_kernel("linalg_cofactor_backward", linalg_cofactor_backward_kernel)
register_kernel("linalg_cofactor_second", linalg_cofactor_second_kernel)


# ---------------------------------------------------------------------------------------------------- linalg indefinite

# L D L^T factors of indefinite symmetric and Hermitian matrices with row exchanges, and solutions with them.

cdef int _factor_indefinite(matrix_batch_t *task, int64_t i, char *scratch) noexcept nogil:
    """Overwrite the matrix with the unit lower factor and D, and zero the upper triangle."""
    cdef int64_t j, size = itemsize(task.dtype)
    cdef char *data = task.a + i * task.n * task.n * size
    cdef int info = 0
    sytrf(task.dtype, task.flag, task.n, data, task.pivots + i * task.n, scratch, task.scratch, &info)
    for j in range(1, task.n):
        memset(data + j * task.n * size, 0, j * size)
    return info


cdef int linalg_ldl_factor_ex_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """linalg_ldl_factor_ex(self, hermitian) -> LD, pivots, info."""
    cdef array_t *input
    cdef array_t *made[3]
    cdef matrix_batch_t task
    cdef int i, info = 0, status = square_argument(b"linalg.ldl_factor", b"A", &arguments[0], &input)
    if status != OK:
        return status
    memset(&task, 0, sizeof(task))
    memset(made, 0, sizeof(made))
    task.n = <int>input.shape[input.ndim - 1]
    status = in_columns(input, &made[0]) or new_batch(input, 2, INT32, task.n, -1, &made[1])
    status = status or new_zeros(b"linalg.ldl_factor", INT32, input.ndim - 2, input.shape, &made[2])
    if status == OK and input.size:
        task.each, task.dtype, task.flag = _factor_indefinite, input.dtype, is_true(&arguments[1])
        task.a, task.pivots, task.info = made[0].data, <int32_t *>made[1].data, <int32_t *>made[2].data
        task.scratch = sytrf(task.dtype, task.flag, task.n, NULL, NULL, NULL, 0, &info)
        status = run_batch(&task, batch_count(input), <double>task.n * task.n * task.n / 3)
    status = status or exchange_axes(&made[0])
    if status != OK:
        release_all(3, made)
        return status
    for i in range(3):
        set_array(&results[i], made[i])
    return OK


cdef int _solve_indefinite(matrix_batch_t *task, int64_t i, char *scratch) noexcept nogil:
    """Solve for one matrix of right-hand sides."""
    cdef int64_t size = itemsize(task.dtype)
    sytrs(task.dtype, task.flag, task.n, task.k, task.a + i * task.n * task.n * size, task.pivots + i * task.n,
          task.b + i * task.n * task.k * size)
    return 0


cdef bint _pivots_fit(const matrix_batch_t *task, int64_t matrices) noexcept nogil:
    """Return whether the pivots are valid: row numbers, or equal negative pairs for 2 x 2 blocks of D."""
    cdef int64_t i, row
    cdef int32_t pivot
    for i in range(matrices):
        row = 0
        while row < task.n:
            pivot = task.pivots[i * task.n + row]
            if pivot < 0 and (row + 1 == task.n or task.pivots[i * task.n + row + 1] != pivot):
                return False
            if pivot == 0 or pivot > task.n or pivot < -task.n:
                return False
            row += 1 + (pivot < 0)
    return True


cdef int linalg_ldl_solve_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """linalg_ldl_solve(self, pivots, B, hermitian)."""
    cdef array_t *factors
    cdef array_t *pivots
    cdef array_t *other
    cdef array_t *made[3]
    cdef matrix_batch_t task
    cdef int status = square_argument(b"linalg.ldl_solve", b"LD", &arguments[0], &factors)
    status = status or array_argument(b"linalg.ldl_solve", b"pivots", &arguments[1], &pivots)
    status = status or matrix_argument(b"linalg.ldl_solve", b"B", &arguments[2], &other)
    status = status or check_pair(b"linalg.ldl_solve", factors, other)
    if status != OK:
        return status
    memset(&task, 0, sizeof(task))
    memset(made, 0, sizeof(made))
    task.n, task.k = <int>factors.shape[factors.ndim - 1], <int>other.shape[other.ndim - 1]
    if other.shape[other.ndim - 2] != task.n or pivots.dtype != INT32 or pivots.size * task.n != factors.size:
        snprintf(message(), MESSAGE, b"linalg.ldl_solve: shapes do not match (got %s for LD, %s for pivots which must "
                 b"be int32, and %s for B).", shape_text(factors), shape_text(pivots), shape_text(other))
        return RUNTIME_ERROR
    made[0] = transposed(factors)
    if made[0] != NULL:
        made[1] = as_contiguous(made[0], -1)
        release(made[0])
    made[0] = as_contiguous(pivots, -1)
    status = in_columns(other, &made[2])
    if made[0] == NULL or made[1] == NULL:
        status = MEMORY_ERROR
    if status == OK and other.size:
        task.each, task.dtype, task.flag = _solve_indefinite, other.dtype, is_true(&arguments[3])
        task.a, task.b, task.pivots = made[1].data, made[2].data, <int32_t *>made[0].data
        if _pivots_fit(&task, batch_count(factors)):
            status = run_batch(&task, batch_count(other), 2.0 * task.n * task.n * task.k)
        else:
            snprintf(message(), MESSAGE, b"linalg.ldl_solve: pivots must be what ldl_factor gave (got some that name "
                     b"no row of %d).", task.n)
            status = RUNTIME_ERROR
    release(made[0])
    release(made[1])
    if status != OK:
        release(made[2])
        return status
    return transposed_result(made[2], &results[0])


register_kernel("linalg_ldl_factor_ex", linalg_ldl_factor_ex_kernel)
register_kernel("linalg_ldl_solve", linalg_ldl_solve_kernel)
