"""Views that change shapes: view, reshape, flatten, squeeze, expand, permute, view_as_real, and their kind."""

from libc.stdint cimport INT32_MAX, int64_t
from libc.stdio cimport snprintf
from libc.string cimport memcpy
from cygrad._core.arrays.array cimport (
    MAX_DIMS, NOTHING, array_t, array_view, register_kernel, release, retain, shape_text, value_t,
)
from cygrad._core.arrays.dtype cimport complex_of, dtype_name, is_complex, is_floating, itemsize, real_of
from cygrad._core.elementwise.copying cimport as_contiguous
from cygrad._core.kernels.arguments cimport (
    array_argument, array_result, check_sizes, integer_argument, integers_argument, list_text, optional_integer,
    view_result, wrap_dim, wrap_dims,
)
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, OK, RUNTIME_ERROR, message


# ---------------------------------------------------------------------------------------------------------------- shape

cdef bint view_strides(const array_t *array, int ndim, const int64_t *shape, int64_t *strides) noexcept nogil:
    cdef int old = array.ndim - 1, new = ndim - 1
    cdef int64_t step = 1, chunk = 1, chunk_step, used
    if array.size == 0:        # no element is addressed: any strides are valid
        for new in range(ndim - 1, -1, -1):
            strides[new] = step
            step *= shape[new] if shape[new] else 1
        return True
    while old >= 0 or new >= 0:
        # One run of old dimensions that are contiguous in memory ...
        while old >= 0 and array.shape[old] == 1:
            old -= 1
        if old < 0:
            chunk, chunk_step = 1, 1
        else:
            chunk, chunk_step = array.shape[old], array.strides[old]
            old -= 1
            while old >= 0 and (array.shape[old] == 1 or array.strides[old] == chunk * chunk_step):
                chunk *= array.shape[old]
                old -= 1
        # ... must be made of whole new dimensions.
        used = 1
        while new >= 0 and (used < chunk or shape[new] == 1):
            strides[new] = used * chunk_step
            used *= shape[new]
            new -= 1
        if used != chunk:
            return False
    return True


cdef int _infer_sizes(const char *operation, const array_t *array, int count, const int64_t *given,
                      int64_t *shape) noexcept nogil:
    """Copy the requested sizes, inferring the one -1 among them."""
    cdef int i, unknown = -1, status
    cdef int64_t size = 0
    if count > MAX_DIMS:
        return check_sizes(operation, count, given, &size)
    for i in range(count):
        shape[i] = given[i]
        if given[i] == -1:
            if unknown >= 0:
                snprintf(message(), MESSAGE, b"%s: only one size can be inferred (got -1 twice in %s).",
                         operation, list_text(count, given))
                return RUNTIME_ERROR
            unknown = i
            shape[i] = 1
    status = check_sizes(operation, count, shape, &size)
    if status != OK:
        return status
    if unknown >= 0 and size > 0 and array.size % size == 0:
        shape[unknown] = array.size // size
        return OK
    if unknown >= 0 or size != array.size:
        snprintf(message(), MESSAGE, b"%s: shape %s is invalid for %lld elements (got a tensor of shape %s).",
                 operation, list_text(count, given), <long long>array.size, shape_text(array))
        return RUNTIME_ERROR
    return OK


cdef inline bint _has_as_many(const array_t *array, int ndim, const int64_t *shape) noexcept nogil:
    """Return whether sizes without 0 and -1 match a contiguous array; False for large ones."""
    cdef int64_t size = 1
    cdef int i
    if not array.contiguous or array.size > INT32_MAX or ndim > MAX_DIMS:
        return False
    for i in range(ndim):
        if shape[i] <= 0 or shape[i] > array.size:
            return False
        size *= shape[i]
        if size > array.size:
            return False
    return size == array.size


