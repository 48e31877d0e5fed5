"""Reductions that other kernels call."""

from libc.stdint cimport int64_t, uint32_t
from cygrad._core.arrays.array cimport array_t, kernel_t, value_t
from cygrad._core.elementwise.program cimport program_t

# ------------------------------------------------------------------------------------------------------- reduce kernels

# Which dimensions a kernel's `dims` argument names (NOTHING or empty: all), and the shape of the result.
ctypedef struct reduction_t:
    array_t *self            # of any dtype
    int dtype                # that it is computed in
    bint reduced[64]
    int all                  # no dimension was named
    int ndim                 # of the result
    int64_t shape[64]
    int64_t count            # elements reduced into one

cdef int read_reduction(const char *operation, const value_t *self, const value_t *dims,
                        const value_t *keepdim,
                        reduction_t *reduction) noexcept nogil
# The reduction of self, first cast to `dtype`, as a new array of `result_dtype` (that of the loops' results).
cdef int reduced_result(const char *name, int operation, double parameter, int dtype, int result_dtype,
                        reduction_t *reduction, value_t *result) noexcept nogil
# A kernel that takes short floats (see `is_short`) as they are, and casts them a block at a time.
cdef int register_reduction(str name, kernel_t kernel) except -1
cdef bint casts_itself(kernel_t kernel) noexcept nogil
# The dimensions that summing to `shape` sums; 0 if there are none, -1 if it does not broadcast to the shape of self.
cdef int dimensions_summed(const array_t *self, int ndim, const int64_t *shape, bint *reduced) noexcept nogil
# The array summed to `shape`, which broadcasts to the array's shape (retained if there is nothing to sum).
cdef int summed_to(array_t *self, int ndim, const int64_t *shape, array_t **result) noexcept nogil

# ------------------------------------------------------------------------------------------------------ fused reduction

# Element-wise programs whose result is only summed.

# As evaluate() without `into`; but where `meta` broadcasts to the shape of the result, this may be summed to that of
# `meta` already, bit-identical to sum_to. It may also be left to the caller, and so are types.
cdef int evaluate_summed(program_t *program, const value_t *inputs, uint32_t reuse, const array_t *meta,
                         array_t **result) noexcept nogil
