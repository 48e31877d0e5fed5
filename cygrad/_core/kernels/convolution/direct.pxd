"""Geometry of convolutions, im2col loops, and the direct algorithm."""

from libc.stdint cimport int64_t
from cygrad._core.arrays.array cimport MAX_DIMS, array_t, value_t

# ------------------------------------------------------------------------------------------------- convolution geometry

cdef extern from "kernels/convolution/columns.h" nogil:
    ctypedef struct geometry_t:
        int64_t batch
        int64_t groups
        int64_t in_channels       # of one group
        int64_t out_channels      # of one group
        int64_t size[3]           # of the input; leading dimensions of size 1 where it has fewer than three
        int64_t out[3]
        int64_t kernel[3]
        int64_t stride[3]
        int64_t padding[3]
        int64_t dilation[3]
        int64_t positions         # product of `out`
        int64_t taps              # product of `kernel`
        int64_t batch_step        # of the input, in elements
        int64_t channel_step
        int64_t step[3]
    # Channels [c0, c1) of one image (of one group) at output positions [p0, p1): rows of p1 - p0 elements,
    # `leading` elements apart.
    void gather_columns(const geometry_t *geometry, int64_t bytes, const void *image, int64_t c0, int64_t c1,
                        int64_t p0, int64_t p1, void *columns, int64_t leading)
    # Transpose: add columns into channels [c0, c1).
    void (*scatter_columns[5])(const geometry_t *geometry, void *image, int64_t c0, int64_t c1, int64_t p0, int64_t p1,
                               const void *columns, int64_t leading)

# Index of a dtype in scatter_columns; -1 where there is none.
cdef int scatter_kind(int dtype) noexcept nogil
# Read one integer for all, or one for each, of `n` spatial dimensions; the leading 3 - n become `filler`.
cdef int read_sizes(const char *operation, const char *name, const value_t *value, int n, int64_t least,
                    int64_t filler, int64_t *sizes) noexcept nogil
# Read stride, padding, dilation and, `with_groups`, groups; `arguments` points to the first of them.
cdef int read_movement(const char *operation, int n, const value_t *arguments, bint with_groups,
                       geometry_t *geometry) noexcept nogil
# Set sizes from input (batch, channels, ...) and weight (out, channels / groups, ...), and the output sizes.
cdef int fit_shapes(const char *operation, int ndim, const int64_t *input, int weight_ndim, const int64_t *weight,
                    geometry_t *geometry) noexcept nogil
# Compute the output sizes of `n` spatial dimensions; refuse kernels larger than the padded image.
cdef int fit_output(const char *operation, int n, geometry_t *geometry) noexcept nogil
# Set the strides of the memory that columns are gathered from or scattered into.
cdef void follow(geometry_t *geometry, const array_t *input) noexcept nogil
# Set the output shape (batch, groups * out_channels, ...); return its number of dimensions.
cdef int output_shape(const geometry_t *geometry, int n, int64_t *shape) noexcept nogil

# -------------------------------------------------------------------------------------------------- convolution problem

# A checked convolution: the input of all algorithms.

ctypedef struct problem_t:
    geometry_t geometry
    int dtype
    int64_t bytes              # of an element
    char *input                # or its gradient; with the strides of the geometry
    char *weight               # contiguous; or its gradient
    char *output               # contiguous; or its gradient
    char *bias                 # contiguous: one number per output channel; or NULL

cdef enum:
    NOT_APPLICABLE = -1                # no error: the algorithm cannot compute these values, use another one
    PARTS = 16                 # partial sums of the weight gradient, at most
    PART_WORK = 1 << 20        # ... multiplications of each
    PART_BYTES = 1 << 26       # ... and memory of all partial sums

# --------------------------------------------------------------------------------------------------- convolution direct

# Convolutions of float32 and float64 by vectors along lines of images, without patches.

# Return the bytes of all lines of one task, by which the form is chosen; `back`: for the input gradient.
cdef int64_t direct_bytes(const geometry_t *geometry, int64_t bytes, bint back) noexcept nogil
# Return the elements computed per channel, those between lines included; `back`: for the input gradient.
cdef int64_t direct_elements(const geometry_t *geometry, bint back) noexcept nogil
# Compute the output, the input gradient, or the weight gradient; each overwrites its result.
cdef int direct_forward(problem_t *problem) noexcept nogil
# Return NOT_APPLICABLE if the kernel has an inf or nan, which would spread to other elements.
cdef int direct_input(problem_t *problem) noexcept nogil
cdef int direct_weight(problem_t *problem) noexcept nogil
