"""The gradient of as_strided, where the view or the array itself may see one place of the memory several times."""

from libc.stdint cimport int64_t
from cygrad._core.arrays.array cimport MAX_DIMS, array_empty, array_t, array_view, overlaps_itself, release
from cygrad._core.arrays.dtype cimport FLOAT32, FLOAT64, INT64, is_complex, itemsize, real_of
from cygrad._core.arrays.value cimport register_kernel, value_t
from cygrad._core.elementwise.copying cimport as_contiguous, copy_into
from cygrad._core.elementwise.offset_moves cimport ADD, begin_nest, move_by_offsets, nest_of_offsets_t
from cygrad._core.kernels.arguments cimport (
    array_argument, array_result, check_same_shape, integer_argument, integers_argument, new_array, new_zeros,
    optional_integer,
)
from cygrad._core.kernels.shape.slicing cimport check_geometry
from cygrad._core.memory.errors cimport MEMORY_ERROR, OK

cdef extern from * nogil:
    """
    /* the memory itself is not here: any geometry of less than this is believed */
    #define ANYWHERE ((int64_t)(1LL << 56))
    """
    const int64_t ANYWHERE

ctypedef fused real_t:
    float
    double


cdef int _places(const array_t *view, const char *origin, array_t **places) noexcept nogil:
    """Byte offsets from `origin` of all elements of a view, in row-major order."""
    cdef int64_t counter[MAX_DIMS]
    cdef int64_t i, place = view.data - origin, width = itemsize(view.dtype)
    cdef int k
    places[0] = array_empty(INT64, 1, &view.size)
    if places[0] == NULL:
        return MEMORY_ERROR
    for k in range(view.ndim):
        counter[k] = 0
    for i in range(view.size):
        (<int64_t *>places[0].data)[i] = place
        for k in range(view.ndim - 1, -1, -1):
            counter[k] += 1
            place += view.strides[k] * width
            if counter[k] < view.shape[k]:
                break
            place -= counter[k] * view.strides[k] * width
            counter[k] = 0
    return OK


cdef int _add_at(array_t *memory, array_t *view, array_t *grad) noexcept nogil:
    """memory[view] += grad, place by place in row-major order."""
    cdef array_t *places = NULL
    cdef array_t *dense = NULL
    cdef nest_of_offsets_t nest
    cdef int status
    if not overlaps_itself(view):
        return copy_into(view, grad)
    status = _places(view, memory.data, &places)
    if status == OK:
        dense = as_contiguous(grad, -1)
        status = OK if dense != NULL else MEMORY_ERROR
    if status == OK:
        begin_nest(&nest, ADD, memory, dense, <const int64_t *>places.data, places.size)
        move_by_offsets(&nest)
    release(places)
    release(dense)
    return status


