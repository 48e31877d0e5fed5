"""Programs: instructions over values, executed without the GIL."""

from libc.stdint cimport int32_t, int64_t, uint32_t
from cygrad._core.arrays.array cimport array_t, kernel_t, value_t
from cygrad._core.elementwise.expression cimport expression_t
from cygrad._core.elementwise.tiles cimport fused_stage_t

# -------------------------------------------------------------------------------------------------------------- program

cdef enum:
    MAX_OPERANDS = 12     # of an instruction, except lists and fused loops
    MAX_RESULTS = 4
    MAX_TEMPORARIES = 96  # of a formula
    MAX_GRADS = 20        # gradients of results, then values shared by the formulas of a node
    WANTED = 4            # the first of these: bits of the arguments whose formulas run
    MAX_FUSED_OPERANDS = 48
    ALL = -1              # operands of an instruction whose memory may be reused

# An operand is a slot in a space: space << SPACE_SHIFT | slot. In the order of SPACES in instruction.py.
cdef enum:
    SPACE_SHIFT = 24
    NO_OPERAND = -1
    SAVED_SPACE = 0       # saved values of a node, borrowed
    GRADS_SPACE           # its gradients; the caller says which of them the program may take
    TEMPORARY_SPACE       # owned, except the views of a compiled program
    CONSTANT_SPACE        # borrowed
    LIST_SPACE            # lists whose memory belongs to the frame and whose entries are borrowed

# In the order of KINDS in instruction.py.
ctypedef enum instruction_kind_t:
    EVALUATE = 0      # `expression`; summed to the shape of `meta`, if there is one
    CALL              # `kernel`
    SCALAR            # arithmetic `which` on numbers
    ATTRIBUTE         # attribute `which` of an array: shape, dtype ...
    TUPLE             # concatenate numbers and tuples
    SLICE             # tuple[start:stop]
    ITEM              # tuple[index] or arrays[index]
    LISTED            # convert a number to a tuple of one
    ARRAYS_OF         # convert arrays to a list
    COPY              # of the operand, or memory that later instructions write in parts
    VIEW              # point the result, a view that belongs to the frame, to its base
    FUSED_LOOP        # several expressions in one pass over memory
    ROUTINE           # a function of a higher layer
    MOVE
    JUMP              # to instruction `which`
    JUMP_UNLESS       # ... if the operand is false
    JUMP_IF_THERE     # ... if one of the operands exists: another formula has computed it

# Bits of `which` of EVALUATE and CALL. In the order of FLAGS in instruction.py.
cdef enum:
    FINAL = 1         # the result is the gradient: it may be summed to values_t.meta immediately
    CONJUGATE = 2     # of a real array, the result is the array itself
    IN_PLACE = 4      # the target belongs to a tensor, whose version changes
    INTO = 8          # the kernel writes the target itself
    UNPACK = 16       # the results are the entries of one list

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

# The values of one execution.
ctypedef struct values_t:
    value_t *spaces[5]
    uint32_t takes            # bit j: gradient j is not needed afterwards, and may be moved or overwritten
    const array_t *meta       # shape and dtype that the gradient will be converted to, or NULL

ctypedef int (*routine_t)(void *context, values_t *values) noexcept nogil

# Expressions in one pass over memory. Its operands are numbered: those of the instruction, its results, then values
# that exist one tile at a time.
ctypedef struct loop_template_t:
    int32_t n_stages, n_operands
    expression_t *expressions[MAX_FUSED_OPERANDS]
    fused_stage_t stages[MAX_FUSED_OPERANDS]      # without the specialized expressions

ctypedef struct instruction_t:
    int32_t kind
    int32_t which             # detail of the kind
    int32_t n_operands
    int32_t n_results
    int32_t n_dead
    int32_t target            # operand to write to instead of a result, or NO_OPERAND
    uint32_t last             # bit i: operand i is not read afterwards, so its memory may be reused
    const int32_t *operands
    const int32_t *results    # operands; NO_OPERAND: dropped
    const int32_t *dead       # operands to release after it
    expression_t *expression
    kernel_t kernel
    const array_t *meta
    const char *name          # of the called operator, for messages
    int64_t offset            # of a view from its base, in bytes
    loop_template_t *loop
    routine_t routine
    void *context             # of the routine

# Layout that a temporary must have; fields are ordered by access.
ctypedef struct layout_t:
    int64_t size
    int32_t dtype
    int32_t ndim              # -1 if not contiguous
    const array_t *array

ctypedef struct program_t:
    int32_t n_instructions
    int32_t n_temporaries
    int32_t result            # operand
    uint32_t reads            # bit j: reads gradient j, or the shared value in its slot
    instruction_t *instructions
    value_t *constants
    layout_t *layouts         # by temporary; NULL: results have any layout
    const char *title         # "mul: derivative of 'self'"; NULL if it is not a formula

cdef inline int operand_space(int32_t operand) noexcept nogil:
    return operand >> SPACE_SHIFT

cdef inline int operand_slot(int32_t operand) noexcept nogil:
    return operand & ((1 << SPACE_SHIFT) - 1)

# ------------------------------------------------------------------------------------------------------------ execution

# Run the instructions from `start` to `stop`. reuse: further restricts `last` where memory is reused. frees: release
# dead values.
cdef int execute(const program_t *program, values_t *values, int start, int stop, uint32_t reuse,
                 bint frees) noexcept nogil
# *out = the value of a formula, owned by the caller. takes and meta: see values_t; grads that are taken become NOTHING.
cdef int run_formula(const program_t *program, const value_t *saved, value_t *grads, uint32_t takes,
                     const array_t *meta, value_t *out) noexcept nogil

# -------------------------------------------------------------------------------------------------------------- layouts

# Copy an array with its strides; return NULL and set a message if out of memory.
cdef array_t *copy_with_layout(array_t *array) noexcept nogil
# Return whether all elements share one location in memory.
cdef bint is_one_number(const array_t *array) noexcept nogil

# ----------------------------------------------------------------------------------------- arithmetic on Python numbers

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
