"""
Convolutions and their gradients: argument checks and the choice among im2col.pyx, direct.pyx and winograd.pyx.

Tiles depend only on the problem, and sums have a fixed order, so results are bit-identical for any number of threads.
"""

from libc.stdint cimport int64_t
from libc.stdio cimport snprintf
from cygrad._core.arrays.array cimport MAX_DIMS, NOTHING, array_t, register_kernel, release, shape_text, value_t
from cygrad._core.arrays.dtype cimport BOOL, FLOAT32, FLOAT64, dtype_code, dtype_name, is_differentiable, itemsize
from cygrad._core.elementwise.copying cimport as_contiguous, with_layout_of_images
from cygrad._core.kernels.arguments cimport (
    array_argument, array_result, check_same_shape, integers_argument, list_text, new_array, new_zeros,
)
from cygrad._core.kernels.convolution.direct cimport (
    NOT_APPLICABLE, direct_bytes, direct_elements, direct_forward, direct_input, direct_weight, fit_output, fit_shapes,
    follow, geometry_t, output_shape, problem_t, read_movement, scatter_kind,
)
from cygrad._core.kernels.convolution.im2col cimport columns_forward, columns_input, columns_weight
from cygrad._core.kernels.convolution.winograd cimport (
    winograd_bytes, winograd_fits, winograd_forward, winograd_input, winograd_weight,
)
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, NOT_IMPLEMENTED, OK, RUNTIME_ERROR, check, message


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
# COLUMNS is slow for matrices with few rows. WINOGRAD saves three multiplications of four, and transforms the tiles
# (per channel) and the kernels (per pair of channels); `_winograd_pays` has the costs.

cdef enum:
    NEAR_BYTES = 1 << 24       # buffers that fit into the last-level cache
    MAX_BYTES = 1 << 26       # limit of the buffers of one thread
    FEW = 16                   # output channels for which matrix products are slow
    TASKS = 4                  # images from which threads have enough tasks
    SMALL_WORK = 1 << 19       # multiplications that are not worth threads
    LARGE_KERNEL = 120000      # elements of a kernel that is too expensive to reorder
    LONG = 1024                # elements of a line that is worth reducing
    MAX_PAIRS = 4096          # pairs of channels for lines of that length

cdef int forced = -1               # algorithm to take wherever it applies, for tests and measurements; -1: none

DIRECTIONS = ("forward", "input", "weight")
FORMS = ("columns", "direct", "winograd")


cdef bint _fits(const geometry_t *g, int dtype, form_t form) noexcept nogil:
    """Return whether the algorithm applies, within the memory limits."""
    if form == COLUMNS:
        return True
    if (dtype != FLOAT32 and dtype != FLOAT64) or g.in_channels == 0:
        return False
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


cdef form_t choose_form(const geometry_t *g, int dtype, direction_t direction) noexcept nogil:
    if forced >= 0:
        return <form_t>forced if _fits(g, dtype, <form_t>forced) else COLUMNS
    if _fits(g, dtype, WINOGRAD) and _winograd_pays(g):
        return WINOGRAD
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

cdef int _run(problem_t *problem, direction_t direction, form_t form) noexcept nogil:
    if form == WINOGRAD:
        return (winograd_forward(problem) if direction == FORWARD else
                winograd_input(problem) if direction == INPUT_GRADIENT else winograd_weight(problem))
    if form == DIRECT:
        return (direct_forward(problem) if direction == FORWARD else
                direct_input(problem) if direction == INPUT_GRADIENT else direct_weight(problem))
    return (columns_forward(problem) if direction == FORWARD else
            columns_input(problem) if direction == INPUT_GRADIENT else columns_weight(problem))


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
        status = _run(problem, direction, choose_form(g, problem.dtype, direction))
        if status == NOT_APPLICABLE:
            status = _run(problem, direction, COLUMNS)
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
