"""Element-wise programs, run tile by tile in one pass over memory; and what such programs are made of."""

from libc.stdint cimport int64_t, uint32_t
from cygrad._core.arrays.array cimport array_t
from cygrad._core.arrays.promotion cimport result_type
from cygrad._core.arrays.value cimport value_t
from cygrad._core.elementwise.copying cimport as_contiguous, as_dtype, copy_into, fill
from cygrad._core.elementwise.iteration cimport broadcast_shape
from cygrad._core.elementwise.program cimport MAX_INPUTS, MAX_REGISTERS, instruction_t, program_t
from cygrad._core.elementwise.specialize cimport forget
from cygrad._core.primitives.primitive_table cimport (
    MAX_PRIMITIVES, entries, entry_t, loop_t, primitive, primitive_arity)

# Run `program` on inputs[0..n_inputs-1] (ARRAY or numbers), broadcasting and promoting as PyTorch does.
#   into   NULL: a new result, which lies in memory as the inputs do. Else the result is written there, in its dtype
#          (shape must be the broadcast shape; inputs that overlap it are handled). `result` is then left
#          alone
#          and may be NULL.
#   reuse  bit i set: the caller holds the only reference to inputs[i] and will not look at it again, so if
#          it is `exclusive()` and fits, the result may be computed in its memory (then *result is
#          inputs[i].of.array
#          itself with its count raised).
cdef int evaluate(program_t *program, const value_t *inputs, uint32_t reuse,
                  array_t *into, array_t **result) noexcept nogil
# Is the array large and transposed against the result, so that it should be copied first?
cdef bint is_turned(const array_t *array, const array_t *out) noexcept nogil
# dtype that the program's result would have; -1 with a message if there is none.
cdef int result_dtype(program_t *program, const value_t *inputs) noexcept nogil
# a += b in place (same shape and dtype): how gradients are accumulated.
cdef int accumulate(array_t *a, array_t *b) noexcept nogil
