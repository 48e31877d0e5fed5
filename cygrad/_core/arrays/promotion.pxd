"""Type promotion of operands, in the order: arrays with dimensions, 0-dim arrays, numbers."""

from cygrad._core.arrays.value cimport value_t

cdef enum:
    # Ranks of operands, highest first.
    DIMENSIONED = 0
    ZERO_DIM = 1
    WEAK = 2          # Python numbers, and results computed from them alone

# Return rank and dtype of an operand. A number has the widest dtype of its category until it meets an array.
cdef int rank_of(const value_t *operand) noexcept nogil
cdef int dtype_of(const value_t *operand) noexcept nogil
# Return the dtype of the operation; each of the three is the promoted dtype of that rank, or -1 for none.
cdef int common_dtype(int dimensioned, int zero_dim, int weak) noexcept nogil
# Return the dtype of an array made from a number of this wide dtype.
cdef int settled(int weak) noexcept nogil
# Return the result dtype of n operands.
cdef int result_type(const value_t *operands, int n) noexcept nogil