cdef array_t *reshaped(array_t *array, int ndim, const int64_t *shape) noexcept nogil:
    cdef int64_t strides[MAX_DIMS]
    cdef array_t *copy
    cdef array_t *view
    if array.contiguous and array.size:
        return array_view(array, array.dtype, ndim, shape, NULL, 0)
    if view_strides(array, ndim, shape, strides):
        return array_view(array, array.dtype, ndim, shape, strides, 0)
    copy = as_contiguous(array, -1)
    if copy == NULL:
        return NULL
    view_strides(copy, ndim, shape, strides)
    view = array_view(copy, array.dtype, ndim, shape, strides, 0)
    release(copy)
    return view


cdef int view_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """view(self, shape): the same memory in another shape."""
    cdef array_t *self
    cdef int64_t shape[MAX_DIMS]
    cdef int64_t strides[MAX_DIMS]
    cdef const int64_t *given
    cdef int count, status = array_argument(b"view", b"self", &arguments[0], &self)
    if status == OK:
        status = integers_argument(b"view", b"shape", &arguments[1], &count, &given)
    if status == OK and _has_as_many(self, count, given):
        return view_result(self, count, given, NULL, 0, &results[0])
    if status == OK:
        status = _infer_sizes(b"view", self, count, given, shape)
    if status != OK:
        return status
    if self.contiguous and self.size:
        return view_result(self, count, shape, NULL, 0, &results[0])
    if not view_strides(self, count, shape, strides):
        snprintf(message(), MESSAGE, b"view: shape %s needs a copy (got shape %s with strides %s). "
                 b"Use reshape() instead.",
                 list_text(count, shape), shape_text(self), list_text(self.ndim, self.strides))
        return RUNTIME_ERROR
    return view_result(self, count, shape, strides, 0, &results[0])


cdef int reshape_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """reshape(self, shape): a view if strides allow it, else a copy."""
    cdef array_t *self
    cdef int64_t shape[MAX_DIMS]
    cdef const int64_t *given
    cdef int count, status = array_argument(b"reshape", b"self", &arguments[0], &self)
    if status == OK:
        status = integers_argument(b"reshape", b"shape", &arguments[1], &count, &given)
    if status == OK and _has_as_many(self, count, given):
        return view_result(self, count, given, NULL, 0, &results[0])
    if status == OK:
        status = _infer_sizes(b"reshape", self, count, given, shape)
    if status != OK:
        return status
    return array_result(reshaped(self, count, shape), &results[0])


cdef int flatten_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """flatten(self, start_dim, end_dim): merge these dimensions."""
    cdef array_t *self
    cdef int64_t shape[MAX_DIMS]
    cdef int64_t start, end
    cdef int i, first, last, ndim = 0, status = array_argument(b"flatten", b"self", &arguments[0], &self)
    if status == OK:
        status = optional_integer(b"flatten", b"start_dim", &arguments[1], 0, &start)
    if status == OK:
        status = optional_integer(b"flatten", b"end_dim", &arguments[2], -1, &end)
    if status == OK:
        status = wrap_dim(b"flatten", start, self.ndim, &first)
    if status == OK:
        status = wrap_dim(b"flatten", end, self.ndim, &last)
    if status != OK:
        return status
    if first > last:
        snprintf(message(), MESSAGE, b"flatten: start_dim comes after end_dim (got %d and %d).", first, last)
        return RUNTIME_ERROR
    if first == last and self.ndim:
        return array_result(retain(self), &results[0])      # nothing to merge
    for i in range(self.ndim):
        if first < i <= last:
            shape[ndim - 1] *= self.shape[i]
        else:
            shape[ndim] = self.shape[i]
            ndim += 1
    if self.ndim == 0:
        shape[0] = ndim = 1
    return array_result(reshaped(self, ndim, shape), &results[0])


