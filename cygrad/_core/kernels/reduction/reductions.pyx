"""The engine of all reductions: one plan of loops for any operation, dtype and layout.

Kept and reduced dimensions are each sorted by strides and merged, so that transposed arrays give the same result. A
*leaf* reduces a chunk of the innermost reduced dimension for a tile along the innermost kept one, in memory order.
Leaves are combined as a balanced tree, and few long reductions are split among threads. All sizes depend only on the
problem, not on the number of threads.
"""

from libc.float cimport DBL_MAX
from libc.math cimport INFINITY, fabs
from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.stdio cimport snprintf
from libc.stdlib cimport llabs
from libc.string cimport memcmp, memcpy
from cygrad._core.arrays.array cimport (
    ARRAY, BOOLEAN, INTEGER, MAX_DIMS, NOTHING, array_t, as_real, clear, is_number, is_true, kernel_t, register_kernel,
    release, retain, same_shape, set_array, shape_text, value_t,
)
from cygrad._core.arrays.dtype cimport (
    BOOL, COMPLEX128, COMPLEX64, FLOAT32, FLOAT64, INT64, UINT8, computed_in, default_float, dtype_name, is_complex,
    is_differentiable, is_short, itemsize, promote, real_of,
)
from cygrad._core.elementwise.copying cimport (
    as_contiguous, as_copy, as_dtype, broadcast_shape, is_row_major_result, nest_add, nest_add_value, nest_begin,
    nest_finish,
)
from cygrad._core.elementwise.elementwise cimport evaluate, should_copy_transposed
from cygrad._core.elementwise.rows cimport rows_along, rows_t
from cygrad._core.elementwise.tiles cimport (
    MAX_CELLS, discard, nan_watchers, place_cells, prepare_task, produce, specialize, specialized_t, task_t,
)
from cygrad._core.kernels.arguments cimport (
    array_argument, check_same_shape, integer_argument, integers_argument, new_array, new_zeros, view_result, wrap_dim,
    wrap_dims,
)
from cygrad._core.kernels.shape.shape cimport reshaped
from cygrad._core.memory.atomic cimport atomic_add, atomic_load, atomic_store
from cygrad._core.memory.errors cimport (
    INDEX_ERROR, MEMORY_ERROR, MESSAGE, NOT_IMPLEMENTED, OK, RUNTIME_ERROR, TYPE_ERROR, message, sizes_text,
)
from cygrad._core.memory.storage cimport NO_ELEMENTS, allocate, deallocate
from cygrad._core.primitives.primitive_table cimport cast_loops, entries, loop_t, primitive
from cygrad._core.threads.grain cimport CHUNK, MOVED, rows_per_chunk
from cygrad._core.threads.parallel cimport parallel_for


cdef extern from "kernels/reduction/types.h" nogil:
    ctypedef void (*vector_loop_t)(char **arguments, const int64_t *n, const int64_t *steps,
                                   void *data) noexcept nogil
    ctypedef struct parameter_t:
        double p
        double count
        double correction
        vector_loop_t exp
        void *exp_data
        int far
    ctypedef void (*leaf_t)(const char *data, int64_t n, int64_t stride, int64_t width, int64_t column_stride,
                            int columns, char *accumulators, const parameter_t *parameter) noexcept nogil
    ctypedef void (*combine_t)(char *accumulators, const char *other, int64_t width,
                               int64_t n_left, int64_t n_right) noexcept nogil
    ctypedef void (*finish_t)(const char *accumulators, int64_t width, char *result, char *second,
                              int64_t stride,
                              const parameter_t *parameter) noexcept nogil
    ctypedef void (*row_leaf_t)(const char *data, int64_t n, int64_t stride, int64_t width, int begin, int end,
                                char *tile, char *accumulators, const parameter_t *parameter) noexcept nogil
    ctypedef struct loops_t:
        leaf_t leaf
        combine_t combine
        finish_t finish
        int64_t accumulator
        row_leaf_t rows
    loops_t[32][16] reduction_loops       # by operation and dtype
    bint FOLDS(int64_t n, int64_t stride, int64_t width)
    enum:
        RUN                   # elements of a leaf along the reduced dimension ...
        RUNS                  # ... times this, where leaves combine them

cdef enum:
    TILE_BYTES = 4096         # partial results of a tile, which stay in the L1 cache
    ROWS = 64                 # rows of a leaf along the kept dimension ...
    ROW_ELEMENTS = 8192       # ... unless they are short
    MAX_CHUNKS = 256
    LEVELS = 64               # of the tree of leaves
    SMALL = 256               # doubles of accumulators that fit on the stack
    BLOCK = 16384             # bytes of elements computed at a time
    PARTIAL = 16384           # bytes for partial results of the widest tile
    FAR = 8 << 20             # bytes of elements from which they are prefetched: fewer may be in the caches

ctypedef struct group_t:
    # Dimensions of one kind, innermost last.
    int32_t ndim
    int64_t count                     # product of all but the innermost
    int64_t[MAX_DIMS] shape
    int64_t[MAX_DIMS] strides         # of the input, in elements
    int64_t[MAX_DIMS] out_strides     # of the result, for kept dimensions

ctypedef struct reduction_plan_t:
    const loops_t *loops
    parameter_t parameter
    const char *data
    int64_t item
    char *result
    char *second
    int64_t result_item
    group_t kept
    group_t reduced
    bint columns              # leaves go along the kept dimension
    int64_t width             # of a tile
    int64_t tiles             # along the innermost kept dimension
    int64_t length            # of a leaf
    int64_t leaves_per_run    # along the innermost reduced dimension
    int64_t leaves            # of one result
    int64_t leaves_per_chunk
    int64_t chunks            # of one result
    int64_t slot              # bytes of a tile of accumulators
    const element_source_t *source     # computes the elements; NULL: they are in memory
    char *partial             # accumulators of all chunks, if there are several
    int64_t *counts           # number of elements of each
    int32_t status

cdef int _exp = -1


cdef inline int64_t _magnitude(int64_t stride) noexcept nogil:
    return -stride if stride < 0 else stride


cdef inline bint _outside(int64_t a, int64_t b) noexcept nogil:
    """Return whether stride `a` belongs outside of `b`; repeated elements (stride 0) are outermost."""
    return b != 0 and (a == 0 or _magnitude(a) > _magnitude(b))


cdef void _arrange(group_t *group) noexcept nogil:
    """Sort the dimensions by strides and merge adjacent ones."""
    cdef int i, j, n = 0
    cdef int64_t shape, stride, out_stride
    for i in range(1, group.ndim):
        shape, stride, out_stride = group.shape[i], group.strides[i], group.out_strides[i]
        j = i
        while j > 0 and _outside(stride, group.strides[j - 1]):
            group.shape[j] = group.shape[j - 1]
            group.strides[j] = group.strides[j - 1]
            group.out_strides[j] = group.out_strides[j - 1]
            j -= 1
        group.shape[j], group.strides[j], group.out_strides[j] = shape, stride, out_stride
    for i in range(1, group.ndim):
        if (group.strides[n] == group.strides[i] * group.shape[i]
                and group.out_strides[n] == group.out_strides[i] * group.shape[i]):
            group.shape[n] *= group.shape[i]
        else:
            n += 1
            group.shape[n] = group.shape[i]
        group.strides[n] = group.strides[i]
        group.out_strides[n] = group.out_strides[i]
    if group.ndim == 0:
        group.shape[0], group.strides[0], group.out_strides[0] = 1, 0, 0
    group.ndim = n + 1
    group.count = 1
    for i in range(n):
        group.count *= group.shape[i]


cdef int64_t _offset(const group_t *group, int64_t index, const int64_t *strides) noexcept nogil:
    """Return the offset of element `index` of the outer dimensions of a group."""
    cdef int64_t offset = 0
    cdef int i = group.ndim - 2
    while i >= 0:
        offset += index % group.shape[i] * strides[i]
        index //= group.shape[i]
        i -= 1
    return offset


