"""
Convolutions: of images with kernels, and the gradients of both, which are convolutions of each other.

Patches of the input become columns of a matrix (see convolution_columns.h), a tile of positions and channels at a
time; each tile is one single-threaded call of BLAS. So the memory for columns is a few hundred KB for each thread,
whatever the batch. Where an image has few positions, a tile takes several images. Tiles depend on the problem alone,
and gradients of kernels are summed over parts of the batch in a fixed order: the bits are the same for any number of
threads.
"""

from libc.stdint cimport int64_t
from libc.stdio cimport snprintf
from libc.string cimport memcpy, memset
from cygrad._core.arguments cimport (
    array_argument, array_result, check_same_shape, integers_argument, list_text, new_array, new_zeros,
)
from cygrad._core.array cimport MAX_DIMS, array_t, release, shape_text
from cygrad._core.atomic cimport atomic_store
from cygrad._core.blas cimport BLAS_MAX, gemm, scalar_t
from cygrad._core.convolution_geometry cimport (
    fit_shapes, follow, gather_columns, geometry_t, output_shape, read_movement, scatter_columns, scatter_kind,
)
from cygrad._core.copy cimport as_contiguous
from cygrad._core.dtype cimport (
    BOOL, COMPLEX64, FLOAT32, FLOAT64, dtype_name, is_complex, is_differentiable, itemsize,
)
from cygrad._core.errors cimport MEMORY_ERROR, MESSAGE, NOT_IMPLEMENTED, OK, RUNTIME_ERROR, message
from cygrad._core.parallel cimport parallel_for
from cygrad._core.plain_products cimport multiply_integers
from cygrad._core.storage cimport storage_new, storage_release, storage_t
from cygrad._core.value cimport NOTHING, register_kernel, value_t

cdef enum:
    WIDTH = 256                # positions of a tile, if there are as many
    COLUMNS = 1 << 19          # bytes for the columns of a tile
    LARGEST_COLUMNS = 1 << 22  # ... if those of one channel are more
    PIECE_WORK = 1 << 18       # multiplications worth a piece of a parallel loop
    PARTS = 16                 # pieces into which the gradient of a kernel is cut, if it is worth while
    PART_WORK = 1 << 20        # ... multiplications of each
    PART_BYTES = 1 << 26       # ... and memory of all their sums

ctypedef struct work_t:
    geometry_t geometry
    int dtype
    int64_t bytes              # of an element
    char *input
    char *weight               # contiguous
    char *output               # contiguous: the result, or its gradient
    char *bias                 # contiguous, or NULL
    int64_t rows               # of all columns of a group: channels and taps
    int64_t images             # of a tile
    int64_t width              # positions of an image in a tile
    int64_t blocks             # of images
    int64_t tiles              # of positions
    int64_t channels           # of a chunk of columns
    int64_t chunks
    int64_t parts              # of the batch, for the gradient of the kernel
    int64_t part_images
    char *sums                 # of the parts
    bint plain                 # kernels of one tap: images are columns already
    int64_t failed             # atomic: a thread had no memory


cdef const char *_name(int ndim) noexcept nogil:
    return b"conv1d" if ndim == 3 else b"conv2d" if ndim == 4 else b"conv3d"


# ---------------------------------------------------------------- arguments

cdef int _check_images(const char *operation, const char *name, const array_t *array) noexcept nogil:
    """Batches of images of one to three dimensions, of a dtype that can be multiplied."""
    if not 3 <= array.ndim <= 5:
        snprintf(message(), MESSAGE, b"%s: expected %s of shape (batch, channels, ...) with one to three more "
                 b"dimensions (got shape %s).", operation, name, shape_text(array))
        return RUNTIME_ERROR
    if array.dtype == BOOL:
        snprintf(message(), MESSAGE, b"%s: not implemented for bool. Convert with to() first.", operation)
        return NOT_IMPLEMENTED
    return OK


cdef int _check_dtype(const char *operation, const char *first, const array_t *array, const char *name,
                      const array_t *other) noexcept nogil:
    if array.dtype != other.dtype:
        snprintf(message(), MESSAGE, b"%s: %s type (%s) and %s type (%s) should be the same. Convert one of them.",
                 operation, first, dtype_name(array.dtype), name, dtype_name(other.dtype))
        return RUNTIME_ERROR
    return OK