cdef int unflatten_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """unflatten(self, dim, sizes): split one dimension."""
    cdef array_t *self
    cdef int64_t shape[MAX_DIMS]
    cdef int64_t strides[MAX_DIMS]
    cdef const int64_t *sizes
    cdef int64_t given, size = 0, length, step
    cdef int i, dim, count, unknown = -1, status = array_argument(b"unflatten", b"self", &arguments[0], &self)
    if status == OK:
        status = integer_argument(b"unflatten", b"dim", &arguments[1], &given)
    if status == OK:
        status = integers_argument(b"unflatten", b"sizes", &arguments[2], &count, &sizes)
    if status == OK:
        status = wrap_dim(b"unflatten", given, self.ndim, &dim)
    if status != OK:
        return status
    if count == 0 or self.ndim == 0:
        snprintf(message(), MESSAGE, b"unflatten: sizes must not be empty (got %s for a tensor of "
                 b"shape %s).",
                 list_text(count, sizes), shape_text(self))
        return RUNTIME_ERROR
    if self.ndim - 1 + count > MAX_DIMS:
        snprintf(message(), MESSAGE, b"unflatten: too many dimensions (got %d, expected at most %d).",
                 self.ndim - 1 + count, <int>MAX_DIMS)
        return RUNTIME_ERROR
    for i in range(count):
        shape[dim + i] = sizes[i]
        if sizes[i] == -1 and unknown < 0:
            unknown = i
            shape[dim + i] = 1
    status = check_sizes(b"unflatten", count, &shape[dim], &size)
    if status != OK:
        return status
    length = self.shape[dim]
    if unknown >= 0 and size > 0 and length % size == 0:
        shape[dim + unknown] = length // size
    elif unknown >= 0 or size != length:
        snprintf(message(), MESSAGE, b"unflatten: sizes do not multiply up to the size of dimension %d "
                 b"(got %s, expected a product of %lld).", dim, list_text(count, sizes), <long long>length)
        return RUNTIME_ERROR
    memcpy(strides, self.strides, self.ndim * sizeof(int64_t))
    step = self.strides[dim]
    for i in range(count - 1, -1, -1):
        strides[dim + i] = step
        step *= shape[dim + i] if shape[dim + i] else 1
    memcpy(shape, self.shape, dim * sizeof(int64_t))
    memcpy(&shape[dim + count], &self.shape[dim + 1], (self.ndim - dim - 1) * sizeof(int64_t))
    memcpy(&strides[dim + count], &self.strides[dim + 1], (self.ndim - dim - 1) * sizeof(int64_t))
    return view_result(self, self.ndim - 1 + count, shape, strides, 0, &results[0])


cdef int squeeze_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """squeeze(self, dims): remove dimensions of size 1, all of them if `dims` is None."""
    cdef array_t *self
    cdef int64_t shape[MAX_DIMS]
    cdef int64_t strides[MAX_DIMS]
    cdef int wrapped[MAX_DIMS]
    cdef bint chosen[MAX_DIMS]
    cdef const int64_t *dims
    cdef int i, count, ndim = 0, status = array_argument(b"squeeze", b"self", &arguments[0], &self)
    if status == OK:
        status = integers_argument(b"squeeze", b"dim", &arguments[1], &count, &dims)
    if status == OK:
        status = wrap_dims(b"squeeze", count, dims, self.ndim, wrapped)
    if status != OK:
        return status
    for i in range(self.ndim):
        chosen[i] = arguments[1].kind == NOTHING
    for i in range(count):
        chosen[wrapped[i]] = True
    for i in range(self.ndim):
        if not (chosen[i] and self.shape[i] == 1):
            shape[ndim] = self.shape[i]
            strides[ndim] = self.strides[i]
            ndim += 1
    return view_result(self, ndim, shape, strides, 0, &results[0])


cdef int unsqueeze_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """unsqueeze(self, dim): insert a dimension of size 1."""
    cdef array_t *self
    cdef int64_t shape[MAX_DIMS]
    cdef int64_t strides[MAX_DIMS]
    cdef int64_t given
    cdef int i, dim, status = array_argument(b"unsqueeze", b"self", &arguments[0], &self)
    if status == OK:
        status = integer_argument(b"unsqueeze", b"dim", &arguments[1], &given)
    if status == OK:
        status = wrap_dim(b"unsqueeze", given, self.ndim + 1, &dim)
    if status != OK:
        return status
    if self.ndim == MAX_DIMS:
        snprintf(message(), MESSAGE, b"unsqueeze: too many dimensions (got %d, expected at most %d).",
                 self.ndim + 1, <int>MAX_DIMS)
        return RUNTIME_ERROR
    for i in range(self.ndim):
        shape[i + (i >= dim)] = self.shape[i]
        strides[i + (i >= dim)] = self.strides[i]
    shape[dim] = 1
    strides[dim] = self.strides[dim] * self.shape[dim] if dim < self.ndim else 1
    return view_result(self, self.ndim + 1, shape, strides, 0, &results[0])


