"""
Advanced indexing: index, index_put and the gradient of index.

Integer arrays are broadcast against each other; a mask is converted to the positions where it is true. Each entry
becomes a list of byte offsets, their sums are the offsets of the selected elements, and move_by_offsets moves them.
"""

from libc.stdint cimport int64_t
from libc.stdio cimport snprintf
from libc.string cimport memcpy, memset
from cygrad._core.arrays.array cimport (
    MAX_DIMS, array_empty, array_t, array_view, release, retain, shape_text, share_memory,
)
from cygrad._core.arrays.dtype cimport BOOL, INT64, UINT8, dtype_name, is_complex, itemsize
from cygrad._core.arrays.value cimport ARRAY, COMPLEX, is_number, register_kernel, set_array, value_t
from cygrad._core.elementwise.copying cimport as_contiguous, copy_into, fill
from cygrad._core.elementwise.iteration cimport broadcast_shape
from cygrad._core.elementwise.offset_moves cimport (
    ADD, READ, TAKE, WRITE, add_after, add_before, begin_nest, move_by_offsets, move_t, nest_of_offsets_t,
)
from cygrad._core.kernels.arguments cimport (
    array_argument, array_result, arrays_argument, check_same_shape, check_writable, fresh_copy, integers_argument,
    list_text, new_array, new_zeros,
)
from cygrad._core.kernels.indexing.positions cimport (
    check_index_dtype, index_rule_t, offsets_of, positions_to_offsets, true_positions,
)
from cygrad._core.kernels.shape.shape cimport expanded
from cygrad._core.memory.errors cimport INDEX_ERROR, MEMORY_ERROR, MESSAGE, OK, RUNTIME_ERROR, TYPE_ERROR, message

ctypedef struct index_plan_t:
    array_t *offsets               # in bytes from the array's data, in the shape of the broadcast indices
    bint indexed[MAX_DIMS]         # which dimensions of the array are replaced
    int n_before                   # how many dimensions stay in front of the indices
    int ndim                       # of the result
    int64_t shape[MAX_DIMS]


# ---- the plan

cdef int _mask_offsets(const char *operation, array_t *mask, const array_t *self, int dim, int entry,
                       array_t **offsets) noexcept nogil:
    """Offsets of the elements that a mask over dimensions from `dim` on chooses."""
    cdef int k, status
    if mask.ndim > self.ndim - dim:
        snprintf(message(), MESSAGE, b"%s: too many indices (got a mask of %d dimensions for what is left of "
                 b"shape %s).",
                 operation, mask.ndim, shape_text(self))
        return INDEX_ERROR
    for k in range(mask.ndim):
        if mask.shape[k] != self.shape[dim + k]:
            snprintf(message(), MESSAGE, b"%s: mask %d has the wrong shape (got %s, expected %s from dimension "
                     b"%d of %s).",
                     operation, entry, shape_text(mask), list_text(mask.ndim, self.shape + dim), dim, shape_text(self))
            return INDEX_ERROR
    status = true_positions(mask, offsets)
    if status == OK:
        positions_to_offsets(offsets[0], self, dim, mask.ndim)
    return status


cdef int _entry_offsets(const char *operation, array_t *index, const array_t *self, int dim, int entry,
                        array_t **offsets, int *consumed) noexcept nogil:
    """Offsets of one entry, and how many dimensions it replaces."""
    cdef index_rule_t rule
    cdef int status
    if index.dtype == BOOL:
        consumed[0] = index.ndim
        return _mask_offsets(operation, index, self, dim, entry, offsets)
    if index.dtype == UINT8:
        snprintf(message(), MESSAGE, b"%s: uint8 indices could be meant as a mask (got uint8 at entry %d). "
                 b"Convert to bool for a mask, to int64 for indices.", operation, entry)
        return INDEX_ERROR
    status = check_index_dtype(operation, index, INDEX_ERROR)
    if status != OK:
        return status
    if dim >= self.ndim:
        snprintf(message(), MESSAGE, b"%s: too many indices (got one for dimension %d of a tensor of shape %s).",
                 operation, dim, shape_text(self))
        return INDEX_ERROR
    memset(&rule, 0, sizeof(rule))
    rule.operation, rule.dim, rule.size = operation, dim, self.shape[dim]
    rule.step = self.strides[dim] * itemsize(self.dtype)
    rule.negative, rule.error = True, INDEX_ERROR
    consumed[0] = 1
    return offsets_of(index, &rule, offsets)


