"""Convolutions of all dtypes as matrix products with im2col columns."""

from cygrad._core.kernels.convolution.direct cimport problem_t

# Compute the output, the input gradient, or the weight gradient; each overwrites its result.
cdef int columns_forward(problem_t *problem) noexcept nogil
cdef int columns_input(problem_t *problem) noexcept nogil
cdef int columns_weight(problem_t *problem) noexcept nogil
