"""
Advanced indexing: index, index_put and the gradient of index.

Integer arrays are broadcast against each other; a mask is converted to the positions where it is true. Each entry
becomes a list of byte offsets, their sums are the offsets of the selected elements, and move_by_offsets moves them.
"""

cimport cygrad._core.elementwise.elementwise     # fills the table of loops when it is imported
from libc.math cimport fabs
from libc.stdint cimport int64_t, uint8_t
from libc.stdio cimport snprintf
from libc.string cimport memcpy, memset
from cygrad._core.arrays.array cimport (
    ARRAY, COMPLEX, INTEGER, MAX_DIMS, NOTHING, REAL, array_empty, array_empty_like, array_t, is_number,
    register_kernel, release, retain, set_array, shape_text, share_memory, value_t,
)
from cygrad._core.arrays.dtype cimport BOOL, COMPLEX128, INT64, UINT8, dtype_name, is_complex, is_integral, itemsize
from cygrad._core.elementwise.copying cimport (
    ADD, READ, SKIP, TAKE, WRITE, add_after, add_before, as_contiguous, as_dtype, begin_nest, broadcast_shape,
    broadcasts_to, check_fits, copy_into, fill, move_along, move_by_offsets, move_t, nest_of_offsets_t,
)
from cygrad._core.kernels.arguments cimport (
    array_argument, array_result, arrays_argument, check_same_shape, check_writable, fresh_copy, integer_argument,
    integers_argument, list_text, new_array, new_zeros, optional_integer, wrap_dim,
)
from cygrad._core.kernels.shape.shape cimport expanded
from cygrad._core.memory.atomic cimport atomic_load, atomic_store
from cygrad._core.memory.errors cimport INDEX_ERROR, MEMORY_ERROR, MESSAGE, OK, RUNTIME_ERROR, TYPE_ERROR, message
from cygrad._core.primitives.primitive_table cimport entries, entry_t, primitive
from cygrad._core.threads.parallel cimport parallel_for


# ------------------------------------------------------------------------------------------------------------ positions

# Convert indices to byte offsets, and masks to positions; each index is checked as it is read.

cdef enum:
    CHUNK = 32768      # elements in a chunk of a parallel loop
    BLOCK = 512        # elements whose positions are listed at a time: a divisor of CHUNK


cdef int check_index_dtype(const char *operation, const array_t *indices, int error) noexcept nogil:
    if is_integral(indices.dtype):
        return OK
    snprintf(message(), MESSAGE, b"%s: indices must be integers (got %s, expected int64).",
             operation, dtype_name(indices.dtype))
    return error


cdef int out_of_bounds(const char *operation, int64_t index, int dim, int64_t size, int error) noexcept nogil:
    snprintf(message(), MESSAGE, b"%s: index %lld is out of bounds for dimension %d with size %lld.",
             operation, <long long>index, dim, <long long>size)
    return error


# ---- indices

ctypedef struct indices_t:
    const index_rule_t *rule
    const int64_t *indices
    int64_t *offsets
    int64_t failed         # 1 once some index was out of bounds


cdef inline int64_t _wrapped(const index_rule_t *rule, int64_t index) noexcept nogil:
    """Wrap a negative index."""
    return index + rule.size if index < 0 and rule.negative else index


cdef extern from "kernels/indexing/indices.h" nogil:
    bint scale_indices(const int64_t *indices, int64_t *offsets, int64_t n, int64_t size, int64_t wrapping,
                       int64_t step)


cdef void _fill_offsets(void *context, int64_t begin, int64_t end) noexcept nogil:
    """Convert indices begin..end."""
    cdef indices_t *job = <indices_t *>context
    cdef const index_rule_t *rule = job.rule
    cdef int64_t i
    if scale_indices(job.indices + begin, job.offsets + begin, end - begin, rule.size,
                     rule.size if rule.negative else 0, rule.step):
        atomic_store(&job.failed, 1)
    if rule.skipping:
        for i in range(begin, end):
            if _wrapped(rule, job.indices[i]) == rule.skipped:
                job.offsets[i] = SKIP


cdef int _report(array_t *indices, const index_rule_t *rule) noexcept nogil:
    """Report the first index that is out of bounds."""
    cdef const int64_t *values = <const int64_t *>indices.data
    cdef int64_t i, index = 0
    for i in range(indices.size):
        index = values[i]
        if not 0 <= _wrapped(rule, index) < rule.size:
            break
    return out_of_bounds(rule.operation, index, rule.dim, rule.size, rule.error)


