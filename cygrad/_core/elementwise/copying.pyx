"""Copies, casts and fills of whole arrays."""

from libc.math cimport fabs, isfinite, trunc
from libc.stdint cimport int32_t, int64_t
from libc.stdio cimport snprintf
from libc.string cimport memset
from cygrad._core.arrays.array cimport (
    ARRAY, COMPLEX, MAX_DIMS, REAL, array_empty, array_empty_like, array_t, array_view, overlaps_itself, release,
    retain, same_shape, shape_text, share_memory,
)
from cygrad._core.arrays.dtype cimport (
    BOOL, COMPLEX128, COMPLEX_CATEGORY, FLOAT64, INT64, category, dtype_name, is_differentiable, is_unsigned, itemsize,
    largest,
)
from cygrad._core.elementwise.expression cimport MAX_INPUTS
from cygrad._core.elementwise.rows cimport columns_per_tile, rows_t
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, OK, RUNTIME_ERROR, elements_of, message
from cygrad._core.memory.storage cimport NO_ELEMENTS
from cygrad._core.primitives.primitive_table cimport cast_loops, loop_t, number_to_cell
from cygrad._core.threads.grain cimport CHUNK, COMPUTED, rows_per_chunk
from cygrad._core.threads.parallel cimport parallel_for


# ------------------------------------------------------------------------------------------------------------ iteration

# Loop nests over several arrays: broadcast, with dimensions sorted and merged.

cdef void nest_begin(nest_t *nest, int ndim, const int64_t *shape) noexcept nogil:
    cdef int d
    nest.ndim = ndim
    nest.n = 0
    nest.size = 1
    for d in range(ndim):
        nest.shape[d] = shape[ndim - 1 - d]
        nest.size *= shape[d]


cdef void nest_add(nest_t *nest, const array_t *array) noexcept nogil:
    cdef int d, k = nest.n
    cdef int64_t size = itemsize(array.dtype)
    nest.n += 1
    nest.data[k] = array.data
    for d in range(array.ndim):
        nest.strides[k][d] = (0 if array.shape[array.ndim - 1 - d] == 1
                              else array.strides[array.ndim - 1 - d] * size)
    for d in range(array.ndim, nest.ndim):
        nest.strides[k][d] = 0


cdef void nest_add_value(nest_t *nest, char *value) noexcept nogil:
    cdef int d
    nest.data[nest.n] = value
    for d in range(nest.ndim):
        nest.strides[nest.n][d] = 0
    nest.n += 1


cdef inline int64_t _magnitude(int64_t x) noexcept nogil:
    return -x if x < 0 else x


cdef void _swap_dims(nest_t *nest, int a, int b) noexcept nogil:
    cdef int k
    nest.shape[a], nest.shape[b] = nest.shape[b], nest.shape[a]
    for k in range(nest.n):
        nest.strides[k][a], nest.strides[k][b] = nest.strides[k][b], nest.strides[k][a]


cdef void nest_finish(nest_t *nest) noexcept nogil:
    cdef int d, k, at, kept = 0
    cdef bint merges
    if nest.size == 0:
        return
    # Drop sizes of 1; walk forwards through the memory of operand 0.
    for d in range(nest.ndim):
        if nest.shape[d] == 1:
            continue
        nest.shape[kept] = nest.shape[d]
        for k in range(nest.n):
            nest.strides[k][kept] = nest.strides[k][d]
        if nest.strides[0][kept] < 0:
            for k in range(nest.n):
                nest.data[k] += nest.strides[k][kept] * (nest.shape[kept] - 1)
                nest.strides[k][kept] = -nest.strides[k][kept]
        kept += 1
    nest.ndim = kept
    # Insertion sort: strides are almost always sorted already.
    for d in range(1, kept):
        at = d
        while at > 0 and nest.strides[0][at] < nest.strides[0][at - 1]:
            _swap_dims(nest, at, at - 1)
            at -= 1
    at = 0
    for d in range(1, kept):
        merges = True
        for k in range(nest.n):
            if nest.strides[k][d] != nest.strides[k][at] * nest.shape[at]:
                merges = False
                break
        if merges:
            nest.shape[at] *= nest.shape[d]
            continue
        at += 1
        nest.shape[at] = nest.shape[d]
        for k in range(nest.n):
            nest.strides[k][at] = nest.strides[k][d]
    nest.ndim = at + 1
    if kept == 0:
        nest.ndim = 1
        nest.shape[0] = 1
        for k in range(nest.n):
            nest.strides[k][0] = 0


