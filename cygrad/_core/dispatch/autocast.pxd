"""Automatic mixed precision: operators whose operands `autocast` brings to another dtype."""

from cpython.object cimport PyObject
from cygrad._core.table.operator cimport Operator

cdef enum:
    # Flags of operators, by the key `autocast` of their rows.
    LOWERS = 1 << 17      # operands go to the dtype of the block
    WIDENS = 1 << 18      # operands go to float32
    MEETS = 1 << 19       # operands go to float32 if one of them has it, else to the dtype of the block
    AUTOCASTS = LOWERS | WIDENS | MEETS

cdef enum:
    AUTOCASTING = 8       # the flag of a thread in a block of autocast, beside those of anomaly mode and of profiling

# The call of such an operator in a block.
cdef object call_autocast(Operator operator, PyObject **arguments)
