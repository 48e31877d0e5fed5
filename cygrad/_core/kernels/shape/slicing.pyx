"""Views of parts, split, cat, stack, rearranging copies (flip, roll, tril, repeat), and their gradients."""

from libc.stdint cimport INT64_MAX, int64_t
from libc.stdio cimport snprintf
from libc.string cimport memcpy, memset, strcmp
from cygrad._core.arrays.array cimport (
    DTYPE, INTEGERS, MAX_DIMS, NOTHING, TEXT, array_empty, array_t, array_view, clear, kernel_t, overlaps_itself,
    register_kernel, release, replace_version, retain, same_shape, set_array, set_arrays, shape_text, value_t,
)
from cygrad._core.arrays.dtype cimport DTYPES, INT64, itemsize, promote
from cygrad._core.elementwise.copying cimport (
    ADD, array_like, array_strided, as_contiguous, begin_nest, channels_last_strides, copy_into, copy_like,
    is_channels_last, move_along, move_by_offsets, nest_of_offsets_t,
)
from cygrad._core.kernels.arguments cimport (
    array_argument, array_result, arrays_argument, check_same_shape, check_sizes, fresh_copy, integer_argument,
    integers_argument, list_text, new_array, new_zeros, optional_integer, text_argument, view_result, wrap_dim,
    wrap_dims,
)
from cygrad._core.kernels.shape.shape cimport expanded, reshaped
from cygrad._core.memory.errors cimport (
    INDEX_ERROR, MEMORY_ERROR, MESSAGE, OK, RUNTIME_ERROR, TYPE_ERROR, VALUE_ERROR, message,
)
from cygrad._core.memory.storage cimport version_new
from cygrad._core.threads.grain cimport MOVED, rows_per_chunk
from cygrad._core.threads.parallel cimport parallel_for


# -------------------------------------------------------------------------------------------------------------- slicing

cdef array_t *narrowed(array_t *array, int dim, int64_t start, int64_t length) noexcept nogil:
    cdef int64_t shape[MAX_DIMS]
    memcpy(shape, array.shape, array.ndim * sizeof(int64_t))
    shape[dim] = length
    return array_view(array, array.dtype, array.ndim, shape, array.strides, start * array.strides[dim] if length else 0)


cdef array_t *selected(array_t *array, int dim, int64_t index) noexcept nogil:
    cdef int64_t shape[MAX_DIMS]
    cdef int64_t strides[MAX_DIMS]
    cdef int i
    for i in range(array.ndim - 1):
        shape[i] = array.shape[i + (i >= dim)]
        strides[i] = array.strides[i + (i >= dim)]
    return array_view(array, array.dtype, array.ndim - 1, shape, strides, index * array.strides[dim])


cdef int _dim_argument(const char *operation, const array_t *self, const value_t *value, int status_if_0dim,
                       int *dim) noexcept nogil:
    """Read a dimension of an array that must have one."""
    cdef int64_t given
    cdef int status = integer_argument(operation, b"dim", value, &given)
    if status != OK:
        return status
    if self.ndim == 0:
        snprintf(message(), MESSAGE, b"%s: a 0-dim tensor has no dimension to choose from (got dimension %lld).",
                 operation, <long long>given)
        return status_if_0dim
    return wrap_dim(operation, given, self.ndim, dim)


cdef int narrow_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """narrow(self, dim, start, length)."""
    cdef array_t *self
    cdef int64_t start, length, size
    cdef int dim, status = array_argument(b"narrow", b"self", &arguments[0], &self)
    if status == OK:
        status = _dim_argument(b"narrow", self, &arguments[1], RUNTIME_ERROR, &dim)
    if status == OK:
        status = integer_argument(b"narrow", b"start", &arguments[2], &start)
    if status == OK:
        status = integer_argument(b"narrow", b"length", &arguments[3], &length)
    if status != OK:
        return status
    size = self.shape[dim]
    if start < -size or start > size:
        snprintf(message(), MESSAGE, b"narrow: start out of range (got %lld, expected a value in [%lld, %lld]).",
                 <long long>start, <long long>-size, <long long>size)
        return INDEX_ERROR
    if start < 0:
        start += size
    if length < 0 or length > size - start:
        snprintf(message(), MESSAGE, b"narrow: length out of range (got %lld from start %lld, expected 0 to %lld "
                 b"in dimension %d of shape %s).", <long long>length, <long long>start, <long long>(size - start),
                 dim, shape_text(self))
        return RUNTIME_ERROR
    return array_result(narrowed(self, dim, start, length), &results[0])


cdef int select_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """select(self, dim, index)."""
    cdef array_t *self
    cdef int64_t index, size
    cdef int dim, status = array_argument(b"select", b"self", &arguments[0], &self)
    if status == OK:
        status = _dim_argument(b"select", self, &arguments[1], INDEX_ERROR, &dim)
    if status == OK:
        status = integer_argument(b"select", b"index", &arguments[2], &index)
    if status != OK:
        return status
    size = self.shape[dim]
    if index < -size or index >= size:
        snprintf(message(), MESSAGE, b"select: index %lld is out of bounds for dimension %d with size %lld "
                 b"(got a tensor of shape %s).", <long long>index, dim, <long long>size, shape_text(self))
        return INDEX_ERROR
    return array_result(selected(self, dim, index + size if index < 0 else index), &results[0])


cdef int64_t _clamped(int64_t position, int64_t size) noexcept nogil:
    """Clip a bound of a slice, as Python does."""
    if position < 0:
        position += size
    return 0 if position < 0 else size if position > size else position


cdef int slice_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """slice(self, dim, start, end, step): as self[start:end:step] along `dim`; step > 0."""
    cdef array_t *self
    cdef int64_t shape[MAX_DIMS]
    cdef int64_t strides[MAX_DIMS]
    cdef int64_t start, end, step, length
    cdef int dim, status = array_argument(b"slice", b"self", &arguments[0], &self)
    if status == OK:
        status = _dim_argument(b"slice", self, &arguments[1], INDEX_ERROR, &dim)
    if status == OK:
        status = optional_integer(b"slice", b"start", &arguments[2], 0, &start)
    if status == OK:
        status = optional_integer(b"slice", b"end", &arguments[3], INT64_MAX, &end)
    if status == OK:
        status = optional_integer(b"slice", b"step", &arguments[4], 1, &step)
    if status != OK:
        return status
    if step <= 0:
        snprintf(message(), MESSAGE, b"slice: step must be positive (got %lld). Use flip() to reverse.",
                 <long long>step)
        return RUNTIME_ERROR
    start = _clamped(start, self.shape[dim])
    end = _clamped(end, self.shape[dim])
    length = (end - start - 1) // step + 1 if end > start else 0
    memcpy(shape, self.shape, self.ndim * sizeof(int64_t))
    memcpy(strides, self.strides, self.ndim * sizeof(int64_t))
    shape[dim] = length
    if length > 1:      # the stride of a single element is unused and may overflow
        strides[dim] *= step
    return view_result(self, self.ndim, shape, strides, start * self.strides[dim] if length else 0, &results[0])


