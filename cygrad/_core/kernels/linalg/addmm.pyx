"""addmm and linear: products whose addend is added in the same pass."""

from libc.stdint cimport int64_t
from libc.stdio cimport snprintf
from cygrad._core.arrays.array cimport MAX_DIMS, array_t, exclusive, release, retain, shape_text
from cygrad._core.arrays.dtype cimport dtype_name, is_complex, is_differentiable
from cygrad._core.arrays.value cimport COMPLEX, NOTHING, REAL, as_real, is_number, register_kernel, set_array, value_t
from cygrad._core.elementwise.copying cimport as_contiguous
from cygrad._core.kernels.linalg.matrix cimport (
    column_of, fold_rows, matrix_of, matrix_t, release_matrix, row_of, transpose_matrix)
from cygrad._core.kernels.linalg.multiply cimport multiply, product_t
from cygrad._core.kernels.linalg.product_checks cimport cannot_multiply, check_arrays, check_ndim, text_t
from cygrad._core.kernels.linalg.products cimport finish, prepare
from cygrad._core.kernels.linalg.vector_products cimport dot_arrays
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, OK, RUNTIME_ERROR, TYPE_ERROR, message


cdef int _set_factor(text_t operation, text_t name, const value_t *number, product_t *product,
                     double *real, double *imag, int64_t *integer) noexcept nogil:
    """alpha or beta, of a kind that the dtype can hold."""
    if number.kind == NOTHING:
        real[0], imag[0], integer[0] = 1, 0, 1
        return OK
    if not is_number(number):
        snprintf(message(), MESSAGE, b"%s: %s must be a number", operation, name)
        return TYPE_ERROR
    if ((number.kind == COMPLEX and not is_complex(product.dtype))
            or (number.kind == REAL and not is_differentiable(product.dtype))):
        snprintf(message(), MESSAGE, b"%s: %s cannot be a %s number for operands of dtype %s. Convert the operands "
                 b"first.", operation, name, b"complex" if number.kind == COMPLEX else b"floating-point",
                 dtype_name(product.dtype))
        return RUNTIME_ERROR
    real[0] = as_real(number)
    imag[0] = number.imag if number.kind == COMPLEX else 0
    integer[0] = number.of.integer if number.kind < REAL else 0
    return OK


cdef int _set_addend(text_t operation, text_t name, product_t *product, const array_t *addend, int ndim,
                     const int64_t *shape) noexcept nogil:
    """Add an array that broadcasts to `shape`: the last one or two sizes of the result."""
    cdef int i, offset = ndim - addend.ndim
    cdef bint fits = offset >= 0
    for i in range(addend.ndim):
        if fits and addend.shape[i] != shape[offset + i] and addend.shape[i] != 1:
            fits = False
    if not fits:
        snprintf(message(), MESSAGE, b"%s: cannot broadcast %s of shape %s to the product, whose last two sizes are "
                 b"%lld and %lld. Reshape it.", operation, name, shape_text(addend), <long long>product.m,
                 <long long>product.n)
        return RUNTIME_ERROR
    product.addend = addend.data
    product.addend_row_step = product.addend_column_step = 0
    if addend.ndim >= 1 and addend.shape[addend.ndim - 1] != 1:
        product.addend_column_step = addend.strides[addend.ndim - 1]
    if addend.ndim >= 2 and addend.shape[addend.ndim - 2] != 1:
        product.addend_row_step = addend.strides[addend.ndim - 2]
    return OK


cdef int _set_bias(product_t *product, const array_t *bias, int ndim) noexcept nogil:
    """A bias of one number for each output; for a matrix of outputs also another matrix."""
    cdef int64_t[2] matrix
    matrix[0], matrix[1] = product.m, product.n
    product.beta.real, product.integer_beta = 1, 1
    if ndim == 2:
        return _set_addend(b"linear", b"bias", product, bias, 2, matrix)
    return _set_addend(b"linear", b"bias", product, bias, 1, matrix + 1)


cdef int addmm_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """addmm(input, mat1, mat2, beta, alpha): beta * input + alpha * mat1 @ mat2."""
    cdef array_t *addend
    cdef array_t *a
    cdef array_t *b
    cdef product_t product
    cdef matrix_t left, right
    cdef int64_t[2] shape
    cdef int status = check_arrays(b"addmm", arguments, 3)
    if status != OK:
        return status
    addend, a, b = arguments[0].of.array, arguments[1].of.array, arguments[2].of.array
    status = check_ndim(b"addmm", b"mat1", a, 2) or check_ndim(b"addmm", b"mat2", b, 2)
    if status != OK:
        return status
    if a.shape[1] != b.shape[0]:
        return cannot_multiply(b"addmm", a, b)
    shape[0], shape[1] = a.shape[0], b.shape[1]
    left, right = matrix_of(a), matrix_of(b)
    status = prepare(b"addmm", &product, a, &left, &right)
    if status == OK:
        status = _set_addend(b"addmm", b"input", &product, addend, 2, shape)
    if status == OK:
        status = _set_factor(b"addmm", b"beta", &arguments[3], &product, &product.beta.real, &product.beta.imag,
                             &product.integer_beta)
    if status == OK:
        status = _set_factor(b"addmm", b"alpha", &arguments[4], &product, &product.alpha.real,
                             &product.alpha.imag, &product.integer_alpha)
    if status == OK and product.beta.real == 0 and product.beta.imag == 0:
        product.addend = NULL         # not even its nan counts
    return finish(&product, status, 2, shape, results)