cdef int offsets_of(array_t *indices, const index_rule_t *rule, array_t **offsets) noexcept nogil:
    cdef indices_t job
    cdef int status = OK
    cdef array_t *values = as_contiguous(indices, INT64)
    if values == NULL:
        return MEMORY_ERROR
    offsets[0] = array_empty_like(values, INT64)
    if offsets[0] == NULL:
        status = MEMORY_ERROR
    else:
        job.rule, job.failed = rule, 0
        job.indices, job.offsets = <const int64_t *>values.data, <int64_t *>offsets[0].data
        parallel_for(_fill_offsets, &job, values.size, CHUNK)
        if atomic_load(&job.failed):
            status = _report(values, rule)
            release(offsets[0])
            offsets[0] = NULL
    release(values)
    return status


# ---- masks

ctypedef struct mask_positions_t:
    const uint8_t *mask
    int64_t *starts        # of each chunk: the number of true elements, later the start of its positions
    int64_t *positions
    int64_t size


cdef void _count_chunks(void *context, int64_t begin, int64_t end) noexcept nogil:
    """Count the true elements of each chunk."""
    cdef mask_positions_t *job = <mask_positions_t *>context
    cdef int64_t chunk, i, count
    for chunk in range(begin, end):
        count = 0
        for i in range(chunk * CHUNK, min(job.size, (chunk + 1) * CHUNK)):
            count += job.mask[i] != 0
        job.starts[chunk] = count


cdef void _list_chunks(void *context, int64_t begin, int64_t end) noexcept nogil:
    """Write the positions of each chunk."""
    cdef mask_positions_t *job = <mask_positions_t *>context
    cdef int64_t[BLOCK] block
    cdef int64_t chunk, start, i, k, found, capacity
    for chunk in range(begin, end):
        k = job.starts[chunk]
        start = chunk * CHUNK
        while start < min(job.size, (chunk + 1) * CHUNK):
            # Write every index and advance only for true ones: a branch would be mispredicted.
            found = 0
            for i in range(start, min(job.size, start + BLOCK)):
                block[found] = i
                found += job.mask[i] != 0
            # Another thread may have changed the mask since it was counted: stay within the chunk.
            capacity = job.starts[chunk + 1] - k
            found = min(found, capacity)
            memcpy(job.positions + k, block, found * sizeof(int64_t))
            k += found
            start += BLOCK
        while k < job.starts[chunk + 1]:
            job.positions[k] = 0
            k += 1


cdef int true_positions(array_t *array, array_t **positions) noexcept nogil:
    cdef mask_positions_t job
    cdef array_t *mask = as_contiguous(array, BOOL)
    cdef array_t *starts = NULL
    cdef int64_t chunk, count, total = 0, chunks = (array.size + CHUNK - 1) // CHUNK, slots = chunks + 1
    positions[0] = NULL
    if mask != NULL:
        starts = array_empty(INT64, 1, &slots)
    if starts != NULL:
        job.mask, job.size = <const uint8_t *>mask.data, mask.size
        job.starts = <int64_t *>starts.data
        parallel_for(_count_chunks, &job, chunks, 1)
        for chunk in range(chunks):
            count = job.starts[chunk]
            job.starts[chunk] = total
            total += count
        job.starts[chunks] = total
        positions[0] = array_empty(INT64, 1, &total)
    if positions[0] != NULL:
        job.positions = <int64_t *>positions[0].data
        parallel_for(_list_chunks, &job, chunks, 1)
    release(starts)
    release(mask)
    return OK if positions[0] != NULL else MEMORY_ERROR


ctypedef struct conversion_t:
    int64_t *positions
    const array_t *array
    int first
    int count


cdef void _convert(void *context, int64_t begin, int64_t end) noexcept nogil:
    """Convert positions begin..end to offsets."""
    cdef conversion_t *job = <conversion_t *>context
    cdef const int64_t *shape = &job.array.shape[job.first]
    cdef const int64_t *strides = &job.array.strides[job.first]
    cdef int64_t i, position, offset, width = itemsize(job.array.dtype)
    cdef int k
    for i in range(begin, end):
        position = job.positions[i]
        offset = 0
        for k in range(job.count - 1, 0, -1):
            offset += position % shape[k] * strides[k]
            position //= shape[k]
        job.positions[i] = (offset + position * strides[0]) * width


cdef void _scale(void *context, int64_t begin, int64_t end) noexcept nogil:
    """Convert positions if the dimensions are one contiguous run."""
    cdef conversion_t *job = <conversion_t *>context
    cdef int64_t i, step = job.array.strides[job.first + job.count - 1] * itemsize(job.array.dtype)
    for i in range(begin, end):
        job.positions[i] *= step


