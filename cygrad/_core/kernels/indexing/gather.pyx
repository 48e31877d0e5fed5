"""gather, scatter, scatter_add, scatter_reduce, take_along_dim and embedding_bag.

Rows of the index array are processed in order. Element j of a row is at  base + index[j] * along + j * across  of the
other array, whichever dimension is indexed.
"""

from libc.stdint cimport int64_t, uint64_t
from libc.stdio cimport snprintf
from libc.string cimport memcmp, memset
from cygrad._core.arrays.array cimport (
    ARRAY, MAX_DIMS, NOTHING, array_t, array_view, is_true, register_kernel, release, retain, shape_text, share_memory,
    value_t,
)
from cygrad._core.arrays.dtype cimport FLOAT32, FLOAT64, INT64, dtype_name, is_complex, itemsize
from cygrad._core.elementwise.copying cimport ADD, READ, TAKE, WRITE, as_contiguous, copy_into
from cygrad._core.kernels.arguments cimport (
    array_argument, array_result, check_same_shape, check_writable, fresh_copy, integer_argument, integers_argument,
    list_text, new_array, new_zeros, wrap_dim,
)
from cygrad._core.kernels.indexing.index cimport (
    check_index_dtype, index_rule_t, offsets_of, out_of_bounds, rows_arguments, scalar_array,
)
from cygrad._core.kernels.shape.shape cimport expanded, reshaped
from cygrad._core.memory.atomic cimport atomic_load, atomic_store
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, NOT_IMPLEMENTED, OK, RUNTIME_ERROR, message
from cygrad._core.threads.grain cimport COMPUTED, MOVED, rows_per_chunk
from cygrad._core.threads.parallel cimport parallel_for


# --------------------------------------------------------------------------------------------------------------- gather

cdef extern from "kernels/indexing/indices.h" nogil:
    bint within(const int64_t *indices, int64_t n, int64_t low, int64_t high)

cdef extern from "kernels/indexing/walks.h" nogil:
    enum:
        PROD
        AMAX
        AMIN
    ctypedef struct walk_row_t:
        int move                       # a move_t, PROD, AMAX or AMIN
        int dtype
        int64_t itemsize
        int64_t dense_step             # stride of `dense` in bytes: 0 for a single value
        int64_t length                 # of a row
        int64_t along, across          # strides in bytes
        int64_t size                   # of the indexed dimension
        bint negative                  # do indices count from the end?
    void walk_row(const walk_row_t *walk, char *base, char *dense, const int64_t *indices)

ctypedef struct walk_t:
    walk_row_t rows
    char *sparse
    char *dense                    # contiguous, in the shape of the index; or a single value
    const int64_t *indices         # contiguous
    int64_t rows_in_group          # rows that may write the same elements
    int n_outer                    # dimensions of the index except for the last
    int64_t outer_shape[MAX_DIMS]
    int64_t outer_strides[MAX_DIMS]
    int64_t failed                 # 1 once some index was out of bounds


cdef inline int64_t _counted(int64_t index, int64_t size, bint negative) noexcept nogil:
    """Wrap an index; -1 if it is out of bounds."""
    if negative and index < 0:
        index += size
    return index if <uint64_t>index < <uint64_t>size else -1


cdef inline void _row(walk_t *walk, char *base, char *dense, const int64_t *indices) noexcept nogil:
    """Check the indices of a row and process it."""
    if within(indices, walk.rows.length, -walk.rows.size if walk.rows.negative else 0, walk.rows.size):
        walk_row(&walk.rows, base, dense, indices)
    else:
        atomic_store(&walk.failed, 1)


