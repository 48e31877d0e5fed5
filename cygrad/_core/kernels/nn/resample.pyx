"""
Resampling of images to other sizes: nearest elements, linear and cubic interpolation, and the transpose.

Interpolation is separable, so it is a table of elements and weights for each dimension (resample.h).
"""

from libc.math cimport fabs
from libc.stdint cimport int64_t
from libc.stdio cimport snprintf
from libc.string cimport memset, strcmp
from cygrad._core.arrays.array cimport MAX_DIMS, array_t, release
from cygrad._core.arrays.dtype cimport FLOAT32, dtype_name, is_floating, itemsize
from cygrad._core.arrays.value cimport NOTHING, as_real, is_true, register_kernel, value_t
from cygrad._core.elementwise.copying cimport as_contiguous
from cygrad._core.elementwise.layout cimport with_layout_of_images
from cygrad._core.kernels.arguments cimport (
    array_argument, array_result, check_same_shape, integers_argument, list_text, new_array, text_argument,
)
from cygrad._core.memory.atomic cimport atomic_store
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, NOT_IMPLEMENTED, OK, RUNTIME_ERROR, message
from cygrad._core.memory.storage cimport storage_new, storage_release, storage_t
from cygrad._core.threads.parallel cimport parallel_for

cdef extern from "kernels/nn/resample.h" nogil:
    enum:
        NEAREST
        NEAREST_EXACT
        LINEAR
        CUBIC
    ctypedef struct axis_t:
        int64_t taps
        int64_t *index
        double *weight
    ctypedef struct resampling_t:
        int64_t size[3]
        int64_t out[3]
        axis_t axis[3]
    double axis_scale(int mode, int antialias, int64_t size, int64_t out, int align_corners, double given)
    int64_t axis_taps(int mode, int antialias, double scale)
    void fill_axis(axis_t *axis, int mode, int antialias, int align_corners, int64_t size, int64_t out, double scale)
    void resample_float(const resampling_t *r, const float *input, float *result, float *buffer)
    void resample_double(const resampling_t *r, const double *input, double *result, double *buffer)
    void resample_back_float(const resampling_t *r, const float *grad, float *result, float *buffer)
    void resample_back_double(const resampling_t *r, const double *grad, double *result, double *buffer)

cdef enum:
    PIECE = 1 << 14            # elements of the result worth a thread

ctypedef struct resample_arguments_t:
    const char *name
    resampling_t resampling
    storage_t *memory          # of the tables
    int dtype
    bint back
    int64_t planes
    int64_t large              # elements of a plane of the input
    int64_t small              # and of the result
    char *input                # or its gradient
    char *result
    int64_t failed             # atomic: a thread had no memory


cdef int _mode(const char *name, const value_t *value, int *mode) noexcept nogil:
    cdef const char *text
    cdef int status = text_argument(name, b"mode", value, &text)
    if status != OK:
        return status
    if strcmp(text, b"nearest") == 0:
        mode[0] = NEAREST
    elif strcmp(text, b"nearest-exact") == 0:
        mode[0] = NEAREST_EXACT
    elif strcmp(text, b"linear") == 0:
        mode[0] = LINEAR
    elif strcmp(text, b"cubic") == 0:
        mode[0] = CUBIC
    else:
        snprintf(message(), MESSAGE, b"%s: unknown mode (got '%s', expected 'nearest', 'nearest-exact', 'linear' or "
                 b"'cubic').", name, text)
        return NOT_IMPLEMENTED
    return OK


cdef int _open(resample_arguments_t *work, const char *name, int ndim, const int64_t *shape,
               const value_t *arguments) noexcept nogil:
    """The tables; arguments: size, mode, align_corners, antialias and three scales, the last dimension last."""
    cdef resampling_t *r = &work.resampling
    cdef const int64_t *size
    cdef double[3] scale
    cdef int64_t bytes = 0
    cdef char *here
    cdef int i, n, mode, status = integers_argument(name, b"size", &arguments[0], &n, &size)
    work.name, work.memory = name, NULL
    if status == OK:
        status = _mode(name, &arguments[1], &mode)
    if status != OK:
        return status
    if not 1 <= n <= 3 or ndim != n + 2:
        snprintf(message(), MESSAGE, b"%s: input and output must have the same number of spatial dimensions (got input "
                 b"of shape %s and output size %s). One to three spatial dimensions follow batch and channels.", name,
                 list_text(ndim, shape), list_text(n, size))
        return RUNTIME_ERROR
    work.planes, work.large, work.small = shape[0] * shape[1], 1, 1
    for i in range(3):
        r.size[i] = 1 if i < 3 - n else shape[2 + i - (3 - n)]
        r.out[i] = 1 if i < 3 - n else size[i - (3 - n)]
        if not 1 <= r.size[i] < (<int64_t>1 << 31) or not 1 <= r.out[i] < (<int64_t>1 << 31):
            snprintf(message(), MESSAGE, b"%s: input and output sizes should be greater than 0 (got input of shape %s "
                     b"and output size %s).", name, list_text(ndim, shape), list_text(n, size))
            return RUNTIME_ERROR
        work.large *= r.size[i]
        work.small *= r.out[i]
        scale[i] = axis_scale(mode, is_true(&arguments[3]), r.size[i], r.out[i], is_true(&arguments[2]),
                              as_real(&arguments[4 + i]) if arguments[4 + i].kind != NOTHING else 0)
        if not fabs(scale[i]) < 1e9:
            snprintf(message(), MESSAGE, b"%s: scale factor is too small or not a number.", name)
            return RUNTIME_ERROR
        r.axis[i].taps = axis_taps(NEAREST if i < 3 - n else mode, is_true(&arguments[3]), scale[i])
        bytes += r.axis[i].taps * r.out[i] * 16
    work.memory = storage_new(bytes)
    if work.memory == NULL:
        return MEMORY_ERROR
    here = work.memory.data
    for i in range(3):
        r.axis[i].index = <int64_t *>here
        r.axis[i].weight = <double *>(here + r.axis[i].taps * r.out[i] * 8)
        here += r.axis[i].taps * r.out[i] * 16
        fill_axis(&r.axis[i], NEAREST if i < 3 - n else mode, is_true(&arguments[3]), is_true(&arguments[2]),
                  r.size[i], r.out[i], scale[i])
    return OK


