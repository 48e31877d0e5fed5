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
