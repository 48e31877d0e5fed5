"""Views that reorder dimensions: transpose, permute, movedim, and the plain view of the same."""

from libc.stdint cimport int64_t
from libc.stdio cimport snprintf
from cygrad._core.arrays.array cimport MAX_DIMS, array_t, retain, shape_text
from cygrad._core.arrays.value cimport register_kernel, value_t
from cygrad._core.kernels.arguments cimport (
    array_argument, array_result, integer_argument, integers_argument, list_text, view_result, wrap_dim, wrap_dims,
)
from cygrad._core.memory.errors cimport MESSAGE, OK, RUNTIME_ERROR, message


cdef int _reordered(array_t *self, const int *order, value_t *result) noexcept nogil:
    """A view whose dimension i is dimension order[i] of `self`."""
    cdef int64_t shape[MAX_DIMS]
    cdef int64_t strides[MAX_DIMS]
    cdef int i
    for i in range(self.ndim):
        shape[i] = self.shape[order[i]]
        strides[i] = self.strides[order[i]]
    return view_result(self, self.ndim, shape, strides, 0, result)


cdef int alias_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """alias(self): a view of the whole."""
    cdef array_t *self
    cdef int status = array_argument(b"alias", b"self", &arguments[0], &self)
    if status != OK:
        return status
    return view_result(self, self.ndim, self.shape, self.strides, 0, &results[0])


cdef int positive_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """positive(self): the array itself."""
    cdef array_t *self
    cdef int status = array_argument(b"positive", b"self", &arguments[0], &self)
    return array_result(retain(self), &results[0]) if status == OK else status


cdef int transpose_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """transpose(self, dim0, dim1): with two dimensions exchanged."""
    cdef array_t *self
    cdef int order[MAX_DIMS]
    cdef int64_t given0, given1
    cdef int i, dim0, dim1, status = array_argument(b"transpose", b"self", &arguments[0], &self)
    if status == OK:
        status = integer_argument(b"transpose", b"dim0", &arguments[1], &given0)
    if status == OK:
        status = integer_argument(b"transpose", b"dim1", &arguments[2], &given1)
    if status == OK:
        status = wrap_dim(b"transpose", given0, self.ndim, &dim0)
    if status == OK:
        status = wrap_dim(b"transpose", given1, self.ndim, &dim1)
    if status != OK:
        return status
    for i in range(self.ndim):
        order[i] = i
    order[dim0] = dim1
    order[dim1] = dim0
    return _reordered(self, order, &results[0])


cdef int t_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """t(self): the transpose of a matrix; arrays of fewer dimensions stay as they are."""
    cdef array_t *self
    cdef int[2] order
    cdef int status = array_argument(b"t", b"input", &arguments[0], &self)
    if status != OK:
        return status
    if self.ndim > 2:
        snprintf(message(), MESSAGE, b"t: expected at most two dimensions (got shape %s). Use transpose() or mT.",
                 shape_text(self))
        return RUNTIME_ERROR
    order[0] = 1 if self.ndim == 2 else 0
    order[1] = 1 - order[0]
    return _reordered(self, order, &results[0])


cdef int transpose_all_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """transpose_all(self): with all dimensions in reverse order, as `.T`."""
    cdef array_t *self
    cdef int order[MAX_DIMS]
    cdef int i, status = array_argument(b"T", b"self", &arguments[0], &self)
    if status != OK:
        return status
    for i in range(self.ndim):
        order[i] = self.ndim - 1 - i
    return _reordered(self, order, &results[0])


cdef int matrix_transpose_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """matrix_transpose(self): with the last two dimensions exchanged, as `.mT`; a 0-dim array stays as it is."""
    cdef array_t *self
    cdef int order[MAX_DIMS]
    cdef int i, status = array_argument(b"mT", b"self", &arguments[0], &self)
    if status != OK:
        return status
    if self.ndim == 1:
        snprintf(message(), MESSAGE, b"mT: only matrices or batches of matrices can be transposed "
                 b"(got a tensor of shape %s, expected at least 2 dimensions).", shape_text(self))
        return RUNTIME_ERROR
    for i in range(self.ndim):
        order[i] = i
    if self.ndim:
        order[self.ndim - 2] = self.ndim - 1
        order[self.ndim - 1] = self.ndim - 2
    return _reordered(self, order, &results[0])


cdef int permute_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """permute(self, dims): with the dimensions in this order."""
    cdef array_t *self
    cdef int order[MAX_DIMS]
    cdef const int64_t *dims
    cdef int count, status = array_argument(b"permute", b"self", &arguments[0], &self)
    if status == OK:
        status = integers_argument(b"permute", b"dims", &arguments[1], &count, &dims)
    if status != OK:
        return status
    if count != self.ndim:
        snprintf(message(), MESSAGE, b"permute: wrong number of dimensions (got %s, expected %d for shape %s).",
                 list_text(count, dims), self.ndim, shape_text(self))
        return RUNTIME_ERROR
    status = wrap_dims(b"permute", count, dims, self.ndim, order)
    return _reordered(self, order, &results[0]) if status == OK else status


cdef int movedim_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """movedim(self, source, destination): with some dimensions moved, the others in their old order."""
    cdef array_t *self
    cdef int sources[MAX_DIMS]
    cdef int destinations[MAX_DIMS]
    cdef int order[MAX_DIMS]
    cdef bint moved[MAX_DIMS]
    cdef const int64_t *source
    cdef const int64_t *destination
    cdef int i, n, n_destinations, next_free = 0, status = array_argument(b"movedim", b"self", &arguments[0], &self)
    if status == OK:
        status = integers_argument(b"movedim", b"source", &arguments[1], &n, &source)
    if status == OK:
        status = integers_argument(b"movedim", b"destination", &arguments[2], &n_destinations, &destination)
    if status != OK:
        return status
    if n != n_destinations:
        snprintf(message(), MESSAGE, b"movedim: source and destination differ in length (got %s and %s).",
                 list_text(n, source), list_text(n_destinations, destination))
        return RUNTIME_ERROR
    status = wrap_dims(b"movedim: source", n, source, self.ndim, sources)
    if status == OK:
        status = wrap_dims(b"movedim: destination", n, destination, self.ndim, destinations)
    if status != OK:
        return status
    for i in range(self.ndim):
        order[i] = -1
        moved[i] = False
    if self.ndim:
        for i in range(n):
            order[destinations[i]] = sources[i]
            moved[sources[i]] = True
    for i in range(self.ndim):
        if not moved[i]:
            while order[next_free] >= 0:
                next_free += 1
            order[next_free] = i
    return _reordered(self, order, &results[0])


register_kernel("alias", alias_kernel)
register_kernel("positive", positive_kernel)
register_kernel("transpose", transpose_kernel)
register_kernel("t", t_kernel)
register_kernel("transpose_all", transpose_all_kernel)
register_kernel("matrix_transpose", matrix_transpose_kernel)
register_kernel("permute", permute_kernel)
register_kernel("movedim", movedim_kernel)
