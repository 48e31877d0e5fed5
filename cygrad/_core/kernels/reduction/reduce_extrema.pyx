"""Kernels of extrema: amax, amin, max and min along a dimension, argmax, argmin."""

from libc.stdio cimport snprintf
from cygrad._core.arrays.array cimport array_t, release, shape_text
from cygrad._core.arrays.dtype cimport BOOL, INT64, dtype_name, is_complex
from cygrad._core.arrays.value cimport INTEGER, NOTHING, register_kernel, set_array, value_t
from cygrad._core.elementwise.copying cimport as_contiguous
from cygrad._core.kernels.arguments cimport new_array
from cygrad._core.kernels.reduction.reduce_engine cimport ARGMAX, ARGMIN, MAXIMUM, MINIMUM, reduce_array
from cygrad._core.kernels.reduction.reduce_kernels cimport (
    read_reduction, reduced_result, reduction_t, register_reduction)
from cygrad._core.kernels.shape.shape cimport reshaped
from cygrad._core.memory.errors cimport (
    INDEX_ERROR, MEMORY_ERROR, MESSAGE, NOT_IMPLEMENTED, OK, RUNTIME_ERROR, TYPE_ERROR, message,
)


cdef int _check_extremum(const char *name, const reduction_t *reduction, int status_of_complex,
                         int status_of_empty) noexcept nogil:
    """Complex numbers have no order, and empty tensors no extremum."""
    cdef array_t *self = reduction.self
    cdef int i
    if is_complex(self.dtype):
        snprintf(message(), MESSAGE, b"%s: complex numbers have no order (got %s). Reduce the real part or "
                 b"the "
                 b"absolute value.", name, dtype_name(self.dtype))
        return status_of_complex
    if reduction.all and self.size == 0:
        snprintf(message(), MESSAGE, b"%s: an empty tensor has none (got shape %s). Specify the reduction "
                 b"dim with "
                 b"the 'dim' argument.", name, shape_text(self))
        return status_of_empty
    for i in range(self.ndim):
        if reduction.reduced[i] and self.shape[i] == 0:
            snprintf(message(), MESSAGE, b"%s: expected reduction dim %d to have non-zero size (got shape "
                     b"%s).",
                     name, i, shape_text(self))
            return INDEX_ERROR
    return OK


cdef int _extremum(const char *name, int operation, const value_t *arguments,
                   value_t *results) noexcept nogil:
    """amax, amin(self, dims, keepdim)."""
    cdef reduction_t reduction
    cdef int status = read_reduction(name, &arguments[0], &arguments[1], &arguments[2], &reduction)
    if status == OK:
        status = _check_extremum(name, &reduction, NOT_IMPLEMENTED, RUNTIME_ERROR)
    if status != OK:
        return status
    return reduced_result(name, operation, 0, reduction.dtype, reduction.dtype, &reduction, results)


cdef int amax_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """amax(self, dims, keepdim): nan if there is one."""
    return _extremum(b"amax", MAXIMUM, arguments, results)


cdef int amin_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """amin(self, dims, keepdim): nan if there is one."""
    return _extremum(b"amin", MINIMUM, arguments, results)


cdef int _extremum_dim(const char *name, int operation, const value_t *arguments,
                       value_t *results) noexcept nogil:
    """max_dim, min_dim(self, dim, keepdim): values and the index of the first of equals."""
    cdef reduction_t reduction
    cdef array_t *values = NULL
    cdef array_t *indices = NULL
    cdef int status = read_reduction(name, &arguments[0], &arguments[1], &arguments[2], &reduction)
    if (status == OK and arguments[1].kind != INTEGER
            and (arguments[1].kind == NOTHING or arguments[1].count != 1)):
        snprintf(message(), MESSAGE, b"%s: expected one dimension.", name)
        status = TYPE_ERROR
    if status == OK:
        status = _check_extremum(name, &reduction, RUNTIME_ERROR, RUNTIME_ERROR)
    if status == OK:
        status = new_array(name, reduction.self.dtype, reduction.ndim, reduction.shape, &values)
    if status != OK:
        return status
    status = new_array(name, INT64, reduction.ndim, reduction.shape, &indices)
    if status == OK:
        status = reduce_array(operation, 0, reduction.self, reduction.reduced, values, indices)
    if status != OK:
        release(values)
        release(indices)
        return status
    set_array(&results[0], values)
    set_array(&results[1], indices)
    return OK


cdef int max_dim_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """max_dim(self, dim, keepdim) -> values, indices."""
    return _extremum_dim(b"max", ARGMAX, arguments, results)


cdef int min_dim_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """min_dim(self, dim, keepdim) -> values, indices."""
    return _extremum_dim(b"min", ARGMIN, arguments, results)


cdef int _position(const char *name, int operation, const value_t *arguments,
                   value_t *results) noexcept nogil:
    """argmax, argmin(self, dim, keepdim): index of the first of equals; without dim, in the flattened
    array."""
    cdef reduction_t reduction
    cdef array_t *source
    cdef array_t *flat
    cdef array_t *indices
    cdef bint[1] whole
    cdef int status = read_reduction(name, &arguments[0], &arguments[1], &arguments[2], &reduction)
    if status != OK:
        return status
    if reduction.self.dtype == BOOL:
        snprintf(message(), MESSAGE, b"%s: does not support bool. Convert self to uint8.", name)
        return RUNTIME_ERROR
    status = _check_extremum(name, &reduction, RUNTIME_ERROR, INDEX_ERROR)
    if status == OK:
        status = new_array(name, INT64, reduction.ndim, reduction.shape, &indices)
    if status != OK:
        return status
    if reduction.all:
        # Positions count in row-major order.
        source = as_contiguous(reduction.self, -1)
        flat = reshaped(source, 1, &source.size) if source != NULL else NULL
        whole[0] = True
        status = reduce_array(operation, 0, flat, whole, NULL, indices) if flat != NULL else MEMORY_ERROR
        release(flat)
        release(source)
    else:
        status = reduce_array(operation, 0, reduction.self, reduction.reduced, NULL, indices)
    if status != OK:
        release(indices)
        return status
    set_array(results, indices)
    return OK


cdef int argmax_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """argmax(self, dim, keepdim)."""
    return _position(b"argmax", ARGMAX, arguments, results)


cdef int argmin_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """argmin(self, dim, keepdim)."""
    return _position(b"argmin", ARGMIN, arguments, results)


register_reduction("amax", amax_kernel)
register_reduction("amin", amin_kernel)
register_kernel("max_dim", max_dim_kernel)
register_kernel("min_dim", min_dim_kernel)
register_kernel("argmax", argmax_kernel)
register_kernel("argmin", argmin_kernel)
