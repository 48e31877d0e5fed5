"""Kernels on storage-only dtypes."""

from cygrad._core.arrays.value cimport kernel_t, value_t
from cygrad._core.table.operator cimport operator_t

# Is one of the values an array, a list with an array, or a dtype that is storage-only?
cdef bint any_storage_only(const value_t *values, int n) noexcept nogil
# Cast arrays and dtypes among the values to their compute dtypes, in place.
cdef int cast_to_compute_dtypes(value_t *values, int n) noexcept nogil
# Run the kernel on such arguments and round its results to their promoted dtype.
cdef int run_in_compute_dtypes(const operator_t *op, kernel_t kernel, const value_t *arguments,
                               value_t *results) noexcept nogil
# The same for an in-place kernel.
cdef int run_in_compute_dtypes_inplace(const operator_t *op, kernel_t kernel, const value_t *arguments,
                                       value_t *results) noexcept nogil
