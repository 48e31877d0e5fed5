"""
Maximum and average pooling, adaptive pooling, max_unpool, and their gradients.

An array is a stack of planes: its last one to three dimensions, extended to three. Windows are computed once for each
dimension (pooling.h); ordinary and adaptive pooling differ only in them.
"""

from libc.stdint cimport int32_t, int64_t
from libc.stdio cimport snprintf
from libc.string cimport memset
from cygrad._core.arrays.array cimport (
    MAX_DIMS, NOTHING, array_t, as_real, is_true, register_kernel, release, shape_text, value_t,
)
from cygrad._core.arrays.dtype cimport (
    BOOL, INT64, dtype_name, is_complex, is_differentiable, is_floating, itemsize,
)
from cygrad._core.elementwise.copying cimport as_contiguous, with_layout_of_images
from cygrad._core.kernels.arguments cimport (
    array_argument, array_result, check_same_shape, integer_argument, integers_argument, list_text, new_array,
)
from cygrad._core.kernels.convolution.direct cimport read_sizes
from cygrad._core.kernels.reduction.reductions cimport MEAN, reduce_array
from cygrad._core.memory.atomic cimport atomic_store
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, NOT_IMPLEMENTED, OK, RUNTIME_ERROR, message
from cygrad._core.memory.storage cimport storage_new, storage_release, storage_t
from cygrad._core.threads.grain cimport COMPUTED, rows_per_chunk
from cygrad._core.threads.parallel cimport parallel_for


# -------------------------------------------------------------------------------------------------------------- pooling

cdef extern from "kernels/nn/pooling.h" nogil:
    ctypedef struct window_t:
        int64_t begin
        int64_t count
        int64_t full
    ctypedef struct pooling_t:
        int64_t size[3]
        int64_t out[3]
        int64_t step[3]
        window_t *windows[3]
        int64_t inner_first
        int64_t inner_last
        int64_t inner_stride
        const int32_t *starts
        int64_t kernel, before, line, copied
        double divisor
        int with_padding
    enum:
        LANES
        LARGEST_COPY
        PICK
        SPREAD
        PLACE
    void (*window_maxima[8])(const pooling_t *pooling, int64_t planes, const void *plane, void *values,
                             int64_t *positions)
    void (*window_averages[8])(const pooling_t *pooling, const void *source, void *target)
    void (*window_shares[8])(const pooling_t *pooling, const void *source, void *target)
    int64_t (*plane_moves[10][3])(void *small, void *large, const int64_t *positions, int64_t n, int64_t limit)

cdef enum:
    LARGEST_PLANE = 1 << 30    # elements that 32 bits count
    FEWEST_GATHERED = 6        # windows of a line that are worth a vector of single elements

ctypedef enum pool_t:
    MAXIMA
    ADAPTIVE_MAXIMA
    AVERAGES
    ADAPTIVE_AVERAGES

ctypedef struct pooling_arguments_t:
    const char *name
    pooling_t pooling
    storage_t *memory          # of the windows
    storage_t *listed          # first places of windows
    int n                      # spatial dimensions
    int dtype
    int64_t planes
    int64_t in_plane           # elements of one plane
    int64_t out_plane
    int64_t window             # elements of the largest window
    char *input
    char *output
    int64_t *indices


# ---------------------------------------------------------------- windows

cdef int _check_planes(const char *name, int ndim, const int64_t *shape, int n, int first) noexcept nogil:
    """Check for one or two dimensions before `n` spatial ones; those from `first` on must not be empty."""
    cdef int i
    if not 1 <= n <= 3:
        snprintf(message(), MESSAGE, b"%s: pools one to three dimensions (got %d).", name, n)
        return RUNTIME_ERROR
    if ndim != n + 1 and ndim != n + 2:
        snprintf(message(), MESSAGE, b"%s: expected %dD (unbatched) or %dD (batched) input (got shape %s).", name,
                 n + 1, n + 2, list_text(ndim, shape))
        return RUNTIME_ERROR
    for i in range(first, ndim):
        if shape[i] == 0:
            snprintf(message(), MESSAGE, b"%s: expected input with non-zero sizes except for the batch (got shape "
                     b"%s).", name, list_text(ndim, shape))
            return RUNTIME_ERROR
    return OK


