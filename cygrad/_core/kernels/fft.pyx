"""
Fourier transforms along dimensions, with the inner loops of NumPy's pocketfft.

The loops are those of the generalized ufuncs in numpy.fft, which release the GIL. One call transforms equally spaced
lines with one plan. Lines are divided among threads in chunks that depend only on their length.
"""

cimport numpy as np
from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
from libc.stdint cimport int64_t
from libc.stdio cimport snprintf
from cygrad._core.arrays.array cimport (
    MAX_DIMS, array_empty, array_t, as_real, is_true, register_kernel, release, shape_text, value_t,
)
from cygrad._core.arrays.dtype cimport (
    COMPLEX64, FLOAT64, complex_of, dtype_name, is_complex, is_floating, itemsize, real_of,
)
from cygrad._core.elementwise.copying cimport as_contiguous, as_copy
from cygrad._core.kernels.arguments cimport array_argument, array_result, integer_argument, integers_argument, wrap_dims
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, OK, RUNTIME_ERROR, message
from cygrad._core.threads.grain cimport GATHERED, rows_per_chunk
from cygrad._core.threads.parallel cimport parallel_for

from numpy.fft import _pocketfft_umath

cdef extern from "primitives/ufunc_types.h":
    const char *ufunc_types(void *)

cdef extern from "kernels/spectra.h" nogil:
    void (*complete_spectrum[2])(void *data, int64_t outer, int64_t n, int64_t inner, int forward)
    void (*weigh_spectrum[2])(void *data, int64_t outer, int64_t n, int64_t inner, int64_t end, double factor)

# Inner loop of a generalized ufunc: pointers to lines, factor and results; number of lines, and their lengths.
ctypedef void (*gufunc_loop_t)(char **arguments, const np.npy_intp *sizes, const np.npy_intp *steps,
                               void *data) noexcept nogil

ctypedef enum transform_t:
    FORWARD = 0
    BACKWARD
    TO_COMPLEX_EVEN       # half spectrum of real lines of even and odd length
    TO_COMPLEX_ODD
    TO_REAL
    TRANSFORMS

ctypedef struct transform_loop_t:
    gufunc_loop_t loop
    void *data

# entries[transform][0: single precision, 1: double precision]
cdef transform_loop_t entries[TRANSFORMS][2]

ctypedef struct pass_t:
    transform_loop_t entry
    char *source
    char *target
    int64_t lines_at_once     # adjacent lines: `inner`
    int64_t source_length
    int64_t target_length
    int64_t target_line       # elements between lines of the target: of a full or half spectrum
    int64_t source_size       # bytes of an element
    int64_t target_size
    char factor[8]

ctypedef struct spectrum_t:
    array_t *array
    int64_t n
    int64_t inner
    bint forward

cdef enum:
    LINES = 8
    LONG_LINE = 16384
    WORKSPACE = 384


cdef void _run_lines(void *context, int64_t begin, int64_t end) noexcept nogil:
    """Transform lines begin..end, adjacent lines in one call."""
    cdef pass_t *work = <pass_t *>context
    cdef int64_t inner = work.lines_at_once, line = begin, block, offset, count
    cdef char *arguments[3]
    cdef np.npy_intp sizes[3]
    cdef np.npy_intp steps[5]
    while line < end:
        if inner == 1:
            block, offset, count = line, 0, end - line
            steps[0], steps[2] = work.source_length * work.source_size, work.target_line * work.target_size
        else:
            block, offset = line // inner, line % inner
            count = min(end - line, inner - offset)
            steps[0], steps[2] = work.source_size, work.target_size
        arguments[0] = work.source + (block * work.source_length * inner + offset) * work.source_size
        arguments[1] = work.factor
        arguments[2] = work.target + (block * work.target_line * inner + offset) * work.target_size
        sizes[0], sizes[1], sizes[2] = count, work.source_length, work.target_length
        steps[1], steps[3], steps[4] = 0, inner * work.source_size, inner * work.target_size
        work.entry.loop(arguments, sizes, steps, work.entry.data)
        line += count