cdef int add_product_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """add_product(addend, a, b): addend + a @ b for matrices, in the memory of addend if it is exclusive."""
    cdef array_t *addend = arguments[0].of.array
    cdef int status
    if exclusive(addend):
        status = add_product_into_kernel(arguments, results)
        if status == OK:
            set_array(results, retain(addend))
        return status
    return _add_product(arguments, NULL, results)


cdef int add_product_into_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """add_product_into(addend, a, b): the same in the memory of addend, which is row-major, in any case; no result."""
    return _add_product(arguments, arguments[0].of.array.data, results)


cdef int _add_product(const value_t *arguments, char *c, value_t *results) noexcept nogil:
    """addend + a @ b at `c`, or in a new array."""
    cdef array_t *addend = arguments[0].of.array
    cdef product_t product
    cdef matrix_t left = matrix_of(arguments[1].of.array), right = matrix_of(arguments[2].of.array)
    cdef int status = prepare(b"matmul", &product, addend, &left, &right)
    product.beta.real = 1
    if status == OK:
        status = _set_addend(b"matmul", b"input", &product, addend, 2, addend.shape)
    if status != OK or c == NULL:
        return finish(&product, status, 2, addend.shape, results)
    product.c = c
    multiply(&product)
    release_matrix(&product.a)
    release_matrix(&product.b)
    return OK


cdef int linear_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """linear(input, weight, bias): input @ weight.T + bias, for input of any rank."""
    cdef array_t *x
    cdef array_t *weight
    cdef array_t *rows
    cdef array_t *bias = NULL
    cdef product_t product
    cdef matrix_t left, right
    cdef int64_t[MAX_DIMS] shape
    cdef int i, ndim, status
    cdef bint has_bias = arguments[2].kind != NOTHING
    status = check_arrays(b"linear", arguments, 3 if has_bias else 2)
    if status != OK:
        return status
    x, weight = arguments[0].of.array, arguments[1].of.array
    if has_bias:
        bias = arguments[2].of.array
    if x.ndim == 0:
        snprintf(message(), MESSAGE, b"linear: input must have at least one dimension (got a 0-D tensor)")
        return RUNTIME_ERROR
    if weight.ndim != 2 and (weight.ndim != 1 or has_bias):
        snprintf(message(), MESSAGE, b"linear: weight must be a matrix%s (got shape %s)",
                 b", or a vector if there is no bias" if not has_bias else b"", shape_text(weight))
        return RUNTIME_ERROR
    if x.shape[x.ndim - 1] != weight.shape[weight.ndim - 1]:
        snprintf(message(), MESSAGE, b"linear: mat1 and mat2 shapes cannot be multiplied (got input %s and weight %s, "
                 b"expected the last sizes to be equal)", shape_text(x), shape_text(weight))
        return RUNTIME_ERROR
    if x.ndim == 1 and weight.ndim == 1:
        return dot_arrays(b"linear", False, x, weight, results)
    left = row_of(x) if x.ndim == 1 else matrix_of(x)
    if weight.ndim == 1:
        right = column_of(weight)
    else:
        right = matrix_of(weight)
        transpose_matrix(&right)
    ndim = x.ndim - 1
    for i in range(ndim):
        shape[i] = x.shape[i]
    if weight.ndim == 2:
        shape[ndim] = weight.shape[0]
        ndim += 1
    if x.ndim > 2 and not fold_rows(&left):
        rows = as_contiguous(x, -1)
        release_matrix(&left)
        if rows == NULL:
            release_matrix(&right)
            return MEMORY_ERROR
        left = matrix_of(rows)
        release(rows)                 # the matrix holds it
        fold_rows(&left)
    status = prepare(b"linear", &product, x, &left, &right)
    if status == OK and has_bias:
        status = _set_bias(&product, bias, ndim)
    return finish(&product, status, ndim, shape, results)


register_kernel("addmm", addmm_kernel)
register_kernel("add_product", add_product_kernel)
register_kernel("add_product_into", add_product_into_kernel)
register_kernel("linear", linear_kernel)
