"""Kernels run on dtypes that are stored and not computed in."""

from cygrad._core.arrays.value cimport kernel_t, value_t
from cygrad._core.table.operator cimport operator_t

# Is one of the values an array, a list with an array, or a dtype of this sort?
cdef bint any_stored(const value_t *values, int n) noexcept nogil
# Bring arrays and dtypes among the values to what they are computed in, in place.
cdef int become_computed(value_t *values, int n) noexcept nogil
# The kernel on such arguments: its results are rounded to the dtype in which the arguments met.
cdef int run_computed(const operator_t *op, kernel_t kernel, const value_t *arguments, value_t *results) noexcept nogil
# A kernel that changes its first argument in place.
cdef int run_computed_into(const operator_t *op, kernel_t kernel, const value_t *arguments,
                           value_t *results) noexcept nogil