cdef int _read_bias(work_t *work, const char *operation, const value_t *value, const array_t *like, int64_t channels,
                    array_t **bias) noexcept nogil:
    """The bias as a contiguous array, or NULL."""
    cdef array_t *array
    cdef int status
    bias[0] = NULL
    work.bias = NULL
    if value.kind == NOTHING:
        return OK
    status = array_argument(operation, b"bias", value, &array)
    if status == OK:
        status = _check_dtype(operation, b"input", like, b"bias", array)
    if status == OK and (array.ndim != 1 or array.shape[0] != channels):
        snprintf(message(), MESSAGE, b"%s: expected bias to be 1-dimensional with %lld elements, one for each output "
                 b"channel (got bias of size %s).", operation, <long long>channels, shape_text(array))
        status = RUNTIME_ERROR
    if status != OK:
        return status
    bias[0] = as_contiguous(array, -1)
    if bias[0] == NULL:
        return MEMORY_ERROR
    work.bias = bias[0].data
    return OK


cdef void _plan(work_t *work, const array_t *input) noexcept nogil:
    """Tiles of positions and chunks of channels."""
    cdef geometry_t *g = &work.geometry
    cdef int64_t room, wide, dense = 1
    cdef int i
    work.bytes = itemsize(work.dtype)
    work.rows = g.in_channels * g.taps
    work.failed = 0
    work.images = 1
    # Very large kernels have narrow tiles: columns of one channel are made at a time, if not of more.
    wide = max(1, min(<int64_t>WIDTH, LARGEST_COLUMNS // (work.bytes * g.taps)))
    if g.positions < wide // 2:
        # Few positions: several images together, but no fewer blocks of them than there may be threads.
        work.images = max(1, min(wide // g.positions, g.batch // 8))
    work.tiles = max(1, (g.positions + wide // 2) // wide)
    work.width = (g.positions + work.tiles - 1) // work.tiles
    if work.width > g.out[2] and wide == WIDTH:
        work.width = (work.width + g.out[2] - 1) // g.out[2] * g.out[2]       # whole lines
    work.tiles = (g.positions + work.width - 1) // work.width
    work.blocks = (g.batch + work.images - 1) // work.images
    room = COLUMNS // (work.bytes * work.width * work.images * g.taps)
    work.chunks = (g.in_channels + max(room, 1) - 1) // max(room, 1)
    work.channels = (g.in_channels + max(work.chunks, 1) - 1) // max(work.chunks, 1)
    follow(g, input)
    work.plain = g.taps == 1 and work.images == 1
    for i in range(2, -1, -1):
        work.plain = (work.plain and g.stride[i] == 1 and g.padding[i] == 0
                      and (g.size[i] == 1 or g.step[i] == dense))
        dense *= g.size[i]
    work.plain = work.plain and (g.in_channels == 1 or g.positions <= g.channel_step <= BLAS_MAX)
    if work.plain:
        work.chunks, work.channels = 1, g.in_channels


cdef int64_t _grain(int64_t work) noexcept nogil:
    """How many tasks of so many multiplications make a piece."""
    return max(1, PIECE_WORK // max(work, 1))


cdef void _multiply(work_t *work, bint transpose_a, bint transpose_b, int64_t m, int64_t n, int64_t k,
                    const char *a, int64_t lda, const char *b, int64_t ldb, bint add, char *c,
                    int64_t ldc) noexcept nogil:
    """c = op(a) @ op(b), added to what is there or not. Integers take no transposed b."""
    cdef scalar_t one, beta
    one.real, one.imag, beta.real, beta.imag = 1, 0, add, 0
    if is_differentiable(work.dtype):
        gemm(work.dtype, transpose_a, transpose_b, m, n, k, one, a, lda, b, ldb, beta, c, ldc)
    else:
        multiply_integers(work.dtype, m, n, k, 1, a, 1 if transpose_a else lda, lda if transpose_a else 1, b, ldb,
                          add, c, ldc)


cdef void _fill(work_t *work, char *target, int64_t channel, int64_t channels, int64_t count,
                int64_t leading) noexcept nogil:
    """Rows of `count` elements: the bias of each channel, or zeros."""
    cdef int64_t i, row, bytes = work.bytes
    cdef char *start
    for row in range(channels):
        start = target + row * leading * bytes
        if work.bias == NULL:
            memset(start, 0, count * bytes)
        elif work.dtype == FLOAT32:
            for i in range(count):
                (<float *>start)[i] = (<float *>work.bias)[channel + row]
        elif work.dtype == FLOAT64 or work.dtype == COMPLEX64:
            for i in range(count):
                (<double *>start)[i] = (<double *>work.bias)[channel + row]
        else:
            for i in range(count):
                memcpy(start + i * bytes, work.bias + (channel + row) * bytes, bytes)


cdef void _move_output(work_t *work, bint back, int64_t image, int64_t count, int64_t group, int64_t p0,
                       int64_t width, char *buffer) noexcept nogil:
    """A tile of the output of several images: from a matrix with a row for each channel, or into one."""
    cdef geometry_t *g = &work.geometry
    cdef int64_t i, channel, bytes = work.bytes
    cdef char *here
    cdef char *there
    for channel in range(g.out_channels):
        for i in range(count):
            here = buffer + (channel * count + i) * width * bytes
            there = work.output + ((((image + i) * g.groups + group) * g.out_channels + channel) * g.positions
                                   + p0) * bytes
            if back:
                memcpy(here, there, width * bytes)
            else:
                memcpy(there, here, width * bytes)


cdef const char *_columns(work_t *work, int64_t image, int64_t count, int64_t group, int64_t c0, int64_t c1,
                          int64_t p0, int64_t p1, char *buffer, int64_t *leading) noexcept nogil:
    """Columns of some channels of one group: in the buffer, or where they are already."""
    cdef geometry_t *g = &work.geometry
    cdef const char *source = work.input + (image * g.batch_step
                                            + group * g.in_channels * g.channel_step) * work.bytes
    cdef int64_t i
    if work.plain:
        leading[0] = g.channel_step if g.in_channels > 1 else g.positions
        return source + (c0 * g.channel_step + p0) * work.bytes
    leading[0] = count * (p1 - p0)
    for i in range(count):
        gather_columns(g, work.bytes, source + i * g.batch_step * work.bytes, c0, c1, p0, p1,
                       buffer + i * (p1 - p0) * work.bytes, leading[0])
    return buffer


cdef int64_t _column_bytes(work_t *work) noexcept nogil:
    """Memory for the columns of a tile."""
    return 0 if work.plain else work.channels * work.geometry.taps * work.width * work.images * work.bytes


cdef int64_t _output_bytes(work_t *work) noexcept nogil:
    """Memory for a tile of the output of several images."""
    return 0 if work.images == 1 else work.geometry.out_channels * work.width * work.images * work.bytes


# ---------------------------------------------------------------- forward

cdef void _forward_tile(work_t *work, int64_t task, char *columns, char *buffer) noexcept nogil:
    cdef geometry_t *g = &work.geometry
    cdef int64_t group = task // work.tiles % g.groups, image = task // work.tiles // g.groups * work.images
    cdef int64_t p0 = task % work.tiles * work.width, p1 = min(p0 + work.width, g.positions)
    cdef int64_t count = min(work.images, g.batch - image), width = count * (p1 - p0), bytes = work.bytes
    cdef int64_t c0 = 0, c1, leading, step = g.positions
    cdef char *target = (work.output + ((image * g.groups + group) * g.out_channels * g.positions + p0) * bytes)
    cdef const char *patches
    if work.images > 1:
        target, step = buffer, width
    if work.bias != NULL or work.rows == 0:
        _fill(work, target, group * g.out_channels, g.out_channels, width, step)
    while c0 < g.in_channels:
        c1 = min(c0 + work.channels, g.in_channels)
        patches = _columns(work, image, count, group, c0, c1, p0, p1, columns, &leading)
        _multiply(work, False, False, g.out_channels, width, (c1 - c0) * g.taps,
                  work.weight + (group * g.out_channels * work.rows + c0 * g.taps) * bytes, work.rows,
                  patches, leading, c0 > 0 or work.bias != NULL, target, step)
        c0 = c1
    if work.images > 1:
        _move_output(work, False, image, count, group, p0, p1 - p0, buffer)


cdef void _forward_body(void *context, int64_t begin, int64_t end) noexcept nogil:
    cdef work_t *work = <work_t *>context
    cdef int64_t task, columns = _column_bytes(work)
    cdef storage_t *memory = storage_new(columns + _output_bytes(work))
    if memory == NULL:
        atomic_store(&work.failed, 1)
        return
    for task in range(begin, end):
        _forward_tile(work, task, memory.data, memory.data + columns)
    storage_release(memory)


cdef int convolution_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """convolution(self, weight, bias, stride, padding, dilation, groups)."""
    cdef work_t work
    cdef geometry_t *g = &work.geometry
    cdef array_t *input
    cdef array_t *weight
    cdef array_t *bias = NULL
    cdef array_t *result = NULL
    cdef int64_t shape[MAX_DIMS]
    cdef const char *name
    cdef int status = array_argument(b"convolution", b"input", &arguments[0], &input)
    if status == OK:
        status = _check_images(b"convolution", b"input", input)
    if status != OK:
        return status
    name = _name(input.ndim)
    status = array_argument(name, b"weight", &arguments[1], &weight)
    if status == OK:
        status = read_movement(name, input.ndim - 2, &arguments[3], True, g)
    if status == OK:
        status = fit_shapes(name, input.ndim, input.shape, weight.ndim, weight.shape, g)
    if status == OK:
        status = _check_dtype(name, b"input", input, b"weight", weight)
    if status == OK:
        status = _read_bias(&work, name, &arguments[2], input, g.groups * g.out_channels, &bias)
    if status == OK:
        status = new_array(name, input.dtype, output_shape(g, input.ndim - 2, shape), shape, &result)
    weight = as_contiguous(weight, -1) if status == OK else NULL
    if status == OK and weight == NULL:
        status = MEMORY_ERROR
    if status == OK and result.size:
        work.dtype = input.dtype
        work.input, work.weight, work.output = input.data, weight.data, result.data
        _plan(&work, input)
        parallel_for(_forward_body, &work, work.blocks * g.groups * work.tiles,
                     _grain(work.rows * g.out_channels * work.width * work.images))
        status = MEMORY_ERROR if work.failed else OK
    release(weight)
    release(bias)
    if status != OK:
        release(result)
        return status
    return array_result(result, &results[0])


# ---------------------------------------------------------------- gradient of the input

cdef void _input_task(work_t *work, int64_t task, char *columns, char *buffer) noexcept nogil:
    """A chunk of channels of one block of images, position by position."""
    cdef geometry_t *g = &work.geometry
    cdef int64_t chunk = task % work.chunks, group = task // work.chunks % g.groups
    cdef int64_t image = task // work.chunks // g.groups * work.images, bytes = work.bytes
    cdef int64_t c0 = chunk * work.channels, c1 = min(c0 + work.channels, g.in_channels)
    cdef int64_t count = min(work.images, g.batch - image), rows = (c1 - c0) * g.taps
    cdef int64_t i, p0 = 0, p1, width, leading
    cdef char *target = work.input + (image * g.batch_step + group * g.in_channels * g.channel_step) * bytes
    cdef const char *weight = work.weight + (group * g.out_channels * work.rows + c0 * g.taps) * bytes
    cdef const char *grad
    for i in range(0 if work.plain and work.bias == NULL else count):
        _fill(work, target + (i * g.batch_step + c0 * g.channel_step) * bytes, group * g.in_channels + c0, c1 - c0,
              g.channel_step, g.channel_step)
    while p0 < g.positions:
        p1 = min(p0 + work.width, g.positions)
        width = count * (p1 - p0)
        grad = work.output + ((image * g.groups + group) * g.out_channels * g.positions + p0) * bytes
        leading = g.positions
        if work.images > 1:
            _move_output(work, True, image, count, group, p0, p1 - p0, buffer)
            grad, leading = buffer, width
        if work.plain:
            _multiply(work, True, False, rows, width, g.out_channels, weight, work.rows, grad, leading,
                      work.bias != NULL, target + (c0 * g.channel_step + p0) * bytes, g.channel_step)
        else:
            _multiply(work, True, False, rows, width, g.out_channels, weight, work.rows, grad, leading, False,
                      columns, width)
            for i in range(count):
                scatter_columns(g, scatter_kind(work.dtype), target + i * g.batch_step * bytes, c0, c1, p0, p1,
                                columns + i * (p1 - p0) * bytes, width)
        p0 = p1


cdef void _input_body(void *context, int64_t begin, int64_t end) noexcept nogil:
    cdef work_t *work = <work_t *>context
    cdef int64_t task, columns = _column_bytes(work)
    cdef storage_t *memory = storage_new(columns + _output_bytes(work))
    if memory == NULL:
        atomic_store(&work.failed, 1)
        return
    for task in range(begin, end):
        _input_task(work, task, memory.data, memory.data + columns)
    storage_release(memory)


cdef int convolution_input_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """convolution_input(grad, weight, bias, shape, stride, padding, dilation, groups)."""
    cdef work_t work
    cdef geometry_t *g = &work.geometry
    cdef array_t *grad
    cdef array_t *weight
    cdef array_t *bias = NULL
    cdef array_t *result = NULL
    cdef const int64_t *given
    cdef int64_t shape[MAX_DIMS]
    cdef const char *name = b"convolution_input"
    cdef int ndim, status = array_argument(name, b"grad", &arguments[0], &grad)
    if status == OK:
        status = _check_images(name, b"grad", grad)
    if status == OK:
        status = array_argument(name, b"weight", &arguments[1], &weight)
    if status == OK:
        status = integers_argument(name, b"shape", &arguments[3], &ndim, &given)
    if status == OK and ndim != grad.ndim:
        snprintf(message(), MESSAGE, b"%s: shape must have as many dimensions as grad (got %s for grad of shape %s).",
                 name, list_text(ndim, given), shape_text(grad))
        status = RUNTIME_ERROR
    if status == OK and scatter_kind(grad.dtype) < 0:
        snprintf(message(), MESSAGE, b"%s: not implemented for %s. Convert with to() first.", name,
                 dtype_name(grad.dtype))
        status = NOT_IMPLEMENTED
    if status == OK:
        status = read_movement(name, ndim - 2, &arguments[4], True, g)
    if status == OK:
        status = fit_shapes(name, ndim, given, weight.ndim, weight.shape, g)
    if status == OK:
        status = check_same_shape(name, b"grad", grad, output_shape(g, ndim - 2, shape), shape)
    if status == OK:
        status = _check_dtype(name, b"grad", grad, b"weight", weight)
    if status == OK:
        status = _read_bias(&work, name, &arguments[2], grad, g.groups * g.in_channels, &bias)
    if status == OK:
        status = new_array(name, grad.dtype, ndim, given, &result)
    weight = as_contiguous(weight, -1) if status == OK else NULL
    grad = as_contiguous(grad, -1) if status == OK else NULL
    if status == OK and (weight == NULL or grad == NULL):
        status = MEMORY_ERROR
    if status == OK and result.size:
        work.dtype = grad.dtype
        work.input, work.weight, work.output = result.data, weight.data, grad.data
        _plan(&work, result)
        parallel_for(_input_body, &work, work.blocks * g.groups * work.chunks,
                     _grain(work.channels * g.taps * g.out_channels * g.positions * work.images))
        status = MEMORY_ERROR if work.failed else OK
    release(weight)
    release(grad)
    release(bias)
    if status != OK:
        release(result)
        return status
    return array_result(result, &results[0])


# ---------------------------------------------------------------- gradient of the kernel

cdef void _weight_task(work_t *work, int64_t task, char *columns, char *buffer) noexcept nogil:
    """A chunk of channels of the gradient, summed over a part of the batch."""
    cdef geometry_t *g = &work.geometry
    cdef int64_t chunk = task % work.chunks, group = task // work.chunks % g.groups
    cdef int64_t part = task // work.chunks // g.groups, bytes = work.bytes
    cdef int64_t c0 = chunk * work.channels, c1 = min(c0 + work.channels, g.in_channels)
    cdef int64_t image = part * work.part_images, last = min(image + work.part_images, g.batch)
    cdef int64_t p0, p1, count, step, leading
    cdef char *target = work.sums + (part * g.groups * g.out_channels * work.rows
                                     + group * g.out_channels * work.rows + c0 * g.taps) * bytes
    cdef const char *grad
    cdef const char *patches
    cdef bint add = False
    while image < last:
        count = min(work.images, last - image)
        p0 = 0
        while p0 < g.positions:
            p1 = min(p0 + work.width, g.positions)
            grad = work.output + ((image * g.groups + group) * g.out_channels * g.positions + p0) * bytes
            step = g.positions
            if work.images > 1:
                _move_output(work, True, image, count, group, p0, p1 - p0, buffer)
                grad, step = buffer, count * (p1 - p0)
            patches = _columns(work, image, count, group, c0, c1, p0, p1, columns, &leading)
            _multiply(work, False, True, g.out_channels, (c1 - c0) * g.taps, count * (p1 - p0), grad, step,
                      patches, leading, add, target, work.rows)
            add = True
            p0 = p1
        image += count


cdef void _weight_body(void *context, int64_t begin, int64_t end) noexcept nogil:
    cdef work_t *work = <work_t *>context
    cdef int64_t task, columns = _column_bytes(work)
    cdef storage_t *memory = storage_new(columns + _output_bytes(work))
    if memory == NULL:
        atomic_store(&work.failed, 1)
        return
    for task in range(begin, end):
        _weight_task(work, task, memory.data, memory.data + columns)
    storage_release(memory)


cdef void _sum_parts(void *context, int64_t begin, int64_t end) noexcept nogil:
    """Real numbers [begin, end) of all sums but the first are added to the first, in order."""
    cdef work_t *work = <work_t *>context
    cdef int64_t part, i, n = work.geometry.groups * work.geometry.out_channels * work.rows
    cdef bint single = work.dtype == FLOAT32 or work.dtype == COMPLEX64
    n *= 2 if is_complex(work.dtype) else 1
    for part in range(1, work.parts):
        if single:
            for i in range(begin, end):
                (<float *>work.sums)[i] += (<float *>work.sums)[part * n + i]
        else:
            for i in range(begin, end):
                (<double *>work.sums)[i] += (<double *>work.sums)[part * n + i]


cdef void _plan_parts(work_t *work) noexcept nogil:
    """How the batch is cut: into as many parts as are worth while, if chunks of channels are not enough."""
    cdef geometry_t *g = &work.geometry
    cdef int64_t size = g.groups * g.out_channels * work.rows
    cdef int64_t parts = PARTS // (g.groups * work.chunks)
    parts = min(parts, size * g.positions * g.batch // PART_WORK)
    parts = max(1, min(parts, PART_BYTES // max(size * work.bytes, 1)))
    work.part_images = (work.blocks + parts - 1) // parts * work.images
    work.parts = (g.batch + work.part_images - 1) // work.part_images


cdef int _sum_over_batch(work_t *work, array_t *result) noexcept nogil:
    """The gradient, part by part; the sum of the first part becomes the result."""
    cdef geometry_t *g = &work.geometry
    cdef int64_t numbers = result.size * (2 if is_complex(work.dtype) else 1)
    cdef storage_t *memory = NULL
    _plan_parts(work)
    work.sums = result.data
    if work.parts > 1:
        memory = storage_new(work.parts * result.size * work.bytes)
        if memory == NULL:
            return MEMORY_ERROR
        work.sums = memory.data
    parallel_for(_weight_body, work, work.parts * g.groups * work.chunks,
                 _grain(work.channels * g.taps * g.out_channels * g.positions * work.part_images))
    if work.parts > 1:
        parallel_for(_sum_parts, work, numbers, 1 << 15)
        memcpy(result.data, work.sums, result.size * work.bytes)
        storage_release(memory)
    return MEMORY_ERROR if work.failed else OK


cdef int convolution_weight_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """convolution_weight(grad, input, shape, stride, padding, dilation, groups)."""
    cdef work_t work
    cdef geometry_t *g = &work.geometry
    cdef array_t *grad
    cdef array_t *input
    cdef array_t *result = NULL
    cdef const int64_t *given
    cdef int64_t shape[MAX_DIMS]
    cdef const char *name = b"convolution_weight"
    cdef int ndim, status = array_argument(name, b"grad", &arguments[0], &grad)
    if status == OK:
        status = array_argument(name, b"input", &arguments[1], &input)
    if status == OK:
        status = _check_images(name, b"input", input)
    if status == OK and not is_differentiable(input.dtype):
        snprintf(message(), MESSAGE, b"%s: not implemented for %s. Convert with to() first.", name,
                 dtype_name(input.dtype))
        status = NOT_IMPLEMENTED
    if status == OK:
        status = integers_argument(name, b"shape", &arguments[2], &ndim, &given)
    if status == OK:
        status = read_movement(name, input.ndim - 2, &arguments[3], True, g)
    if status == OK:
        status = fit_shapes(name, input.ndim, input.shape, ndim, given, g)
    if status == OK:
        status = check_same_shape(name, b"grad", grad, output_shape(g, ndim - 2, shape), shape)
    if status == OK:
        status = _check_dtype(name, b"input", input, b"grad", grad)
    if status == OK:
        if input.shape[0]:
            status = new_array(name, input.dtype, ndim, given, &result)
        else:
            status = new_zeros(name, input.dtype, ndim, given, &result)
    grad = as_contiguous(grad, -1) if status == OK else NULL
    if status == OK and grad == NULL:
        status = MEMORY_ERROR
    if status == OK and result.size and g.batch:
        work.dtype = input.dtype
        work.input, work.output, work.bias = input.data, grad.data, NULL
        _plan(&work, input)
        status = _sum_over_batch(&work, result)
    release(grad)
    if status != OK:
        release(result)
        return status
    return array_result(result, &results[0])


register_kernel("convolution", convolution_kernel)
register_kernel("convolution_input", convolution_input_kernel)
register_kernel("convolution_weight", convolution_weight_kernel)