cdef char *nest_pointer(const nest_t *nest, int k, int64_t index) noexcept nogil:
    cdef char *pointer = nest.data[k]
    cdef int d
    for d in range(nest.ndim - 1):
        pointer += (index % nest.shape[d]) * nest.strides[k][d]
        index //= nest.shape[d]
    return pointer + index * nest.strides[k][nest.ndim - 1]


cdef int broadcast_shape(const value_t *operands, int n, int64_t *shape) noexcept nogil:
    cdef int i, d, at, ndim = 0
    cdef int64_t size
    cdef const array_t *array
    for i in range(n):
        if operands[i].kind == ARRAY and operands[i].of.array.ndim > ndim:
            ndim = operands[i].of.array.ndim
    for d in range(ndim):
        shape[d] = 1
    for i in range(n):
        if operands[i].kind != ARRAY:
            continue
        array = operands[i].of.array
        for d in range(array.ndim):
            at = ndim - array.ndim + d
            size = array.shape[d]
            if size == shape[at] or size == 1:
                continue
            if shape[at] != 1:
                return _refuse_shapes(operands, n, at, shape[at], size)
            shape[at] = size
    return ndim if elements_of(ndim, shape) >= 0 else -2         # they broadcast, but the size exceeds 64 bits


cdef int _refuse_shapes(const value_t *operands, int n, int dim, int64_t first, int64_t second) noexcept nogil:
    """Write the message that names all shapes, without the operation, which `check_operation` adds; return -1."""
    cdef char *text = message()
    cdef const char *joint = b""
    cdef int i, left = 0, used = snprintf(text, MESSAGE, b": cannot broadcast shapes ")
    for i in range(n):
        left += operands[i].kind == ARRAY
    for i in range(n):
        if operands[i].kind == ARRAY and used < MESSAGE - 400:
            left -= 1
            used += snprintf(text + used, MESSAGE - used, b"%s%s", joint, shape_text(operands[i].of.array))
            joint = b", " if left > 1 else b" and "
    snprintf(text + used, MESSAGE - used, b": the size of tensor a (%lld) must match the size of tensor b (%lld) at "
             b"non-singleton dimension %d. Reshape one of the tensors.", <long long>first, <long long>second, dim)
    return -1


cdef bint broadcasts_to(const array_t *array, int ndim, const int64_t *shape) noexcept nogil:
    cdef int d
    if array.ndim > ndim:
        return False
    for d in range(array.ndim):
        if array.shape[d] != 1 and array.shape[d] != shape[ndim - array.ndim + d]:
            return False
    return True


cdef bint same_place(const array_t *a, const array_t *b) noexcept nogil:
    cdef int d
    if a.data != b.data or a.dtype != b.dtype or not same_shape(a, b):
        return False
    for d in range(a.ndim):
        if a.shape[d] > 1 and a.strides[d] != b.strides[d]:
            return False
    return True


# -------------------------------------------------------------------------------------------------------------- copying

ctypedef void (*transpose_t)(const char *source, int64_t source_step, char *out, int64_t out_step, int64_t rows,
                        int64_t columns) noexcept nogil

cdef extern from "simd/word_moves.h" nogil:
    void copy_rows(const char *source, int64_t source_step, char *out, int64_t out_step, int64_t nbytes, int64_t rows)
    transpose_t transpose_words, transpose_doubles

cdef enum:
    BLOCK = 32            # side of the square tiles of a transposed copy: both sides stay in cache
    SHORT_ROW = 16

