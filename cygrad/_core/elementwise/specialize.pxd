"""Programs made ready for the dtypes of their inputs: loops found, casts inserted, buffers assigned."""

from libc.stdint cimport int16_t, int32_t, int64_t, uint64_t
from cygrad._core.arrays.value cimport value_t
from cygrad._core.elementwise.program cimport MAX_INPUTS, program_t
from cygrad._core.primitives.primitive_table cimport MAX_ARITY, loop_t

cdef enum:
    MAX_CELLS = 64
    MAX_BUFFERS = 64
    # Slots are where the operands of a step lie: inputs, then cells, then buffers; and the result.
    OUT_SLOT = -1

# A number in the dtype in which a step wants it.
ctypedef struct cell_t:
    double value[2]
    int32_t input             # which input; -1: a constant, whose `value` is filled for good
    int32_t dtype

ctypedef struct step_t:
    loop_t loop
    void *data
    int16_t n_inputs
    int16_t out               # slot, or OUT_SLOT in the last step
    int16_t inputs[MAX_ARITY]  # slots
    int16_t out_size          # bytes per element of what it makes
    int16_t operation         # of a chain (short_loops.chain_operation), or -1
    int16_t links             # steps from this one on that may be one chain; 0: none
    int16_t kept              # a step after the next one reads it

# Immutable once it is published.
ctypedef struct specialized_t:
    uint64_t key[2]
    specialized_t *next
    int32_t dtype             # of the result
    int32_t n_inputs
    int32_t n_cells
    int32_t n_buffers
    int32_t width             # bytes per element of the widest buffer
    int32_t cost              # of one element, in additions
    int32_t exact             # loops give the same bits for any strides
    int32_t partial           # a loop may refuse a value: look at loop_status()
    int32_t direct            # one step whose operands are the inputs, in order
    int32_t temporary         # was not cached: the caller frees it
    int32_t n_steps
    step_t *steps
    cell_t cells[MAX_CELLS]

# The specialization for these inputs; NULL with a message and a status if there is none. With
# `temporary` set the caller gives it back to discard().
cdef specialized_t *specialize(program_t *program, const value_t *inputs, int *status) noexcept nogil
cdef void discard(specialized_t *specialized) noexcept nogil
# Free all specializations of a program that goes away.
cdef void forget(program_t *program) noexcept nogil