cdef void positions_to_offsets(array_t *positions, const array_t *array, int first, int count) noexcept nogil:
    cdef conversion_t job
    cdef bint one_run = True
    cdef int k
    if count == 0:         # 0-dim mask: position 0 is offset 0
        return
    for k in range(first, first + count - 1):
        one_run = one_run and array.strides[k] == array.shape[k + 1] * array.strides[k + 1]
    job.positions, job.array, job.first, job.count = <int64_t *>positions.data, array, first, count
    parallel_for(_scale if one_run else _convert, &job, positions.size, CHUNK)


# ---------------------------------------------------------------------------------------------------------------- index

ctypedef struct index_plan_t:
    array_t *offsets               # in bytes from the array's data, in the shape of the broadcast indices
    bint indexed[MAX_DIMS]         # dimensions of the array that are replaced
    int n_before                   # number of dimensions in front of the indices
    int ndim                       # of the result
    int64_t shape[MAX_DIMS]


# ---- the plan

cdef int _mask_offsets(const char *operation, array_t *mask, const array_t *self, int dim, int entry,
                       array_t **offsets) noexcept nogil:
    """Compute the offsets of the elements that a mask over dimensions from `dim` on selects."""
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
    """Compute the offsets of one entry, and the number of dimensions it replaces."""
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
    """Add n arrays of offsets, broadcast against each other."""
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


cdef int _make_plan(const char *operation, const array_t *self, int count, array_t **indices,
                    index_plan_t *plan) noexcept nogil:
    """Return the offsets of the selected elements, and the shape of the selection."""
    cdef array_t *parts[MAX_DIMS]
    cdef int i, n = 0, dim = 0, consumed = 0, last_entry = -1, status = OK
    cdef bint adjacent = True
    memset(plan, 0, sizeof(index_plan_t))
    for i in range(count):
        if indices[i] == NULL:
            dim += 1
            continue
        if n == MAX_DIMS:
            snprintf(message(), MESSAGE, b"%s: too many indices (got more than %d).", operation, <int>MAX_DIMS)
            status = INDEX_ERROR
        else:
            status = _entry_offsets(operation, indices[i], self, dim, i, &parts[n], &consumed)
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
    elif status == OK:         # full slices only: one offset, 0
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
    """Set the shape of the result: dimensions before the indices, the indices, dimensions after them."""
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
    """Move the selected elements between `self` and a contiguous array of the result's shape."""
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
    """index(self, indices): a copy of the selected elements; a missing entry is a full slice."""
    return _indexed(b"index", READ, arguments, results)


cdef int index_take_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """index_take(self, indices): index, with zeros for all but the last of equal indices."""
    return _indexed(b"index", TAKE, arguments, results)


cdef int _indexed(const char *operation, move_t move, const value_t *arguments, value_t *results) noexcept nogil:
    cdef array_t *self
    cdef array_t *source = NULL
    cdef array_t *result = NULL
    cdef array_t **indices
    cdef index_plan_t plan
    cdef int count, status = array_argument(operation, b"self", &arguments[0], &self)
    if status == OK:
        status = arrays_argument(operation, b"indices", &arguments[1], &count, &indices)
    if status == OK and move == TAKE:
        status = fresh_copy(self, &source)
    elif status == OK:
        source = retain(self)
    if status != OK:
        return status
    status = _make_plan(operation, source, count, indices, &plan)
    if status == OK:
        status = new_array(operation, self.dtype, plan.ndim, plan.shape, &result)
        if status == OK:
            _move(move, &plan, source, result)
        release(plan.offsets)
    release(source)
    return array_result(result, &results[0]) if status == OK else status


cdef int _check_element(const char *operation, const value_t *given, int dtype) noexcept nogil:
    """Check that a number, or the element of a 0-dim array, is in the range of a dtype."""
    cdef value_t value
    cdef array_t *wide
    if given.kind != ARRAY:
        value = given[0]
    elif given.of.array.dtype == dtype or dtype == INT64 and is_integral(given.of.array.dtype):
        return OK
    else:
        wide = as_dtype(given.of.array, COMPLEX128)
        if wide == NULL:
            return MEMORY_ERROR
        value.kind, value.of.real = REAL, (<double *>wide.data)[0]
        if is_integral(given.of.array.dtype) and fabs(value.of.real) < 2.0**63:
            value.kind, value.of.integer = INTEGER, <int64_t>value.of.real
        release(wide)
    return check_fits(operation, &value, dtype)


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
        snprintf(message(), MESSAGE, b"%s: a complex value cannot be cast to a real dtype (expected a value for %s).",
                 operation, dtype_name(dtype))
        return RUNTIME_ERROR
    status = _check_element(operation, value, dtype)
    scalar[0] = array_empty(dtype, 0, NULL) if status == OK else NULL
    if scalar[0] == NULL:
        return status or MEMORY_ERROR
    status = copy_into(scalar[0], value.of.array) if value.kind == ARRAY else fill(scalar[0], value)
    if status != OK:
        release(scalar[0])
        scalar[0] = NULL
    return status