cdef void _groups(void *context, int64_t begin, int64_t end) noexcept nogil:
    """Process the rows of groups begin..end, in order."""
    cdef walk_t *walk = <walk_t *>context
    cdef int64_t i, row, rest, place, n = (end - begin) * walk.rows_in_group
    cdef int k
    for i in range(n):
        row = begin * walk.rows_in_group + (n - 1 - i if walk.rows.move == TAKE else i)
        rest, place = row, 0
        for k in range(walk.n_outer - 1, 0, -1):
            place += rest % walk.outer_shape[k] * walk.outer_strides[k]
            rest //= walk.outer_shape[k]
        if walk.n_outer:
            place += rest * walk.outer_strides[0]
        _row(walk, walk.sparse + place, walk.dense + row * walk.rows.length * walk.rows.dense_step,
             walk.indices + row * walk.rows.length)


cdef int _run(const char *operation, int move, array_t *self, int dim, array_t *indices, char *dense,
              int64_t dense_step, bint negative, int error) noexcept nogil:
    """Process all rows of contiguous int64 `indices`, whose shape has been checked."""
    cdef walk_t walk
    cdef int64_t width = itemsize(self.dtype), groups = 1
    cdef int k, last = indices.ndim - 1
    if indices.size == 0:
        return OK
    walk.rows.move, walk.rows.dtype, walk.rows.itemsize, walk.rows.dense_step = move, self.dtype, width, dense_step
    walk.sparse, walk.dense = self.data, dense
    walk.indices = <const int64_t *>indices.data
    walk.rows.length, walk.rows.along, walk.rows.across, walk.rows_in_group = 1, 0, 0, 1
    walk.rows.size, walk.rows.negative, walk.failed, walk.n_outer = 1, negative, 0, 0
    if self.ndim:
        walk.rows.size, walk.rows.along = self.shape[dim], self.strides[dim] * width
        walk.rows.across = 0 if dim == last or last < 0 else self.strides[last] * width
    if indices.ndim:
        walk.rows.length = indices.shape[last]
    for k in range(last):
        walk.outer_shape[k] = indices.shape[k]
        walk.outer_strides[k] = 0 if k == dim or self.ndim == 0 else self.strides[k] * width
        walk.n_outer += 1
        if k < dim or move == READ:
            groups *= indices.shape[k]
        else:
            walk.rows_in_group *= indices.shape[k]
    parallel_for(_groups, &walk, groups, rows_per_chunk(walk.rows.length * walk.rows_in_group, COMPUTED))
    return _check_bounds(operation, indices, dim, walk.rows.size, negative, error) if atomic_load(&walk.failed) else OK


cdef int _check_bounds(const char *operation, array_t *indices, int dim, int64_t size, bint negative,
                       int error) noexcept nogil:
    """Report the first index that is out of bounds; OK if there is none."""
    cdef const int64_t *values = <const int64_t *>indices.data
    cdef int64_t j
    for j in range(indices.size):
        if _counted(values[j], size, negative) < 0:
            return out_of_bounds(operation, values[j], dim, size, error)
    return OK


cdef int _check_index(const char *operation, array_t *self, int dim, array_t *index, const char *name,
                      array_t *limit, bint whole) noexcept nogil:
    """Refuse an index larger than `limit` (apart from `dim`, unless `whole`), or of other dimensions."""
    cdef int k
    if index.size == 0:
        return OK
    if (index.ndim or 1) != (limit.ndim or 1):
        snprintf(message(), MESSAGE, b"%s: index and %s differ in their number of dimensions (got shapes %s and %s).",
                 operation, name, shape_text(index), shape_text(limit))
        return RUNTIME_ERROR
    for k in range(index.ndim):
        if (whole or k != dim) and index.shape[k] > (limit.shape[k] if limit.ndim else 1):
            snprintf(message(), MESSAGE, b"%s: index is larger than %s in dimension %d (got shapes %s and %s).",
                     operation, name, k, shape_text(index), shape_text(limit))
            return RUNTIME_ERROR
    return OK


cdef int _open(const char *operation, const value_t *arguments, array_t **self, int *dim,
               array_t **index) noexcept nogil:
    """Read and check the arguments self, dim and index."""
    cdef int status = rows_arguments(operation, arguments, self, dim, index)
    if status == OK:
        status = _check_index(operation, self[0], dim[0], index[0], b"self", self[0], False)
    return status


