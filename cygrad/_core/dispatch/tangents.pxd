"""Forward mode: the tangents of tensors, and how operators push them forward."""

from cygrad._core.arrays.array cimport array_t
from cygrad._core.graph.boxing cimport frame_t
from cygrad._core.graph.native cimport NativeNode
from cygrad._core.graph.tensor cimport Tensor
from cygrad._core.table.operator cimport Operator

# The tangent that the level of this thread holds for a tensor, or None.
cdef Tensor tangent_of(Tensor tensor)
cdef int set_tangent(Tensor tensor, Tensor tangent) except -1
# Is one of them not None?
cdef bint any_tangent(list tangents)

# To be called after an operator has run in a thread that is in a level: gives the results their tangents, and tells the
# node of the operation those of what it has saved. `results` is what the user gets.
cdef int push_forward(Operator operator, frame_t *frame, object results, NativeNode node) except -1

# Has an argument of the call a tangent?
cdef bint has_tangents(Operator operator, frame_t *frame) except -1

cdef class InplaceStep:
    """The tangents of an operation in place, known before it changes anything."""
    cdef list tangents
    cdef Tensor tangent
    # A copy of its elements is kept for the backward; it is about to change.
    cdef int kept(self, array_t *original) except -1
    # The tensor has changed now, and its node (or None) has been made.
    cdef int finish(self, Tensor tensor, NativeNode node) except -1

# None if no argument has a tangent.
cdef InplaceStep inplace_step(Operator operator, frame_t *frame)

# Who notes the operations of threads in level RECORDING: after a call, and before a change in place.
ctypedef int (*called_t)(Operator operator, frame_t *frame, object results) except -1
ctypedef InplaceStep (*changing_t)(Operator operator, frame_t *frame)
cdef int set_listener(called_t called, changing_t changing) except -1
