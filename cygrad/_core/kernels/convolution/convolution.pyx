"""
Convolutions and their gradients: argument checks and the choice among matrix products, direct.pyx and winograd.pyx.

Tiles depend only on the problem, and sums have a fixed order, so results are bit-identical for any number of threads.
"""

from libc.stdint cimport int64_t
from libc.stdio cimport snprintf
from libc.string cimport memcpy, memset
from cygrad._core.arrays.array cimport (
    MAX_DIMS, NOTHING, array_empty, array_t, array_view, register_kernel, release, shape_text, value_t,
)
from cygrad._core.arrays.dtype cimport (
    BOOL, COMPLEX64, FLOAT32, FLOAT64, dtype_code, dtype_name, is_complex, is_differentiable, itemsize,
)
from cygrad._core.elementwise.copying cimport as_contiguous, as_copy, copy_into, with_layout_of_images
from cygrad._core.kernels.arguments cimport (
    array_argument, array_result, check_same_shape, integers_argument, list_text, new_array, new_zeros,
)
from cygrad._core.kernels.convolution.direct cimport (
    NOT_APPLICABLE, PARTS, PART_BYTES, PART_WORK, direct_bytes, direct_elements, direct_forward, direct_input,
    direct_weight, fit_output, fit_shapes, follow, gather_columns, geometry_t, output_shape, problem_t,
    read_movement, read_sizes, scatter_columns, scatter_kind,
)
from cygrad._core.kernels.convolution.winograd cimport (
    winograd_bytes, winograd_fits, winograd_forward, winograd_input, winograd_weight,
)
from cygrad._core.kernels.linalg.blas cimport BLAS_MAX, blas_scalar_t, gemm, matrix_t
from cygrad._core.kernels.linalg.matmul cimport (
    multiply as multiply_matrices, multiply_integers, product_t, start_product,
)
from cygrad._core.kernels.linalg.product_blocks cimport WORKSPACE_BYTES, multiply
from cygrad._core.memory.atomic cimport atomic_store
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, NOT_IMPLEMENTED, OK, RUNTIME_ERROR, check, message
from cygrad._core.memory.storage cimport storage_new, storage_release, storage_t
from cygrad._core.threads.grain cimport GATHERED, products_per_chunk, rows_per_chunk
from cygrad._core.threads.parallel cimport parallel_for


# -------------------------------------------------------------------------------------------------- convolution patches

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
            scatter_columns[scatter_kind(work.dtype)](g, source, channel, channel + 1, 0, g.positions, columns,
                                                      g.positions)
        else:
            gather_columns(g, bytes, source, channel, channel + 1, 0, g.positions, columns, g.positions)


cdef void _move_patches(patches_t *work, array_t *images, array_t *columns, bint back) noexcept nogil:
    cdef geometry_t *g = &work.geometry
    work.dtype, work.back = images.dtype, back
    work.images, work.columns = images.data, columns.data
    follow(g, images)
    parallel_for(_body, work, g.batch * g.in_channels, rows_per_chunk(g.taps * g.positions, GATHERED))


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
        _move_patches(&work, self, result, False)
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
        _move_patches(&work, result, columns, True)
    release(columns)
    return array_result(result, &results[0])


register_kernel("im2col", im2col_kernel)
register_kernel("col2im", col2im_kernel)


# ------------------------------------------------------------------------------------------------- convolution products

