"""The engine of all reductions: one plan of loops for any operation, dtype and layout."""

from libc.stdint cimport int64_t
from cygrad._core.arrays.array cimport array_t

cdef extern from "kernels/reduction/operations.h":
    ctypedef enum reduce_operation_t:
        SUM, NANSUM, MEAN, PROD, MAXIMUM, MINIMUM, ANY, ALL, VARIANCE, DEVIATION
        NORM_0, NORM_1, NORM_2, NORM_P, NORM_MAX, NORM_MIN, ARGMAX, ARGMIN, LOGSUMEXP

# Reduce the dimensions of `self` for which `reduced` is true into `result`: contiguous, of the loops' result dtype,
# with as many elements as the other dimensions have. ARGMAX and ARGMIN reduce at most one dimension. Any strides; no
# copies; bit-identical for any number of threads.
cdef int reduce_array(int operation, double parameter, const array_t *self, const bint *reduced,
                      array_t *result, array_t *second) noexcept nogil

# Source of computed elements: write `n` of them, from index `start` of a contiguous array on, to contiguous memory
# `to`. Called by several threads concurrently.
ctypedef struct element_source_t:
    void (*produce)(void *context, int64_t start, int64_t n, char *to) noexcept nogil
    void *context

# reduce_array, bit-identically, for a contiguous array of which only shape, strides and dtype exist: elements are
# computed just before they are reduced, in blocks that stay in the L1 cache.
cdef int reduce_computed(int operation, double parameter, const array_t *like, const bint *reduced, array_t *result,
                         element_source_t *source) noexcept nogil
# Return whether reduce_computed supports this reduction.
cdef bint can_reduce_computed(int operation, int dtype) noexcept nogil

# For kernels that loop over rows: sum of `n` contiguous floats of `dtype`; maximum (nan if there is one) and sum of `n`
# rows of `width` <= COLUMNS contiguous elements, `stride` apart.
cdef enum:
    COLUMNS = 256
cdef double row_sum(int dtype, const char *data, int64_t n) noexcept nogil
cdef void column_maxima(int dtype, const char *data, int64_t n, int64_t stride, int64_t width,
                        double *out) noexcept nogil
cdef void column_sums(int dtype, const char *data, int64_t n, int64_t stride, int64_t width,
                      double *out) noexcept nogil
