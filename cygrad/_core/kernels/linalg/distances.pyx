"""
cdist, pdist and their gradient, and the elements of a square matrix above its diagonal.

Differences are not stored. Rows are independent, so results are bit-identical for any number of threads.
"""

from libc.math cimport INFINITY
from libc.stdint cimport int64_t
from libc.stdio cimport snprintf
from libc.string cimport memcpy, memset
from cygrad._core.arrays.array cimport (
    MAX_DIMS, array_t, array_view, as_real, register_kernel, release, shape_text, value_t,
)
from cygrad._core.arrays.dtype cimport FLOAT64, dtype_name, is_floating, itemsize
from cygrad._core.elementwise.copying cimport as_contiguous
from cygrad._core.kernels.arguments cimport array_argument, array_result, integer_argument, new_array, new_zeros
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, NOT_IMPLEMENTED, OK, RUNTIME_ERROR, message
from cygrad._core.threads.grain cimport MOVED, rows_per_chunk
from cygrad._core.threads.parallel cimport parallel_for

cdef extern from "kernels/linalg/distances.h" nogil:
    enum:
        MIRRORED
        FIRST
        SECOND
        HIGHEST
    void (*distances_of[2])(const void *x, const void *transposed, void *out, int64_t start, int64_t k, int64_t m,
                            bint order)
    void (*distance_gradient[2])(const void *x, const void *transposed, const void *weights, const void *distances,
                                 void *out, int64_t k, int64_t m, bint order)
    void (*mirror_triangle[2])(void *square, int64_t n, int64_t begin, int64_t end)

ctypedef struct distance_arguments_t:
    array_t *x            # (..., n, m), contiguous as all of them
    array_t *transposed       # (..., m, k): the other vectors
    array_t *weights      # (..., n, k); NULL for distances
    array_t *distances    # (..., n, k)
    array_t *gradient     # (..., n, m); NULL for distances
    int64_t n
    int64_t k
    int64_t m
    bint order
    bint within           # both operands are the same: compute half of the distances


cdef void _rows(void *context, int64_t begin, int64_t end) noexcept nogil:
    """Process vectors begin..end of x, numbered through the batch."""
    cdef distance_arguments_t *work = <distance_arguments_t *>context
    cdef int64_t size = itemsize(work.x.dtype), row, n = work.n, k = work.k, m = work.m
    cdef int double_precision = work.x.dtype == FLOAT64
    cdef char *x
    cdef char *transposed
    for row in range(begin, end):
        x = work.x.data + row * m * size
        transposed = work.transposed.data + row // n * k * m * size
        if work.gradient == NULL:
            distances_of[double_precision](x, transposed, work.distances.data + row * k * size,
                                           row % n if work.within else 0, k, m, work.order)
        else:
            distance_gradient[double_precision](x, transposed, work.weights.data + row * k * size,
                                                work.distances.data + row * k * size,
                                                work.gradient.data + row * m * size, k, m, work.order)


cdef void _mirror(void *context, int64_t begin, int64_t end) noexcept nogil:
    """Mirror blocks of rows begin..end, numbered through the batch."""
    cdef distance_arguments_t *work = <distance_arguments_t *>context
    cdef int64_t block, first, n = work.n, blocks = (n + MIRRORED - 1) // MIRRORED
    for block in range(begin, end):
        first = block % blocks * MIRRORED
        mirror_triangle[work.x.dtype == FLOAT64](
            work.distances.data + block // blocks * n * n * itemsize(work.x.dtype), n, first,
            min(first + MIRRORED, n))


