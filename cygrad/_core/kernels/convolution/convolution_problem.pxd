"""A convolution, checked and ready to be computed: what all forms of computing it are given."""

from libc.stdint cimport int64_t
from cygrad._core.kernels.convolution.convolution_geometry cimport geometry_t

ctypedef struct problem_t:
    geometry_t geometry
    int dtype
    int64_t bytes              # of an element
    char *input                # or its gradient; with the steps of the geometry
    char *weight               # contiguous; or its gradient
    char *output               # contiguous; or its gradient
    char *bias                 # contiguous: one number for each channel of the result; or NULL

cdef enum:
    NOT_APPLICABLE = -1                # no error: this form does not fit the numbers, another one must be taken
    PIECE_WORK = 1 << 18       # multiplications worth a piece of a parallel loop
    PARTS = 16                 # pieces into which the gradient of a kernel is cut, if it is worth while
    PART_WORK = 1 << 20        # ... multiplications of each
    PART_BYTES = 1 << 26       # ... and memory of all their sums


cdef inline int64_t grain(int64_t work) noexcept nogil:
    """Return how many tasks of `work` multiplications form a chunk."""
    return max(1, PIECE_WORK // max(work, 1))
