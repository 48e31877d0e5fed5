"""Winograd's form of convolutions with kernels of 3 x 3 and stride 1: float32 and float64."""

from libc.stdint cimport int64_t
from cygrad._core.kernels.convolution.direct cimport geometry_t, problem_t

# Does it compute such a convolution; and how many bytes it needs at once.
cdef bint winograd_fits(const geometry_t *geometry) noexcept nogil
cdef int64_t winograd_bytes(const geometry_t *geometry, int64_t bytes) noexcept nogil
# The result, its input's gradient, its kernel's gradient: each writes all of its results, or returns NOT_APPLICABLE if
# one is not finite: an inf or nan has then spread to other positions of a tile.
cdef int winograd_forward(problem_t *problem) noexcept nogil
cdef int winograd_input(problem_t *problem) noexcept nogil
cdef int winograd_weight(problem_t *problem) noexcept nogil
