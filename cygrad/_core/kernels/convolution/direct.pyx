"""Geometry of convolutions, and the direct algorithm."""

from libc.stdint cimport int64_t
from libc.stdio cimport snprintf
from libc.string cimport memcpy, memset
from cygrad._core.arrays.array cimport array_t, value_t
from cygrad._core.arrays.dtype cimport COMPLEX128, COMPLEX64, FLOAT32, FLOAT64, INT64
from cygrad._core.kernels.arguments cimport integer_argument, integers_argument, list_text
from cygrad._core.kernels.linalg.product_blocks cimport correlate, dots
from cygrad._core.memory.atomic cimport atomic_store
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, OK, RUNTIME_ERROR, message
from cygrad._core.memory.storage cimport storage_new, storage_release, storage_t
from cygrad._core.threads.grain cimport products_per_chunk
from cygrad._core.threads.parallel cimport body_t, loop_threads, parallel_for


# ------------------------------------------------------------------------------------------------- convolution geometry

cdef extern from * nogil:
    """
    #define LARGEST ((int64_t)1 << 31)    /* largest size: products and sums of two sizes do not overflow */
    """
    const int64_t LARGEST


cdef int scatter_kind(int dtype) noexcept nogil:
    if dtype == FLOAT32:
        return 0
    if dtype == FLOAT64:
        return 1
    if dtype == COMPLEX64:
        return 2
    if dtype == COMPLEX128:
        return 3
    return 4 if dtype == INT64 else -1


cdef int read_sizes(const char *operation, const char *name, const value_t *value, int n, int64_t least,
                    int64_t filler, int64_t *sizes) noexcept nogil:
    cdef const int64_t *given
    cdef int i, count, status = integers_argument(operation, name, value, &count, &given)
    if status != OK:
        return status
    if count != 1 and count != n:
        snprintf(message(), MESSAGE, b"%s: expected %s to be a single integer value or a list of %d values to match "
                 b"the spatial dimensions (got %s=%s). Pass an integer or one for each dimension.", operation,
                 name, n, name, list_text(count, given))
        return RUNTIME_ERROR
    for i in range(3):
        sizes[i] = filler if i < 3 - n else given[0] if count == 1 else given[i - (3 - n)]
        if i >= 3 - n and not least <= sizes[i] < LARGEST:
            snprintf(message(), MESSAGE, b"%s: %s %s is not supported (got %s=%s, expected at least %lld%s).",
                     operation, b"too large a" if sizes[i] >= LARGEST else b"negative" if least == 0
                     else b"non-positive", name, name, list_text(count, given), <long long>least,
                     b" and less than 2**31" if sizes[i] >= LARGEST else b"")
            return RUNTIME_ERROR
    return OK


cdef int read_movement(const char *operation, int n, const value_t *arguments, bint with_groups,
                       geometry_t *geometry) noexcept nogil:
    cdef int status = read_sizes(operation, b"stride", &arguments[0], n, 1, 1, geometry.stride)
    if status == OK:
        status = read_sizes(operation, b"padding", &arguments[1], n, 0, 0, geometry.padding)
    if status == OK:
        status = read_sizes(operation, b"dilation", &arguments[2], n, 1, 1, geometry.dilation)
    geometry.groups = 1
    if status == OK and with_groups:
        status = integer_argument(operation, b"groups", &arguments[3], &geometry.groups)
        if status == OK and geometry.groups < 1:
            snprintf(message(), MESSAGE, b"%s: non-positive groups is not supported (got groups=%lld, expected at "
                     b"least 1).", operation, <long long>geometry.groups)
            status = RUNTIME_ERROR
    return status


