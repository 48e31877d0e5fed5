"""Arithmetic on Python numbers without the GIL, for numbers of a program that are not constant."""

from cygrad._core.arrays.array cimport value_t

# In the order of SCALARS in formula.py.
ctypedef enum scalar_t:
    ADD = 0
    SUB
    MUL
    DIV
    FLOOR_DIVIDE
    REMAINDER
    POW
    NEG
    EQ
    NE
    LT
    LE
    GT
    GE
    NOT
    ABS
    SQRT
    EXP
    LOG
    CONJ
    MAXIMUM
    MINIMUM
    IS_NONE

# *result = a <operation> b, with Python's rules (7 / 2 = 3.5, int + float = float); `b` is NULL for one operand.
# Besides numbers, EQ and NE compare shapes, dtypes and texts, and IS_NONE takes any value.
cdef int scalar(int operation, const value_t *a, const value_t *b, value_t *result) noexcept nogil
# Python's truth value.
cdef bint truth(const value_t *value) noexcept nogil
