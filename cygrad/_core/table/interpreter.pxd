"""Interpreter of lowered formulas: steps on values, without the GIL."""

from libc.stdint cimport int16_t, int32_t, uint32_t
from cygrad._core.arrays.array cimport array_t
from cygrad._core.arrays.value cimport kernel_t, value_t
from cygrad._core.elementwise.elementwise cimport program_t

cdef enum:
    MAX_STEP_INPUTS = 12
    MAX_TEMPORARIES = 96
    MAX_GRADS = 20        # gradients of results, then values shared by the formulas of a node
    WANTED = 4            # the first of these: bits of the arguments whose formulas run

# Spaces of operands of formulas: operand >> 8.
cdef enum:
    SAVED_SPACE = 0
    GRADS_SPACE
    TEMPORARY_SPACE
    CONSTANT_SPACE

# In the order of KINDS in lowering.py.
ctypedef enum step_kind_t:
    FUSED = 0         # evaluate `program`; `which` 1: the result is the gradient, which may be summed immediately
    CALL              # `kernel`
    SCALAR            # arithmetic `which` on numbers
    ATTRIBUTE         # attribute `which` of an array: shape, dtype ...
    TUPLE             # concatenate numbers and tuples
    SLICE             # tuple[start:stop]
    ITEM              # tuple[index] or arrays[index]
    LISTED            # convert a number to a tuple of one
    ARRAYS_OF         # convert arrays to a list
    MOVE
    JUMP
    JUMP_UNLESS       # to step `which`, if the input is false
    JUMP_IF_THERE     # to step `which`, if one of the inputs exists: another formula has computed it

ctypedef enum attribute_t:
    SHAPE = 0
    NDIM
    DTYPE_OF
    NUMEL
    STRIDES
    STORAGE_OFFSET
    IS_COMPLEX
    LEN_OF
    SIZES             # sizes of the arrays of a list in a dimension

ctypedef struct code_step_t:
    int32_t kind
    int32_t which
    int32_t out               # operand, as below: a temporary, or shared
    int32_t n_out
    int32_t n_inputs
    uint32_t last             # bit i: last use of inputs[i]
    int16_t inputs[MAX_STEP_INPUTS]      # space << 8 | slot; spaces: saved, grads, temporaries, constants
    program_t *program
    kernel_t kernel
    const char *name          # of the called operator, for messages

ctypedef struct code_t:
    int32_t n_steps
    int32_t n_temporaries
    int32_t result            # operand
    uint32_t reads            # bit j: reads gradient j, or the shared value in its slot
    code_step_t *steps
    value_t *constants
    const char *title         # "mul: derivative of 'self'"

# *out = the value of the formula, owned by the caller. takes bit j set: grads[j] is not needed after this: it may be
# moved, or overwritten, and becomes NOTHING. meta shape and dtype that the gradient will be converted to, or NULL: a
# broadcast value may be summed to that shape already.
cdef int run(const code_t *code, const value_t *saved, value_t *grads, uint32_t takes, const array_t *meta,
             value_t *out) noexcept nogil
