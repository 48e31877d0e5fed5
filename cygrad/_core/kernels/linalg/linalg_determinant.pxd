"""Determinants: numbers of any dtype, for other kernels."""

from libc.stdint cimport int64_t
from cygrad._core.kernels.linalg.blas cimport scalar_t

# Element i of contiguous numbers, read and written.
cdef scalar_t number_at(int dtype, const char *data, int64_t i) noexcept nogil
cdef void put_number(int dtype, char *data, int64_t i, scalar_t number) noexcept nogil
# Contiguous numbers multiplied by one; their imaginary parts with the other sign.
cdef void scale(int dtype, char *data, int64_t count, scalar_t factor) noexcept nogil
cdef void conjugate(int dtype, char *data, int64_t count) noexcept nogil