cdef void _divide(real_t *values, int parts, const int64_t *counts, int64_t n) noexcept nogil:
    """Each number, of one or two parts, by how often the array sees its place."""
    cdef int64_t i
    for i in range(n * parts):
        if counts[i // parts] > 1:
            values[i] = values[i] / <real_t>counts[i // parts]


cdef int _share_out(array_t *memory, array_t *self_view) noexcept nogil:
    """Elements of the array that are one place of the memory share its gradient equally."""
    cdef array_t *places = NULL
    cdef array_t *counts = NULL
    cdef int64_t *seen
    cdef int64_t i, width = itemsize(memory.dtype)
    cdef int status = new_zeros(b"as_strided_backward", INT64, 1, memory.shape, &counts)
    if status == OK:
        status = _places(self_view, memory.data, &places)
    if status == OK:
        seen = <int64_t *>counts.data
        for i in range(places.size):
            seen[(<int64_t *>places.data)[i] // width] += 1
        if real_of(memory.dtype) == FLOAT32:
            _divide(<float *>memory.data, 1 + is_complex(memory.dtype), seen, memory.size)
        elif real_of(memory.dtype) == FLOAT64:
            _divide(<double *>memory.data, 1 + is_complex(memory.dtype), seen, memory.size)
    release(places)
    release(counts)
    return status


cdef int _spread(array_t *grad, int ndim, const int64_t *shape, const int64_t *strides, int64_t self_start,
                 int n_sizes, const int64_t *sizes, const int64_t *view_strides, int64_t view_start, int64_t elements,
                 value_t *result) noexcept nogil:
    """The gradient through a piece of memory that holds both the array and the view."""
    cdef array_t *memory = NULL
    cdef array_t *view = NULL
    cdef array_t *self_view = NULL
    cdef array_t *answer = NULL
    cdef int status = new_zeros(b"as_strided_backward", grad.dtype, 1, &elements, &memory)
    if status != OK:
        return status
    view = array_view(memory, grad.dtype, n_sizes, sizes, view_strides, view_start)
    self_view = array_view(memory, grad.dtype, ndim, shape, strides, self_start)
    status = OK if view != NULL and self_view != NULL else MEMORY_ERROR
    if status == OK:
        status = _add_at(memory, view, grad)
    if status == OK and overlaps_itself(self_view):
        status = _share_out(memory, self_view)
    if status == OK:
        status = new_array(b"as_strided_backward", grad.dtype, ndim, shape, &answer)
    if status == OK:
        status = copy_into(answer, self_view)
    release(view)
    release(self_view)
    release(memory)
    if status != OK:
        release(answer)
        return status
    return array_result(answer, result)


cdef int as_strided_backward_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """as_strided_backward(grad, shape, strides, offset, size, stride, storage_offset)

    shape, strides and offset are those of the array; size, stride and storage_offset those of the view
    (offsets in elements from the start of the storage; None: that of the array).
    """
    cdef array_t *grad
    cdef array_t *zeros = NULL
    cdef const int64_t *shape
    cdef const int64_t *strides
    cdef const int64_t *sizes
    cdef const int64_t *view_strides
    cdef int64_t offset, view_offset, first, last, view_first, view_last, low
    cdef int ndim, n_strides, n_sizes, n_view_strides
    cdef int status = array_argument(b"as_strided_backward", b"grad", &arguments[0], &grad)
    if status == OK:
        status = integers_argument(b"as_strided_backward", b"shape", &arguments[1], &ndim, &shape)
    if status == OK:
        status = integers_argument(b"as_strided_backward", b"strides", &arguments[2], &n_strides, &strides)
    if status == OK:
        status = integer_argument(b"as_strided_backward", b"offset", &arguments[3], &offset)
    if status == OK:
        status = integers_argument(b"as_strided_backward", b"size", &arguments[4], &n_sizes, &sizes)
    if status == OK:
        status = integers_argument(b"as_strided_backward", b"stride", &arguments[5], &n_view_strides, &view_strides)
    if status == OK:
        status = optional_integer(b"as_strided_backward", b"storage_offset", &arguments[6], offset, &view_offset)
    if status == OK:
        status = check_geometry(b"as_strided_backward", ndim, shape, n_strides, strides, offset, ANYWHERE, &first,
                                &last)
    if status == OK:
        status = check_geometry(b"as_strided_backward", n_sizes, sizes, n_view_strides, view_strides, view_offset,
                                ANYWHERE, &view_first, &view_last)
    if status == OK:
        status = check_same_shape(b"as_strided_backward", b"grad", grad, n_sizes, sizes)
    if status != OK:
        return status
    if first > last or view_first > view_last:       # one of them has no elements
        status = new_zeros(b"as_strided_backward", grad.dtype, ndim, shape, &zeros)
        return array_result(zeros, &results[0]) if status == OK else status
    low = min(first, view_first)
    return _spread(grad, ndim, shape, strides, offset - low, n_sizes, sizes, view_strides, view_offset - low,
                   max(last, view_last) - low + 1, &results[0])


register_kernel("as_strided_backward", as_strided_backward_kernel)
