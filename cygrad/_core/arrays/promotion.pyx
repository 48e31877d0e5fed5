"""Type promotion of operands, in the order: arrays with dimensions, 0-dim arrays, numbers."""

from cygrad._core.arrays.dtype cimport (BOOL, BOOLEAN_CATEGORY, COMPLEX128, COMPLEX_CATEGORY, FLOAT64, FLOATING,
                                 INT64,
                                 category, complex_of, default_complex, default_float, promote)
from cygrad._core.arrays.value cimport ARRAY, BOOLEAN, INTEGER, REAL


cdef int rank_of(const value_t *operand) noexcept nogil:
    if operand.kind != ARRAY:
        return WEAK
    return DIMENSIONED if operand.of.array.ndim else ZERO_DIM


cdef int dtype_of(const value_t *operand) noexcept nogil:
    if operand.kind == ARRAY:
        return operand.of.array.dtype
    return (BOOL if operand.kind == BOOLEAN else INT64 if operand.kind == INTEGER
            else FLOAT64 if operand.kind == REAL else COMPLEX128)


cdef int settled(int weak) noexcept nogil:
    return default_float() if weak == FLOAT64 else default_complex() if weak == COMPLEX128 else weak


cdef int _outranked(int higher, int lower) noexcept nogil:
    """
    Promote an operand and one of lower rank.

    The lower rank counts only if its category (bool, integer, float, complex) is higher: a float32 matrix times a
    float64 scalar stays float32, an int64 matrix times a float scalar becomes floating.
    """
    if higher < 0:
        return lower
    if lower < 0:
        return higher
    if category(higher) == COMPLEX_CATEGORY:
        return higher
    if category(higher) == FLOATING:
        return complex_of(higher) if category(lower) == COMPLEX_CATEGORY else higher
    if category(higher) == BOOLEAN_CATEGORY or category(lower) >= FLOATING:
        return promote(higher, lower)
    return higher


cdef int common_dtype(int dimensioned, int zero_dim, int weak) noexcept nogil:
    if dimensioned < 0 and zero_dim < 0:
        return weak
    return _outranked(dimensioned, _outranked(zero_dim, settled(weak)))


cdef int result_type(const value_t *operands, int n) noexcept nogil:
    cdef int[3] ranks
    cdef int i, rank, code
    ranks[0] = ranks[1] = ranks[2] = -1
    for i in range(n):
        rank = rank_of(&operands[i])
        code = dtype_of(&operands[i])
        ranks[rank] = code if ranks[rank] < 0 else promote(ranks[rank], code)
    return settled(ranks[WEAK]) if ranks[DIMENSIONED] < 0 and ranks[ZERO_DIM] < 0 else common_dtype(
        ranks[DIMENSIONED], ranks[ZERO_DIM], ranks[WEAK])
