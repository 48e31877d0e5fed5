"""Element-wise expressions, executed tile by tile in one pass over memory."""

from libc.stdint cimport int64_t, uint32_t
from cygrad._core.arrays.array cimport array_t, result_type, value_t
from cygrad._core.elementwise.copying cimport as_contiguous, as_dtype, broadcast_shape, copy_into, fill
from cygrad._core.elementwise.expression cimport MAX_INPUTS, MAX_REGISTERS, primitive_call_t, expression_t
from cygrad._core.elementwise.tiles cimport forget
from cygrad._core.primitives.primitive_table cimport (
    MAX_PRIMITIVES, entries, entry_t, loop_t, primitive, primitive_arity,
)

# Run `expression` on inputs[0..n_inputs-1] (ARRAY or numbers), broadcasting and promoting as PyTorch does. into NULL: a
# new result in the layout of the inputs. Else the result is written there, in its dtype (shape must be the broadcast
# shape; overlapping inputs are handled), and `result` may be NULL. reuse bit i set: the caller holds the only reference
# to inputs[i] and does not need it any more, so if it is `exclusive()` and fits, the result may be computed in its
# memory (then *result is inputs[i].of.array itself, retained).
cdef int evaluate(expression_t *expression, const value_t *inputs, uint32_t reuse,
                  array_t *into, array_t **result) noexcept nogil
# Return whether the array is large and transposed relative to the result, so that copying it first is faster.
cdef bint should_copy_transposed(const array_t *array, const array_t *out) noexcept nogil
# Return the dtype of the expression's result; -1 with a message if there is none.
cdef int result_dtype(expression_t *expression, const value_t *inputs) noexcept nogil
# a += b in place (same shape and dtype), for accumulating gradients.
cdef int accumulate(array_t *a, array_t *b) noexcept nogil
