"""Interpreter of lowered formulas: steps on values, without the GIL."""

from libc.stdint cimport int16_t, int32_t, uint32_t
from cygrad._core.arrays.array cimport array_t, kernel_t, value_t
from cygrad._core.elementwise.elementwise cimport program_t

# --------------------------------------------------------------------------------------------------------------- scalar

# Arithmetic on Python numbers without the GIL, for numbers in formulas that are not constant.

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

# ---------------------------------------------------------------------------------------------------------- interpreter

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

# --------------------------------------------------------------------------------------------------------- code builder

# Conversion of programs and formulas from Python descriptions to C structs.

# Convert a Python constant to a value: None, bool, int, float, complex, str, dtype, a tuple of ints. Objects that own
# the memory are appended to `keep`.
cdef int constant_value(object constant, value_t *value, list keep) except -1
# Return a C string.
cdef const char *text(str string, list keep) except NULL
# Return the program that applies one primitive to its inputs in order.
cdef program_t *primitive_program(str name, int n_inputs, list keep) except NULL
# From lowering.Program and lowering.Code.
cdef program_t *assemble_program(object expression, list keep) except NULL
cdef int set_instructions(program_t *program, int n_inputs, int n_constants, list code, int result,
                          list keep) except -1
cdef code_t *assemble_code(object code, str title, list keep) except NULL
