"""Forward mode: tangents of tensors, and their propagation by operators."""

from libc.stdint cimport uint32_t
from cygrad._core.arrays.array cimport value_t
from cygrad._core.graph.boxing cimport frame_t
from cygrad._core.graph.tensor cimport Tensor
from cygrad._core.table.operator cimport Operator

# ------------------------------------------------------------------------------------------------------------- tangents

# Return the tangent of a tensor in the level of this thread, or None.
cdef Tensor tangent_of(Tensor tensor)
cdef int set_tangent(Tensor tensor, Tensor tangent) except -1
# Return whether one of them is not None.
cdef bint any_tangent(list tangents)

# Return whether an argument of the call has a tangent.
cdef bint has_tangents(Operator operator, frame_t *frame) except -1

# --------------------------------------------------------------------------------------------------------- out argument

# The argument out=, and the named tuples of several results.

# Return whether the call may write to `out`; called before computing.
cdef int check_out(Operator operator, frame_t *frame, object out, uint32_t needed) except -1
# Cast and copy the results; returns the user's `out`.
cdef object write_out(Operator operator, value_t *results, object out)
# Return the named tuple of several results, created on the operator's first use.
cdef object result_type(Operator operator)
