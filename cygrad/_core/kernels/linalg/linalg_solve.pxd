"""Systems of linear equations: what other kernels call."""

from libc.stdint cimport int64_t

# Ones on the diagonal of a contiguous matrix, zeros elsewhere.
cdef void set_identity(int dtype, char *data, int64_t rows, int64_t columns) noexcept nogil