cdef int _dense_values(array_t *self, const value_t *values, const index_plan_t *plan, array_t **dense) noexcept nogil:
    """Return the values, contiguous, in the result's shape and without memory shared with `self`."""
    cdef array_t *source = NULL
    cdef array_t *view = NULL
    cdef int status
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


cdef int index_put_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """index_put(self, indices, values, accumulate): in-place; the last of equal indices wins."""
    cdef array_t *self
    cdef array_t *dense = NULL
    cdef array_t **indices
    cdef index_plan_t plan
    cdef int count, status = array_argument(b"index_put", b"self", &arguments[0], &self)
    if status == OK:
        status = arrays_argument(b"index_put", b"indices", &arguments[1], &count, &indices)
    if status == OK:
        status = check_writable(b"index_put", self)
    if status == OK:
        status = _make_plan(b"index_put", self, count, indices, &plan)
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
    cdef array_t **indices
    cdef const int64_t *shape
    cdef index_plan_t plan
    cdef int ndim, count, status = array_argument(b"index_backward", b"grad", &arguments[0], &grad)
    if status == OK:
        status = integers_argument(b"index_backward", b"shape", &arguments[1], &ndim, &shape)
    if status == OK:
        status = arrays_argument(b"index_backward", b"indices", &arguments[2], &count, &indices)
    if status == OK:
        status = new_zeros(b"index_backward", grad.dtype, ndim, shape, &zeros)
    if status != OK:
        return status
    status = _make_plan(b"index_backward", zeros, count, indices, &plan)
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
register_kernel("index_put", index_put_kernel)
register_kernel("index_backward", index_backward_kernel)


# ----------------------------------------------------------------------------------------------------------- index rows

# Rows chosen along one dimension: index_select, index_add, embedding and its gradient, one_hot.

cdef int _multiply = primitive("mul")


cdef int _row_offsets(const char *operation, const array_t *self, int dim, array_t *index, int error,
                      array_t **offsets) noexcept nogil:
    """Compute the offsets of the rows along `dim` that an index without negative entries selects."""
    cdef index_rule_t rule
    memset(&rule, 0, sizeof(rule))
    rule.operation, rule.dim, rule.error = operation, dim, error
    rule.size = self.shape[dim] if self.ndim else 1
    rule.step = self.strides[dim] * itemsize(self.dtype) if self.ndim else 0
    return offsets_of(index, &rule, offsets)


cdef int rows_arguments(const char *operation, const value_t *arguments, array_t **self, int *dim,
                        array_t **index) noexcept nogil:
    cdef int64_t given
    cdef int status = array_argument(operation, b"self", &arguments[0], self)
    if status == OK:
        status = integer_argument(operation, b"dim", &arguments[1], &given)
    if status == OK:
        status = array_argument(operation, b"index", &arguments[2], index)
    if status == OK:
        status = wrap_dim(operation, given, self[0].ndim, dim)
    return check_index_dtype(operation, index[0], RUNTIME_ERROR) if status == OK else status


cdef int _open_rows(const char *operation, const value_t *arguments, array_t **self, int *dim,
                    array_t **index) noexcept nogil:
    """Read the arguments of index_select and index_add; the index is a vector."""
    cdef int status = rows_arguments(operation, arguments, self, dim, index)
    if status == OK and index[0].ndim > 1:
        snprintf(message(), MESSAGE, b"%s: the index must be a vector (got shape %s).", operation, shape_text(index[0]))
        return INDEX_ERROR
    return status