cdef void _transform(transform_t kind, const array_t *source, array_t *target, int axis, double factor) noexcept nogil:
    """
    Transform a contiguous source to a contiguous target along one dimension; complex ones may be the same array.

A half spectrum may go to the first half of a target for the full one.
    """
    cdef pass_t work
    cdef int64_t lines = 1, length
    cdef int i, double_precision = real_of(target.dtype) == FLOAT64
    if target.size == 0:
        return
    work.entry = entries[<int>kind][double_precision]
    work.source, work.target = source.data, target.data
    work.source_length, work.target_line = source.shape[axis], target.shape[axis]
    work.target_length = work.target_line
    if kind == TO_COMPLEX_EVEN or kind == TO_COMPLEX_ODD:
        work.target_length = work.source_length // 2 + 1
    work.source_size, work.target_size = itemsize(source.dtype), itemsize(target.dtype)
    work.lines_at_once = 1
    for i in range(target.ndim):
        if i != axis:
            lines *= target.shape[i]
        if i > axis:
            work.lines_at_once *= target.shape[i]
    if double_precision:
        (<double *>work.factor)[0] = factor
    else:
        (<float *>work.factor)[0] = <float>factor
    length = max(work.source_length, work.target_length)
    parallel_for(_run_lines, &work, lines, max(<int64_t>LINES, rows_per_chunk(length, GATHERED)))


cdef bint _has_memory_for(int64_t length) noexcept nogil:
    """
    Can NumPy's loops allocate plans and lines of that length?

They would raise an exception, which is lost on threads without the GIL.
    """
    cdef void *workspace
    if length <= LONG_LINE:
        return True
    workspace = PyMem_RawMalloc(<size_t>(length * WORKSPACE))
    PyMem_RawFree(workspace)
    return workspace != NULL


cdef int _read_arguments(const char *operation, bint real, const value_t *arguments, array_t **input, int least,
                         int *count, int *axes) noexcept nogil:
    """Check the tensor and the dimensions of a transform, of which there must be at least `least`."""
    cdef const int64_t *dims
    cdef int i, status = array_argument(operation, b"input", &arguments[0], input)
    status = status or integers_argument(operation, b"dim", &arguments[1], count, &dims)
    status = status or wrap_dims(operation, count[0], dims, input[0].ndim, axes)
    if status != OK:
        return status
    if count[0] < least:
        snprintf(message(), MESSAGE, b"%s: at least one dimension is needed (got none).", operation)
        return RUNTIME_ERROR
    if (not is_floating(input[0].dtype)) if real else (not is_complex(input[0].dtype)):
        snprintf(message(), MESSAGE, b"%s: expected a %s tensor (got %s).", operation,
                 b"floating" if real else b"complex", dtype_name(input[0].dtype))
        return RUNTIME_ERROR
    for i in range(count[0]):
        if input[0].ndim == 0 or input[0].shape[axes[i]] < 1:
            snprintf(message(), MESSAGE, b"%s: Invalid number of data points (0) specified (got shape %s).", operation,
                     shape_text(input[0]))
            return RUNTIME_ERROR
        if not _has_memory_for(input[0].shape[axes[i]]):
            return MEMORY_ERROR
    return OK


cdef inline int _last_of(int count, const int *axes) noexcept nogil:
    """Return the last of the dimensions."""
    cdef int i, last = 0
    for i in range(min(count, MAX_DIMS)):
        last = axes[i]
    return last


cdef array_t *_with_length(const array_t *like, int dtype, int axis, int64_t length) noexcept nogil:
    """Allocate an array of that shape except for one size."""
    cdef int64_t shape[MAX_DIMS]
    cdef int i
    for i in range(like.ndim):
        shape[i] = like.shape[i]
    shape[axis] = length
    return array_empty(dtype, like.ndim, shape)