cdef int _gathered(const char *operation, array_t *self, int dim, array_t *index, bint negative,
                   value_t *result) noexcept nogil:
    """Gather into a new array of the shape of the index."""
    cdef array_t *chosen = NULL
    cdef array_t *indices = as_contiguous(index, INT64)
    cdef int status
    if indices == NULL:
        return MEMORY_ERROR
    status = new_array(operation, self.dtype, index.ndim, index.shape, &chosen)
    if status == OK:
        status = _run(operation, READ, self, dim, indices, chosen.data, itemsize(self.dtype), negative, RUNTIME_ERROR)
    release(indices)
    if status != OK:
        release(chosen)
        return status
    return array_result(chosen, result)


cdef int gather_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """gather(self, dim, index): element index[..., j, ...] along `dim` for every place of the index."""
    cdef array_t *self
    cdef array_t *index
    cdef int dim, status = _open(b"gather", arguments, &self, &dim, &index)
    return _gathered(b"gather", self, dim, index, False, &results[0]) if status == OK else status


cdef int scatter_backward_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """
    scatter_backward(self, dim, index, shape, last): gather, with zeros where src is larger than the index.

    `last`: the last of equal indices gets the gradient, because its element was written last.
    """
    cdef array_t *self
    cdef array_t *index
    cdef array_t *source = NULL
    cdef array_t *indices = NULL
    cdef array_t *chosen = NULL
    cdef array_t *padded = NULL
    cdef array_t *part = NULL
    cdef const int64_t *shape
    cdef int dim, ndim, status = _open(b"scatter", arguments, &self, &dim, &index)
    cdef bint last = arguments[4].kind != NOTHING and arguments[4].of.integer
    if status == OK:
        status = integers_argument(b"scatter", b"shape", &arguments[3], &ndim, &shape)
    if status == OK:
        status = new_array(b"scatter", self.dtype, index.ndim, index.shape, &chosen)
    if status == OK:
        indices = as_contiguous(index, INT64)
        status = OK if indices != NULL else MEMORY_ERROR
    if status == OK and last:
        status = fresh_copy(self, &source)
    elif status == OK:
        source = retain(self)
    if status == OK:
        status = _run(b"scatter", TAKE if last else READ, source, dim, indices, chosen.data,
                      itemsize(self.dtype), False, RUNTIME_ERROR)
    if status == OK and (ndim != chosen.ndim or memcmp(shape, chosen.shape, ndim * sizeof(int64_t)) != 0):
        status = new_zeros(b"scatter", self.dtype, ndim, shape, &padded)
        if status == OK and chosen.size:
            part = array_view(padded, padded.dtype, index.ndim, index.shape,
                              padded.strides if ndim == index.ndim else chosen.strides, 0)
            status = MEMORY_ERROR if part == NULL else copy_into(part, chosen)
        release(part)
        chosen, padded = padded, chosen
        release(padded)
    release(source)
    release(indices)
    if status != OK:
        release(chosen)
        return status
    return array_result(chosen, &results[0])


cdef int _source(const char *operation, array_t *self, int dim, array_t *index, const value_t *value,
                 array_t **dense, int64_t *step) noexcept nogil:
    """Return the source of a scatter: a number, or the part of an array that the index covers, made contiguous."""
    cdef array_t *source
    cdef array_t *part
    cdef int status
    if value.kind != ARRAY:
        step[0] = 0
        return scalar_array(operation, value, self.dtype, dense)
    source = value.of.array
    if source.dtype != self.dtype:
        snprintf(message(), MESSAGE, b"%s: dtypes differ (got src of %s, expected %s). Convert src first.",
                 operation, dtype_name(source.dtype), dtype_name(self.dtype))
        return RUNTIME_ERROR
    status = _check_index(operation, self, dim, index, b"src", source, True)
    if status != OK:
        return status
    step[0] = itemsize(self.dtype)
    if index.size == 0 or source.ndim == 0 or index.ndim == 0:
        return fresh_copy(source, dense)
    part = array_view(source, source.dtype, source.ndim, index.shape, source.strides, 0)
    if part == NULL:
        return MEMORY_ERROR
    if share_memory(part, self):
        status = fresh_copy(part, dense)
    else:
        dense[0] = as_contiguous(part, -1)
        status = OK if dense[0] != NULL else MEMORY_ERROR
    release(part)
    return status