cdef int index_select_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """index_select(self, dim, index): a copy of these rows along `dim`."""
    cdef array_t *self
    cdef array_t *index
    cdef array_t *offsets = NULL
    cdef array_t *chosen = NULL
    cdef int64_t shape[MAX_DIMS]
    cdef int dim, status = _open_rows(b"index_select", arguments, &self, &dim, &index)
    if status == OK and self.ndim == 0 and index.size != 1:
        snprintf(message(), MESSAGE, b"index_select: a 0-dim tensor has one element (got an index of shape %s).",
                 shape_text(index))
        status = RUNTIME_ERROR
    if status == OK:
        status = _row_offsets(b"index_select", self, dim, index, INDEX_ERROR, &offsets)
    if status != OK:
        return status
    memcpy(shape, self.shape, self.ndim * sizeof(int64_t))
    if self.ndim:
        shape[dim] = index.size
    status = new_array(b"index_select", self.dtype, self.ndim, shape, &chosen)
    if status == OK:
        move_along(READ, self, dim, chosen, <const int64_t *>offsets.data, index.size)
    release(offsets)
    return array_result(chosen, &results[0]) if status == OK else status


cdef int _scaled(array_t *source, const value_t *alpha, array_t **scaled) noexcept nogil:
    """Return alpha * source, contiguous; the source itself if it is contiguous and alpha is missing."""
    cdef array_t *factor = NULL
    cdef array_t *dense = as_contiguous(source, -1)
    cdef char *arguments[3]
    cdef int64_t steps[3]
    cdef entry_t entry = entries[_multiply][source.dtype]
    cdef int status = OK
    scaled[0] = dense
    if dense == NULL:
        return MEMORY_ERROR
    if alpha.kind == NOTHING or dense.size == 0 or (alpha.kind == INTEGER and alpha.of.integer == 1):
        return OK
    status = scalar_array(b"index_add", alpha, source.dtype, &factor)
    if status == OK:
        scaled[0] = array_empty_like(dense, -1)
        if scaled[0] == NULL:
            status = MEMORY_ERROR
        else:
            arguments[0], arguments[1], arguments[2] = dense.data, factor.data, scaled[0].data
            steps[0], steps[1], steps[2] = itemsize(source.dtype), 0, itemsize(source.dtype)
            entry.loop(arguments, &dense.size, steps, entry.data)
    else:
        scaled[0] = NULL
    release(factor)
    release(dense)
    return status


cdef int index_add_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """index_add(self, dim, index, source, alpha): a copy with alpha * source added to these rows, in order."""
    cdef array_t *self
    cdef array_t *index
    cdef array_t *source
    cdef array_t *scaled = NULL
    cdef array_t *offsets = NULL
    cdef array_t *total = NULL
    cdef int64_t shape[MAX_DIMS]
    cdef int dim, status = _open_rows(b"index_add", arguments, &self, &dim, &index)
    if status == OK:
        status = array_argument(b"index_add", b"source", &arguments[3], &source)
    if status != OK:
        return status
    if source.dtype != self.dtype:
        snprintf(message(), MESSAGE, b"index_add: dtypes differ (got source of %s, expected %s). Convert source first.",
                 dtype_name(source.dtype), dtype_name(self.dtype))
        return RUNTIME_ERROR
    memcpy(shape, self.shape, self.ndim * sizeof(int64_t))
    if self.ndim:
        shape[dim] = index.size
    status = check_same_shape(b"index_add", b"source", source, self.ndim, shape)
    if status == OK and self.ndim == 0 and index.size != 1:
        snprintf(message(), MESSAGE, b"index_add: a 0-dim tensor has one element (got an index of shape %s).",
                 shape_text(index))
        status = RUNTIME_ERROR
    if status == OK:
        status = fresh_copy(self, &total)
    if status != OK:
        return status
    status = _row_offsets(b"index_add", total, dim, index, RUNTIME_ERROR, &offsets)
    if status == OK:
        status = _scaled(source, &arguments[4], &scaled)
    if status == OK:
        move_along(ADD, total, dim, scaled, <const int64_t *>offsets.data, index.size)
    release(scaled)
    release(offsets)
    if status != OK:
        release(total)
        return status
    return array_result(total, &results[0])


cdef int _check_weight(const char *operation, int ndim) noexcept nogil:
    """Refuse weights that are not a matrix."""
    if ndim == 2:
        return OK
    snprintf(message(), MESSAGE, b"%s: the weight must be a matrix (got %d dimensions, expected 2).", operation, ndim)
    return RUNTIME_ERROR


