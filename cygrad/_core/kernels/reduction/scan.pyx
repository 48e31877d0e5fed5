"""Cumulative sums, products, extrema and logsumexp, and linear recurrences, along a dimension."""

cimport cygrad._core.primitives.complex_parts
from libc.math cimport INFINITY, exp, isinf, log1p
from libc.stdint cimport int16_t, int32_t, int64_t, int8_t, uint8_t
from libc.stdio cimport snprintf
from cygrad._core.arrays.array cimport (
    NOTHING, array_empty_like, array_t, is_true, register_kernel, release, same_shape, set_array, shape_text, value_t,
)
from cygrad._core.arrays.dtype cimport (
    BOOL, COMPLEX64, FLOAT32, FLOAT64, INT16, INT32, INT64, INT8, UINT8, dtype_name, is_complex, is_differentiable,
    is_floating, promote,
)
from cygrad._core.elementwise.copying cimport as_contiguous, as_dtype
from cygrad._core.elementwise.rows cimport columns_per_tile, rows_along, rows_t
from cygrad._core.kernels.arguments cimport array_argument, array_result, integer_argument, wrap_dim
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, NOT_IMPLEMENTED, OK, RUNTIME_ERROR, message
from cygrad._core.threads.grain cimport COMPUTED, GATHERED, rows_per_chunk
from cygrad._core.threads.parallel cimport parallel_for

cdef extern from "simd/fetch.h" nogil:
    void fetch(const char *memory, int64_t nbytes, bint written)


# ----------------------------------------------------------------------------------------------------------------- scan

cdef enum:
    COLUMNS = 256          # adjacent columns processed together
    LINES = 4              # adjacent rows processed together
    SHORT_ROW = 1024       # elements up to which the rows that follow are prefetched
    FETCHED = 8            # elements of a row after which it is prefetched again

ctypedef float complex complex64_t
ctypedef double complex complex128_t

ctypedef fused element:
    int64_t
    float
    double
    complex64_t
    complex128_t

# Totals of float32 are kept in double.
ctypedef fused total:
    int64_t
    double
    complex128_t

ctypedef enum scan_operation_t:
    CUMSUM
    CUMPROD
    CUMSUM_REVERSE
    PRODUCT_BEFORE
    PRODUCT_AFTER

ctypedef struct cumulation_t:
    scan_operation_t operation
    int dtype
    rows_t rows
    int64_t width
    int64_t tiles
    char *self
    char *out


cdef inline void _fetch_ahead(const void *memory, int64_t itemsize, int64_t at, int64_t n, int64_t ahead, int64_t lines,
                              bint written) noexcept nogil:
    """Prefetch the element at the same position of the rows that follow, in the direction of `ahead`."""
    cdef int64_t k
    for k in range(lines):
        fetch(<const char *>memory + (at + (k + ahead) * n) * itemsize, 1, written)


cdef inline void _lines(const element *x, element *out, total *tag, int64_t n, bint reverse, bint exclusive,
                        bint multiplies, int64_t lines) noexcept nogil:
    """Scan adjacent rows together, because each step of a row waits for the one before."""
    cdef total[LINES] totals
    cdef int64_t i, k, step = -1 if reverse else 1, at = n - 1 if reverse else 0
    if ((element is int64_t and total is int64_t)
            or ((element is float or element is double) and total is double)
            or ((element is complex64_t or element is complex128_t) and total is complex128_t)):
        for k in range(lines):
            totals[k] = 1 if multiplies else 0
        for i in range(n):
            if i % FETCHED == 0 and n <= SHORT_ROW:
                _fetch_ahead(x, sizeof(element), at, n, LINES * step, lines, False)
                _fetch_ahead(out, sizeof(element), at, n, LINES * step, lines, True)
            for k in range(LINES if lines == LINES else lines):
                if exclusive:
                    out[at + k * n] = <element>totals[k]
                totals[k] = totals[k] * x[at + k * n] if multiplies else totals[k] + x[at + k * n]
                if not exclusive:
                    out[at + k * n] = <element>totals[k]
            at += step


