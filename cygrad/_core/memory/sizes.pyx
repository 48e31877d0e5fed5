"""Shapes with more elements than can be counted."""

from libc.stdint cimport int64_t
from libc.stdio cimport snprintf
from cygrad._core.memory.errors cimport MESSAGE, message, sizes_text


cdef int64_t elements_of_huge(int ndim, const int64_t *shape) noexcept nogil:
    cdef int i
    for i in range(ndim):
        if shape[i] == 0:
            return 0
    # `errors.check` recognizes this beginning: no amount of memory would help.
    snprintf(message(), MESSAGE, b"sizes: too many elements for 64-bit arithmetic (got shape %s). Use smaller sizes, "
             b"or split the tensors.", sizes_text(ndim, <const long long *>shape))
    return -1
