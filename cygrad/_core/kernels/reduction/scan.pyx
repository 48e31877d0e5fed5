"""Cumulative sums, products, extrema and logsumexp, and linear recurrences, along a dimension."""

from libc.stdint cimport int64_t
from libc.stdio cimport snprintf
from cygrad._core.arrays.array cimport (
    NOTHING, array_empty_like, array_t, is_true, register_kernel, release, same_shape, set_array, shape_text, value_t,
)
from cygrad._core.arrays.dtype cimport BOOL, INT64, dtype_name, is_complex, is_differentiable, is_floating, promote
from cygrad._core.elementwise.copying cimport as_contiguous, as_dtype
from cygrad._core.elementwise.rows cimport columns_per_tile, rows_along, rows_t
from cygrad._core.kernels.arguments cimport array_argument, array_result, integer_argument, wrap_dim
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, NOT_IMPLEMENTED, OK, RUNTIME_ERROR, message
from cygrad._core.threads.grain cimport COMPUTED, GATHERED, rows_per_chunk
from cygrad._core.threads.parallel cimport parallel_for


# ----------------------------------------------------------------------------------------------------------------- scan

cdef extern from "kernels/reduction/scan_loops.h" nogil:
    enum:
        SCAN_COLUMNS
        SCAN_STEPS
    ctypedef enum scan_operation_t:
        CUMSUM
        CUMPROD
        CUMSUM_REVERSE
        PRODUCT_BEFORE
        PRODUCT_AFTER
    ctypedef struct scan_t:
        int dtype
        scan_operation_t operation
        int64_t outer, n, inner, width, tiles
        bint flag
        const void *self
        const void *other
        void *out
        int64_t *indices
    void cumulate(void *context, int64_t begin, int64_t end) noexcept
    void join_sides(void *context, int64_t begin, int64_t end) noexcept
    void scan_extrema(void *context, int64_t begin, int64_t end) noexcept
    void scan_exponentials(void *context, int64_t begin, int64_t end) noexcept
    void recur(void *context, int64_t begin, int64_t end) noexcept


cdef void _set_rows(scan_t *work, const array_t *array, int dim, rows_t *rows) noexcept nogil:
    rows_along(array, dim, rows)
    work.outer, work.n, work.inner = rows.outer, rows.n, rows.inner


cdef int _read(const char *name, const value_t *self_value, const value_t *dim_value, array_t **self,
               int *dim) noexcept nogil:
    cdef int64_t given
    cdef int status = array_argument(name, b"self", self_value, self)
    if status == OK:
        status = integer_argument(name, b"dim", dim_value, &given)
    return wrap_dim(name, given, self[0].ndim, dim) if status == OK else status


cdef int _scanned(const char *name, scan_operation_t operation, const value_t *arguments, int wanted,
                  value_t *results) noexcept nogil:
    """Scan in dtype `wanted` (-1: PyTorch's choice)."""
    cdef scan_t work
    cdef rows_t rows
    cdef array_t *self
    cdef array_t *source
    cdef array_t *out
    cdef array_t *cast
    cdef int dim, status = _read(name, &arguments[0], &arguments[1], &self, &dim)
    if status != OK:
        return status
    if wanted < 0:
        wanted = self.dtype if is_differentiable(self.dtype) else INT64
    work.dtype = wanted if is_differentiable(wanted) else INT64
    # Integers are scanned in 64 bits and cast back, which is the same modulo their range; bool and floats are cast
    # before.
    if wanted != work.dtype and (wanted == BOOL or is_differentiable(self.dtype)):
        cast = as_dtype(self, wanted)
        source = as_contiguous(cast, work.dtype) if cast != NULL else NULL
        release(cast)
    else:
        source = as_contiguous(self, work.dtype)
    out = array_empty_like(self, work.dtype) if source != NULL else NULL
    if out == NULL:
        release(source)
        return MEMORY_ERROR
    work.operation = operation
    _set_rows(&work, self, dim, &rows)
    work.width = columns_per_tile(&rows, SCAN_COLUMNS, GATHERED)
    work.tiles = (rows.inner + work.width - 1) // work.width
    work.self = source.data
    work.out = out.data
    if out.size:
        parallel_for(cumulate, &work, rows.outer * work.tiles, rows_per_chunk(rows.n * work.width, GATHERED))
    release(source)
    if wanted != work.dtype:
        cast = as_dtype(out, wanted)
        release(out)
        if cast == NULL:
            return MEMORY_ERROR
        out = cast
    set_array(results, out)
    return OK


cdef int cumsum_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """cumsum(self, dim, dtype)."""
    return _scanned(b"cumsum", CUMSUM, arguments,
                    <int>arguments[2].of.integer if arguments[2].kind != NOTHING else -1, results)


cdef int cumprod_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """cumprod(self, dim, dtype)."""
    return _scanned(b"cumprod", CUMPROD, arguments,
                    <int>arguments[2].of.integer if arguments[2].kind != NOTHING else -1, results)


cdef int cumsum_reverse_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """cumsum_reverse(self, dim): cumulative sums from the end, the derivative of cumsum."""
    return _scanned(b"cumsum_reverse", CUMSUM_REVERSE, arguments, -1, results)


cdef int product_before_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """product_before(self, dim, reverse): products of the elements before each one, or after it."""
    return _scanned(b"product_before", PRODUCT_AFTER if is_true(&arguments[2]) else PRODUCT_BEFORE, arguments, -1,
                    results)


