"""Forward mode: the tangents of tensors, and how operators push them forward."""

from cygrad._core.graph.boxing cimport frame_t
from cygrad._core.graph.tensor cimport Tensor
from cygrad._core.table.operator cimport Operator

# The tangent that the level of this thread holds for a tensor, or None.
cdef Tensor tangent_of(Tensor tensor)
cdef int set_tangent(Tensor tensor, Tensor tangent) except -1
# Is one of them not None?
cdef bint any_tangent(list tangents)

# Has an argument of the call a tangent?
cdef bint has_tangents(Operator operator, frame_t *frame) except -1
