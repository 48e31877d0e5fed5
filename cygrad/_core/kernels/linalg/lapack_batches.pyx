"""
Batches of matrices for LAPACK: checked arguments, copies in column order, and parallel loops over matrices.

LAPACK works in place on column-major matrices. So an operand is copied once, transposed by its strides, and a result is
a view of LAPACK's output with the last two dimensions exchanged, without a second copy.
"""

from libc.math cimport isfinite
from libc.stdint cimport INT32_MAX, int64_t
from libc.stdio cimport snprintf
from libc.stdlib cimport free, malloc
from cygrad._core.arrays.array cimport MAX_DIMS, array_empty, array_t, array_view, release, shape_text
from cygrad._core.arrays.dtype cimport COMPLEX64, COMPLEX128, FLOAT64, dtype_name, is_differentiable
from cygrad._core.arrays.value cimport value_t
from cygrad._core.elementwise.copying cimport as_copy
from cygrad._core.kernels.arguments cimport array_argument, array_result
from cygrad._core.memory.atomic cimport atomic_store
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, OK, RUNTIME_ERROR, message
from cygrad._core.threads.parallel cimport parallel_for

# Operations that are worth a piece of work for one thread.
cdef double PIECE = 60000.0


cdef int matrix_argument(const char *operation, const char *name, const value_t *value, array_t **array) noexcept nogil:
    cdef array_t *found
    cdef int status = array_argument(operation, name, value, &found)
    if status != OK:
        return status
    if found.ndim < 2:
        snprintf(message(), MESSAGE, b"%s: The input tensor %s must have at least 2 dimensions (got shape %s).",
                 operation, name, shape_text(found))
        return RUNTIME_ERROR
    if not is_differentiable(found.dtype):
        snprintf(message(), MESSAGE, b"%s: Expected a floating point or complex tensor as %s (got %s). Convert it with "
                 b"to().", operation, name, dtype_name(found.dtype))
        return RUNTIME_ERROR
    if found.shape[found.ndim - 1] >= INT32_MAX or found.shape[found.ndim - 2] >= INT32_MAX:
        snprintf(message(), MESSAGE, b"%s: the matrices are too large (got shape %s, expected sizes below 2147483647).",
                 operation, shape_text(found))
        return RUNTIME_ERROR
    array[0] = found
    return OK


cdef int square_argument(const char *operation, const char *name, const value_t *value, array_t **array) noexcept nogil:
    """A tensor of square matrices."""
    cdef array_t *found
    cdef int status = matrix_argument(operation, name, value, array)
    if status != OK:
        return status
    found = array[0]
    if found.shape[found.ndim - 1] != found.shape[found.ndim - 2]:
        snprintf(message(), MESSAGE, b"%s: %s must be batches of square matrices, but they are %lld by %lld matrices "
                 b"(got shape %s).", operation, name, <long long>found.shape[found.ndim - 2],
                 <long long>found.shape[found.ndim - 1], shape_text(found))
        return RUNTIME_ERROR
    return OK


cdef int check_pair(const char *operation, const array_t *a, const array_t *b) noexcept nogil:
    """One dtype, and the same leading dimensions."""
    cdef int i
    cdef bint fit = a.ndim == b.ndim
    if a.dtype != b.dtype:
        snprintf(message(), MESSAGE, b"%s: Expected both operands to have the same dtype (got %s and %s).", operation,
                 dtype_name(a.dtype), dtype_name(b.dtype))
        return RUNTIME_ERROR
    if fit:
        for i in range(a.ndim - 2):
            fit = fit and a.shape[i] == b.shape[i]
    if not fit:
        snprintf(message(), MESSAGE, b"%s: the operands must have the same leading dimensions (got shapes %s and %s).",
                 operation, shape_text(a), shape_text(b))
        return RUNTIME_ERROR
    return OK


cdef int64_t batch_count(const array_t *array) noexcept nogil:
    cdef int64_t count = 1
    cdef int i
    for i in range(array.ndim - 2):
        count *= array.shape[i]
    return count


