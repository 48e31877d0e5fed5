"""Convolutions as products of matrices whose columns are patches of images: of all dtypes."""

from cygrad._core.kernels.convolution.direct cimport problem_t

# ------------------------------------------------------------------------------------------------- convolution products

# Convolutions as products of matrices whose columns are patches of images: of all dtypes.

# The result, its input's gradient, its kernel's gradient: each writes all of what it computes.
cdef int columns_forward(problem_t *problem) noexcept nogil
cdef int columns_input(problem_t *problem) noexcept nogil
cdef int columns_weight(problem_t *problem) noexcept nogil