cdef int _scatter(const char *operation, int move, bint in_place, const value_t *arguments,
                  value_t *results) noexcept nogil:
    """Write, add or reduce `src` at the chosen places of `self`, or of a copy of it."""
    cdef array_t *self
    cdef array_t *index
    cdef array_t *indices = NULL
    cdef array_t *dense = NULL
    cdef array_t *target = NULL
    cdef int64_t step = 0
    cdef int dim, status = _open(operation, arguments, &self, &dim, &index)
    if status == OK and in_place:
        status = check_writable(operation, self)
    if status == OK and move >= AMAX and is_complex(self.dtype):
        snprintf(message(), MESSAGE, b"%s: complex numbers have no order (got %s).", operation, dtype_name(self.dtype))
        status = RUNTIME_ERROR
    if status == OK:
        status = _source(operation, self, dim, index, &arguments[3], &dense, &step)
    if status != OK:
        return status
    # Copy an index that shares memory with the result.
    if in_place and share_memory(index, self) and index.dtype == INT64:
        status = fresh_copy(index, &indices)
    else:
        indices = as_contiguous(index, INT64)
        status = OK if indices != NULL else MEMORY_ERROR
    if status == OK and not in_place:
        status = fresh_copy(self, &target)
    elif status == OK:
        target = retain(self)
    if status == OK:
        if in_place:           # check before the first write: a failure leaves the memory unchanged
            status = _check_bounds(operation, indices, dim, self.shape[dim] if self.ndim else 1, False, RUNTIME_ERROR)
        if status == OK:
            status = _run(operation, move, target, dim, indices, dense.data, step, False, RUNTIME_ERROR)
    release(indices)
    release(dense)
    if status != OK:
        release(target)
        return status
    return array_result(target, &results[0])


cdef int scatter_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """scatter(self, dim, index, src): a copy with src (or a number) written at the chosen places."""
    return _scatter(b"scatter", WRITE, False, arguments, results)


cdef int scatter_into_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """scatter_into(self, dim, index, src): the same in the memory of self."""
    return _scatter(b"scatter", WRITE, True, arguments, results)


cdef int scatter_add_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """scatter_add(self, dim, index, src): a copy with src (or a number) added at the chosen places, in order."""
    return _scatter(b"scatter_add", ADD, False, arguments, results)


cdef int scatter_add_into_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """scatter_add_into(self, dim, index, src): the same in the memory of self."""
    return _scatter(b"scatter_add", ADD, True, arguments, results)


cdef int scatter_prod_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """scatter_prod(self, dim, index, src)."""
    return _scatter(b"scatter_prod", PROD, False, arguments, results)


cdef int scatter_amax_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """scatter_amax(self, dim, index, src); nan wins."""
    return _scatter(b"scatter_amax", AMAX, False, arguments, results)


cdef int scatter_amin_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """scatter_amin(self, dim, index, src); nan wins."""
    return _scatter(b"scatter_amin", AMIN, False, arguments, results)


cdef int _broadcast_but(array_t *self, array_t *index, int dim, int64_t *self_shape,
                        int64_t *index_shape) noexcept nogil:
    """Broadcast both shapes in every dimension except `dim`."""
    cdef int k
    for k in range(self.ndim):
        self_shape[k], index_shape[k] = self.shape[k], index.shape[k]
        if k == dim or self.shape[k] == index.shape[k]:
            continue
        if self.shape[k] == 1:
            self_shape[k] = index.shape[k]
        elif index.shape[k] == 1:
            index_shape[k] = self.shape[k]
        else:
            snprintf(message(), MESSAGE, b"take_along_dim: cannot broadcast the shapes except in dimension %d "
                     b"(got %s and indices %s).", dim, shape_text(self), shape_text(index))
            return RUNTIME_ERROR
    return OK


