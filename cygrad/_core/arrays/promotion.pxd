"""Type promotion of operands: arrays with dimensions, then 0-dim arrays, then numbers decide."""

from cygrad._core.arrays.value cimport value_t

cdef enum:
    # Ranks of operands, deciding first.
    DIMENSIONED = 0
    ZERO_DIM = 1
    WEAK = 2          # Python numbers, and what is computed from them alone

# Rank and dtype of an operand. Numbers are held in the widest dtype of their category until they meet an
# array.
cdef int rank_of(const value_t *operand) noexcept nogil
cdef int dtype_of(const value_t *operand) noexcept nogil
# Dtype in which operands meet; each of the three is the promoted dtype of that rank, or -1 for none.
cdef int common_dtype(int dimensioned, int zero_dim, int weak) noexcept nogil
# A number's wide dtype -> the dtype that an array made from it has.
cdef int settled(int weak) noexcept nogil
# Dtype of n operands together.
cdef int result_type(const value_t *operands, int n) noexcept nogil