cdef int _summed(const char *operation, int n, array_t **parts, array_t **total) noexcept nogil:
    """The sum of n lists of offsets, broadcast against each other."""
    cdef value_t operands[MAX_DIMS]
    cdef int64_t shape[MAX_DIMS]
    cdef int64_t *sums
    cdef const int64_t *addends
    cdef array_t *view
    cdef array_t *part
    cdef int64_t i
    cdef int k, ndim, status
    if n == 1:
        total[0] = retain(parts[0])
        return OK
    for k in range(n):
        set_array(&operands[k], parts[k])
    ndim = broadcast_shape(operands, n, shape)
    if ndim == -2:
        return RUNTIME_ERROR
    if ndim < 0:
        snprintf(message(), MESSAGE, b"%s: the shapes of %d indices cannot be broadcast together (got %s, %s%s%s).",
                 operation, n, shape_text(parts[0]), shape_text(parts[1]),
                 <const char *>(b", " if n > 2 else b""), shape_text(parts[2]) if n > 2 else <const char *>b"")
        return INDEX_ERROR
    total[0] = NULL
    status = new_zeros(operation, INT64, ndim, shape, total)
    for k in range(n):
        if status != OK:
            break
        view = part = NULL
        status = expanded(operation, parts[k], ndim, shape, &view)
        if status == OK:
            part = as_contiguous(view, -1)
            if part == NULL:
                status = MEMORY_ERROR
            else:
                sums, addends = <int64_t *>total[0].data, <const int64_t *>part.data
                for i in range(part.size):
                    sums[i] += addends[i]
        release(view)
        release(part)
    if status != OK:
        release(total[0])
        total[0] = NULL
    return status


cdef int _make_plan(const char *operation, const array_t *self, int count, array_t **entries,
                    index_plan_t *plan) noexcept nogil:
    """Return the offsets of the selected elements, and the shape of the selection."""
    cdef array_t *parts[MAX_DIMS]
    cdef int i, n = 0, dim = 0, consumed = 0, last_entry = -1, status = OK
    cdef bint adjacent = True
    memset(plan, 0, sizeof(index_plan_t))
    for i in range(count):
        if entries[i] == NULL:
            dim += 1
            continue
        if n == MAX_DIMS:
            snprintf(message(), MESSAGE, b"%s: too many indices (got more than %d).", operation, <int>MAX_DIMS)
            status = INDEX_ERROR
        else:
            status = _entry_offsets(operation, entries[i], self, dim, i, &parts[n], &consumed)
        if status != OK:
            break
        if n == 0:
            plan.n_before = dim
        adjacent = adjacent and (n == 0 or last_entry == i - 1)
        last_entry = i
        n += 1
        memset(&plan.indexed[dim], 1, consumed * sizeof(bint))
        dim += consumed
    if status == OK and dim > self.ndim:
        snprintf(message(), MESSAGE, b"%s: too many indices (got %d for a tensor of shape %s).",
                 operation, dim, shape_text(self))
        status = INDEX_ERROR
    if status == OK and n:
        status = _summed(operation, n, parts, &plan.offsets)
    elif status == OK:         # full slices only: one place, the beginning
        status = new_zeros(operation, INT64, 0, NULL, &plan.offsets)
    for i in range(n):
        release(parts[i])
    if status != OK:
        return status
    if not adjacent:           # separated by a full slice: the dimensions of the indices come first
        plan.n_before = 0
    status = _plan_shape(operation, self, plan)
    if status != OK:
        release(plan.offsets)
    return status


