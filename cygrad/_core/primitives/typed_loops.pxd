"""Primitives that NumPy lacks or computes differently: scalar functions and typed loops over them."""

from libc.stdint cimport int64_t
from cygrad._core.primitives.primitive_table cimport loop_t

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
