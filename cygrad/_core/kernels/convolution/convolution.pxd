"""Which form of computing a convolution is the fastest."""

from cygrad._core.kernels.convolution.direct cimport geometry_t

# --------------------------------------------------------------------------------------------------- convolution choice

# Which form of computing a convolution is the fastest.

ctypedef enum direction_t:
    FORWARD
    INPUT_GRADIENT
    WEIGHT_GRADIENT

ctypedef enum form_t:
    COLUMNS                    # products of matrices of patches
    DIRECT                     # vectors along lines
    WINOGRAD                   # tiles of 4 x 4 with a quarter of the products

# The choice depends only on sizes, dtype and direction, not on threads or layouts.
cdef form_t choose_form(const geometry_t *geometry, int dtype, direction_t direction) noexcept nogil
