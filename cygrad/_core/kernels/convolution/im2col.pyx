"""im2col and its transpose col2im, and convolutions as matrix products with the columns."""

from libc.stdint cimport int64_t
from libc.stdio cimport snprintf
from libc.string cimport memcpy, memset
from cygrad._core.arrays.array cimport array_t, register_kernel, release, shape_text, value_t
from cygrad._core.arrays.dtype cimport COMPLEX64, FLOAT32, FLOAT64, dtype_name, is_complex, is_differentiable, itemsize
from cygrad._core.elementwise.copying cimport as_contiguous
from cygrad._core.kernels.arguments cimport array_argument, array_result, new_array
from cygrad._core.kernels.convolution.direct cimport (
    PARTS, PART_BYTES, PART_WORK, fit_output, follow, gather_columns, geometry_t, problem_t, read_movement,
    read_sizes, scatter_columns, scatter_kind,
)
from cygrad._core.kernels.linalg.blas cimport BLAS_MAX, blas_scalar_t, gemm
from cygrad._core.kernels.linalg.matmul cimport multiply_integers
from cygrad._core.kernels.linalg.product_blocks cimport WORKSPACE_BYTES, multiply
from cygrad._core.memory.atomic cimport atomic_store
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, NOT_IMPLEMENTED, OK, RUNTIME_ERROR, message
from cygrad._core.memory.storage cimport storage_new, storage_release, storage_t
from cygrad._core.threads.parallel cimport grain, parallel_for, product_grain


# -------------------------------------------------------------------------------------------------- convolution patches

cdef enum:
    COST = 2              # additions that an element of the columns costs

ctypedef struct patches_t:
    geometry_t geometry
    int dtype
    bint back                  # col2im
    char *images
    char *columns              # contiguous


cdef void _body(void *context, int64_t begin, int64_t end) noexcept nogil:
    """Gather or scatter some channels, numbered through the batch."""
    cdef patches_t *work = <patches_t *>context
    cdef geometry_t *g = &work.geometry
    cdef int64_t bytes = itemsize(work.dtype), item, image, channel
    cdef char *source
    cdef char *columns
    for item in range(begin, end):
        image, channel = item // g.in_channels, item % g.in_channels
        source = work.images + image * g.batch_step * bytes
        columns = work.columns + item * g.taps * g.positions * bytes
        if work.back:
            memset(source + channel * g.channel_step * bytes, 0, g.size[1] * g.size[2] * bytes)
            scatter_columns(g, scatter_kind(work.dtype), source, channel, channel + 1, 0, g.positions, columns,
                            g.positions)
        else:
            gather_columns(g, bytes, source, channel, channel + 1, 0, g.positions, columns, g.positions)


cdef void _run(patches_t *work, array_t *images, array_t *columns, bint back) noexcept nogil:
    cdef geometry_t *g = &work.geometry
    work.dtype, work.back = images.dtype, back
    work.images, work.columns = images.data, columns.data
    follow(g, images)
    parallel_for(_body, work, g.batch * g.in_channels, grain(COST * g.taps * g.positions))


cdef int _read(const char *name, const value_t *sizes, geometry_t *geometry) noexcept nogil:
    """Read kernel_size, dilation, padding, stride."""
    cdef value_t[3] movement
    cdef int status
    movement[0], movement[1], movement[2] = sizes[3], sizes[2], sizes[1]
    status = read_sizes(name, b"kernel_size", &sizes[0], 2, 1, 1, geometry.kernel)
    return status if status != OK else read_movement(name, 2, movement, False, geometry)


