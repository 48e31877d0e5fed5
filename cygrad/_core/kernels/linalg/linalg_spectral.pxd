"""Singular values: what other kernels call."""

from libc.stdint cimport int64_t
from cygrad._core.arrays.array cimport array_t

# made (5 entries, NULL before): copy of the matrices, U, S, V^H, info; the vectors in column order. job as in gesdd.
# On failure the caller releases what is there.
cdef int svd_arrays(array_t *input, char job, array_t **made) noexcept nogil
# nan everywhere.
cdef void fill_nan(int dtype, char *data, int64_t count) noexcept nogil