cdef int _open(pooling_arguments_t *work, const char *name, int n, int ndim, const int64_t *shape,
               bint adaptive) noexcept nogil:
    """Set sizes of planes; the caller sets `out` and allocates the windows. `adaptive`: allow empty channels."""
    cdef int i, status = _check_planes(name, ndim, shape, n, 1 if adaptive else ndim - n - 1)
    work.name, work.n, work.memory, work.listed = name, n, NULL, NULL
    if status != OK:
        return status
    work.planes = work.in_plane = 1
    for i in range(ndim - n):
        work.planes *= shape[i]
    for i in range(3):
        work.pooling.size[i] = 1 if i < 3 - n else shape[ndim - 3 + i]
        work.pooling.out[i] = work.pooling.step[i] = 1
        work.in_plane *= work.pooling.size[i]
    work.pooling.inner_first = work.pooling.inner_last = work.pooling.inner_stride = 0
    work.pooling.divisor = 0
    work.pooling.with_padding = False
    work.pooling.copied = work.pooling.before = work.pooling.line = 0
    return OK


cdef int _allocate(pooling_arguments_t *work) noexcept nogil:
    """Allocate the windows of `out` outputs."""
    cdef pooling_t *p = &work.pooling
    cdef int i
    work.memory = storage_new((p.out[0] + p.out[1] + p.out[2]) * sizeof(window_t))
    if work.memory == NULL:
        return MEMORY_ERROR
    p.windows[0] = <window_t *>work.memory.data
    p.windows[1] = p.windows[0] + p.out[0]
    p.windows[2] = p.windows[1] + p.out[1]
    work.out_plane = work.window = 1
    for i in range(3):
        work.out_plane *= p.out[i]
    return OK


cdef int _copy_planes(pooling_arguments_t *work, int64_t stride, int64_t padding) noexcept nogil:
    """Copy small planes with padding, so that all windows of maxima are computed in lanes, if that is worth it."""
    cdef pooling_t *p = &work.pooling
    cdef int64_t c, end = (p.out[2] - 1) * stride + (p.kernel - 1) * p.step[2] + 1
    cdef int64_t line = p.size[2] if padding == 0 and end <= p.size[2] else max(end, padding + p.size[2])
    cdef int64_t size = p.size[0] * p.size[1] * line
    cdef int32_t *starts
    if size > LARGEST_COPY or p.kernel >= LANES or p.inner_last - p.inner_first == p.out[2] >= LANES or (
            stride > 4 or p.out[2] < (2 if stride <= 2 else FEWEST_GATHERED)):
        return OK
    for c in range(p.out[2]):
        if p.windows[2][c].count == 0:
            return OK
    work.listed = storage_new((p.out[2] + 2 * LANES) * sizeof(int32_t))
    if work.listed == NULL:
        return MEMORY_ERROR
    starts = <int32_t *>work.listed.data
    for c in range(p.out[2] + 2 * LANES):
        starts[c] = <int32_t>(p.windows[2][c].begin - c * stride + padding) if c < p.out[2] else 0
    p.starts, p.before, p.line, p.copied = starts, padding, line, size
    p.inner_first, p.inner_last = 0, p.out[2]
    return OK