cdef int diagonal_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """diagonal(self, offset, dim1, dim2): the diagonal of two dimensions as the last one."""
    cdef array_t *self
    cdef int64_t shape[MAX_DIMS]
    cdef int64_t strides[MAX_DIMS]
    cdef int64_t offset, given1, given2, rows, columns, length, first = 0
    cdef int i, ndim = 0, dim1, dim2, status = array_argument(b"diagonal", b"self", &arguments[0], &self)
    if status == OK:
        status = optional_integer(b"diagonal", b"offset", &arguments[1], 0, &offset)
    if status == OK:
        status = optional_integer(b"diagonal", b"dim1", &arguments[2], 0, &given1)
    if status == OK:
        status = optional_integer(b"diagonal", b"dim2", &arguments[3], 1, &given2)
    if status == OK:
        status = wrap_dim(b"diagonal", given1, self.ndim, &dim1)
    if status == OK:
        status = wrap_dim(b"diagonal", given2, self.ndim, &dim2)
    if status != OK:
        return status
    if dim1 == dim2:
        snprintf(message(), MESSAGE, b"diagonal: the two dimensions are the same (got %lld and %lld for shape %s).",
                 <long long>given1, <long long>given2, shape_text(self))
        return RUNTIME_ERROR
    rows, columns = self.shape[dim1], self.shape[dim2]
    # Clip before any arithmetic: an offset may be the largest integer.
    offset = -rows if offset < -rows else columns if offset > columns else offset
    length = min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns)
    if length > 0:
        first = offset * self.strides[dim2] if offset >= 0 else -offset * self.strides[dim1]
    for i in range(self.ndim):
        if i != dim1 and i != dim2:
            shape[ndim] = self.shape[i]
            strides[ndim] = self.strides[i]
            ndim += 1
    shape[ndim] = length
    strides[ndim] = self.strides[dim1] + self.strides[dim2]
    return view_result(self, ndim + 1, shape, strides, first, &results[0])


cdef int unfold_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """unfold(self, dim, size, step): sliding windows over `dim`, whose elements are the last dimension."""
    cdef array_t *self
    cdef int64_t shape[MAX_DIMS]
    cdef int64_t strides[MAX_DIMS]
    cdef int64_t given, size, step, length
    cdef int dim, status = array_argument(b"unfold", b"self", &arguments[0], &self)
    if status == OK:
        status = integer_argument(b"unfold", b"dimension", &arguments[1], &given)
    if status == OK:
        status = integer_argument(b"unfold", b"size", &arguments[2], &size)
    if status == OK:
        status = integer_argument(b"unfold", b"step", &arguments[3], &step)
    if status == OK:
        status = wrap_dim(b"unfold", given, self.ndim, &dim)
    if status != OK:
        return status
    length = self.shape[dim] if self.ndim else 1
    if size < 0 or size > length:
        snprintf(message(), MESSAGE, b"unfold: size out of range (got %lld, expected 0 to %lld for dimension %d "
                 b"of shape %s).", <long long>size, <long long>length, dim, shape_text(self))
        return RUNTIME_ERROR
    if step <= 0:
        snprintf(message(), MESSAGE, b"unfold: step must be positive (got %lld).", <long long>step)
        return RUNTIME_ERROR
    if self.ndim == MAX_DIMS:
        snprintf(message(), MESSAGE, b"unfold: too many dimensions (got %d, expected at most %d).",
                 self.ndim + 1, <int>MAX_DIMS)
        return RUNTIME_ERROR
    memcpy(shape, self.shape, self.ndim * sizeof(int64_t))
    memcpy(strides, self.strides, self.ndim * sizeof(int64_t))
    shape[self.ndim] = size
    strides[self.ndim] = self.strides[dim] if self.ndim else 1
    if self.ndim:
        shape[dim] = (length - size) // step + 1
        if shape[dim] > 1:
            strides[dim] *= step
    return view_result(self, self.ndim + 1, shape, strides, 0, &results[0])


cdef int check_geometry(const char *operation, int n_sizes, const int64_t *sizes, int n_strides, const int64_t *strides,
                        int64_t offset, int64_t elements, int64_t *first, int64_t *last) noexcept nogil:
    cdef int64_t size = 0, low = 0, high = 0, limit = INT64_MAX // 4, step, span
    cdef bint outside = False
    cdef int i, status
    if n_sizes != n_strides:
        snprintf(message(), MESSAGE, b"%s: size and stride differ in length (got %s and %s).",
                 operation, list_text(n_sizes, sizes), list_text(n_strides, strides))
        return RUNTIME_ERROR
    status = check_sizes(operation, n_sizes, sizes, &size)
    if status != OK:
        return status
    first[0], last[0] = 0, -1
    if offset < 0 or (size and offset >= elements):
        outside = True
    elif size:
        for i in range(n_sizes):
            if sizes[i] > 1 and strides[i] != 0:
                # Limit strides to the size of the memory, so that sums do not overflow.
                if not -elements <= strides[i] <= elements or sizes[i] > elements:
                    outside = True
                    break
                step = strides[i] if strides[i] > 0 else -strides[i]
                span = (sizes[i] - 1) * step if sizes[i] - 1 <= limit // step else limit
                if strides[i] < 0:
                    low -= span
                else:
                    high += span
                if low < -offset or high >= elements - offset:
                    outside = True
                    break
        first[0], last[0] = offset + low, offset + high
    if outside:
        snprintf(message(), MESSAGE, b"%s: out of bounds of the memory (got size %s, stride %s and offset %lld, "
                 b"expected to stay within %lld elements).", operation, list_text(n_sizes, sizes),
                 list_text(n_strides, strides), <long long>offset, <long long>elements)
        return RUNTIME_ERROR
    return OK


cdef int as_strided_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """as_strided(self, size, stride, storage_offset): any geometry over the memory of self."""
    cdef array_t *self
    cdef const int64_t *sizes
    cdef const int64_t *strides
    cdef int64_t offset, here, elements, width, first, last
    cdef int n_sizes, n_strides, status = array_argument(b"as_strided", b"self", &arguments[0], &self)
    if status == OK:
        status = integers_argument(b"as_strided", b"size", &arguments[1], &n_sizes, &sizes)
    if status == OK:
        status = integers_argument(b"as_strided", b"stride", &arguments[2], &n_strides, &strides)
    if status != OK:
        return status
    if self.storage == NULL:
        snprintf(message(), MESSAGE, b"as_strided: the tensor has no memory.")
        return RUNTIME_ERROR
    # Count memory in elements aligned with self: foreign memory may begin between two of them.
    width = itemsize(self.dtype)
    here = (self.data - self.storage.data) // width
    elements = here + (self.storage.data + self.storage.nbytes - self.data) // width
    status = optional_integer(b"as_strided", b"storage_offset", &arguments[3], here, &offset)
    if status == OK:
        status = check_geometry(b"as_strided", n_sizes, sizes, n_strides, strides, offset, elements, &first, &last)
    if status != OK:
        return status
    return array_result(array_view(self, self.dtype, n_sizes, sizes, strides, offset - here if first <= last else 0),
                        &results[0])


register_kernel("narrow", narrow_kernel)
register_kernel("select", select_kernel)
register_kernel("slice", slice_kernel)
register_kernel("diagonal", diagonal_kernel)
register_kernel("unfold", unfold_kernel)
register_kernel("as_strided", as_strided_kernel)


# ---------------------------------------------------------------------------------------------------------------- split

cdef enum:
    LONGEST_LIST = 1 << 24        # more Tensors exceed the memory of most machines


