"""
Determinants and their derivatives, which exist for singular matrices too.

The gradient of a determinant is the (conjugated) matrix of cofactors. By the singular values, A = U S V^H,
it is conj(d) U G V^H with d = det(U) det(V^H) and G the diagonal matrix of products of all singular values but one,
so it needs no division; its own derivative has the products of all but two (J. R. Magnus and H. Neudecker,
Matrix Differential Calculus, section 8.3; N. J. Higham, What is the adjugate of a matrix?, 2020).
"""

from libc.float cimport DBL_EPSILON, FLT_EPSILON
from libc.math cimport INFINITY, hypot, isfinite, log
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcpy, memset
from cygrad._core.arrays.array cimport array_t, release
from cygrad._core.arrays.dtype cimport FLOAT64, itemsize, real_of
from cygrad._core.arrays.value cimport register_kernel, set_array, value_t
from cygrad._core.elementwise.copying cimport as_copy
from cygrad._core.kernels.arguments cimport array_result
from cygrad._core.kernels.linalg.blas cimport blas_scalar_t, gemm
from cygrad._core.kernels.linalg.lapack cimport gesdd, getrf, getrs
from cygrad._core.kernels.linalg.lapack_batches cimport (
    all_finite, batch_count, check_pair, in_columns, matrix_batch_t, new_batch, run_batch, square_argument,
)
from cygrad._core.kernels.linalg.matrix_elements cimport (
    conjugate, fill_nan, number_at, put_number, scale, set_identity, times,
)
from cygrad._core.memory.errors cimport MEMORY_ERROR, OK


cdef inline blas_scalar_t _scalar(double real, double imag) noexcept nogil:
    """A number of two parts."""
    cdef blas_scalar_t number
    number.real, number.imag = real, imag
    return number


cdef blas_scalar_t _determinant(int dtype, const char *lu, const int32_t *pivots, int64_t n) noexcept nogil:
    """Of a matrix from its triangular factors."""
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
        getrf(task.dtype, task.n, task.n, a, pivots)
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
    """Both kernels."""
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
    char *u               # rows are the left vectors
    char *s
    char *vh              # columns of V^H, one after the other
    char *own             # scratch: a matrix, and the pivots
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
    """Singular values and vectors of a matrix in column order, which is destroyed; det(U) det(V^H)."""
    cdef int64_t nbytes = <int64_t>task.n * task.n * itemsize(task.dtype)
    cdef blas_scalar_t product
    cdef int info = 0
    gesdd(task.dtype, b"S", task.n, task.n, a, parts.s, parts.u, parts.vh, parts.rest,
          task.scratch - (parts.rest - parts.u), &info)
    memcpy(parts.own, parts.u, nbytes)
    getrf(task.dtype, task.n, task.n, parts.own, parts.pivots)
    product = _determinant(task.dtype, parts.own, parts.pivots, task.n)
    memcpy(parts.own, parts.vh, nbytes)
    getrf(task.dtype, task.n, task.n, parts.own, parts.pivots)
    return times(product, _determinant(task.dtype, parts.own, parts.pivots, task.n))


cdef int _cofactor(matrix_batch_t *task, int64_t i, char *scratch) noexcept nogil:
    """a: the matrix in column order, destroyed; b: its cofactors, conjugated, row after row."""
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
    getrf(dtype, task.n, task.n, parts.own, parts.pivots)
    for j in range(n):
        number = number_at(dtype, parts.own, j * (n + 1))
        size = hypot(number.real, number.imag)
        least, most = min(least, size), max(most, size)
    if least > 64 * n * most * (DBL_EPSILON if real_of(dtype) == FLOAT64 else FLT_EPSILON):
        # Far from singular: the determinant times the inverse. In column order, b is A^-1 (transposed: A^-T).
        number = _determinant(dtype, parts.own, parts.pivots, n)
        if isfinite(number.real) and isfinite(number.imag):
            set_identity(dtype, b, n, n)
            getrs(dtype, b"N", task.n, task.n, parts.own, parts.pivots, b)
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
    """The matrix g among the singular vectors: factor times the conjugate of U^H g V, in its place."""
    cdef blas_scalar_t zero = _scalar(0, 0), one = _scalar(1, 0)
    conjugate(dtype, g, n * n)
    gemm(dtype, False, False, n, n, n, one, parts.u, n, g, n, zero, space, n)
    gemm(dtype, False, False, n, n, n, factor, space, n, parts.vh, n, zero, g, n)


cdef void _rotate_back(decomposed_t *parts, int dtype, int64_t n, char *c, char *space) noexcept nogil:
    """U c V^H, in the place of c."""
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
    cdef int dtype = task.dtype, real = real_of(task.dtype), turn
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
    # Of three rows each pair is that of p and q, and the six permutations of the columns are the terms.
    for first in range(n):
        for second in range(first + 1, n):
            for third in range(second + 1, n):
                w = 1
                for m in range(n):
                    if m != first and m != second and m != third:
                        w *= number_at(real, parts.s, m).real
                if w == 0:
                    continue
                for turn in range(6):
                    i = first if turn < 2 else second if turn < 4 else third
                    j = second if turn == 0 or turn == 4 else third if turn == 1 or turn == 2 else first
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
    """Both kernels: the directions, and the matrices."""
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
