"""Systems of linear equations: triangular factors, solutions with them, inverses."""

from libc.math cimport fabs
from libc.stdint cimport int32_t, int64_t
from libc.stdio cimport snprintf
from libc.string cimport memset
from cygrad._core.arrays.array cimport array_t, release, retain, shape_text
from cygrad._core.arrays.dtype cimport COMPLEX64, COMPLEX128, INT32, is_complex, itemsize
from cygrad._core.arrays.value cimport is_true, register_kernel, set_array, value_t
from cygrad._core.elementwise.copying cimport as_contiguous, as_copy
from cygrad._core.kernels.arguments cimport array_argument, array_result, new_zeros, text_argument
from cygrad._core.kernels.linalg.lapack cimport getrf, getrs, trsm
from cygrad._core.kernels.linalg.lapack_batches cimport (
    batch_count, check_pair, in_columns, matrix_argument, matrix_batch_t, new_batch, release_all, run_batch,
    square_argument, turn, turned, turned_result,
)
from cygrad._core.kernels.linalg.matrix_elements cimport set_identity
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, NOT_IMPLEMENTED, OK, RUNTIME_ERROR, message


# ---- factors

cdef int _factor(matrix_batch_t *task, int64_t i, char *scratch) noexcept nogil:
    """Triangular factors in the place of the matrix."""
    return getrf(task.dtype, task.m, task.n, task.a + i * task.m * task.n * itemsize(task.dtype),
                 task.pivots + i * min(task.m, task.n))


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
        task.a, task.pivots, task.info = made[0].data, <int32_t *>made[1].data, <int32_t *>made[2].data
        status = run_batch(&task, batch_count(input), <double>m * n * min(m, n))
    status = status or turn(&made[0])
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
    """Pivots of the matrices of a batch: int32, at most one for each row."""
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
    """One matrix of right-hand sides, with factors that are there."""
    cdef int64_t size = itemsize(task.dtype)
    getrs(task.dtype, task.trans, task.n, task.k, task.a + i * task.n * task.n * size, task.pivots + i * task.n,
          task.b + i * task.n * task.k * size)
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
    made[0] = turned(factors)
    if made[0] != NULL:
        made[1] = as_contiguous(made[0], -1)
        release(made[0])
    made[0] = as_contiguous(pivots, -1)
    status = in_columns(other, &made[2])
    if made[0] == NULL or made[1] == NULL:
        status = MEMORY_ERROR
    if status == OK and other.size:
        task.each, task.dtype = _solve, other.dtype
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
    return turned_result(made[2], &results[0])


cdef int _invert(matrix_batch_t *task, int64_t i, char *scratch) noexcept nogil:
    """The inverse, by the factors."""
    cdef int64_t at = i * task.n * task.n * itemsize(task.dtype)
    cdef int info = getrf(task.dtype, task.n, task.n, task.a + at, <int32_t *>scratch)
    set_identity(task.dtype, task.b + at, task.n, task.n)
    getrs(task.dtype, b"N", task.n, task.n, task.a + at, <int32_t *>scratch, task.b + at)
    return info


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
        task.each, task.dtype, task.n, task.scratch = _invert, input.dtype, <int>n, n * sizeof(int)
        task.a, task.b, task.info = made[0].data, made[1].data, <int32_t *>made[2].data
        status = run_batch(&task, batch_count(input), 3.0 * n * n * n)
    status = status or turn(&made[1])
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
    """One matrix of right-hand sides; `m` is the size of the triangle, `n` and `k` are the sizes of B."""
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
    columns = turned(input)
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
    return turned_result(copy, &results[0])


cdef int identity_like_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """identity_like(self): for each matrix one with ones on the diagonal and zeros elsewhere."""
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
    """adjoint(self): each matrix transposed and conjugated, in new memory."""
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
    """linalg_check_phase(self, other, operation): `self`, if the diagonal of the sum of both is nearly real."""
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
    """refuse_gradient(self, text): an error."""
    cdef const char *text
    cdef int status = text_argument(b"backward", b"text", &arguments[1], &text)
    if status != OK:
        return status
    snprintf(message(), MESSAGE, b"%s", text)
    return RUNTIME_ERROR


cdef int unknown_gradient_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """unknown_gradient(self, name): an error."""
    cdef const char *name
    cdef int status = text_argument(b"backward", b"name", &arguments[1], &name)
    if status != OK:
        return status
    snprintf(message(), MESSAGE, b"%s: the derivative is not implemented (got an argument that requires grad). Use "
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