# Convolutions as products of matrices.
#
# Patches become columns of a matrix (columns.h), a tile of positions and channels at a time, which takes a
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
    TILE_BYTES = 1 << 19       # bytes for the columns of a tile
    LARGEST_COLUMNS = 1 << 22  # ... if those of one channel are more
    TILES = 8                  # tasks for threads, if images or chunks suffice
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
    cdef int64_t capacity, wide, dense = 1
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
        work.images = max(1, min(wide // g.positions, max(g.batch // TILES, min(4, g.batch // 2) if back else 1)))
    work.tiles = max(1, (g.positions + wide // 2) // wide)
    work.width = (g.positions + work.tiles - 1) // work.tiles
    if work.width > g.out[2] and wide == WIDTH:
        work.width = (work.width + g.out[2] - 1) // g.out[2] * g.out[2]       # whole lines
    work.tiles = (g.positions + work.width - 1) // work.width
    work.blocks = (g.batch + work.images - 1) // work.images
    capacity = TILE_BYTES // (work.bytes * work.width * work.images * g.taps)
    work.chunks = (g.in_channels + max(capacity, 1) - 1) // max(capacity, 1)
    if back and work.images > 1:
        work.chunks = max(work.chunks, min(TILES // (work.blocks * g.groups), g.in_channels // MIN_CHUNK))
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
        multiply[work.problem.dtype == FLOAT64](m, n, k, a, 1 if transpose_a else lda, lda if transpose_a else 1, b,
                                                ldb, 1, c if add else NULL, ldc, c, ldc, workspace)
    elif is_differentiable(work.problem.dtype):
        gemm(work.problem.dtype, transpose_a, False, m, n, k, one, a, lda, b, ldb, beta, c, ldc)
    else:
        multiply_integers(work.problem.dtype, m, n, k, 1, a, 1 if transpose_a else lda, lda if transpose_a else 1, b,
                          ldb, add, c, ldc)


cdef void _transpose(int64_t bytes, const char *source, int64_t source_step, char *out, int64_t out_step, int64_t rows,
                int64_t columns) noexcept nogil:
    """Transpose a matrix of real numbers; strides in elements."""
    if bytes == 4:
        transpose_words(source, source_step * bytes, out, out_step * bytes, rows, columns)
    else:
        transpose_doubles(source, source_step * bytes, out, out_step * bytes, rows, columns)


cdef void _fill(int dtype, const char *bias, char *target, int64_t channel, int64_t channels, int64_t count,
                int64_t leading) noexcept nogil:
    """Fill rows of `count` elements with the bias of each channel, or with zeros."""
    cdef int64_t i, row, bytes = itemsize(dtype)
    cdef char *start
    for row in range(channels):
        start = target + row * leading * bytes
        if bias == NULL:
            memset(start, 0, count * bytes)
        elif dtype == FLOAT32:
            for i in range(count):
                (<float *>start)[i] = (<float *>bias)[channel + row]
        elif dtype == FLOAT64 or dtype == COMPLEX64:
            for i in range(count):
                (<double *>start)[i] = (<double *>bias)[channel + row]
        else:
            for i in range(count):
                memcpy(start + i * bytes, bias + (channel + row) * bytes, bytes)


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
        _fill(work.problem.dtype, work.problem.bias, target, group * g.out_channels, g.out_channels, width, step)
    while c0 < g.in_channels:
        c1 = min(c0 + work.channels, g.in_channels)
        patches = _columns(work, image, count, group, c0, c1, p0, p1, columns, &leading)
        _multiply(work, False, g.out_channels, width, (c1 - c0) * g.taps,
                  work.problem.weight + (group * g.out_channels * work.rows + c0 * g.taps) * bytes, work.rows,
                  patches, leading, c0 > 0 or work.problem.bias != NULL, target, step, workspace)
        c0 = c1
    if work.images > 1:
        _move_output(work, False, image, count, group, p0, p1 - p0, buffer)


cdef int _columns_forward(problem_t *problem) noexcept nogil:
    cdef tiling_t work
    cdef geometry_t *g = &problem.geometry
    _plan(&work, problem, _forward_tile, False)
    parallel_for(_run_tasks, &work, work.blocks * g.groups * work.tiles,
                 products_per_chunk(work.rows * g.out_channels * work.width * work.images))
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
        _fill(work.problem.dtype, work.problem.bias, target + (i * g.batch_step + c0 * g.channel_step) * bytes,
              group * g.in_channels + c0, c1 - c0, g.channel_step, g.channel_step)
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
                      work.problem.bias != NULL, target + (c0 * g.channel_step + p0) * bytes, g.channel_step,
                      workspace)
        else:
            _multiply(work, True, rows, width, g.out_channels, weight, work.rows, grad, leading, False,
                      columns, width, workspace)
            for i in range(count):
                scatter_columns[scatter_kind(work.problem.dtype)](
                    g, target + i * g.batch_step * bytes, c0, c1, p0, p1, columns + i * (p1 - p0) * bytes, width)
        p0 = p1


cdef int _columns_input(problem_t *problem) noexcept nogil:
    cdef tiling_t work
    cdef geometry_t *g = &problem.geometry
    _plan(&work, problem, _input_task, True)
    parallel_for(_run_tasks, &work, work.blocks * g.groups * work.chunks,
                 products_per_chunk(work.channels * g.taps * g.out_channels * g.positions * work.images))
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
            _transpose(work.bytes, grad + i * g.groups * g.out_channels * g.positions * work.bytes, g.positions,
                  buffer + i * (p1 - p0) * g.out_channels * work.bytes, g.out_channels, p1 - p0, g.out_channels)
        multiply[work.problem.dtype == FLOAT64](
            rows, g.out_channels, width, patches, leading, 1, buffer, g.out_channels, 1, target if add else NULL,
            g.out_channels, target, g.out_channels, workspace)
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
        _transpose(work.bytes, work.sums + group * size, g.out_channels, work.problem.weight + group * size, work.rows,
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


cdef int _columns_weight(problem_t *problem) noexcept nogil:
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
                 products_per_chunk(work.channels * g.taps * g.out_channels * g.positions * work.part_images))
    if memory != NULL:
        parallel_for(_sum_parts, &work, size * (2 if is_complex(problem.dtype) else 1), 1 << 15)
        _put_sums(&work)
        storage_release(memory)
    return MEMORY_ERROR if work.failed else OK


# ---------------------------------------------------------------- images that a patch covers

cdef bint _is_one_patch(const geometry_t *g) noexcept nogil:
    """Return whether there is one position, whose patch covers the image."""
    cdef int i
    for i in range(3):
        if (g.out[i] != 1 or g.padding[i] + g.size[i] > g.kernel[i]
                or (g.dilation[i] != 1 and g.kernel[i] != 1)):
            return False
    return True


cdef matrix_t _matrix(char *data, int64_t leading, bint transposed) noexcept nogil:
    """Return an operand of a product without an array."""
    cdef matrix_t matrix
    memset(&matrix, 0, sizeof(matrix))
    matrix.data, matrix.leading, matrix.transposed = data, leading, transposed
    return matrix


cdef void _multiply_whole(problem_t *problem, int64_t m, int64_t n, int64_t k, matrix_t a, matrix_t b, char *c,
                          const char *addend, int64_t addend_row, int64_t addend_column) noexcept nogil:
    """c = a @ b + addend, which may be NULL; steps of the addend in elements."""
    cdef product_t product
    start_product(&product, problem.dtype, m, n, k)
    product.a, product.b, product.c = a, b, c
    if addend != NULL:
        product.addend, product.addend_row_step, product.addend_column_step = addend, addend_row, addend_column
        product.beta.real = 1
    multiply_matrices(&product)


cdef int _linear(problem_t *problem, direction_t direction, array_t *images, array_t *kernel) noexcept nogil:
    """Multiply with images as rows of a matrix, and the part of the kernel that covers them as columns."""
    cdef geometry_t *g = &problem.geometry
    cdef int64_t columns = g.in_channels * g.size[0] * g.size[1] * g.size[2], offset = 0, image
    cdef int64_t[MAX_DIMS] shape
    cdef int i, n = images.ndim, status = OK
    cdef array_t *rows = as_contiguous(images, -1)
    cdef array_t *part
    cdef array_t *weight
    for i in range(2, n):
        offset += g.padding[i + 3 - n] * kernel.strides[i]
        shape[i] = images.shape[i]
    shape[0], shape[1] = g.out_channels, g.in_channels
    part = array_view(kernel, kernel.dtype, n, shape, kernel.strides, offset)
    weight = NULL if part == NULL else array_empty(part.dtype, n, shape) if direction == WEIGHT_GRADIENT else \
        as_contiguous(part, -1)
    if rows == NULL or weight == NULL:
        status = MEMORY_ERROR
    elif direction == FORWARD:
        _multiply_whole(problem, g.batch, g.out_channels, columns, _matrix(rows.data, columns, False),
                        _matrix(weight.data, columns, True), problem.output, problem.bias, 0, 1)
    elif direction == INPUT_GRADIENT:
        if problem.bias != NULL:
            for image in range(g.batch):
                _fill(problem.dtype, problem.bias, problem.input + image * columns * problem.bytes, 0, g.in_channels,
                      columns // g.in_channels, columns // g.in_channels)
        _multiply_whole(problem, g.batch, columns, g.out_channels, _matrix(problem.output, g.out_channels, False),
                        _matrix(weight.data, columns, False), problem.input,
                        NULL if problem.bias == NULL else problem.input, columns, 1)
    else:
        _multiply_whole(problem, g.out_channels, columns, g.batch, _matrix(problem.output, g.out_channels, True),
                        _matrix(rows.data, columns, False), weight.data, NULL, 0, 0)
        memset(problem.weight, 0, kernel.size * problem.bytes)
        status = copy_into(part, weight)
    release(rows)
    release(part)
    release(weight)
    return status


# ---------------------------------------------------------------- small images

cdef array_t *_batch_last(array_t *images, bint copied, array_t **view) noexcept nogil:
    """View images with the batch as last dimension; return contiguous memory for that shape, copied or not."""
    cdef int64_t[MAX_DIMS] shape
    cdef int64_t[MAX_DIMS] strides
    cdef int i, n = images.ndim
    for i in range(n):
        shape[i], strides[i] = images.shape[(i + 1) % n], images.strides[(i + 1) % n]
    view[0] = array_view(images, images.dtype, n, shape, strides, 0)
    if view[0] == NULL:
        return NULL
    return as_copy(view[0], images.dtype) if copied else array_empty(images.dtype, n, shape)


cdef int _interleaved(problem_t *problem, direction_t direction, array_t *images, array_t *output) noexcept nogil:
    """Compute one image of as many times longer lines: kernels are read once, and lines are moved in vectors."""
    cdef problem_t joined = problem[0]
    cdef geometry_t *g = &joined.geometry
    cdef array_t *image_view
    cdef array_t *output_view = NULL
    cdef array_t *long_images = _batch_last(images, direction != INPUT_GRADIENT, &image_view)
    cdef array_t *long_output = _batch_last(output, direction != FORWARD, &output_view)
    cdef int i, status = MEMORY_ERROR
    if long_images != NULL and long_output != NULL:
        for i in range(2):
            g.size[i], g.out[i], g.kernel[i] = g.size[i + 1], g.out[i + 1], g.kernel[i + 1]
            g.stride[i], g.padding[i], g.dilation[i] = g.stride[i + 1], g.padding[i + 1], g.dilation[i + 1]
        g.size[2] = g.out[2] = g.batch
        g.kernel[2] = g.stride[2] = g.dilation[2] = g.batch_step = 1
        g.padding[2] = 0
        g.positions *= g.batch
        g.batch = 1
        g.step[2], g.step[1], g.step[0] = 1, g.size[2], g.size[1] * g.size[2]
        g.channel_step = g.size[0] * g.step[0]
        joined.input, joined.output = long_images.data, long_output.data
        status = _run_columns(&joined, direction)
    if status == OK and direction == FORWARD:
        status = copy_into(output_view, long_output)
    elif status == OK and direction == INPUT_GRADIENT:
        status = copy_into(image_view, long_images)
    release(image_view)
    release(output_view)
    release(long_images)
    release(long_output)
    return status


cdef int _run_columns(problem_t *problem, direction_t direction) noexcept nogil:
    return (_columns_forward(problem) if direction == FORWARD else
            _columns_input(problem) if direction == INPUT_GRADIENT else _columns_weight(problem))


# --------------------------------------------------------------------------------------------------- convolution choice

# Rule found by measurement: float32, one thread of a Zen 5 core with AVX-512, batch 8; GFLOP/s of the definition:
#
# ==========================================  =======  ======  ========
# kernels, images                             columns  direct  winograd
# ==========================================  =======  ======  ========
# 3 x 3, 128 groups of 1 channel, 56 x 56          12      31         1
# 3 x 3, 32 groups of 4 -> 4, 28 x 28              42     127        17
# 3 x 3, 4 -> 4, 28 x 28                           49     122        21
# 3 x 3, 16 -> 4, 28 x 28                          50     129        71
# 3 x 3, 4 -> 16, 28 x 28                         113     148        77
# 3 x 3, 8 -> 16, 28 x 28                         117     175       145
# 3 x 3, 4 -> 64, 28 x 28                         173     162       145
# 3 x 3, 8 -> 64, 28 x 28                         157     187       248
# 3 x 3, 16 -> 64, 28 x 28                        152     197       409
# 3 x 3, 64 -> 64, 56 x 56                        157     204       452
# 3 x 3 with stride 2, 64 -> 128, 56 x 56         161     183         -
# 7 x 7 with stride 2, 3 -> 64, 224 x 224         179     187         -
# 1 x 1, 16 -> 16, 28 x 28                        139      93         -
# ==========================================  =======  ======  ========
#
# DIRECT makes no patches, but also computes the padding between lines, which dominates if lines are short, and takes
# one image per task, so small batches use few threads. Its input gradient needs several input channels and reorders
# the kernel; its weight gradient reduces lanes for each image, tap and pair of channels, so lines have to be long.
# COLUMNS is slow for matrices with few rows, and for short lines: INTERLEAVED makes the batch the innermost dimension
# (3 x 3, 256 -> 256, 2 x 2, batch 32, Zen 4: 104, COLUMNS 59). LINEAR leaves out taps that only read padding. WINOGRAD
# saves three multiplications of four, and transforms the tiles (per channel) and the kernels (per pair of channels);
# `_winograd_pays` has the costs.

cdef enum:
    NEAR_BYTES = 1 << 24       # buffers that fit into the last-level cache
    MAX_BYTES = 1 << 26       # limit of the buffers of one thread
    FEW = 16                   # output channels for which matrix products are slow
    TASKS = 4                  # images from which threads have enough tasks
    SMALL_WORK = 1 << 19       # multiplications that are not worth threads
    LARGE_KERNEL = 120000      # elements of a kernel that is too expensive to reorder
    LONG = 1024                # elements of a line that is worth reducing
    MAX_PAIRS = 4096          # pairs of channels for lines of that length
    MAX_POSITIONS = 64         # of images that are worth interleaving,
    MAX_SCATTERED = 200        # ... if columns are scattered into many images,
    MIN_IMAGES = 8             # ... their number,
    MIN_KERNEL = 1 << 12       # ... and elements of their kernel

cdef int forced = -1               # algorithm to take wherever it applies, for tests and measurements; -1: none

DIRECTIONS = ("forward", "input", "weight")
FORMS = ("columns", "direct", "winograd", "interleaved", "linear")


cdef bint _fits(const geometry_t *g, int dtype, form_t form) noexcept nogil:
    """Return whether the algorithm applies, within the memory limits."""
    if form == COLUMNS:
        return True
    if (dtype != FLOAT32 and dtype != FLOAT64) or g.in_channels == 0:
        return False
    if form == LINEAR:
        return g.groups == 1 and _is_one_patch(g)
    if form == INTERLEAVED:
        return g.size[0] == 1 and g.kernel[0] == 1 and g.padding[0] == 0
    if form == DIRECT:
        return max(direct_bytes(g, itemsize(dtype), False), direct_bytes(g, itemsize(dtype), True)) <= MAX_BYTES
    return winograd_fits(g) and winograd_bytes(g, itemsize(dtype)) <= 2 * MAX_BYTES


cdef bint _winograd_pays(const geometry_t *g) noexcept nogil:
    """Compare nanoseconds per pair of channels, measured for 16 to 512 channels and up to 1000 tiles."""
    cdef double tiles = g.batch * ((g.out[1] + 3) // 4) * ((g.out[2] + 3) // 4)
    cdef double transforms = 5.0 / g.in_channels + 5.0 / g.out_channels
    if min(g.in_channels, g.out_channels) < 8 or max(g.in_channels, g.out_channels) < FEW:
        return False
    return 12 + tiles * (0.36 + transforms) < 4 + 0.1 * g.batch * g.positions


cdef bint _direct_pays(const geometry_t *g, direction_t direction, int64_t bytes) noexcept nogil:
    cdef int64_t elements = direct_elements(g, direction == INPUT_GRADIENT)
    cdef int64_t needed = g.size[0] * g.size[1] * g.size[2] if direction == INPUT_GRADIENT else g.positions
    cdef int64_t pairs = g.in_channels * g.out_channels
    # In three dimensions the padding between lines is negligible.
    cdef bint dense = 5 * elements <= 6 * needed or g.kernel[0] > 1
    # DIRECT has a task per image; COLUMNS has more tasks.
    cdef bint many = g.batch * g.groups >= TASKS or pairs * g.taps * g.positions * g.batch * g.groups <= SMALL_WORK
    if pairs == 1:
        return True
    if g.taps == 1 or direct_bytes(g, bytes, direction == INPUT_GRADIENT) > NEAR_BYTES:
        return False
    if direction == FORWARD:
        return g.out_channels <= FEW or (many and dense and g.stride[2] < g.kernel[2])
    if direction == INPUT_GRADIENT:
        return (g.out_channels <= FEW // 2 or (g.out_channels <= FEW and g.in_channels >= 4)
                or (many and g.in_channels >= 8 and pairs * g.taps <= LARGE_KERNEL and dense))
    if g.out_channels < FEW or (g.in_channels <= 8 and elements >= LONG // 2):
        return True
    return many and elements >= LONG and pairs <= MAX_PAIRS


cdef bint _interleaved_pays(const geometry_t *g, direction_t direction) noexcept nogil:
    cdef bint scattered = direction == INPUT_GRADIENT and g.batch >= 2 * MIN_IMAGES
    return (g.positions <= (MAX_SCATTERED if scattered else MAX_POSITIONS) and g.batch >= MIN_IMAGES
            and g.in_channels * g.taps * g.out_channels >= MIN_KERNEL)


cdef form_t choose_form(const geometry_t *g, int dtype, direction_t direction) noexcept nogil:
    if forced >= 0:
        return <form_t>forced if _fits(g, dtype, <form_t>forced) else COLUMNS
    if _fits(g, dtype, WINOGRAD) and _winograd_pays(g):
        return WINOGRAD
    if _fits(g, dtype, LINEAR):
        return LINEAR
    if _fits(g, dtype, INTERLEAVED) and _interleaved_pays(g, direction):
        return INTERLEAVED
    if _fits(g, dtype, DIRECT) and _direct_pays(g, direction, itemsize(dtype)):
        return DIRECT
    return COLUMNS


def force_form(form):
    """Use the named algorithm wherever it applies; None: choose."""
    global forced
    forced = -1 if form is None else FORMS.index(form)


def chosen_form(direction, images, kernel, stride, padding, dilation, groups, dtype):
    """Return the name of the algorithm chosen for a direction ("forward", "input", "weight") and shapes."""
    cdef geometry_t g
    cdef int i, n = len(images) - 2
    g.batch, g.groups = images[0], groups
    g.in_channels, g.out_channels = kernel[1], kernel[0] // groups
    for i in range(3):
        g.size[i] = g.kernel[i] = g.stride[i] = g.dilation[i] = 1
        g.padding[i] = 0
        if i >= 3 - n:
            g.size[i], g.kernel[i] = images[i + n - 1], kernel[i + n - 1]
            g.stride[i], g.padding[i], g.dilation[i] = stride[i + n - 3], padding[i + n - 3], dilation[i + n - 3]
    check(fit_output(b"chosen_form", n, &g))
    return FORMS[choose_form(&g, dtype_code(dtype, "chosen_form"), DIRECTIONS.index(direction))]


# ---------------------------------------------------------------------------------------------------------- convolution

cdef const char *_name(int ndim) noexcept nogil:
    return b"conv1d" if ndim == 3 else b"conv2d" if ndim == 4 else b"conv3d"


# ---------------------------------------------------------------- arguments

cdef int _check_images(const char *operation, const char *name, const array_t *array) noexcept nogil:
    """Read a batch of images of one to three dimensions and a dtype with products."""
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


cdef int _read_bias(problem_t *problem, const char *operation, const value_t *value, const array_t *like,
                    int64_t channels, array_t **bias) noexcept nogil:
    """Return the bias as a contiguous array, or NULL."""
    cdef array_t *array
    cdef int status
    bias[0] = NULL
    problem.bias = NULL
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
    problem.bias = bias[0].data
    return OK


cdef int _fit(problem_t *problem, const char *operation, int ndim, const int64_t *images, int kernel_ndim,
              const int64_t *kernel, const value_t *movement, const array_t *grad, int64_t *shape) noexcept nogil:
    """Compute the geometry and the output shape, which `grad` must have."""
    cdef geometry_t *g = &problem.geometry
    cdef int status = read_movement(operation, ndim - 2, movement, True, g)
    if status == OK:
        status = fit_shapes(operation, ndim, images, kernel_ndim, kernel, g)
    if status == OK:
        output_shape(g, ndim - 2, shape)
        if grad != NULL:
            status = check_same_shape(operation, b"grad", grad, ndim, shape)
    return status


# ---------------------------------------------------------------- computing

cdef int _run(problem_t *problem, direction_t direction, form_t form, array_t *images, array_t *kernel,
              array_t *output) noexcept nogil:
    if form == LINEAR:
        return _linear(problem, direction, images, kernel)
    if form == INTERLEAVED:
        return _interleaved(problem, direction, images, output)
    if form == WINOGRAD:
        return (winograd_forward(problem) if direction == FORWARD else
                winograd_input(problem) if direction == INPUT_GRADIENT else winograd_weight(problem))
    if form == DIRECT:
        return (direct_forward(problem) if direction == FORWARD else
                direct_input(problem) if direction == INPUT_GRADIENT else direct_weight(problem))
    return _run_columns(problem, direction)


cdef int _compute(problem_t *problem, direction_t direction, array_t *images, array_t *kernel, array_t *output,
                  array_t *result, value_t *results) noexcept nogil:
    """
    Compute one of the three arrays from the other two and take over the reference to it.

Results are channels_last if images or kernel are.
    """
    cdef array_t *given = output if result == images else images
    cdef array_t *other = kernel
    cdef geometry_t *g = &problem.geometry
    cdef int status = OK
    kernel = as_contiguous(kernel, -1)
    output = as_contiguous(output, -1)
    if kernel == NULL or output == NULL:
        status = MEMORY_ERROR
    elif result.size and (g.batch or direction != WEIGHT_GRADIENT):
        problem.dtype, problem.bytes = result.dtype, itemsize(result.dtype)
        problem.input, problem.weight, problem.output = images.data, kernel.data, output.data
        follow(g, images)
        status = _run(problem, direction, choose_form(g, problem.dtype, direction), images, kernel, output)
        if status == NOT_APPLICABLE:
            status = _run(problem, direction, COLUMNS, images, kernel, output)
    release(kernel)
    release(output)
    if status != OK:
        release(result)
        return status
    if direction != WEIGHT_GRADIENT:
        result = with_layout_of_images(result, other if given.contiguous else given)
    return array_result(result, &results[0])


cdef int convolution_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """convolution(self, weight, bias, stride, padding, dilation, groups)."""
    cdef problem_t problem
    cdef geometry_t *g = &problem.geometry
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
        status = _fit(&problem, name, input.ndim, input.shape, weight.ndim, weight.shape, &arguments[3], NULL, shape)
    if status == OK:
        status = _check_dtype(name, b"input", input, b"weight", weight)
    if status == OK:
        status = _read_bias(&problem, name, &arguments[2], input, g.groups * g.out_channels, &bias)
    if status == OK:
        status = new_array(name, input.dtype, input.ndim, shape, &result)
    if status == OK:
        status = _compute(&problem, FORWARD, input, weight, result, result, results)
    release(bias)
    return status


cdef int convolution_input_backward_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """convolution_input_backward(grad, weight, bias, shape, stride, padding, dilation, groups)."""
    cdef problem_t problem
    cdef geometry_t *g = &problem.geometry
    cdef array_t *grad
    cdef array_t *weight
    cdef array_t *bias = NULL
    cdef array_t *result = NULL
    cdef const int64_t *given
    cdef int64_t shape[MAX_DIMS]
    cdef const char *name = b"convolution_input_backward"
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
        status = _fit(&problem, name, ndim, given, weight.ndim, weight.shape, &arguments[4], grad, shape)
    if status == OK:
        status = _check_dtype(name, b"grad", grad, b"weight", weight)
    if status == OK:
        status = _read_bias(&problem, name, &arguments[2], grad, g.groups * g.in_channels, &bias)
    if status == OK:
        status = new_array(name, grad.dtype, ndim, given, &result)
    if status == OK:
        status = _compute(&problem, INPUT_GRADIENT, result, weight, grad, result, results)
    release(bias)
    return status


cdef int convolution_weight_backward_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """convolution_weight_backward(grad, input, shape, stride, padding, dilation, groups)."""
    cdef problem_t problem
    cdef array_t *grad
    cdef array_t *input
    cdef array_t *result = NULL
    cdef const int64_t *given
    cdef int64_t shape[MAX_DIMS]
    cdef const char *name = b"convolution_weight_backward"
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
        status = _fit(&problem, name, input.ndim, input.shape, ndim, given, &arguments[3], grad, shape)
    if status == OK:
        status = _check_dtype(name, b"input", input, b"grad", grad)
    if status == OK:
        problem.bias = NULL
        if input.shape[0]:
            status = new_array(name, input.dtype, ndim, given, &result)
        else:
            status = new_zeros(name, input.dtype, ndim, given, &result)
    if status == OK:
        status = _compute(&problem, WEIGHT_GRADIENT, input, result, grad, result, results)
    return status


register_kernel("convolution", convolution_kernel)
register_kernel("convolution_input_backward", convolution_input_backward_kernel)
register_kernel("convolution_weight_backward", convolution_weight_backward_kernel)