ctypedef struct copy_t:
    nest_t nest           # operand 0: to, 1: source
    loop_t loop
    loop_t move           # copies elements of the target's dtype
    int64_t size          # bytes of an element
    int32_t other         # second dimension of the loop, besides dimension 0
    int32_t transposed    # the source is contiguous along `other`
    transpose_t transpose           # SIMD code for that, or NULL
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
    if copy.loop == copy.move and copy.nest.strides[1][0] == copy.size == copy.nest.strides[0][0]:
        copy_rows(source, copy.nest.strides[1][outer], to, copy.nest.strides[0][outer], columns * copy.size, rows)
        return
    if columns < SHORT_ROW and rows > columns:
        inner, outer = copy.other, 0
        count, times = rows, columns
    steps[0] = copy.nest.strides[1][inner]
    steps[1] = copy.nest.strides[0][inner]
    for row in range(times):
        pointers[0] = source + row * copy.nest.strides[1][outer]
        pointers[1] = to + row * copy.nest.strides[0][outer]
        copy.loop(pointers, &count, steps, NULL)


cdef void _transpose_block(copy_t *copy, char *to, char *source, int64_t rows, int64_t columns) noexcept nogil:
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
        if copy.transpose != NULL:
            copy.transpose(source, nest.strides[1][0], to, nest.strides[0][copy.other], rows, nest.shape[0])
            continue
        column = 0
        while column < nest.shape[0]:
            columns = nest.shape[0] - column if nest.shape[0] - column < BLOCK else BLOCK
            _transpose_block(copy, to + column * nest.strides[0][0], source + column * nest.strides[1][0],
                        rows, columns)
            column += BLOCK


cdef transpose_t _transpose_loop(const copy_t *copy) noexcept nogil:
    """Return the SIMD code for a transposed copy of words that are contiguous in their rows, or NULL."""
    if copy.loop == copy.move and copy.nest.strides[0][0] == copy.size == copy.nest.strides[1][copy.other]:
        if copy.size == 4:
            return transpose_words
        if copy.size == 8:
            return transpose_doubles
    return NULL


