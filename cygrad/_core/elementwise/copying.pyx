"""Copies, casts and fills of whole arrays."""

from libc.math cimport fabs, isfinite, trunc
from libc.stdint cimport int32_t, int64_t
from libc.stdio cimport snprintf
from libc.string cimport memcpy
from cygrad._core.arrays.array cimport (array_empty, overlaps_itself, release, retain,
                                 shape_text, share_memory)
from cygrad._core.arrays.dtype cimport (
    BOOL, COMPLEX128, COMPLEX_CATEGORY, FLOAT64, INT64, category, dtype_name, is_differentiable, is_unsigned, itemsize,
    largest)
from cygrad._core.arrays.value cimport COMPLEX, REAL
from cygrad._core.elementwise.iteration cimport (broadcasts_to, nest_add, nest_add_value, nest_begin, nest_finish,
                                     nest_t, same_place)
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, OK, RUNTIME_ERROR, message
from cygrad._core.primitives.cast cimport cast_loops, number_to_cell
from cygrad._core.primitives.primitive_table cimport loop_t
from cygrad._core.threads.parallel cimport parallel_for

cdef extern from "simd/word_moves.h" nogil:
    void turn_words(const char *source, int64_t source_step, char *out, int64_t out_step, int64_t rows, int64_t columns)
    void turn_doubles(const char *source, int64_t source_step, char *out, int64_t out_step, int64_t rows,
                      int64_t columns)

cdef enum:
    PIECE = 32768         # elements per chunk
    BLOCK = 32            # side of the square tiles of a transposed copy: both sides stay in cache
    SHORT_ROW = 16

ctypedef void (*turn_t)(const char *source, int64_t source_step, char *out, int64_t out_step, int64_t rows,
                        int64_t columns) noexcept nogil

ctypedef struct copy_t:
    nest_t nest           # operand 0: to, 1: source
    loop_t loop
    loop_t move           # copies elements of the target's dtype
    int64_t size          # bytes of an element
    int32_t other         # second dimension of the loop, besides dimension 0
    int32_t transposed    # the source is contiguous along `other`
    turn_t turn           # SIMD code for that, or NULL
    int64_t rows          # items along `other` in one chunk
    int64_t groups        # items along `other`


cdef void _copy_flat(void *context, int64_t begin, int64_t end) noexcept nogil:
    """Copy elements begin..end of a nest of one dimension."""
    cdef copy_t *copy = <copy_t *>context
    cdef char *pointers[2]
    cdef int64_t steps[2]
    cdef int64_t n = end - begin
    steps[0] = copy.nest.strides[1][0]
    steps[1] = copy.nest.strides[0][0]
    pointers[0] = copy.nest.data[1] + begin * steps[0]
    pointers[1] = copy.nest.data[0] + begin * steps[1]
    copy.loop(pointers, &n, steps, NULL)


cdef void _copy_block(copy_t *copy, char *to, char *source, int64_t rows, int64_t columns) noexcept nogil:
    """Copy columns (dimension 0) x rows (dimension `other`), the inner loop along the longer side."""
    cdef char *pointers[2]
    cdef int64_t steps[2]
    cdef int64_t row, count = columns, times = rows
    cdef int inner = 0, outer = copy.other
    if columns < SHORT_ROW and rows > columns:
        inner, outer = copy.other, 0
        count, times = rows, columns
    steps[0] = copy.nest.strides[1][inner]
    steps[1] = copy.nest.strides[0][inner]
    if copy.loop == copy.move and steps[0] == copy.size == steps[1]:
        for row in range(times):
            memcpy(to + row * copy.nest.strides[0][outer], source + row * copy.nest.strides[1][outer],
                   count * copy.size)
        return
    for row in range(times):
        pointers[0] = source + row * copy.nest.strides[1][outer]
        pointers[1] = to + row * copy.nest.strides[0][outer]
        copy.loop(pointers, &count, steps, NULL)


cdef void _turn_block(copy_t *copy, char *to, char *source, int64_t rows, int64_t columns) noexcept nogil:
    """
    Copy a square of at most BLOCK x BLOCK through a buffer.

    Each cache line of both arrays is accessed once; without the buffer, rows a power of two apart would evict each
    other from the L1 cache.
    """
    cdef double complex[BLOCK * BLOCK] buffer
    cdef char *pointers[2]
    cdef int64_t steps[2]
    cdef int64_t i
    steps[0] = copy.nest.strides[1][copy.other]
    steps[1] = copy.size
    for i in range(columns):
        pointers[0] = source + i * copy.nest.strides[1][0]
        pointers[1] = <char *>buffer + i * BLOCK * copy.size
        copy.loop(pointers, &rows, steps, NULL)
    steps[0] = BLOCK * copy.size
    steps[1] = copy.nest.strides[0][0]
    for i in range(rows):
        pointers[0] = <char *>buffer + i * copy.size
        pointers[1] = to + i * copy.nest.strides[0][copy.other]
        copy.move(pointers, &columns, steps, NULL)