cdef int take_along_dim_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """take_along_dim(self, indices, dim): gather with broadcasting; without `dim` of the array as one row."""
    cdef array_t *self
    cdef array_t *index
    cdef array_t *wide_self = NULL
    cdef array_t *wide_index = NULL
    cdef int64_t self_shape[MAX_DIMS]
    cdef int64_t index_shape[MAX_DIMS]
    cdef int64_t given
    cdef int dim, status = array_argument(b"take_along_dim", b"self", &arguments[0], &self)
    if status == OK:
        status = array_argument(b"take_along_dim", b"indices", &arguments[1], &index)
    if status == OK:
        status = check_index_dtype(b"take_along_dim", index, RUNTIME_ERROR)
    if status != OK:
        return status
    if index.dtype != INT64:
        snprintf(message(), MESSAGE, b"take_along_dim: indices must be int64 (got %s). Convert them with .long().",
                 dtype_name(index.dtype))
        return RUNTIME_ERROR
    if arguments[2].kind == NOTHING:
        wide_self, wide_index, dim = reshaped(self, 1, &self.size), reshaped(index, 1, &index.size), 0
        status = OK if wide_self != NULL and wide_index != NULL else MEMORY_ERROR
    else:
        status = integer_argument(b"take_along_dim", b"dim", &arguments[2], &given)
        if status == OK and self.ndim != index.ndim:
            snprintf(message(), MESSAGE, b"take_along_dim: the tensor and the indices differ in their number of "
                     b"dimensions (got shapes %s and %s).", shape_text(self), shape_text(index))
            status = RUNTIME_ERROR
        if status == OK:
            status = wrap_dim(b"take_along_dim", given, self.ndim, &dim)
        if status == OK:
            status = _broadcast_but(self, index, dim, self_shape, index_shape)
        if status == OK:
            status = expanded(b"take_along_dim", self, self.ndim, self_shape, &wide_self)
        if status == OK:
            status = expanded(b"take_along_dim", index, self.ndim, index_shape, &wide_index)
    if status == OK:
        status = _gathered(b"take_along_dim", wide_self, dim, wide_index, True, &results[0])
    release(wide_self)
    release(wide_index)
    return status


register_kernel("gather", gather_kernel)
register_kernel("scatter", scatter_kernel)
register_kernel("scatter_backward", scatter_backward_kernel)
register_kernel("scatter_into", scatter_into_kernel)
register_kernel("scatter_add", scatter_add_kernel)
register_kernel("scatter_add_into", scatter_add_into_kernel)
register_kernel("scatter_prod", scatter_prod_kernel)
register_kernel("scatter_amax", scatter_amax_kernel)
register_kernel("scatter_amin", scatter_amin_kernel)
register_kernel("take_along_dim", take_along_dim_kernel)


# -------------------------------------------------------------------------------------------------------- embedding bag

# Sums, means and maxima of rows of a table, and the gradients of sums. Bags are independent, and rows of a gradient are
# added in order, so results are bit-identical for any number of threads.

cdef extern from "kernels/indexing/embedding_bag.h" nogil:
    void (*bag_sum[2])(const char *table, const int64_t *offsets, const void *factors, int64_t count, int64_t m,
                       bint mean, void *out)
    void (*bag_spread[2])(char *table, const int64_t *offsets, const void *factors, int64_t count, int64_t m, bint mean,
                          const void *grad)
    void (*bag_products[2])(const char *table, const int64_t *offsets, int64_t count, int64_t m, bint mean,
                            const void *grad, void *out)
    void (*bag_maximum[2])(const char *table, const int64_t *offsets, int64_t count, int64_t m, int64_t row_size,
                           void *out, int64_t *chosen)