cdef int fit_output(const char *operation, int n, geometry_t *geometry) noexcept nogil:
    cdef int64_t padded, reach
    cdef int i
    geometry.positions = geometry.taps = 1
    for i in range(3):
        if max(geometry.size[i], geometry.kernel[i]) >= LARGEST:
            snprintf(message(), MESSAGE, b"%s: sizes must be less than 2**31 (got size %lld and kernel size %lld in "
                     b"spatial dimension %d).", operation, <long long>geometry.size[i],
                     <long long>geometry.kernel[i], i - (3 - n))
            return RUNTIME_ERROR
        padded = geometry.size[i] + 2 * geometry.padding[i]
        reach = geometry.dilation[i] * (geometry.kernel[i] - 1) + 1
        if geometry.kernel[i] < 1 or padded < reach:
            snprintf(message(), MESSAGE, b"%s: kernel size can't be smaller than 1 or greater than the padded input "
                     b"(got size %lld, padding %lld, kernel size %lld and dilation %lld in spatial dimension %d). "
                     b"Use a smaller kernel or more padding.", operation, <long long>geometry.size[i],
                     <long long>geometry.padding[i], <long long>geometry.kernel[i],
                     <long long>geometry.dilation[i], i - (3 - n))
            return RUNTIME_ERROR
        geometry.out[i] = (padded - reach) // geometry.stride[i] + 1
        geometry.positions *= geometry.out[i]
        geometry.taps *= geometry.kernel[i]
        if max(geometry.positions, geometry.taps) >= LARGEST:
            snprintf(message(), MESSAGE, b"%s: an image may have less than 2**31 positions (got more for size %lld "
                     b"and kernel size %lld in spatial dimension %d). Use smaller images or kernels.", operation,
                     <long long>geometry.size[i], <long long>geometry.kernel[i], i - (3 - n))
            return RUNTIME_ERROR
    return OK


cdef int fit_shapes(const char *operation, int ndim, const int64_t *input, int weight_ndim, const int64_t *weight,
                    geometry_t *geometry) noexcept nogil:
    cdef int i, n = ndim - 2
    cdef int64_t groups = geometry.groups
    if weight_ndim != ndim:
        snprintf(message(), MESSAGE, b"%s: weight must have as many dimensions as the batch of images (got shapes "
                 b"%s and %s, expected %d dimensions).", operation, list_text(weight_ndim, weight),
                 list_text(ndim, input), ndim)
        return RUNTIME_ERROR
    if weight[0] < groups or weight[0] % groups:
        snprintf(message(), MESSAGE, b"%s: expected weight to be at least %lld and divisible by %lld at dimension 0 "
                 b"(got weight of size %s and groups=%lld).", operation, <long long>groups, <long long>groups,
                 list_text(weight_ndim, weight), <long long>groups)
        return RUNTIME_ERROR
    if weight[1] >= LARGEST or input[1] != weight[1] * groups:
        snprintf(message(), MESSAGE, b"%s: the number of channels does not match the weight (got input%s with %lld "
                 b"channels, expected %lld channels for weight of size %s and groups=%lld).", operation,
                 list_text(ndim, input), <long long>input[1], <long long>(weight[1] * groups),
                 list_text(weight_ndim, weight), <long long>groups)
        return RUNTIME_ERROR
    geometry.batch = input[0]
    geometry.in_channels = weight[1]
    geometry.out_channels = weight[0] // groups
    for i in range(3):
        geometry.size[i] = 1 if i < 3 - n else input[2 + i - (3 - n)]
        geometry.kernel[i] = 1 if i < 3 - n else weight[2 + i - (3 - n)]
    return fit_output(operation, n, geometry)


cdef void follow(geometry_t *geometry, const array_t *input) noexcept nogil:
    cdef int i, n = input.ndim - 2
    geometry.batch_step, geometry.channel_step = input.strides[0], input.strides[1]
    for i in range(3):
        geometry.step[i] = 0 if i < 3 - n else input.strides[2 + i - (3 - n)]


cdef int output_shape(const geometry_t *geometry, int n, int64_t *shape) noexcept nogil:
    cdef int i
    shape[0], shape[1] = geometry.batch, geometry.groups * geometry.out_channels
    for i in range(n):
        shape[2 + i] = geometry.out[3 - n + i]
    return n + 2


# --------------------------------------------------------------------------------------------------- convolution direct

# Convolutions without patches, for few channels ("depthwise" above all) and long lines.
#
# A matrix product with one row is slow, and 3 x 3 patches copy an image nine times. Here an image becomes padded lines
# (direct.h), and each tap multiplies them by one number, in vectors. A task is one group of channels of one
# image, or some of its results if threads would be without a task; its buffers stay in the cache.

