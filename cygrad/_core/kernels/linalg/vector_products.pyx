"""Products of two vectors: dot, vdot and outer."""

from libc.stdint cimport int64_t
from libc.stdio cimport snprintf
from libc.string cimport memcpy, memset
from cygrad._core.arrays.array cimport array_empty, array_t, release, retain, shape_text
from cygrad._core.arrays.dtype cimport FLOAT32, FLOAT64, COMPLEX64, is_differentiable, itemsize, promote
from cygrad._core.arrays.value cimport ARRAY, register_kernel, set_array, value_t
from cygrad._core.elementwise.copying cimport as_contiguous
from cygrad._core.kernels.linalg.blas cimport BLAS_MAX, dot
from cygrad._core.kernels.linalg.integer_matmul cimport dot_integers
from cygrad._core.kernels.linalg.product_checks cimport check_arrays, text_t
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, OK, RUNTIME_ERROR, TYPE_ERROR, message
from cygrad._core.memory.storage cimport allocate, deallocate
from cygrad._core.primitives.primitive_table cimport entries, entry_t, primitive
from cygrad._core.threads.parallel cimport parallel_for

cdef int _mul = primitive("mul")

cdef enum:
    DOT_PIECE = 1 << 16       # elements of one call of BLAS; their sums are added in order
    OUTER_PIECE = 1 << 16     # elements of an outer product that one thread computes at a time
    CELL = 16                 # bytes of a sum of any dtype

ctypedef struct dot_t:
    int dtype
    bint conjugate
    const char *a
    const char *b
    int64_t a_step
    int64_t b_step
    char *sums                # one cell for each piece

ctypedef struct outer_t:
    array_t *a
    array_t *b
    array_t *result


cdef void _dot_piece(void *context, int64_t begin, int64_t end) noexcept nogil:
    """The sum over one piece."""
    cdef dot_t *work = <dot_t *>context
    cdef int64_t size = itemsize(work.dtype)
    cdef const char *a = work.a + begin * work.a_step * size
    cdef const char *b = work.b + begin * work.b_step * size
    cdef char *total = work.sums + begin // DOT_PIECE * CELL
    if is_differentiable(work.dtype):
        dot(work.dtype, work.conjugate, end - begin, a, work.a_step, b, work.b_step, total)
    else:
        dot_integers(work.dtype, end - begin, a, work.a_step, b, work.b_step, total)


cdef void _add_cells(int dtype, char *total, const char *other) noexcept nogil:
    """total += other for sums of any dtype."""
    if dtype == FLOAT32:
        (<float *>total)[0] += (<const float *>other)[0]
    elif dtype == FLOAT64:
        (<double *>total)[0] += (<const double *>other)[0]
    elif dtype == COMPLEX64:
        (<float *>total)[0] += (<const float *>other)[0]
        (<float *>total)[1] += (<const float *>other)[1]
    elif dtype > COMPLEX64:
        (<double *>total)[0] += (<const double *>other)[0]
        (<double *>total)[1] += (<const double *>other)[1]
    else:
        # Integers wrap: whatever follows the element, the low bytes of the wide sum are right (on little-endian
        # machines, which the build requires).
        (<int64_t *>total)[0] += (<const int64_t *>other)[0]


cdef array_t *_steady(array_t *vector) noexcept nogil:
    """Return the vector, retained, or a copy if BLAS does not support its stride."""
    if vector.shape[0] <= 1 or 0 < vector.strides[0] <= BLAS_MAX:
        return retain(vector)
    return as_contiguous(vector, -1)


cdef int _sum_of_products(dot_t *work, int64_t n, char *result) noexcept nogil:
    """Compute the pieces and add their sums in order."""
    cdef int64_t pieces = (n + DOT_PIECE - 1) // DOT_PIECE, i
    cdef char[CELL] one
    memset(one, 0, CELL)
    work.sums = one
    if pieces == 1:
        _dot_piece(work, 0, n)
    elif pieces > 1:
        work.sums = <char *>allocate(pieces * CELL)
        if work.sums == NULL:
            return MEMORY_ERROR
        memset(work.sums, 0, pieces * CELL)
        parallel_for(_dot_piece, work, n, DOT_PIECE)
        for i in range(pieces):
            _add_cells(work.dtype, one, work.sums + i * CELL)
        deallocate(work.sums, pieces * CELL)
    memcpy(result, one, itemsize(work.dtype))
    return OK


