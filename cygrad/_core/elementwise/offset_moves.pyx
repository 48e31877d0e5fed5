"""Gather, scatter and scatter-add by a list of offsets, to and from a contiguous array."""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t
from libc.string cimport memcpy, memset
from cygrad._core.arrays.array cimport array_t
from cygrad._core.arrays.dtype cimport (
    BOOL, COMPLEX64, FLOAT32, FLOAT64, INT8, INT16, INT32, INT64, UINT8, itemsize,
)
from cygrad._core.threads.parallel cimport parallel_for

cdef enum:
    GRAIN = 16384          # elements in one chunk of a parallel loop
    COLUMNS = 512          # columns per chunk of a sum


# ---- one element at each offset

cdef void _read_words(word_t *dense, const char *sparse, const int64_t *offsets, int64_t n) noexcept nogil:
    """dense[i] = the word at offsets[i]."""
    cdef int64_t i
    for i in range(n):
        dense[i] = (<word_t *>(sparse + offsets[i]))[0]


cdef void _write_words(const word_t *dense, char *sparse, const int64_t *offsets, int64_t n) noexcept nogil:
    """The word at offsets[i] = dense[i]."""
    cdef int64_t i
    for i in range(n):
        if offsets[i] != SKIP:
            (<word_t *>(sparse + offsets[i]))[0] = dense[i]


cdef void _add_numbers(const number_t *dense, char *sparse, const int64_t *offsets, int64_t n) noexcept nogil:
    """The number at offsets[i] += dense[i]."""
    cdef int64_t i
    for i in range(n):
        if offsets[i] != SKIP:
            (<number_t *>(sparse + offsets[i]))[0] = (<number_t *>(sparse + offsets[i]))[0] + dense[i]


cdef void _or_bools(const uint8_t *dense, char *sparse, const int64_t *offsets, int64_t n) noexcept nogil:
    """A sum of bools is true if one of them is."""
    cdef int64_t i
    for i in range(n):
        if offsets[i] != SKIP and dense[i]:
            sparse[offsets[i]] = 1


# ---- a row at each offset

cdef void _read_row(word_t *dense, const char *sparse, int64_t stride, int64_t n) noexcept nogil:
    """dense[j] = word j of a row with any step."""
    cdef int64_t j
    for j in range(n):
        dense[j] = (<word_t *>(sparse + j * stride))[0]


cdef void _write_row(const word_t *dense, char *sparse, int64_t stride, int64_t n) noexcept nogil:
    """Word j of a row with any step = dense[j]."""
    cdef int64_t j
    for j in range(n):
        (<word_t *>(sparse + j * stride))[0] = dense[j]


cdef void _add_row(const number_t *dense, char *sparse, int64_t stride, int64_t n) noexcept nogil:
    """Number j of a row with any step += dense[j]."""
    cdef int64_t j
    cdef number_t *row = <number_t *>sparse
    if stride == sizeof(number_t):
        for j in range(n):
            row[j] = row[j] + dense[j]
    else:
        for j in range(n):
            row = <number_t *>(sparse + j * stride)
            row[0] = row[0] + dense[j]


cdef void _or_row(const uint8_t *dense, char *sparse, int64_t stride, int64_t n) noexcept nogil:
    """The same for booleans."""
    cdef int64_t j
    for j in range(n):
        if dense[j]:
            sparse[j * stride] = 1


# ---- the loop for a dtype

cdef void _elements(const nest_of_offsets_t *nest, char *sparse, char *dense, const int64_t *offsets,
                    int64_t n) noexcept nogil:
    """Move n offsets with one element each."""
    cdef int64_t width = itemsize(nest.dtype)
    cdef int d = nest.dtype
    if nest.move == READ:
        if width == 1:
            _read_words[int8_t](<int8_t *>dense, sparse, offsets, n)
        elif width == 2:
            _read_words[int16_t](<int16_t *>dense, sparse, offsets, n)
        elif width == 4:
            _read_words[int32_t](<int32_t *>dense, sparse, offsets, n)
        elif width == 8:
            _read_words[int64_t](<int64_t *>dense, sparse, offsets, n)
        else:
            _read_words[pair_t](<pair_t *>dense, sparse, offsets, n)
    elif nest.move == WRITE:
        if width == 1:
            _write_words[int8_t](<int8_t *>dense, sparse, offsets, n)
        elif width == 2:
            _write_words[int16_t](<int16_t *>dense, sparse, offsets, n)
        elif width == 4:
            _write_words[int32_t](<int32_t *>dense, sparse, offsets, n)
        elif width == 8:
            _write_words[int64_t](<int64_t *>dense, sparse, offsets, n)
        else:
            _write_words[pair_t](<pair_t *>dense, sparse, offsets, n)
    elif d == BOOL:
        _or_bools(<uint8_t *>dense, sparse, offsets, n)
    elif d == UINT8:
        _add_numbers[uint8_t](<uint8_t *>dense, sparse, offsets, n)
    elif d == INT8:
        _add_numbers[int8_t](<int8_t *>dense, sparse, offsets, n)
    elif d == INT16:
        _add_numbers[int16_t](<int16_t *>dense, sparse, offsets, n)
    elif d == INT32:
        _add_numbers[int32_t](<int32_t *>dense, sparse, offsets, n)
    elif d == INT64:
        _add_numbers[int64_t](<int64_t *>dense, sparse, offsets, n)
    elif d == FLOAT32:
        _add_numbers[float](<float *>dense, sparse, offsets, n)
    elif d == FLOAT64:
        _add_numbers[double](<double *>dense, sparse, offsets, n)
    elif d == COMPLEX64:
        _add_numbers[complex64_t](<complex64_t *>dense, sparse, offsets, n)
    else:
        _add_numbers[complex128_t](<complex128_t *>dense, sparse, offsets, n)


