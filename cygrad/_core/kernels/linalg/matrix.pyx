"""Operands of products: arrays seen as batches of matrices, laid out as BLAS can read them."""

from libc.stdint cimport int64_t
from cygrad._core.arrays.array cimport MAX_DIMS, array_t, array_view, release, retain
from cygrad._core.elementwise.copying cimport as_contiguous
from cygrad._core.kernels.linalg.blas cimport BLAS_MAX
from cygrad._core.memory.errors cimport MEMORY_ERROR, OK


cdef inline matrix_t _bare(array_t *array, int batch_ndim) noexcept nogil:
    """A matrix without rows and columns yet."""
    cdef matrix_t matrix
    matrix.array = retain(array)
    matrix.data = array.data
    matrix.rows = matrix.columns = 1
    matrix.row_step = matrix.column_step = 1
    matrix.batch_ndim = batch_ndim
    matrix.batch_shape = array.shape
    matrix.batch_steps = array.strides
    matrix.transposed = False
    matrix.leading = 0
    return matrix


cdef matrix_t matrix_of(array_t *array) noexcept nogil:
    cdef matrix_t matrix = _bare(array, array.ndim - 2)
    matrix.rows = array.shape[array.ndim - 2]
    matrix.columns = array.shape[array.ndim - 1]
    matrix.row_step = array.strides[array.ndim - 2]
    matrix.column_step = array.strides[array.ndim - 1]
    return matrix


cdef matrix_t row_of(array_t *vector) noexcept nogil:
    """A vector as a matrix of one row."""
    cdef matrix_t matrix = _bare(vector, 0)
    matrix.columns = vector.shape[0]
    matrix.column_step = vector.strides[0]
    return matrix


cdef matrix_t column_of(array_t *vector) noexcept nogil:
    """A vector as a matrix of one column."""
    cdef matrix_t matrix = _bare(vector, 0)
    matrix.rows = vector.shape[0]
    matrix.row_step = vector.strides[0]
    return matrix


cdef void transpose_matrix(matrix_t *matrix) noexcept nogil:
    """Exchange rows and columns."""
    matrix.rows, matrix.columns = matrix.columns, matrix.rows
    matrix.row_step, matrix.column_step = matrix.column_step, matrix.row_step


cdef bint fold_rows(matrix_t *matrix) noexcept nogil:
    cdef int64_t rows = matrix.rows, step = matrix.row_step
    cdef int i
    for i in range(matrix.batch_ndim - 1, -1, -1):
        if matrix.batch_shape[i] == 1:
            continue
        if rows == 1:
            step = matrix.batch_steps[i]
        elif matrix.array.size and matrix.batch_steps[i] != step * rows:
            return False  # without elements the strides are meaningless, in a contiguous array either
        rows *= matrix.batch_shape[i]
    matrix.rows, matrix.row_step = rows, step
    matrix.batch_ndim = 0
    return True


cdef inline bint _readable(int64_t columns, int64_t column_step, int64_t rows, int64_t row_step) noexcept nogil:
    """Are these contiguous rows, each right after the other?"""
    return ((column_step == 1 or columns <= 1)
            and (rows <= 1 or (row_step >= (columns if columns > 1 else 1) and row_step <= BLAS_MAX)))


cdef int _copy_matrix(matrix_t *matrix) noexcept nogil:
    """Put a row-major copy in the place of the matrix."""
    cdef int64_t[MAX_DIMS] shape
    cdef int64_t[MAX_DIMS] steps
    cdef array_t *array = matrix.array
    cdef array_t *view
    cdef array_t *copy
    cdef int i, n = matrix.batch_ndim
    for i in range(n):
        shape[i] = matrix.batch_shape[i]
        steps[i] = matrix.batch_steps[i]
    shape[n], steps[n] = matrix.rows, matrix.row_step
    shape[n + 1], steps[n + 1] = matrix.columns, matrix.column_step
    view = array_view(array, array.dtype, matrix.batch_ndim + 2, shape, steps, 0)
    if view == NULL:
        return MEMORY_ERROR
    copy = as_contiguous(view, -1)
    release(view)
    if copy == NULL:
        return MEMORY_ERROR
    matrix[0] = matrix_of(copy)
    release(copy)
    release(array)
    return OK


cdef int lay_out(matrix_t *matrix, bint row_major) noexcept nogil:
    cdef int64_t rows = matrix.rows, columns = matrix.columns
    cdef int status
    if not _readable(columns, matrix.column_step, rows, matrix.row_step):
        if not row_major and _readable(rows, matrix.row_step, columns, matrix.column_step):
            matrix.transposed = True
            matrix.leading = matrix.column_step if columns > 1 else rows
            return OK
        status = _copy_matrix(matrix)
        if status != OK:
            return status
    matrix.transposed = False
    matrix.leading = matrix.row_step if rows > 1 else columns
    return OK


cdef void release_matrix(matrix_t *matrix) noexcept nogil:
    """Let go of the array."""
    release(matrix.array)
    matrix.array = NULL