cdef int _plan_shape(const char *operation, const array_t *self, index_plan_t *plan) noexcept nogil:
    """Return the shape of the result: dimensions before the indices, the indices, dimensions after them."""
    cdef int k
    plan.ndim = plan.offsets.ndim
    for k in range(self.ndim):
        plan.ndim += not plan.indexed[k]
    if plan.ndim > MAX_DIMS:
        snprintf(message(), MESSAGE, b"%s: the result has too many dimensions (got %d, expected at most %d).",
                 operation, plan.ndim, <int>MAX_DIMS)
        return RUNTIME_ERROR
    memcpy(plan.shape, self.shape, plan.n_before * sizeof(int64_t))
    memcpy(plan.shape + plan.n_before, plan.offsets.shape, plan.offsets.ndim * sizeof(int64_t))
    plan.ndim = plan.n_before + plan.offsets.ndim
    for k in range(plan.n_before, self.ndim):
        if not plan.indexed[k]:
            plan.shape[plan.ndim] = self.shape[k]
            plan.ndim += 1
    return OK


cdef void _move(move_t move, const index_plan_t *plan, const array_t *self, const array_t *dense) noexcept nogil:
    """Move the chosen elements between `self` and a contiguous array of the result's shape."""
    cdef nest_of_offsets_t nest
    cdef int k
    begin_nest(&nest, move, self, dense, <const int64_t *>plan.offsets.data, plan.offsets.size)
    for k in range(self.ndim):
        if k < plan.n_before:
            add_before(&nest, self, k)
        elif not plan.indexed[k]:
            add_after(&nest, self, k)
    move_by_offsets(&nest)


# ---- the kernels

cdef int index_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """index(self, indices): the chosen elements, copied; a missing entry is a full slice."""
    return _indexed(b"index", READ, arguments, results)


cdef int index_take_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """index_take(self, indices): index, with zeros for all but the last of equal indices."""
    return _indexed(b"index", TAKE, arguments, results)


cdef int _indexed(const char *operation, move_t move, const value_t *arguments, value_t *results) noexcept nogil:
    cdef array_t *self
    cdef array_t *source = NULL
    cdef array_t *result = NULL
    cdef array_t **entries
    cdef index_plan_t plan
    cdef int count, status = array_argument(operation, b"self", &arguments[0], &self)
    if status == OK:
        status = arrays_argument(operation, b"indices", &arguments[1], &count, &entries)
    if status == OK and move == TAKE:
        status = fresh_copy(self, &source)
    elif status == OK:
        source = retain(self)
    if status != OK:
        return status
    status = _make_plan(operation, source, count, entries, &plan)
    if status == OK:
        status = new_array(operation, self.dtype, plan.ndim, plan.shape, &result)
        if status == OK:
            _move(move, &plan, source, result)
        release(plan.offsets)
    release(source)
    return array_result(result, &results[0]) if status == OK else status


cdef int scalar_array(const char *operation, const value_t *value, int dtype, array_t **scalar) noexcept nogil:
    cdef int status = OK
    cdef bint complex_value
    if not is_number(value) and not (value.kind == ARRAY and value.of.array.ndim == 0):
        if value.kind != ARRAY:
            snprintf(message(), MESSAGE, b"%s: the value must be a number or a 0-dim tensor.", operation)
            return TYPE_ERROR
        snprintf(message(), MESSAGE, b"%s: the value must be a number or a 0-dim tensor (got shape %s).",
                 operation, shape_text(value.of.array))
        return RUNTIME_ERROR
    complex_value = value.kind == COMPLEX or (value.kind == ARRAY and is_complex(value.of.array.dtype))
    if complex_value and not is_complex(dtype) and dtype != BOOL:
        snprintf(message(), MESSAGE, b"%s: a complex value does not fit (expected a value for %s).",
                 operation, dtype_name(dtype))
        return RUNTIME_ERROR
    scalar[0] = array_empty(dtype, 0, NULL)
    if scalar[0] == NULL:
        return MEMORY_ERROR
    status = copy_into(scalar[0], value.of.array) if value.kind == ARRAY else fill(scalar[0], value)
    if status != OK:
        release(scalar[0])
        scalar[0] = NULL
    return status


