"""Gradients of views of a part: the gradient in its place, zeros elsewhere."""

from libc.stdint cimport int64_t
from libc.stdio cimport snprintf
from cygrad._core.arrays.array cimport MAX_DIMS, array_empty, array_t, array_view, release
from cygrad._core.arrays.dtype cimport DTYPES, INT64, itemsize
from cygrad._core.arrays.value cimport DTYPE, INTEGERS, NOTHING, clear, kernel_t, register_kernel, set_array, value_t
from cygrad._core.elementwise.copying cimport as_contiguous, copy_into
from cygrad._core.elementwise.offset_moves cimport ADD, move_along
from cygrad._core.kernels.arguments cimport (
    array_argument, array_result, arrays_argument, check_same_shape, integer_argument, integers_argument, list_text,
    new_zeros, wrap_dim,
)
from cygrad._core.kernels.shape.slicing cimport (
    diagonal_kernel, narrowed, select_kernel, selected, slice_kernel, unfold_kernel,
)
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, OK, RUNTIME_ERROR, TYPE_ERROR, message


cdef int _zeros_like_input(const char *operation, const value_t *arguments, array_t **grad,
                           array_t **zeros) noexcept nogil:
    """The gradient (argument 0), and zeros of its dtype in the shape of the input (argument 1)."""
    cdef const int64_t *shape
    cdef int ndim, status = array_argument(operation, b"grad", &arguments[0], grad)
    if status == OK:
        status = integers_argument(operation, b"shape", &arguments[1], &ndim, &shape)
    return new_zeros(operation, grad[0].dtype, ndim, shape, zeros) if status == OK else status


cdef int _write_through(const char *operation, kernel_t view_kernel, int n_parameters, const value_t *arguments,
                        value_t *results) noexcept nogil:
    """Zeros in the shape of the input, with the gradient copied into the view that the forward took."""
    cdef array_t *grad
    cdef array_t *zeros = NULL
    cdef value_t view_arguments[5]
    cdef value_t view
    cdef int i, status = _zeros_like_input(operation, arguments, &grad, &zeros)
    if status != OK:
        return status
    set_array(&view_arguments[0], zeros)
    for i in range(n_parameters):
        view_arguments[1 + i] = arguments[2 + i]
    view.kind = NOTHING
    status = view_kernel(view_arguments, &view)
    if status == OK:
        status = check_same_shape(operation, b"grad", grad, view.of.array.ndim, view.of.array.shape)
    if status == OK:
        status = copy_into(view.of.array, grad)
    clear(&view)
    if status != OK:
        release(zeros)
        return status
    return array_result(zeros, &results[0])


cdef int slice_backward_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """slice_backward(grad, shape, dim, start, end, step)."""
    return _write_through(b"slice_backward", slice_kernel, 4, arguments, results)


cdef int select_backward_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """select_backward(grad, shape, dim, index)."""
    return _write_through(b"select_backward", select_kernel, 2, arguments, results)


cdef int diagonal_backward_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """diagonal_backward(grad, shape, offset, dim1, dim2)."""
    return _write_through(b"diagonal_backward", diagonal_kernel, 3, arguments, results)


cdef int _add_windows(array_t *zeros, array_t *grad, int dim, int64_t size, int64_t step) noexcept nogil:
    """Sum overlapping windows, in their order."""
    cdef array_t *offsets = NULL
    cdef array_t *moved = NULL
    cdef array_t *dense = NULL
    cdef int64_t shape[MAX_DIMS]
    cdef int64_t strides[MAX_DIMS]
    cdef int64_t window, place, windows = grad.shape[dim], n = windows * size
    cdef int64_t stride = zeros.strides[dim] * itemsize(zeros.dtype)
    cdef int i, source, last = grad.ndim - 1, status = MEMORY_ERROR
    # The places within a window, last in the gradient, follow the windows.
    for i in range(grad.ndim):
        source = i if i <= dim else last if i == dim + 1 else i - 1
        shape[i], strides[i] = grad.shape[source], grad.strides[source]
    moved = array_view(grad, grad.dtype, grad.ndim, shape, strides, 0)
    if moved != NULL:
        dense = as_contiguous(moved, -1)
        offsets = array_empty(INT64, 1, &n)
    if dense != NULL and offsets != NULL:
        for window in range(windows):
            for place in range(size):
                (<int64_t *>offsets.data)[window * size + place] = (window * step + place) * stride
        move_along(ADD, zeros, dim, dense, <const int64_t *>offsets.data, n)
        status = OK
    release(moved)
    release(dense)
    release(offsets)
    return status


