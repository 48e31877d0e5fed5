"""
interpolate (nearest, linear, cubic), grid_sample, and their transposes.

Interpolation is separable: a table of elements and weights for each dimension (resample.h).
"""

from libc.math cimport fabs
from libc.stdint cimport int32_t, int64_t
from libc.stdio cimport snprintf
from libc.string cimport memset, strcmp
from cygrad._core.arrays.array cimport (
    INTEGERS, MAX_DIMS, NOTHING, array_t, array_view, as_real, is_true, register_kernel, release, set_array, shape_text,
    value_t,
)
from cygrad._core.arrays.dtype cimport FLOAT64, INT32, dtype_name, is_floating, itemsize
from cygrad._core.elementwise.copying cimport as_contiguous, with_layout_of_images
from cygrad._core.kernels.arguments cimport (
    array_argument, array_result, check_same_shape, integer_argument, integers_argument, list_text, new_array,
    new_zeros, text_argument, view_result,
)
from cygrad._core.memory.atomic cimport atomic_store
from cygrad._core.memory.errors cimport INDEX_ERROR, MEMORY_ERROR, MESSAGE, NOT_IMPLEMENTED, OK, RUNTIME_ERROR, message
from cygrad._core.memory.storage cimport storage_new, storage_release, storage_t
from cygrad._core.threads.grain cimport COMPUTED, rows_per_chunk
from cygrad._core.threads.parallel cimport parallel_for


# ------------------------------------------------------------------------------------------------------------- resample

cdef extern from "kernels/nn/resample.h" nogil:
    enum:
        NEAREST
        NEAREST_EXACT
        LINEAR
        CUBIC
    ctypedef struct axis_t:
        int64_t taps
        int64_t *index
        double *weight
    ctypedef struct resampling_t:
        int64_t size[3]
        int64_t out[3]
        axis_t axis[3]
    double axis_scale(int mode, int antialias, int64_t size, int64_t out, int align_corners, double given)
    int64_t axis_taps(int mode, int antialias, double scale)
    void fill_axis(axis_t *axis, int mode, int antialias, int align_corners, int64_t size, int64_t out, double scale)
    void (*resample_planes[2][2])(const resampling_t *r, const void *input, void *result, void *buffer)

ctypedef struct resample_arguments_t:
    const char *name
    resampling_t resampling
    storage_t *memory          # of the tables
    int dtype
    bint back
    int64_t planes
    int64_t large              # elements of a plane of the input
    int64_t small              # and of the result
    char *input                # or its gradient
    char *result
    int64_t failed             # atomic: a thread had no memory


cdef int _mode(const char *name, const value_t *value, int *mode) noexcept nogil:
    cdef const char *text
    cdef int status = text_argument(name, b"mode", value, &text)
    if status != OK:
        return status
    if strcmp(text, b"nearest") == 0:
        mode[0] = NEAREST
    elif strcmp(text, b"nearest-exact") == 0:
        mode[0] = NEAREST_EXACT
    elif strcmp(text, b"linear") == 0:
        mode[0] = LINEAR
    elif strcmp(text, b"cubic") == 0:
        mode[0] = CUBIC
    else:
        snprintf(message(), MESSAGE, b"%s: unknown mode (got '%s', expected 'nearest', 'nearest-exact', 'linear' or "
                 b"'cubic').", name, text)
        return NOT_IMPLEMENTED
    return OK


