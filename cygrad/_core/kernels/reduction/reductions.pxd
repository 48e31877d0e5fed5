"""Reductions that other kernels call."""

from libc.stdint cimport int64_t, uint32_t
from cygrad._core.arrays.array cimport array_t, kernel_t, value_t
from cygrad._core.elementwise.expression cimport expression_t

# ------------------------------------------------------------------------------------------------------- reduce kernels

# Dimensions named by `dims` (NOTHING or empty: all), and the shape of the result.
ctypedef struct reduction_t:
    array_t *self            # of any dtype
    int dtype                # to compute in
    bint reduced[64]
    int all                  # no dimension was named
    int ndim                 # of the result
    int64_t shape[64]
    int64_t count            # elements reduced into one

cdef int read_reduction(const char *operation, const value_t *self, const value_t *dims,
                        const value_t *keepdim,
                        reduction_t *reduction) noexcept nogil
# Reduce self, cast to `dtype`, to a new array of `result_dtype` (that of the loops' results).
cdef int reduced_result(const char *name, int operation, double parameter, int dtype, int result_dtype,
                        reduction_t *reduction, value_t *result) noexcept nogil
# Register a kernel that takes 16-bit floats (see `is_short`) and casts them a block at a time.
cdef int register_reduction(str name, kernel_t kernel) except -1
cdef bint casts_itself(kernel_t kernel) noexcept nogil
# Mark the dimensions that a sum to `shape` reduces; return 0 if none, -1 if `shape` does not broadcast to self.
cdef int dimensions_summed(const array_t *self, int ndim, const int64_t *shape, bint *reduced) noexcept nogil
# Sum the array to `shape`, which broadcasts to the array's shape; retain it if there is nothing to sum.
cdef int summed_to(array_t *self, int ndim, const int64_t *shape, array_t **result) noexcept nogil

# ------------------------------------------------------------------------------------------------------ fused reduction

# evaluate() without `into`, for a result that is only summed: if `meta` broadcasts to the shape of the result, this may
# already be summed to the shape of `meta`, bit-identical to sum_to, or left to the caller, as are dtypes.
cdef int evaluate_summed(expression_t *expression, const value_t *inputs, uint32_t reuse, const array_t *meta,
                         array_t **result) noexcept nogil

# --------------------------------------------------------------------------------------------------------------- engine

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
