"""Indices turned into byte offsets, and masks into positions; every index is checked while it is read."""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdio cimport snprintf
from libc.string cimport memcpy
from cygrad._core.arrays.array cimport array_empty, array_empty_like, array_t, release
from cygrad._core.arrays.dtype cimport BOOL, INT64, dtype_name, is_integral, itemsize
from cygrad._core.elementwise.copying cimport as_contiguous
from cygrad._core.elementwise.offset_moves cimport SKIP
from cygrad._core.memory.atomic cimport atomic_load, atomic_store
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, OK, message
from cygrad._core.threads.parallel cimport parallel_for

cdef enum:
    GRAIN = 32768      # elements in one piece of a parallel loop
    BLOCK = 512        # of which positions are listed at a time: a divisor of GRAIN


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
    """The index counted from the front."""
    return index + rule.size if index < 0 and rule.negative else index


cdef void _fill_offsets(void *context, int64_t begin, int64_t end) noexcept nogil:
    """Offsets begin..end."""
    cdef indices_t *job = <indices_t *>context
    cdef const index_rule_t *rule = job.rule
    cdef int64_t i, index, step = rule.step
    cdef uint64_t size = <uint64_t>rule.size
    cdef bint failed = False
    for i in range(begin, end):
        index = _wrapped(rule, job.indices[i])
        if <uint64_t>index < size:
            job.offsets[i] = index * step
        else:
            failed = True
        if rule.skipping and index == rule.skipped:
            job.offsets[i] = SKIP
    if failed:
        atomic_store(&job.failed, 1)


cdef int _report(array_t *indices, const index_rule_t *rule) noexcept nogil:
    """Name the first index that is out of bounds."""
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
        parallel_for(_fill_offsets, &job, values.size, GRAIN)
        if atomic_load(&job.failed):
            status = _report(values, rule)
            release(offsets[0])
            offsets[0] = NULL
    release(values)
    return status


# ---- masks

ctypedef struct mask_positions_t:
    const uint8_t *mask
    int64_t *starts        # for each piece: how many are true, later where its positions begin
    int64_t *positions
    int64_t size


cdef void _count_pieces(void *context, int64_t begin, int64_t end) noexcept nogil:
    """How many elements of each of these pieces are true."""
    cdef mask_positions_t *job = <mask_positions_t *>context
    cdef int64_t piece, i, count
    for piece in range(begin, end):
        count = 0
        for i in range(piece * GRAIN, min(job.size, (piece + 1) * GRAIN)):
            count += job.mask[i] != 0
        job.starts[piece] = count


cdef void _list_pieces(void *context, int64_t begin, int64_t end) noexcept nogil:
    """Write the positions of these pieces."""
    cdef mask_positions_t *job = <mask_positions_t *>context
    cdef int64_t[BLOCK] block
    cdef int64_t piece, start, i, k, found, room
    for piece in range(begin, end):
        k = job.starts[piece]
        start = piece * GRAIN
        while start < min(job.size, (piece + 1) * GRAIN):
            # Every index is written and kept only if it counts: a branch would be guessed wrong all the time.
            found = 0
            for i in range(start, min(job.size, start + BLOCK)):
                block[found] = i
                found += job.mask[i] != 0
            # Counted once before: never write more than there is room for, should the mask have changed since.
            room = job.starts[piece + 1] - k
            found = min(found, room)
            memcpy(job.positions + k, block, found * sizeof(int64_t))
            k += found
            start += BLOCK
        while k < job.starts[piece + 1]:
            job.positions[k] = 0
            k += 1


cdef int true_positions(array_t *array, array_t **positions) noexcept nogil:
    cdef mask_positions_t job
    cdef array_t *mask = as_contiguous(array, BOOL)
    cdef array_t *starts = NULL
    cdef int64_t piece, count, total = 0, pieces = (array.size + GRAIN - 1) // GRAIN, slots = pieces + 1
    positions[0] = NULL
    if mask != NULL:
        starts = array_empty(INT64, 1, &slots)
    if starts != NULL:
        job.mask, job.size = <const uint8_t *>mask.data, mask.size
        job.starts = <int64_t *>starts.data
        parallel_for(_count_pieces, &job, pieces, 1)
        for piece in range(pieces):
            count = job.starts[piece]
            job.starts[piece] = total
            total += count
        job.starts[pieces] = total
        positions[0] = array_empty(INT64, 1, &total)
    if positions[0] != NULL:
        job.positions = <int64_t *>positions[0].data
        parallel_for(_list_pieces, &job, pieces, 1)
    release(starts)
    release(mask)
    return OK if positions[0] != NULL else MEMORY_ERROR


ctypedef struct conversion_t:
    int64_t *positions
    const array_t *array
    int first
    int count


cdef void _convert(void *context, int64_t begin, int64_t end) noexcept nogil:
    """Positions begin..end as offsets."""
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
    """The same where all dimensions are one run."""
    cdef conversion_t *job = <conversion_t *>context
    cdef int64_t i, step = job.array.strides[job.first + job.count - 1] * itemsize(job.array.dtype)
    for i in range(begin, end):
        job.positions[i] *= step


cdef void positions_to_offsets(array_t *positions, const array_t *array, int first, int count) noexcept nogil:
    cdef conversion_t job
    cdef bint one_run = True
    cdef int k
    if count == 0:         # of a 0-dim mask: position 0 is offset 0
        return
    for k in range(first, first + count - 1):
        one_run = one_run and array.strides[k] == array.shape[k + 1] * array.strides[k + 1]
    job.positions, job.array, job.first, job.count = <int64_t *>positions.data, array, first, count
    parallel_for(_scale if one_run else _convert, &job, positions.size, GRAIN)