cdef int _dense_values(array_t *self, const value_t *values, const index_plan_t *plan, array_t **dense) noexcept nogil:
    """The values as a contiguous array of the result's shape that shares no memory with `self`."""
    cdef array_t *source = NULL
    cdef array_t *view = NULL
    cdef int extra = 0, status
    if values.kind == ARRAY and values.of.array.dtype != self.dtype:
        snprintf(message(), MESSAGE, b"index_put: dtypes differ (got values of %s, expected %s). Convert the "
                 b"values first.",
                 dtype_name(values.of.array.dtype), dtype_name(self.dtype))
        return RUNTIME_ERROR
    if values.kind == ARRAY:
        source = retain(values.of.array)
    else:
        status = scalar_array(b"index_put", values, self.dtype, &source)
        if status != OK:
            return status
    # Leading dimensions of size 1 do not count.
    while source.ndim - extra > plan.ndim and source.shape[extra] == 1:
        extra += 1
    view = array_view(source, source.dtype, source.ndim - extra, source.shape + extra, source.strides + extra, 0)
    release(source)
    if view == NULL:
        return MEMORY_ERROR
    source = view
    status = expanded(b"index_put", source, plan.ndim, plan.shape, &view)
    release(source)
    if status != OK:
        return status
    if share_memory(view, self):
        status = fresh_copy(view, dense)
    else:
        dense[0] = as_contiguous(view, -1)
        status = OK if dense[0] != NULL else MEMORY_ERROR
    release(view)
    return status


cdef int index_put_into_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """index_put_into(self, indices, values, accumulate): writes the memory of self; the last of equal indices wins."""
    cdef array_t *self
    cdef array_t *dense = NULL
    cdef array_t **entries
    cdef index_plan_t plan
    cdef int count, status = array_argument(b"index_put", b"self", &arguments[0], &self)
    if status == OK:
        status = arrays_argument(b"index_put", b"indices", &arguments[1], &count, &entries)
    if status == OK:
        status = check_writable(b"index_put", self)
    if status == OK:
        status = _make_plan(b"index_put", self, count, entries, &plan)
    if status != OK:
        return status
    status = _dense_values(self, &arguments[2], &plan, &dense)
    if status == OK:
        _move(ADD if arguments[3].kind and arguments[3].of.integer else WRITE, &plan, self, dense)
        set_array(&results[0], retain(self))
    release(dense)
    release(plan.offsets)
    return status


cdef int index_backward_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """index_backward(grad, shape, indices): the gradient summed into zeros, in the order of the indices."""
    cdef array_t *grad
    cdef array_t *dense = NULL
    cdef array_t *zeros = NULL
    cdef array_t **entries
    cdef const int64_t *shape
    cdef index_plan_t plan
    cdef int ndim, count, status = array_argument(b"index_backward", b"grad", &arguments[0], &grad)
    if status == OK:
        status = integers_argument(b"index_backward", b"shape", &arguments[1], &ndim, &shape)
    if status == OK:
        status = arrays_argument(b"index_backward", b"indices", &arguments[2], &count, &entries)
    if status == OK:
        status = new_zeros(b"index_backward", grad.dtype, ndim, shape, &zeros)
    if status != OK:
        return status
    status = _make_plan(b"index_backward", zeros, count, entries, &plan)
    if status == OK:
        status = check_same_shape(b"index_backward", b"grad", grad, plan.ndim, plan.shape)
        if status == OK:
            dense = as_contiguous(grad, -1)
            status = OK if dense != NULL else MEMORY_ERROR
        if status == OK:
            _move(ADD, &plan, zeros, dense)
        release(dense)
        release(plan.offsets)
    if status != OK:
        release(zeros)
        return status
    return array_result(zeros, &results[0])


register_kernel("index", index_kernel)
register_kernel("index_take", index_take_kernel)
register_kernel("index_put_into", index_put_into_kernel)
register_kernel("index_backward", index_backward_kernel)