cdef int _read(distance_arguments_t *work, const value_t *x_value, const value_t *y_value, const value_t *p,
               array_t **x, array_t **y) noexcept nogil:
    """Read both operands and the sizes."""
    cdef int i, status = array_argument(b"cdist", b"x1", x_value, x)
    cdef bint fits
    status = status or array_argument(b"cdist", b"x2", y_value, y)
    if status != OK:
        return status
    memset(work, 0, sizeof(distance_arguments_t))
    if not is_floating(x[0].dtype) or y[0].dtype != x[0].dtype:
        snprintf(message(), MESSAGE, b"cdist: expected two tensors of one floating dtype (got %s and %s).",
                 dtype_name(x[0].dtype), dtype_name(y[0].dtype))
        return NOT_IMPLEMENTED
    fits = x[0].ndim == y[0].ndim and x[0].ndim >= 2
    for i in range(x[0].ndim if fits else 0):
        fits = fits and (i == x[0].ndim - 2 or x[0].shape[i] == y[0].shape[i])
    work.order = FIRST if as_real(p) == 1 else SECOND if as_real(p) == 2 else HIGHEST
    if not fits or (work.order == HIGHEST and as_real(p) != INFINITY):
        snprintf(message(), MESSAGE, b"cdist: the vectors do not match (got shapes %s and %s and p = %g).",
                 shape_text(x[0]), shape_text(y[0]), as_real(p))
        return RUNTIME_ERROR
    work.n, work.m = x[0].shape[x[0].ndim - 2], x[0].shape[x[0].ndim - 1]
    work.k = y[0].shape[y[0].ndim - 2]
    return OK


cdef int _finish(distance_arguments_t *work, int status, const array_t *result) noexcept nogil:
    """Compute unless `status` is an error, and release the operands."""
    cdef int64_t vectors, each = work.k * work.m
    if status == OK and (work.x == NULL or work.transposed == NULL):
        status = MEMORY_ERROR
    if status == OK and result.size:
        vectors = result.size // result.shape[result.ndim - 1]
        parallel_for(_rows, work, vectors, rows_per_chunk(each, MOVED))
        if work.within:
            parallel_for(_mirror, work, vectors // work.n * ((work.n + MIRRORED - 1) // MIRRORED),
                         rows_per_chunk(MIRRORED * work.n, MOVED))
    release(work.x)
    release(work.transposed)
    return status


cdef array_t *_transposed(array_t *array) noexcept nogil:
    """Copy contiguously with the last two dimensions exchanged."""
    cdef int64_t[MAX_DIMS] shape
    cdef int64_t[MAX_DIMS] strides
    cdef int i, last = array.ndim - 1
    cdef array_t *view
    cdef array_t *copy
    for i in range(array.ndim):
        shape[i], strides[i] = array.shape[i], array.strides[i]
    shape[last], shape[last - 1] = shape[last - 1], shape[last]
    strides[last], strides[last - 1] = strides[last - 1], strides[last]
    view = array_view(array, array.dtype, array.ndim, shape, strides, 0)
    if view == NULL:
        return NULL
    copy = as_contiguous(view, -1)
    release(view)
    return copy


cdef int _distances(const value_t *arguments, value_t *results, bint within) noexcept nogil:
    """Compute distances from (x, y, p); `within`: x and y are the same."""
    cdef distance_arguments_t work
    cdef array_t *x
    cdef array_t *y
    cdef int64_t[MAX_DIMS] shape
    cdef int i, status = _read(&work, &arguments[0], &arguments[1], &arguments[2], &x, &y)
    if status != OK:
        return status
    for i in range(x.ndim - 1):
        shape[i] = x.shape[i]
    shape[x.ndim - 1] = work.k
    status = new_array(b"cdist", x.dtype, x.ndim, shape, &work.distances)
    if status != OK:
        return status
    work.within = within
    work.x, work.transposed = as_contiguous(x, -1), _transposed(y)
    status = _finish(&work, status, work.distances)
    if status != OK:
        release(work.distances)
        return status
    return array_result(work.distances, &results[0])


cdef int distances_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """distances(x, y, p)."""
    return _distances(arguments, results, False)


cdef int distances_within_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """distances_within(x, p)."""
    cdef value_t given[3]
    given[0], given[1], given[2] = arguments[0], arguments[0], arguments[1]
    return _distances(given, results, True)