cdef int _open(resample_arguments_t *work, const char *name, int ndim, const int64_t *shape,
               const value_t *arguments) noexcept nogil:
    """Compute the tables from size, mode, align_corners, antialias and three scales, the last dimension last."""
    cdef resampling_t *r = &work.resampling
    cdef const int64_t *size
    cdef double[3] scale
    cdef int64_t bytes = 0
    cdef char *here
    cdef int i, n, mode, status = integers_argument(name, b"size", &arguments[0], &n, &size)
    work.name, work.memory = name, NULL
    if status == OK:
        status = _mode(name, &arguments[1], &mode)
    if status != OK:
        return status
    if not 1 <= n <= 3 or ndim != n + 2:
        snprintf(message(), MESSAGE, b"%s: input and output must have the same number of spatial dimensions (got input "
                 b"of shape %s and output size %s). One to three spatial dimensions follow batch and channels.", name,
                 list_text(ndim, shape), list_text(n, size))
        return RUNTIME_ERROR
    work.planes, work.large, work.small = shape[0] * shape[1], 1, 1
    for i in range(3):
        r.size[i] = 1 if i < 3 - n else shape[2 + i - (3 - n)]
        r.out[i] = 1 if i < 3 - n else size[i - (3 - n)]
        if not 1 <= r.size[i] < (<int64_t>1 << 31) or not 1 <= r.out[i] < (<int64_t>1 << 31):
            snprintf(message(), MESSAGE, b"%s: input and output sizes should be greater than 0 (got input of shape %s "
                     b"and output size %s).", name, list_text(ndim, shape), list_text(n, size))
            return RUNTIME_ERROR
        work.large *= r.size[i]
        work.small *= r.out[i]
        scale[i] = axis_scale(mode, is_true(&arguments[3]), r.size[i], r.out[i], is_true(&arguments[2]),
                              as_real(&arguments[4 + i]) if arguments[4 + i].kind != NOTHING else 0)
        if not fabs(scale[i]) < 1e9:
            snprintf(message(), MESSAGE, b"%s: scale factor is too small or not a number.", name)
            return RUNTIME_ERROR
        r.axis[i].taps = axis_taps(NEAREST if i < 3 - n else mode, is_true(&arguments[3]), scale[i])
        bytes += r.axis[i].taps * r.out[i] * 16
    work.memory = storage_new(bytes)
    if work.memory == NULL:
        return MEMORY_ERROR
    here = work.memory.data
    for i in range(3):
        r.axis[i].index = <int64_t *>here
        r.axis[i].weight = <double *>(here + r.axis[i].taps * r.out[i] * 8)
        here += r.axis[i].taps * r.out[i] * 16
        fill_axis(&r.axis[i], NEAREST if i < 3 - n else mode, is_true(&arguments[3]), is_true(&arguments[2]),
                  r.size[i], r.out[i], scale[i])
    return OK


cdef void _body(void *context, int64_t begin, int64_t end) noexcept nogil:
    cdef resample_arguments_t *work = <resample_arguments_t *>context
    cdef resampling_t *r = &work.resampling
    cdef int64_t plane, bytes = itemsize(work.dtype)
    cdef char *input
    cdef char *result
    cdef storage_t *memory = storage_new(max(r.size[2], r.out[2]) * bytes)
    if memory == NULL:
        atomic_store(&work.failed, 1)
        return
    for plane in range(begin, end):
        input = work.input + plane * work.large * bytes
        result = work.result + plane * work.small * bytes
        if work.back:
            memset(input, 0, work.large * bytes)
        resample_planes[work.back][work.dtype == FLOAT64](
            r, result if work.back else input, input if work.back else result, memory.data)
    storage_release(memory)


cdef int _read(const char *name, const value_t *value, array_t **array) noexcept nogil:
    cdef int status = array_argument(name, b"input", value, array)
    if status == OK and not is_floating(array[0].dtype):
        snprintf(message(), MESSAGE, b"%s: needs float32 or float64 (got %s). Convert with to() first.", name,
                 dtype_name(array[0].dtype))
        return NOT_IMPLEMENTED
    return status


cdef int _run(resample_arguments_t *work, array_t *source, int ndim, const int64_t *shape, bint back,
              value_t *result) noexcept nogil:
    """Resample a contiguous copy of the source to a new array of that shape."""
    cdef array_t *made = NULL
    cdef array_t *values
    cdef int status = new_array(work.name, source.dtype, ndim, shape, &made)
    if status != OK:
        return status
    values = as_contiguous(source, -1)
    if values == NULL:
        release(made)
        return MEMORY_ERROR
    work.dtype, work.back, work.failed = source.dtype, back, 0
    work.input, work.result = (made.data, values.data) if back else (values.data, made.data)
    if work.planes:
        parallel_for(_body, work, work.planes, rows_per_chunk(work.small, COMPUTED))
    release(values)
    if work.failed:
        release(made)
        return MEMORY_ERROR
    return array_result(with_layout_of_images(made, source), result)


cdef void _result_shape(const resample_arguments_t *work, int ndim, const int64_t *shape,
                        int64_t *result) noexcept nogil:
    cdef int i
    for i in range(ndim):
        result[i] = shape[i] if i < 2 else work.resampling.out[5 - ndim + i - 2]


cdef int resample_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """resample(self, size, mode, align_corners, antialias, scale_depth, scale_height, scale_width)."""
    cdef resample_arguments_t work
    cdef array_t *self
    cdef int64_t[MAX_DIMS] shape
    cdef int status = _read(b"interpolate", &arguments[0], &self)
    if status != OK:
        return status
    status = _open(&work, b"interpolate", self.ndim, self.shape, &arguments[1])
    if status == OK:
        _result_shape(&work, self.ndim, self.shape, shape)
        status = _run(&work, self, self.ndim, shape, False, &results[0])
    if work.memory != NULL:
        storage_release(work.memory)
    return status


