"""
Winograd convolutions with 3 x 3 kernels: tiles of 4 x 4 results with a quarter of the multiplications.

Values of tiles and kernels at 36 points (winograd.h) are multiplied, point by point, as matrices of
channels: 36 BLAS calls for a block of tiles. Few kernels or many tiles: evaluate all kernels, then compute a block on
one thread. Many kernels and few tiles: evaluate all tiles, then kernels in chunks of output channels that stay in the
cache. Blocks and chunks depend only on the problem, and sums over blocks are in order.
"""

from libc.stdint cimport int64_t
from cygrad._core.arrays.dtype cimport FLOAT64
from cygrad._core.kernels.convolution.direct cimport NOT_APPLICABLE, geometry_t, problem_t
from cygrad._core.kernels.linalg.blas cimport blas_scalar_t, gemm
from cygrad._core.memory.atomic cimport atomic_store
from cygrad._core.memory.errors cimport MEMORY_ERROR, OK
from cygrad._core.memory.storage cimport storage_new, storage_release, storage_t
from cygrad._core.threads.parallel cimport body_t, parallel_for


cdef extern from "kernels/convolution/winograd.h" nogil:
    enum:
        POINTS
        RESULTS
    ctypedef struct planes_t:
        char *data
        int64_t batch_step
        int64_t channel_step
        int64_t line_step
        int64_t step
        int64_t lines
        int64_t columns
        int64_t top            # padding
        int64_t left
        int64_t tile_columns
        int64_t tiles          # of a plane
    ctypedef struct values_t:
        char *data
        int64_t tile_step
        int64_t point_step
    void (*cut_values[2][2])(const planes_t *planes, int64_t channel, int64_t channels, int64_t first, int64_t count,
                             void *target, const values_t *values, void *workspace)
    int (*put_results[2])(const planes_t *planes, int64_t channel, int64_t channels, int64_t first, int64_t count,
                          const void *source, const values_t *values, const void *bias, void *workspace)
    void (*kernel_values[2])(const void *kernels, int64_t channel_step, int64_t channels, int64_t step, int64_t count,
                             int back, void *target, const values_t *values)
    int (*put_kernels[2])(const void *source, const values_t *values, int64_t channels, int64_t count, void *kernels,
                          int64_t channel_step)

cdef enum:
    SMALL_BYTES = 3 << 20      # values of kernels kept for all blocks
    BLOCK_BYTES = 2 << 20      # ... then for the values of a block
    MANY_TILES = 64            # tiles from which to keep
    KERNEL_BYTES = 1 << 26     # ... more values of kernels
    LARGE_BLOCK_BYTES = 1 << 24     # ... then for the values of a block
    SOURCE_BYTES = 12 << 20    # else for those of the sources of a block
    CHUNK_BYTES = 2 << 20      # ... and of the kernels of a chunk of channels
    MIN_BLOCK = 64           # tiles of a block, if there are as many

ctypedef enum winograd_step_t:
    CUT_SOURCES
    CUT_GRADIENTS
    PUT_RESULTS

ctypedef struct winograd_t:
    problem_t *problem
    planes_t sources           # read in tiles of 6 x 6
    planes_t results           # written or read in tiles of 4 x 4
    int64_t source_channels    # of a group
    int64_t result_channels
    bint back                  # input gradient: kernels are rotated, channels exchanged
    int64_t lanes              # of a vector
    int64_t bytes              # of an element
    int precision              # 0: single, 1: double
    int64_t tiles
    int64_t block              # tiles of a block
    int64_t blocks
    int64_t chunk              # output channels computed together
    int64_t chunks
    int64_t workspace               # bytes for transposed lines
    int64_t group
    int64_t failed             # atomic: a thread had no memory
    int64_t is_not_finite      # atomic: a result is not finite

# Some tiles, and some channels of their results.
ctypedef struct winograd_block_t:
    winograd_t *work
    int64_t first              # tile
    int64_t count
    int64_t channel            # of results, within the group
    int64_t channels
    values_t sources           # a row for each tile, of channels
    values_t kernels           # a row for each channel of the sources
    values_t results           # a row for each tile
    bint add                   # accumulate the weight gradient
    body_t prepare             # evaluate the kernels or gradients of a chunk of channels,
    body_t multiply            # multiply them with the sources,
    body_t finish              # and interpolate the results


