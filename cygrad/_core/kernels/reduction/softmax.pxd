"""Softmax for kernels that build on it."""

from cygrad._core.arrays.array cimport array_t

# exp(x) * factor - less of n contiguous floats; `out` may be `x`.
cdef void scaled_exponentials(int dtype, const char *x, double factor, double less, char *out,
                              long long n) noexcept nogil
# log_softmax along a wrapped dimension of a contiguous floating array, into `out` of the same shape and
# dtype.
cdef void log_softmax_into(array_t *self, int dim, array_t *out) noexcept nogil