cdef int embedding_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """embedding(weight, index, padding_idx): the rows of a matrix, in the shape of the index."""
    cdef array_t *weight
    cdef array_t *index
    cdef array_t *offsets = NULL
    cdef array_t *rows = NULL
    cdef int64_t shape[MAX_DIMS + 1]
    cdef int status = array_argument(b"embedding", b"weight", &arguments[0], &weight)
    if status == OK:
        status = array_argument(b"embedding", b"index", &arguments[1], &index)
    if status == OK:
        status = _check_weight(b"embedding", weight.ndim)
    if status == OK:
        status = check_index_dtype(b"embedding", index, RUNTIME_ERROR)
    if status == OK:
        status = _row_offsets(b"embedding", weight, 0, index, INDEX_ERROR, &offsets)
    if status != OK:
        return status
    memcpy(shape, index.shape, index.ndim * sizeof(int64_t))
    shape[index.ndim] = weight.shape[1]
    status = new_array(b"embedding", weight.dtype, index.ndim + 1, shape, &rows)
    if status == OK:
        move_along(READ, weight, 0, rows, <const int64_t *>offsets.data, index.size)
    release(offsets)
    return array_result(rows, &results[0]) if status == OK else status


cdef int embedding_backward_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """embedding_backward(grad, index, num_weights, padding_idx): rows summed in order, except the padding's."""
    cdef array_t *grad
    cdef array_t *index
    cdef array_t *dense = NULL
    cdef array_t *offsets = NULL
    cdef array_t *zeros = NULL
    cdef index_rule_t rule
    cdef int64_t shape[MAX_DIMS + 1]
    cdef int64_t rows, padding
    cdef int status = array_argument(b"embedding_backward", b"grad", &arguments[0], &grad)
    if status == OK:
        status = array_argument(b"embedding_backward", b"index", &arguments[1], &index)
    if status == OK:
        status = check_index_dtype(b"embedding_backward", index, RUNTIME_ERROR)
    if status == OK:
        status = integer_argument(b"embedding_backward", b"num_weights", &arguments[2], &rows)
    if status == OK:
        status = optional_integer(b"embedding_backward", b"padding_idx", &arguments[3], -1, &padding)
    if status != OK:
        return status
    memcpy(shape, index.shape, index.ndim * sizeof(int64_t))
    shape[index.ndim] = grad.shape[grad.ndim - 1] if grad.ndim else 1
    status = check_same_shape(b"embedding_backward", b"grad", grad, index.ndim + 1, shape)
    if status == OK:
        shape[0], shape[1] = rows, grad.shape[grad.ndim - 1]
        status = new_zeros(b"embedding_backward", grad.dtype, 2, shape, &zeros)
    if status != OK:
        return status
    memset(&rule, 0, sizeof(rule))
    rule.operation, rule.error, rule.size = b"embedding_backward", INDEX_ERROR, rows
    rule.step = zeros.shape[1] * itemsize(grad.dtype)
    rule.skipping, rule.skipped = padding >= 0, padding
    status = offsets_of(index, &rule, &offsets)
    if status == OK:
        dense = as_contiguous(grad, -1)
        status = OK if dense != NULL else MEMORY_ERROR
    if status == OK:
        move_along(ADD, zeros, 0, dense, <const int64_t *>offsets.data, index.size)
    release(dense)
    release(offsets)
    if status != OK:
        release(zeros)
        return status
    return array_result(zeros, &results[0])


cdef int one_hot_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """one_hot(self, num_classes): a last dimension with 1 at the class and 0 elsewhere; -1: infer the number."""
    cdef array_t *self
    cdef array_t *classes
    cdef array_t *zeros = NULL
    cdef const int64_t *values
    cdef int64_t shape[MAX_DIMS + 1]
    cdef int64_t number, i, low = 0, high = -1
    cdef int status = array_argument(b"one_hot", b"self", &arguments[0], &self)
    if status == OK:
        status = optional_integer(b"one_hot", b"num_classes", &arguments[1], -1, &number)
    if status != OK:
        return status
    if self.dtype != INT64:
        snprintf(message(), MESSAGE, b"one_hot: classes must be int64 (got %s). Convert them first.",
                 dtype_name(self.dtype))
        return RUNTIME_ERROR
    if self.size == 0 and number <= 0:
        snprintf(message(), MESSAGE, b"one_hot: the number of classes cannot be told from an empty tensor "
                 b"(got num_classes %lld). Pass it.", <long long>number)
        return RUNTIME_ERROR
    classes = as_contiguous(self, -1)
    if classes == NULL:
        return MEMORY_ERROR
    values = <const int64_t *>classes.data
    for i in range(classes.size):
        low = min(low, values[i])
        high = max(high, values[i])
    if low < 0 or (number >= 0 and high >= number) or number < -1:
        snprintf(message(), MESSAGE, b"one_hot: class out of range (got classes from %lld to %lld with "
                 b"num_classes %lld, "
                 b"expected 0 <= class < num_classes).", <long long>low, <long long>high, <long long>number)
        release(classes)
        return RUNTIME_ERROR
    number = high + 1 if number < 0 else number
    memcpy(shape, self.shape, self.ndim * sizeof(int64_t))
    shape[self.ndim] = number
    status = new_zeros(b"one_hot", INT64, self.ndim + 1, shape, &zeros)
    if status == OK:
        for i in range(classes.size):
            # Check again: another thread may have changed it.
            if 0 <= values[i] < number:
                (<int64_t *>zeros.data)[i * number + values[i]] = 1
    release(classes)
    return array_result(zeros, &results[0]) if status == OK else status