cdef void _copy_items(void *context, int64_t begin, int64_t end) noexcept nogil:
    """Copy items begin..end of a nest of two or more dimensions."""
    cdef copy_t *copy = <copy_t *>context
    cdef nest_t *nest = &copy.nest
    cdef int64_t item, index, first, rows, column, columns
    cdef int d
    cdef char *to
    cdef char *source
    for item in range(begin, end):
        first = (item % copy.groups) * copy.rows
        rows = nest.shape[copy.other] - first
        if rows > copy.rows:
            rows = copy.rows
        to = nest.data[0] + first * nest.strides[0][copy.other]
        source = nest.data[1] + first * nest.strides[1][copy.other]
        index = item // copy.groups
        for d in range(1, nest.ndim):
            if d != copy.other:
                to += (index % nest.shape[d]) * nest.strides[0][d]
                source += (index % nest.shape[d]) * nest.strides[1][d]
                index //= nest.shape[d]
        if not copy.transposed:
            _copy_block(copy, to, source, rows, nest.shape[0])
            continue
        if copy.turn != NULL:
            copy.turn(source, nest.strides[1][0], to, nest.strides[0][copy.other], rows, nest.shape[0])
            continue
        column = 0
        while column < nest.shape[0]:
            columns = nest.shape[0] - column if nest.shape[0] - column < BLOCK else BLOCK
            _turn_block(copy, to + column * nest.strides[0][0], source + column * nest.strides[1][0],
                        rows, columns)
            column += BLOCK


cdef turn_t _turn_of(const copy_t *copy) noexcept nogil:
    """Return the SIMD code for a transposed copy of words that are contiguous in their rows, or NULL."""
    if copy.loop == copy.move and copy.nest.strides[0][0] == copy.size == copy.nest.strides[1][copy.other]:
        if copy.size == 4:
            return turn_words
        if copy.size == 8:
            return turn_doubles
    return NULL


cdef inline int64_t _magnitude(int64_t x) noexcept nogil:
    return -x if x < 0 else x


cdef void _run_copy(copy_t *copy) noexcept nogil:
    """Execute a finished nest, in parallel if it is large."""
    cdef nest_t *nest = &copy.nest
    cdef int64_t items, least, size
    cdef int d
    if nest.size == 0:
        return
    if nest.ndim == 1:
        parallel_for(_copy_flat, copy, nest.size, PIECE)
        return
    # The dimension with the smallest source stride; stride 0 does not count.
    copy.other = 1
    copy.transposed = False
    least = _magnitude(nest.strides[1][0])
    for d in range(1, nest.ndim):
        size = _magnitude(nest.strides[1][d])
        if size != 0 and size < least and nest.shape[d] > 1:
            copy.other = d
            copy.transposed = True
            least = size
    if copy.transposed:
        copy.rows = BLOCK
        copy.turn = _turn_of(copy)
    else:
        copy.rows = PIECE // nest.shape[0]
        if copy.rows < 1:
            copy.rows = 1
    if copy.rows > nest.shape[copy.other]:
        copy.rows = nest.shape[copy.other]
    copy.groups = (nest.shape[copy.other] + copy.rows - 1) // copy.rows
    items = copy.groups
    for d in range(1, nest.ndim):
        if d != copy.other:
            items *= nest.shape[d]
    size = PIECE // (copy.rows * nest.shape[0])
    parallel_for(_copy_items, copy, items, size if size > 1 else 1)


cdef int check_writable(array_t *array, const char *operation) noexcept nogil:
    if array.contiguous or not overlaps_itself(array):
        return OK
    snprintf(message(), MESSAGE, b"%s: several elements of the tensor that is written share one memory "
             b"location "
             b"(got shape %s, expanded or overlapping, expected a location for each element). "
             b"Write to a clone() of it.", operation, shape_text(array))
    return RUNTIME_ERROR