cdef int im2col_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """im2col(self, kernel_size, dilation, padding, stride): a batch of images."""
    cdef patches_t work
    cdef geometry_t *g = &work.geometry
    cdef array_t *self
    cdef array_t *result = NULL
    cdef int64_t[3] shape
    cdef int status = array_argument(b"unfold", b"input", &arguments[0], &self)
    if status == OK and (self.ndim != 4 or (self.shape[1] == 0 or self.shape[2] == 0 or self.shape[3] == 0)):
        snprintf(message(), MESSAGE, b"unfold: expected 3D (unbatched) or 4D (batched) input with non-zero sizes "
                 b"except for the batch (got shape %s).", shape_text(self))
        return RUNTIME_ERROR
    if status == OK:
        status = _read(b"unfold", &arguments[1], g)
    if status != OK:
        return status
    g.batch, g.in_channels = self.shape[0], self.shape[1]
    g.size[0], g.size[1], g.size[2] = 1, self.shape[2], self.shape[3]
    status = fit_output(b"unfold", 2, g)
    if status == OK:
        shape[0], shape[1], shape[2] = g.batch, g.in_channels * g.taps, g.positions
        status = new_array(b"unfold", self.dtype, 3, shape, &result)
    if status != OK:
        return status
    if result.size:
        _run(&work, self, result, False)
    return array_result(result, &results[0])


cdef int col2im_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """col2im(self, output_size, kernel_size, dilation, padding, stride): a batch of matrices."""
    cdef patches_t work
    cdef geometry_t *g = &work.geometry
    cdef array_t *self
    cdef array_t *columns
    cdef array_t *result = NULL
    cdef int64_t[4] shape
    cdef int status = array_argument(b"fold", b"input", &arguments[0], &self)
    if status == OK and (self.ndim != 3 or self.shape[1] == 0 or self.shape[2] == 0):
        snprintf(message(), MESSAGE, b"fold: expected 2D (unbatched) or 3D (batched) input with non-zero sizes except "
                 b"for the batch (got shape %s).", shape_text(self))
        return RUNTIME_ERROR
    if status == OK and scatter_kind(self.dtype) < 0:
        snprintf(message(), MESSAGE, b"fold: not implemented for %s. Convert with to() first.",
                 dtype_name(self.dtype))
        return NOT_IMPLEMENTED
    if status == OK:
        status = read_sizes(b"fold", b"output_size", &arguments[1], 2, 1, 1, g.size)
    if status == OK:
        status = _read(b"fold", &arguments[2], g)
    if status == OK:
        status = fit_output(b"fold", 2, g)
    if status == OK and (self.shape[1] % g.taps or self.shape[2] != g.positions):
        snprintf(message(), MESSAGE, b"fold: the input does not match the sizes (got shape %s, expected a number of "
                 b"rows divisible by the %lld elements of a patch, and %lld columns, one for each patch).",
                 shape_text(self), <long long>g.taps, <long long>g.positions)
        status = RUNTIME_ERROR
    if status == OK:
        g.batch, g.in_channels = self.shape[0], self.shape[1] // g.taps
        shape[0], shape[1], shape[2], shape[3] = g.batch, g.in_channels, g.size[1], g.size[2]
        status = new_array(b"fold", self.dtype, 4, shape, &result)
    if status != OK:
        return status
    columns = as_contiguous(self, -1)
    if columns == NULL:
        release(result)
        return MEMORY_ERROR
    if result.size:
        _run(&work, result, columns, True)
    release(columns)
    return array_result(result, &results[0])


register_kernel("im2col", im2col_kernel)
register_kernel("col2im", col2im_kernel)


# ------------------------------------------------------------------------------------------------- convolution products

# Convolutions as products of matrices.
#
# Patches become columns of a matrix (convolution_columns.h), a tile of positions and channels at a time, which takes a
# few hundred KB per thread. Each tile is one product on one thread: in register blocks without packing for float32 and
# float64 (product_blocks.h), else by BLAS. Small images share a tile. Tiles depend only on the problem, and weight
# gradients are summed over parts of the batch in order, so results are bit-identical for any number of threads.

