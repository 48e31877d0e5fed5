"""The table of primitives: their type rules and inner loops for each dtype."""

from libc.stdint cimport int32_t, int64_t
from cygrad._core.arrays.array cimport value_t
from cygrad._core.arrays.dtype cimport DTYPES

# ------------------------------------------------------------------------------------------------------ primitive table

cdef enum:
    MAX_PRIMITIVES = 192
    MAX_ARITY = 4         # operands of a primitive

cdef extern from "primitives/loop_types.h" nogil:
    ctypedef void (*loop_t)(char **arguments, const int64_t *n, const int64_t *steps, void *data) noexcept nogil
    ctypedef struct entry_t:
        loop_t loop               # NULL: this primitive does not support the dtype
        void *data
        int32_t out_dtype

ctypedef enum type_rule_t:
    SAME = 0          # operands are promoted to their common dtype
    FLOAT             # the same, then integers and bool become the default float
    SELECT            # the first operand is a condition; the others are promoted

ctypedef struct primitive_t:
    const char *name
    int32_t arity
    int32_t rule
    int32_t cost      # work per element in units of one addition
    int32_t exact     # correctly rounded: bit-identical in any loop, so any strides are allowed
    int32_t identity  # highest dtype for which it is the identity (conj of reals, floor of integers); -1: none
    int32_t partial   # its integer loops refuse a divisor of 0

cdef primitive_t primitives[MAX_PRIMITIVES]
# entries[primitive][dtype of the inputs]
cdef entry_t entries[MAX_PRIMITIVES][<int>DTYPES]

# Return the index of a primitive by name ("add", "tanh", ...); ValueError naming the known ones.
cdef int primitive(str name) except -1
cdef int primitive_arity(int primitive) noexcept nogil

# Add a primitive unless it exists; return its index.
cdef int define(str name, int arity, type_rule_t rule, int cost, bint exact, int identity) except -1
cdef void set_entry(int primitive, int dtype, loop_t loop, void *data, int out_dtype) noexcept

# A loop returns nothing: one that must refuse a value (integer division by zero) sets a status here, for its thread.
# The caller reads it, and resets it to OK.
cdef int loop_status() noexcept nogil
cdef void set_loop_status(int status) noexcept nogil

# --------------------------------------------------------------------------------------------------------------- chains

# Several cheap operations on the same elements, block by block, with intermediate values in registers.

cdef extern from "primitives/chain_steps.h" nogil:
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

# All steps on each block of n elements; return the number of elements in whole blocks; the caller computes the rest.
cdef int64_t run_chain(bint double_precision, const chain_step_t *steps, int64_t count, int64_t n) noexcept nogil

# ----------------------------------------------------------------------------------------------------------------- cast

# Casts between any two dtypes, as inner loops and of single numbers.

# cast_loops[from][to]; on the diagonal they copy.
cdef loop_t cast_loops[<int>DTYPES][<int>DTYPES]
# Write the number in this dtype to `cell` (16 bytes, aligned).
cdef void number_to_cell(const value_t *number, int dtype, void *cell) noexcept nogil

# ---------------------------------------------------------------------------------------------------------- short loops

# cygrad's loops for cheap arithmetic on contiguous elements.

cdef extern from "primitives/short_loops.h" nogil:
    # The operands, the result, and the number of contiguous elements.
    ctypedef void (*short_loop_t)(const void *, const void *, void *, int64_t) noexcept nogil

cdef enum:
    WHOLE = 16            # elements of a vector at most: NumPy's loop computes the remainder

# Return the loop of a table entry for contiguous elements, where a step of 0 is a number; or NULL.
cdef short_loop_t short_loop(loop_t loop, const void *data, const int64_t *steps) noexcept nogil

# Return the operation of chains for a table entry, for operands with any strides, counted the same way; or -1.
cdef int chain_operation(loop_t loop, const void *data) noexcept nogil

# Return the index of that operation, if there is such a loop: twice its place in the header, one more for float64; or
# -1.
cdef int short_operation(loop_t loop, const void *data, const int64_t *steps) noexcept nogil

# ---------------------------------------------------------------------------------------------------------- typed loops

# Return the loop of a primitive for float32 and a SIMD target that this processor has; or NULL.
cdef void *vector_loop_for(const char *name, int target) noexcept
