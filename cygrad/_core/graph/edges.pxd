"""Edges of the graph, and the gradients that backward starts with, from the arguments of backward."""

from libc.stdint cimport int64_t
from cygrad._core.arrays.array cimport array_t
from cygrad._core.graph.node cimport Node

cdef class Place:
    cdef Node node
    cdef int64_t output_nr
    cdef array_t *meta            # shape and dtype of the gradient's tensor, or NULL if unknown

# Return the edge of a Tensor or GradientEdge; `role` and `position` are for the message.
cdef Place edge_of(object place, str operation, str role, int position, bint may_be_unused)
# Return the array of a root's gradient, owned: the argument, checked and cast; or a one for a scalar.
cdef array_t *root_gradient(object output, object grad, str operation, int position) except NULL
