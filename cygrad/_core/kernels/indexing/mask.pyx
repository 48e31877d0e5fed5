"""Masks: masked_fill, masked_select, nonzero."""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t
from libc.stdio cimport snprintf
from cygrad._core.arrays.array cimport MAX_DIMS, array_t, release, retain, shape_text, share_memory
from cygrad._core.arrays.dtype cimport BOOL, INT64, dtype_name, itemsize
from cygrad._core.arrays.value cimport register_kernel, set_array, value_t
from cygrad._core.elementwise.copying cimport as_contiguous, copy_into
from cygrad._core.elementwise.iteration cimport broadcast_shape, broadcasts_to
from cygrad._core.elementwise.offset_moves cimport READ, begin_nest, move_by_offsets, nest_of_offsets_t, pair_t, word_t
from cygrad._core.kernels.arguments cimport array_argument, array_result, check_writable, fresh_copy, new_array
from cygrad._core.kernels.indexing.index cimport scalar_array
from cygrad._core.kernels.indexing.positions cimport positions_to_offsets, true_positions
from cygrad._core.kernels.shape.shape cimport expanded
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, OK, RUNTIME_ERROR, message
from cygrad._core.threads.parallel cimport parallel_for

cdef enum:
    GRAIN = 32768          # elements in one piece of a parallel loop

ctypedef struct masked_t:
    const uint8_t *mask
    char *data             # contiguous
    const char *value
    int64_t width


cdef void _fill_words(const uint8_t *mask, word_t *words, word_t value, int64_t n) noexcept nogil:
    """words[i] = value where the mask is true."""
    cdef int64_t i
    for i in range(n):
        # Written either way: faster than a branch that is guessed wrong half of the time.
        words[i] = value if mask[i] else words[i]


cdef void _fill_piece(void *context, int64_t begin, int64_t end) noexcept nogil:
    """Elements begin..end, by their size."""
    cdef masked_t *job = <masked_t *>context
    cdef const uint8_t *mask = job.mask + begin
    cdef char *data = job.data + begin * job.width
    cdef int64_t n = end - begin
    if job.width == 1:
        _fill_words(mask, <int8_t *>data, (<int8_t *>job.value)[0], n)
    elif job.width == 2:
        _fill_words(mask, <int16_t *>data, (<int16_t *>job.value)[0], n)
    elif job.width == 4:
        _fill_words(mask, <int32_t *>data, (<int32_t *>job.value)[0], n)
    elif job.width == 8:
        _fill_words(mask, <int64_t *>data, (<int64_t *>job.value)[0], n)
    else:
        _fill_words(mask, <pair_t *>data, (<pair_t *>job.value)[0], n)


cdef int _open(const char *operation, const value_t *arguments, array_t **self, array_t **mask, int *ndim,
               int64_t *shape) noexcept nogil:
    """The arguments (self, mask) and the shape that both broadcast to."""
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
        # A mask in the memory that is about to change must be read before.
        status = _dense(operation, mask, ndim, shape, share_memory(mask, dense), &wide)
    if status == OK:
        job.mask, job.data, job.value, job.width = <uint8_t *>wide.data, dense.data, scalar.data, itemsize(dense.dtype)
        parallel_for(_fill_piece, &job, dense.size, GRAIN)
    release(wide)
    release(scalar)
    return status


cdef int masked_fill_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """masked_fill(self, mask, value): a copy with the value where the mask is true."""
    cdef array_t *self
    cdef array_t *mask
    cdef array_t *result = NULL
    cdef int64_t shape[MAX_DIMS]
    cdef int ndim, status = _open(b"masked_fill", arguments, &self, &mask, &ndim, shape)
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
    """masked_fill_into(self, mask, value): the same in the memory of self."""
    cdef array_t *self
    cdef array_t *mask
    cdef array_t *dense = NULL
    cdef int64_t shape[MAX_DIMS]
    cdef int ndim, status = _open(b"masked_fill", arguments, &self, &mask, &ndim, shape)
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
    """masked_select(self, mask): the elements where the mask is true, as one row."""
    cdef array_t *self
    cdef array_t *mask
    cdef array_t *dense = NULL
    cdef array_t *wide = NULL
    cdef array_t *positions = NULL
    cdef array_t *chosen = NULL
    cdef int64_t shape[MAX_DIMS]
    cdef nest_of_offsets_t nest
    cdef int ndim, status = _open(b"masked_select", arguments, &self, &mask, &ndim, shape)
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
    """Rows begin..end: a row-major position as one index for each dimension."""
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
    """nonzero(self): int64 indices of the elements that are not zero, one row for each."""
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
        parallel_for(_fill_coordinates, &job, positions.size, max(1, GRAIN // self.ndim))
    release(positions)
    return array_result(coordinates, &results[0]) if status == OK else status


register_kernel("masked_fill", masked_fill_kernel)
register_kernel("masked_fill_into", masked_fill_into_kernel)
register_kernel("masked_select", masked_select_kernel)
register_kernel("nonzero", nonzero_kernel)
