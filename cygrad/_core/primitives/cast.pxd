"""Casts between any two dtypes, as inner loops and of single numbers."""

from cygrad._core.arrays.dtype cimport DTYPES
from cygrad._core.arrays.value cimport value_t
from cygrad._core.primitives.primitive_table cimport loop_t

# cast_loops[from][to]; on the diagonal they copy.
cdef loop_t cast_loops[<int>DTYPES][<int>DTYPES]
# Write the number in this dtype to `cell` (16 bytes, aligned).
cdef void number_to_cell(const value_t *number, int dtype, void *cell) noexcept nogil
