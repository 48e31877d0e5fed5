"""Symmetric and Hermitian matrices that need not be definite: L D L^T with exchanges of rows, and solutions with it."""

from libc.stdint cimport int32_t, int64_t
from libc.stdio cimport snprintf
from libc.string cimport memset
from cygrad._core.arrays.array cimport array_t, release, shape_text
from cygrad._core.arrays.dtype cimport INT32, itemsize
from cygrad._core.arrays.value cimport is_true, register_kernel, set_array, value_t
from cygrad._core.elementwise.copying cimport as_contiguous
from cygrad._core.kernels.arguments cimport array_argument, new_zeros
from cygrad._core.kernels.linalg.lapack cimport sytrf, sytrs
from cygrad._core.kernels.linalg.lapack_batches cimport (
    batch_count, check_pair, in_columns, matrix_argument, matrix_batch_t, new_batch, release_all, run_batch,
    square_argument, turn, turned, turned_result,
)
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, OK, RUNTIME_ERROR, message


cdef int _factor(matrix_batch_t *task, int64_t i, char *scratch) noexcept nogil:
    """Write the unit lower factor and D over the matrix; the upper triangle becomes zero."""
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
        task.each, task.dtype, task.flag = _factor, input.dtype, is_true(&arguments[1])
        task.a, task.pivots, task.info = made[0].data, <int32_t *>made[1].data, <int32_t *>made[2].data
        task.scratch = sytrf(task.dtype, task.flag, task.n, NULL, NULL, NULL, 0, &info)
        status = run_batch(&task, batch_count(input), <double>task.n * task.n * task.n / 3)
    status = status or turn(&made[0])
    if status != OK:
        release_all(3, made)
        return status
    for i in range(3):
        set_array(&results[i], made[i])
    return OK


cdef int _solve(matrix_batch_t *task, int64_t i, char *scratch) noexcept nogil:
    """One matrix of right-hand sides."""
    cdef int64_t size = itemsize(task.dtype)
    sytrs(task.dtype, task.flag, task.n, task.k, task.a + i * task.n * task.n * size, task.pivots + i * task.n,
          task.b + i * task.n * task.k * size)
    return 0


cdef bint _pivots_fit(const matrix_batch_t *task, int64_t matrices) noexcept nogil:
    """Does each name a row, or do two neighbors name one by its negative: a block of D of two rows?"""
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
        snprintf(message(), MESSAGE, b"linalg.ldl_solve: shapes do not fit (got %s for LD, %s for pivots which must be "
                 b"int32, and %s for B).", shape_text(factors), shape_text(pivots), shape_text(other))
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
        task.each, task.dtype, task.flag = _solve, other.dtype, is_true(&arguments[3])
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
    return turned_result(made[2], &results[0])


register_kernel("linalg_ldl_factor_ex", linalg_ldl_factor_ex_kernel)
register_kernel("linalg_ldl_solve", linalg_ldl_solve_kernel)