cdef int resample_backward_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """resample_backward(grad, shape, size, mode, align_corners, antialias, three scales)."""
    cdef resample_arguments_t work
    cdef array_t *grad
    cdef const int64_t *shape
    cdef int64_t[MAX_DIMS] expected
    cdef int ndim, status = _read(b"resample_backward", &arguments[0], &grad)
    if status == OK:
        status = integers_argument(b"resample_backward", b"shape", &arguments[1], &ndim, &shape)
    if status != OK:
        return status
    status = _open(&work, b"resample_backward", ndim, shape, &arguments[2])
    if status == OK:
        _result_shape(&work, ndim, shape, expected)
        status = check_same_shape(b"resample_backward", b"grad", grad, ndim, expected)
    if status == OK:
        status = _run(&work, grad, ndim, shape, True, &results[0])
    if work.memory != NULL:
        storage_release(work.memory)
    return status


register_kernel("resample", resample_kernel)
register_kernel("resample_backward", resample_backward_kernel)


# ---------------------------------------------------------------------------------------------------------- grid sample

# grid_sample in two steps: the elements and weights of each position; and weighted sums of elements.
#
# Weights are products of polynomials, one per coordinate, of any order of differentiation; sums are linear in weights
# and elements. So the derivatives of both steps are made of the same steps.

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
    void (*grid_taps[2])(const grid_t *g, const void *grid, int64_t begin, int64_t count, int32_t *places,
                         void *weights)
    void (*grid_slopes[2])(const grid_t *g, const void *grid, int64_t begin, int64_t count, int along,
                           const void *given, void *out)
    void (*gather_weighted[2])(const void *images, const int32_t *places, const void *weights, int64_t channels,
                               int64_t size, int64_t taps, int64_t points, void *out)
    void (*scatter_weighted[2])(const void *grad, const int32_t *places, const void *weights, int64_t taps,
                                int64_t points, void *image)
    void (*gather_products[2])(const void *grad, const void *images, const int32_t *places, int64_t channels,
                               int64_t size, int64_t taps, int64_t points, int64_t begin, int64_t count, void *out)

cdef enum:
    MAX_ORDER = 3             # all weights of higher derivatives are zero

# Operands of a kernel; missing arrays are NULL.
ctypedef struct reading_t:
    grid_t grid
    bint double_precision
    int64_t channels
    int64_t size               # elements of a plane of the image
    int64_t taps               # of a position
    int64_t blocks             # of positions, in one image
    int along
    array_t *positions
    array_t *images            # or the result of scatter_weighted
    array_t *places
    array_t *weights
    array_t *grad              # of the sums, or the factor of slopes
    array_t *out


cdef reading_t nothing
memset(&nothing, 0, sizeof(reading_t))


cdef int _floats(const char *name, const value_t *value, int ndim, const char *role, array_t **array) noexcept nogil:
    """Read a floating array, made contiguous; the caller releases it."""
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
    """Read indices in planes of `n` elements; negative ones are skipped."""
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
    """Read the options sizes, mode, padding, align_corners, order."""
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
        grid.order[i] = <int>max(<int64_t>0, min(order[i], <int64_t>MAX_ORDER + 1))
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
    cdef int64_t chunk, image, first, bytes = itemsize(r.positions.dtype), points = r.grid.points
    cdef const char *positions
    for chunk in range(begin, end):
        image, first = chunk // r.blocks, chunk % r.blocks * GRID_BLOCK
        positions = r.positions.data + image * points * r.grid.n * bytes
        if r.grad == NULL:
            grid_taps[r.double_precision](&r.grid, positions, first, min(<int64_t>GRID_BLOCK, points - first),
                                          <int32_t *>r.places.data + image * r.taps * points,
                                          r.out.data + image * r.taps * points * bytes)
        else:
            grid_slopes[r.double_precision](
                &r.grid, positions, first, min(<int64_t>GRID_BLOCK, points - first), r.along,
                r.grad.data + image * points * (r.grid.n if r.along else r.taps) * bytes,
                r.out.data + image * points * (r.taps if r.along else r.grid.n) * bytes)


cdef void _run_taps(reading_t *reading) noexcept nogil:
    cdef int64_t chunks = reading.positions.shape[0] * reading.blocks
    if chunks:
        parallel_for(_taps_body, reading, chunks, rows_per_chunk(GRID_BLOCK * reading.taps, COMPUTED))


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
    """Process some channels, numbered through the batch."""
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
            gather_weighted[r.double_precision](r.images.data + plane * r.size * bytes, places, weights, channels,
                                                r.size, r.taps, points, r.out.data + plane * points * bytes)
        else:
            channels = 1
            scatter_weighted[r.double_precision](r.grad.data + plane * points * bytes, places, weights, r.taps, points,
                                                 r.out.data + plane * r.size * bytes)
        plane += channels