cdef void _scan(cumulation_t *work, element *x, element *out, total *totals, int64_t begin,
                int64_t end) noexcept nogil:
    """Scan tiles begin..end-1; `totals` holds a tile."""
    cdef int64_t n = work.rows.n, inner = work.rows.inner, item = begin, first, at, column, width, lines, line, step
    cdef int64_t i, k
    cdef bint exclusive = work.operation >= PRODUCT_BEFORE
    cdef bint multiplies = exclusive or work.operation == CUMPROD
    cdef bint reverse = work.operation == CUMSUM_REVERSE or work.operation == PRODUCT_AFTER
    cdef bint few = work.rows.outer < LINES
    cdef total running, pair
    # Only these pairs of types are compiled.
    if ((element is int64_t and total is int64_t)
            or ((element is float or element is double) and total is double)
            or ((element is complex64_t or element is complex128_t) and total is complex128_t)):
        while item < end:
            lines = min(end - item, <int64_t>LINES) if inner == 1 and not few else 1
            # From the last one if reverse: processors prefetch along addresses that change in one direction.
            first = begin + end - item - lines if reverse else item
            column = first % work.tiles * work.width
            width = min(work.width, inner - column)
            at = first // work.tiles * n * inner + column
            item += lines
            if inner == 1:
                if element is float:
                    if exclusive and few:
                        # Products of four elements, which do not overflow in double.
                        running = 1
                        line, step = (at + n - 1, -1) if reverse else (at, 1)
                        i = 0
                        while i + 4 <= n:
                            pair = <total>x[line] * x[line + step]
                            out[line] = <element>running
                            out[line + step] = <element>(running * x[line])
                            out[line + 2 * step] = <element>(running * pair)
                            out[line + 3 * step] = <element>(running * (pair * x[line + 2 * step]))
                            running = running * (pair * (<total>x[line + 2 * step] * x[line + 3 * step]))
                            line += 4 * step
                            i += 4
                        while i < n:
                            out[line] = <element>running
                            running = running * x[line]
                            line += step
                            i += 1
                        continue
                if exclusive:
                    _lines(x + at, out + at, totals, n, reverse, True, True, lines)
                else:
                    _lines(x + at, out + at, totals, n, reverse, False, multiplies, lines)
                continue
            for k in range(width):
                totals[k] = 1 if multiplies else 0
            for i in range(n):
                line = at + (n - 1 - i if reverse else i) * inner
                if exclusive:
                    for k in range(width):
                        out[line + k] = <element>totals[k]
                        totals[k] = totals[k] * x[line + k]
                elif multiplies:
                    for k in range(width):
                        totals[k] = totals[k] * x[line + k]
                        out[line + k] = <element>totals[k]
                else:
                    for k in range(width):
                        totals[k] = totals[k] + x[line + k]
                        out[line + k] = <element>totals[k]


cdef void _scan_body(void *context, int64_t begin, int64_t end) noexcept nogil:
    cdef cumulation_t *work = <cumulation_t *>context
    cdef int64_t[COLUMNS] integers
    cdef double[COLUMNS] reals
    cdef complex128_t[COLUMNS] complexes
    if work.dtype == INT64:
        _scan(work, <int64_t *>work.self, <int64_t *>work.out, <int64_t *>integers, begin, end)
    elif work.dtype == FLOAT32:
        _scan(work, <float *>work.self, <float *>work.out, <double *>reals, begin, end)
    elif work.dtype == FLOAT64:
        _scan(work, <double *>work.self, <double *>work.out, <double *>reals, begin, end)
    elif work.dtype == COMPLEX64:
        _scan(work, <complex64_t *>work.self, <complex64_t *>work.out, <complex128_t *>complexes, begin, end)
    else:
        _scan(work, <complex128_t *>work.self, <complex128_t *>work.out, <complex128_t *>complexes, begin,
              end)


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
    cdef cumulation_t work
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
    rows_along(self, dim, &work.rows)
    work.width = columns_per_tile(&work.rows, COLUMNS, GATHERED)
    work.tiles = (work.rows.inner + work.width - 1) // work.width
    work.self = source.data
    work.out = out.data
    if out.size:
        parallel_for(_scan_body, &work, work.rows.outer * work.tiles,
                     rows_per_chunk(work.rows.n * work.width, GATHERED))
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


ctypedef struct sides_t:
    int dtype
    char *before           # becomes the result
    char *after


cdef void _join_sides(element *before, element *after, int64_t begin, int64_t end) noexcept nogil:
    """Multiply the products on both sides: 0 if one is 0, even where the other has overflowed."""
    cdef element x, y, product
    cdef int64_t i
    for i in range(begin, end):
        x, y = before[i], after[i]
        product = x * y
        if element is float or element is double:
            # Only 0 * inf makes a new nan; no branch, so that the loop is vectorized.
            product = 0 if (product != product) & (x == x) & (y == y) else product
        elif element is not int64_t:
            if product != product and (x == 0 and (isinf(y.real) or isinf(y.imag))
                                       or y == 0 and (isinf(x.real) or isinf(x.imag))):
                product = 0
        before[i] = product