cdef int _new_list(int64_t count, value_t *result) noexcept nogil:
    """Allocate a list of n arrays, all NULL."""
    if count > LONGEST_LIST:
        snprintf(message(), MESSAGE, b"split: too many parts for one list (got %lld, expected at most %d).",
                 <long long>count, <int>LONGEST_LIST)
        return RUNTIME_ERROR
    return set_arrays(result, <int>count)


cdef int _open(const char *operation, const value_t *self_value, const value_t *dim_value, int status_if_0dim,
               array_t **self, int *dim) noexcept nogil:
    """Read an array with dimensions, and one of them (default 0)."""
    cdef int64_t given
    cdef int status = array_argument(operation, b"self", self_value, self)
    if status == OK:
        status = optional_integer(operation, b"dim", dim_value, 0, &given)
    if status == OK and self[0].ndim == 0:
        snprintf(message(), MESSAGE, b"%s: a 0-dim tensor cannot be divided (got shape (), expected at least "
                 b"1 dimension).", operation)
        return status_if_0dim
    return wrap_dim(operation, given, self[0].ndim, dim) if status == OK else status


cdef int split_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """split(self, sizes, dim): a list of views of these sizes."""
    cdef array_t *self
    cdef const int64_t *sizes
    cdef int64_t left, start = 0
    cdef int i, count, dim, status = _open(b"split", &arguments[0], &arguments[2], RUNTIME_ERROR, &self, &dim)
    if status == OK:
        status = integers_argument(b"split", b"split_sizes", &arguments[1], &count, &sizes)
    if status != OK:
        return status
    left = self.shape[dim]
    for i in range(count):
        if sizes[i] < 0 or sizes[i] > left:      # unlike a sum, a difference cannot overflow
            left = -1
            break
        left -= sizes[i]
    if left != 0:
        snprintf(message(), MESSAGE, b"split: sizes do not add up to the size of dimension %d "
                 b"(got %s, expected non-negative sizes with the sum %lld).",
                 dim, list_text(count, sizes), <long long>self.shape[dim])
        return RUNTIME_ERROR
    status = _new_list(count, &results[0])
    if status != OK:
        return status
    for i in range(count):
        results[0].of.arrays[i] = narrowed(self, dim, start, sizes[i])
        if results[0].of.arrays[i] == NULL:
            clear(&results[0])
            return MEMORY_ERROR
        start += sizes[i]
    return OK


cdef int unsafe_split_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """unsafe_split(self, sizes, dim): split into parts with version counters of their own."""
    cdef array_t *part
    cdef int i, status = split_kernel(arguments, results)
    if status != OK:
        return status
    for i in range(results[0].count):
        part = results[0].of.arrays[i]
        if part.version == NULL:
            continue
        if replace_version(part, version_new()) != OK:
            clear(&results[0])
            return MEMORY_ERROR
    return OK


cdef int together_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """together(arrays): the same arrays."""
    cdef array_t *array
    cdef int i, status = _new_list(arguments[0].count, &results[0])
    if status != OK:
        return status
    for i in range(arguments[0].count):
        array = arguments[0].of.arrays[i]
        results[0].of.arrays[i] = array_view(array, array.dtype, array.ndim, array.shape, array.strides, 0)
        if results[0].of.arrays[i] == NULL:
            clear(&results[0])
            return MEMORY_ERROR
    return OK


cdef int unbind_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """unbind(self, dim): a list of views along a dimension, which is removed."""
    cdef array_t *self
    cdef int i, dim, status = _open(b"unbind", &arguments[0], &arguments[1], INDEX_ERROR, &self, &dim)
    if status == OK:
        status = _new_list(self.shape[dim], &results[0])
    if status != OK:
        return status
    for i in range(results[0].count):
        results[0].of.arrays[i] = selected(self, dim, i)
        if results[0].of.arrays[i] == NULL:
            clear(&results[0])
            return MEMORY_ERROR
    return OK


register_kernel("split", split_kernel)
register_kernel("together", together_kernel)
register_kernel("unsafe_split", unsafe_split_kernel)
register_kernel("unbind", unbind_kernel)


# ----------------------------------------------------------------------------------------------------------------- join

cdef bint _skipped(const array_t *array) noexcept nogil:
    """Return whether it is the empty 1-dim array with which loops start to concatenate."""
    return array.ndim == 1 and array.shape[0] == 0


cdef int _check_list(const char *operation, int count, array_t **arrays, int *dtype) noexcept nogil:
    """Refuse missing entries; return the dtype that all entries are promoted to."""
    cdef int i
    for i in range(count):
        if arrays[i] == NULL:
            snprintf(message(), MESSAGE, b"%s: entry %d of the list is not a tensor (got None).", operation, i)
            return TYPE_ERROR
        dtype[0] = promote(dtype[0], arrays[i].dtype) if i else arrays[i].dtype
    return OK


cdef int _joined_shape(int count, array_t **arrays, int64_t given, int *dim, int64_t *shape, int *ndim) noexcept nogil:
    """Compute the shape of the result of cat, and the wrapped dimension."""
    cdef array_t *first = NULL
    cdef int i, k, status
    for i in range(count):
        if arrays[i].ndim == 0:
            snprintf(message(), MESSAGE, b"cat: a 0-dim tensor cannot be concatenated (got shape () at entry %d). "
                     b"Use stack() instead.", i)
            return RUNTIME_ERROR
        if first == NULL and not _skipped(arrays[i]):
            first = arrays[i]
    if first == NULL:      # only skipped arrays: any dimension is valid
        shape[0], ndim[0], dim[0] = 0, 1, 0
        return OK
    status = wrap_dim(b"cat", given, first.ndim, dim)
    if status != OK:
        return status
    ndim[0] = first.ndim
    memcpy(shape, first.shape, first.ndim * sizeof(int64_t))
    shape[dim[0]] = 0
    for i in range(count):
        if _skipped(arrays[i]):
            continue
        for k in range(first.ndim):
            if arrays[i].ndim != first.ndim or (k != dim[0] and arrays[i].shape[k] != first.shape[k]):
                snprintf(message(), MESSAGE, b"cat: shapes differ outside dimension %d (got %s at entry %d, "
                         b"expected one like %s).", dim[0], shape_text(arrays[i]), i, shape_text(first))
                return RUNTIME_ERROR
        shape[dim[0]] += arrays[i].shape[dim[0]]
    return OK


cdef int _new_joined(int count, array_t **arrays, int dtype, int ndim, const int64_t *shape,
                     array_t **result) noexcept nogil:
    """Allocate the result of cat: channels_last if all images are."""
    cdef int64_t[MAX_DIMS] strides
    cdef int i, status = new_array(b"cat", dtype, ndim, shape, result)
    if status != OK:
        return status
    for i in range(count):
        if not is_channels_last(arrays[i]) and not _skipped(arrays[i]):
            return OK
    if ndim < 4:                    # only skipped arrays
        return OK
    release(result[0])
    channels_last_strides(ndim, shape, strides)
    result[0] = array_strided(dtype, ndim, shape, strides)
    return OK if result[0] != NULL else MEMORY_ERROR


cdef extern from "simd/word_moves.h" nogil:
    void copy_rows(const char *source, int64_t source_step, char *out, int64_t out_step, int64_t nbytes, int64_t rows)

cdef enum:
    TILE_BYTES = 1 << 15            # of rows of the result that are written one array after the other

ctypedef struct join_t:
    array_t **arrays
    char *to
    int64_t rows, row_bytes         # of the result
    int count


