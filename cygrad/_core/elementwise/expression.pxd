"""Element-wise expressions: straight-line code over registers."""

from libc.stdint cimport int16_t, int32_t
from cygrad._core.arrays.array cimport value_t
from cygrad._core.primitives.primitive_table cimport MAX_ARITY

cdef enum:
    MAX_REGISTERS = 48
    MAX_INPUTS = 12

ctypedef struct primitive_call_t:
    int16_t primitive         # index in the table of primitives
    int16_t out               # register
    int16_t inputs[MAX_ARITY]  # registers; -1 where unused

# Registers: first the inputs (an array or a number at each call), then the constants, then temporaries.
ctypedef struct expression_t:
    int32_t n_inputs
    int32_t n_constants
    int32_t n_instructions
    int32_t n_registers
    int32_t result            # register of the result
    primitive_call_t *code
    value_t *constants        # Python numbers: weak in type promotion
    void *specialized         # loops resolved for dtypes, filled on first use (owned by tiles.pyx)
