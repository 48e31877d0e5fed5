"""Element-wise programs whose result is only summed."""

from libc.stdint cimport uint32_t
from cygrad._core.arrays.array cimport array_t
from cygrad._core.arrays.value cimport value_t
from cygrad._core.elementwise.program cimport program_t

# As evaluate() without `into`; but where `meta` broadcasts to the shape of the result, this may be summed to that of
# `meta` already, bit-identical to sum_to. It may also be left to the caller, and so are types.
cdef int evaluate_summed(program_t *program, const value_t *inputs, uint32_t reuse, const array_t *meta,
                         array_t **result) noexcept nogil
