"""Several cheap operations on the same elements, block by block, with what one makes in registers for the next."""

from libc.stdint cimport int64_t

cdef extern from "primitives/chains.h" nogil:
    # Where an operand is found.
    enum:
        HELD              # in registers: what the step before has made
        ELEMENTS          # in an array, one after the other
        NUMBER            # one for all elements

    ctypedef struct chain_step_t:
        int64_t code
        const char *left
        const char *right     # of two operands
        char *out             # if the result is kept

    # `operation`: the place of an operation in `short_loops`. Of two operands not both are numbers; where there is one
    # operand, `other` is HELD.
    int64_t CHAIN_CODE(int operation, int one, int other, int kept)

# All steps on each block of n elements; -> how many elements were in whole blocks: what is left over is the caller's.
cdef int64_t run_chain(bint double_precision, const chain_step_t *steps, int64_t count, int64_t n) noexcept nogil