cdef int expanded(const char *operation, array_t *array, int ndim, const int64_t *shape, array_t **view) noexcept nogil:
    cdef int64_t sizes[MAX_DIMS]
    cdef int64_t strides[MAX_DIMS]
    cdef int64_t size = 0
    cdef int i, lead = ndim - array.ndim, status
    if lead < 0:
        snprintf(message(), MESSAGE, b"%s: shape %s has fewer dimensions than the tensor (got a tensor of shape %s).",
                 operation, list_text(ndim, shape), shape_text(array))
        return RUNTIME_ERROR
    if ndim > MAX_DIMS:
        return check_sizes(operation, ndim, shape, &size)
    for i in range(ndim):
        sizes[i] = shape[i]
        strides[i] = 0
        if i >= lead:
            if shape[i] == -1:
                sizes[i] = array.shape[i - lead]
            if sizes[i] == array.shape[i - lead]:
                strides[i] = array.strides[i - lead]
            elif array.shape[i - lead] != 1:
                snprintf(message(), MESSAGE, b"%s: shape %s cannot be broadcast to %s "
                         b"(got size %lld in dimension %d, expected %lld or 1).",
                         operation, shape_text(array), list_text(ndim, shape),
                         <long long>array.shape[i - lead], i, <long long>shape[i])
                return RUNTIME_ERROR
    status = check_sizes(operation, ndim, sizes, &size)
    if status != OK:
        return status
    view[0] = array_view(array, array.dtype, ndim, sizes, strides, 0)
    return OK if view[0] != NULL else MEMORY_ERROR


cdef int expand_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """expand(self, shape): broadcast without copying; -1 keeps a size."""
    cdef array_t *self
    cdef array_t *view = NULL
    cdef const int64_t *shape
    cdef int count, status = array_argument(b"expand", b"self", &arguments[0], &self)
    if status == OK:
        status = integers_argument(b"expand", b"shape", &arguments[1], &count, &shape)
    if status == OK:
        status = expanded(b"expand", self, count, shape, &view)
    return array_result(view, &results[0]) if status == OK else status


register_kernel("view", view_kernel)
register_kernel("reshape", reshape_kernel)
register_kernel("flatten", flatten_kernel)
register_kernel("unflatten", unflatten_kernel)
register_kernel("squeeze", squeeze_kernel)
register_kernel("unsqueeze", unsqueeze_kernel)
register_kernel("expand", expand_kernel)


# -------------------------------------------------------------------------------------------------------------- permute

cdef int _reordered(array_t *self, const int *order, value_t *result) noexcept nogil:
    """Return a view whose dimension i is dimension order[i] of `self`."""
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
    """transpose(self, dim0, dim1): exchange two dimensions."""
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
    """t(self): the transpose of a matrix; arrays of fewer dimensions are unchanged."""
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
    """transpose_all(self): reverse all dimensions, as `.T`."""
    cdef array_t *self
    cdef int order[MAX_DIMS]
    cdef int i, status = array_argument(b"T", b"self", &arguments[0], &self)
    if status != OK:
        return status
    for i in range(self.ndim):
        order[i] = self.ndim - 1 - i
    return _reordered(self, order, &results[0])


cdef int matrix_transpose_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """matrix_transpose(self): exchange the last two dimensions, as `.mT`; a 0-dim array is unchanged."""
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
    """permute(self, dims): reorder the dimensions."""
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
    """movedim(self, source, destination): move some dimensions; the others keep their order."""
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


# --------------------------------------------------------------------------------------------------------- complex view

cdef int _need_complex(const char *operation, const array_t *self) noexcept nogil:
    """Refuse arrays that are not complex."""
    if is_complex(self.dtype):
        return OK
    snprintf(message(), MESSAGE, b"%s: only complex tensors have two parts (got %s, expected complex64 or complex128).",
             operation, dtype_name(self.dtype))
    return RUNTIME_ERROR


