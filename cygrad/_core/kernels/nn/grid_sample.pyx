"""
Reading images along grids in two steps: which elements a position reads, with which weights; and weighted sums of
elements so chosen.

Weights are products of polynomials, one for each coordinate, and come differentiated any number of times; sums are
linear in the weights and in the elements. So the derivatives of both are both again.
"""

from libc.stdint cimport int32_t, int64_t
from libc.stdio cimport snprintf
from libc.string cimport memset
from cygrad._core.arrays.array cimport array_t, release
from cygrad._core.arrays.dtype cimport FLOAT64, INT32, dtype_name, is_floating, itemsize
from cygrad._core.arrays.value cimport is_true, register_kernel, value_t
from cygrad._core.elementwise.copying cimport as_contiguous
from cygrad._core.kernels.arguments cimport (
    array_argument, array_result, check_same_shape, integer_argument, integers_argument, new_array, new_zeros,
)
from cygrad._core.memory.errors cimport INDEX_ERROR, MEMORY_ERROR, MESSAGE, NOT_IMPLEMENTED, OK, RUNTIME_ERROR, message
from cygrad._core.threads.parallel cimport parallel_for

cdef extern from "kernels/nn/grid_sample.h" nogil:
    enum:
        GRID_CUBIC
        GRID_REFLECTION
        GRID_BLOCK
    ctypedef struct grid_t:
        int n
        int mode
        int padding
        int align
        int taps
        int64_t sizes[3]
        int order[3]
        int64_t points
    void grid_taps(bint double_precision, const grid_t *g, const void *grid, int64_t begin, int64_t count,
                   int32_t *places, void *weights)
    void grid_slopes(bint double_precision, const grid_t *g, const void *grid, int64_t begin, int64_t count, int along,
                     const void *given, void *out)
    void gather_weighted(bint double_precision, const void *images, const int32_t *places, const void *weights,
                         int64_t channels, int64_t size, int64_t taps, int64_t points, void *out)
    void scatter_weighted(bint double_precision, const void *grad, const int32_t *places, const void *weights,
                          int64_t taps, int64_t points, void *image)
    void gather_products(bint double_precision, const void *grad, const void *images, const int32_t *places,
                         int64_t channels, int64_t size, int64_t taps, int64_t points, int64_t begin, int64_t count,
                         void *out)

cdef enum:
    PIECE = 1 << 14            # elements read that are worth a thread
    MOST_ORDER = 3             # from the next derivative on all weights are zero

# One run over the images of a batch; arrays that are not there are NULL.
ctypedef struct reading_t:
    grid_t grid
    bint double_precision
    int64_t channels
    int64_t size               # elements of a plane of the image
    int64_t taps               # of a position
    int64_t blocks             # of positions, in one image
    int along
    array_t *positions
    array_t *images            # or, scattered to, the result
    array_t *places
    array_t *weights
    array_t *grad              # of the sums, or what slopes are multiplied by
    array_t *out


cdef reading_t nothing
memset(&nothing, 0, sizeof(reading_t))


cdef int _floats(const char *name, const value_t *value, int ndim, const char *role, array_t **array) noexcept nogil:
    """A contiguous floating array, owned."""
    cdef int status = array_argument(name, role, value, array)
    if status == OK and (not is_floating(array[0].dtype) or array[0].ndim != ndim):
        snprintf(message(), MESSAGE, b"%s: %s must be float32 or float64 with %d dimensions (got %s with %d).", name,
                 role, ndim, dtype_name(array[0].dtype), array[0].ndim)
        status = NOT_IMPLEMENTED
    if status != OK:
        array[0] = NULL
        return status
    array[0] = as_contiguous(array[0], -1)
    return OK if array[0] != NULL else MEMORY_ERROR


cdef int _check_types(const char *name, const char *role, const array_t *a, const array_t *b) noexcept nogil:
    if a.dtype == b.dtype:
        return OK
    snprintf(message(), MESSAGE, b"%s: input and %s must have the same type (got %s and %s).", name, role,
             dtype_name(a.dtype), dtype_name(b.dtype))
    return RUNTIME_ERROR