cdef int _sliding(pooling_arguments_t *work, const value_t *arguments, bint dilated, bint ceil_mode) noexcept nogil:
    """Set windows from kernel_size, stride, padding and, if `dilated`, dilation."""
    cdef pooling_t *p = &work.pooling
    cdef int64_t[3] kernel
    cdef int64_t[3] stride
    cdef int64_t[3] padding
    cdef int64_t out, begin, end, least
    cdef window_t *window
    cdef int i, status = read_sizes(work.name, b"kernel_size", &arguments[0], work.n, 1, 1, kernel)
    if status == OK:
        status = read_sizes(work.name, b"stride", &arguments[1], work.n, 1, 1, stride)
    if status == OK:
        status = read_sizes(work.name, b"padding", &arguments[2], work.n, 0, 0, padding)
    if status == OK and dilated:
        status = read_sizes(work.name, b"dilation", &arguments[3], work.n, 1, 1, p.step)
    if status != OK:
        return status
    for i in range(3):
        least = p.step[i] * (kernel[i] - 1) + 1
        if padding[i] > kernel[i] // 2:
            snprintf(message(), MESSAGE, b"%s: padding should be at most half of the kernel size (got padding %lld "
                     b"and kernel size %lld). Pad the input first.", work.name, <long long>padding[i],
                     <long long>kernel[i])
            return RUNTIME_ERROR
        out = p.size[i] + 2 * padding[i] - least + (stride[i] - 1 if ceil_mode else 0)
        out = out // stride[i] + 1 if out >= 0 else 0
        # The last window starts inside of the image or the padding before it.
        if ceil_mode and (out - 1) * stride[i] >= p.size[i] + padding[i]:
            out -= 1
        if out < 1:
            snprintf(message(), MESSAGE, b"%s: the output size is too small (got input size %lld, padding %lld, "
                     b"kernel size %lld and dilation %lld in spatial dimension %d, expected an output of at least "
                     b"1). Use a smaller kernel.", work.name, <long long>p.size[i], <long long>padding[i],
                     <long long>kernel[i], <long long>p.step[i], i - (3 - work.n))
            return RUNTIME_ERROR
        p.out[i] = out
    status = _allocate(work)
    if status != OK:
        return status
    for i in range(3):
        for out in range(p.out[i]):
            window = &p.windows[i][out]
            begin = out * stride[i] - padding[i]
            end = min(begin + (kernel[i] - 1) * p.step[i] + 1, p.size[i] + padding[i])
            window.full = end - begin
            if begin < 0:
                begin += (-begin + p.step[i] - 1) // p.step[i] * p.step[i]
            end = min(end, p.size[i])
            window.begin = begin
            window.count = max(0, (end - begin + p.step[i] - 1) // p.step[i])
        work.window *= min(kernel[i], p.size[i])
    if work.in_plane < LARGEST_PLANE:
        p.inner_stride, p.inner_last = stride[2], p.out[2]
        while p.inner_first < p.inner_last and p.windows[2][p.inner_first].count < kernel[2]:
            p.inner_first += 1
        while p.inner_last > p.inner_first and p.windows[2][p.inner_last - 1].count < kernel[2]:
            p.inner_last -= 1
    p.kernel, p.line = kernel[2], p.size[2]
    return _copy_planes(work, stride[2], padding[2]) if dilated else OK


cdef int _adaptive(pooling_arguments_t *work, const value_t *sizes) noexcept nogil:
    """Set windows of adaptive pooling, of nearly equal size."""
    cdef pooling_t *p = &work.pooling
    cdef int64_t out, end, largest
    cdef window_t *window
    cdef int i, status = read_sizes(work.name, b"output_size", sizes, work.n, 0, 1, p.out)
    if status == OK:
        status = _allocate(work)
    if status != OK:
        return status
    for i in range(3):
        largest = 1
        for out in range(p.out[i]):
            window = &p.windows[i][out]
            window.begin = out * p.size[i] // p.out[i]
            end = ((out + 1) * p.size[i] + p.out[i] - 1) // p.out[i]
            window.count = window.full = end - window.begin
            largest = max(largest, window.count)
        work.window *= largest
    return OK


cdef int _new_output(pooling_arguments_t *work, const array_t *like, int dtype, array_t **output) noexcept nogil:
    """Allocate an array with the planes of the output."""
    cdef int64_t[MAX_DIMS] shape
    cdef int i
    for i in range(like.ndim):
        shape[i] = like.shape[i] if i < like.ndim - work.n else work.pooling.out[3 - like.ndim + i]
    return new_array(work.name, dtype, like.ndim, shape, output)


cdef int64_t _grain(pooling_arguments_t *work) noexcept nogil:
    return rows_per_chunk(work.out_plane * work.window, COMPUTED)


# ---------------------------------------------------------------- maxima

cdef void _maxima_body(void *context, int64_t begin, int64_t end) noexcept nogil:
    cdef pooling_arguments_t *work = <pooling_arguments_t *>context
    cdef pooling_t *p = &work.pooling
    cdef int64_t i = work.in_plane * itemsize(work.dtype), o = work.out_plane * itemsize(work.dtype)
    window_maxima[work.dtype](p, end - begin, work.input + begin * i, work.output + begin * o,
                              work.indices + begin * work.out_plane)


cdef int _maxima(pooling_arguments_t *work, array_t *self, value_t *results) noexcept nogil:
    """Compute the maxima and their indices in the plane."""
    cdef array_t *values = NULL
    cdef array_t *indices = NULL
    cdef array_t *input = as_contiguous(self, -1)
    cdef int status = OK if input != NULL else MEMORY_ERROR
    if status == OK:
        status = _new_output(work, self, self.dtype, &values)
    if status == OK:
        status = _new_output(work, self, INT64, &indices)
    if status == OK and values.size:
        work.dtype = self.dtype
        work.input, work.output, work.indices = input.data, values.data, <int64_t *>indices.data
        parallel_for(_maxima_body, work, work.planes, _grain(work))
    release(input)
    if status != OK:
        release(values)
        release(indices)
        return status
    if array_result(with_layout_of_images(values, self), &results[0]) != OK:
        release(indices)
        return MEMORY_ERROR
    return array_result(with_layout_of_images(indices, self), &results[1])


# ---------------------------------------------------------------- averages

cdef void _averages_body(void *context, int64_t begin, int64_t end) noexcept nogil:
    cdef pooling_arguments_t *work = <pooling_arguments_t *>context
    cdef int64_t plane, i = work.in_plane * itemsize(work.dtype), o = work.out_plane * itemsize(work.dtype)
    for plane in range(begin, end):
        window_averages[work.dtype](&work.pooling, work.input + plane * i, work.output + plane * o)


cdef void _shares_body(void *context, int64_t begin, int64_t end) noexcept nogil:
    cdef pooling_arguments_t *work = <pooling_arguments_t *>context
    cdef int64_t plane, i = work.in_plane * itemsize(work.dtype), o = work.out_plane * itemsize(work.dtype)
    for plane in range(begin, end):
        memset(work.input + plane * i, 0, i)
        window_shares[work.dtype](&work.pooling, work.output + plane * o, work.input + plane * i)


cdef bint _is_mean(pooling_arguments_t *work) noexcept nogil:
    """Return whether the results are the means of whole planes."""
    cdef const pooling_t *p = &work.pooling
    cdef int i
    for i in range(3):
        if p.out[i] != 1 or not p.windows[i][0].count == p.windows[i][0].full == p.size[i]:
            return False
    return p.divisor == 0


cdef int _averages(pooling_arguments_t *work, array_t *self, value_t *result) noexcept nogil:
    cdef array_t *output = NULL
    cdef array_t *input = NULL
    cdef bint[MAX_DIMS] reduced
    cdef int i, status = _new_output(work, self, self.dtype, &output)
    if status == OK and output.size and is_floating(self.dtype) and _is_mean(work):
        for i in range(self.ndim):
            reduced[i] = i >= self.ndim - work.n
        status = reduce_array(MEAN, 0, self, reduced, output, NULL)
    elif status == OK and output.size:
        input = as_contiguous(self, -1)
        status = OK if input != NULL else MEMORY_ERROR
        if status == OK:
            work.dtype = self.dtype
            work.input, work.output = input.data, output.data
            parallel_for(_averages_body, work, work.planes, _grain(work))
        release(input)
    if status != OK:
        release(output)
        return status
    return array_result(with_layout_of_images(output, self), result)


cdef int _shares(pooling_arguments_t *work, array_t *grad, int ndim, const int64_t *shape,
                 value_t *result) noexcept nogil:
    """Compute the transpose of averages, in the shape of the input."""
    cdef int64_t[MAX_DIMS] expected
    cdef array_t *output = NULL
    cdef array_t *values = NULL
    cdef int i, status
    for i in range(ndim):
        expected[i] = shape[i] if i < ndim - work.n else work.pooling.out[3 - ndim + i]
    status = check_same_shape(work.name, b"grad", grad, ndim, expected)
    if status == OK:
        values = as_contiguous(grad, -1)
        status = new_array(work.name, grad.dtype, ndim, shape, &output) if values != NULL else MEMORY_ERROR
    if status == OK and output.size:
        work.dtype = grad.dtype
        work.input, work.output = output.data, values.data
        parallel_for(_shares_body, work, work.planes, _grain(work))
    release(values)
    if status != OK:
        release(output)
        return status
    return array_result(with_layout_of_images(output, grad), result)


# ---------------------------------------------------------------- kernels

cdef int _read(pool_t pool, const char *name, const value_t *value, array_t **array) noexcept nogil:
    """Read an array of a dtype that can be compared or averaged."""
    cdef int dtype, status = array_argument(name, b"input", value, array)
    cdef bint fits
    if status != OK:
        return status
    dtype = array[0].dtype
    if pool == MAXIMA or pool == ADAPTIVE_MAXIMA:
        fits = dtype != BOOL and not is_complex(dtype)
    else:
        fits = is_floating(dtype) or (pool == AVERAGES and dtype == INT64)
    if fits:
        return OK
    snprintf(message(), MESSAGE, b"%s: %s %s%s. Convert with to() first.", name,
             b"needs float32 or float64 (got" if pool == ADAPTIVE_AVERAGES else b"not implemented for",
             dtype_name(dtype), b")" if pool == ADAPTIVE_AVERAGES else b"")
    return NOT_IMPLEMENTED


cdef const char *_numbered(pool_t pool, bint back, int n, const char *name) noexcept nogil:
    """Return the public name of the operation."""
    if pool == MAXIMA:
        return b"max_pool1d" if n == 1 else b"max_pool2d" if n == 2 else b"max_pool3d"
    if pool == AVERAGES and not back:
        return b"avg_pool1d" if n == 1 else b"avg_pool2d" if n == 2 else b"avg_pool3d"
    return name


cdef int _find_windows(pooling_arguments_t *work, pool_t pool, const value_t *arguments) noexcept nogil:
    """Read sizes and the arguments after them."""
    if pool == ADAPTIVE_MAXIMA or pool == ADAPTIVE_AVERAGES:
        return _adaptive(work, arguments)
    if pool == MAXIMA:
        return _sliding(work, arguments, True, is_true(&arguments[4]))
    # kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    work.pooling.with_padding = is_true(&arguments[4])
    if arguments[5].kind != NOTHING:
        work.pooling.divisor = as_real(&arguments[5])
        if work.pooling.divisor == 0:
            snprintf(message(), MESSAGE, b"%s: divisor_override must not be zero. Pass None for the size of the "
                     b"window.", work.name)
            return RUNTIME_ERROR
    return _sliding(work, arguments, False, is_true(&arguments[3]))


cdef int _pool(const char *name, pool_t pool, bint back, const value_t *arguments, value_t *results) noexcept nogil:
    """Read (array, sizes, options), for `back` with the shape of the input after the array."""
    cdef pooling_arguments_t work
    cdef array_t *array
    cdef const int64_t *shape
    cdef const int64_t *sizes
    cdef int n, ndim, status = _read(pool, name, &arguments[0], &array)
    if status != OK:
        return status
    shape, ndim = array.shape, array.ndim
    if back:
        arguments += 1
        status = integers_argument(name, b"shape", &arguments[0], &ndim, &shape)
    if status == OK:
        status = integers_argument(name, b"sizes", &arguments[1], &n, &sizes)
    if status == OK:
        status = _open(&work, _numbered(pool, back, n, name), n, ndim, shape,
                       pool == ADAPTIVE_AVERAGES or pool == ADAPTIVE_MAXIMA)
    if status != OK:
        return status
    status = _find_windows(&work, pool, &arguments[1])
    if status == OK:
        if back:
            status = _shares(&work, array, ndim, shape, &results[0])
        elif pool == AVERAGES or pool == ADAPTIVE_AVERAGES:
            status = _averages(&work, array, &results[0])
        else:
            status = _maxima(&work, array, results)
    if work.memory != NULL:
        storage_release(work.memory)
    if work.listed != NULL:
        storage_release(work.listed)
    return status


cdef int max_pool_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """max_pool(self, kernel_size, stride, padding, dilation, ceil_mode): as many sizes as spatial dimensions."""
    return _pool(b"max_pool", MAXIMA, False, arguments, results)


cdef int adaptive_max_pool_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """adaptive_max_pool(self, output_size)."""
    return _pool(b"adaptive_max_pool", ADAPTIVE_MAXIMA, False, arguments, results)


cdef int avg_pool_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """avg_pool(self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)."""
    return _pool(b"avg_pool", AVERAGES, False, arguments, results)


cdef int avg_pool_backward_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """avg_pool_backward(grad, shape, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)."""
    return _pool(b"avg_pool_backward", AVERAGES, True, arguments, results)


cdef int adaptive_avg_pool_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """adaptive_avg_pool(self, output_size)."""
    return _pool(b"adaptive_avg_pool", ADAPTIVE_AVERAGES, False, arguments, results)


cdef int adaptive_avg_pool_backward_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """adaptive_avg_pool_backward(grad, shape, output_size)."""
    return _pool(b"adaptive_avg_pool_backward", ADAPTIVE_AVERAGES, True, arguments, results)


register_kernel("max_pool", max_pool_kernel)
register_kernel("adaptive_max_pool", adaptive_max_pool_kernel)
register_kernel("avg_pool", avg_pool_kernel)
register_kernel("avg_pool_backward", avg_pool_backward_kernel)
register_kernel("adaptive_avg_pool", adaptive_avg_pool_kernel)
register_kernel("adaptive_avg_pool_backward", adaptive_avg_pool_backward_kernel)


# ---------------------------------------------------------------------------------------------------- pooling positions

# Scatter elements to, or gather them from, indices in a plane (the last `n` dimensions), as max_pool returns them; -1
# is skipped.

ctypedef struct positions_t:
    const char *name
    int move
    int dtype
    int n
    int64_t planes
    int64_t small_plane
    int64_t large_plane
    char *small
    char *large
    const int64_t *places
    int64_t wrong              # atomic: 1 + a plane with an index out of bounds


cdef void _body(void *context, int64_t begin, int64_t end) noexcept nogil:
    cdef positions_t *work = <positions_t *>context
    cdef int64_t plane, small = work.small_plane * itemsize(work.dtype), large = work.large_plane * itemsize(work.dtype)
    for plane in range(begin, end):
        if plane_moves[work.dtype][work.move](work.small + plane * small, work.large + plane * large,
                                              work.places + plane * work.small_plane, work.small_plane,
                                              work.large_plane):
            atomic_store(&work.wrong, 1 + plane)


cdef int64_t _find_wrong(positions_t *work, int64_t plane) noexcept nogil:
    """Report the first index of a plane that is out of bounds."""
    cdef const int64_t *places = work.places + plane * work.small_plane
    cdef int64_t i = 0
    while -(work.move != PLACE) <= places[i] < work.large_plane:
        i += 1
    return places[i]


cdef int _run(positions_t *work, array_t *small, array_t *large, array_t *places) noexcept nogil:
    """Make contiguous arrays whose last `n` dimensions are planes."""
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
        parallel_for(_body, work, work.planes, rows_per_chunk(work.small_plane + work.large_plane, COMPUTED))
    if work.wrong:
        snprintf(message(), MESSAGE, b"%s: found an invalid index (got %lld, expected 0 to %lld, the positions in a "
                                     b"plane of shape %s).", work.name, <long long>_find_wrong(work, work.wrong - 1),
                 <long long>(work.large_plane - 1), list_text(work.n, large.shape + large.ndim - work.n))
        return RUNTIME_ERROR
    return OK


cdef int _read_positions(positions_t *work, const char *name, const value_t *value, const value_t *indices,
                         const value_t *count, array_t **array, array_t **places) noexcept nogil:
    """Read the moved array, the indices, and the number of dimensions of a plane."""
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


cdef int _put(const char *name, int move, const value_t *arguments, value_t *results) noexcept nogil:
    """Scatter (self, indices, shape, n) into zeros of that shape."""
    cdef positions_t work
    cdef array_t *self
    cdef array_t *places
    cdef array_t *result = NULL
    cdef const int64_t *shape
    cdef int i, ndim, status = _read_positions(&work, name, &arguments[0], &arguments[1], &arguments[3], &self, &places)
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
    return _put(b"max_pool_backward", SPREAD, arguments, results)


cdef int max_unpool_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """max_unpool(self, indices, shape, n)."""
    return _put(b"max_unpool", PLACE, arguments, results)


cdef int max_pool_gather_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """max_pool_gather(self, indices, n)."""
    cdef positions_t work
    cdef array_t *self
    cdef array_t *places
    cdef array_t *result = NULL
    cdef int i, status = _read_positions(&work, b"max_pool_gather", &arguments[0], &arguments[1], &arguments[2],
                                         &self, &places)
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