cdef void _sides_body(void *context, int64_t begin, int64_t end) noexcept nogil:
    cdef sides_t *work = <sides_t *>context
    if work.dtype == INT64:
        _join_sides(<int64_t *>work.before, <int64_t *>work.after, begin, end)
    elif work.dtype == FLOAT32:
        _join_sides(<float *>work.before, <float *>work.after, begin, end)
    elif work.dtype == FLOAT64:
        _join_sides(<double *>work.before, <double *>work.after, begin, end)
    elif work.dtype == COMPLEX64:
        _join_sides(<complex64_t *>work.before, <complex64_t *>work.after, begin, end)
    else:
        _join_sides(<complex128_t *>work.before, <complex128_t *>work.after, begin, end)


cdef int exclusive_product_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """exclusive_product(self, dim): products of all elements but each one."""
    cdef value_t after
    cdef sides_t work
    cdef int status = _scanned(b"prod", PRODUCT_BEFORE, arguments, -1, results)
    if status != OK:
        return status
    status = _scanned(b"prod", PRODUCT_AFTER, arguments, -1, &after)
    if status != OK:
        release(results[0].of.array)
        return status
    work.dtype, work.before, work.after = after.of.array.dtype, results[0].of.array.data, after.of.array.data
    parallel_for(_sides_body, &work, after.of.array.size, rows_per_chunk(1, GATHERED))
    release(after.of.array)
    return OK


register_kernel("cumsum", cumsum_kernel)
register_kernel("cumprod", cumprod_kernel)
register_kernel("cumsum_reverse", cumsum_reverse_kernel)
register_kernel("product_before", product_before_kernel)
register_kernel("exclusive_product", exclusive_product_kernel)


# ----------------------------------------------------------------------------------------------------------- scan order

ctypedef fused element_t:
    uint8_t
    int8_t
    int16_t
    int32_t
    int64_t
    float
    double

ctypedef fused real_t:
    float
    double

ctypedef struct ordered_scan_t:
    bint largest
    int dtype
    rows_t rows
    char *self
    char *out
    int64_t *indices


cdef void _extrema(ordered_scan_t *work, element_t *x, element_t *out, int64_t begin, int64_t end) noexcept nogil:
    """Scan rows begin..end-1, adjacent rows together: the last of equals wins, and nan from the first one on."""
    cdef int64_t row = begin, i, k, at, width, place, n = work.rows.n, inner = work.rows.inner
    cdef int64_t *indices = work.indices
    cdef element_t best, value
    cdef bint better
    while row < end:
        at = row // inner * n * inner + row % inner
        width = min(inner - row % inner, end - row)
        if inner == 1:
            # Keep the extremum in a register.
            best, place = x[at], 0
            for i in range(n):
                value = x[at + i]
                better = value >= best if work.largest else value <= best
                if element_t is float or element_t is double:
                    better = better or value != value
                if better:
                    best, place = value, i
                out[at + i] = best
                indices[at + i] = place
            row += 1
            continue
        for k in range(at, at + width):
            out[k] = x[k]
            indices[k] = 0
        for i in range(1, n):
            at += inner
            for k in range(at, at + width):
                best, value = out[k - inner], x[k]
                better = value >= best if work.largest else value <= best
                # The only comparison that is true for nan.
                if element_t is float or element_t is double:
                    better = better or value != value
                out[k] = value if better else best
                indices[k] = i if better else indices[k - inner]
        row += width


cdef void _extrema_body(void *context, int64_t begin, int64_t end) noexcept nogil:
    cdef ordered_scan_t *work = <ordered_scan_t *>context
    cdef int d = work.dtype
    if d == BOOL or d == UINT8:
        _extrema(work, <uint8_t *>work.self, <uint8_t *>work.out, begin, end)
    elif d == INT8:
        _extrema(work, <int8_t *>work.self, <int8_t *>work.out, begin, end)
    elif d == INT16:
        _extrema(work, <int16_t *>work.self, <int16_t *>work.out, begin, end)
    elif d == INT32:
        _extrema(work, <int32_t *>work.self, <int32_t *>work.out, begin, end)
    elif d == INT64:
        _extrema(work, <int64_t *>work.self, <int64_t *>work.out, begin, end)
    elif d == FLOAT32:
        _extrema(work, <float *>work.self, <float *>work.out, begin, end)
    else:
        _extrema(work, <double *>work.self, <double *>work.out, begin, end)


cdef inline double _log_sum(double a, double b) noexcept nogil:
    """log(exp(a) + exp(b))"""
    cdef double low = b if b < a else a, high = a if b < a else b
    if high == INFINITY or high == -INFINITY:
        return high + 0 * (0 if low == low else low)
    return high + log1p(exp(low - high))