cdef int _places(const char *name, const value_t *value, int64_t size, reading_t *reading) noexcept nogil:
    """Return positions in planes of `n` elements; below zero: none."""
    cdef array_t *array
    cdef const int32_t *places
    cdef int32_t largest = -1
    cdef int64_t i
    cdef int status = array_argument(name, b"places", value, &array)
    if status == OK and (array.dtype != INT32 or array.ndim != 3):
        snprintf(message(), MESSAGE, b"%s: positions must be int32 with 3 dimensions (got %s with %d).", name,
                 dtype_name(array.dtype), array.ndim)
        status = RUNTIME_ERROR
    if status != OK:
        return status
    reading.places = as_contiguous(array, -1)
    if reading.places == NULL:
        return MEMORY_ERROR
    places = <const int32_t *>reading.places.data
    for i in range(array.size):
        largest = max(largest, places[i])
    if largest >= size:
        snprintf(message(), MESSAGE, b"%s: a position is out of bounds (got %d, expected less than %lld).", name,
                 <int>largest, <long long>size)
        return INDEX_ERROR
    reading.size, reading.taps, reading.grid.points = size, array.shape[1], array.shape[2]
    reading.blocks = (reading.grid.points + GRID_BLOCK - 1) // GRID_BLOCK
    return OK


cdef int _close(reading_t *reading, int status, value_t *result) noexcept nogil:
    release(reading.positions)
    release(reading.places)
    release(reading.weights)
    release(reading.grad)
    release(reading.images)
    if status != OK:
        release(reading.out)
        return status
    return array_result(reading.out, result)


# ------------------------------------------------------------------------------------------------- places and weights

cdef int _open_grid(const char *name, const value_t *positions, const value_t *options,
                    reading_t *reading) noexcept nogil:
    """options: sizes, mode, padding, align_corners, order."""
    cdef grid_t *grid = &reading.grid
    cdef const int64_t *sizes
    cdef const int64_t *order
    cdef int64_t mode = 0, padding = 0
    cdef int i, n = 0, orders = 0
    cdef int status = _floats(name, positions, 3, b"grid", &reading.positions)
    if status == OK:
        status = integers_argument(name, b"sizes", &options[0], &n, &sizes)
    if status == OK:
        status = integer_argument(name, b"mode", &options[1], &mode)
    if status == OK:
        status = integer_argument(name, b"padding", &options[2], &padding)
    if status == OK:
        status = integers_argument(name, b"order", &options[4], &orders, &order)
    if status != OK:
        return status
    if not 2 <= n <= 3 or reading.positions.shape[2] != n or orders != 3 or not 0 <= mode <= GRID_CUBIC or not (
            0 <= padding <= GRID_REFLECTION):
        snprintf(message(), MESSAGE, b"%s: got %d sizes for positions of %lld coordinates, mode %lld, padding %lld",
                 name, n, <long long>reading.positions.shape[2], <long long>mode, <long long>padding)
        return RUNTIME_ERROR
    reading.size = 1
    reading.taps = 1
    grid.n, grid.mode, grid.padding, grid.align = n, <int>mode, <int>padding, is_true(&options[3])
    grid.taps = 1 << grid.mode
    grid.points = reading.positions.shape[1]
    for i in range(n):
        grid.sizes[i] = sizes[n - 1 - i]
        grid.order[i] = <int>max(<int64_t>0, min(order[i], <int64_t>MOST_ORDER + 1))
        reading.taps *= grid.taps
        if not 0 < grid.sizes[i] < (<int64_t>1 << 31) or reading.size * grid.sizes[i] >= (<int64_t>1 << 31):
            snprintf(message(), MESSAGE, b"%s: the images must have between 1 and 2147483647 elements in a channel "
                     b"(got %lld in one dimension).", name, <long long>grid.sizes[i])
            return RUNTIME_ERROR
        reading.size *= grid.sizes[i]
    reading.double_precision = reading.positions.dtype == FLOAT64
    reading.blocks = (grid.points + GRID_BLOCK - 1) // GRID_BLOCK
    return OK


cdef void _taps_body(void *context, int64_t begin, int64_t end) noexcept nogil:
    cdef reading_t *r = <reading_t *>context
    cdef int64_t piece, image, first, bytes = itemsize(r.positions.dtype), points = r.grid.points
    cdef const char *positions
    for piece in range(begin, end):
        image, first = piece // r.blocks, piece % r.blocks * GRID_BLOCK
        positions = r.positions.data + image * points * r.grid.n * bytes
        if r.grad == NULL:
            grid_taps(r.double_precision, &r.grid, positions, first, min(<int64_t>GRID_BLOCK, points - first),
                      <int32_t *>r.places.data + image * r.taps * points,
                      r.out.data + image * r.taps * points * bytes)
        else:
            grid_slopes(r.double_precision, &r.grid, positions, first, min(<int64_t>GRID_BLOCK, points - first),
                        r.along, r.grad.data + image * points * (r.grid.n if r.along else r.taps) * bytes,
                        r.out.data + image * points * (r.taps if r.along else r.grid.n) * bytes)