cdef void _row(const nest_of_offsets_t *nest, char *sparse, char *dense, int64_t stride, int64_t n) noexcept nogil:
    """Move a row of n elements at one offset."""
    cdef int64_t width = itemsize(nest.dtype)
    cdef int d = nest.dtype
    if nest.move == READ:
        if stride == width:
            memcpy(dense, sparse, n * width)
        elif width == 1:
            _read_row[int8_t](<int8_t *>dense, sparse, stride, n)
        elif width == 2:
            _read_row[int16_t](<int16_t *>dense, sparse, stride, n)
        elif width == 4:
            _read_row[int32_t](<int32_t *>dense, sparse, stride, n)
        elif width == 8:
            _read_row[int64_t](<int64_t *>dense, sparse, stride, n)
        else:
            _read_row[pair_t](<pair_t *>dense, sparse, stride, n)
    elif nest.move == WRITE:
        if stride == width:
            memcpy(sparse, dense, n * width)
        elif width == 1:
            _write_row[int8_t](<int8_t *>dense, sparse, stride, n)
        elif width == 2:
            _write_row[int16_t](<int16_t *>dense, sparse, stride, n)
        elif width == 4:
            _write_row[int32_t](<int32_t *>dense, sparse, stride, n)
        elif width == 8:
            _write_row[int64_t](<int64_t *>dense, sparse, stride, n)
        else:
            _write_row[pair_t](<pair_t *>dense, sparse, stride, n)
    elif d == BOOL:
        _or_row(<uint8_t *>dense, sparse, stride, n)
    elif d == UINT8:
        _add_row[uint8_t](<uint8_t *>dense, sparse, stride, n)
    elif d == INT8:
        _add_row[int8_t](<int8_t *>dense, sparse, stride, n)
    elif d == INT16:
        _add_row[int16_t](<int16_t *>dense, sparse, stride, n)
    elif d == INT32:
        _add_row[int32_t](<int32_t *>dense, sparse, stride, n)
    elif d == INT64:
        _add_row[int64_t](<int64_t *>dense, sparse, stride, n)
    elif d == FLOAT32:
        _add_row[float](<float *>dense, sparse, stride, n)
    elif d == FLOAT64:
        _add_row[double](<double *>dense, sparse, stride, n)
    elif d == COMPLEX64:
        _add_row[complex64_t](<complex64_t *>dense, sparse, stride, n)
    else:
        _add_row[complex128_t](<complex128_t *>dense, sparse, stride, n)


# ---- the nest

cdef int64_t _product(int n, const int64_t *shape) noexcept nogil:
    """Return how many positions these dimensions have."""
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
    cdef int outer = nest.n_after - 1
    cdef int64_t width = itemsize(nest.dtype), inner = 1, run, row = begin, b, i, a, length = 1
    cdef char *sparse
    if nest.n_after == 0:           # single elements: one run of offsets at a time
        while row < end:
            b, i = row // nest.n, row % nest.n
            run = min(nest.n - i, end - row)
            sparse = nest.sparse + _place(nest.n_before, nest.before_shape, nest.before_strides, b)
            _elements(nest, sparse, nest.dense + row * width, nest.offsets + i, run)
            row += run
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
    cdef int64_t width = itemsize(nest.dtype), piece, b, i, a, column, groups, inner, length, n
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
    groups = (length - 1) // COLUMNS + 1
    inner = _product(outer, nest.after_shape)
    dense_step = inner * length * width
    for piece in range(begin, end):
        column = piece % groups * COLUMNS
        a = piece // groups % inner
        b = piece // groups // inner
        n = min(COLUMNS, length - column)
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
    cdef int64_t rows, row_size, length
    if before == 0 or after == 0 or nest.n == 0:
        return
    length = nest.after_shape[nest.n_after - 1] if nest.n_after else 1
    if nest.move == READ:
        rows = before * nest.n * (after // length)
        parallel_for(_read_rows, nest, rows, max(1, GRAIN // length))
    else:
        row_size = nest.n * min(length, COLUMNS)
        rows = before * (after // length) * ((length - 1) // COLUMNS + 1)
        parallel_for(_write_columns, nest, rows, max(1, GRAIN // row_size))


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