ctypedef struct bags_t:
    array_t *table        # (rows, m), contiguous as all of them
    array_t *factors      # of the rows; NULL for ones
    array_t *offsets      # of rows in the table, in bytes; SKIP for skipped rows
    array_t *starts       # of bags, and the end of the last one
    array_t *bags         # (bags, m): results, or their gradients
    array_t *out          # products or row indices; NULL for sums
    int64_t count         # of bags
    int64_t m
    bint mean


cdef void _close(bags_t *work) noexcept nogil:
    """Release all operands; the caller owns the results."""
    release(work.table)
    release(work.factors)
    release(work.offsets)
    release(work.starts)


cdef int _find_starts(bags_t *work, const value_t *value, array_t *index, bint last) noexcept nogil:
    """Compute the starts of bags from offsets, copied before they are checked, or from a matrix of bags."""
    cdef array_t *given
    cdef array_t *values = NULL
    cdef int64_t *starts
    cdef int64_t i, slots, n = index.size
    cdef bint fits = True
    cdef int status
    if value.kind == NOTHING:
        if index.ndim != 2:
            snprintf(message(), MESSAGE, b"embedding_bag: without offsets the input must be a matrix (got shape %s).",
                     shape_text(index))
            return RUNTIME_ERROR
        work.count = index.shape[0]
    else:
        status = array_argument(b"embedding_bag", b"offsets", value, &given)
        status = status or check_index_dtype(b"embedding_bag", given, RUNTIME_ERROR)
        if status != OK:
            return status
        values = as_contiguous(given, INT64)
        if values == NULL:
            return MEMORY_ERROR
        work.count = max(<int64_t>0, values.size - last)
    slots = work.count + 1
    status = new_array(b"embedding_bag", INT64, 1, &slots, &work.starts)
    if status == OK:
        starts = <int64_t *>work.starts.data
        for i in range(work.count):
            starts[i] = (<int64_t *>values.data)[i] if values != NULL else i * index.shape[1]
            fits = fits and (starts[i] >= starts[i - 1] if i else starts[i] == 0) and starts[i] <= n
        starts[work.count] = n
        if last and fits and values != NULL and values.size:
            i = (<int64_t *>values.data)[work.count]
            fits = (starts[work.count - 1] if work.count else 0) <= i <= n and (work.count or i == 0)
        if not fits:
            snprintf(message(), MESSAGE, b"embedding_bag: offsets[0] has to be 0, and the others in order up to %lld, "
                     b"the length of the input (got %s).", <long long>n, list_text(values.size, <int64_t *>values.data))
            status = RUNTIME_ERROR
    release(values)
    return status


cdef int _open_bags(bags_t *work, int dtype, int64_t rows, int64_t m, const value_t *arguments, array_t **index,
                    const value_t *factors, bint last, const value_t *padding) noexcept nogil:
    """Read index, offsets and factors."""
    cdef index_rule_t rule
    cdef array_t *given
    cdef int status = array_argument(b"embedding_bag", b"input", &arguments[0], index)
    memset(work, 0, sizeof(bags_t))
    memset(&rule, 0, sizeof(rule))
    if dtype != FLOAT32 and dtype != FLOAT64:
        snprintf(message(), MESSAGE, b"embedding_bag: expected a table of float32 or float64 (got %s).",
                 dtype_name(dtype))
        return NOT_IMPLEMENTED
    status = status or check_index_dtype(b"embedding_bag", index[0], RUNTIME_ERROR)
    status = status or integer_argument(b"embedding_bag", b"padding_idx", padding, &rule.skipped)
    work.m = m
    rule.operation, rule.error, rule.size, rule.step = b"embedding_bag", RUNTIME_ERROR, rows, m * itemsize(dtype)
    rule.skipping = rule.skipped >= 0
    status = status or offsets_of(index[0], &rule, &work.offsets)
    status = status or _find_starts(work, &arguments[1], index[0], last)
    if status == OK and factors != NULL and factors.kind != NOTHING:
        status = array_argument(b"embedding_bag", b"per_sample_weights", factors, &given)
        if status == OK and (given.dtype != dtype or given.size != index[0].size):
            snprintf(message(), MESSAGE, b"embedding_bag: the factors do not match (got %s of shape %s, expected %s of "
                     b"shape %s).", dtype_name(given.dtype), shape_text(given), dtype_name(dtype), shape_text(index[0]))
            status = RUNTIME_ERROR
        if status == OK:
            work.factors = as_contiguous(given, -1)
            status = OK if work.factors != NULL else MEMORY_ERROR
    if status != OK:
        _close(work)
    return status


