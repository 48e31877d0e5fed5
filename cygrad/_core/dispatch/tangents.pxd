"""Forward mode: tangents of tensors, and how operators propagate them."""

from cygrad._core.graph.boxing cimport frame_t
from cygrad._core.graph.tensor cimport Tensor
from cygrad._core.table.operator cimport Operator

# Return the tangent of a tensor in the level of this thread, or None.
cdef Tensor tangent_of(Tensor tensor)
cdef int set_tangent(Tensor tensor, Tensor tangent) except -1
# Is one of them not None?
cdef bint any_tangent(list tangents)

# Does an argument of the call have a tangent?
cdef bint has_tangents(Operator operator, frame_t *frame) except -1