register_kernel("index_select", index_select_kernel)
register_kernel("index_add", index_add_kernel)
register_kernel("embedding", embedding_kernel)
register_kernel("embedding_backward", embedding_backward_kernel)
register_kernel("one_hot", one_hot_kernel)


# ----------------------------------------------------------------------------------------------------------------- mask

# Masks: masked_fill, masked_select, nonzero.

cdef extern from "kernels/indexing/walks.h" nogil:
    void fill_where(const uint8_t *mask, char *data, const void *value, int64_t size, int64_t begin, int64_t end)

ctypedef struct masked_t:
    const uint8_t *mask
    char *data             # contiguous
    const char *value
    int64_t width


cdef void _fill_chunk(void *context, int64_t begin, int64_t end) noexcept nogil:
    """Fill elements begin..end by item size."""
    cdef masked_t *job = <masked_t *>context
    fill_where(job.mask, job.data, job.value, job.width, begin, end)


cdef int _open_mask(const char *operation, const value_t *arguments, array_t **self, array_t **mask, int *ndim,
                    int64_t *shape) noexcept nogil:
    """Read the arguments (self, mask) and the shape that both broadcast to."""
    cdef int status = array_argument(operation, b"self", &arguments[0], self)
    if status == OK:
        status = array_argument(operation, b"mask", &arguments[1], mask)
    if status != OK:
        return status
    if mask[0].dtype != BOOL:
        snprintf(message(), MESSAGE, b"%s: the mask must be bool (got %s). Compare with zero to make one.",
                 operation, dtype_name(mask[0].dtype))
        return RUNTIME_ERROR
    ndim[0] = broadcast_shape(arguments, 2, shape)
    if ndim[0] == -2:
        return RUNTIME_ERROR
    if ndim[0] < 0:
        snprintf(message(), MESSAGE, b"%s: the mask cannot be broadcast (got a tensor of shape %s and a mask of "
                 b"shape %s).",
                 operation, shape_text(self[0]), shape_text(mask[0]))
        return RUNTIME_ERROR
    return OK


cdef int _dense(const char *operation, array_t *array, int ndim, const int64_t *shape, bint fresh,
                array_t **dense) noexcept nogil:
    """Return the array broadcast to a shape, contiguous; `fresh`: in new memory."""
    cdef array_t *view = NULL
    cdef int status = expanded(operation, array, ndim, shape, &view)
    if status != OK:
        return status
    if fresh:
        status = fresh_copy(view, dense)
    else:
        dense[0] = as_contiguous(view, -1)
        status = OK if dense[0] != NULL else MEMORY_ERROR
    release(view)
    return status


cdef int _filled(const char *operation, const value_t *value, array_t *dense, array_t *mask, int ndim,
                 const int64_t *shape) noexcept nogil:
    """Write the value into a contiguous array where the broadcast mask is true."""
    cdef array_t *wide = NULL
    cdef array_t *scalar = NULL
    cdef masked_t job
    cdef int status = scalar_array(operation, value, dense.dtype, &scalar)
    if status == OK:
        # Copy a mask that shares memory with the result.
        status = _dense(operation, mask, ndim, shape, share_memory(mask, dense), &wide)
    if status == OK:
        job.mask, job.data, job.value, job.width = <uint8_t *>wide.data, dense.data, scalar.data, itemsize(dense.dtype)
        parallel_for(_fill_chunk, &job, dense.size, CHUNK)
    release(wide)
    release(scalar)
    return status