cdef void _run_taps(reading_t *reading) noexcept nogil:
    cdef int64_t pieces = reading.positions.shape[0] * reading.blocks
    if pieces:
        parallel_for(_taps_body, reading, pieces, max(<int64_t>1, PIECE // (GRID_BLOCK * reading.taps)))


cdef int grid_taps_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """grid_taps(self, sizes, mode, padding, align_corners, order)."""
    cdef reading_t reading = nothing
    cdef int64_t[3] shape
    cdef int status = _open_grid(b"grid_taps", &arguments[0], &arguments[1], &reading)
    if status == OK:
        shape[0], shape[1], shape[2] = reading.positions.shape[0], reading.taps, reading.grid.points
        status = new_array(b"grid_taps", INT32, 3, shape, &reading.places)
        if status == OK:
            status = new_array(b"grid_taps", reading.positions.dtype, 3, shape, &reading.out)
    if status == OK:
        _run_taps(&reading)
        status = array_result(reading.places, &results[0])
        reading.places = NULL
    return _close(&reading, status, &results[1])


cdef int _slopes(const char *name, const value_t *arguments, int along, value_t *result) noexcept nogil:
    cdef reading_t reading = nothing
    cdef int64_t[3] expected
    cdef int64_t[3] shape
    cdef int status = _open_grid(name, &arguments[1], &arguments[2], &reading)
    if status == OK:
        status = _floats(name, &arguments[0], 3, b"grad", &reading.grad)
    if status == OK:
        reading.along = along
        expected[0] = shape[0] = reading.positions.shape[0]
        expected[1], expected[2] = reading.taps, reading.grid.points
        shape[1], shape[2] = reading.grid.points, reading.grid.n
        if along:
            expected[1], expected[2], shape[1], shape[2] = shape[1], shape[2], expected[1], expected[2]
        status = check_same_shape(name, b"grad", reading.grad, 3, expected)
    if status == OK:
        status = _check_types(name, b"grid", reading.grad, reading.positions)
    if status == OK:
        status = new_array(name, reading.positions.dtype, 3, shape, &reading.out)
    if status == OK:
        _run_taps(&reading)
    return _close(&reading, status, result)


cdef int grid_taps_backward_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """grid_taps_backward(grad, grid, sizes, mode, padding, align_corners, order)."""
    return _slopes(b"grid_taps_backward", arguments, 0, &results[0])


cdef int grid_taps_along_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """grid_taps_along(direction, grid, sizes, mode, padding, align_corners, order)."""
    return _slopes(b"grid_taps_along", arguments, 1, &results[0])


# --------------------------------------------------------------------------------------------------------------- sums

cdef void _sums_body(void *context, int64_t begin, int64_t end) noexcept nogil:
    """Some channels, counted through the batch."""
    cdef reading_t *r = <reading_t *>context
    cdef int64_t plane = begin, image, channels, bytes = itemsize(r.weights.dtype), points = r.grid.points
    cdef const int32_t *places
    cdef const char *weights
    while plane < end:
        image = plane // r.channels
        channels = min(end, (image + 1) * r.channels) - plane
        places = <const int32_t *>r.places.data + image * r.taps * points
        weights = r.weights.data + image * r.taps * points * bytes
        if r.grad == NULL:
            gather_weighted(r.double_precision, r.images.data + plane * r.size * bytes, places, weights, channels,
                            r.size, r.taps, points, r.out.data + plane * points * bytes)
        else:
            channels = 1
            scatter_weighted(r.double_precision, r.grad.data + plane * points * bytes, places, weights, r.taps, points,
                             r.out.data + plane * r.size * bytes)
        plane += channels


cdef void _products_body(void *context, int64_t begin, int64_t end) noexcept nogil:
    cdef reading_t *r = <reading_t *>context
    cdef int64_t piece, image, first, bytes = itemsize(r.images.dtype), points = r.grid.points
    for piece in range(begin, end):
        image, first = piece // r.blocks, piece % r.blocks * GRID_BLOCK
        gather_products(r.double_precision, r.grad.data + image * r.channels * points * bytes,
                        r.images.data + image * r.channels * r.size * bytes,
                        <const int32_t *>r.places.data + image * r.taps * points, r.channels, r.size, r.taps, points,
                        first, min(<int64_t>GRID_BLOCK, points - first), r.out.data + image * r.taps * points * bytes)


cdef int _open_sums(const char *name, const value_t *arguments, bint weighted, int64_t size, array_t **source,
                    reading_t *reading) noexcept nogil:
    """arguments: images or gradients, places, weights (`weighted`); the size of a plane, -1: that of the images."""
    cdef int status = _floats(name, &arguments[0], 3, b"input", source)
    if status == OK:
        status = _places(name, &arguments[1], source[0].shape[2] if size < 0 else size, reading)
    if status == OK and weighted:
        status = _floats(name, &arguments[2], 3, b"weights", &reading.weights)
        if status == OK:
            status = check_same_shape(name, b"weights", reading.weights, 3, reading.places.shape)
        if status == OK:
            status = _check_types(name, b"weights", source[0], reading.weights)
    if status == OK and source[0].shape[0] != reading.places.shape[0]:
        snprintf(message(), MESSAGE, b"%s: expected positions for each image (got %lld images and %lld)", name,
                 <long long>source[0].shape[0], <long long>reading.places.shape[0])
        status = RUNTIME_ERROR
    if status == OK:
        reading.channels = source[0].shape[1]
        reading.double_precision = source[0].dtype == FLOAT64
    return status


cdef void _run_sums(reading_t *reading, array_t *source) noexcept nogil:
    cdef int64_t planes = source.shape[0] * source.shape[1], work = max(<int64_t>1, reading.grid.points * reading.taps)
    if planes:
        parallel_for(_sums_body, reading, planes, max(<int64_t>1, PIECE // work))


cdef int gather_weighted_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """gather_weighted(self, places, weights)."""
    cdef reading_t reading = nothing
    cdef int64_t[3] shape
    cdef int status = _open_sums(b"gather_weighted", arguments, True, -1, &reading.images, &reading)
    if status == OK:
        shape[0], shape[1], shape[2] = reading.images.shape[0], reading.channels, reading.grid.points
        status = new_array(b"gather_weighted", reading.images.dtype, 3, shape, &reading.out)
    if status == OK:
        _run_sums(&reading, reading.images)
    return _close(&reading, status, &results[0])


cdef int scatter_weighted_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """scatter_weighted(self, places, weights, size)."""
    cdef reading_t reading = nothing
    cdef int64_t[3] shape
    cdef int64_t size = 0
    cdef int status = integer_argument(b"scatter_weighted", b"size", &arguments[3], &size)
    if status == OK and size < 0:
        snprintf(message(), MESSAGE, b"scatter_weighted: the size must not be negative (got %lld).", <long long>size)
        status = RUNTIME_ERROR
    if status == OK:
        status = _open_sums(b"scatter_weighted", arguments, True, size, &reading.grad, &reading)
    if status == OK and reading.grad.shape[2] != reading.grid.points:
        snprintf(message(), MESSAGE, b"scatter_weighted: expected a gradient for each position (got %lld and %lld)",
                 <long long>reading.grad.shape[2], <long long>reading.grid.points)
        status = RUNTIME_ERROR
    if status == OK:
        shape[0], shape[1], shape[2] = reading.grad.shape[0], reading.channels, size
        status = new_zeros(b"scatter_weighted", reading.grad.dtype, 3, shape, &reading.out)
    if status == OK:
        _run_sums(&reading, reading.grad)
    return _close(&reading, status, &results[0])


cdef int gather_products_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """gather_products(self, places, images)."""
    cdef reading_t reading = nothing
    cdef int64_t[3] shape
    cdef int64_t pieces
    cdef int status = _floats(b"gather_products", &arguments[2], 3, b"images", &reading.images)
    if status == OK:
        status = _open_sums(b"gather_products", arguments, False, reading.images.shape[2], &reading.grad, &reading)
    if status == OK:
        shape[0], shape[1], shape[2] = reading.images.shape[0], reading.images.shape[1], reading.grid.points
        status = check_same_shape(b"gather_products", b"input", reading.grad, 3, shape)
    if status == OK:
        status = _check_types(b"gather_products", b"images", reading.grad, reading.images)
    if status == OK:
        status = new_array(b"gather_products", reading.images.dtype, 3, reading.places.shape, &reading.out)
    if status == OK:
        pieces = reading.images.shape[0] * reading.blocks
        if pieces:
            parallel_for(_products_body, &reading, pieces,
                         max(<int64_t>1, PIECE // max(<int64_t>1, GRID_BLOCK * reading.taps * reading.channels)))
    return _close(&reading, status, &results[0])


register_kernel("grid_taps", grid_taps_kernel)
register_kernel("grid_taps_backward", grid_taps_backward_kernel)
register_kernel("grid_taps_along", grid_taps_along_kernel)
register_kernel("gather_weighted", gather_weighted_kernel)
register_kernel("scatter_weighted", scatter_weighted_kernel)
register_kernel("gather_products", gather_products_kernel)
