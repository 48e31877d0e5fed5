"""Views between complex numbers and pairs of reals: view_as_real, view_as_complex, real and imag."""

from libc.stdint cimport int64_t
from libc.stdio cimport snprintf
from cygrad._core.arrays.array cimport MAX_DIMS, array_t, array_view, retain, shape_text
from cygrad._core.arrays.dtype cimport complex_of, dtype_name, is_complex, is_floating, itemsize, real_of
from cygrad._core.arrays.value cimport register_kernel, value_t
from cygrad._core.kernels.arguments cimport array_argument, array_result, list_text
from cygrad._core.memory.errors cimport MESSAGE, OK, RUNTIME_ERROR, message


cdef int _need_complex(const char *operation, const array_t *self) noexcept nogil:
    """Refuse other arrays than complex ones."""
    if is_complex(self.dtype):
        return OK
    snprintf(message(), MESSAGE, b"%s: only complex tensors have two parts (got %s, expected complex64 or complex128).",
             operation, dtype_name(self.dtype))
    return RUNTIME_ERROR


cdef array_t *_part(array_t *self, int offset) noexcept nogil:
    """The real (0) or imaginary (1) parts of a complex array."""
    cdef int64_t strides[MAX_DIMS]
    cdef int i
    for i in range(self.ndim):
        strides[i] = 2 * self.strides[i]
    return array_view(self, real_of(self.dtype), self.ndim, self.shape, strides, offset if self.size else 0)


cdef int real_view_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """real_view(self): the real parts; a real array as it is."""
    cdef array_t *self
    cdef int status = array_argument(b"real", b"self", &arguments[0], &self)
    if status != OK:
        return status
    return array_result(_part(self, 0) if is_complex(self.dtype) else retain(self), &results[0])


cdef int imag_view_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """imag_view(self): the imaginary parts of a complex array."""
    cdef array_t *self
    cdef int status = array_argument(b"imag", b"self", &arguments[0], &self)
    if status == OK:
        status = _need_complex(b"imag", self)
    return array_result(_part(self, 1), &results[0]) if status == OK else status


cdef int view_as_real_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """view_as_real(self): each complex number as a pair, in a new last dimension."""
    cdef array_t *self
    cdef int64_t shape[MAX_DIMS]
    cdef int64_t strides[MAX_DIMS]
    cdef int i, status = array_argument(b"view_as_real", b"self", &arguments[0], &self)
    if status == OK:
        status = _need_complex(b"view_as_real", self)
    if status != OK:
        return status
    if self.ndim == MAX_DIMS:
        snprintf(message(), MESSAGE, b"view_as_real: too many dimensions (got %d, expected at most %d).",
                 self.ndim + 1, <int>MAX_DIMS)
        return RUNTIME_ERROR
    for i in range(self.ndim):
        shape[i] = self.shape[i]
        strides[i] = 2 * self.strides[i]
    shape[self.ndim] = 2
    strides[self.ndim] = 1
    return array_result(array_view(self, real_of(self.dtype), self.ndim + 1, shape, strides, 0), &results[0])


cdef int view_as_complex_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """view_as_complex(self): pairs in the last dimension as complex numbers."""
    cdef array_t *self
    cdef int64_t strides[MAX_DIMS]
    cdef bint aligned = True
    cdef int i, last, dtype, status = array_argument(b"view_as_complex", b"self", &arguments[0], &self)
    if status != OK:
        return status
    if not is_floating(self.dtype) or itemsize(complex_of(self.dtype)) != 2 * itemsize(self.dtype):
        snprintf(message(), MESSAGE, b"view_as_complex: only real floating tensors can be seen so "
                 b"(got %s, expected float16, float32 or float64).", dtype_name(self.dtype))
        return RUNTIME_ERROR
    last = self.ndim - 1
    if last < 0 or self.shape[last] != 2:
        snprintf(message(), MESSAGE, b"view_as_complex: the last dimension must have size 2 (got shape %s).",
                 shape_text(self))
        return RUNTIME_ERROR
    dtype = complex_of(self.dtype)
    for i in range(last):
        if self.shape[i] > 1 and self.strides[i] % 2:
            aligned = False
        strides[i] = self.strides[i] // 2
    if self.storage != NULL and (self.data - self.storage.data) % itemsize(dtype):
        aligned = False
    if self.size and (self.strides[last] != 1 or not aligned):
        snprintf(message(), MESSAGE, b"view_as_complex: real and imaginary parts must lie side by side, at even "
                 b"offsets "
                 b"(got shape %s with strides %s). Use contiguous() first.",
                 shape_text(self), list_text(self.ndim, self.strides))
        return RUNTIME_ERROR
    return array_result(array_view(self, dtype, last, self.shape, strides, 0), &results[0])


register_kernel("real_view", real_view_kernel)
register_kernel("imag_view", imag_view_kernel)
register_kernel("view_as_real", view_as_real_kernel)
register_kernel("view_as_complex", view_as_complex_kernel)