cdef int unfold_backward_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """unfold_backward(grad, shape, dim, size, step): windows may overlap; their gradients are summed."""
    cdef array_t *grad
    cdef array_t *zeros = NULL
    cdef int64_t given, size, step
    cdef value_t view_arguments[4]
    cdef value_t view
    cdef int dim, status = integer_argument(b"unfold_backward", b"dimension", &arguments[2], &given)
    if status == OK:
        status = integer_argument(b"unfold_backward", b"size", &arguments[3], &size)
    if status == OK:
        status = integer_argument(b"unfold_backward", b"step", &arguments[4], &step)
    if status != OK:
        return status
    if step >= size or (arguments[1].kind == INTEGERS and arguments[1].count == 0):
        return _write_through(b"unfold_backward", unfold_kernel, 3, arguments, results)
    status = _zeros_like_input(b"unfold_backward", arguments, &grad, &zeros)
    if status != OK:
        return status
    set_array(&view_arguments[0], zeros)
    view_arguments[1], view_arguments[2], view_arguments[3] = arguments[2], arguments[3], arguments[4]
    view.kind = NOTHING
    status = unfold_kernel(view_arguments, &view)        # checks all parameters
    if status == OK:
        status = check_same_shape(b"unfold_backward", b"grad", grad, view.of.array.ndim, view.of.array.shape)
    clear(&view)
    if status == OK:
        wrap_dim(b"unfold_backward", given, zeros.ndim, &dim)
        status = _add_windows(zeros, grad, dim, size, step) if grad.size else OK
    if status != OK:
        release(zeros)
        return status
    return array_result(zeros, &results[0])


cdef int _list_arguments(const char *operation, const value_t *arguments, int dim_position, int *count,
                         array_t ***grads,
                         int *dim, array_t **zeros) noexcept nogil:
    """Common arguments of split_backward and unbind_backward: the gradients, and zeros of the input's shape."""
    cdef const int64_t *shape
    cdef const value_t *dtype_value = &arguments[dim_position + 1]
    cdef int64_t given
    cdef int ndim, status = arrays_argument(operation, b"grads", &arguments[0], count, grads)
    if status == OK:
        status = integers_argument(operation, b"shape", &arguments[1], &ndim, &shape)
    if status == OK:
        status = integer_argument(operation, b"dim", &arguments[dim_position], &given)
    if status == OK:
        status = wrap_dim(operation, given, ndim, dim)
    if status != OK:
        return status
    if dtype_value.kind != DTYPE or not 0 <= dtype_value.of.integer < DTYPES:
        snprintf(message(), MESSAGE, b"%s: 'dtype' has the wrong type (expected a dtype).", operation)
        return TYPE_ERROR
    if ndim == 0:
        snprintf(message(), MESSAGE, b"%s: a 0-dim tensor cannot be divided (got shape ()).", operation)
        return RUNTIME_ERROR
    return new_zeros(operation, <int>dtype_value.of.integer, ndim, shape, zeros)


cdef int _put_part(const char *operation, array_t *target, array_t *grad) noexcept nogil:
    """Copy the gradient of one part into its place, which is released."""
    cdef int status = MEMORY_ERROR
    if target != NULL:
        status = check_same_shape(operation, b"grad", grad, target.ndim, target.shape)
        if status == OK:
            status = copy_into(target, grad)
        release(target)
    return status


cdef int split_backward_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """split_backward(grads, shape, sizes, dim, dtype): a missing gradient is zero; a size of -1 marks a part
    that does not exist."""
    cdef array_t *zeros = NULL
    cdef array_t **grads
    cdef const int64_t *sizes
    cdef int64_t start = 0
    cdef int i, count, n_sizes, dim = 0, status = integers_argument(b"split_backward", b"sizes", &arguments[2],
                                                                    &n_sizes, &sizes)
    if status == OK:
        status = _list_arguments(b"split_backward", arguments, 3, &count, &grads, &dim, &zeros)
    if status != OK:
        return status
    for i in range(count):
        if count == n_sizes and sizes[i] == -1 and grads[i] == NULL:
            continue
        if count != n_sizes or not 0 <= sizes[i] <= zeros.shape[dim] - start:
            snprintf(message(), MESSAGE, b"split_backward: sizes do not fit the gradients (got sizes %s for "
                     b"%d gradients).", list_text(n_sizes, sizes), count)
            status = RUNTIME_ERROR
        elif grads[i] != NULL:
            status = _put_part(b"split_backward", narrowed(zeros, dim, start, sizes[i]), grads[i])
        if status != OK:
            release(zeros)
            return status
        start += sizes[i]
    return array_result(zeros, &results[0])


cdef int unbind_backward_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """unbind_backward(grads, shape, dim, dtype): a missing gradient is zero."""
    cdef array_t *zeros = NULL
    cdef array_t **grads
    cdef int i, count, dim = 0
    cdef int status = _list_arguments(b"unbind_backward", arguments, 2, &count, &grads, &dim, &zeros)
    if status != OK:
        return status
    if count != zeros.shape[dim]:
        snprintf(message(), MESSAGE, b"unbind_backward: wrong number of gradients (got %d, expected %lld).",
                 count, <long long>zeros.shape[dim])
        status = RUNTIME_ERROR
    for i in range(count):
        if status == OK and grads[i] != NULL:
            status = _put_part(b"unbind_backward", selected(zeros, dim, i), grads[i])
    if status != OK:
        release(zeros)
        return status
    return array_result(zeros, &results[0])


register_kernel("slice_backward", slice_backward_kernel)
register_kernel("select_backward", select_backward_kernel)
register_kernel("diagonal_backward", diagonal_backward_kernel)
register_kernel("unfold_backward", unfold_backward_kernel)
register_kernel("split_backward", split_backward_kernel)
register_kernel("unbind_backward", unbind_backward_kernel)