cdef extern from "simd/word_moves.h" nogil:
    void transpose_words(const char *source, int64_t source_step, char *out, int64_t out_step, int64_t rows,
                         int64_t columns)
    void transpose_doubles(const char *source, int64_t source_step, char *out, int64_t out_step, int64_t rows,
                           int64_t columns)

cdef enum:
    WIDTH = 256                # positions of a tile, at most
    COLUMNS = 1 << 19          # bytes for the columns of a tile
    LARGEST_COLUMNS = 1 << 22  # ... if those of one channel are more
    TASKS = 8                  # tasks for threads, if images or chunks suffice
    MIN_CHUNK = 64           # channels
    FAR = 1 << 12              # bytes between rows of kernels
    MIN_ROWS = 32            # of columns: from there on outputs are worth transposing,
    MIN_CHANNELS = 16        # ... as many channels as a vector has lanes,
    MIN_POSITIONS = 256      # ... and sums of at least that many products

# Run one task, with memory for columns, for moved results, and for products in blocks.
ctypedef void (*tile_task_t)(tiling_t *work, int64_t task, char *columns, char *buffer, char *workspace) noexcept nogil

ctypedef struct tiling_t:
    problem_t *problem
    int64_t bytes              # of an element
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
    bint in_blocks             # float32 and float64: products without packing
    bint transposed                # ... and sums of the weight gradient have contiguous output channels
    bint plain                 # one tap, no stride or padding: images are columns already
    int64_t failed             # atomic: a thread had no memory
    tile_task_t task           # the function to run


