"""Choice of the algorithm for a convolution."""

from cygrad._core.kernels.convolution.direct cimport geometry_t

ctypedef enum direction_t:
    FORWARD
    INPUT_GRADIENT
    WEIGHT_GRADIENT

ctypedef enum form_t:
    COLUMNS                    # im2col and matrix products
    DIRECT                     # vectors along lines, without patches
    WINOGRAD                   # tiles of 4 x 4 with a quarter of the multiplications
    INTERLEAVED                # COLUMNS with the batch as innermost dimension
    LINEAR                     # one matrix product, where a patch covers the image

# The choice depends only on sizes, dtype and direction, not on threads or layouts.
cdef form_t choose_form(const geometry_t *geometry, int dtype, direction_t direction) noexcept nogil