cdef int dot_arrays(text_t operation, bint conjugate, array_t *a, array_t *b, value_t *results) noexcept nogil:
    cdef dot_t work
    cdef array_t *result
    cdef int64_t n
    cdef int status = MEMORY_ERROR
    if a.ndim != 1 or b.ndim != 1:
        snprintf(message(), MESSAGE, b"%s: 1D tensors expected, but got %dD and %dD tensors (shapes %s and %s)",
                 operation, a.ndim, b.ndim, shape_text(a), shape_text(b))
        return RUNTIME_ERROR
    n = a.shape[0]
    if n != b.shape[0]:
        snprintf(message(), MESSAGE, b"%s: inconsistent tensor size, expected vectors with the same number of "
                 b"elements (got %lld and %lld)", operation, <long long>n, <long long>b.shape[0])
        return RUNTIME_ERROR
    a, b = _steady(a), _steady(b)
    result = array_empty(a.dtype if a != NULL else 0, 0, NULL)
    if a != NULL and b != NULL and result != NULL:
        work.dtype, work.conjugate = a.dtype, conjugate
        work.a, work.b = a.data, b.data
        work.a_step = a.strides[0] if n > 1 else 1
        work.b_step = b.strides[0] if n > 1 else 1
        status = _sum_of_products(&work, n, result.data)
    release(a)
    release(b)
    if status == OK:
        set_array(results, result)
    else:
        release(result)
    return status


cdef int dot_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """dot(a, b): the sum of products, without conjugation."""
    cdef int status = check_arrays(b"dot", arguments, 2)
    return status or dot_arrays(b"dot", False, arguments[0].of.array, arguments[1].of.array, results)


cdef int vdot_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """vdot(a, b): the sum of products, the first factor conjugated."""
    cdef int status = check_arrays(b"vdot", arguments, 2)
    return status or dot_arrays(b"vdot", True, arguments[0].of.array, arguments[1].of.array, results)


cdef void _outer_piece(void *context, int64_t begin, int64_t end) noexcept nogil:
    """Some rows."""
    cdef outer_t *work = <outer_t *>context
    cdef const entry_t *product = &entries[_mul][work.result.dtype]
    cdef int64_t n = work.b.shape[0], size = itemsize(work.result.dtype), row
    cdef int64_t[3] steps
    cdef char *pointers[3]
    steps[0], steps[1], steps[2] = 0, size, size
    for row in range(begin, end):
        pointers[0], pointers[1], pointers[2] = (work.a.data + row * size, work.b.data,
                                                 work.result.data + row * n * size)
        product.loop(pointers, &n, steps, product.data)


cdef int outer_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """outer(a, b): all products of their elements, in the promoted dtype."""
    cdef outer_t work
    cdef int64_t[2] shape
    cdef int64_t grain
    cdef int dtype, i, status = MEMORY_ERROR
    for i in range(2):
        if arguments[i].kind != ARRAY:
            snprintf(message(), MESSAGE, b"outer: argument %d must be a tensor", i + 1)
            return TYPE_ERROR
        if arguments[i].of.array.ndim != 1:
            snprintf(message(), MESSAGE, b"outer: Expected 1-D argument %s, but got %d-D (shape %s)",
                     b"self" if i == 0 else b"vec2", arguments[i].of.array.ndim, shape_text(arguments[i].of.array))
            return RUNTIME_ERROR
        shape[i] = arguments[i].of.array.shape[0]
    dtype = promote(arguments[0].of.array.dtype, arguments[1].of.array.dtype)
    work.result = array_empty(dtype, 2, shape)
    if work.result == NULL:
        return MEMORY_ERROR
    work.a = as_contiguous(arguments[0].of.array, dtype)
    work.b = as_contiguous(arguments[1].of.array, dtype)
    if work.a != NULL and work.b != NULL:
        if work.result.size > 0:
            grain = OUTER_PIECE // shape[1]
            parallel_for(_outer_piece, &work, shape[0], grain if grain > 1 else 1)
        set_array(results, work.result)
        status = OK
    else:
        release(work.result)
    release(work.a)
    release(work.b)
    return status


register_kernel("dot", dot_kernel)
register_kernel("vdot", vdot_kernel)
register_kernel("outer", outer_kernel)