cdef array_t *_part(array_t *self, int offset) noexcept nogil:
    """Return a view of the real (0) or imaginary (1) parts of a complex array."""
    cdef int64_t strides[MAX_DIMS]
    cdef int i
    for i in range(self.ndim):
        strides[i] = 2 * self.strides[i]
    return array_view(self, real_of(self.dtype), self.ndim, self.shape, strides, offset if self.size else 0)


cdef int real_view_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """real_view(self): the real parts; a real array is unchanged."""
    cdef array_t *self
    cdef int status = array_argument(b"real", b"self", &arguments[0], &self)
    if status != OK:
        return status
    return array_result(_part(self, 0) if is_complex(self.dtype) else retain(self), &results[0])


cdef int imag_view_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """imag_view(self): the imaginary parts of a complex array."""
    cdef array_t *self
    cdef int status = array_argument(b"imag", b"self", &arguments[0], &self)
    if status == OK:
        status = _need_complex(b"imag", self)
    return array_result(_part(self, 1), &results[0]) if status == OK else status


cdef int view_as_real_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """view_as_real(self): each complex number as a pair, in a new last dimension."""
    cdef array_t *self
    cdef int64_t shape[MAX_DIMS]
    cdef int64_t strides[MAX_DIMS]
    cdef int i, status = array_argument(b"view_as_real", b"self", &arguments[0], &self)
    if status == OK:
        status = _need_complex(b"view_as_real", self)
    if status != OK:
        return status
    if self.ndim == MAX_DIMS:
        snprintf(message(), MESSAGE, b"view_as_real: too many dimensions (got %d, expected at most %d).",
                 self.ndim + 1, <int>MAX_DIMS)
        return RUNTIME_ERROR
    for i in range(self.ndim):
        shape[i] = self.shape[i]
        strides[i] = 2 * self.strides[i]
    shape[self.ndim] = 2
    strides[self.ndim] = 1
    return array_result(array_view(self, real_of(self.dtype), self.ndim + 1, shape, strides, 0), &results[0])


cdef int view_as_complex_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """view_as_complex(self): pairs in the last dimension as complex numbers."""
    cdef array_t *self
    cdef int64_t strides[MAX_DIMS]
    cdef bint aligned = True
    cdef int i, last, dtype, status = array_argument(b"view_as_complex", b"self", &arguments[0], &self)
    if status != OK:
        return status
    if not is_floating(self.dtype) or itemsize(complex_of(self.dtype)) != 2 * itemsize(self.dtype):
        snprintf(message(), MESSAGE, b"view_as_complex: only real floating tensors can be seen so "
                 b"(got %s, expected float16, float32 or float64).", dtype_name(self.dtype))
        return RUNTIME_ERROR
    last = self.ndim - 1
    if last < 0 or self.shape[last] != 2:
        snprintf(message(), MESSAGE, b"view_as_complex: the last dimension must have size 2 (got shape %s).",
                 shape_text(self))
        return RUNTIME_ERROR
    dtype = complex_of(self.dtype)
    for i in range(last):
        if self.shape[i] > 1 and self.strides[i] % 2:
            aligned = False
        strides[i] = self.strides[i] // 2
    if self.storage != NULL and (self.data - self.storage.data) % itemsize(dtype):
        aligned = False
    if self.size and (self.strides[last] != 1 or not aligned):
        snprintf(message(), MESSAGE, b"view_as_complex: real and imaginary parts must lie side by side, at even "
                 b"offsets (got shape %s with strides %s). Use contiguous() first.",
                 shape_text(self), list_text(self.ndim, self.strides))
        return RUNTIME_ERROR
    return array_result(array_view(self, dtype, last, self.shape, strides, 0), &results[0])


register_kernel("real_view", real_view_kernel)
register_kernel("imag_view", imag_view_kernel)
register_kernel("view_as_real", view_as_real_kernel)
register_kernel("view_as_complex", view_as_complex_kernel)
