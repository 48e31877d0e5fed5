"""Winograd convolutions with 3 x 3 kernels and stride 1: float32 and float64."""

from libc.stdint cimport int64_t
from cygrad._core.kernels.convolution.direct cimport geometry_t, problem_t

# Return whether the algorithm applies, and the bytes that it needs.
cdef bint winograd_fits(const geometry_t *geometry) noexcept nogil
cdef int64_t winograd_bytes(const geometry_t *geometry, int64_t bytes) noexcept nogil
# Compute the output, the input gradient, or the weight gradient. Return NOT_APPLICABLE if a result is not finite: an
# inf or nan has spread to other positions of its tile.
cdef int winograd_forward(problem_t *problem) noexcept nogil
cdef int winograd_input(problem_t *problem) noexcept nogil
cdef int winograd_weight(problem_t *problem) noexcept nogil
