"""Running sums and products along a dimension."""

cimport cygrad._core.primitives.complex_parts
from libc.stdint cimport int64_t
from cygrad._core.arrays.array cimport array_empty_like, array_t, release
from cygrad._core.arrays.dtype cimport BOOL, COMPLEX64, FLOAT32, FLOAT64, INT64, is_differentiable
from cygrad._core.arrays.value cimport NOTHING, is_true, register_kernel, set_array, value_t
from cygrad._core.elementwise.copying cimport as_contiguous, as_dtype
from cygrad._core.elementwise.rows cimport rows_along, rows_t
from cygrad._core.kernels.arguments cimport array_argument, integer_argument, wrap_dim
from cygrad._core.memory.errors cimport MEMORY_ERROR, OK
from cygrad._core.threads.parallel cimport parallel_for

cdef enum:
    PIECE = 32768          # elements worth a thread
    COLUMNS = 256          # neighboring rows that are taken at once

ctypedef float complex complex64_t
ctypedef double complex complex128_t

ctypedef fused element:
    int64_t
    float
    double
    complex64_t
    complex128_t

# Running totals of float32 are kept in double.
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


cdef void _scan(cumulation_t *work, element *x, element *out, total *totals, int64_t begin,
                int64_t end) noexcept nogil:
    """Tiles begin..end-1; `totals` has room for a tile."""
    cdef int64_t item, i, k, at, column, width, line, n = work.rows.n, inner = work.rows.inner, step
    cdef bint exclusive = work.operation >= PRODUCT_BEFORE
    cdef bint multiplies = exclusive or work.operation == CUMPROD
    cdef bint reverse = work.operation == CUMSUM_REVERSE or work.operation == PRODUCT_AFTER
    cdef total running, pair
    # Only these pairs of types are compiled.
    if ((element is int64_t and total is int64_t)
            or ((element is float or element is double) and total is double)
            or ((element is complex64_t or element is complex128_t) and total is complex128_t)):
        for item in range(begin, end):
            column = item % work.tiles * work.width
            width = min(work.width, inner - column)
            at = item // work.tiles * n * inner + column
            if inner == 1:
                # A total in a register.
                running = 1 if multiplies else 0
                if exclusive:
                    line, step = (at + n - 1, -1) if reverse else (at, 1)
                    i = 0
                    if element is float:                   # products of four neighbors do not overflow
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
                elif multiplies:
                    for i in range(at, at + n):
                        running = running * x[i]
                        out[i] = <element>running
                elif work.operation == CUMSUM:
                    for i in range(at, at + n):
                        running = running + x[i]
                        out[i] = <element>running
                else:
                    for i in range(n):
                        line = at + n - 1 - i
                        running = running + x[line]
                        out[line] = <element>running
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
    """The scan in dtype `wanted` (-1: as PyTorch chooses)."""
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
    # Integers are scanned in 64 bits and cast back, which is the same modulo their range; bool and what was
    # floating is cast before as well.
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
    work.width = max(1, min(<int64_t>COLUMNS, work.rows.inner))
    work.tiles = (work.rows.inner + work.width - 1) // work.width
    work.self = source.data
    work.out = out.data
    if out.size:
        parallel_for(_scan_body, &work, work.rows.outer * work.tiles,
                     max(1, PIECE // (work.rows.n * work.width)))
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
    """cumsum_reverse(self, dim): running sums from the end, the derivative of cumsum."""
    return _scanned(b"cumsum_reverse", CUMSUM_REVERSE, arguments, -1, results)


cdef int product_before_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """product_before(self, dim, reverse): products of the elements before each one, or after it."""
    return _scanned(b"product_before", PRODUCT_AFTER if is_true(&arguments[2]) else PRODUCT_BEFORE, arguments, -1,
                    results)


register_kernel("cumsum", cumsum_kernel)
register_kernel("cumprod", cumprod_kernel)
register_kernel("cumsum_reverse", cumsum_reverse_kernel)
register_kernel("product_before", product_before_kernel)