cdef int _weights(const value_t *value, const array_t *like, int64_t k, array_t **contiguous) noexcept nogil:
    """Read an array with a number for each pair."""
    cdef array_t *array
    cdef int i, status = array_argument(b"cdist", b"the gradient", value, &array)
    cdef bint fits
    if status != OK:
        return status
    fits = array.ndim == like.ndim and array.dtype == like.dtype and array.shape[array.ndim - 1] == k
    for i in range(array.ndim - 1):
        fits = fits and array.shape[i] == like.shape[i]
    if not fits:
        snprintf(message(), MESSAGE, b"cdist: the gradient does not match the vectors (got shapes %s and %s).",
                 shape_text(array), shape_text(like))
        return RUNTIME_ERROR
    contiguous[0] = as_contiguous(array, -1)
    return OK if contiguous[0] != NULL else MEMORY_ERROR


cdef int distances_backward_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """distances_backward(weights, x, y, distances, p)."""
    cdef distance_arguments_t work
    cdef array_t *x
    cdef array_t *y
    cdef int status = _read(&work, &arguments[1], &arguments[2], &arguments[4], &x, &y)
    if status != OK:
        return status
    status = _weights(&arguments[0], x, work.k, &work.weights)
    status = status or _weights(&arguments[3], x, work.k, &work.distances)
    status = status or new_array(b"cdist", x.dtype, x.ndim, x.shape, &work.gradient)
    work.x, work.transposed = as_contiguous(x, -1), _transposed(y)
    status = _finish(&work, status, work.gradient)
    release(work.weights)
    release(work.distances)
    if status != OK:
        release(work.gradient)
        return status
    return array_result(work.gradient, &results[0])


# ---- pairs of different vectors

cdef void _copy_above(char *square, char *part, int64_t n, int64_t size, bint back) noexcept nogil:
    """Copy the upper triangle row by row, in one direction or the other."""
    cdef int64_t i, count
    for i in range(n):
        count = (n - i - 1) * size
        if back:
            memcpy(square + (i * n + i + 1) * size, part, count)
        else:
            memcpy(part, square + (i * n + i + 1) * size, count)
        part += count


cdef int above_diagonal_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """above_diagonal(self): the elements above the diagonal of a square matrix, row by row."""
    cdef array_t *self
    cdef array_t *square
    cdef array_t *part = NULL
    cdef int64_t n, count
    cdef int status = array_argument(b"pdist", b"input", &arguments[0], &self)
    if status != OK:
        return status
    if self.ndim != 2 or self.shape[0] != self.shape[1]:
        snprintf(message(), MESSAGE, b"pdist: expected a square matrix (got shape %s).", shape_text(self))
        return RUNTIME_ERROR
    n = self.shape[0]
    count = n * (n - 1) // 2
    square = as_contiguous(self, -1)
    if square == NULL:
        return MEMORY_ERROR
    status = new_array(b"pdist", self.dtype, 1, &count, &part)
    if status == OK:
        _copy_above(square.data, part.data, n, itemsize(self.dtype), False)
    release(square)
    return array_result(part, &results[0]) if status == OK else status


cdef int above_diagonal_backward_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """above_diagonal_backward(self, n): the matrix of n x n, zero elsewhere."""
    cdef array_t *self
    cdef array_t *part
    cdef array_t *square = NULL
    cdef int64_t[2] shape
    cdef int64_t n = 0
    cdef int status = array_argument(b"pdist", b"input", &arguments[0], &self)
    status = status or integer_argument(b"pdist", b"n", &arguments[1], &n)
    if status != OK:
        return status
    if self.ndim != 1 or n < 0 or self.shape[0] != n * (n - 1) // 2:
        snprintf(message(), MESSAGE, b"pdist: the gradient does not match (got shape %s for %lld vectors).",
                 shape_text(self), <long long>n)
        return RUNTIME_ERROR
    shape[0] = shape[1] = n
    part = as_contiguous(self, -1)
    if part == NULL:
        return MEMORY_ERROR
    status = new_zeros(b"pdist", self.dtype, 2, shape, &square)
    if status == OK:
        _copy_above(square.data, part.data, n, itemsize(self.dtype), True)
    release(part)
    return array_result(square, &results[0]) if status == OK else status


register_kernel("distances", distances_kernel)
register_kernel("distances_within", distances_within_kernel)
register_kernel("distances_backward", distances_backward_kernel)
register_kernel("above_diagonal", above_diagonal_kernel)
register_kernel("above_diagonal_backward", above_diagonal_backward_kernel)
