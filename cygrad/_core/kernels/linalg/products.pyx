"""Products of matrices and vectors: the kernels, with their checks and shapes.

Each turns its operands into batches of matrices (matrix.pyx) and leaves the arithmetic to multiply.pyx.
Nothing is copied as long as one step of each matrix is 1; broadcast batches are read in place.
"""

from libc.stdint cimport int64_t
from libc.stdio cimport snprintf
from cygrad._core.arrays.array cimport MAX_DIMS, array_empty, array_t, shape_text
from cygrad._core.arrays.dtype cimport is_differentiable
from cygrad._core.arrays.value cimport register_kernel, set_array, value_t
from cygrad._core.kernels.linalg.blas cimport BLAS_MAX
from cygrad._core.kernels.linalg.matrix cimport (
    column_of, fold_rows, lay_out, matrix_of, matrix_t, release_matrix, row_of,
)
from cygrad._core.kernels.linalg.multiply cimport multiply, product_t, start_product
from cygrad._core.kernels.linalg.product_checks cimport cannot_multiply, check_arrays, check_ndim, text_t
from cygrad._core.kernels.linalg.vector_products cimport dot_arrays
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, OK, RUNTIME_ERROR, message


# ---- the common part

cdef int prepare(text_t operation, product_t *product, array_t *like, matrix_t *a, matrix_t *b) noexcept nogil:
    cdef int status
    start_product(product, like.dtype, a.rows, b.columns, a.columns)
    product.a, product.b = a[0], b[0]
    if a.columns > BLAS_MAX or b.columns > BLAS_MAX:
        snprintf(message(), MESSAGE, b"%s: too large (got an inner dimension of %lld and %lld columns, expected "
                 b"at most 2147483647 each)", operation, <long long>a.columns, <long long>b.columns)
        return RUNTIME_ERROR
    if product.m == 0 or product.n == 0 or product.k == 0:
        return OK         # a and b are not read
    status = lay_out(&product.a, False)
    if status == OK:
        status = lay_out(&product.b, not is_differentiable(like.dtype))
    return status


cdef int finish(product_t *product, int status, int ndim, const int64_t *shape, value_t *results) noexcept nogil:
    cdef array_t *result
    if status == OK:
        result = array_empty(product.dtype, ndim, shape)
        if result == NULL:
            status = MEMORY_ERROR
        else:
            product.c = result.data
            multiply(product)
            set_array(results, result)
    release_matrix(&product.a)
    release_matrix(&product.b)
    return status


cdef int _broadcast_batches(text_t operation, product_t *product, int64_t *shape) noexcept nogil:
    """Line up the leading dimensions of both operands; they become the batch, and the front of `shape`."""
    cdef matrix_t *a = &product.a
    cdef matrix_t *b = &product.b
    cdef int ndim = max(a.batch_ndim, b.batch_ndim)
    cdef int i, in_a, in_b
    cdef int64_t a_size, b_size
    for i in range(ndim):
        in_a = i - (ndim - a.batch_ndim)
        in_b = i - (ndim - b.batch_ndim)
        a_size = a.batch_shape[in_a] if in_a >= 0 else 1
        b_size = b.batch_shape[in_b] if in_b >= 0 else 1
        if a_size != b_size and a_size != 1 and b_size != 1:
            snprintf(message(), MESSAGE, b"%s: batch dimensions do not broadcast: the size of tensor a (%lld) "
                     b"must match the size of tensor b (%lld) at dimension %d (got shapes %s and %s)", operation,
                     <long long>a_size, <long long>b_size, i, shape_text(a.array), shape_text(b.array))
            return RUNTIME_ERROR
        shape[i] = b_size if a_size == 1 else a_size
        product.batch_shape[i] = shape[i]
        product.a_steps[i] = a.batch_steps[in_a] if in_a >= 0 and a_size != 1 else 0
        product.b_steps[i] = b.batch_steps[in_b] if in_b >= 0 and b_size != 1 else 0
    product.batch_ndim = ndim
    return OK


# ---- kernels

cdef int mm_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """mm(a, b): two matrices."""
    cdef array_t *a
    cdef array_t *b
    cdef product_t product
    cdef matrix_t left, right
    cdef int64_t[2] shape
    cdef int status = check_arrays(b"mm", arguments, 2)
    if status != OK:
        return status
    a, b = arguments[0].of.array, arguments[1].of.array
    status = check_ndim(b"mm", b"mat1", a, 2) or check_ndim(b"mm", b"mat2", b, 2)
    if status != OK:
        return status
    if a.shape[1] != b.shape[0]:
        return cannot_multiply(b"mm", a, b)
    shape[0], shape[1] = a.shape[0], b.shape[1]
    left, right = matrix_of(a), matrix_of(b)
    return finish(&product, prepare(b"mm", &product, a, &left, &right), 2, shape, results)


