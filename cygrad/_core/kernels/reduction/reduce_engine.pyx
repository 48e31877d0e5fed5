"""The engine of all reductions: one plan of loops for any operation, dtype and layout.

Kept and reduced dimensions are each sorted by strides and merged, so that transposed arrays give the same result. A
*leaf* reduces a chunk of the innermost reduced dimension for a tile along the innermost kept one, in memory order.
Leaves are combined as a balanced tree, and few long reductions are split among threads. All sizes depend only on the
problem, not on the number of threads.
"""

from libc.stdint cimport int32_t, int64_t
from libc.stdio cimport snprintf
from libc.string cimport memcpy
from cygrad._core.arrays.array cimport MAX_DIMS, array_t
from cygrad._core.arrays.dtype cimport FLOAT64, itemsize
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, OK, message
from cygrad._core.memory.storage cimport NO_ELEMENTS, allocate, deallocate
from cygrad._core.primitives.primitive_table cimport entries, primitive
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
