"""Copies of one array: contiguous, clone, cast, and those that rearrange it (flip, roll, tril, triu, repeat)."""

from libc.stdint cimport int64_t
from libc.stdio cimport snprintf
from libc.string cimport memcpy, memset, strcmp
from cygrad._core.arrays.array cimport MAX_DIMS, array_t, array_view, release, retain, shape_text
from cygrad._core.arrays.dtype cimport DTYPES, itemsize
from cygrad._core.arrays.value cimport DTYPE, NOTHING, TEXT, register_kernel, value_t
from cygrad._core.elementwise.copying cimport as_contiguous, copy_into
from cygrad._core.elementwise.layout cimport array_like, array_strided, channels_last_strides, copy_like
from cygrad._core.kernels.arguments cimport (
    array_argument, array_result, check_sizes, fresh_copy, integers_argument, list_text, new_array, optional_integer,
    text_argument, wrap_dim, wrap_dims,
)
from cygrad._core.kernels.shape.shape cimport expanded, reshaped
from cygrad._core.kernels.shape.slicing cimport narrowed
from cygrad._core.memory.errors cimport INDEX_ERROR, MEMORY_ERROR, MESSAGE, OK, RUNTIME_ERROR, TYPE_ERROR, message
from cygrad._core.threads.parallel cimport parallel_for

cdef enum:
    GRAIN = 65536      # elements in one piece of a parallel loop


cdef int _channels_last(const char *operation, const value_t *format, const array_t *array,
                        int64_t *strides) noexcept nogil:
    """The strides of channels_last (4 dimensions) or channels_last_3d (5); `strides[0]` is -1 for other formats."""
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
    """A copy with these strides, which fill its memory."""
    cdef array_t *copy = array_strided(self.dtype, self.ndim, self.shape, strides)
    cdef int status = MEMORY_ERROR if copy == NULL else copy_into(copy, self)
    if status != OK:
        release(copy)
        return status
    return array_result(copy, result)


cdef int contiguous_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """contiguous(self, memory_format): the array itself if it is contiguous already."""
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
    """cast(self, dtype): the array itself if it has this dtype already."""
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
    """A copy, shifted along one dimension and filled from the other end."""
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
    """A copy, shifted as if it were one row."""
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
    """roll(self, shifts, dims): a copy, shifted cyclically; without dims as if it were one row."""
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
        # First column right of the triangle's edge: row + diagonal + 1 (lower), row + diagonal (upper).
        bound = row % rows + triangle.diagonal + (0 if triangle.upper else 1)
        bound = 0 if bound < 0 else columns if bound > columns else bound
        start = array.data + row * columns * width
        if triangle.upper:
            memset(start, 0, bound * width)
        else:
            memset(start + bound * width, 0, (columns - bound) * width)


cdef int _triangle(const char *operation, bint upper, const value_t *arguments, value_t *results) noexcept nogil:
    """A copy with zeros on the other side of a diagonal."""
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
        # Bounded, so that adding a row number cannot overflow.
        triangle.diagonal = max(-rows - 1, min(columns + 1, triangle.diagonal))
        triangle.array, triangle.upper = copy, upper
        parallel_for(_clear_rows, &triangle, copy.size // columns, max(1, GRAIN // columns))
    return array_result(copy, &results[0])


cdef int tril_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """tril(self, diagonal): the lower triangle, zeros elsewhere."""
    return _triangle(b"tril", False, arguments, results)


cdef int triu_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """triu(self, diagonal): the upper triangle, zeros elsewhere."""
    return _triangle(b"triu", True, arguments, results)


cdef int _fill_repeats(array_t *result, array_t *source, const int64_t *repeats) noexcept nogil:
    """Copy `source` into each of its places; both seen with (repeat, size) pairs of dimensions."""
    cdef int64_t shape[MAX_DIMS]
    cdef int64_t from_strides[MAX_DIMS]
    cdef int64_t to_strides[MAX_DIMS]
    cdef array_t *from_view
    cdef array_t *to_view
    cdef int i, n = 0, status = MEMORY_ERROR
    # Without sizes of 1 the product of sizes, and so their number, is bounded.
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