cdef int _table(const char *name, const value_t *value, array_t **table) noexcept nogil:
    """Read a matrix argument."""
    cdef int status = array_argument(b"embedding_bag", name, value, table)
    if status == OK and table[0].ndim != 2:
        snprintf(message(), MESSAGE, b"embedding_bag: %s must be a matrix (got shape %s).", name, shape_text(table[0]))
        return RUNTIME_ERROR
    return status


cdef int _of_bags(bags_t *work, array_t *grad, int dtype) noexcept nogil:
    """Read the gradient: a row for each bag."""
    cdef int64_t[2] shape
    shape[0], shape[1] = work.count, work.m
    cdef int status = check_same_shape(b"embedding_bag", b"the gradient", grad, 2, shape)
    if status == OK and grad.dtype != dtype:
        snprintf(message(), MESSAGE, b"embedding_bag: the gradient must have the dtype of the table (got %s, expected "
                 b"%s).", dtype_name(grad.dtype), dtype_name(dtype))
        return RUNTIME_ERROR
    if status == OK:
        work.bags = as_contiguous(grad, -1)
        status = OK if work.bags != NULL else MEMORY_ERROR
    return status


cdef int _open_table(bags_t *work, const value_t *table, const value_t *arguments, array_t **index,
                     const value_t *factors, bint last, const value_t *padding) noexcept nogil:
    """Read the table, then `_open_bags`."""
    cdef array_t *weight
    cdef int status = _table(b"weight", table, &weight)
    status = status or _open_bags(work, weight.dtype, weight.shape[0], weight.shape[1], arguments, index, factors, last,
                             padding)
    if status == OK:
        work.table = as_contiguous(weight, -1)
        if work.table == NULL:
            _close(work)
            status = MEMORY_ERROR
    return status


cdef void _each_bag(void *context, int64_t begin, int64_t end) noexcept nogil:
    """Process bags begin..end: sums, products or maxima."""
    cdef bags_t *work = <bags_t *>context
    cdef int double_precision = work.table.dtype == FLOAT64
    cdef const int64_t *starts = <int64_t *>work.starts.data
    cdef int64_t bag, count, size = itemsize(work.table.dtype)
    cdef const int64_t *offsets
    cdef char *row
    for bag in range(begin, end):
        offsets, count = <int64_t *>work.offsets.data + starts[bag], starts[bag + 1] - starts[bag]
        row = work.bags.data + bag * work.m * size
        if work.out == NULL:
            bag_sum[double_precision](
                work.table.data, offsets, NULL if work.factors == NULL else work.factors.data + starts[bag] * size,
                count, work.m, work.mean, row)
        elif work.out.dtype == INT64:
            bag_maximum[double_precision](work.table.data, offsets, count, work.m, work.m * size, row,
                                          <int64_t *>work.out.data + bag * work.m)
        else:
            bag_products[double_precision](work.table.data, offsets, count, work.m, work.mean, row,
                                           work.out.data + starts[bag] * size)