cdef int new_batch(const array_t *like, int drop, int dtype, int64_t rows, int64_t columns,
                   array_t **array) noexcept nogil:
    cdef int64_t[MAX_DIMS + 2] shape
    cdef int i, ndim = like.ndim - drop
    for i in range(ndim):
        shape[i] = like.shape[i]
    if rows >= 0:
        shape[ndim] = rows
        ndim += 1
    if columns >= 0:
        shape[ndim] = columns
        ndim += 1
    array[0] = array_empty(dtype, ndim, shape)
    return OK if array[0] != NULL else MEMORY_ERROR


cdef array_t *turned(array_t *array) noexcept nogil:
    cdef int64_t[MAX_DIMS] shape
    cdef int64_t[MAX_DIMS] strides
    cdef int i, n = array.ndim
    for i in range(n):
        shape[i], strides[i] = array.shape[i], array.strides[i]
    shape[n - 1], shape[n - 2] = shape[n - 2], shape[n - 1]
    strides[n - 1], strides[n - 2] = strides[n - 2], strides[n - 1]
    if array.size == 0:
        return array_empty(array.dtype, n, shape)
    return array_view(array, array.dtype, n, shape, strides, 0)


cdef int in_columns(array_t *array, array_t **copy) noexcept nogil:
    """A copy in column order."""
    cdef array_t *view = turned(array)
    copy[0] = NULL
    if view == NULL:
        return MEMORY_ERROR
    copy[0] = as_copy(view, view.dtype)
    release(view)
    return OK if copy[0] != NULL else MEMORY_ERROR


cdef int turn(array_t **columns) noexcept nogil:
    """Return LAPACK's output as rows and columns."""
    cdef array_t *view = turned(columns[0])
    release(columns[0])
    columns[0] = view
    return OK if view != NULL else MEMORY_ERROR


cdef int turned_result(array_t *columns, value_t *result) noexcept nogil:
    """The same as a result."""
    cdef array_t *view = turned(columns)
    release(columns)
    return array_result(view, result)


cdef void _run_piece(void *context, int64_t begin, int64_t end) noexcept nogil:
    """The matrices from begin to end, one after the other in one scratch memory."""
    cdef matrix_batch_t *task = <matrix_batch_t *>context
    cdef char *scratch = NULL
    cdef int64_t i
    cdef int info
    if task.scratch:
        scratch = <char *>malloc(task.scratch)
        if scratch == NULL:
            atomic_store(&task.failed, <int64_t>1)
            return
    for i in range(begin, end):
        info = task.each(task, i, scratch)
        if task.info != NULL:
            task.info[i] = info
    if scratch != NULL:
        free(scratch)


cdef int run_batch(matrix_batch_t *task, int64_t count, double work) noexcept nogil:
    """All matrices, in pieces that depend on their size alone."""
    cdef int64_t grain = 1
    task.failed = 0
    if work < PIECE:
        grain = <int64_t>(PIECE / (work if work > 100 else 100)) + 1
    parallel_for(_run_piece, task, count, grain)
    if task.failed:
        snprintf(message(), MESSAGE, b"out of memory for a scratch of %lld bytes", <long long>task.scratch)
        return MEMORY_ERROR
    return OK


cdef void release_all(int count, array_t **arrays) noexcept nogil:
    """Let go of all of them."""
    cdef int i
    for i in range(count):
        release(arrays[i])


cdef bint all_finite(int dtype, const char *data, int64_t count) noexcept nogil:
    """Are all numbers finite? Both parts of complex ones."""
    cdef int64_t i
    if dtype == COMPLEX64 or dtype == COMPLEX128:
        count *= 2
    if dtype == FLOAT64 or dtype == COMPLEX128:
        for i in range(count):
            if not isfinite((<const double *>data)[i]):
                return False
    else:
        for i in range(count):
            if not isfinite((<const float *>data)[i]):
                return False
    return True