cdef void _exponentials(ordered_scan_t *work, real_t *x, real_t *out, int64_t begin, int64_t end) noexcept nogil:
    cdef int64_t row, i, at, n = work.rows.n, inner = work.rows.inner
    cdef double total
    for row in range(begin, end):
        at = row // inner * n * inner + row % inner
        total = -INFINITY
        for i in range(n):
            total = _log_sum(total, x[at + i * inner])
            out[at + i * inner] = <real_t>total


cdef void _exponentials_body(void *context, int64_t begin, int64_t end) noexcept nogil:
    cdef ordered_scan_t *work = <ordered_scan_t *>context
    if work.dtype == FLOAT32:
        _exponentials(work, <float *>work.self, <float *>work.out, begin, end)
    else:
        _exponentials(work, <double *>work.self, <double *>work.out, begin, end)


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
    cdef ordered_scan_t work
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
    work.largest, work.self, work.out = largest, source.data, out.data
    work.indices = <int64_t *>indices.data if indices != NULL else NULL
    rows_along(self, dim, &work.rows)
    if out.size:
        parallel_for(_exponentials_body if exponentials else _extrema_body, &work, work.rows.outer * work.rows.inner,
                     rows_per_chunk(work.rows.n, COMPUTED))
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

cdef enum:
    STEPS = 8                         # rows processed together

ctypedef fused number_t:
    float
    double
    float complex
    double complex


cdef struct recurrence_t:
    int dtype
    rows_t rows
    bint reverse
    char *input
    char *coefficient
    char *result


cdef void _run(recurrence_t *work, number_t *tag, int64_t begin, int64_t end) noexcept nogil:
    """
    Compute lines begin..end-1 along the dimension, STEPS of them together, because each step waits for the one before.

    A coefficient of 0 discards the value before, even inf.
    """
    cdef const number_t *input = <const number_t *>work.input
    cdef const number_t *coefficient = <const number_t *>work.coefficient
    cdef number_t *result = <number_t *>work.result
    cdef int64_t n = work.rows.n, inner = work.rows.inner, step = -inner if work.reverse else inner
    cdef int64_t i, k, row, before, count
    cdef int64_t[STEPS] at
    cdef number_t[STEPS] last
    cdef number_t factor
    while begin < end:
        count = min(<int64_t>STEPS, end - begin)
        if work.reverse:
            end -= count
        for k in range(count):
            row = (end if work.reverse else begin) + k
            at[k] = row // inner * n * inner + row % inner + ((n - 1) * inner if work.reverse else 0)
            last[k] = result[at[k]] = input[at[k]]
        # Reversed, the coefficient belongs to the element before.
        before = 0 if work.reverse else step
        for i in range(1, n):
            if i % FETCHED == 0 and inner == 1 and n <= SHORT_ROW:
                _fetch_ahead(input, sizeof(number_t), at[0], n, STEPS * step, count, False)
                _fetch_ahead(coefficient, sizeof(number_t), at[0], n, STEPS * step, count, False)
                _fetch_ahead(result, sizeof(number_t), at[0], n, STEPS * step, count, True)
            for k in range(STEPS if count == STEPS else count):
                factor = coefficient[at[k] + before]
                at[k] += step
                last[k] = input[at[k]] + factor * last[k] if factor != 0 else input[at[k]]
                result[at[k]] = last[k]
        if not work.reverse:
            begin += count


cdef void _run_body(void *context, int64_t begin, int64_t end) noexcept nogil:
    cdef recurrence_t *work = <recurrence_t *>context
    if work.dtype == FLOAT32:
        _run(work, <float *>NULL, begin, end)
    elif work.dtype == FLOAT64:
        _run(work, <double *>NULL, begin, end)
    elif work.dtype == COMPLEX64:
        _run(work, <float complex *>NULL, begin, end)
    else:
        _run(work, <double complex *>NULL, begin, end)


cdef int linear_recurrence_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """linear_recurrence(self, coefficient, dim, reverse)."""
    cdef array_t *input
    cdef array_t *coefficient
    cdef array_t *x
    cdef array_t *c
    cdef array_t *result
    cdef recurrence_t work
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
    rows_along(input, axis, &work.rows)
    work.dtype, work.reverse = dtype, is_true(&arguments[3])
    work.input, work.coefficient, work.result = x.data, c.data, result.data
    if result.size:
        parallel_for(_run_body, &work, work.rows.outer * work.rows.inner,
                     max(<int64_t>STEPS, rows_per_chunk(work.rows.n, COMPUTED)))
    release(x)
    release(c)
    return array_result(result, &results[0])


register_kernel("linear_recurrence", linear_recurrence_kernel)
