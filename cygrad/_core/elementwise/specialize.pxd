"""Programs specialized for the dtypes of their inputs: loops resolved, casts inserted, buffers assigned."""

from libc.stdint cimport int16_t, int32_t, int64_t, uint64_t
from cygrad._core.arrays.value cimport value_t
from cygrad._core.elementwise.program cimport MAX_INPUTS, program_t
from cygrad._core.primitives.primitive_table cimport MAX_ARITY, loop_t

cdef enum:
    MAX_CELLS = 64
    MAX_BUFFERS = 64
    # A slot holds an operand of a step: inputs, then cells, then buffers; and the result.
    OUT_SLOT = -1

# A number in the dtype that a step needs.
ctypedef struct cell_t:
    double value[2]
    int32_t input             # which input; -1: a constant, whose `value` never changes
    int32_t dtype

ctypedef struct step_t:
    loop_t loop
    void *data
    int16_t n_inputs
    int16_t out               # slot, or OUT_SLOT in the last step
    int16_t inputs[MAX_ARITY]  # slots
    int16_t out_size          # bytes per element of its result
    int16_t operation         # of a chain (short_loops.chain_operation), or -1
    int16_t links             # number of steps from this one on that may form a chain; 0: none
    int16_t kept              # a step after the next one reads it

# Immutable once published.
ctypedef struct specialized_t:
    uint64_t key[2]
    specialized_t *next
    int32_t dtype             # of the result
    int32_t n_inputs
    int32_t n_cells
    int32_t n_buffers
    int32_t width             # bytes per element of the widest buffer
    int32_t cost              # per element, in additions
    int32_t exact             # loops are bit-identical for any strides
    int32_t partial           # a loop may refuse a value: check loop_status()
    int32_t direct            # one step whose operands are the inputs, in order
    int32_t temporary         # not cached: the caller frees it
    int32_t n_steps
    step_t *steps
    cell_t cells[MAX_CELLS]

# Return the specialization for these inputs; NULL with a message and a status if there is none. If `temporary` is set,
# the caller passes it to discard().
cdef specialized_t *specialize(program_t *program, const value_t *inputs, int *status) noexcept nogil
cdef void discard(specialized_t *specialized) noexcept nogil
# Free all specializations of a program.
cdef void forget(program_t *program) noexcept nogil