cdef extern from "kernels/convolution/direct.h" nogil:
    enum:
        DIRECT_BLOCK
        DIRECT_SLACK
    ctypedef struct lines_t:
        int64_t extent[3]      # lines of one phase, and the length of a line
        int64_t phase          # elements of one phase
        int64_t flat           # ... from the first to the last output position, rounded up
        int64_t guard          # zeros before outputs
        int64_t image          # elements of a channel's buffer
        int64_t output
    void plan_lines(const geometry_t *g, lines_t *lines)
    int64_t direct_phases(const geometry_t *g)
    int64_t tap_phase(const geometry_t *g, int64_t i, int64_t j, int64_t k)
    int64_t tap_shift(const geometry_t *g, const lines_t *lines, int64_t i, int64_t j, int64_t k)
    void (*deal_plane[2])(const geometry_t *g, const lines_t *lines, void *image, void *buffer, int back)
    void (*spread_plane[2])(const geometry_t *g, const lines_t *lines, const void *plane, void *buffer)
    void copy_lines(char *target, int64_t target_step, const char *source, int64_t source_step, int64_t lines,
                    int64_t nbytes)
    void (*plain_dots[2])(const geometry_t *g, const void *grad, const void *image, double *sums)
    void (*take_at[2])(const void *source, const int64_t *places, int64_t n, void *out)
    int (*all_finite[2])(const void *numbers, int64_t n)
    void (*add_parts[2])(const double *sums, int64_t parts, int64_t size, void *weight)

cdef enum:
    ROWS = 32                  # output channels computed together
    PIECE = 4080               # their positions computed together, which stay in the cache: whole vectors, and threes
    RUN = 2048                 # elements summed before the sum is added in double precision
    FEWEST = 4                 # channels of a task
    SMALL_TASK = 1 << 19       # multiplications that are not worth several tasks

ctypedef struct direct_form_t:
    problem_t *problem
    int64_t bytes              # of an element
    int precision              # 0: single, 1: double
    lines_t lines
    int64_t channels           # whose results one task computes
    int64_t blocks             # ... in which the channels of a group are split
    int64_t parts              # of the batch, for the weight gradient
    int64_t part_images
    double *sums               # partial sums of the parts
    char *weights              # for the input gradient, in the order of its sources
    int64_t failed             # atomic: a thread had no memory

# Buffers of a task.
ctypedef struct workspace_t:
    storage_t *memory
    char *images               # padded with zeros
    char *outputs
    char **sources             # for each channel and tap
    int64_t *places            # ... of the input gradient: positions of their weights
    int64_t *first             # ... and the first one of each phase
    char *start                # initial sums: one number per output channel


# ---------------------------------------------------------------- buffers

cdef int64_t _sources(const geometry_t *g) noexcept nogil:
    """Return an upper limit of the terms of a result."""
    return max(g.in_channels, g.out_channels) * g.taps


cdef inline int64_t _rows(int64_t channels) noexcept nogil:
    """Return how many output channels are computed together."""
    return min(<int64_t>ROWS, channels)


cdef int64_t _workspace_bytes(const geometry_t *g, const lines_t *lines, int64_t bytes, int64_t images,
                         int64_t outputs) noexcept nogil:
    cdef int64_t numbers = images * lines.image + outputs * lines.output + max(g.in_channels, g.out_channels)
    return numbers * bytes + (2 * _sources(g) + direct_phases(g) + 1) * 8


cdef int64_t direct_bytes(const geometry_t *geometry, int64_t bytes, bint back) noexcept nogil:
    cdef lines_t lines
    plan_lines(geometry, &lines)
    if back:
        return _workspace_bytes(geometry, &lines, bytes, _rows(geometry.in_channels), geometry.out_channels)
    return _workspace_bytes(geometry, &lines, bytes, geometry.in_channels, _rows(geometry.out_channels))


cdef int64_t direct_elements(const geometry_t *geometry, bint back) noexcept nogil:
    cdef lines_t lines
    plan_lines(geometry, &lines)
    return direct_phases(geometry) * lines.phase if back else lines.flat


cdef void _plan(direct_form_t *work, problem_t *problem) noexcept nogil:
    work.problem, work.bytes, work.precision, work.failed = problem, problem.bytes, problem.dtype == FLOAT64, 0
    plan_lines(&problem.geometry, &work.lines)


cdef int64_t _task_work(const geometry_t *g) noexcept nogil:
    """Count the multiplications of one group of one image."""
    return g.in_channels * g.out_channels * g.taps * g.positions