cdef bint winograd_fits(const geometry_t *geometry) noexcept nogil:
    cdef int i
    for i in range(3):
        if (geometry.kernel[i] != (1 if i == 0 else 3) or geometry.stride[i] != 1 or geometry.dilation[i] != 1
                or geometry.padding[i] > (0 if i == 0 else 2)):
            return False
    return geometry.size[0] == 1


# ---------------------------------------------------------------- blocks

cdef inline int64_t _whole(int64_t n, int64_t unit) noexcept nogil:
    """Round up to a multiple of `unit`."""
    return (n + unit - 1) // unit * unit


cdef int64_t _values(values_t *values, int64_t lanes, int64_t channels, int64_t tiles) noexcept nogil:
    """Set the strides of values; return number of elements. Points start at different offsets in a page."""
    values.tile_step = _whole(channels, lanes)
    values.point_step = tiles * values.tile_step + lanes
    return POINTS * values.point_step


cdef int64_t _block(const geometry_t *g, int64_t bytes, int64_t columns, int64_t tiles, int64_t *chunk) noexcept nogil:
    """Choose the tiles of a block (whole lines of an image unless too many) and the channels of a chunk."""
    cdef int64_t lanes = 64 // bytes
    cdef int64_t sources = _whole(g.in_channels, lanes), results = _whole(g.out_channels, lanes)
    cdef int64_t most, kernels = POINTS * sources * results * bytes, row = POINTS * max(sources, results) * bytes
    if kernels <= SMALL_BYTES or (kernels <= KERNEL_BYTES and tiles > MANY_TILES):
        chunk[0] = max(sources, results)
        most = BLOCK_BYTES if kernels <= SMALL_BYTES else LARGE_BLOCK_BYTES
        most = max(<int64_t>MIN_BLOCK, most // (POINTS * (sources + results) * bytes))
    else:
        chunk[0] = max(lanes, CHUNK_BYTES // row // lanes * lanes)
        most = max(<int64_t>MIN_BLOCK, SOURCE_BYTES // row)
    return min(most // columns * columns if columns <= most else most, tiles)


cdef int64_t _workspace_bytes(int64_t lines, int64_t columns, int64_t block) noexcept nogil:
    """Return the bytes for transposed lines of a block of tiles of an image."""
    return (min(lines, block // columns + 2) + 1) * RESULTS * (columns + 1) * RESULTS * 64


cdef int64_t winograd_bytes(const geometry_t *geometry, int64_t bytes) noexcept nogil:
    cdef const geometry_t *g = geometry
    cdef int64_t lanes = 64 // bytes, chunk, most = max(g.in_channels, g.out_channels)
    cdef int64_t lines = (max(g.size[1], g.out[1]) + RESULTS - 1) // RESULTS
    cdef int64_t columns = (max(g.size[2], g.out[2]) + RESULTS - 1) // RESULTS
    cdef int64_t block = _block(g, bytes, columns, lines * columns * g.batch, &chunk)
    cdef values_t values
    return (_values(&values, lanes, most, most) + 2 * _values(&values, lanes, most, block)) * bytes + _workspace_bytes(
        lines, columns, block)


cdef void _plan(winograd_t *work, problem_t *problem, bint back) noexcept nogil:
    cdef geometry_t *g = &problem.geometry
    cdef planes_t images, outputs
    cdef const int64_t *size = &g.size[0] if back else &g.out[0]
    cdef int64_t lines = (size[1] + RESULTS - 1) // RESULTS, columns = (size[2] + RESULTS - 1) // RESULTS
    images.data, images.batch_step, images.channel_step = problem.input, g.batch_step, g.channel_step
    images.line_step, images.step, images.lines, images.columns = g.step[1], g.step[2], g.size[1], g.size[2]
    outputs.data, outputs.channel_step, outputs.line_step, outputs.step = problem.output, g.positions, g.out[2], 1
    outputs.batch_step = g.groups * g.out_channels * g.positions
    outputs.lines, outputs.columns = g.out[1], g.out[2]
    images.top = images.left = outputs.top = outputs.left = 0
    images.tiles = outputs.tiles = lines * columns
    images.tile_columns = outputs.tile_columns = columns
    work.problem, work.back, work.failed, work.is_not_finite = problem, back, 0, 0
    work.bytes, work.precision, work.lanes = problem.bytes, problem.dtype == FLOAT64, 64 // problem.bytes
    if back:
        outputs.top, outputs.left = 2 - g.padding[1], 2 - g.padding[2]
        work.sources, work.results = outputs, images
        work.source_channels, work.result_channels = g.out_channels, g.in_channels
    else:
        images.top, images.left = g.padding[1], g.padding[2]
        work.sources, work.results = images, outputs
        work.source_channels, work.result_channels = g.in_channels, g.out_channels
    work.tiles = g.batch * images.tiles
    work.block = _block(g, problem.bytes, columns, work.tiles, &work.chunk)
    work.blocks = (work.tiles + work.block - 1) // work.block
    work.chunk = min(work.chunk, work.result_channels)
    work.chunks = (work.result_channels + work.chunk - 1) // work.chunk
    work.workspace = _workspace_bytes(lines, columns, work.block)


cdef storage_t *_allocate(winograd_t *work, values_t *values, int64_t channels, int64_t rows) noexcept nogil:
    """Allocate memory for the values of `rows` rows; NULL and a message on failure."""
    cdef storage_t *memory
    memory = storage_new(_values(values, work.lanes, channels, rows) * work.bytes)
    if memory == NULL:
        atomic_store(&work.failed, 1)
        return NULL
    values.data = memory.data
    return memory


cdef void _release(storage_t *memory) noexcept nogil:
    if memory != NULL:
        storage_release(memory)


cdef void _begin(winograd_t *work, int64_t number, winograd_block_t *block) noexcept nogil:
    """Describe a block of tiles with all output channels."""
    block.work = work
    block.first = number * work.block
    block.count = min(work.block, work.tiles - block.first)
    block.channel, block.channels = 0, work.result_channels
    block.add = number > 0


cdef void _choose_chunk(winograd_block_t *block, int64_t number) noexcept nogil:
    """Restrict a block to some output channels."""
    cdef winograd_t *work = block.work
    block.channel = number * work.chunk
    block.channels = min(work.chunk, work.result_channels - block.channel)


# ---------------------------------------------------------------- steps of a block

cdef void _cut(winograd_block_t *block, bint gradients, int64_t begin, int64_t end, void *workspace) noexcept nogil:
    """Evaluate some vectors of channels of the sources, or of the gradients of the results."""
    cdef winograd_t *work = block.work
    cdef values_t *values = &block.results if gradients else &block.sources
    cdef int64_t channels = block.channels if gradients else work.source_channels, number, first, count
    cdef char *target
    for number in range(begin, end):
        first, count = number * work.lanes, min(work.lanes, channels - number * work.lanes)
        target = values.data + first * work.bytes
        first += work.group * work.result_channels + block.channel if gradients else work.group * channels
        cut_values[gradients][work.precision](&work.results if gradients else &work.sources, first, count,
                                              block.first, block.count, target, values, workspace)


cdef void _put(winograd_block_t *block, int64_t begin, int64_t end, void *workspace) noexcept nogil:
    """Interpolate some vectors of channels of the results."""
    cdef winograd_t *work = block.work
    cdef int64_t number, first, channel, count
    cdef bint finite = True
    cdef char *bias = NULL
    for number in range(begin, end):
        first, count = number * work.lanes, min(work.lanes, block.channels - number * work.lanes)
        channel = work.group * work.result_channels + block.channel + first
        if work.problem.bias != NULL:
            bias = work.problem.bias + channel * work.bytes
        finite &= put_results[work.precision](&work.results, channel, count, block.first, block.count,
                                              block.results.data + first * work.bytes, &block.results, bias, workspace)
    if not finite:
        atomic_store(&work.is_not_finite, 1)


# Bodies of parallel loops over these vectors; each thread has its own memory for transposed lines.

cdef void _lines_step(winograd_block_t *block, winograd_step_t step, int64_t begin, int64_t end) noexcept nogil:
    cdef winograd_t *work = block.work
    cdef storage_t *workspace = storage_new(work.workspace)
    if workspace == NULL:
        atomic_store(&work.failed, 1)
        return
    if step == PUT_RESULTS:
        _put(block, begin, end, workspace.data)
    else:
        _cut(block, step == CUT_GRADIENTS, begin, end, workspace.data)
    storage_release(workspace)


cdef void _cut_sources(void *block, int64_t begin, int64_t end) noexcept nogil:
    _lines_step(<winograd_block_t *>block, CUT_SOURCES, begin, end)


cdef void _cut_gradients(void *block, int64_t begin, int64_t end) noexcept nogil:
    _lines_step(<winograd_block_t *>block, CUT_GRADIENTS, begin, end)


cdef void _put_results(void *block, int64_t begin, int64_t end) noexcept nogil:
    _lines_step(<winograd_block_t *>block, PUT_RESULTS, begin, end)


cdef void _make_kernels(void *context, int64_t begin, int64_t end) noexcept nogil:
    """Evaluate the kernels of some vectors of output channels."""
    cdef winograd_block_t *block = <winograd_block_t *>context
    cdef winograd_t *work = block.work
    cdef int64_t number, first, count, channels = work.source_channels
    cdef int64_t lane_step = 9 if work.back else channels * 9, step = work.result_channels * 9 if work.back else 9
    cdef int64_t start = work.group * channels * work.result_channels * 9 + block.channel * lane_step
    for number in range(begin, end):
        first, count = number * work.lanes, min(work.lanes, block.channels - number * work.lanes)
        kernel_values[work.precision](work.problem.weight + (start + first * lane_step) * work.bytes, lane_step, count,
                                      step, channels, work.back, block.kernels.data + first * work.bytes,
                                      &block.kernels)


cdef void _put_gradients(void *context, int64_t begin, int64_t end) noexcept nogil:
    """Compute the gradients of the kernels of some vectors of output channels."""
    cdef winograd_block_t *block = <winograd_block_t *>context
    cdef winograd_t *work = block.work
    cdef int64_t number, first, count, step = work.source_channels * 9
    cdef int64_t start = (work.group * work.result_channels + block.channel) * step
    cdef bint finite = True
    for number in range(begin, end):
        first, count = number * work.lanes, min(work.lanes, block.channels - number * work.lanes)
        finite &= put_kernels[work.precision](
            block.kernels.data + first * work.bytes, &block.kernels, count, work.source_channels,
            work.problem.weight + (start + first * step) * work.bytes, step)
    if not finite:
        atomic_store(&work.is_not_finite, 1)


cdef void _multiply(void *context, int64_t begin, int64_t end) noexcept nogil:
    """Multiply at some points: a row for each tile."""
    cdef winograd_block_t *block = <winograd_block_t *>context
    cdef winograd_t *work = block.work
    cdef int64_t point, bytes = work.bytes
    cdef blas_scalar_t one, zero
    one.real, one.imag, zero.real, zero.imag = 1, 0, 0, 0
    for point in range(begin, end):
        gemm(work.problem.dtype, False, False, block.count, block.channels, work.source_channels, one,
             block.sources.data + point * block.sources.point_step * bytes, block.sources.tile_step,
             block.kernels.data + point * block.kernels.point_step * bytes, block.kernels.tile_step, zero,
             block.results.data + point * block.results.point_step * bytes, block.results.tile_step)


cdef void _multiply_gradients(void *context, int64_t begin, int64_t end) noexcept nogil:
    """Sum over tiles at some points, for the gradient of the kernels' values."""
    cdef winograd_block_t *block = <winograd_block_t *>context
    cdef winograd_t *work = block.work
    cdef int64_t point, bytes = work.bytes
    cdef blas_scalar_t one, beta
    one.real, one.imag, beta.real, beta.imag = 1, 0, block.add, 0
    for point in range(begin, end):
        gemm(work.problem.dtype, True, False, work.source_channels, block.channels, block.count, one,
             block.sources.data + point * block.sources.point_step * bytes, block.sources.tile_step,
             block.results.data + point * block.results.point_step * bytes, block.results.tile_step, beta,
             block.kernels.data + point * block.kernels.point_step * bytes, block.kernels.tile_step)


cdef int64_t _bundles(const winograd_t *work, int64_t channels) noexcept nogil:
    """Return how many vectors the channels fill."""
    return (channels + work.lanes - 1) // work.lanes


# ---------------------------------------------------------------- forward, and gradient of the input

cdef void _blocks_body(void *context, int64_t begin, int64_t end) noexcept nogil:
    """Compute whole blocks with kernels already evaluated."""
    cdef winograd_block_t block = (<winograd_block_t *>context)[0]
    cdef values_t kernels = block.kernels
    cdef winograd_t *work = block.work
    cdef int64_t number
    cdef storage_t *sources = _allocate(work, &block.sources, work.source_channels, work.block)
    cdef storage_t *results = _allocate(work, &block.results, work.result_channels, work.block)
    if sources != NULL and results != NULL:
        for number in range(begin, end):
            _begin(work, number, &block)
            block.kernels = kernels
            _cut_sources(&block, 0, _bundles(work, work.source_channels))
            _multiply(&block, 0, POINTS)
            _put_results(&block, 0, _bundles(work, work.result_channels))
    _release(sources)
    _release(results)


cdef void _chunks_body(void *context, int64_t begin, int64_t end) noexcept nogil:
    """Compute chunks of output channels of a block with sources already evaluated."""
    cdef winograd_block_t block = (<winograd_block_t *>context)[0]
    cdef winograd_t *work = block.work
    cdef int64_t number, bundles
    cdef storage_t *kernels = _allocate(work, &block.kernels, work.chunk, work.source_channels)
    cdef storage_t *results = _allocate(work, &block.results, work.chunk, work.block)
    if kernels != NULL and results != NULL:
        for number in range(begin, end):
            _choose_chunk(&block, number)
            bundles = _bundles(work, block.channels)
            block.prepare(&block, 0, bundles)
            block.multiply(&block, 0, POINTS)
            block.finish(&block, 0, bundles)
    _release(kernels)
    _release(results)


cdef void _convolve_blocks(winograd_t *work) noexcept nogil:
    """Evaluate all kernels, then compute block by block."""
    cdef winograd_block_t block
    cdef storage_t *kernels = _allocate(work, &block.kernels, work.result_channels, work.source_channels)
    if kernels == NULL:
        return
    _begin(work, 0, &block)
    parallel_for(_make_kernels, &block, _bundles(work, work.result_channels), 1)
    parallel_for(_blocks_body, &block, work.blocks, 1)
    storage_release(kernels)


cdef void _convolve_chunks(winograd_t *work) noexcept nogil:
    """Evaluate all sources of a block, then compute chunk by chunk."""
    cdef winograd_block_t block
    cdef int64_t number
    cdef storage_t *sources = _allocate(work, &block.sources, work.source_channels, work.block)
    if sources == NULL:
        return
    for number in range(work.blocks):
        _begin(work, number, &block)
        parallel_for(_cut_sources, &block, _bundles(work, work.source_channels), 1)
        block.prepare, block.multiply, block.finish = _make_kernels, _multiply, _put_results
        parallel_for(_chunks_body, &block, work.chunks, 1)
    storage_release(sources)


cdef int _convolve(problem_t *problem, bint back) noexcept nogil:
    cdef winograd_t work
    cdef int64_t group
    _plan(&work, problem, back)
    for group in range(problem.geometry.groups):
        work.group = group
        if work.chunks == 1:
            _convolve_blocks(&work)
        else:
            _convolve_chunks(&work)
    return MEMORY_ERROR if work.failed else NOT_APPLICABLE if work.is_not_finite else OK


cdef int winograd_forward(problem_t *problem) noexcept nogil:
    return _convolve(problem, False)


cdef int winograd_input(problem_t *problem) noexcept nogil:
    return _convolve(problem, True)


# ---------------------------------------------------------------- gradient of the kernel

cdef void _sum_blocks(winograd_t *work, winograd_block_t *block) noexcept nogil:
    """Sum over all blocks, then compute the gradients."""
    cdef int64_t number
    cdef storage_t *kernels = _allocate(work, &block.kernels, work.result_channels, work.source_channels)
    cdef storage_t *results = _allocate(work, &block.results, work.result_channels, work.block)
    if kernels != NULL and results != NULL:
        for number in range(work.blocks):
            _begin(work, number, block)
            parallel_for(_cut_sources, block, _bundles(work, work.source_channels), 1)
            parallel_for(_cut_gradients, block, _bundles(work, work.result_channels), 1)
            parallel_for(_multiply_gradients, block, POINTS, 1)
        parallel_for(_put_gradients, block, _bundles(work, work.result_channels), 1)
    _release(kernels)
    _release(results)


cdef int winograd_weight(problem_t *problem) noexcept nogil:
    cdef winograd_t work
    cdef winograd_block_t block
    cdef int64_t group
    cdef storage_t *sources
    _plan(&work, problem, False)
    sources = _allocate(&work, &block.sources, work.source_channels, work.block)
    if sources == NULL:
        return MEMORY_ERROR
    for group in range(problem.geometry.groups):
        work.group = group
        if work.blocks == 1:
            _begin(&work, 0, &block)
            parallel_for(_cut_sources, &block, _bundles(&work, work.source_channels), 1)
            block.prepare, block.multiply, block.finish = _cut_gradients, _multiply_gradients, _put_gradients
            parallel_for(_chunks_body, &block, work.chunks, 1)
        else:
            _sum_blocks(&work, &block)
    storage_release(sources)
    return MEMORY_ERROR if work.failed else NOT_APPLICABLE if work.is_not_finite else OK