cdef int copy_into(array_t *to, array_t *source) noexcept nogil:
    cdef array_t *aside
    cdef int status
    if not broadcasts_to(source, to.ndim, to.shape):
        snprintf(message(), MESSAGE, b"copy: shapes do not fit (got %s, expected one that broadcasts to %s). "
                 b"Reshape the source.", shape_text(source), shape_text(to))
        return RUNTIME_ERROR
    if to.size == 0:
        return OK
    status = check_writable(to, b"copy")
    if status != OK:
        return status
    if share_memory(to, source):
        if same_place(to, source):
            return OK
        aside = as_copy(source, source.dtype)
        if aside == NULL:
            return MEMORY_ERROR
        status = copy_into(to, aside)
        release(aside)
        return status
    _copy_apart(to, source)
    return OK


cdef void _copy_apart(array_t *to, array_t *source) noexcept nogil:
    """copy_into() for arrays that fit and do not overlap."""
    cdef copy_t copy
    cdef int64_t size
    cdef int64_t[2] steps
    cdef char *pointers[2]
    copy.loop = cast_loops[source.dtype][to.dtype]
    copy.move = cast_loops[to.dtype][to.dtype]
    copy.size = itemsize(to.dtype)
    if to.contiguous and source.contiguous and to.size == source.size and to.size <= PIECE:
        size = to.size
        steps[0] = itemsize(source.dtype)
        steps[1] = itemsize(to.dtype)
        pointers[0] = source.data
        pointers[1] = to.data
        copy.loop(pointers, &size, steps, NULL)
        return
    nest_begin(&copy.nest, to.ndim, to.shape)
    nest_add(&copy.nest, to)
    nest_add(&copy.nest, source)
    nest_finish(&copy.nest)
    _run_copy(&copy)


cdef array_t *as_copy(array_t *array, int dtype) noexcept nogil:
    cdef array_t *result = array_empty(dtype, array.ndim, array.shape)
    if result != NULL and array.size:
        _copy_apart(result, array)
    return result


cdef array_t *as_contiguous(array_t *array, int dtype) noexcept nogil:
    if dtype < 0:
        dtype = array.dtype
    if array.contiguous and array.dtype == dtype:
        return retain(array)
    return as_copy(array, dtype)


cdef array_t *as_dtype(array_t *array, int dtype) noexcept nogil:
    return retain(array) if array.dtype == dtype else as_copy(array, dtype)


cdef bint _representable(const value_t *number, int dtype) noexcept nogil:
    """Is the number in the range of the dtype? Negative ones wrap around in unsigned dtypes, as in C."""
    cdef double real = number.of.real if number.kind >= REAL else <double>number.of.integer
    cdef double limit
    if dtype == BOOL or dtype == FLOAT64 or dtype == COMPLEX128 or (dtype == INT64 and number.kind < REAL):
        return True
    if is_differentiable(dtype):
        return not isfinite(real) or fabs(real) <= largest(dtype)
    limit = 2.0 ** (8 * itemsize(dtype) - (not is_unsigned(dtype)))
    return isfinite(real) and trunc(real) < limit and trunc(real) >= (1 - limit if is_unsigned(dtype) else -limit)


cdef int fill(array_t *array, const value_t *number) noexcept nogil:
    cdef double complex cell
    cdef copy_t copy
    cdef int status
    if (number.kind == COMPLEX and number.imag != 0 and category(array.dtype) != COMPLEX_CATEGORY
            and array.dtype != BOOL):
        snprintf(message(), MESSAGE, b"fill: a complex number does not fit into %s (got imaginary part %g). "
                 b"Fill a complex tensor, or pass the real part.", dtype_name(array.dtype), number.imag)
        return RUNTIME_ERROR
    if not _representable(number, array.dtype):
        snprintf(message(), MESSAGE, b"fill: value cannot be converted to type %s without overflow (got %g). Choose a "
                 b"wider dtype.", dtype_name(array.dtype), number.of.real if number.kind >= REAL else
                 <double>number.of.integer)
        return RUNTIME_ERROR
    if array.size == 0:
        return OK
    status = check_writable(array, b"fill")
    if status != OK:
        return status
    number_to_cell(number, array.dtype, &cell)
    copy.loop = copy.move = cast_loops[array.dtype][array.dtype]
    copy.size = itemsize(array.dtype)
    nest_begin(&copy.nest, array.ndim, array.shape)
    nest_add(&copy.nest, array)
    nest_add_value(&copy.nest, <char *>&cell)
    nest_finish(&copy.nest)
    _run_copy(&copy)
    return OK