cdef void _body(void *context, int64_t begin, int64_t end) noexcept nogil:
    cdef resample_arguments_t *work = <resample_arguments_t *>context
    cdef resampling_t *r = &work.resampling
    cdef int64_t plane, bytes = itemsize(work.dtype)
    cdef char *input
    cdef char *result
    cdef storage_t *memory = storage_new(max(r.size[2], r.out[2]) * bytes)
    cdef char *buffer
    if memory == NULL:
        atomic_store(&work.failed, 1)
        return
    buffer = memory.data
    for plane in range(begin, end):
        input = work.input + plane * work.large * bytes
        result = work.result + plane * work.small * bytes
        if work.back:
            memset(input, 0, work.large * bytes)
            if work.dtype == FLOAT32:
                resample_back_float(r, <float *>result, <float *>input, <float *>buffer)
            else:
                resample_back_double(r, <double *>result, <double *>input, <double *>buffer)
        elif work.dtype == FLOAT32:
            resample_float(r, <float *>input, <float *>result, <float *>buffer)
        else:
            resample_double(r, <double *>input, <double *>result, <double *>buffer)
    storage_release(memory)


cdef int _read(const char *name, const value_t *value, array_t **array) noexcept nogil:
    cdef int status = array_argument(name, b"input", value, array)
    if status == OK and not is_floating(array[0].dtype):
        snprintf(message(), MESSAGE, b"%s: needs float32 or float64 (got %s). Convert with to() first.", name,
                 dtype_name(array[0].dtype))
        return NOT_IMPLEMENTED
    return status


cdef int _run(resample_arguments_t *work, array_t *source, int ndim, const int64_t *shape, bint back,
              value_t *result) noexcept nogil:
    """From a contiguous copy of the source to a new array of that shape."""
    cdef array_t *made = NULL
    cdef array_t *values
    cdef int status = new_array(work.name, source.dtype, ndim, shape, &made)
    if status != OK:
        return status
    values = as_contiguous(source, -1)
    if values == NULL:
        release(made)
        return MEMORY_ERROR
    work.dtype, work.back, work.failed = source.dtype, back, 0
    work.input, work.result = (made.data, values.data) if back else (values.data, made.data)
    if work.planes:
        parallel_for(_body, work, work.planes, max(1, PIECE // work.small))
    release(values)
    if work.failed:
        release(made)
        return MEMORY_ERROR
    return array_result(with_layout_of_images(made, source), result)


cdef void _result_shape(const resample_arguments_t *work, int ndim, const int64_t *shape,
                        int64_t *result) noexcept nogil:
    cdef int i
    for i in range(ndim):
        result[i] = shape[i] if i < 2 else work.resampling.out[5 - ndim + i - 2]


cdef int resample_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """resample(self, size, mode, align_corners, antialias, scale_depth, scale_height, scale_width)."""
    cdef resample_arguments_t work
    cdef array_t *self
    cdef int64_t[MAX_DIMS] shape
    cdef int status = _read(b"interpolate", &arguments[0], &self)
    if status != OK:
        return status
    status = _open(&work, b"interpolate", self.ndim, self.shape, &arguments[1])
    if status == OK:
        _result_shape(&work, self.ndim, self.shape, shape)
        status = _run(&work, self, self.ndim, shape, False, &results[0])
    if work.memory != NULL:
        storage_release(work.memory)
    return status


cdef int resample_backward_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """resample_backward(grad, shape, size, mode, align_corners, antialias, three scales)."""
    cdef resample_arguments_t work
    cdef array_t *grad
    cdef const int64_t *shape
    cdef int64_t[MAX_DIMS] expected
    cdef int ndim, status = _read(b"resample_backward", &arguments[0], &grad)
    if status == OK:
        status = integers_argument(b"resample_backward", b"shape", &arguments[1], &ndim, &shape)
    if status != OK:
        return status
    status = _open(&work, b"resample_backward", ndim, shape, &arguments[2])
    if status == OK:
        _result_shape(&work, ndim, shape, expected)
        status = check_same_shape(b"resample_backward", b"grad", grad, ndim, expected)
    if status == OK:
        status = _run(&work, grad, ndim, shape, True, &results[0])
    if work.memory != NULL:
        storage_release(work.memory)
    return status


register_kernel("resample", resample_kernel)
register_kernel("resample_backward", resample_backward_kernel)
