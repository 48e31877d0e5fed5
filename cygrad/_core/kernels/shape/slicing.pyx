"""Views of a part of an array: narrow, select, slice, diagonal, unfold, as_strided."""

from libc.stdint cimport INT64_MAX, int64_t
from libc.stdio cimport snprintf
from libc.string cimport memcpy
from cygrad._core.arrays.array cimport MAX_DIMS, array_t, array_view, shape_text
from cygrad._core.arrays.dtype cimport itemsize
from cygrad._core.arrays.value cimport register_kernel, value_t
from cygrad._core.kernels.arguments cimport (
    array_argument, array_result, check_sizes, integer_argument, integers_argument, list_text, optional_integer,
    view_result, wrap_dim,
)
from cygrad._core.memory.errors cimport INDEX_ERROR, MESSAGE, OK, RUNTIME_ERROR, message


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
    """A dimension of an array that must have one."""
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
    """A bound of a slice as Python reads it: from the end if negative, never outside."""
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
    if length > 1:      # the step of one element is never taken, and might not fit
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
    # Bounded before any arithmetic: an offset may be as large as an integer is.
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
    """unfold(self, dim, size, step): sliding windows over `dim`, their elements as the last dimension."""
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
    cdef int64_t size = 0, low = 0, high = 0, room = INT64_MAX // 4, step, span
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
                # No step may be longer than the whole memory: this keeps the sums from overflowing.
                if not -elements <= strides[i] <= elements or sizes[i] > elements:
                    outside = True
                    break
                step = strides[i] if strides[i] > 0 else -strides[i]
                span = (sizes[i] - 1) * step if sizes[i] - 1 <= room // step else room
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
    # Memory counted in elements, aligned with self: foreign memory may begin between two of them.
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
