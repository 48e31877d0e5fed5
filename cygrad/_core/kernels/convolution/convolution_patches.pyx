"""Patches of images as columns of matrices, and columns added up as patches of images: transposes of each other."""

from libc.stdint cimport int64_t
from libc.stdio cimport snprintf
from libc.string cimport memset
from cygrad._core.arrays.array cimport array_t, release, shape_text
from cygrad._core.arrays.dtype cimport dtype_name, itemsize
from cygrad._core.arrays.value cimport register_kernel, value_t
from cygrad._core.elementwise.copying cimport as_contiguous
from cygrad._core.kernels.arguments cimport array_argument, array_result, new_array
from cygrad._core.kernels.convolution.convolution_geometry cimport (
    fit_output, follow, gather_columns, geometry_t, read_movement, read_sizes, scatter_columns, scatter_kind,
)
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, NOT_IMPLEMENTED, OK, RUNTIME_ERROR, message
from cygrad._core.threads.parallel cimport parallel_for

cdef enum:
    PIECE = 1 << 15            # elements of columns worth a thread

ctypedef struct patches_t:
    geometry_t geometry
    int dtype
    bint back                  # columns into images
    char *images
    char *columns              # contiguous


cdef void _body(void *context, int64_t begin, int64_t end) noexcept nogil:
    """Channels of images, counted through the batch."""
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
    parallel_for(_body, work, g.batch * g.in_channels, max(1, PIECE // (g.taps * g.positions)))


cdef int _read(const char *name, const value_t *sizes, geometry_t *geometry) noexcept nogil:
    """kernel_size, dilation, padding, stride."""
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
        snprintf(message(), MESSAGE, b"fold: the input does not fit the sizes (got shape %s, expected a number of rows "
                 b"divisible by the %lld elements of a patch, and %lld columns, one for each patch).",
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
