"""How a kernel moves over images: sizes and steps of convolutions, checked; and images as columns."""

from libc.stdint cimport int64_t
from libc.stdio cimport snprintf
from cygrad._core.arrays.array cimport array_t
from cygrad._core.arrays.dtype cimport COMPLEX64, COMPLEX128, FLOAT32, FLOAT64, INT64
from cygrad._core.arrays.value cimport value_t
from cygrad._core.kernels.arguments cimport integer_argument, integers_argument, list_text
from cygrad._core.memory.errors cimport MESSAGE, OK, RUNTIME_ERROR, message

cdef extern from * nogil:
    """
    #define LARGEST ((int64_t)1 << 31)    /* of one size: products and sums of two such numbers do not overflow */
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
        snprintf(message(), MESSAGE, b"%s: the number of channels does not fit the weight (got input%s with %lld "
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