cdef int fft_c2c_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """fft_c2c(self, dim, scale, forward): complex to complex."""
    cdef array_t *input
    cdef array_t *source
    cdef array_t *result
    cdef int axes[MAX_DIMS]
    cdef int i, count = 0, status = _read_arguments(b"fft", False, arguments, &input, 0, &count, axes)
    cdef double scale = as_real(&arguments[2])
    cdef transform_t kind = FORWARD if is_true(&arguments[3]) else BACKWARD
    if status != OK:
        return status
    if count < 1:
        return array_result(as_copy(input, input.dtype), &results[0])
    source = as_contiguous(input, -1)
    result = array_empty(input.dtype, input.ndim, input.shape)
    if source == NULL or result == NULL:
        release(source)
        release(result)
        return MEMORY_ERROR
    for i in range(count - 1, -1, -1):
        _transform(kind, source if i == count - 1 else result, result, axes[i], scale if i == count - 1 else 1)
    release(source)
    return array_result(result, &results[0])


cdef int fft_r2c_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """fft_r2c(self, dim, scale): real to complex, forward, half of the spectrum in the last of the dimensions."""
    cdef array_t *input
    cdef array_t *source
    cdef array_t *result
    cdef int axes[MAX_DIMS]
    cdef int i, last, count = 0, status = _read_arguments(b"rfft", True, arguments, &input, 1, &count, axes)
    cdef int64_t n
    if status != OK:
        return status
    last = _last_of(count, axes)
    n = input.shape[last]
    source = as_contiguous(input, -1)
    result = _with_length(input, complex_of(input.dtype), last, n // 2 + 1)
    if source == NULL or result == NULL:
        release(source)
        release(result)
        return MEMORY_ERROR
    _transform(TO_COMPLEX_ODD if n % 2 else TO_COMPLEX_EVEN, source, result, last, as_real(&arguments[2]))
    for i in range(count - 2, -1, -1):
        _transform(FORWARD, result, result, axes[i], 1)
    release(source)
    return array_result(result, &results[0])


cdef void _complete_lines(void *context, int64_t begin, int64_t end) noexcept nogil:
    """Complete blocks begin..end."""
    cdef spectrum_t *work = <spectrum_t *>context
    cdef array_t *array = work.array
    cdef char *data = array.data + begin * work.n * work.inner * itemsize(array.dtype)
    complete_spectrum[array.dtype != COMPLEX64](data, end - begin, work.n, work.inner, work.forward)


cdef void _complete_array(array_t *array, int axis, bint forward) noexcept nogil:
    """Complete a spectrum along one dimension from its first half."""
    cdef spectrum_t work
    cdef int64_t outer = 1
    cdef int i
    work.array, work.n, work.inner, work.forward = array, array.shape[axis], 1, forward
    for i in range(array.ndim):
        if i < axis:
            outer *= array.shape[i]
        elif i > axis:
            work.inner *= array.shape[i]
    if array.size:
        parallel_for(_complete_lines, &work, outer, rows_per_chunk(work.n * work.inner, GATHERED))


cdef int fft_real_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """fft_real(self, dim, scale, forward): real to the whole spectrum."""
    cdef array_t *input
    cdef array_t *source
    cdef array_t *result
    cdef int axes[MAX_DIMS]
    cdef int i, last, count = 0, status = _read_arguments(b"fft", True, arguments, &input, 0, &count, axes)
    cdef bint forward = is_true(&arguments[3])
    if status != OK:
        return status
    if count < 1:
        return array_result(as_copy(input, complex_of(input.dtype)), &results[0])
    last = _last_of(count, axes)
    source = as_contiguous(input, -1)
    result = array_empty(complex_of(input.dtype), input.ndim, input.shape)
    if source == NULL or result == NULL:
        release(source)
        release(result)
        return MEMORY_ERROR
    _transform(TO_COMPLEX_ODD if input.shape[last] % 2 else TO_COMPLEX_EVEN, source, result, last,
               as_real(&arguments[2]))
    _complete_array(result, last, forward)
    for i in range(count - 2, -1, -1):
        _transform(FORWARD if forward else BACKWARD, result, result, axes[i], 1)
    release(source)
    return array_result(result, &results[0])


cdef int fft_c2r_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """fft_c2r(self, dim, scale, size): complex to real, backward, of half of the spectrum in the last dimension."""
    cdef array_t *input
    cdef array_t *source
    cdef array_t *result
    cdef int axes[MAX_DIMS]
    cdef int64_t size = 0
    cdef int i, last, count = 0, status = _read_arguments(b"irfft", False, arguments, &input, 1, &count, axes)
    status = status or integer_argument(b"irfft", b"size", &arguments[3], &size)
    if status != OK:
        return status
    if size < 1 or input.shape[_last_of(count, axes)] != size // 2 + 1:
        snprintf(message(), MESSAGE, b"irfft: Invalid number of data points (%lld) specified (got shape %s).",
                 <long long>size, shape_text(input))
        return RUNTIME_ERROR
    last = _last_of(count, axes)
    source = as_copy(input, input.dtype) if count > 1 else as_contiguous(input, -1)
    result = _with_length(input, real_of(input.dtype), last, size)
    if source == NULL or result == NULL:
        release(source)
        release(result)
        return MEMORY_ERROR
    for i in range(count - 1):
        _transform(BACKWARD, source, source, axes[i], 1)
    _transform(TO_REAL, source, result, last, as_real(&arguments[2]))
    release(source)
    return array_result(result, &results[0])


cdef int fft_weigh_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """
    fft_weigh(self, dim, size, factor): double the entries of a half spectrum that stand for two of the full one, and
    multiply all by factor.
    """
    cdef array_t *input
    cdef array_t *result
    cdef int axes[MAX_DIMS]
    cdef int64_t size = 0, outer = 1, inner = 1, n
    cdef int i, count = 0, status = _read_arguments(b"fft", False, arguments, &input, 1, &count, axes)
    status = status or integer_argument(b"fft", b"size", &arguments[2], &size)
    if status != OK:
        return status
    result = as_copy(input, input.dtype)
    if result == NULL:
        return MEMORY_ERROR
    for i in range(input.ndim):
        outer *= input.shape[i] if i < axes[0] else 1
        inner *= input.shape[i] if i > axes[0] else 1
    n = input.shape[axes[0]]
    weigh_spectrum[input.dtype != COMPLEX64](result.data, outer, n, inner, min(n, (size + 1) // 2),
                                             as_real(&arguments[3]))
    return array_result(result, &results[0])


def _take_loops():
    """Look up the loops of NumPy's ufuncs for both precisions."""
    cdef np.ufunc ufunc
    cdef int kind, i
    cdef const char *types
    for kind, name in enumerate(("fft", "ifft", "rfft_n_even", "rfft_n_odd", "irfft")):
        ufunc = getattr(_pocketfft_umath, name)
        for i in range(ufunc.ntypes):
            types = ufunc_types(<void *>ufunc) + i * ufunc.nargs
            # The second argument, the factor, is real and decides the precision.
            if types[1] == np.NPY_FLOAT or types[1] == np.NPY_DOUBLE:
                entries[kind][types[1] == np.NPY_DOUBLE].loop = <gufunc_loop_t><void *>ufunc.functions[i]
                entries[kind][types[1] == np.NPY_DOUBLE].data = NULL if ufunc.data == NULL else ufunc.data[i]
        if entries[kind][0].loop == NULL or entries[kind][1].loop == NULL:
            raise ImportError(f"fft: NumPy has no loops of {name} for float32 and float64.")


_take_loops()
register_kernel("fft_c2c", fft_c2c_kernel)
register_kernel("fft_r2c", fft_r2c_kernel)
register_kernel("fft_c2r", fft_c2r_kernel)
register_kernel("fft_real", fft_real_kernel)
register_kernel("fft_weigh", fft_weigh_kernel)