cdef void _run_bags(bags_t *work) noexcept nogil:
    """Process all bags in parallel."""
    cdef int64_t elements = work.m * (work.offsets.size + work.count)
    if work.count:
        parallel_for(_each_bag, work, work.count, rows_per_chunk(elements // work.count, MOVED))


cdef int embedding_bag_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """embedding_bag(weight, index, offsets, factors, mean, last, padding_idx)."""
    cdef bags_t work
    cdef array_t *index
    cdef int64_t[2] shape
    cdef int status = _open_table(&work, &arguments[0], &arguments[1], &index, &arguments[3], is_true(&arguments[5]),
                                  &arguments[6])
    if status != OK:
        return status
    shape[0], shape[1] = work.count, work.m
    work.mean = is_true(&arguments[4])
    status = new_array(b"embedding_bag", work.table.dtype, 2, shape, &work.bags)
    if status == OK:
        _run_bags(&work)
    _close(&work)
    return array_result(work.bags, &results[0]) if status == OK else status


cdef int embedding_bag_maximum_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """embedding_bag_maximum(weight, index, offsets, last, padding_idx): the maxima, and the rows that have them."""
    cdef bags_t work
    cdef array_t *index
    cdef int64_t[2] shape
    cdef int status = _open_table(&work, &arguments[0], &arguments[1], &index, NULL, is_true(&arguments[3]),
                                  &arguments[4])
    if status != OK:
        return status
    shape[0], shape[1] = work.count, work.m
    status = new_array(b"embedding_bag", work.table.dtype, 2, shape, &work.bags)
    status = status or new_array(b"embedding_bag", INT64, 2, shape, &work.out)
    if status == OK:
        _run_bags(&work)
    _close(&work)
    if status != OK:
        release(work.bags)
        return status
    array_result(work.bags, &results[0])
    return array_result(work.out, &results[1])


cdef int embedding_bag_products_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """embedding_bag_products(grad, weight, index, offsets, mean, last, padding_idx): gradient of the factors."""
    cdef bags_t work
    cdef array_t *grad
    cdef array_t *index
    cdef int status = _table(b"the gradient", &arguments[0], &grad)
    status = status or _open_table(&work, &arguments[1], &arguments[2], &index, NULL, is_true(&arguments[5]),
                                   &arguments[6])
    if status != OK:
        return status
    work.mean = is_true(&arguments[4])
    status = _of_bags(&work, grad, work.table.dtype)
    status = status or new_zeros(b"embedding_bag", work.table.dtype, index.ndim, index.shape, &work.out)
    if status == OK:
        _run_bags(&work)
    _close(&work)
    release(work.bags)
    return array_result(work.out, &results[0]) if status == OK else status


cdef int embedding_bag_backward_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """embedding_bag_backward(grad, index, offsets, factors, mean, last, padding_idx, rows): gradient of the table."""
    cdef bags_t work
    cdef array_t *grad
    cdef array_t *index
    cdef array_t *table = NULL
    cdef const int64_t *starts
    cdef int64_t[2] shape
    cdef int64_t bag, size
    cdef int status = _table(b"the gradient", &arguments[0], &grad)
    status = status or integer_argument(b"embedding_bag", b"rows", &arguments[7], &shape[0])
    status = status or _open_bags(&work, grad.dtype, shape[0], grad.shape[1], &arguments[1], &index, &arguments[3],
                             is_true(&arguments[5]), &arguments[6])
    if status != OK:
        return status
    shape[1] = work.m
    status = _of_bags(&work, grad, grad.dtype)
    status = status or new_zeros(b"embedding_bag", grad.dtype, 2, shape, &table)
    if status == OK:
        starts, size = <int64_t *>work.starts.data, itemsize(grad.dtype)
        for bag in range(work.count):
            bag_spread[grad.dtype == FLOAT64](
                table.data, <int64_t *>work.offsets.data + starts[bag],
                NULL if work.factors == NULL else work.factors.data + starts[bag] * size,
                starts[bag + 1] - starts[bag], work.m, is_true(&arguments[4]), work.bags.data + bag * work.m * size)
    _close(&work)
    release(work.bags)
    return array_result(table, &results[0]) if status == OK else status


register_kernel("embedding_bag", embedding_bag_kernel)
register_kernel("embedding_bag_maximum", embedding_bag_maximum_kernel)
register_kernel("embedding_bag_products", embedding_bag_products_kernel)
register_kernel("embedding_bag_backward", embedding_bag_backward_kernel)