cdef void _split(reduction_plan_t *plan) noexcept nogil:
    """Choose the sizes of tiles, leaves and chunks."""
    cdef int64_t n = plan.reduced.shape[plan.reduced.ndim - 1]
    cdef int64_t stride = plan.reduced.strides[plan.reduced.ndim - 1]
    cdef int64_t neighbors = plan.kept.shape[plan.kept.ndim - 1]
    cdef int64_t column_stride = plan.kept.strides[plan.kept.ndim - 1]
    cdef int64_t all_tiles, most
    plan.columns = (neighbors > 1 and column_stride != 0
                    and (n == 1 or stride == 0 or _magnitude(column_stride) < _magnitude(stride)))
    if plan.columns:
        plan.width = min(neighbors, TILE_BYTES // max(plan.item, 4))
        plan.length = max(ROWS, ROW_ELEMENTS // plan.width)
    else:
        # Of one run of leaves, groups of RUNS are subtrees of the tree of all.
        plan.length = RUN if plan.loops.rows == NULL or plan.source != NULL or plan.reduced.count > 1 else RUN * RUNS
        plan.width = min(neighbors, max(1, min(256, CHUNK // max(n, 1))))
    plan.tiles = (neighbors + plan.width - 1) // plan.width
    plan.leaves_per_run = max(1, (n + plan.length - 1) // plan.length)
    plan.leaves = max(1, plan.leaves_per_run * plan.reduced.count)
    plan.slot = (plan.width * plan.loops.accumulator + 63) // 64 * 64
    all_tiles = plan.tiles * plan.kept.count
    most = max(1, MAX_CHUNKS // all_tiles)
    plan.leaves_per_chunk = 1
    while (plan.leaves_per_chunk * min(plan.length, max(n, 1)) * plan.width < CHUNK
           or (plan.leaves + plan.leaves_per_chunk - 1) // plan.leaves_per_chunk > most):
        plan.leaves_per_chunk *= 2
        if plan.leaves_per_chunk >= plan.leaves:
            break
    plan.chunks = (plan.leaves + plan.leaves_per_chunk - 1) // plan.leaves_per_chunk


cdef inline int64_t _width_of(const reduction_plan_t *plan, int64_t tile) noexcept nogil:
    cdef int64_t begin = tile % plan.tiles * plan.width
    return min(plan.width, plan.kept.shape[plan.kept.ndim - 1] - begin)


cdef int64_t _join(const reduction_plan_t *plan, char *stack, int64_t *counts, int *depth, int64_t index,
                   int64_t width) noexcept nogil:
    """After part `index` (0, 1, ...) was pushed, combine parts of equal rank, as carries in a binary counter."""
    while index & 1:
        depth[0] -= 1
        plan.loops.combine(stack + (depth[0] - 1) * plan.slot, stack + depth[0] * plan.slot, width,
                           counts[depth[0] - 1], counts[depth[0]])
        counts[depth[0] - 1] += counts[depth[0]]
        index >>= 1
    return counts[depth[0] - 1]


cdef int64_t _join_all(const reduction_plan_t *plan, char *stack, int64_t *counts, int depth,
                       int64_t width) noexcept nogil:
    """Combine the entries left on the stack into the first; return number of its elements."""
    while depth > 1:
        depth -= 1
        plan.loops.combine(stack + (depth - 1) * plan.slot, stack + depth * plan.slot, width,
                           counts[depth - 1], counts[depth])
        counts[depth - 1] += counts[depth]
    return counts[0]


cdef void _finish(const reduction_plan_t *plan, int64_t tile, const char *accumulators) noexcept nogil:
    cdef int inner = plan.kept.ndim - 1
    cdef int64_t place = (_offset(&plan.kept, tile // plan.tiles, plan.kept.out_strides)
                          + tile % plan.tiles * plan.width * plan.kept.out_strides[inner])
    plan.loops.finish(accumulators, _width_of(plan, tile),
                      plan.result + place * plan.result_item if plan.result != NULL else NULL,
                      plan.second + place * 8 if plan.second != NULL else NULL,
                      plan.kept.out_strides[inner], &plan.parameter)


cdef int64_t _block(const reduction_plan_t *plan) noexcept nogil:
    """Return the bytes of elements computed at a time: a narrow leaf, or some rows."""
    return max(BLOCK, plan.item * (max(ROW_ELEMENTS, 4 * plan.width) if plan.columns else RUN))


cdef void _computed_leaf(const reduction_plan_t *plan, int64_t start, int64_t n, int64_t stride, int64_t width,
                         int64_t column_stride, char *accumulators, char *space) noexcept nogil:
    """
    Run `leaf` on computed elements, from index `start` on.

    One of the strides is 1, because the array would be contiguous; parts of the leaf are consecutive rows.
    """
    cdef const element_source_t *source = plan.source
    cdef char *block = space + PARTIAL
    cdef bint whole = plan.columns and FOLDS(n, stride, width)
    cdef int64_t rows = n if plan.columns else width, length = width if plan.columns else n
    cdef int64_t distance = stride if plan.columns else column_stride
    cdef int64_t most = BLOCK // (max(length, 1) * plan.item)
    cdef int64_t row = 0, count, i
    most = rows if whole else max(4, most // 4 * 4) if plan.columns else max(1, most)
    while True:
        count = min(most, rows - row)
        if distance == length:
            source.produce(source.context, start + row * distance, count * length, block)
        else:
            for i in range(count):
                source.produce(source.context, start + (row + i) * distance, length, block + i * length * plan.item)
        if whole:
            plan.loops.leaf(block, n, width, width, 1, True, accumulators, &plan.parameter)
        elif plan.columns:
            plan.loops.rows(block, count, width, width, row == 0, row + count == rows, space, accumulators,
                            &plan.parameter)
        else:
            plan.loops.leaf(block, n, 1, count, n, False, accumulators + row * plan.loops.accumulator, &plan.parameter)
        row += count
        if row >= rows:
            return


cdef void _chunk(const reduction_plan_t *plan, int64_t tile, int64_t chunk, char *stack, char *space,
                 int64_t *counts) noexcept nogil:
    """Combine all leaves of a chunk in the first entry of the stack. `space`: memory for computed elements."""
    cdef int inner = plan.reduced.ndim - 1, depth = 0
    cdef int64_t n = plan.reduced.shape[inner], stride = plan.reduced.strides[inner]
    cdef int64_t column_stride = plan.kept.strides[plan.kept.ndim - 1]
    cdef int64_t width = _width_of(plan, tile), leaf, begin, first = chunk * plan.leaves_per_chunk
    cdef int64_t i = first % plan.leaves_per_run, run = first // plan.leaves_per_run
    cdef int64_t last = min(first + plan.leaves_per_chunk, plan.leaves)
    cdef const char *base = plan.data + plan.item * (
        _offset(&plan.kept, tile // plan.tiles, plan.kept.strides)
        + tile % plan.tiles * plan.width * column_stride)
    cdef const char *data = base + plan.item * _offset(&plan.reduced, run, plan.reduced.strides)
    for leaf in range(first, last):
        if i == plan.leaves_per_run:
            i = 0
            run += 1
            data = base + plan.item * _offset(&plan.reduced, run, plan.reduced.strides)
        begin = i * plan.length
        counts[depth] = min(plan.length, n - begin)
        if plan.source != NULL:              # `data` is an offset from NULL
            _computed_leaf(plan, (data - <const char *>NULL) // plan.item + begin * stride, counts[depth], stride,
                           width, column_stride, stack + depth * plan.slot, space)
        else:
            plan.loops.leaf(data + plan.item * begin * stride, counts[depth], stride, width, column_stride,
                            plan.columns, stack + depth * plan.slot, &plan.parameter)
        depth += 1
        i += 1
        _join(plan, stack, counts, &depth, leaf - first, width)
    _join_all(plan, stack, counts, depth, width)


cdef int _levels(int64_t parts) noexcept nogil:
    """Return the stack entries needed to combine n parts."""
    cdef int levels = 2
    while parts > 1:
        parts >>= 1
        levels += 1
    return levels


cdef char *_new_stack(reduction_plan_t *plan, int64_t parts, char *small, int64_t *nbytes, char **space) noexcept nogil:
    """Allocate accumulators, followed by memory for computed elements."""
    cdef char *stack = small
    cdef int64_t accumulators = _levels(parts) * plan.slot
    nbytes[0] = accumulators if plan.source == NULL else accumulators + PARTIAL + _block(plan)
    if nbytes[0] > 8 * SMALL:
        stack = <char *>allocate(nbytes[0])
        if stack == NULL:
            plan.status = MEMORY_ERROR
    space[0] = stack + accumulators
    return stack


cdef void _tiles_body(void *context, int64_t begin, int64_t end) noexcept nogil:
    """Reduce tiles begin..end-1."""
    cdef reduction_plan_t *plan = <reduction_plan_t *>context
    cdef double[SMALL] small
    cdef int64_t[LEVELS] counts
    cdef int64_t tile, nbytes
    cdef char *space
    cdef char *stack = _new_stack(plan, plan.leaves, <char *>small, &nbytes, &space)
    if stack == NULL:
        return
    for tile in range(begin, end):
        _chunk(plan, tile, 0, stack, space, counts)
        _finish(plan, tile, stack)
    if nbytes > 8 * SMALL:
        deallocate(stack, nbytes)


cdef void _chunks_body(void *context, int64_t begin, int64_t end) noexcept nogil:
    """Reduce chunks begin..end-1 of few long reductions, combined later."""
    cdef reduction_plan_t *plan = <reduction_plan_t *>context
    cdef double[SMALL] small
    cdef int64_t[LEVELS] counts
    cdef int64_t index, nbytes
    cdef char *space
    cdef char *stack = _new_stack(plan, plan.leaves_per_chunk, <char *>small, &nbytes, &space)
    if stack == NULL:
        return
    for index in range(begin, end):
        _chunk(plan, index // plan.chunks, index % plan.chunks, stack, space, counts)
        memcpy(plan.partial + index * plan.slot, stack, plan.slot)
        plan.counts[index] = counts[0]
    if nbytes > 8 * SMALL:
        deallocate(stack, nbytes)


cdef void _join_chunks(reduction_plan_t *plan, int64_t tile) noexcept nogil:
    """Combine the chunks of a tile pairwise, in place."""
    cdef char *parts = plan.partial + tile * plan.chunks * plan.slot
    cdef int64_t *counts = plan.counts + tile * plan.chunks
    cdef int64_t step = 1, i, width = _width_of(plan, tile)
    while step < plan.chunks:
        i = 0
        while i + step < plan.chunks:
            plan.loops.combine(parts + i * plan.slot, parts + (i + step) * plan.slot, width, counts[i],
                               counts[i + step])
            counts[i] += counts[i + step]
            i += 2 * step
        step *= 2
    _finish(plan, tile, parts)


cdef int _run_chunks(reduction_plan_t *plan, int64_t tiles) noexcept nogil:
    cdef int64_t tile, n = tiles * plan.chunks
    cdef int64_t nbytes = n * plan.slot, counts_bytes = n * <int64_t>sizeof(int64_t)
    plan.partial = <char *>allocate(nbytes)
    plan.counts = <int64_t *>allocate(counts_bytes)
    if plan.partial == NULL or plan.counts == NULL:
        plan.status = MEMORY_ERROR
    else:
        parallel_for(_chunks_body, plan, n, 1)
        if plan.status == OK:
            for tile in range(tiles):
                _join_chunks(plan, tile)
    if plan.partial != NULL:
        deallocate(plan.partial, nbytes)
    if plan.counts != NULL:
        deallocate(plan.counts, counts_bytes)
    return plan.status


cdef int reduce_array(int operation, double parameter, const array_t *self, const bint *reduced,
                      array_t *result, array_t *second) noexcept nogil:
    return _reduce(operation, parameter, self, reduced, result, second, NULL)


cdef bint can_reduce_computed(int operation, int dtype) noexcept nogil:
    return reduction_loops[operation][dtype].rows != NULL


cdef int reduce_computed(int operation, double parameter, const array_t *like, const bint *reduced, array_t *result,
                         element_source_t *source) noexcept nogil:
    return _reduce(operation, parameter, like, reduced, result, NULL, source)


cdef inline void _one_leaf(reduction_plan_t *plan, int64_t n, int64_t stride, int64_t width, int64_t column_stride,
                           int64_t out_stride) noexcept nogil:
    """Run a reduction of one leaf."""
    cdef double[SMALL] accumulators
    plan.loops.leaf(plan.data, n, stride, width, column_stride, width > 1 and plan.columns, <char *>accumulators,
                    &plan.parameter)
    plan.loops.finish(<char *>accumulators, width, plan.result, plan.second, out_stride, &plan.parameter)


cdef int _reduce(int operation, double parameter, const array_t *self, const bint *reduced, array_t *result,
                 array_t *second, const element_source_t *source) noexcept nogil:
    cdef reduction_plan_t plan
    cdef group_t *group
    cdef array_t *like = result if result != NULL else second
    cdef int64_t out_stride = 1, count = 1, tiles, work
    cdef int i = self.ndim - 1, status = OK
    if like.size == 0 or (self.storage != NULL and self.storage.size_class == NO_ELEMENTS):
        return OK
    plan.loops = &reduction_loops[operation][self.dtype]
    plan.data = self.data if source == NULL else NULL
    plan.source = source
    plan.item = itemsize(self.dtype)
    plan.result = result.data if result != NULL else NULL
    plan.result_item = itemsize(result.dtype) if result != NULL else 0
    plan.second = second.data if second != NULL else NULL
    plan.status = OK
    plan.parameter.p = parameter
    plan.parameter.correction = parameter
    plan.parameter.exp = <vector_loop_t>entries[_exp][self.dtype].loop
    plan.parameter.exp_data = entries[_exp][self.dtype].data
    plan.parameter.far = self.size * plan.item >= FAR
    if self.contiguous and like.size == 1 and 1 < self.size <= RUN and source == NULL:
        # One leaf of all elements in memory order.
        plan.parameter.count = <double>self.size
        _one_leaf(&plan, self.size, 1, 1, 0, 0)
        return OK
    plan.kept.ndim = 0
    plan.reduced.ndim = 0
    while i >= 0:
        # From the innermost: groups are sorted below, and equal strides keep their order.
        group = &plan.reduced if reduced[i] else &plan.kept
        if self.shape[i] != 1:
            group.shape[group.ndim] = self.shape[i]
            group.strides[group.ndim] = self.strides[i]
            group.out_strides[group.ndim] = 0 if reduced[i] else out_stride
            group.ndim += 1
        if reduced[i]:
            count *= self.shape[i]
        else:
            out_stride *= self.shape[i]
        i -= 1
    plan.parameter.count = <double>count
    _arrange(&plan.kept)
    if count == 0:
        # An empty leaf: its accumulators are the identity.
        plan.reduced.ndim = 1
        plan.reduced.shape[0], plan.reduced.strides[0], plan.reduced.out_strides[0] = 0, 0, 0
        plan.reduced.count = 1
    else:
        _arrange(&plan.reduced)
    _split(&plan)
    tiles = plan.tiles * plan.kept.count
    if tiles == 1 and plan.leaves == 1 and source == NULL and plan.slot <= 8 * <int64_t>SMALL:
        i = plan.reduced.ndim - 1
        _one_leaf(&plan, plan.reduced.shape[i], plan.reduced.strides[i], plan.width,
                  plan.kept.strides[plan.kept.ndim - 1], plan.kept.out_strides[plan.kept.ndim - 1])
        return OK
    if plan.chunks > 1:
        status = _run_chunks(&plan, tiles)
    else:
        work = max(1, plan.width * count)
        parallel_for(_tiles_body, &plan, tiles, rows_per_chunk(work, MOVED))
        status = plan.status
    if status != OK:
        snprintf(message(), MESSAGE, b"out of memory for the partial results of a reduction")
    return status


cdef double row_sum(int dtype, const char *data, int64_t n) noexcept nogil:
    cdef double out
    column_sums(dtype, data, n, 1, 1, &out)
    return out


cdef void column_maxima(int dtype, const char *data, int64_t n, int64_t stride, int64_t width,
                        double *out) noexcept nogil:
    cdef float[COLUMNS] single
    cdef int64_t i
    if dtype == FLOAT64:
        reduction_loops[<int>MAXIMUM][dtype].leaf(data, n, stride, width, 1, width > 1, <char *>out, NULL)
        return
    reduction_loops[<int>MAXIMUM][dtype].leaf(data, n, stride, width, 1, width > 1, <char *>single, NULL)
    for i in range(width):
        out[i] = single[i]


cdef void column_sums(int dtype, const char *data, int64_t n, int64_t stride, int64_t width,
                      double *out) noexcept nogil:
    """Sum in parts, as accurately as the engine."""
    cdef double[COLUMNS] part
    cdef int64_t length = RUN if width == 1 else ROWS, begin = 0, i
    cdef leaf_t leaf = reduction_loops[<int>SUM][dtype].leaf
    for i in range(width):
        out[i] = 0
    while begin < n:
        leaf(data + begin * stride * itemsize(dtype), min(length, n - begin), stride, width, 1, width > 1,
             <char *>part, NULL)
        for i in range(width):
            out[i] += part[i]
        begin += length


_exp = primitive("exp")


# -------------------------------------------------------------------------------------------------------------- kernels

# Arguments, dtypes and errors.

# ------------------------------------------------------------------------------------------------------- reduce kernels

cdef int read_reduction(const char *operation, const value_t *self, const value_t *dims,
                        const value_t *keepdim, reduction_t *reduction) noexcept nogil:
    cdef int[MAX_DIMS] wrapped
    cdef const int64_t *given
    cdef int i, count, status = array_argument(operation, b"self", self, &reduction.self)
    cdef array_t *array = reduction.self
    cdef bint keep = is_true(keepdim)
    if status == OK:
        status = integers_argument(operation, b"dim", dims, &count, &given)
    if status == OK:
        status = wrap_dims(operation, count, given, array.ndim, wrapped)
    if status != OK:
        return status
    reduction.dtype = computed_in(array.dtype) if is_short(array.dtype) else array.dtype
    reduction.all = count == 0
    for i in range(array.ndim):
        reduction.reduced[i] = reduction.all
    if array.ndim:
        for i in range(count):
            reduction.reduced[wrapped[i]] = True
    reduction.ndim = 0
    reduction.count = 1
    for i in range(array.ndim):
        if reduction.reduced[i]:
            reduction.count *= array.shape[i]
        if keep or not reduction.reduced[i]:
            reduction.shape[reduction.ndim] = 1 if reduction.reduced[i] else array.shape[i]
            reduction.ndim += 1
    return OK


# Contiguous elements to cast at once; with fewer, a copy of the array is faster.
cdef enum:
    SHORTEST = 8


cdef struct cast_t:
    loop_t loop
    int64_t[2] steps               # strides of the innermost dimension and of the new dtype, in bytes
    const char *data
    int64_t item                   # bytes of an element
    int ndim                       # in memory order, outermost first, merged
    int64_t[MAX_DIMS] shape, strides
    int64_t[MAX_DIMS] without_gaps  # strides of the cast elements, by dimension of the array


cdef inline bint _inside(const array_t *array, int a, int b) noexcept nogil:
    """Return whether dimension `a` is inside of `b`; broadcast dimensions (stride 0) are outermost, as in the
    engine."""
    return array.strides[a] != 0 and (array.strides[b] == 0 or llabs(array.strides[a]) < llabs(array.strides[b]))


cdef void _read_in_memory_order(const array_t *self, int dtype, cast_t *cast, array_t *like) noexcept nogil:
    """Set up a cast in memory order; `like` describes the cast array, without gaps."""
    cdef int[MAX_DIMS] order       # innermost first
    cdef int i, d, n = 0
    cdef int64_t step = 1
    like[0] = self[0]
    like.dtype = dtype
    cast.data, cast.loop = self.data, cast_loops[self.dtype][dtype]
    cast.item = itemsize(self.dtype)
    cast.steps[0], cast.steps[1] = cast.item, itemsize(dtype)
    cast.shape[0], cast.ndim = self.size, 1
    if self.contiguous:
        return
    like.strides = cast.without_gaps
    for d in range(self.ndim - 1, -1, -1):
        cast.without_gaps[d] = 1
        if self.shape[d] != 1:
            i = n
            while i > 0 and _inside(self, d, order[i - 1]):
                order[i] = order[i - 1]
                i -= 1
            order[i] = d
            n += 1
    cast.ndim = 0
    for i in range(n):
        d = order[i]
        cast.without_gaps[d] = step
        step *= self.shape[d]
    for i in range(n - 1, -1, -1):
        d = order[i]
        if cast.ndim and cast.strides[cast.ndim - 1] == self.strides[d] * self.shape[d]:
            cast.shape[cast.ndim - 1] *= self.shape[d]
        else:
            cast.shape[cast.ndim] = self.shape[d]
            cast.ndim += 1
        cast.strides[cast.ndim - 1] = self.strides[d]
        cast.steps[0] = self.strides[d] * cast.item


cdef void _cast_block(void *context, int64_t start, int64_t n, char *to) noexcept nogil:
    """Cast elements to the dtype of the reduction."""
    cdef cast_t *cast = <cast_t *>context
    cdef int inner = cast.ndim - 1, d
    cdef int64_t size = cast.shape[inner], at = start, row = 0, outer, offset, count
    cdef char *pointers[2]
    if inner:
        row, at = start // size, start % size
    while n > 0:
        offset, outer = 0, row
        for d in range(inner - 1, -1, -1):
            offset += outer % cast.shape[d] * cast.strides[d]
            outer //= cast.shape[d]
        count = min(n, size - at)
        pointers[0] = <char *>cast.data + offset * cast.item + at * cast.steps[0]
        pointers[1] = to
        cast.loop(pointers, &count, cast.steps, NULL)
        to += count * cast.steps[1]
        n -= count
        at = 0
        row += 1


cdef int _reduce_as(int operation, double parameter, int dtype, reduction_t *reduction, array_t *out) noexcept nogil:
    """Reduce while casting, without a cast copy of the array, if possible."""
    cdef array_t *self = reduction.self
    cdef array_t *source
    cdef array_t like
    cdef cast_t cast
    cdef element_source_t blocks
    cdef int status
    if self.dtype == dtype:
        return reduce_array(operation, parameter, self, reduction.reduced, out, NULL)
    _read_in_memory_order(self, dtype, &cast, &like)
    if can_reduce_computed(operation, dtype) and (self.contiguous or cast.shape[cast.ndim - 1] >= SHORTEST):
        blocks.produce, blocks.context = _cast_block, &cast
        return reduce_computed(operation, parameter, &like, reduction.reduced, out, &blocks)
    source = as_dtype(self, dtype)
    if source == NULL:
        return MEMORY_ERROR
    status = reduce_array(operation, parameter, source, reduction.reduced, out, NULL)
    release(source)
    return status


cdef int reduced_result(const char *name, int operation, double parameter, int dtype, int result_dtype,
                        reduction_t *reduction, value_t *result) noexcept nogil:
    cdef array_t *out
    cdef int status = new_array(name, result_dtype, reduction.ndim, reduction.shape, &out)
    if status == OK:
        status = _reduce_as(operation, parameter, dtype, reduction, out)
        if status == OK:
            set_array(result, out)
        else:
            release(out)
    return status


cdef int _out_of_range(const array_t *out, bint single, double low) noexcept nogil:
    """Return 1 if a real or complex number is below `low` in size, plus 2 if one is not finite."""
    cdef int64_t i, n = out.size * (1 + is_complex(out.dtype))
    cdef double size
    cdef int found = 0
    for i in range(n):
        size = fabs((<float *>out.data)[i] if single else (<double *>out.data)[i])
        if not low <= size <= DBL_MAX:
            found |= 1 if size < low else 2
    return found


cdef int _rescale(const char *name, int operation, double parameter, int dtype, reduction_t *reduction, double low,
                  double scale, array_t *out) noexcept nogil:
    """Compute results of float64 below `low`, or that are not finite, again from elements times a power of two."""
    cdef reduction_t scaled = reduction[0]
    cdef value_t again
    cdef double x, back = 1 / scale
    cdef int64_t i
    cdef int status
    scaled.self = as_copy(reduction.self, dtype)
    if scaled.self == NULL:
        return MEMORY_ERROR
    for i in range(scaled.self.size * (1 + is_complex(dtype))):
        (<double *>scaled.self.data)[i] *= scale
    status = reduced_result(name, operation, parameter, dtype, out.dtype, &scaled, &again)
    release(scaled.self)
    if status != OK:
        return status
    for i in range(out.size * (1 + is_complex(out.dtype))):
        x = (<double *>again.of.array.data)[i] * back
        if operation == VARIANCE:
            x *= back
        if fabs((<double *>out.data)[i]) < low if scale > 1 else not fabs((<double *>out.data)[i]) <= DBL_MAX:
            if x == x and (scale < 1 or fabs(x) <= DBL_MAX):
                (<double *>out.data)[i] = x
    clear(&again)
    return OK


cdef int _guarded_result(const char *name, int operation, double parameter, int dtype, reduction_t *reduction,
                         value_t *result) noexcept nogil:
    """
    Compute a mean, variance or deviation; again if a sum or square may have over- or underflowed.

    float32 is then computed in float64, float64 from scaled elements. Results outside of the safe range are rare.
    """
    cdef int made = dtype if operation == MEAN else real_of(dtype), outside
    cdef bint single = real_of(dtype) == FLOAT32
    cdef double low = 0 if operation == MEAN else 1e-18 if single else 1e-140
    cdef array_t *narrow
    cdef value_t wide
    cdef int status = reduced_result(name, operation, parameter, dtype, made, reduction, result)
    if operation == VARIANCE:
        low *= low
    if status != OK or (
            reduction.self.storage != NULL and reduction.self.storage.size_class == NO_ELEMENTS):     # fake tensor
        return status
    outside = _out_of_range(result.of.array, single, low)
    if outside and single:
        status = reduced_result(name, operation, parameter, COMPLEX128 if is_complex(dtype) else FLOAT64,
                                COMPLEX128 if is_complex(made) else FLOAT64, reduction, &wide)
        if status == OK:
            narrow = as_dtype(wide.of.array, made)
            clear(&wide)
            status = OK if narrow != NULL else MEMORY_ERROR
        if status == OK:
            clear(result)
            set_array(result, narrow)
    elif outside:
        if outside & 1:
            status = _rescale(name, operation, parameter, dtype, reduction, low, 2.0 ** 600, result.of.array)
        if outside & 2 and status == OK:
            status = _rescale(name, operation, parameter, dtype, reduction, low, 2.0 ** -600, result.of.array)
    if status != OK:
        clear(result)
    return status


cdef void _zero_nan(array_t *copy) noexcept nogil:
    """Replace each nan of a real array without gaps by 0."""
    cdef int64_t i
    for i in range(copy.size):
        if copy.dtype == FLOAT32:
            if (<float *>copy.data)[i] != (<float *>copy.data)[i]:
                (<float *>copy.data)[i] = 0
        elif (<double *>copy.data)[i] != (<double *>copy.data)[i]:
            (<double *>copy.data)[i] = 0


cdef int _sum_or_prod(const char *name, int operation, const value_t *arguments,
                      value_t *results) noexcept nogil:
    """sum, nansum, prod(self, dims, keepdim, dtype): integers and bool give int64 unless a dtype is given."""
    cdef reduction_t reduction
    cdef value_t wide
    cdef array_t *source
    cdef array_t *cast
    cdef int dtype, wanted, status = read_reduction(name, &arguments[0], &arguments[1], &arguments[2],
                                                    &reduction)
    if status != OK:
        return status
    dtype = reduction.dtype
    wanted = dtype if is_differentiable(dtype) else INT64
    if arguments[3].kind != NOTHING:
        wanted = <int>arguments[3].of.integer
    if operation == NANSUM and (is_complex(dtype) or is_complex(wanted)):
        snprintf(message(), MESSAGE, b"nansum: does not support complex numbers (got %s). Use sum() instead.",
                 dtype_name(wanted))
        return RUNTIME_ERROR
    if operation == NANSUM and not is_differentiable(dtype):
        operation = SUM
    if is_differentiable(wanted):
        return reduced_result(name, operation, 0, wanted, wanted, &reduction, results)
    # Integers wrap around, so they may be cast after the 64-bit sum; bool and floats are cast before.
    if wanted == BOOL or is_differentiable(dtype):
        source = as_copy(reduction.self, dtype) if operation == NANSUM else retain(reduction.self)
        if operation == NANSUM and source != NULL:
            _zero_nan(source)
        cast = as_dtype(source, wanted) if source != NULL else NULL
        release(source)
        if cast == NULL:
            return MEMORY_ERROR
        reduction.self = cast
        status = reduced_result(name, SUM if operation == NANSUM else operation, 0, wanted, INT64, &reduction, &wide)
        release(cast)
    else:
        status = reduced_result(name, operation, 0, dtype, INT64, &reduction, &wide)
    if status != OK:
        return status
    cast = as_dtype(wide.of.array, wanted)
    release(wide.of.array)
    if cast == NULL:
        return MEMORY_ERROR
    set_array(results, cast)
    return OK


cdef int sum_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """sum(self, dims, keepdim, dtype)."""
    return _sum_or_prod(b"sum", SUM, arguments, results)


cdef int nansum_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """nansum(self, dims, keepdim, dtype)."""
    return _sum_or_prod(b"nansum", NANSUM, arguments, results)


cdef int prod_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """prod(self, dims, keepdim, dtype)."""
    return _sum_or_prod(b"prod", PROD, arguments, results)


cdef int mean_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """mean(self, dims, keepdim, dtype) of floating and complex numbers."""
    cdef reduction_t reduction
    cdef int dtype, status = read_reduction(b"mean", &arguments[0], &arguments[1], &arguments[2], &reduction)
    if status != OK:
        return status
    dtype = <int>arguments[3].of.integer if arguments[3].kind != NOTHING else reduction.dtype
    if not is_differentiable(dtype):
        snprintf(message(), MESSAGE, b"mean: needs a floating or complex dtype (got %s). Convert self or "
                 b"pass dtype=float32.", dtype_name(dtype))
        return RUNTIME_ERROR
    return _guarded_result(b"mean", MEAN, 0, dtype, &reduction, results)


cdef int _spread(const char *name, int operation, const value_t *arguments, value_t *results) noexcept nogil:
    """var, std(self, dims, correction, keepdim)."""
    cdef reduction_t reduction
    cdef double correction = 1
    cdef int status = read_reduction(name, &arguments[0], &arguments[1], &arguments[3], &reduction)
    if status != OK:
        return status
    if arguments[2].kind != NOTHING:
        if not is_number(&arguments[2]):
            snprintf(message(), MESSAGE, b"%s: correction must be a number.", name)
            return TYPE_ERROR
        correction = as_real(&arguments[2])
    if not is_differentiable(reduction.dtype):
        snprintf(message(), MESSAGE, b"%s: only supports floating point and complex dtypes (got %s). "
                 b"Convert self first.", name, dtype_name(reduction.dtype))
        return RUNTIME_ERROR
    return _guarded_result(name, operation, correction, reduction.dtype, &reduction, results)


cdef int var_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """var(self, dims, correction, keepdim)."""
    return _spread(b"var", VARIANCE, arguments, results)


cdef int std_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """std(self, dims, correction, keepdim)."""
    return _spread(b"std", DEVIATION, arguments, results)


cdef int _truth(const char *name, int operation, const value_t *arguments, value_t *results) noexcept nogil:
    """all, any(self, dims, keepdim): bool, but uint8 stays uint8."""
    cdef reduction_t reduction
    cdef int i, dtype, status = read_reduction(name, &arguments[0], &arguments[1], &arguments[2], &reduction)
    if status != OK:
        return status
    if reduction.all and arguments[1].kind != NOTHING:
        # An empty list reduces no dimension, as in PyTorch.
        reduction.ndim = reduction.self.ndim
        for i in range(reduction.ndim):
            reduction.reduced[i] = False
            reduction.shape[i] = reduction.self.shape[i]
    dtype = reduction.dtype
    return reduced_result(name, operation, 0, dtype, UINT8 if dtype == UINT8 else BOOL, &reduction, results)


cdef int all_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """all(self, dims, keepdim)."""
    return _truth(b"all", ALL, arguments, results)


cdef int any_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """any(self, dims, keepdim)."""
    return _truth(b"any", ANY, arguments, results)


cdef int _norm_dtype(const value_t *given, int dtype, int *chosen) noexcept nogil:
    """Choose the dtype of a norm; refuse narrower ones than that of self."""
    chosen[0] = <int>given.of.integer if given.kind != NOTHING else dtype
    if not is_differentiable(dtype) or not is_differentiable(chosen[0]):
        snprintf(message(), MESSAGE, b"norm: expected a floating point or complex dtype (got %s). Convert "
                 b"self first.",
                 dtype_name(chosen[0] if is_differentiable(dtype) else dtype))
        return RUNTIME_ERROR
    if is_complex(chosen[0]) != is_complex(dtype):
        snprintf(message(), MESSAGE, b"norm: dtype should be %s for %s inputs (got %s).",
                 b"complex" if is_complex(dtype) else b"real", dtype_name(dtype), dtype_name(chosen[0]))
        return RUNTIME_ERROR
    if chosen[0] < dtype:
        snprintf(message(), MESSAGE, b"norm: dtype should not be narrower than that of self (got %s, "
                 b"expected %s).",
                 dtype_name(chosen[0]), dtype_name(dtype))
        return RUNTIME_ERROR
    return OK


cdef int norm_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """norm(self, p, dims, keepdim, dtype): the vector norm of any order."""
    cdef reduction_t reduction
    cdef double p = as_real(&arguments[1]) if arguments[1].kind != NOTHING else 2
    cdef int operation = NORM_P
    cdef int dtype, status = read_reduction(b"norm", &arguments[0], &arguments[2], &arguments[3], &reduction)
    if status == OK:
        status = _norm_dtype(&arguments[4], reduction.dtype, &dtype)
    if status != OK:
        return status
    if reduction.count == 0 and (p < 0 or p == INFINITY):
        snprintf(message(), MESSAGE, b"norm: the norm of order %g of an empty tensor is not defined (got shape %s). "
                 b"Reduce dimensions of non-zero size, or use an order that is finite and not negative.",
                 p, shape_text(reduction.self))
        return RUNTIME_ERROR
    if p == 0:
        operation = NORM_0
    elif p == 1:
        operation = NORM_1
    elif p == 2:
        operation = NORM_2
    elif p == INFINITY:
        operation = NORM_MAX
    elif p == -INFINITY:
        operation = NORM_MIN
    return reduced_result(b"norm", operation, p, dtype, real_of(dtype), &reduction, results)


cdef int logsumexp_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """logsumexp(self, dims, keepdim), without overflow; integers are cast to the default float."""
    cdef reduction_t reduction
    cdef int dtype, status = read_reduction(b"logsumexp", &arguments[0], &arguments[1], &arguments[2],
                                            &reduction)
    if status != OK:
        return status
    dtype = reduction.dtype
    if is_complex(dtype):
        snprintf(message(), MESSAGE, b"logsumexp: complex numbers are not supported (got %s). Use "
                 b"x.exp().sum(dim).log().", dtype_name(dtype))
        return NOT_IMPLEMENTED
    if not is_differentiable(dtype):
        dtype = default_float()
    return reduced_result(b"logsumexp", LOGSUMEXP, 0, dtype, dtype, &reduction, results)


cdef int dimensions_summed(const array_t *self, int ndim, const int64_t *shape, bint *reduced) noexcept nogil:
    cdef bint any = ndim != self.ndim
    cdef int i, lead = self.ndim - ndim
    if lead < 0:
        return -1
    for i in range(self.ndim):
        reduced[i] = i < lead or (shape[i - lead] == 1 and self.shape[i] != 1)
        any = any or reduced[i]
        if i >= lead and not reduced[i] and shape[i - lead] != self.shape[i]:
            return -1
    return any


cdef int summed_to(array_t *self, int ndim, const int64_t *shape, array_t **result) noexcept nogil:
    cdef bint[MAX_DIMS] reduced
    cdef int needed = dimensions_summed(self, ndim, shape, reduced), status
    cdef array_t *source
    if needed < 0 and ndim > self.ndim:
        snprintf(message(), MESSAGE, b"sum_to: cannot sum shape %s to more dimensions (got %s).",
                 shape_text(self), sizes_text(ndim, <const long long *>shape))
        return RUNTIME_ERROR
    if needed < 0:
        snprintf(message(), MESSAGE, b"sum_to: the shape does not broadcast to that of self (got %s, expected one that "
                 b"broadcasts to %s).", sizes_text(ndim, <const long long *>shape), shape_text(self))
        return RUNTIME_ERROR
    if not needed:
        result[0] = retain(self)
        return OK
    # Integers and bool are summed in 64 bits and cast back.
    status = new_array(b"sum_to", self.dtype if is_differentiable(self.dtype) else INT64, ndim, shape, result)
    if status == OK:
        status = reduce_array(SUM, 0, self, reduced, result[0], NULL)
        if status != OK:
            release(result[0])
    if status == OK and result[0].dtype != self.dtype:
        source = result[0]
        result[0] = as_dtype(source, self.dtype)
        release(source)
        if result[0] == NULL:
            return MEMORY_ERROR
    return status


cdef int sum_to_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """sum_to(self, shape): the transpose of broadcasting."""
    cdef array_t *self
    cdef array_t *result
    cdef const int64_t *shape
    cdef int count, status = array_argument(b"sum_to", b"self", &arguments[0], &self)
    if status == OK:
        status = integers_argument(b"sum_to", b"shape", &arguments[1], &count, &shape)
    if status == OK:
        status = summed_to(self, count, shape, &result)
    if status == OK:
        set_array(results, result)
    return status


cdef kernel_t[16] _casting
cdef int _n_casting = 0


cdef int register_reduction(str name, kernel_t kernel) except -1:
    global _n_casting
    _casting[_n_casting] = kernel
    _n_casting += 1
    return register_kernel(name, kernel)


cdef bint casts_itself(kernel_t kernel) noexcept nogil:
    cdef int i
    for i in range(_n_casting):
        if _casting[i] == kernel:
            return True
    return False


register_reduction("sum", sum_kernel)
register_reduction("nansum", nansum_kernel)
register_reduction("prod", prod_kernel)
register_reduction("mean", mean_kernel)
register_reduction("var", var_kernel)
register_reduction("std", std_kernel)
register_reduction("all", all_kernel)
register_reduction("any", any_kernel)
register_reduction("norm", norm_kernel)
register_reduction("logsumexp", logsumexp_kernel)
register_kernel("sum_to", sum_to_kernel)


# ------------------------------------------------------------------------------------------------------- reduce extrema

cdef int _check_extremum(const char *name, const reduction_t *reduction, int status_of_complex,
                         int status_of_empty) noexcept nogil:
    """Refuse complex numbers and empty reductions."""
    cdef array_t *self = reduction.self
    cdef int i
    if is_complex(self.dtype):
        snprintf(message(), MESSAGE, b"%s: complex numbers have no order (got %s). Reduce the real part or "
                 b"the absolute value.", name, dtype_name(self.dtype))
        return status_of_complex
    if reduction.all and self.size == 0:
        snprintf(message(), MESSAGE, b"%s: an empty tensor has none (got shape %s). Specify the reduction "
                 b"dim with the 'dim' argument.", name, shape_text(self))
        return status_of_empty
    for i in range(self.ndim):
        if reduction.reduced[i] and self.shape[i] == 0:
            snprintf(message(), MESSAGE, b"%s: expected reduction dim %d to have non-zero size (got shape "
                     b"%s).",
                     name, i, shape_text(self))
            return INDEX_ERROR
    return OK


cdef int _extremum(const char *name, int operation, const value_t *arguments,
                   value_t *results) noexcept nogil:
    """amax, amin(self, dims, keepdim)."""
    cdef reduction_t reduction
    cdef int status = read_reduction(name, &arguments[0], &arguments[1], &arguments[2], &reduction)
    if status == OK:
        status = _check_extremum(name, &reduction, NOT_IMPLEMENTED, RUNTIME_ERROR)
    if status != OK:
        return status
    return reduced_result(name, operation, 0, reduction.dtype, reduction.dtype, &reduction, results)


cdef int amax_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """amax(self, dims, keepdim): nan if there is one."""
    return _extremum(b"amax", MAXIMUM, arguments, results)


cdef int amin_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """amin(self, dims, keepdim): nan if there is one."""
    return _extremum(b"amin", MINIMUM, arguments, results)


cdef int _extremum_dim(const char *name, int operation, const value_t *arguments,
                       value_t *results) noexcept nogil:
    """max_dim, min_dim(self, dim, keepdim): values and the index of the first of equals."""
    cdef reduction_t reduction
    cdef array_t *values = NULL
    cdef array_t *indices = NULL
    cdef int status = read_reduction(name, &arguments[0], &arguments[1], &arguments[2], &reduction)
    if (status == OK and arguments[1].kind != INTEGER
            and (arguments[1].kind == NOTHING or arguments[1].count != 1)):
        snprintf(message(), MESSAGE, b"%s: expected one dimension.", name)
        status = TYPE_ERROR
    if status == OK:
        status = _check_extremum(name, &reduction, RUNTIME_ERROR, RUNTIME_ERROR)
    if status == OK:
        status = new_array(name, reduction.self.dtype, reduction.ndim, reduction.shape, &values)
    if status != OK:
        return status
    status = new_array(name, INT64, reduction.ndim, reduction.shape, &indices)
    if status == OK:
        status = reduce_array(operation, 0, reduction.self, reduction.reduced, values, indices)
    if status != OK:
        release(values)
        release(indices)
        return status
    set_array(&results[0], values)
    set_array(&results[1], indices)
    return OK


cdef int max_dim_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """max_dim(self, dim, keepdim) -> values, indices."""
    return _extremum_dim(b"max", ARGMAX, arguments, results)


cdef int min_dim_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """min_dim(self, dim, keepdim) -> values, indices."""
    return _extremum_dim(b"min", ARGMIN, arguments, results)


cdef int _position(const char *name, int operation, const value_t *arguments,
                   value_t *results) noexcept nogil:
    """argmax, argmin(self, dim, keepdim): index of the first of equals; without dim, in the flattened
    array."""
    cdef reduction_t reduction
    cdef array_t *source
    cdef array_t *flat
    cdef array_t *indices
    cdef bint[1] whole
    cdef int status = read_reduction(name, &arguments[0], &arguments[1], &arguments[2], &reduction)
    if status != OK:
        return status
    if reduction.self.dtype == BOOL:
        snprintf(message(), MESSAGE, b"%s: does not support bool. Convert self to uint8.", name)
        return RUNTIME_ERROR
    status = _check_extremum(name, &reduction, RUNTIME_ERROR, INDEX_ERROR)
    if status == OK:
        status = new_array(name, INT64, reduction.ndim, reduction.shape, &indices)
    if status != OK:
        return status
    if reduction.all:
        # Positions count in row-major order.
        source = as_contiguous(reduction.self, -1)
        flat = reshaped(source, 1, &source.size) if source != NULL else NULL
        whole[0] = True
        status = reduce_array(operation, 0, flat, whole, NULL, indices) if flat != NULL else MEMORY_ERROR
        release(flat)
        release(source)
    else:
        status = reduce_array(operation, 0, reduction.self, reduction.reduced, NULL, indices)
    if status != OK:
        release(indices)
        return status
    set_array(results, indices)
    return OK


cdef int argmax_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """argmax(self, dim, keepdim)."""
    return _position(b"argmax", ARGMAX, arguments, results)


cdef int argmin_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """argmin(self, dim, keepdim)."""
    return _position(b"argmin", ARGMIN, arguments, results)


register_reduction("amax", amax_kernel)
register_reduction("amin", amin_kernel)
register_kernel("max_dim", max_dim_kernel)
register_kernel("min_dim", min_dim_kernel)
register_kernel("argmax", argmax_kernel)
register_kernel("argmin", argmin_kernel)


# ------------------------------------------------------------------------------------------------------ fused reduction

# Reductions fused with the element-wise expression of their input, which is not stored.
#
# The gradient of a broadcast operand is computed in the broadcast shape and then summed. The reduction requests blocks
# of elements in its own order, which the expression computes: operands are read once, and only the sum is written.
# Results are bit-identical to those of separate steps.

cdef int64_t _from = 4096         # minimum elements; fewer are in the cache anyway
cdef int64_t _sums = 0


cdef int evaluate_summed(expression_t *expression, const value_t *inputs, uint32_t reuse, const array_t *meta,
                         array_t **result) noexcept nogil:
    cdef specialized_t *specialized
    cdef int64_t[MAX_DIMS] full
    cdef int64_t[MAX_DIMS] strides
    cdef bint[MAX_DIMS] reduced
    cdef array_t like
    cdef int i, status = OK
    like.ndim = broadcast_shape(inputs, expression.n_inputs, full)
    if like.ndim < 0:
        return RUNTIME_ERROR
    like.shape, like.strides, like.data, like.contiguous, like.size = full, strides, NULL, True, 1
    like.storage = NULL
    for i in range(like.ndim - 1, -1, -1):
        strides[i] = like.size
        like.size *= full[i]
    # The reduction would read elements that are not in rows in another order.
    if (like.size < _from or nan_watchers or dimensions_summed(&like, meta.ndim, meta.shape, reduced) <= 0
            or not is_row_major_result(like.ndim, full, inputs, expression.n_inputs)):
        return evaluate(expression, inputs, reuse, NULL, result)
    specialized = specialize(expression, inputs, &status)
    if specialized == NULL:
        return status
    like.dtype = specialized.dtype
    status = _sum(specialized, inputs, &like, reduced, meta, result)
    if specialized.temporary:
        discard(specialized)
    return status if status >= 0 else evaluate(expression, inputs, reuse, NULL, result)


cdef int _sum(const specialized_t *expression, const value_t *inputs, const array_t *like, const bint *reduced,
              const array_t *meta, array_t **result) noexcept nogil:
    """Evaluate fused; return -1 if this expression or these operands are not supported."""
    cdef task_t task
    cdef double complex[MAX_CELLS] numbers
    cdef element_source_t source
    cdef array_t *array
    cdef int i, status
    # For a complex gradient of a real operand the caller takes the real part first.
    if expression.partial or is_complex(expression.dtype) and not is_complex(meta.dtype):
        return -1
    if not is_differentiable(expression.dtype) or not can_reduce_computed(SUM, expression.dtype):
        return -1
    task.expression = expression
    task.move[0] = NULL
    task.itemsize[0] = itemsize(expression.dtype)
    nest_begin(&task.nest, like.ndim, like.shape)
    nest_add(&task.nest, like)
    for i in range(expression.n_inputs):
        if inputs[i].kind != ARRAY:
            nest_add_value(&task.nest, NULL)
            continue
        array = inputs[i].of.array
        if should_copy_transposed(array, like):
            return -1
        nest_add(&task.nest, array)
        task.move[i + 1] = cast_loops[array.dtype][array.dtype]
        task.itemsize[i + 1] = itemsize(array.dtype)
    nest_finish(&task.nest)
    place_cells(expression, inputs, &task.cells, numbers)
    prepare_task(&task)
    source.produce, source.context = produce, &task
    status = new_array(b"sum_to", expression.dtype, meta.ndim, meta.shape, result)
    if status == OK:
        status = reduce_computed(SUM, 0, like, reduced, result[0], &source)
        if status != OK:
            release(result[0])
        atomic_add(&_sums, 1)
    return status


def count_summed():
    """Return the number of fused sums, for tests."""
    return _sums


def set_summed_from(int64_t elements):
    """Set the minimum number of elements to fuse; return the former number. For tests."""
    global _from
    former, _from = _from, elements
    return former


# ------------------------------------------------------------------------------------------------------ reduce backward

cdef enum:
    COMPARED = 4096           # numbers compared between checks for a difference

cdef extern from "kernels/reduction/differences.h" nogil:
    bint (*numbers_differ[2])(const void *a, const void *b, int64_t n)


cdef int unreduce_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """unreduce(grad, shape, dims, keepdim): the gradient of a reduction, repeated without a copy."""
    cdef reduction_t reduction
    cdef array_t like
    cdef value_t self
    cdef array_t *grad
    cdef const int64_t *shape
    cdef int64_t[MAX_DIMS] strides
    cdef int64_t[MAX_DIMS] sizes
    cdef int i, at = 0, count, status = array_argument(b"unreduce", b"grad", &arguments[0], &grad)
    if status == OK:
        status = integers_argument(b"unreduce", b"shape", &arguments[1], &count, &shape)
    if status == OK and count > MAX_DIMS:
        snprintf(message(), MESSAGE, b"unreduce: too many dimensions (got %d, expected at most %d).",
                 count, <int>MAX_DIMS)
        status = RUNTIME_ERROR
    if status != OK:
        return status
    for i in range(count):
        sizes[i] = shape[i]
    like.ndim, like.shape, like.dtype = count, sizes, grad.dtype
    set_array(&self, &like)
    status = read_reduction(b"unreduce", &self, &arguments[2], &arguments[3], &reduction)
    if status == OK:
        status = check_same_shape(b"unreduce", b"grad", grad, reduction.ndim, reduction.shape)
    if status != OK:
        return status
    for i in range(count):
        strides[i] = 0 if reduction.reduced[i] else grad.strides[at]
        if not reduction.reduced[i] or reduction.ndim == count:
            at += 1
    return view_result(grad, count, sizes, strides, 0, results)


cdef int select_backward_index_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """select_backward_index(grad, shape, dim, indices, keepdim): zeros, with grad at the indices along dim."""
    cdef array_t *grad
    cdef array_t *indices
    cdef array_t *values = NULL
    cdef array_t *places = NULL
    cdef array_t *out = NULL
    cdef rows_t rows
    cdef const int64_t *shape
    cdef int64_t given, i, item
    cdef int count, dim, status = array_argument(b"select_backward_index", b"grad", &arguments[0], &grad)
    if status == OK:
        status = integers_argument(b"select_backward_index", b"shape", &arguments[1], &count, &shape)
    if status == OK:
        status = integer_argument(b"select_backward_index", b"dim", &arguments[2], &given)
    if status == OK:
        status = array_argument(b"select_backward_index", b"indices", &arguments[3], &indices)
    if status == OK:
        status = wrap_dim(b"select_backward_index", given, count, &dim)
    if status == OK:
        status = check_same_shape(b"select_backward_index", b"grad", grad, indices.ndim, indices.shape)
    if status == OK:
        status = new_zeros(b"select_backward_index", grad.dtype, count, shape, &out)
    if status != OK:
        return status
    rows_along(out, dim, &rows)
    values = as_contiguous(grad, -1)
    places = as_contiguous(indices, INT64)
    if values == NULL or places == NULL:
        status = MEMORY_ERROR
    elif rows.outer * rows.inner != values.size:
        snprintf(message(), MESSAGE, b"select_backward_index: grad has the wrong size (got %lld, expected "
                 b"%lld).",
                 <long long>values.size, <long long>(rows.outer * rows.inner))
        status = RUNTIME_ERROR
    else:
        item = itemsize(grad.dtype)
        for i in range(values.size):
            given = (<int64_t *>places.data)[i]
            if given < 0 or given >= rows.n:
                snprintf(message(), MESSAGE, b"select_backward_index: index out of range (got %lld, "
                         b"expected 0 to %lld).",
                         <long long>given, <long long>(rows.n - 1))
                status = INDEX_ERROR
                break
            memcpy(out.data + item * ((i // rows.inner * rows.n + given) * rows.inner + i % rows.inner),
                   values.data + item * i, item)
    release(values)
    release(places)
    if status == OK:
        set_array(results, out)
    else:
        release(out)
    return status


ctypedef struct comparison_t:
    const char *a
    const char *b
    int width                  # bytes of one number
    bint real                  # -0 equals 0 and nan never compares equal; else compare bytes
    int64_t different          # was a difference found?


cdef void _compare_chunk(void *context, int64_t begin, int64_t end) noexcept nogil:
    """Compare numbers begin..end-1, block by block up to the first difference of any thread."""
    cdef comparison_t *job = <comparison_t *>context
    cdef const char *a
    cdef const char *b
    cdef int64_t until
    cdef bint different
    while begin < end and not atomic_load(&job.different):
        until = min(begin + COMPARED, end)
        a, b = job.a + begin * job.width, job.b + begin * job.width
        if job.real:
            different = numbers_differ[job.width == sizeof(double)](a, b, until - begin)
        else:
            different = memcmp(a, b, (until - begin) * job.width) != 0
        if different:
            atomic_store(&job.different, 1)
        begin = until


cdef int equal_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """equal(a, b): same shape and elements; nan never compares equal."""
    cdef array_t *a
    cdef array_t *b
    cdef comparison_t job
    cdef int parts, dtype, status = array_argument(b"equal", b"self", &arguments[0], &a)
    if status == OK:
        status = array_argument(b"equal", b"other", &arguments[1], &b)
    if status != OK:
        return status
    results[0].kind = BOOLEAN
    results[0].of.integer = 0
    if not same_shape(a, b):
        return OK
    dtype = promote(a.dtype, b.dtype)
    a = as_contiguous(a, dtype)
    b = as_contiguous(b, dtype)
    if a == NULL or b == NULL:
        status = MEMORY_ERROR
    else:
        parts = 2 if dtype >= COMPLEX64 else 1
        job.a, job.b, job.width, job.real = a.data, b.data, itemsize(dtype) // parts, is_differentiable(dtype)
        job.different = 0
        parallel_for(_compare_chunk, &job, parts * a.size, rows_per_chunk(1, MOVED))
        results[0].of.integer = not job.different
    release(a)
    release(b)
    if status != OK:
        results[0].kind = 0
    return status


register_kernel("unreduce", unreduce_kernel)
register_kernel("select_backward_index", select_backward_index_kernel)
register_kernel("equal", equal_kernel)
