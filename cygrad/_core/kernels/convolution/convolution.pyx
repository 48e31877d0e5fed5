"""
Convolutions: of images with kernels, and the gradients of both, which are convolutions of each other.

Here their arguments are checked; how they are computed is chosen in convolution_choice.pyx among the forms of
convolution_products, convolution_direct and convolution_winograd. In all of them tiles depend on the problem alone, and
sums have a fixed order: the bits are the same for any number of threads.
"""

from libc.stdint cimport int64_t
from libc.stdio cimport snprintf
from cygrad._core.arrays.array cimport MAX_DIMS, array_t, release, shape_text
from cygrad._core.arrays.dtype cimport BOOL, dtype_name, is_differentiable, itemsize
from cygrad._core.arrays.value cimport NOTHING, register_kernel, value_t
from cygrad._core.elementwise.copying cimport as_contiguous
from cygrad._core.elementwise.layout cimport with_layout_of_images
from cygrad._core.kernels.arguments cimport (
    array_argument, array_result, check_same_shape, integers_argument, list_text, new_array, new_zeros,
)
from cygrad._core.kernels.convolution.convolution_choice cimport (
    COLUMNS, DIRECT, FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT, WINOGRAD, choose_form, direction_t, form_t)
from cygrad._core.kernels.convolution.convolution_direct cimport direct_forward, direct_input, direct_weight
from cygrad._core.kernels.convolution.convolution_geometry cimport (
    fit_shapes, follow, geometry_t, output_shape, read_movement, scatter_kind,
)
from cygrad._core.kernels.convolution.convolution_problem cimport NOT_APPLICABLE, problem_t
from cygrad._core.kernels.convolution.convolution_products cimport columns_forward, columns_input, columns_weight
from cygrad._core.kernels.convolution.convolution_winograd cimport winograd_forward, winograd_input, winograd_weight
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, NOT_IMPLEMENTED, OK, RUNTIME_ERROR, message


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


cdef int _read_bias(problem_t *problem, const char *operation, const value_t *value, const array_t *like,
                    int64_t channels, array_t **bias) noexcept nogil:
    """The bias as a contiguous array, or NULL."""
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
    """The geometry of images and a kernel of these shapes, and the shape of the output, which `grad` must have."""
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
    One of the three arrays from the other two; takes over the reference to that one, the result.

    If images or kernel have their channels next to each other, so have the images that are computed from them.
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