cdef int masked_fill_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """masked_fill(self, mask, value): a copy with the value where the mask is true."""
    cdef array_t *self
    cdef array_t *mask
    cdef array_t *result = NULL
    cdef int64_t shape[MAX_DIMS]
    cdef int ndim, status = _open_mask(b"masked_fill", arguments, &self, &mask, &ndim, shape)
    if status == OK:
        status = _dense(b"masked_fill", self, ndim, shape, True, &result)
    if status != OK:
        return status
    status = _filled(b"masked_fill", &arguments[2], result, mask, ndim, shape)
    if status != OK:
        release(result)
        return status
    return array_result(result, &results[0])


cdef int masked_fill_into_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """masked_fill_into(self, mask, value): masked_fill in-place."""
    cdef array_t *self
    cdef array_t *mask
    cdef array_t *dense = NULL
    cdef int64_t shape[MAX_DIMS]
    cdef int ndim, status = _open_mask(b"masked_fill", arguments, &self, &mask, &ndim, shape)
    if status == OK:
        status = check_writable(b"masked_fill", self)
    if status == OK and not broadcasts_to(mask, self.ndim, self.shape):
        snprintf(message(), MESSAGE, b"masked_fill: the mask is larger than the tensor that is to be changed "
                 b"(got a tensor of shape %s and a mask of shape %s).", shape_text(self), shape_text(mask))
        status = RUNTIME_ERROR
    if status == OK:
        status = _dense(b"masked_fill", self, ndim, shape, not self.contiguous, &dense)
    if status == OK:
        status = _filled(b"masked_fill", &arguments[2], dense, mask, ndim, shape)
    if status == OK and not self.contiguous:
        status = copy_into(self, dense)
    release(dense)
    if status == OK:
        set_array(&results[0], retain(self))
    return status


cdef int masked_select_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """masked_select(self, mask): the elements where the mask is true, as a vector."""
    cdef array_t *self
    cdef array_t *mask
    cdef array_t *dense = NULL
    cdef array_t *wide = NULL
    cdef array_t *positions = NULL
    cdef array_t *chosen = NULL
    cdef int64_t shape[MAX_DIMS]
    cdef nest_of_offsets_t nest
    cdef int ndim, status = _open_mask(b"masked_select", arguments, &self, &mask, &ndim, shape)
    if status != OK:
        return status
    status = _dense(b"masked_select", mask, ndim, shape, False, &wide)
    if status == OK:
        status = true_positions(wide, &positions)
    if status == OK:
        status = _dense(b"masked_select", self, ndim, shape, False, &dense)
    if status == OK:
        status = new_array(b"masked_select", self.dtype, 1, positions.shape, &chosen)
    if status == OK:
        positions_to_offsets(positions, dense, 0, ndim)
        begin_nest(&nest, READ, dense, chosen, <const int64_t *>positions.data, positions.size)
        move_by_offsets(&nest)
    release(wide)
    release(positions)
    release(dense)
    return array_result(chosen, &results[0]) if status == OK else status


ctypedef struct coordinates_t:
    const int64_t *positions
    int64_t *coordinates
    const array_t *array


cdef void _fill_coordinates(void *context, int64_t begin, int64_t end) noexcept nogil:
    """Convert row-major positions begin..end to one index per dimension."""
    cdef coordinates_t *job = <coordinates_t *>context
    cdef int ndim = job.array.ndim, k
    cdef const int64_t *shape = job.array.shape
    cdef int64_t i, position
    for i in range(begin, end):
        position = job.positions[i]
        for k in range(ndim - 1, 0, -1):
            job.coordinates[i * ndim + k] = position % shape[k]
            position //= shape[k]
        job.coordinates[i * ndim] = position


cdef int nonzero_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """nonzero(self): int64 indices of the nonzero elements, one row for each."""
    cdef array_t *self
    cdef array_t *positions = NULL
    cdef array_t *coordinates = NULL
    cdef coordinates_t job
    cdef int64_t shape[2]
    cdef int status = array_argument(b"nonzero", b"self", &arguments[0], &self)
    if status == OK:
        status = true_positions(self, &positions)
    if status != OK:
        return status
    shape[0], shape[1] = positions.size, self.ndim
    status = new_array(b"nonzero", INT64, 2, shape, &coordinates)
    if status == OK and self.ndim:
        job.positions, job.coordinates, job.array = <const int64_t *>positions.data, <int64_t *>coordinates.data, self
        parallel_for(_fill_coordinates, &job, positions.size, max(1, CHUNK // self.ndim))
    release(positions)
    return array_result(coordinates, &results[0]) if status == OK else status


register_kernel("masked_fill", masked_fill_kernel)
register_kernel("masked_fill_into", masked_fill_into_kernel)
register_kernel("masked_select", masked_select_kernel)
register_kernel("nonzero", nonzero_kernel)
