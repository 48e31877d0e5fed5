"""Loops of our own for cheap arithmetic on neighboring elements."""

from libc.stdint cimport int64_t
from cygrad._core.primitives.primitive_table cimport loop_t

cdef extern from "primitives/short_loops.h" nogil:
    # The operands, the result, and how many elements follow each other.
    ctypedef void (*short_loop_t)(const void *, const void *, void *, int64_t) noexcept nogil

cdef enum:
    WHOLE = 16            # elements of a vector at most: what is left over after a multiple of it is NumPy's

# What an entry of the table does with elements that follow each other, where a step of 0 is a number; or NULL.
cdef short_loop_t short_loop(loop_t loop, const void *data, const int64_t *steps) noexcept nogil

# Which operation of chains an entry of the table is, of operands that lie anyhow, counted the same way; or -1.
cdef int chain_operation(loop_t loop, const void *data) noexcept nogil

# Which of the operations that is, if there is such a loop: twice its place in the header, one more for float64; or -1.
cdef int short_operation(loop_t loop, const void *data, const int64_t *steps) noexcept nogil
