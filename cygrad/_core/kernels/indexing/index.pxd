"""Indices as byte offsets, and arguments shared by indexing kernels."""

from libc.stdint cimport int64_t
from cygrad._core.arrays.array cimport array_t, value_t

# ------------------------------------------------------------------------------------------------------------ positions

# Interpretation of the indices of one dimension.
ctypedef struct index_rule_t:
    const char *operation
    int dim               # for messages
    int64_t size          # of that dimension
    int64_t step          # bytes from one element to the next
    bint negative         # do negative indices count from the end?
    bint skipping         # give the index `skipped` the offset SKIP?
    int64_t skipped
    int error             # status if an index is out of bounds

# Convert indices of any integer dtype to byte offsets, an int64 array; each index is checked as it is read.
cdef int offsets_of(array_t *indices, const index_rule_t *rule, array_t **offsets) noexcept nogil
# Refuse arrays that are not integers, with this status.
cdef int check_index_dtype(const char *operation, const array_t *indices, int error) noexcept nogil
# "index 5 is out of bounds for dimension 0 with size 3"; return error
cdef int out_of_bounds(const char *operation, int64_t index, int dim, int64_t size, int error) noexcept nogil
# Return the row-major positions of the nonzero elements as a 1-dim int64 array.
cdef int true_positions(array_t *array, array_t **positions) noexcept nogil
# Turn row-major positions in dimensions first..first+count-1 of `array` into byte offsets, in place.
cdef void positions_to_offsets(array_t *positions, const array_t *array, int first, int count) noexcept nogil

# ---------------------------------------------------------------------------------------------------------------- index

# Convert a number or a 0-dim array to a 0-dim array of this dtype.
cdef int scalar_array(const char *operation, const value_t *value, int dtype, array_t **scalar) noexcept nogil
# Read the arguments (self, dim, index) of operations that select along one dimension.
cdef int rows_arguments(const char *operation, const value_t *arguments, array_t **self, int *dim,
                        array_t **index) noexcept nogil