cdef void _run_copy(copy_t *copy) noexcept nogil:
    """Execute a finished nest, in parallel if it is large."""
    cdef nest_t *nest = &copy.nest
    cdef int64_t items, least, size
    cdef int d
    if nest.size == 0:
        return
    if nest.ndim == 1:
        parallel_for(_copy_flat, copy, nest.size, CHUNK // 2)
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
        copy.transpose = _transpose_loop(copy)
    else:
        copy.rows = CHUNK // 2 // nest.shape[0]
        if copy.rows < 1:
            copy.rows = 1
    if copy.rows > nest.shape[copy.other]:
        copy.rows = nest.shape[copy.other]
    copy.groups = (nest.shape[copy.other] + copy.rows - 1) // copy.rows
    items = copy.groups
    for d in range(1, nest.ndim):
        if d != copy.other:
            items *= nest.shape[d]
    size = CHUNK // 2 // (copy.rows * nest.shape[0])
    parallel_for(_copy_items, copy, items, size if size > 1 else 1)


cdef int check_writable(array_t *array, const char *operation) noexcept nogil:
    if array.contiguous or not overlaps_itself(array):
        return OK
    snprintf(message(), MESSAGE, b"%s: several elements of the written tensor share a memory location (got shape %s, "
                                 b"expanded or overlapping, expected a location for each element). "
             b"Write to a clone() of it.", operation, shape_text(array))
    return RUNTIME_ERROR


cdef int copy_into(array_t *to, array_t *source) noexcept nogil:
    cdef array_t *aside
    cdef int status
    if not broadcasts_to(source, to.ndim, to.shape):
        snprintf(message(), MESSAGE, b"copy: shapes do not match (got %s, expected one that broadcasts to %s). "
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
    _copy_disjoint(to, source)
    return OK


cdef void _copy_disjoint(array_t *to, array_t *source) noexcept nogil:
    """Implement copy_into() for arrays of matching shape that do not overlap."""
    cdef copy_t copy
    cdef int64_t size
    cdef int64_t[2] steps
    cdef char *pointers[2]
    copy.loop = cast_loops[source.dtype][to.dtype]
    copy.move = cast_loops[to.dtype][to.dtype]
    copy.size = itemsize(to.dtype)
    if to.contiguous and source.contiguous and to.size == source.size and to.size <= CHUNK // 2:
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
        _copy_disjoint(result, array)
    return result


cdef array_t *as_contiguous(array_t *array, int dtype) noexcept nogil:
    if dtype < 0:
        dtype = array.dtype
    if array.contiguous and array.dtype == dtype:
        return retain(array)
    return as_copy(array, dtype)


cdef array_t *as_dtype(array_t *array, int dtype) noexcept nogil:
    return retain(array) if array.dtype == dtype else as_copy(array, dtype)


cdef bint is_representable(const value_t *number, int dtype) noexcept nogil:
    cdef double real = number.of.real if number.kind >= REAL else <double>number.of.integer
    cdef double limit
    if dtype == BOOL or dtype == FLOAT64 or dtype == COMPLEX128 or (dtype == INT64 and number.kind < REAL):
        return True
    if is_differentiable(dtype):
        return not isfinite(real) or fabs(real) <= largest(dtype)
    limit = 2.0 ** (8 * itemsize(dtype) - (not is_unsigned(dtype)))
    return isfinite(real) and trunc(real) < limit and trunc(real) >= (1 - limit if is_unsigned(dtype) else -limit)


cdef int check_fits(const char *operation, const value_t *number, int dtype, bint wraps=True) noexcept nogil:
    cdef bint negative = number.of.real <= -1 if number.kind >= REAL else number.of.integer < 0
    if is_representable(number, dtype) and (wraps or not is_unsigned(dtype) or not negative):
        return OK
    if number.kind >= REAL:
        snprintf(message(), MESSAGE, b"%s: value cannot be converted to type %s without overflow (got %g). Choose a "
                 b"wider dtype.", operation, dtype_name(dtype), number.of.real)
    else:
        snprintf(message(), MESSAGE, b"%s: value cannot be converted to type %s without overflow (got %lld). Choose a "
                 b"wider dtype.", operation, dtype_name(dtype), <long long>number.of.integer)
    return RUNTIME_ERROR


cdef int fill(array_t *array, const value_t *number) noexcept nogil:
    cdef double complex cell
    cdef copy_t copy
    cdef int status
    if (number.kind == COMPLEX and number.imag != 0 and category(array.dtype) != COMPLEX_CATEGORY
            and array.dtype != BOOL):
        snprintf(message(), MESSAGE, b"fill: a complex number cannot be cast to %s (got imaginary part %g). "
                 b"Fill a complex tensor, or pass the real part.", dtype_name(array.dtype), number.imag)
        return RUNTIME_ERROR
    status = check_fits(b"fill", number, array.dtype)
    if status != OK or array.size == 0:
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


cdef void _zero_bytes(void *context, int64_t begin, int64_t end) noexcept nogil:
    memset(<char *>context + begin, 0, end - begin)


cdef void fill_zeros(array_t *array) noexcept nogil:
    if array.size:
        parallel_for(_zero_bytes, array.data, array.size * itemsize(array.dtype), 16 * CHUNK)


# --------------------------------------------------------------------------------------------------------------- layout

# Layout of results: the order of their dimensions in memory, following the operands.
#
# Dimensions are sorted by their strides in the first operand that distinguishes two of them; otherwise the order is
# row-major. Row-major operands, by far the most frequent, are recognized first.

cdef array_t *array_strided(int dtype, int ndim, const int64_t *shape, const int64_t *strides) noexcept nogil:
    cdef array_t *array = array_empty(dtype, ndim, shape)
    cdef int64_t step = 1
    cdef int d
    if array == NULL or array.size <= 1:
        return array
    for d in range(ndim - 1, -1, -1):
        array.strides[d] = strides[d]
        if shape[d] != 1:
            if strides[d] != step:
                array.contiguous = False
            step *= shape[d]
    return array


cdef int _compared(const array_t *array, int ndim, const int64_t *shape, int inner, int outer) noexcept nogil:
    """Return 1 if `outer` belongs inside `inner` by this operand, -1 if not, 0 if it does not tell."""
    cdef int lead = ndim - array.ndim
    cdef int64_t a, b
    if inner < lead or outer < lead:
        return 0
    if array.shape[inner - lead] != shape[inner] or array.shape[outer - lead] != shape[outer]:
        return 0                                          # broadcast
    a, b = _magnitude(array.strides[inner - lead]), _magnitude(array.strides[outer - lead])
    if a == 0 or b == 0:
        return 0
    if a != b:
        return 1 if a > b else -1
    return 1 if shape[inner] > shape[outer] else 0


cdef void _find_order(int ndim, const int64_t *shape, const array_t **arrays, int n, int *order) noexcept nogil:
    """Sort the dimensions by ascending stride."""
    cdef int i, k, at, order_found, operand
    for i in range(ndim):
        order[i] = ndim - 1 - i
    for i in range(1, ndim):
        at = i
        for k in range(i - 1, -1, -1):
            order_found = 0
            for operand in range(n):
                order_found = _compared(arrays[operand], ndim, shape, order[k], order[at])
                if order_found:
                    break
            if order_found > 0:
                order[k], order[at] = order[at], order[k]
                at = k
            elif order_found < 0:
                break


cdef array_t *_sorted_by(int dtype, int ndim, const int64_t *shape, const array_t **arrays, int n) noexcept nogil:
    """Create an array in the layout of the operands, of which not all are row-major."""
    cdef int[MAX_DIMS] order
    cdef int64_t[MAX_DIMS] strides
    cdef int64_t step = 1
    cdef int i
    _find_order(ndim, shape, arrays, n, order)
    for i in range(ndim):
        strides[order[i]] = step
        step *= shape[order[i]]
    return array_strided(dtype, ndim, shape, strides)


cdef int _arrays_of(const value_t *operands, int n, const array_t **arrays) noexcept nogil:
    """Return the number of array operands; 0 if all of these are row-major."""
    cdef int i, count = 0
    cdef bint row_major = True
    for i in range(n):
        if operands[i].kind == ARRAY:
            arrays[count] = operands[i].of.array
            row_major = row_major and arrays[count].contiguous
            count += 1
    return 0 if row_major else count


cdef inline bint _lacks_elements(const array_t *array) noexcept nogil:
    return array.storage != NULL and array.storage.size_class == NO_ELEMENTS


cdef array_t *_without_elements(const array_t *model, int dtype, int ndim, const int64_t *shape) noexcept nogil:
    """Create an array without elements (a fake tensor), as `model` is: nothing is computed."""
    cdef int64_t[MAX_DIMS] strides
    memset(strides, 0, sizeof(strides))
    return array_view(<array_t *>model, dtype, ndim, shape, strides, 0)


cdef array_t *array_for_operands(int dtype, int ndim, const int64_t *shape, const value_t *operands,
                                 int n) noexcept nogil:
    cdef const array_t *arrays[MAX_INPUTS]
    cdef int i, count = _arrays_of(operands, n, arrays)
    for i in range(count):
        if _lacks_elements(arrays[i]):
            return _without_elements(arrays[i], dtype, ndim, shape)
    return _sorted_by(dtype, ndim, shape, arrays, count) if count else array_empty(dtype, ndim, shape)


cdef bint is_row_major_result(int ndim, const int64_t *shape, const value_t *operands, int n) noexcept nogil:
    cdef const array_t *arrays[MAX_INPUTS]
    cdef int[MAX_DIMS] order
    cdef int i, count = _arrays_of(operands, n, arrays)
    if count:
        _find_order(ndim, shape, arrays, count, order)
        for i in range(ndim):
            if order[i] != ndim - 1 - i:
                return False
    return True


cdef array_t *array_like(const array_t *like, int dtype) noexcept nogil:
    cdef const array_t *arrays[1]
    if like.contiguous:
        return array_empty_like(like, dtype)
    dtype = like.dtype if dtype < 0 else dtype
    if is_non_overlapping_and_dense(like):
        return array_strided(dtype, like.ndim, like.shape, like.strides)
    arrays[0] = like
    return _sorted_by(dtype, like.ndim, like.shape, arrays, 1)


cdef bint is_non_overlapping_and_dense(const array_t *array) noexcept nogil:
    cdef int64_t reach = 1
    cdef int d
    for d in range(array.ndim):
        if array.strides[d] < 0 and array.shape[d] > 1:
            return False
        reach += (array.shape[d] - 1) * array.strides[d]
    return reach == array.size and not overlaps_itself(array)


cdef array_t *copy_like(array_t *array, const array_t *like, int dtype) noexcept nogil:
    cdef array_t *copy
    dtype = array.dtype if dtype < 0 else dtype
    if _lacks_elements(array):
        return _without_elements(array, dtype, like.ndim, like.shape)
    copy = array_like(like, dtype)
    if copy != NULL and copy_into(copy, array) != OK:
        release(copy)
        return NULL
    return copy


cdef void channels_last_strides(int ndim, const int64_t *shape, int64_t *strides) noexcept nogil:
    cdef int64_t step = shape[1]
    cdef int d
    strides[1] = 1
    for d in range(ndim - 1, 1, -1):
        strides[d] = step
        step *= shape[d]
    strides[0] = step


cdef bint is_channels_last(const array_t *array) noexcept nogil:
    cdef int64_t least = 0
    cdef int i, d
    if array.contiguous or array.ndim < 4 or array.ndim > 5 or array.strides[1] == 0:
        return False
    for i in range(array.ndim):
        # Channels, pixels from the last dimension to the first, samples: strides must not decrease.
        d = 1 if i == 0 else 0 if i == array.ndim - 1 else array.ndim - i
        if array.shape[d] == 0 or array.strides[d] < least or (d == 0 and least == array.strides[1]):
            return False
        least = array.strides[d] * (array.shape[d] if array.shape[d] > 1 else 1)
    return True


cdef array_t *_as_channels_last(array_t *array, int dtype) noexcept nogil:
    cdef int64_t[MAX_DIMS] strides
    cdef array_t *copy
    channels_last_strides(array.ndim, array.shape, strides)
    copy = array_strided(dtype, array.ndim, array.shape, strides)
    if copy != NULL and copy_into(copy, array) != OK:
        release(copy)
        copy = NULL
    return copy


cdef array_t *with_layout_of_images(array_t *result, const array_t *images) noexcept nogil:
    cdef array_t *copy
    if result == NULL or images.contiguous or not is_channels_last(images) or result.ndim != images.ndim:
        return result
    copy = _as_channels_last(result, result.dtype)
    release(result)
    return copy


cdef array_t *images_as_dtype(array_t *array, int dtype) noexcept nogil:
    return (_as_channels_last(array, dtype) if array.dtype != dtype and is_channels_last(array)
            else as_dtype(array, dtype))


# --------------------------------------------------------------------------------------------------------- offset moves

# Gather, scatter and scatter-add by a list of offsets, to and from a contiguous array.

cdef enum:
    COLUMNS = 512          # maximum of the columns per chunk of a sum


cdef extern from "elementwise/offset_loops.h" nogil:
    void read_elements(int64_t size, const char *sparse, int64_t step, char *dense, const int64_t *offsets, int64_t n,
                       int64_t rows)
    void move_elements(move_t move, int dtype, int64_t size, char *sparse, char *dense, const int64_t *offsets,
                       int64_t n)
    void move_row(move_t move, int dtype, int64_t size, char *sparse, char *dense, int64_t stride, int64_t n)


cdef inline void _elements(const nest_of_offsets_t *nest, char *sparse, char *dense, const int64_t *offsets,
                           int64_t n) noexcept nogil:
    """Move n offsets with one element each."""
    move_elements(nest.move, nest.dtype, itemsize(nest.dtype), sparse, dense, offsets, n)


cdef inline void _row(const nest_of_offsets_t *nest, char *sparse, char *dense, int64_t stride,
                      int64_t n) noexcept nogil:
    """Move a row of n elements at one offset."""
    move_row(nest.move, nest.dtype, itemsize(nest.dtype), sparse, dense, stride, n)


# ---- the nest

cdef int64_t _product(int n, const int64_t *shape) noexcept nogil:
    """Return the number of positions of these dimensions."""
    cdef int64_t total = 1
    cdef int i
    for i in range(n):
        total *= shape[i]
    return total


cdef int64_t _place(int n, const int64_t *shape, const int64_t *strides, int64_t index) noexcept nogil:
    """Return the address of position `index`, in row-major order."""
    cdef int64_t place = 0
    cdef int i
    for i in range(n - 1, 0, -1):
        place += index % shape[i] * strides[i]
        index //= shape[i]
    return place + index * strides[0] if n else 0


cdef void _read_rows(void *context, int64_t begin, int64_t end) noexcept nogil:
    """Move rows begin..end, counted over (before, offsets, all but the last of after)."""
    cdef nest_of_offsets_t *nest = <nest_of_offsets_t *>context
    cdef int outer = nest.n_after - 1, last = nest.n_before - 1
    cdef int64_t width = itemsize(nest.dtype), inner = 1, run, row = begin, b, i, a, length = 1, rows = 1, step = 0
    cdef char *sparse
    if nest.n_after == 0:           # single elements: one run of offsets at a time, or several whole ones
        while row < end:
            b, i = row // nest.n, row % nest.n
            run = min(nest.n - i, end - row)
            if last >= 0:
                rows = min(nest.before_shape[last] - b % nest.before_shape[last], (end - row) // nest.n)
                rows, step = rows if i == 0 and rows > 1 else 1, nest.before_strides[last]
            sparse = nest.sparse + _place(nest.n_before, nest.before_shape, nest.before_strides, b)
            read_elements(width, sparse, step, nest.dense + row * width, nest.offsets + i, run, rows)
            row += run * rows
        return
    length = nest.after_shape[outer]
    inner = _product(outer, nest.after_shape)
    i, a = row // inner, row % inner
    b, i = i // nest.n, i % nest.n
    sparse = nest.sparse + _place(nest.n_before, nest.before_shape, nest.before_strides, b)
    for row in range(begin, end):
        _row(nest, sparse + nest.offsets[i] + (_place(outer, nest.after_shape, nest.after_strides, a) if outer else 0),
             nest.dense + row * length * width, nest.after_strides[outer], length)
        a += 1
        if a == inner:
            a = 0
            i += 1
            if i == nest.n:
                i = 0
                b += 1
                sparse = nest.sparse + _place(nest.n_before, nest.before_shape, nest.before_strides, b)


cdef void _take(nest_of_offsets_t *nest, char *sparse, char *dense, int64_t dense_step, int64_t stride,
                int64_t n) noexcept nogil:
    """Move a row of n elements from each offset, the last one first, leaving zeros."""
    cdef nest_of_offsets_t reading
    cdef int64_t i, j, width = itemsize(nest.dtype)
    reading.move, reading.dtype = READ, nest.dtype
    for i in range(nest.n - 1, -1, -1):
        _row(&reading, sparse + nest.offsets[i], dense + i * dense_step, stride, n)
        for j in range(n):
            memset(sparse + nest.offsets[i] + j * stride, 0, width)


cdef void _write_columns(void *context, int64_t begin, int64_t end) noexcept nogil:
    """Move chunks begin..end, counted over (before, all but the last of after, groups of columns of the last)."""
    cdef nest_of_offsets_t *nest = <nest_of_offsets_t *>context
    cdef int outer = nest.n_after - 1
    cdef int64_t width = itemsize(nest.dtype), chunk, b, i, a, column, groups, inner, length, n
    cdef int64_t dense_step
    cdef char *sparse
    cdef char *dense
    if nest.n_after == 0:
        for b in range(begin, end):
            sparse = nest.sparse + _place(nest.n_before, nest.before_shape, nest.before_strides, b)
            if nest.move == TAKE:
                _take(nest, sparse, nest.dense + b * nest.n * width, width, width, 1)
            else:
                _elements(nest, sparse, nest.dense + b * nest.n * width, nest.offsets, nest.n)
        return
    length = nest.after_shape[outer]
    groups = (length - 1) // nest.columns + 1
    inner = _product(outer, nest.after_shape)
    dense_step = inner * length * width
    for chunk in range(begin, end):
        column = chunk % groups * nest.columns
        a = chunk // groups % inner
        b = chunk // groups // inner
        n = min(nest.columns, length - column)
        sparse = (nest.sparse + _place(nest.n_before, nest.before_shape, nest.before_strides, b)
                  + _place(outer, nest.after_shape, nest.after_strides, a) + column * nest.after_strides[outer])
        dense = nest.dense + b * nest.n * dense_step + (a * length + column) * width
        if nest.move == TAKE:
            _take(nest, sparse, dense, dense_step, nest.after_strides[outer], n)
            continue
        for i in range(nest.n):
            if nest.offsets[i] != SKIP:
                _row(nest, sparse + nest.offsets[i], dense + i * dense_step, nest.after_strides[outer], n)


cdef void move_by_offsets(nest_of_offsets_t *nest) noexcept nogil:
    cdef int64_t before = _product(nest.n_before, nest.before_shape)
    cdef int64_t after = _product(nest.n_after, nest.after_shape)
    cdef int64_t length
    cdef rows_t rows
    if before == 0 or after == 0 or nest.n == 0:
        return
    length = nest.after_shape[nest.n_after - 1] if nest.n_after else 1
    if nest.move == READ:
        parallel_for(_read_rows, nest, before * nest.n * (after // length), rows_per_chunk(length, COMPUTED))
    else:
        rows = rows_t(before * (after // length), nest.n, length)
        nest.columns = columns_per_tile(&rows, COLUMNS, COMPUTED)
        parallel_for(_write_columns, nest, rows.outer * ((length - 1) // nest.columns + 1),
                     rows_per_chunk(nest.n * nest.columns, COMPUTED))


cdef void _append(int *n, int64_t *shape, int64_t *strides, int64_t size, int64_t stride) noexcept nogil:
    """Add an inner dimension, merged with the previous one if possible."""
    if size == 1:
        return
    if n[0] and strides[n[0] - 1] == size * stride:
        shape[n[0] - 1] *= size
        strides[n[0] - 1] = stride
        return
    shape[n[0]] = size
    strides[n[0]] = stride
    n[0] += 1


cdef void add_before(nest_of_offsets_t *nest, const array_t *sparse, int dim) noexcept nogil:
    _append(&nest.n_before, nest.before_shape, nest.before_strides,
            sparse.shape[dim], sparse.strides[dim] * itemsize(sparse.dtype))


cdef void add_after(nest_of_offsets_t *nest, const array_t *sparse, int dim) noexcept nogil:
    _append(&nest.n_after, nest.after_shape, nest.after_strides,
            sparse.shape[dim], sparse.strides[dim] * itemsize(sparse.dtype))


cdef void begin_nest(nest_of_offsets_t *nest, move_t move, const array_t *sparse, const array_t *dense,
                     const int64_t *offsets, int64_t n) noexcept nogil:
    nest.move = move
    nest.dtype = sparse.dtype
    nest.sparse = sparse.data
    nest.dense = dense.data
    nest.offsets = offsets
    nest.n = n
    nest.n_before = nest.n_after = 0


cdef void move_along(move_t move, const array_t *sparse, int dim, const array_t *dense,
                     const int64_t *offsets, int64_t n) noexcept nogil:
    cdef nest_of_offsets_t nest
    cdef int i
    begin_nest(&nest, move, sparse, dense, offsets, n)
    for i in range(sparse.ndim):
        if i < dim:
            add_before(&nest, sparse, i)
        elif i > dim:
            add_after(&nest, sparse, i)
    move_by_offsets(&nest)