cdef void _split(direct_form_t *work, int64_t channels, int64_t groups, int64_t multiplications) noexcept nogil:
    """
    Split the channels of results into blocks if threads would be without one of `groups` tasks.

    Channels are computed independently, so results are bit-identical for any number of blocks.
    """
    cdef int64_t threads = loop_threads() if multiplications > SMALL_TASK else 1
    work.channels = channels
    if groups % threads and groups < 4 * threads:
        work.channels = min(channels, max(<int64_t>FEWEST, (channels - 1) // threads + 1))
    work.blocks = (channels - 1) // work.channels + 1


cdef void _run_tasks(direct_form_t *work, body_t body, int64_t groups, int64_t multiplications) noexcept nogil:
    parallel_for(body, work, groups * work.blocks, products_per_chunk(multiplications // work.blocks))


cdef bint _open(direct_form_t *work, int64_t images, int64_t outputs, bint cleared,
                workspace_t *workspace) noexcept nogil:
    """
    Allocate zeroed memory for channels of images, and for elements of outputs, zeroed if `cleared`; False on failure.
    """
    cdef geometry_t *g = &work.problem.geometry
    cdef int64_t bytes = work.bytes
    cdef int64_t starts = max(g.in_channels, g.out_channels) * bytes
    cdef int64_t total = _workspace_bytes(g, &work.lines, bytes, images, 0) + outputs * bytes
    workspace.memory = storage_new(total)
    if workspace.memory == NULL:
        atomic_store(&work.failed, 1)
        return False
    workspace.sources = <char **>workspace.memory.data
    workspace.places = <int64_t *>(workspace.sources + _sources(g))
    workspace.first = workspace.places + _sources(g)
    workspace.images = <char *>(workspace.first + direct_phases(g) + 1)
    workspace.start = workspace.images + images * work.lines.image * bytes
    workspace.outputs = workspace.start + starts
    memset(workspace.memory.data, 0, total if cleared else workspace.outputs - workspace.memory.data)
    return True


cdef void _point_at_images(direct_form_t *work, workspace_t *workspace) noexcept nogil:
    """List the sources of an output: the phases of each channel, shifted by each tap."""
    cdef geometry_t *g = &work.problem.geometry
    cdef int64_t channel, a, b, c, source = 0
    for channel in range(g.in_channels):
        for a in range(g.kernel[0]):
            for b in range(g.kernel[1]):
                for c in range(g.kernel[2]):
                    workspace.sources[source] = workspace.images + (
                        channel * work.lines.image + tap_phase(g, a, b, c) * work.lines.phase
                        + tap_shift(g, &work.lines, a, b, c)) * work.bytes
                    source += 1


cdef void _deal(direct_form_t *work, int64_t image, int64_t channel, char *buffer, bint back) noexcept nogil:
    """Copy a channel (of all groups) of an image to its phases, or back."""
    cdef geometry_t *g = &work.problem.geometry
    cdef char *plane = work.problem.input + (image * g.batch_step + channel * g.channel_step) * work.bytes
    deal_plane[work.precision](g, &work.lines, plane, buffer, back)


cdef void _spread(direct_form_t *work, int64_t image, int64_t channel, char *buffer) noexcept nogil:
    """Copy a channel (of all groups) of an output to lines."""
    cdef geometry_t *g = &work.problem.geometry
    cdef char *plane = work.problem.output + (
        image * g.groups * g.out_channels + channel) * g.positions * work.bytes
    spread_plane[work.precision](g, &work.lines, plane, buffer)


# ---------------------------------------------------------------- forward

cdef void _advance(workspace_t *workspace, int64_t taps, int64_t nbytes) noexcept nogil:
    """Move all sources."""
    cdef int64_t i
    for i in range(taps):
        workspace.sources[i] += nbytes


cdef void _forward_piece(direct_form_t *work, workspace_t *workspace, int64_t rows, const char *weights, char *plane,
                         int64_t channel, int64_t count, int64_t lines) noexcept nogil:
    """Compute `count` positions of each of some lines for some output channels, from the sources' positions on."""
    cdef geometry_t *g = &work.problem.geometry
    cdef int64_t taps = g.in_channels * g.taps, wide = work.lines.extent[2], i
    cdef int64_t flat = ((lines - 1) * wide + count + DIRECT_BLOCK - 1) // DIRECT_BLOCK * DIRECT_BLOCK
    correlate[work.precision](rows, flat, taps, workspace.sources, weights, taps,
                              workspace.start + channel * work.bytes, workspace.outputs, flat + DIRECT_SLACK)
    for i in range(rows):
        copy_lines(plane + i * g.positions * work.bytes, g.out[2] * work.bytes,
                   workspace.outputs + i * (flat + DIRECT_SLACK) * work.bytes, wide * work.bytes, lines,
                   count * work.bytes)


cdef void _forward_task(direct_form_t *work, int64_t task, workspace_t *workspace) noexcept nogil:
    """Some output channels of one group of one image."""
    cdef geometry_t *g = &work.problem.geometry
    cdef int64_t channel = task % work.blocks * work.channels, last = min(channel + work.channels, g.out_channels)
    cdef int64_t image = task // work.blocks // g.groups, group = task // work.blocks % g.groups, i, j, k, rows
    cdef int64_t taps = g.in_channels * g.taps, wide = work.lines.extent[2], lines, count, place, at = 0
    cdef char *weights
    cdef char *plane
    for i in range(g.in_channels):
        _deal(work, image, group * g.in_channels + i, workspace.images + i * work.lines.image * work.bytes, False)
    if work.problem.bias != NULL:
        memcpy(workspace.start, work.problem.bias + group * g.out_channels * work.bytes, g.out_channels * work.bytes)
    while channel < last:
        rows = _rows(last - channel)
        weights = work.problem.weight + (group * g.out_channels + channel) * taps * work.bytes
        plane = work.problem.output + (
            image * g.groups * g.out_channels + group * g.out_channels + channel) * g.positions * work.bytes
        for i in range(g.out[0]):
            j = 0
            while j < g.out[1]:
                lines = min(g.out[1] - j, max(<int64_t>1, PIECE // wide))
                k = 0
                while k < g.out[2]:
                    count = g.out[2] - k if lines > 1 else min(g.out[2] - k, <int64_t>PIECE)
                    place = (i * work.lines.extent[1] + j) * wide + k
                    _advance(workspace, taps, (place - at) * work.bytes)
                    at = place
                    _forward_piece(work, workspace, rows, weights,
                                   plane + ((i * g.out[1] + j) * g.out[2] + k) * work.bytes, channel, count, lines)
                    k += count
                j += lines
        channel += rows
    _advance(workspace, taps, -at * work.bytes)


cdef void _forward_body(void *context, int64_t begin, int64_t end) noexcept nogil:
    cdef direct_form_t *work = <direct_form_t *>context
    cdef const geometry_t *g = &work.problem.geometry
    cdef workspace_t workspace
    cdef int64_t task
    if not _open(work, g.in_channels, _rows(g.out_channels) * (min(work.lines.flat, <int64_t>PIECE) + DIRECT_SLACK),
                 False, &workspace):
        return
    _point_at_images(work, &workspace)
    for task in range(begin, end):
        _forward_task(work, task, &workspace)
    storage_release(workspace.memory)


cdef int direct_forward(problem_t *problem) noexcept nogil:
    cdef direct_form_t work
    cdef geometry_t *g = &problem.geometry
    _plan(&work, problem)
    _split(&work, g.out_channels, g.batch * g.groups, _task_work(g))
    _run_tasks(&work, _forward_body, g.batch * g.groups, _task_work(g))
    return MEMORY_ERROR if work.failed else OK


# ---------------------------------------------------------------- gradient of the input

cdef void _point_at_outputs(direct_form_t *work, workspace_t *workspace) noexcept nogil:
    """List the sources of each phase of the input: output channels, shifted back by each tap of the phase."""
    cdef geometry_t *g = &work.problem.geometry
    cdef int64_t phase, channel, a, b, c, tap, source = 0
    for phase in range(direct_phases(g)):
        workspace.first[phase] = source
        for channel in range(g.out_channels):
            tap = 0
            for a in range(g.kernel[0]):
                for b in range(g.kernel[1]):
                    for c in range(g.kernel[2]):
                        if tap_phase(g, a, b, c) == phase:
                            workspace.sources[source] = workspace.outputs + (
                                channel * work.lines.output + work.lines.guard
                                - tap_shift(g, &work.lines, a, b, c)) * work.bytes
                            workspace.places[source] = channel * g.in_channels * g.taps + tap
                            source += 1
                        tap += 1
    workspace.first[direct_phases(g)] = source


cdef void _input_task(direct_form_t *work, int64_t task, workspace_t *workspace) noexcept nogil:
    """Some input channels of one group of one image."""
    cdef geometry_t *g = &work.problem.geometry
    cdef int64_t channel = task % work.blocks * work.channels, last = min(channel + work.channels, g.in_channels)
    cdef int64_t image = task // work.blocks // g.groups, group = task // work.blocks % g.groups
    cdef int64_t taps = g.out_channels * g.taps, i, rows, phase, source
    cdef char *weights = work.weights + group * g.in_channels * taps * work.bytes
    for i in range(g.out_channels):
        _spread(work, image, group * g.out_channels + i,
                workspace.outputs + (i * work.lines.output + work.lines.guard) * work.bytes)
    if work.problem.bias != NULL:
        memcpy(workspace.start, work.problem.bias + group * g.in_channels * work.bytes, g.in_channels * work.bytes)
    while channel < last:
        rows = _rows(last - channel)
        for phase in range(direct_phases(g)):
            source = workspace.first[phase]
            correlate[work.precision](
                rows, work.lines.phase, workspace.first[phase + 1] - source, workspace.sources + source,
                weights + (channel * taps + source) * work.bytes, taps, workspace.start + channel * work.bytes,
                workspace.images + phase * work.lines.phase * work.bytes, work.lines.image)
        for i in range(rows):
            _deal(work, image, group * g.in_channels + channel + i,
                  workspace.images + i * work.lines.image * work.bytes, True)
        channel += rows


cdef void _input_body(void *context, int64_t begin, int64_t end) noexcept nogil:
    cdef direct_form_t *work = <direct_form_t *>context
    cdef const geometry_t *g = &work.problem.geometry
    cdef workspace_t workspace
    cdef int64_t task
    if not _open(work, _rows(g.in_channels), g.out_channels * work.lines.output, True, &workspace):
        return
    _point_at_outputs(work, &workspace)
    for task in range(begin, end):
        _input_task(work, task, &workspace)
    storage_release(workspace.memory)


cdef void _order_weights(direct_form_t *work, workspace_t *workspace) noexcept nogil:
    """Copy the weights of each input channel in the order of the sources of its gradient."""
    cdef geometry_t *g = &work.problem.geometry
    cdef int64_t taps = g.out_channels * g.taps, group, i
    cdef char *weights = work.weights
    for group in range(g.groups):
        for i in range(g.in_channels):
            take_at[work.precision](work.problem.weight + (group * taps * g.in_channels + i * g.taps) * work.bytes,
                                    workspace.places, taps, weights)
            weights += taps * work.bytes


cdef int direct_input(problem_t *problem) noexcept nogil:
    cdef direct_form_t work
    cdef geometry_t *g = &problem.geometry
    cdef int64_t n = g.groups * g.out_channels * g.in_channels * g.taps
    cdef workspace_t workspace
    cdef storage_t *weights
    # The kernel also multiplies the zeros between lines of outputs.
    if not all_finite[problem.dtype == FLOAT64](problem.weight, n):
        return NOT_APPLICABLE
    _plan(&work, problem)
    weights = storage_new(n * problem.bytes)
    if weights == NULL:
        return MEMORY_ERROR
    work.weights = weights.data
    if _open(&work, 0, 0, True, &workspace):
        _point_at_outputs(&work, &workspace)
        _order_weights(&work, &workspace)
        storage_release(workspace.memory)
        _split(&work, g.in_channels, g.batch * g.groups, _task_work(g))
        _run_tasks(&work, _input_body, g.batch * g.groups, _task_work(g))
    storage_release(weights)
    return MEMORY_ERROR if work.failed else OK


# ---------------------------------------------------------------- gradient of the kernel

cdef void _add_dots(direct_form_t *work, int64_t image, int64_t group, int64_t channel, int64_t rows,
                    workspace_t *workspace, double *found, double *sums) noexcept nogil:
    """Add products of some output channels with all sources to `sums`."""
    cdef geometry_t *g = &work.problem.geometry
    cdef int64_t taps = g.in_channels * g.taps, i, row, source
    cdef const char *grad
    cdef const char *plane
    memset(found, 0, rows * taps * sizeof(double))
    dots[work.precision](rows, work.lines.flat, taps, RUN, workspace.outputs, work.lines.output, workspace.sources,
                         found)
    for row in range(rows):
        for source in range(g.in_channels):
            if all_finite[1](found + row * taps + source * g.taps, g.taps):
                continue
            # An inf or nan may have met zeros between lines.
            memset(found + row * taps + source * g.taps, 0, g.taps * sizeof(double))
            grad = work.problem.output + (
                (image * g.groups + group) * g.out_channels + channel + row) * g.positions * work.bytes
            plane = work.problem.input + (
                image * g.batch_step + (group * g.in_channels + source) * g.channel_step) * work.bytes
            plain_dots[work.precision](g, grad, plane, found + row * taps + source * g.taps)
    for i in range(rows * taps):
        sums[i] += found[i]


cdef void _weight_task(direct_form_t *work, int64_t part, int64_t begin, int64_t end, workspace_t *workspace,
                       double *found) noexcept nogil:
    """Sum blocks [begin, end) of groups over a part of the batch, image by image in memory order."""
    cdef geometry_t *g = &work.problem.geometry
    cdef int64_t image, block, group, channel, last, i, rows, taps = g.in_channels * g.taps
    cdef double *sums = work.sums + part * g.groups * g.out_channels * taps
    for image in range(part * work.part_images, min((part + 1) * work.part_images, g.batch)):
        for block in range(begin, end):
            group = block // work.blocks
            for i in range(g.in_channels):
                _deal(work, image, group * g.in_channels + i, workspace.images + i * work.lines.image * work.bytes,
                      False)
            channel = block % work.blocks * work.channels
            last = min(channel + work.channels, g.out_channels)
            while channel < last:
                rows = _rows(last - channel)
                for i in range(rows):
                    _spread(work, image, group * g.out_channels + channel + i,
                            workspace.outputs + i * work.lines.output * work.bytes)
                _add_dots(work, image, group, channel, rows, workspace, found,
                          sums + (group * g.out_channels + channel) * taps)
                channel += rows


cdef void _weight_body(void *context, int64_t begin, int64_t end) noexcept nogil:
    """Run tasks, numbered by block of groups within a part."""
    cdef direct_form_t *work = <direct_form_t *>context
    cdef geometry_t *g = &work.problem.geometry
    cdef workspace_t workspace
    cdef int64_t part, stop, blocks = g.groups * work.blocks
    cdef storage_t *found = storage_new(_rows(g.out_channels) * g.in_channels * g.taps * sizeof(double))
    if found == NULL:
        atomic_store(&work.failed, 1)
        return
    if _open(work, g.in_channels, _rows(g.out_channels) * work.lines.output, True, &workspace):
        _point_at_images(work, &workspace)
        while begin < end:
            part = begin // blocks
            stop = min(end, (part + 1) * blocks)
            _weight_task(work, part, begin - part * blocks, stop - part * blocks, &workspace, <double *>found.data)
            begin = stop
        storage_release(workspace.memory)
    storage_release(found)


cdef int direct_weight(problem_t *problem) noexcept nogil:
    cdef direct_form_t work
    cdef geometry_t *g = &problem.geometry
    cdef int64_t size = g.groups * g.out_channels * g.in_channels * g.taps, most
    cdef storage_t *sums
    _plan(&work, problem)
    most = min(PARTS // g.groups, _task_work(g) * g.batch // PART_WORK)
    most = max(1, min(most, PART_BYTES // max(size * <int64_t>sizeof(double), 1)))
    work.part_images = (g.batch + most - 1) // most
    work.parts = (g.batch + work.part_images - 1) // work.part_images
    sums = storage_new(work.parts * size * sizeof(double))
    if sums == NULL:
        return MEMORY_ERROR
    memset(sums.data, 0, work.parts * size * sizeof(double))
    work.sums = <double *>sums.data
    _split(&work, g.out_channels, work.parts * g.groups, _task_work(g) * work.part_images)
    _run_tasks(&work, _weight_body, work.parts * g.groups, _task_work(g) * work.part_images)
    add_parts[work.precision](work.sums, work.parts, size, problem.weight)
    storage_release(sums)
    return MEMORY_ERROR if work.failed else OK