cdef int bmm_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """bmm(a, b): matrices of two batches, one by one."""
    cdef array_t *a
    cdef array_t *b
    cdef product_t product
    cdef matrix_t left, right
    cdef int64_t[3] shape
    cdef int status = check_arrays(b"bmm", arguments, 2)
    if status != OK:
        return status
    a, b = arguments[0].of.array, arguments[1].of.array
    status = check_ndim(b"bmm", b"batch1", a, 3) or check_ndim(b"bmm", b"batch2", b, 3)
    if status != OK:
        return status
    if a.shape[0] != b.shape[0] or a.shape[2] != b.shape[1]:
        snprintf(message(), MESSAGE, b"bmm: Expected size for first two dimensions of batch2 tensor to be: "
                 b"[%lld, %lld] (got shapes %s and %s)", <long long>a.shape[0], <long long>a.shape[2],
                 shape_text(a), shape_text(b))
        return RUNTIME_ERROR
    left, right = matrix_of(a), matrix_of(b)
    status = prepare(b"bmm", &product, a, &left, &right)
    if status == OK:
        status = _broadcast_batches(b"bmm", &product, shape)
    shape[1], shape[2] = a.shape[1], b.shape[2]
    return finish(&product, status, 3, shape, results)


cdef int mv_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """mv(matrix, vector)."""
    cdef array_t *a
    cdef array_t *x
    cdef product_t product
    cdef matrix_t left, right
    cdef int status = check_arrays(b"mv", arguments, 2)
    if status != OK:
        return status
    a, x = arguments[0].of.array, arguments[1].of.array
    status = check_ndim(b"mv", b"input", a, 2) or check_ndim(b"mv", b"vec", x, 1)
    if status != OK:
        return status
    if a.shape[1] != x.shape[0]:
        snprintf(message(), MESSAGE, b"mv: size mismatch, the matrix has %lld columns and the vector %lld elements "
                 b"(got shapes %s and %s)", <long long>a.shape[1], <long long>x.shape[0], shape_text(a), shape_text(x))
        return RUNTIME_ERROR
    left, right = matrix_of(a), column_of(x)
    return finish(&product, prepare(b"mv", &product, a, &left, &right), 1, a.shape, results)


cdef int matmul_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """matmul(a, b): vectors, matrices and batches of matrices, which broadcast."""
    cdef array_t *a
    cdef array_t *b
    cdef product_t product
    cdef matrix_t left, right
    cdef int64_t[MAX_DIMS + 2] shape
    cdef int i, ndim = 0, status = check_arrays(b"matmul", arguments, 2)
    cdef bint folded
    if status != OK:
        return status
    a, b = arguments[0].of.array, arguments[1].of.array
    if a.ndim == 0 or b.ndim == 0:
        snprintf(message(), MESSAGE, b"matmul: both arguments to matmul need to be at least 1D (got shapes %s and %s)",
                 shape_text(a), shape_text(b))
        return RUNTIME_ERROR
    if a.shape[a.ndim - 1] != b.shape[b.ndim - 2 if b.ndim > 1 else 0]:
        return cannot_multiply(b"matmul", a, b)
    if a.ndim == 1 and b.ndim == 1:
        return dot_arrays(b"matmul", False, a, b, results)
    left = row_of(a) if a.ndim == 1 else matrix_of(a)
    right = column_of(b) if b.ndim == 1 else matrix_of(b)
    # One large product instead of a batch of smaller ones with the same right-hand side.
    folded = a.ndim > 2 and b.ndim <= 2 and fold_rows(&left)
    status = prepare(b"matmul", &product, a, &left, &right)
    if folded:
        for i in range(a.ndim - 1):
            shape[i] = a.shape[i]
        ndim = a.ndim - 1
    else:
        if status == OK:
            status = _broadcast_batches(b"matmul", &product, shape)
            ndim = product.batch_ndim
        if a.ndim > 1:
            shape[ndim] = a.shape[a.ndim - 2]
            ndim += 1
    if b.ndim > 1:
        shape[ndim] = b.shape[b.ndim - 1]
        ndim += 1
    return finish(&product, status, ndim, shape, results)


register_kernel("mm", mm_kernel)
register_kernel("bmm", bmm_kernel)
register_kernel("mv", mv_kernel)
register_kernel("matmul", matmul_kernel)

# Imported here, so that importing this module registers all products.
import cygrad._core.kernels.linalg.addmm  # noqa: E402, F401  # no-cython-lint
