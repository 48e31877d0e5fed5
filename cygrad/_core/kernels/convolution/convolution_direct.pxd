"""Convolutions by vectors along lines of images, without patches: float32 and float64."""

from libc.stdint cimport int64_t
from cygrad._core.kernels.convolution.convolution_geometry cimport geometry_t
from cygrad._core.kernels.convolution.convolution_problem cimport problem_t

# Bytes that one task needs; `back`: for the gradient of the input.
cdef int64_t direct_bytes(const geometry_t *geometry, int64_t bytes, bint back) noexcept nogil
# Elements of a channel of the output, or of the input for its gradient, that are computed: those between lines too.
cdef int64_t direct_elements(const geometry_t *geometry, bint back) noexcept nogil
# The result, its input's gradient, its kernel's gradient: each writes all of what it computes.
cdef int direct_forward(problem_t *problem) noexcept nogil
# ... NOT_APPLICABLE where the kernel has an inf or nan, which would spread to places that it does not meet.
cdef int direct_input(problem_t *problem) noexcept nogil
cdef int direct_weight(problem_t *problem) noexcept nogil