cdef void _products_body(void *context, int64_t begin, int64_t end) noexcept nogil:
    cdef reading_t *r = <reading_t *>context
    cdef int64_t chunk, image, first, bytes = itemsize(r.images.dtype), points = r.grid.points
    for chunk in range(begin, end):
        image, first = chunk // r.blocks, chunk % r.blocks * GRID_BLOCK
        gather_products[r.double_precision](
            r.grad.data + image * r.channels * points * bytes, r.images.data + image * r.channels * r.size * bytes,
            <const int32_t *>r.places.data + image * r.taps * points, r.channels, r.size, r.taps, points, first,
            min(<int64_t>GRID_BLOCK, points - first), r.out.data + image * r.taps * points * bytes)


cdef int _open_sums(const char *name, const value_t *arguments, bint weighted, int64_t size, array_t **source,
                    reading_t *reading) noexcept nogil:
    """Read images or gradients, indices, weights (`weighted`); the size of a plane, -1: that of the images."""
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
        parallel_for(_sums_body, reading, planes, rows_per_chunk(work, COMPUTED))


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
    cdef int64_t chunks
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
        chunks = reading.images.shape[0] * reading.blocks
        if chunks:
            parallel_for(_products_body, &reading, chunks,
                         rows_per_chunk(GRID_BLOCK * reading.taps * reading.channels, COMPUTED))
    return _close(&reading, status, &results[0])


# ------------------------------------------------------------------------------------------------------ whole images

cdef array_t *_merged(array_t *array, int first, int count) noexcept nogil:
    """Return a contiguous array with `count` dimensions merged, three in all."""
    cdef int64_t[3] shape
    cdef int64_t[3] strides
    cdef array_t *whole = as_contiguous(array, -1)
    cdef array_t *view
    cdef int i
    if whole == NULL:
        return NULL
    shape[0] = shape[1] = shape[2] = 1
    for i in range(array.ndim):
        shape[i if i < first else max(first, i - count + 1)] *= array.shape[i]
    strides[2], strides[1], strides[0] = 1, shape[2], shape[1] * shape[2]
    view = array_view(whole, whole.dtype, 3, shape, strides, 0)
    release(whole)
    return view


cdef int sample_grid_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """sample_grid(self, grid, mode, padding, align_corners): grid_taps and gather_weighted in one."""
    cdef array_t *images
    cdef array_t *grid
    cdef value_t[6] taps
    cdef value_t[3] sums           # images, places, weights
    cdef value_t found
    cdef int64_t[3] orders
    cdef int64_t[5] shape
    cdef int64_t[5] strides
    cdef int i, status = array_argument(b"grid_sample", b"input", &arguments[0], &images)
    status = status or array_argument(b"grid_sample", b"grid", &arguments[1], &grid)
    if status != OK:
        return status
    if not 4 <= images.ndim <= 5 or grid.ndim != images.ndim:
        snprintf(message(), MESSAGE, b"grid_sample: input and grid must both be 4D or both 5D (got shapes %s and %s).",
                 shape_text(images), shape_text(grid))
        return RUNTIME_ERROR
    memset(taps, 0, sizeof(taps))
    memset(sums, 0, sizeof(sums))
    memset(orders, 0, sizeof(orders))
    set_array(&taps[0], _merged(grid, 1, grid.ndim - 2))
    set_array(&sums[0], _merged(images, 2, images.ndim - 2))
    taps[1].kind, taps[1].count, taps[1].of.integers = INTEGERS, images.ndim - 2, images.shape + 2
    taps[2], taps[3], taps[4] = arguments[2], arguments[3], arguments[4]
    taps[5].kind, taps[5].count, taps[5].of.integers = INTEGERS, 3, orders
    status = MEMORY_ERROR
    if taps[0].of.array != NULL and sums[0].of.array != NULL:
        status = grid_taps_kernel(taps, &sums[1])
    if status == OK:
        status = gather_weighted_kernel(sums, &found)
    if status == OK:
        for i in range(images.ndim - 1, -1, -1):
            shape[i] = images.shape[i] if i < 2 else grid.shape[i - 1]
            strides[i] = 1 if i == images.ndim - 1 else strides[i + 1] * shape[i + 1]
        status = view_result(found.of.array, images.ndim, shape, strides, 0, &results[0])
        release(found.of.array)
    for i in range(3):
        release(sums[i].of.array)
    release(taps[0].of.array)
    return status


register_kernel("sample_grid", sample_grid_kernel)
register_kernel("grid_taps", grid_taps_kernel)
register_kernel("grid_taps_backward", grid_taps_backward_kernel)
register_kernel("grid_taps_along", grid_taps_along_kernel)
register_kernel("gather_weighted", gather_weighted_kernel)
register_kernel("scatter_weighted", scatter_weighted_kernel)
register_kernel("gather_products", gather_products_kernel)
