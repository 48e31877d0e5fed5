"""
Elements moved by their place in a plane: maxima put back where they came from, and picked up again.

The places count through the last `n` dimensions, which are one plane, as pooling gives them: -1 is nowhere.
"""

from libc.stdint cimport int64_t, uint64_t
from libc.stdio cimport snprintf
from libc.string cimport memset
from cygrad._core.arrays.array cimport array_t, release, shape_text
from cygrad._core.arrays.dtype cimport FLOAT32, FLOAT64, INT64, dtype_name, is_differentiable, itemsize
from cygrad._core.arrays.value cimport register_kernel, value_t
from cygrad._core.elementwise.copying cimport as_contiguous
from cygrad._core.kernels.arguments cimport (
    array_argument, array_result, check_same_shape, integer_argument, integers_argument, list_text, new_array,
)
from cygrad._core.memory.atomic cimport atomic_store
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, NOT_IMPLEMENTED, OK, RUNTIME_ERROR, message
from cygrad._core.threads.parallel cimport parallel_for

cdef enum:
    PIECE = 1 << 14            # elements worth a thread

ctypedef enum position_move_t:
    PICK                       # small[i] = large[place[i]]
    ADD                        # large[place[i]] += small[i]
    PLACE                      # large[place[i]] = small[i]

ctypedef fused number:
    float
    double
    float complex
    double complex

ctypedef struct positions_t:
    const char *name
    position_move_t move
    int dtype
    int n
    int64_t planes
    int64_t small_plane
    int64_t large_plane
    char *small
    char *large
    const int64_t *places
    int64_t wrong              # atomic: 1 + a plane with a place out of bounds


cdef inline int64_t _move_one(position_move_t move, number *small, number *large, const int64_t *places, int64_t limit,
                              int64_t i) noexcept nogil:
    """-> is the place out of bounds?"""
    cdef int64_t place = places[i]
    if <uint64_t>place >= <uint64_t>limit:
        if place != -1 or move == PLACE:
            return True
        if move == PICK:
            small[i] = 0
    elif move == PICK:
        small[i] = large[place]
    elif move == ADD:
        large[place] = large[place] + small[i]
    else:
        large[place] = small[i]
    return False


cdef inline int64_t _move_all(position_move_t move, number *small, number *large, const int64_t *places, int64_t n,
                              int64_t limit) noexcept nogil:
    """
    n elements; -> is a place out of bounds?

    Neighbors often have the same place. So that a sum need not wait for the last one, four parts are added in turns;
    with PLACE the last one counts, and all go in order.
    """
    cdef int64_t i, wrong = False, part = 0 if move == PLACE else n // 4
    for i in range(part):
        wrong |= (_move_one(move, small, large, places, limit, i)
                  | _move_one(move, small, large, places, limit, part + i)
                  | _move_one(move, small, large, places, limit, 2 * part + i)
                  | _move_one(move, small, large, places, limit, 3 * part + i))
    for i in range(4 * part, n):
        wrong |= _move_one(move, small, large, places, limit, i)
    return wrong


cdef int64_t _move(positions_t *work, number *small, number *large, const int64_t *places) noexcept nogil:
    """One plane; -> is a place out of bounds?"""
    if work.move != PICK:
        memset(large, 0, work.large_plane * sizeof(number))
    if work.move == PICK:
        return _move_all(PICK, small, large, places, work.small_plane, work.large_plane)
    if work.move == ADD:
        return _move_all(ADD, small, large, places, work.small_plane, work.large_plane)
    return _move_all(PLACE, small, large, places, work.small_plane, work.large_plane)


cdef void _body(void *context, int64_t begin, int64_t end) noexcept nogil:
    cdef positions_t *work = <positions_t *>context
    cdef int64_t plane, bytes = itemsize(work.dtype), wrong
    cdef const int64_t *places
    cdef char *small
    cdef char *large
    for plane in range(begin, end):
        places = work.places + plane * work.small_plane
        small = work.small + plane * work.small_plane * bytes
        large = work.large + plane * work.large_plane * bytes
        if work.dtype == FLOAT32:
            wrong = _move(work, <float *>small, <float *>large, places)
        elif work.dtype == FLOAT64:
            wrong = _move(work, <double *>small, <double *>large, places)
        elif bytes == 8:
            wrong = _move(work, <float complex *>small, <float complex *>large, places)
        else:
            wrong = _move(work, <double complex *>small, <double complex *>large, places)
        if wrong:
            atomic_store(&work.wrong, 1 + plane)


cdef int64_t _find_wrong(positions_t *work, int64_t plane) noexcept nogil:
    """The first place of a plane that is out of bounds."""
    cdef const int64_t *places = work.places + plane * work.small_plane
    cdef int64_t i = 0
    while -(work.move != PLACE) <= places[i] < work.large_plane:
        i += 1
    return places[i]