cdef void _join_rows(void *context, int64_t begin, int64_t end) noexcept nogil:
    cdef join_t *join = <join_t *>context
    cdef int64_t rows, nbytes, tile = max(<int64_t>1, TILE_BYTES // join.row_bytes)
    cdef char *to
    cdef int i
    while begin < end:
        rows = min(tile, end - begin)
        to = join.to + begin * join.row_bytes
        for i in range(join.count):
            nbytes = join.arrays[i].size // join.rows * itemsize(join.arrays[i].dtype)
            if nbytes:
                copy_rows(join.arrays[i].data + begin * nbytes, nbytes, to, join.row_bytes, nbytes, rows)
            to += nbytes
        begin += rows


cdef bint _joined_by_rows(array_t *result, int dim, int count, array_t **arrays) noexcept nogil:
    """
    Join contiguous arrays of one dtype along a dimension that is not the first: all of them tile by tile, so that
    each page of the result is written once. Return whether the arrays are such.
    """
    cdef join_t join = join_t(arrays, result.data, 1, 0, count)
    cdef int i
    for i in range(dim):
        join.rows *= result.shape[i]
    if join.rows <= 1 or result.size == 0 or not result.contiguous:
        return False
    for i in range(count):
        if arrays[i].dtype != result.dtype or not arrays[i].contiguous:
            return False
    join.row_bytes = result.size // join.rows * itemsize(result.dtype)
    parallel_for(_join_rows, &join, join.rows, rows_per_chunk(result.size // join.rows, MOVED))
    return True


cdef int cat_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """cat(tensors, dim): concatenate along an existing dimension."""
    cdef array_t *result = NULL
    cdef array_t *part
    cdef array_t **arrays
    cdef int64_t shape[MAX_DIMS]
    cdef int64_t given, start = 0
    cdef int i, count, dim = 0, ndim = 0, dtype = 0
    cdef int status = arrays_argument(b"cat", b"tensors", &arguments[0], &count, &arrays)
    if status == OK:
        status = optional_integer(b"cat", b"dim", &arguments[1], 0, &given)
    if status == OK:
        status = _check_list(b"cat", count, arrays, &dtype)
    if status != OK:
        return status
    if count == 0:
        snprintf(message(), MESSAGE, b"cat: the list of tensors is empty (expected at least one tensor).")
        return VALUE_ERROR
    status = _joined_shape(count, arrays, given, &dim, shape, &ndim)
    if status == OK:
        status = _new_joined(count, arrays, dtype, ndim, shape, &result)
    if status != OK:
        return status
    if _joined_by_rows(result, dim, count, arrays):
        return array_result(result, &results[0])
    for i in range(count):
        if arrays[i].size == 0:
            if not _skipped(arrays[i]):
                start += arrays[i].shape[dim]
            continue
        part = narrowed(result, dim, start, arrays[i].shape[dim])
        status = copy_into(part, arrays[i]) if part != NULL else MEMORY_ERROR
        release(part)
        if status != OK:
            release(result)
            return status
        start += arrays[i].shape[dim]
    return array_result(result, &results[0])


cdef int stack_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """stack(tensors, dim): concatenate along a new dimension."""
    cdef array_t *result = NULL
    cdef array_t *part
    cdef array_t **arrays
    cdef int64_t shape[MAX_DIMS + 1]
    cdef int64_t strides[MAX_DIMS]
    cdef int64_t given
    cdef int i, k, count, dim = 0, dtype = 0
    cdef int status = arrays_argument(b"stack", b"tensors", &arguments[0], &count, &arrays)
    if status == OK:
        status = optional_integer(b"stack", b"dim", &arguments[1], 0, &given)
    if status == OK:
        status = _check_list(b"stack", count, arrays, &dtype)
    if status != OK:
        return status
    if count == 0:
        snprintf(message(), MESSAGE, b"stack: the list of tensors is empty (expected at least one tensor).")
        return RUNTIME_ERROR
    status = wrap_dim(b"stack", given, arrays[0].ndim + 1, &dim)
    if status != OK:
        return status
    for i in range(1, count):
        if not same_shape(arrays[i], arrays[0]):
            snprintf(message(), MESSAGE, b"stack: shapes differ (got %s at entry %d, expected %s as at entry 0).",
                     shape_text(arrays[i]), i, shape_text(arrays[0]))
            return RUNTIME_ERROR
    for k in range(arrays[0].ndim):
        shape[k + (k >= dim)] = arrays[0].shape[k]
    shape[dim] = count
    status = new_array(b"stack", dtype, arrays[0].ndim + 1, shape, &result)
    if status != OK:
        return status
    if arrays[0].size == 0 or _joined_by_rows(result, dim, count, arrays):
        return array_result(result, &results[0])
    for k in range(arrays[0].ndim):
        strides[k] = result.strides[k + (k >= dim)]
    for i in range(count):
        part = array_view(result, dtype, arrays[0].ndim, arrays[0].shape, strides, i * result.strides[dim])
        status = copy_into(part, arrays[i]) if part != NULL else MEMORY_ERROR
        release(part)
        if status != OK:
            release(result)
            return status
    return array_result(result, &results[0])


cdef int cat_backward_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """cat_backward(grad, sizes, dim): split the gradient; a size of -1 marks a skipped input, an empty vector."""
    cdef array_t *grad
    cdef const int64_t *sizes
    cdef int64_t given, start = 0, left, nothing = 0
    cdef int i, count, dim = 0, status = array_argument(b"cat_backward", b"grad", &arguments[0], &grad)
    if status == OK:
        status = integers_argument(b"cat_backward", b"sizes", &arguments[1], &count, &sizes)
    if status == OK:
        status = optional_integer(b"cat_backward", b"dim", &arguments[2], 0, &given)
    if status != OK:
        return status
    if grad.ndim == 1 and grad.shape[0] == 0:       # only skipped inputs: `dim` was not checked
        given = 0
    status = wrap_dim(b"cat_backward", given, grad.ndim, &dim)
    if status != OK:
        return status
    left = grad.shape[dim] if grad.ndim else -1
    for i in range(count):
        if sizes[i] != -1 and not 0 <= sizes[i] <= left:
            left = -1
            break
        left -= sizes[i] if sizes[i] > 0 else 0
    if left != 0:
        snprintf(message(), MESSAGE, b"cat_backward: sizes do not add up to dimension %d of the gradient "
                 b"(got %s for shape %s).", dim, list_text(count, sizes), shape_text(grad))
        return RUNTIME_ERROR
    status = set_arrays(&results[0], count)
    if status != OK:
        return status
    for i in range(count):
        if sizes[i] == -1:
            results[0].of.arrays[i] = array_view(grad, grad.dtype, 1, &nothing, &nothing, 0)
        else:
            results[0].of.arrays[i] = narrowed(grad, dim, start, sizes[i])
            start += sizes[i]
        if results[0].of.arrays[i] == NULL:
            clear(&results[0])
            return MEMORY_ERROR
    return OK


register_kernel("cat", cat_kernel)
register_kernel("stack", stack_kernel)
register_kernel("cat_backward", cat_backward_kernel)


# ----------------------------------------------------------------------------------------------------- strided backward

# Gradient of as_strided, where elements of the view or of the array may share memory.

cdef extern from * nogil:
    """
    /* The memory is not available: accept any geometry below this size. */
    #define ANYWHERE ((int64_t)(1LL << 56))
    """
    const int64_t ANYWHERE

cdef extern from "kernels/shape/shares.h" nogil:
    void divide_by_counts(int dtype, void *values, const int64_t *counts, int64_t n)


cdef int _places(const array_t *view, const char *origin, array_t **places) noexcept nogil:
    """List the byte offsets from `origin` of all elements of a view, in row-major order."""
    cdef int64_t counter[MAX_DIMS]
    cdef int64_t i, place = view.data - origin, width = itemsize(view.dtype)
    cdef int k
    places[0] = array_empty(INT64, 1, &view.size)
    if places[0] == NULL:
        return MEMORY_ERROR
    for k in range(view.ndim):
        counter[k] = 0
    for i in range(view.size):
        (<int64_t *>places[0].data)[i] = place
        for k in range(view.ndim - 1, -1, -1):
            counter[k] += 1
            place += view.strides[k] * width
            if counter[k] < view.shape[k]:
                break
            place -= counter[k] * view.strides[k] * width
            counter[k] = 0
    return OK


cdef int _add_at(array_t *memory, array_t *view, array_t *grad) noexcept nogil:
    """memory[view] += grad, in row-major order."""
    cdef array_t *places = NULL
    cdef array_t *dense = NULL
    cdef nest_of_offsets_t nest
    cdef int status
    if not overlaps_itself(view):
        return copy_into(view, grad)
    status = _places(view, memory.data, &places)
    if status == OK:
        dense = as_contiguous(grad, -1)
        status = OK if dense != NULL else MEMORY_ERROR
    if status == OK:
        begin_nest(&nest, ADD, memory, dense, <const int64_t *>places.data, places.size)
        move_by_offsets(&nest)
    release(places)
    release(dense)
    return status


cdef int _share_out(array_t *memory, array_t *self_view) noexcept nogil:
    """Divide the gradient equally among elements that share memory."""
    cdef array_t *places = NULL
    cdef array_t *counts = NULL
    cdef int64_t *seen
    cdef int64_t i, width = itemsize(memory.dtype)
    cdef int status = new_zeros(b"as_strided_backward", INT64, 1, memory.shape, &counts)
    if status == OK:
        status = _places(self_view, memory.data, &places)
    if status == OK:
        seen = <int64_t *>counts.data
        for i in range(places.size):
            seen[(<int64_t *>places.data)[i] // width] += 1
        divide_by_counts(memory.dtype, memory.data, seen, memory.size)
    release(places)
    release(counts)
    return status


cdef int _spread(array_t *grad, int ndim, const int64_t *shape, const int64_t *strides, int64_t self_start,
                 int n_sizes, const int64_t *sizes, const int64_t *view_strides, int64_t view_start, int64_t elements,
                 value_t *result) noexcept nogil:
    """Compute the gradient through memory that holds both the array and the view."""
    cdef array_t *memory = NULL
    cdef array_t *view = NULL
    cdef array_t *self_view = NULL
    cdef array_t *answer = NULL
    cdef int status = new_zeros(b"as_strided_backward", grad.dtype, 1, &elements, &memory)
    if status != OK:
        return status
    view = array_view(memory, grad.dtype, n_sizes, sizes, view_strides, view_start)
    self_view = array_view(memory, grad.dtype, ndim, shape, strides, self_start)
    status = OK if view != NULL and self_view != NULL else MEMORY_ERROR
    if status == OK:
        status = _add_at(memory, view, grad)
    if status == OK and overlaps_itself(self_view):
        status = _share_out(memory, self_view)
    if status == OK:
        status = new_array(b"as_strided_backward", grad.dtype, ndim, shape, &answer)
    if status == OK:
        status = copy_into(answer, self_view)
    release(view)
    release(self_view)
    release(memory)
    if status != OK:
        release(answer)
        return status
    return array_result(answer, result)


cdef int as_strided_backward_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """as_strided_backward(grad, shape, strides, offset, size, stride, storage_offset)

    shape, strides and offset are those of the array; size, stride and storage_offset those of the view
    (offsets in elements from the start of the storage; None: that of the array).
    """
    cdef array_t *grad
    cdef array_t *zeros = NULL
    cdef const int64_t *shape
    cdef const int64_t *strides
    cdef const int64_t *sizes
    cdef const int64_t *view_strides
    cdef int64_t offset, view_offset, first, last, view_first, view_last, low
    cdef int ndim, n_strides, n_sizes, n_view_strides
    cdef int status = array_argument(b"as_strided_backward", b"grad", &arguments[0], &grad)
    if status == OK:
        status = integers_argument(b"as_strided_backward", b"shape", &arguments[1], &ndim, &shape)
    if status == OK:
        status = integers_argument(b"as_strided_backward", b"strides", &arguments[2], &n_strides, &strides)
    if status == OK:
        status = integer_argument(b"as_strided_backward", b"offset", &arguments[3], &offset)
    if status == OK:
        status = integers_argument(b"as_strided_backward", b"size", &arguments[4], &n_sizes, &sizes)
    if status == OK:
        status = integers_argument(b"as_strided_backward", b"stride", &arguments[5], &n_view_strides, &view_strides)
    if status == OK:
        status = optional_integer(b"as_strided_backward", b"storage_offset", &arguments[6], offset, &view_offset)
    if status == OK:
        status = check_geometry(b"as_strided_backward", ndim, shape, n_strides, strides, offset, ANYWHERE, &first,
                                &last)
    if status == OK:
        status = check_geometry(b"as_strided_backward", n_sizes, sizes, n_view_strides, view_strides, view_offset,
                                ANYWHERE, &view_first, &view_last)
    if status == OK:
        status = check_same_shape(b"as_strided_backward", b"grad", grad, n_sizes, sizes)
    if status != OK:
        return status
    if first > last or view_first > view_last:       # one of them has no elements
        status = new_zeros(b"as_strided_backward", grad.dtype, ndim, shape, &zeros)
        return array_result(zeros, &results[0]) if status == OK else status
    low = min(first, view_first)
    return _spread(grad, ndim, shape, strides, offset - low, n_sizes, sizes, view_strides, view_offset - low,
                   max(last, view_last) - low + 1, &results[0])


register_kernel("as_strided_backward", as_strided_backward_kernel)


# -------------------------------------------------------------------------------------------------------- view backward

# Gradients of views of a part: zeros outside of it.

cdef int _zeros_like_input(const char *operation, const value_t *arguments, array_t **grad,
                           array_t **zeros) noexcept nogil:
    """Read the gradient (argument 0) and allocate zeros of its dtype in the shape of the input (argument 1)."""
    cdef const int64_t *shape
    cdef int ndim, status = array_argument(operation, b"grad", &arguments[0], grad)
    if status == OK:
        status = integers_argument(operation, b"shape", &arguments[1], &ndim, &shape)
    return new_zeros(operation, grad[0].dtype, ndim, shape, zeros) if status == OK else status


cdef int _write_through(const char *operation, kernel_t view_kernel, int n_parameters, const value_t *arguments,
                        value_t *results) noexcept nogil:
    """Copy the gradient into the same view of zeros in the shape of the input."""
    cdef array_t *grad
    cdef array_t *zeros = NULL
    cdef value_t view_arguments[5]
    cdef value_t view
    cdef int i, status = _zeros_like_input(operation, arguments, &grad, &zeros)
    if status != OK:
        return status
    set_array(&view_arguments[0], zeros)
    for i in range(n_parameters):
        view_arguments[1 + i] = arguments[2 + i]
    view.kind = NOTHING
    status = view_kernel(view_arguments, &view)
    if status == OK:
        status = check_same_shape(operation, b"grad", grad, view.of.array.ndim, view.of.array.shape)
    if status == OK:
        status = copy_into(view.of.array, grad)
    clear(&view)
    if status != OK:
        release(zeros)
        return status
    return array_result(zeros, &results[0])


cdef int slice_backward_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """slice_backward(grad, shape, dim, start, end, step)."""
    return _write_through(b"slice_backward", slice_kernel, 4, arguments, results)


cdef int select_backward_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """select_backward(grad, shape, dim, index)."""
    return _write_through(b"select_backward", select_kernel, 2, arguments, results)


cdef int diagonal_backward_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """diagonal_backward(grad, shape, offset, dim1, dim2)."""
    return _write_through(b"diagonal_backward", diagonal_kernel, 3, arguments, results)


cdef int _add_windows(array_t *zeros, array_t *grad, int dim, int64_t size, int64_t step) noexcept nogil:
    """Sum overlapping windows, in order."""
    cdef array_t *offsets = NULL
    cdef array_t *moved = NULL
    cdef array_t *dense = NULL
    cdef int64_t shape[MAX_DIMS]
    cdef int64_t strides[MAX_DIMS]
    cdef int64_t window, place, windows = grad.shape[dim], n = windows * size
    cdef int64_t stride = zeros.strides[dim] * itemsize(zeros.dtype)
    cdef int i, source, last = grad.ndim - 1, status = MEMORY_ERROR
    # Move the elements of a window, last in the gradient, after the windows.
    for i in range(grad.ndim):
        source = i if i <= dim else last if i == dim + 1 else i - 1
        shape[i], strides[i] = grad.shape[source], grad.strides[source]
    moved = array_view(grad, grad.dtype, grad.ndim, shape, strides, 0)
    if moved != NULL:
        dense = as_contiguous(moved, -1)
        offsets = array_empty(INT64, 1, &n)
    if dense != NULL and offsets != NULL:
        for window in range(windows):
            for place in range(size):
                (<int64_t *>offsets.data)[window * size + place] = (window * step + place) * stride
        move_along(ADD, zeros, dim, dense, <const int64_t *>offsets.data, n)
        status = OK
    release(moved)
    release(dense)
    release(offsets)
    return status


cdef int unfold_backward_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """unfold_backward(grad, shape, dim, size, step): sum the gradients of overlapping windows."""
    cdef array_t *grad
    cdef array_t *zeros = NULL
    cdef int64_t given, size, step
    cdef value_t view_arguments[4]
    cdef value_t view
    cdef int dim, status = integer_argument(b"unfold_backward", b"dimension", &arguments[2], &given)
    if status == OK:
        status = integer_argument(b"unfold_backward", b"size", &arguments[3], &size)
    if status == OK:
        status = integer_argument(b"unfold_backward", b"step", &arguments[4], &step)
    if status != OK:
        return status
    if step >= size or (arguments[1].kind == INTEGERS and arguments[1].count == 0):
        return _write_through(b"unfold_backward", unfold_kernel, 3, arguments, results)
    status = _zeros_like_input(b"unfold_backward", arguments, &grad, &zeros)
    if status != OK:
        return status
    set_array(&view_arguments[0], zeros)
    view_arguments[1], view_arguments[2], view_arguments[3] = arguments[2], arguments[3], arguments[4]
    view.kind = NOTHING
    status = unfold_kernel(view_arguments, &view)        # checks all arguments
    if status == OK:
        status = check_same_shape(b"unfold_backward", b"grad", grad, view.of.array.ndim, view.of.array.shape)
    clear(&view)
    if status == OK:
        wrap_dim(b"unfold_backward", given, zeros.ndim, &dim)
        status = _add_windows(zeros, grad, dim, size, step) if grad.size else OK
    if status != OK:
        release(zeros)
        return status
    return array_result(zeros, &results[0])


cdef int _list_arguments(const char *operation, const value_t *arguments, int dim_position, int *count,
                         array_t ***grads,
                         int *dim, array_t **zeros) noexcept nogil:
    """Read the gradients of split_backward and unbind_backward, and allocate zeros in the input's shape."""
    cdef const int64_t *shape
    cdef const value_t *dtype_value = &arguments[dim_position + 1]
    cdef int64_t given
    cdef int ndim, status = arrays_argument(operation, b"grads", &arguments[0], count, grads)
    if status == OK:
        status = integers_argument(operation, b"shape", &arguments[1], &ndim, &shape)
    if status == OK:
        status = integer_argument(operation, b"dim", &arguments[dim_position], &given)
    if status == OK:
        status = wrap_dim(operation, given, ndim, dim)
    if status != OK:
        return status
    if dtype_value.kind != DTYPE or not 0 <= dtype_value.of.integer < DTYPES:
        snprintf(message(), MESSAGE, b"%s: 'dtype' has the wrong type (expected a dtype).", operation)
        return TYPE_ERROR
    if ndim == 0:
        snprintf(message(), MESSAGE, b"%s: a 0-dim tensor cannot be divided (got shape ()).", operation)
        return RUNTIME_ERROR
    return new_zeros(operation, <int>dtype_value.of.integer, ndim, shape, zeros)


cdef int _put_part(const char *operation, array_t *target, array_t *grad) noexcept nogil:
    """Copy the gradient of one part to `place` and release that view."""
    cdef int status = MEMORY_ERROR
    if target != NULL:
        status = check_same_shape(operation, b"grad", grad, target.ndim, target.shape)
        if status == OK:
            status = copy_into(target, grad)
        release(target)
    return status


cdef int split_backward_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """split_backward(grads, shape, sizes, dim, dtype): missing gradients are zero; -1 marks an empty vector."""
    cdef array_t *zeros = NULL
    cdef array_t **grads
    cdef const int64_t *sizes
    cdef int64_t start = 0
    cdef int i, count, n_sizes, dim = 0, status = integers_argument(b"split_backward", b"sizes", &arguments[2],
                                                                    &n_sizes, &sizes)
    if status == OK:
        status = _list_arguments(b"split_backward", arguments, 3, &count, &grads, &dim, &zeros)
    if status != OK:
        return status
    for i in range(count):
        if count == n_sizes and sizes[i] == -1:
            continue
        if count != n_sizes or not 0 <= sizes[i] <= zeros.shape[dim] - start:
            snprintf(message(), MESSAGE, b"split_backward: sizes do not match the gradients (got sizes %s for "
                     b"%d gradients).", list_text(n_sizes, sizes), count)
            status = RUNTIME_ERROR
        elif grads[i] != NULL:
            status = _put_part(b"split_backward", narrowed(zeros, dim, start, sizes[i]), grads[i])
        if status != OK:
            release(zeros)
            return status
        start += sizes[i]
    return array_result(zeros, &results[0])


cdef int unbind_backward_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """unbind_backward(grads, shape, dim, dtype): a missing gradient is zero."""
    cdef array_t *zeros = NULL
    cdef array_t **grads
    cdef int i, count, dim = 0
    cdef int status = _list_arguments(b"unbind_backward", arguments, 2, &count, &grads, &dim, &zeros)
    if status != OK:
        return status
    if count != zeros.shape[dim]:
        snprintf(message(), MESSAGE, b"unbind_backward: wrong number of gradients (got %d, expected %lld).",
                 count, <long long>zeros.shape[dim])
        status = RUNTIME_ERROR
    for i in range(count):
        if status == OK and grads[i] != NULL:
            status = _put_part(b"unbind_backward", selected(zeros, dim, i), grads[i])
    if status != OK:
        release(zeros)
        return status
    return array_result(zeros, &results[0])


register_kernel("slice_backward", slice_backward_kernel)
register_kernel("select_backward", select_backward_kernel)
register_kernel("diagonal_backward", diagonal_backward_kernel)
register_kernel("unfold_backward", unfold_backward_kernel)
register_kernel("split_backward", split_backward_kernel)
register_kernel("unbind_backward", unbind_backward_kernel)


# --------------------------------------------------------------------------------------------------------- copy kernels


cdef int _channels_last(const char *operation, const value_t *format, const array_t *array,
                        int64_t *strides) noexcept nogil:
    """Set the strides of channels_last (4-dim) or channels_last_3d (5-dim); `strides[0]` is -1 for other formats."""
    cdef const char *text = b""
    cdef int ndim
    cdef int status = OK if format.kind == NOTHING else text_argument(operation, b"memory_format", format, &text)
    strides[0] = -1
    if status != OK or text[0] == 0 or strcmp(text, b"contiguous_format") == 0 or strcmp(text, b"preserve_format") == 0:
        return status
    ndim = 4 if strcmp(text, b"channels_last") == 0 else 5 if strcmp(text, b"channels_last_3d") == 0 else 0
    if ndim == 0:
        snprintf(message(), MESSAGE, b"%s: unsupported memory format (got '%s', expected contiguous_format, "
                 b"preserve_format, channels_last or channels_last_3d).", operation, text)
        return RUNTIME_ERROR
    if array.ndim != ndim:
        snprintf(message(), MESSAGE, b"%s: %s is an order of %d dimensions (got shape %s).", operation, text, ndim,
                 shape_text(array))
        return RUNTIME_ERROR
    channels_last_strides(ndim, array.shape, strides)
    return OK


cdef int _laid_out(array_t *self, const int64_t *strides, value_t *result) noexcept nogil:
    """Copy to these strides, which have no gaps."""
    cdef array_t *copy = array_strided(self.dtype, self.ndim, self.shape, strides)
    cdef int status = MEMORY_ERROR if copy == NULL else copy_into(copy, self)
    if status != OK:
        release(copy)
        return status
    return array_result(copy, result)


cdef int contiguous_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """contiguous(self, memory_format): the array itself if it already is."""
    cdef array_t *self
    cdef int64_t strides[MAX_DIMS]
    cdef bint as_it_is = True
    cdef int i, status = array_argument(b"contiguous", b"self", &arguments[0], &self)
    if status == OK:
        status = _channels_last(b"contiguous", &arguments[1], self, strides)
    if status != OK:
        return status
    if strides[0] < 0:
        return array_result(as_contiguous(self, -1), &results[0])
    for i in range(self.ndim):
        as_it_is = as_it_is and (self.strides[i] == strides[i] or self.shape[i] == 1)
    return array_result(retain(self), &results[0]) if as_it_is else _laid_out(self, strides, &results[0])


cdef int cast_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """cast(self, dtype): the array itself if it already has this dtype."""
    cdef array_t *self
    cdef int status = array_argument(b"to", b"self", &arguments[0], &self)
    if status != OK:
        return status
    if arguments[1].kind != DTYPE or not 0 <= arguments[1].of.integer < DTYPES:
        snprintf(message(), MESSAGE, b"to: 'dtype' has the wrong type (expected a dtype).")
        return TYPE_ERROR
    if arguments[1].of.integer == self.dtype:
        return array_result(retain(self), &results[0])
    return array_result(copy_like(self, self, <int>arguments[1].of.integer), &results[0])


cdef int clone_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """clone(self, memory_format): a copy in the same layout by default."""
    cdef array_t *self
    cdef array_t *copy
    cdef int64_t strides[MAX_DIMS]
    cdef int status = array_argument(b"clone", b"self", &arguments[0], &self)
    if status == OK:
        status = _channels_last(b"clone", &arguments[1], self, strides)
    if status != OK:
        return status
    if strides[0] >= 0:
        return _laid_out(self, strides, &results[0])
    if arguments[1].kind != TEXT or arguments[1].of.text[0] == b'p':             # preserve_format
        return array_result(copy_like(self, self, -1), &results[0])
    status = fresh_copy(self, &copy)
    return array_result(copy, &results[0]) if status == OK else status


cdef int flip_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """flip(self, dims): a copy, reversed along these dimensions."""
    cdef array_t *self
    cdef array_t *view
    cdef array_t *copy = NULL
    cdef int64_t strides[MAX_DIMS]
    cdef int wrapped[MAX_DIMS]
    cdef const int64_t *dims
    cdef int64_t offset = 0
    cdef int i, count, status = array_argument(b"flip", b"self", &arguments[0], &self)
    if status == OK:
        status = integers_argument(b"flip", b"dims", &arguments[1], &count, &dims)
    if status == OK:
        status = wrap_dims(b"flip", count, dims, self.ndim, wrapped)
    if status != OK:
        return status
    memcpy(strides, self.strides, self.ndim * sizeof(int64_t))
    if self.ndim and self.size:
        for i in range(count):
            offset += (self.shape[wrapped[i]] - 1) * strides[wrapped[i]]
            strides[wrapped[i]] = -strides[wrapped[i]]
    view = array_view(self, self.dtype, self.ndim, self.shape, strides, offset)
    if view == NULL:
        return MEMORY_ERROR
    copy = array_like(self, -1)
    status = MEMORY_ERROR if copy == NULL else copy_into(copy, view)
    release(view)
    if status != OK:
        release(copy)
    return array_result(copy, &results[0]) if status == OK else status


cdef int _copy_part(array_t *to, array_t *source, int dim, int64_t to_start, int64_t source_start,
                    int64_t length) noexcept nogil:
    """to[to_start:...] = source[source_start:...], `length` elements along `dim`."""
    cdef array_t *target = narrowed(to, dim, to_start, length)
    cdef array_t *part = narrowed(source, dim, source_start, length)
    cdef int status = MEMORY_ERROR
    if target != NULL and part != NULL:
        status = copy_into(target, part)
    release(target)
    release(part)
    return status


cdef int _rolled(array_t *array, int64_t shift, int dim, array_t **copy) noexcept nogil:
    """Copy, shifted cyclically along one dimension."""
    cdef int64_t size = array.shape[dim]
    cdef int status = OK
    copy[0] = array_like(array, -1)
    if copy[0] == NULL:
        return MEMORY_ERROR
    if array.size == 0:
        return OK
    shift %= size
    if shift < 0:
        shift += size
    status = _copy_part(copy[0], array, dim, shift, 0, size - shift)
    if status == OK and shift:
        status = _copy_part(copy[0], array, dim, 0, size - shift, shift)
    if status != OK:
        release(copy[0])
        copy[0] = NULL
    return status


cdef int _rolled_flat(array_t *self, int64_t shift, array_t **copy) noexcept nogil:
    """Copy, shifted cyclically in row-major order."""
    cdef array_t *flat = reshaped(self, 1, &self.size)
    cdef array_t *row = NULL
    cdef int status
    if flat == NULL:
        return MEMORY_ERROR
    status = _rolled(flat, shift, 0, &row)
    release(flat)
    if status == OK:
        copy[0] = reshaped(row, self.ndim, self.shape)
        release(row)
        status = OK if copy[0] != NULL else MEMORY_ERROR
    return status


cdef int roll_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """roll(self, shifts, dims): a copy, shifted cyclically, in row-major order without dims."""
    cdef array_t *self
    cdef array_t *copy = NULL
    cdef array_t *previous
    cdef const int64_t *shifts
    cdef const int64_t *dims
    cdef int i, dim, n_shifts, n_dims, status = array_argument(b"roll", b"self", &arguments[0], &self)
    if status == OK:
        status = integers_argument(b"roll", b"shifts", &arguments[1], &n_shifts, &shifts)
    if status == OK:
        status = integers_argument(b"roll", b"dims", &arguments[2], &n_dims, &dims)
    if status != OK:
        return status
    if n_shifts == 0 or n_shifts != (n_dims if n_dims else 1):
        snprintf(message(), MESSAGE, b"roll: shifts and dims must go in pairs (got shifts %s and dims %s).",
                 list_text(n_shifts, shifts), list_text(n_dims, dims))
        return RUNTIME_ERROR
    if n_dims == 0:
        status = _rolled_flat(self, shifts[0], &copy)
        return array_result(copy, &results[0]) if status == OK else status
    if self.ndim == 0:
        snprintf(message(), MESSAGE, b"roll: a 0-dim tensor has no dimension to roll (got dims %s).",
                 list_text(n_dims, dims))
        return INDEX_ERROR
    previous = retain(self)
    for i in range(n_dims):
        status = wrap_dim(b"roll", dims[i], self.ndim, &dim)
        if status == OK:
            status = _rolled(previous, shifts[i], dim, &copy)
        release(previous)
        if status != OK:
            return status
        previous = copy
    return array_result(copy, &results[0])


ctypedef struct triangle_t:
    array_t *array
    int64_t diagonal
    bint upper


cdef void _clear_rows(void *context, int64_t begin, int64_t end) noexcept nogil:
    """Zero the elements outside of the triangle in rows begin..end of all matrices."""
    cdef triangle_t *triangle = <triangle_t *>context
    cdef array_t *array = triangle.array
    cdef int64_t rows = array.shape[array.ndim - 2], columns = array.shape[array.ndim - 1]
    cdef int64_t width = itemsize(array.dtype), row, bound
    cdef char *start
    for row in range(begin, end):
        # First column right of the edge: row + diagonal + 1 (lower), row + diagonal (upper).
        bound = row % rows + triangle.diagonal + (0 if triangle.upper else 1)
        bound = 0 if bound < 0 else columns if bound > columns else bound
        start = array.data + row * columns * width
        if triangle.upper:
            memset(start, 0, bound * width)
        else:
            memset(start + bound * width, 0, (columns - bound) * width)


cdef int _triangle(const char *operation, bint upper, const value_t *arguments, value_t *results) noexcept nogil:
    """Copy with zeros on the other side of a diagonal."""
    cdef array_t *self
    cdef array_t *copy
    cdef triangle_t triangle
    cdef int64_t rows, columns
    cdef int status = array_argument(operation, b"self", &arguments[0], &self)
    if status == OK:
        status = optional_integer(operation, b"diagonal", &arguments[1], 0, &triangle.diagonal)
    if status != OK:
        return status
    if self.ndim < 2:
        snprintf(message(), MESSAGE, b"%s: only matrices have triangles (got shape %s, expected at least "
                 b"2 dimensions).", operation, shape_text(self))
        return RUNTIME_ERROR
    status = fresh_copy(self, &copy)
    if status != OK:
        return status
    if copy.size:
        rows, columns = copy.shape[copy.ndim - 2], copy.shape[copy.ndim - 1]
        # Clip, so that adding a row number cannot overflow.
        triangle.diagonal = max(-rows - 1, min(columns + 1, triangle.diagonal))
        triangle.array, triangle.upper = copy, upper
        parallel_for(_clear_rows, &triangle, copy.size // columns, rows_per_chunk(columns, MOVED))
    return array_result(copy, &results[0])


cdef int tril_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """tril(self, diagonal): the lower triangle, zeros elsewhere."""
    return _triangle(b"tril", False, arguments, results)


cdef int triu_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """triu(self, diagonal): the upper triangle, zeros elsewhere."""
    return _triangle(b"triu", True, arguments, results)


cdef int _fill_repeats(array_t *result, array_t *source, const int64_t *repeats) noexcept nogil:
    """Broadcast-copy `source`; both arrays are viewed with (repeat, size) pairs of dimensions."""
    cdef int64_t shape[MAX_DIMS]
    cdef int64_t from_strides[MAX_DIMS]
    cdef int64_t to_strides[MAX_DIMS]
    cdef array_t *from_view
    cdef array_t *to_view
    cdef int i, n = 0, status = MEMORY_ERROR
    # Skipping sizes of 1 bounds the number of dimensions.
    for i in range(source.ndim):
        if repeats[i] != 1:
            shape[n], from_strides[n], to_strides[n] = repeats[i], 0, result.strides[i] * source.shape[i]
            n += 1
        if source.shape[i] != 1:
            shape[n], from_strides[n], to_strides[n] = source.shape[i], source.strides[i], result.strides[i]
            n += 1
    from_view = array_view(source, source.dtype, n, shape, from_strides, 0)
    to_view = array_view(result, source.dtype, n, shape, to_strides, 0)
    if from_view != NULL and to_view != NULL:
        status = copy_into(to_view, from_view)
    release(from_view)
    release(to_view)
    return status


cdef int repeat_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """repeat(self, sizes): tile the array along each dimension, new dimensions in front."""
    cdef array_t *self
    cdef array_t *source = NULL
    cdef array_t *result = NULL
    cdef int64_t shape[MAX_DIMS]
    cdef const int64_t *repeats
    cdef int64_t size = 0
    cdef int i, lead, count, status = array_argument(b"repeat", b"self", &arguments[0], &self)
    if status == OK:
        status = integers_argument(b"repeat", b"repeats", &arguments[1], &count, &repeats)
    if status == OK:
        status = check_sizes(b"repeat", count, repeats, &size)
    if status != OK:
        return status
    lead = count - self.ndim
    if lead < 0:
        snprintf(message(), MESSAGE, b"repeat: fewer repeats than dimensions (got repeats %s for shape %s).",
                 list_text(count, repeats), shape_text(self))
        return RUNTIME_ERROR
    for i in range(count):
        shape[i] = 1 if i < lead else self.shape[i - lead]
    status = expanded(b"repeat", self, count, shape, &source)
    if status != OK:
        return status
    for i in range(count):
        if repeats[i] and shape[i] > (<int64_t>1 << 62) // repeats[i]:
            shape[i] = <int64_t>1 << 62      # refused by new_array, unless another size is zero
        else:
            shape[i] *= repeats[i]
    status = new_array(b"repeat", self.dtype, count, shape, &result)
    if status == OK and result.size:
        status = _fill_repeats(result, source, repeats)
    release(source)
    if status != OK:
        release(result)
        return status
    return array_result(result, &results[0])


register_kernel("contiguous", contiguous_kernel)
register_kernel("clone", clone_kernel)
register_kernel("cast", cast_kernel)
register_kernel("flip", flip_kernel)
register_kernel("roll", roll_kernel)
register_kernel("tril", tril_kernel)
register_kernel("triu", triu_kernel)
register_kernel("repeat", repeat_kernel)