cdef int exclusive_product_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """exclusive_product(self, dim): products of all elements but each one."""
    cdef value_t after
    cdef scan_t work
    cdef int status = _scanned(b"prod", PRODUCT_BEFORE, arguments, -1, results)
    if status != OK:
        return status
    status = _scanned(b"prod", PRODUCT_AFTER, arguments, -1, &after)
    if status != OK:
        release(results[0].of.array)
        return status
    work.dtype, work.out, work.other = after.of.array.dtype, results[0].of.array.data, after.of.array.data
    parallel_for(join_sides, &work, after.of.array.size, rows_per_chunk(1, GATHERED))
    release(after.of.array)
    return OK


register_kernel("cumsum", cumsum_kernel)
register_kernel("cumprod", cumprod_kernel)
register_kernel("cumsum_reverse", cumsum_reverse_kernel)
register_kernel("product_before", product_before_kernel)
register_kernel("exclusive_product", exclusive_product_kernel)


# ----------------------------------------------------------------------------------------------------------- scan order

cdef int _read_ordered(const char *name, bint exponentials, const value_t *arguments, array_t **self,
                       int *dim) noexcept nogil:
    cdef int64_t given
    cdef int status = array_argument(name, b"self", &arguments[0], self)
    if status == OK:
        status = integer_argument(name, b"dim", &arguments[1], &given)
    if status == OK:
        status = wrap_dim(name, given, self[0].ndim, dim)
    if status == OK and is_complex(self[0].dtype):
        snprintf(message(), MESSAGE, b"%s: not for complex numbers (got %s). Take the real part or the absolute value.",
                 name, dtype_name(self[0].dtype))
        status = NOT_IMPLEMENTED
    if status == OK and exponentials and not is_floating(self[0].dtype):
        snprintf(message(), MESSAGE, b"%s: expected a floating tensor (got %s). Convert with to() first.", name,
                 dtype_name(self[0].dtype))
        status = NOT_IMPLEMENTED
    return status


cdef int _running(const char *name, bint exponentials, bint largest, const value_t *arguments,
                  value_t *results) noexcept nogil:
    cdef scan_t work
    cdef rows_t rows
    cdef array_t *self
    cdef array_t *source
    cdef array_t *out = NULL
    cdef array_t *indices = NULL
    cdef int dim, status = _read_ordered(name, exponentials, arguments, &self, &dim)
    if status != OK:
        return status
    work.dtype = self.dtype
    source = as_contiguous(self, work.dtype)
    if source != NULL:
        out = array_empty_like(self, work.dtype)
    if out != NULL and not exponentials:
        indices = array_empty_like(self, INT64)
    if out == NULL or (indices == NULL and not exponentials):
        release(source)
        release(out)
        return MEMORY_ERROR
    work.flag, work.self, work.out = largest, source.data, out.data
    work.indices = <int64_t *>indices.data if indices != NULL else NULL
    _set_rows(&work, self, dim, &rows)
    if out.size:
        parallel_for(scan_exponentials if exponentials else scan_extrema, &work, rows.outer * rows.inner,
                     rows_per_chunk(rows.n, COMPUTED))
    release(source)
    set_array(&results[0], out)
    if not exponentials:
        set_array(&results[1], indices)
    return OK


cdef int cummax_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """cummax(self, dim) -> values, indices."""
    return _running(b"cummax", False, True, arguments, results)


cdef int cummin_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """cummin(self, dim) -> values, indices."""
    return _running(b"cummin", False, False, arguments, results)


cdef int logcumsumexp_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """logcumsumexp(self, dim)."""
    return _running(b"logcumsumexp", True, False, arguments, results)


register_kernel("cummax", cummax_kernel)
register_kernel("cummin", cummin_kernel)
register_kernel("logcumsumexp", logcumsumexp_kernel)


# ----------------------------------------------------------------------------------------------------------- recurrence

# Linear recurrences along a dimension, for the gradients of cumprod.


cdef int linear_recurrence_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """linear_recurrence(self, coefficient, dim, reverse)."""
    cdef array_t *input
    cdef array_t *coefficient
    cdef array_t *x
    cdef array_t *c
    cdef array_t *result
    cdef scan_t work
    cdef rows_t rows
    cdef int64_t dim
    cdef int axis, dtype, status
    status = array_argument(b"linear_recurrence", b"input", &arguments[0], &input)
    if status == OK:
        status = array_argument(b"linear_recurrence", b"coefficient", &arguments[1], &coefficient)
    if status == OK:
        status = integer_argument(b"linear_recurrence", b"dim", &arguments[2], &dim)
    if status == OK:
        status = wrap_dim(b"linear_recurrence", dim, input.ndim, &axis)
    if status != OK:
        return status
    dtype = promote(input.dtype, coefficient.dtype)
    if not same_shape(input, coefficient) or not is_differentiable(dtype):
        snprintf(message(), MESSAGE, b"linear_recurrence: input and coefficient must have one shape and floating dtype "
                 b"(got %s %s and %s %s).", dtype_name(input.dtype), shape_text(input), dtype_name(coefficient.dtype),
                 shape_text(coefficient))
        return RUNTIME_ERROR
    x = as_contiguous(input, dtype)
    c = as_contiguous(coefficient, dtype)
    result = array_empty_like(input, dtype)
    if x == NULL or c == NULL or result == NULL:
        release(x)
        release(c)
        release(result)
        return MEMORY_ERROR
    _set_rows(&work, input, axis, &rows)
    work.dtype, work.flag = dtype, is_true(&arguments[3])
    work.self, work.other, work.out = x.data, c.data, result.data
    if result.size:
        parallel_for(recur, &work, rows.outer * rows.inner,
                     max(<int64_t>SCAN_STEPS, rows_per_chunk(rows.n, COMPUTED)))
    release(x)
    release(c)
    return array_result(result, &results[0])


register_kernel("linear_recurrence", linear_recurrence_kernel)