cdef int _run(positions_t *work, array_t *small, array_t *large, array_t *places) noexcept nogil:
    """Contiguous arrays whose last `n` dimensions are planes."""
    cdef int i
    work.planes = work.small_plane = work.large_plane = 1
    for i in range(small.ndim):
        if i < small.ndim - work.n:
            work.planes *= small.shape[i]
        else:
            work.small_plane *= small.shape[i]
            work.large_plane *= large.shape[i]
    work.dtype = small.dtype
    work.small, work.large, work.places = small.data, large.data, <int64_t *>places.data
    work.wrong = 0
    if work.planes and (large.size or small.size):
        parallel_for(_body, work, work.planes, max(1, PIECE // (work.small_plane + work.large_plane)))
    if work.wrong:
        snprintf(message(), MESSAGE, b"%s: found an invalid index (got %lld, expected 0 to %lld, the positions in a "
                                     b"plane of shape %s).", work.name, <long long>_find_wrong(work, work.wrong - 1),
                 <long long>(work.large_plane - 1), list_text(work.n, large.shape + large.ndim - work.n))
        return RUNTIME_ERROR
    return OK


cdef int _read(positions_t *work, const char *name, const value_t *value, const value_t *indices, const value_t *count,
               array_t **array, array_t **places) noexcept nogil:
    """The moved array, the places, and the number of dimensions of a plane."""
    cdef int64_t n
    cdef int status = array_argument(name, b"input", value, array)
    work.name = name
    if status == OK:
        status = array_argument(name, b"indices", indices, places)
    if status == OK:
        status = integer_argument(name, b"n", count, &n)
    if status != OK:
        return status
    if not is_differentiable(array[0].dtype):
        snprintf(message(), MESSAGE, b"%s: not implemented for %s. Convert with to() first.", name,
                 dtype_name(array[0].dtype))
        return NOT_IMPLEMENTED
    if places[0].dtype != INT64:
        snprintf(message(), MESSAGE, b"%s: indices must have dtype int64 (got %s). Convert with .long().", name,
                 dtype_name(places[0].dtype))
        return RUNTIME_ERROR
    if not 1 <= n <= array[0].ndim or array[0].ndim != places[0].ndim:
        snprintf(message(), MESSAGE, b"%s: input and indices must have the same number of dimensions, of which a "
                 b"plane has at least one (got shapes %s and %s, and %lld dimensions).", name, shape_text(array[0]),
                 shape_text(places[0]), <long long>n)
        return RUNTIME_ERROR
    work.n = <int>n
    return OK


cdef int _put(const char *name, position_move_t move, const value_t *arguments, value_t *results) noexcept nogil:
    """self, indices, shape, n: zeros of that shape, with the elements of self at their places."""
    cdef positions_t work
    cdef array_t *self
    cdef array_t *places
    cdef array_t *result = NULL
    cdef const int64_t *shape
    cdef int i, ndim, status = _read(&work, name, &arguments[0], &arguments[1], &arguments[3], &self, &places)
    if status == OK:
        status = integers_argument(name, b"shape", &arguments[2], &ndim, &shape)
    if status == OK:
        status = check_same_shape(name, b"indices", places, self.ndim, self.shape)
    if status == OK:
        for i in range(min(ndim, self.ndim) if ndim == self.ndim else 1):
            if ndim != self.ndim or (i < ndim - work.n and shape[i] != self.shape[i]):
                snprintf(message(), MESSAGE, b"%s: only the sizes of the planes may change (got shapes %s and %s).",
                         name, shape_text(self), list_text(ndim, shape))
                return RUNTIME_ERROR
        status = new_array(name, self.dtype, ndim, shape, &result)
    if status != OK:
        return status
    self = as_contiguous(self, -1)
    places = as_contiguous(places, -1)
    work.move = move
    status = _run(&work, self, result, places) if self != NULL and places != NULL else MEMORY_ERROR
    release(self)
    release(places)
    if status != OK:
        release(result)
        return status
    return array_result(result, &results[0])


cdef int max_pool_backward_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """max_pool_backward(self, indices, shape, n)."""
    return _put(b"max_pool_backward", ADD, arguments, results)


cdef int max_unpool_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """max_unpool(self, indices, shape, n)."""
    return _put(b"max_unpool", PLACE, arguments, results)


cdef int max_pool_gather_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """max_pool_gather(self, indices, n)."""
    cdef positions_t work
    cdef array_t *self
    cdef array_t *places
    cdef array_t *result = NULL
    cdef int i, status = _read(&work, b"max_pool_gather", &arguments[0], &arguments[1], &arguments[2], &self, &places)
    if status != OK:
        return status
    for i in range(self.ndim - work.n):
        if self.shape[i] != places.shape[i]:
            snprintf(message(), MESSAGE, b"max_pool_gather: input and indices must have the same planes "
                     b"(got shapes %s and %s).", shape_text(self), shape_text(places))
            return RUNTIME_ERROR
    status = new_array(b"max_pool_gather", self.dtype, places.ndim, places.shape, &result)
    if status != OK:
        return status
    self = as_contiguous(self, -1)
    places = as_contiguous(places, -1)
    work.move = PICK
    status = _run(&work, result, self, places) if self != NULL and places != NULL else MEMORY_ERROR
    release(self)
    release(places)
    if status != OK:
        release(result)
        return status
    return array_result(result, &results[0])


register_kernel("max_pool_backward", max_pool_backward_kernel)
register_kernel("max_unpool", max_unpool_kernel)
register_kernel("max_pool_gather", max_pool_gather_kernel)