cdef void _plan(tiling_t *work, problem_t *problem, tile_task_t task, bint back) noexcept nogil:
    """Choose tiles of positions and chunks of channels, which are separate tasks for the direction `back`."""
    cdef geometry_t *g = &problem.geometry
    cdef int64_t workspace, wide, dense = 1
    cdef int i
    work.problem, work.bytes = problem, problem.bytes
    work.rows = g.in_channels * g.taps
    work.failed = 0
    work.task = task
    work.in_blocks = problem.dtype == FLOAT32 or problem.dtype == FLOAT64
    work.transposed = False
    if task == _input_task:
        # Kernels are read across their rows, which must not evict each other from the L1 cache.
        work.in_blocks = work.in_blocks and work.rows >= MIN_ROWS and work.rows * work.bytes < FAR
    elif task == _weight_task:
        work.transposed = (work.in_blocks and work.rows >= MIN_ROWS and g.out_channels >= MIN_CHANNELS
                       and g.batch * g.positions >= MIN_POSITIONS)
    work.images = 1
    # Very large kernels have narrow tiles of at least one channel.
    wide = max(1, min(<int64_t>WIDTH, LARGEST_COLUMNS // (work.bytes * g.taps)))
    if g.positions < wide // 2:
        # Small images share a tile, but leave enough tasks for threads.
        work.images = max(1, min(wide // g.positions, max(g.batch // TASKS, min(4, g.batch // 2) if back else 1)))
    work.tiles = max(1, (g.positions + wide // 2) // wide)
    work.width = (g.positions + work.tiles - 1) // work.tiles
    if work.width > g.out[2] and wide == WIDTH:
        work.width = (work.width + g.out[2] - 1) // g.out[2] * g.out[2]       # whole lines
    work.tiles = (g.positions + work.width - 1) // work.width
    work.blocks = (g.batch + work.images - 1) // work.images
    workspace = COLUMNS // (work.bytes * work.width * work.images * g.taps)
    work.chunks = (g.in_channels + max(workspace, 1) - 1) // max(workspace, 1)
    if back and work.images > 1:
        work.chunks = max(work.chunks, min(TASKS // (work.blocks * g.groups), g.in_channels // MIN_CHUNK))
    work.channels = (g.in_channels + max(work.chunks, 1) - 1) // max(work.chunks, 1)
    work.plain = g.taps == 1 and work.images == 1
    for i in range(2, -1, -1):
        work.plain = (work.plain and g.stride[i] == 1 and g.padding[i] == 0
                      and (g.size[i] == 1 or g.step[i] == dense))
        dense *= g.size[i]
    work.plain = work.plain and (g.in_channels == 1 or g.positions <= g.channel_step <= BLAS_MAX)
    if work.plain:
        work.chunks, work.channels = 1, g.in_channels


cdef void _multiply(tiling_t *work, bint transpose_a, int64_t m, int64_t n, int64_t k, const char *a, int64_t lda,
                    const char *b, int64_t ldb, bint add, char *c, int64_t ldc, char *workspace) noexcept nogil:
    """c = op(a) @ b, accumulated or not."""
    cdef blas_scalar_t one, beta
    one.real, one.imag, beta.real, beta.imag = 1, 0, add, 0
    if work.in_blocks:
        multiply(work.problem.dtype == FLOAT64, m, n, k, a, 1 if transpose_a else lda, lda if transpose_a else 1, b,
                 ldb, 1, c if add else NULL, ldc, c, ldc, workspace)
    elif is_differentiable(work.problem.dtype):
        gemm(work.problem.dtype, transpose_a, False, m, n, k, one, a, lda, b, ldb, beta, c, ldc)
    else:
        multiply_integers(work.problem.dtype, m, n, k, 1, a, 1 if transpose_a else lda, lda if transpose_a else 1, b,
                          ldb, add, c, ldc)


cdef void _turn(int64_t bytes, const char *source, int64_t source_step, char *out, int64_t out_step, int64_t rows,
                int64_t columns) noexcept nogil:
    """Transpose a matrix of real numbers; strides in elements."""
    if bytes == 4:
        transpose_words(source, source_step * bytes, out, out_step * bytes, rows, columns)
    else:
        transpose_doubles(source, source_step * bytes, out, out_step * bytes, rows, columns)


cdef void _fill(tiling_t *work, char *target, int64_t channel, int64_t channels, int64_t count,
                int64_t leading) noexcept nogil:
    """Fill rows of `count` elements with the bias of each channel, or with zeros."""
    cdef int64_t i, row, bytes = work.bytes
    cdef char *start
    for row in range(channels):
        start = target + row * leading * bytes
        if work.problem.bias == NULL:
            memset(start, 0, count * bytes)
        elif work.problem.dtype == FLOAT32:
            for i in range(count):
                (<float *>start)[i] = (<float *>work.problem.bias)[channel + row]
        elif work.problem.dtype == FLOAT64 or work.problem.dtype == COMPLEX64:
            for i in range(count):
                (<double *>start)[i] = (<double *>work.problem.bias)[channel + row]
        else:
            for i in range(count):
                memcpy(start + i * bytes, work.problem.bias + (channel + row) * bytes, bytes)


cdef void _move_output(tiling_t *work, bint back, int64_t image, int64_t count, int64_t group, int64_t p0,
                       int64_t width, char *buffer) noexcept nogil:
    """Copy a tile of the output of several images from a matrix with a row for each channel, or to one."""
    cdef geometry_t *g = &work.problem.geometry
    cdef int64_t i, channel, bytes = work.bytes
    cdef char *here
    cdef char *there
    for channel in range(g.out_channels):
        for i in range(count):
            here = buffer + (channel * count + i) * width * bytes
            there = work.problem.output + ((((image + i) * g.groups + group) * g.out_channels + channel) * g.positions
                                   + p0) * bytes
            if back:
                memcpy(here, there, width * bytes)
            else:
                memcpy(there, here, width * bytes)


cdef const char *_columns(tiling_t *work, int64_t image, int64_t count, int64_t group, int64_t c0, int64_t c1,
                          int64_t p0, int64_t p1, char *buffer, int64_t *leading) noexcept nogil:
    """Return the columns of some channels of one group, gathered into the buffer unless the image has them."""
    cdef geometry_t *g = &work.problem.geometry
    cdef const char *source = work.problem.input + (image * g.batch_step
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


cdef int64_t _column_bytes(tiling_t *work) noexcept nogil:
    """Return the bytes for the columns of a tile."""
    return 0 if work.plain else work.channels * work.problem.geometry.taps * work.width * work.images * work.bytes


cdef int64_t _output_bytes(tiling_t *work) noexcept nogil:
    """Return the bytes for a tile of the output of several images, or transposed."""
    if work.images == 1 and not work.transposed:
        return 0
    return work.problem.geometry.out_channels * work.width * work.images * work.bytes


# ---------------------------------------------------------------- forward

cdef void _run_tasks(void *context, int64_t begin, int64_t end) noexcept nogil:
    cdef tiling_t *work = <tiling_t *>context
    cdef int64_t number, columns = _column_bytes(work), outputs = _output_bytes(work)
    cdef storage_t *memory = storage_new(columns + outputs + (WORKSPACE_BYTES if work.in_blocks else 0))
    if memory == NULL:
        atomic_store(&work.failed, 1)
        return
    for number in range(begin, end):
        work.task(work, number, memory.data, memory.data + columns, memory.data + columns + outputs)
    storage_release(memory)


cdef void _forward_tile(tiling_t *work, int64_t task, char *columns, char *buffer, char *workspace) noexcept nogil:
    cdef geometry_t *g = &work.problem.geometry
    cdef int64_t group = task // work.tiles % g.groups, image = task // work.tiles // g.groups * work.images
    cdef int64_t p0 = task % work.tiles * work.width, p1 = min(p0 + work.width, g.positions)
    cdef int64_t count = min(work.images, g.batch - image), width = count * (p1 - p0), bytes = work.bytes
    cdef int64_t c0 = 0, c1, leading, step = g.positions
    cdef char *target = (work.problem.output + ((image * g.groups + group) * g.out_channels * g.positions + p0) * bytes)
    cdef const char *patches
    if work.images > 1:
        target, step = buffer, width
    if work.problem.bias != NULL or work.rows == 0:
        _fill(work, target, group * g.out_channels, g.out_channels, width, step)
    while c0 < g.in_channels:
        c1 = min(c0 + work.channels, g.in_channels)
        patches = _columns(work, image, count, group, c0, c1, p0, p1, columns, &leading)
        _multiply(work, False, g.out_channels, width, (c1 - c0) * g.taps,
                  work.problem.weight + (group * g.out_channels * work.rows + c0 * g.taps) * bytes, work.rows,
                  patches, leading, c0 > 0 or work.problem.bias != NULL, target, step, workspace)
        c0 = c1
    if work.images > 1:
        _move_output(work, False, image, count, group, p0, p1 - p0, buffer)


cdef int columns_forward(problem_t *problem) noexcept nogil:
    cdef tiling_t work
    cdef geometry_t *g = &problem.geometry
    _plan(&work, problem, _forward_tile, False)
    parallel_for(_run_tasks, &work, work.blocks * g.groups * work.tiles,
                 product_grain(work.rows * g.out_channels * work.width * work.images))
    return MEMORY_ERROR if work.failed else OK


# ---------------------------------------------------------------- gradient of the input

cdef void _input_task(tiling_t *work, int64_t task, char *columns, char *buffer, char *workspace) noexcept nogil:
    """Compute a chunk of channels of one block of images, tile by tile."""
    cdef geometry_t *g = &work.problem.geometry
    cdef int64_t chunk = task % work.chunks, group = task // work.chunks % g.groups
    cdef int64_t image = task // work.chunks // g.groups * work.images, bytes = work.bytes
    cdef int64_t c0 = chunk * work.channels, c1 = min(c0 + work.channels, g.in_channels)
    cdef int64_t count = min(work.images, g.batch - image), rows = (c1 - c0) * g.taps
    cdef int64_t i, p0 = 0, p1, width, leading
    cdef char *target = work.problem.input + (image * g.batch_step + group * g.in_channels * g.channel_step) * bytes
    cdef const char *weight = work.problem.weight + (group * g.out_channels * work.rows + c0 * g.taps) * bytes
    cdef const char *grad
    for i in range(0 if work.plain and work.problem.bias == NULL else count):
        _fill(work, target + (i * g.batch_step + c0 * g.channel_step) * bytes, group * g.in_channels + c0, c1 - c0,
              g.channel_step, g.channel_step)
    while p0 < g.positions:
        p1 = min(p0 + work.width, g.positions)
        width = count * (p1 - p0)
        grad = work.problem.output + ((image * g.groups + group) * g.out_channels * g.positions + p0) * bytes
        leading = g.positions
        if work.images > 1:
            _move_output(work, True, image, count, group, p0, p1 - p0, buffer)
            grad, leading = buffer, width
        if work.plain:
            _multiply(work, True, rows, width, g.out_channels, weight, work.rows, grad, leading,
                      work.problem.bias != NULL, target + (c0 * g.channel_step + p0) * bytes, g.channel_step, workspace)
        else:
            _multiply(work, True, rows, width, g.out_channels, weight, work.rows, grad, leading, False,
                      columns, width, workspace)
            for i in range(count):
                scatter_columns(g, scatter_kind(work.problem.dtype), target + i * g.batch_step * bytes, c0, c1, p0, p1,
                                columns + i * (p1 - p0) * bytes, width)
        p0 = p1


cdef int columns_input(problem_t *problem) noexcept nogil:
    cdef tiling_t work
    cdef geometry_t *g = &problem.geometry
    _plan(&work, problem, _input_task, True)
    parallel_for(_run_tasks, &work, work.blocks * g.groups * work.chunks,
                 product_grain(work.channels * g.taps * g.out_channels * g.positions * work.images))
    return MEMORY_ERROR if work.failed else OK


# ---------------------------------------------------------------- gradient of the kernel

cdef void _add_product(tiling_t *work, int64_t image, int64_t count, int64_t group, int64_t p0, int64_t p1,
                       int64_t rows, const char *patches, int64_t leading, bint add, char *target, char *buffer,
                       char *workspace) noexcept nogil:
    """Add the product of a tile's columns and outputs to the sums."""
    cdef geometry_t *g = &work.problem.geometry
    cdef int64_t i, width = count * (p1 - p0), step = g.positions
    cdef const char *grad = work.problem.output + ((image * g.groups + group) * g.out_channels * g.positions
                                                   + p0) * work.bytes
    cdef blas_scalar_t one, beta
    if work.transposed:
        for i in range(count):
            _turn(work.bytes, grad + i * g.groups * g.out_channels * g.positions * work.bytes, g.positions,
                  buffer + i * (p1 - p0) * g.out_channels * work.bytes, g.out_channels, p1 - p0, g.out_channels)
        multiply(work.problem.dtype == FLOAT64, rows, g.out_channels, width, patches, leading, 1, buffer,
                 g.out_channels, 1, target if add else NULL, g.out_channels, target, g.out_channels, workspace)
        return
    if work.images > 1:
        _move_output(work, True, image, count, group, p0, p1 - p0, buffer)
        grad, step = buffer, width
    one.real, one.imag, beta.real, beta.imag = 1, 0, add, 0
    gemm(work.problem.dtype, False, True, g.out_channels, rows, width, one, grad, step, patches, leading, beta, target,
         work.rows)


cdef void _weight_task(tiling_t *work, int64_t task, char *columns, char *buffer, char *workspace) noexcept nogil:
    """Sum a chunk of channels of the gradient over a part of the batch."""
    cdef geometry_t *g = &work.problem.geometry
    cdef int64_t chunk = task % work.chunks, group = task // work.chunks % g.groups
    cdef int64_t part = task // work.chunks // g.groups
    cdef int64_t c0 = chunk * work.channels, c1 = min(c0 + work.channels, g.in_channels)
    cdef int64_t image = part * work.part_images, last = min(image + work.part_images, g.batch)
    cdef int64_t p0, p1, count, leading
    cdef char *target = work.sums + ((part * g.groups + group) * g.out_channels * work.rows
                                     + c0 * g.taps * (g.out_channels if work.transposed else 1)) * work.bytes
    cdef const char *patches
    cdef bint add = False
    while image < last:
        count = min(work.images, last - image)
        p0 = 0
        while p0 < g.positions:
            p1 = min(p0 + work.width, g.positions)
            patches = _columns(work, image, count, group, c0, c1, p0, p1, columns, &leading)
            _add_product(work, image, count, group, p0, p1, (c1 - c0) * g.taps, patches, leading, add, target, buffer,
                         workspace)
            add = True
            p0 = p1
        image += count


cdef void _put_sums(tiling_t *work) noexcept nogil:
    """Copy the first part, which holds the sum of all parts, to the result."""
    cdef geometry_t *g = &work.problem.geometry
    cdef int64_t group, size = g.out_channels * work.rows * work.bytes
    if not work.transposed:
        memcpy(work.problem.weight, work.sums, g.groups * size)
        return
    for group in range(g.groups):
        _turn(work.bytes, work.sums + group * size, g.out_channels, work.problem.weight + group * size, work.rows,
              g.out_channels, work.rows)


cdef void _sum_parts(void *context, int64_t begin, int64_t end) noexcept nogil:
    """Add elements [begin, end) of the other parts to the first part, in order."""
    cdef tiling_t *work = <tiling_t *>context
    cdef int64_t part, i, n = work.problem.geometry.groups * work.problem.geometry.out_channels * work.rows
    cdef bint single = work.problem.dtype == FLOAT32 or work.problem.dtype == COMPLEX64
    n *= 2 if is_complex(work.problem.dtype) else 1
    for part in range(1, work.parts):
        if single:
            for i in range(begin, end):
                (<float *>work.sums)[i] += (<float *>work.sums)[part * n + i]
        else:
            for i in range(begin, end):
                (<double *>work.sums)[i] += (<double *>work.sums)[part * n + i]


cdef void _plan_parts(tiling_t *work) noexcept nogil:
    """Split the batch into parts if chunks of channels are too few tasks."""
    cdef geometry_t *g = &work.problem.geometry
    cdef int64_t size = g.groups * g.out_channels * work.rows
    cdef int64_t parts = PARTS // (g.groups * work.chunks)
    parts = min(parts, size * g.positions * g.batch // PART_WORK)
    parts = max(1, min(parts, PART_BYTES // max(size * work.bytes, 1)))
    work.part_images = (work.blocks + parts - 1) // parts * work.images
    work.parts = (g.batch + work.part_images - 1) // work.part_images


cdef int columns_weight(problem_t *problem) noexcept nogil:
    cdef tiling_t work
    cdef geometry_t *g = &problem.geometry
    cdef int64_t size
    cdef storage_t *memory = NULL
    _plan(&work, problem, _weight_task, True)
    _plan_parts(&work)
    size = g.groups * g.out_channels * work.rows
    work.sums = problem.weight
    if work.parts > 1 or work.transposed:
        memory = storage_new(work.parts * size * problem.bytes)
        if memory == NULL:
            return MEMORY_ERROR
        work.sums = memory.data
    parallel_for(_run_tasks, &work, work.parts * g.groups * work.chunks,
                 product_grain(work.channels * g.taps * g.out_channels * g.positions * work.part_images))
    if memory != NULL:
        parallel_for(_sum_parts, &work, size * (2 if is_complex(problem.dtype) else 1), 1 << 15)
        _put_sums(&work)
        storage_release(memory)
    return MEMORY_ERROR if work.failed else OK
