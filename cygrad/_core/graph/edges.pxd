"""Edges of the graph, and the gradients that backward starts with, from the arguments of backward."""

from libc.stdint cimport int64_t
from cygrad._core.arrays.array cimport array_t
from cygrad._core.graph.node cimport Hooks, Node
from cygrad._core.graph.tensor cimport Tensor

# ---------------------------------------------------------------------------------------------------------------- edges

cdef class Place:
    cdef Node node
    cdef int64_t output_nr
    cdef array_t *meta            # shape and dtype of the gradient's tensor, or NULL if unknown

# Return the edge of a Tensor or GradientEdge; `role` and `position` are for the message.
cdef Place edge_of(object place, str operation, str role, int position, bint may_be_unused)
# Give a result of a compiled function from which it has computed another one a node of its own; return the tensor.
cdef Tensor separated(Tensor tensor)
# Return the array of a root's gradient, owned: the argument, checked and cast; or a one for a scalar.
cdef array_t *root_gradient(object output, object grad, str operation, int position) except NULL

# ----------------------------------------------------------------------------------------------------------- hook calls

# Calls of the hooks of a node.

# Cast gradients of results whose memory was replaced by `.data =` to the original shape and dtype.
cdef object fit_gradients(Node node, Hooks hooks, list grads)
# Tensor hooks: replace entries of `grads`, the gradients of the node's outputs.
cdef object call_tensor_hooks(Node node, Hooks hooks, list grads)
# Pre-hooks: return the gradients that the node runs with.
cdef list call_prehooks(Node node, Hooks hooks, list grads)
# Post-hooks: return the gradients that replace `results`.
cdef list call_posthooks(Node node, Hooks hooks, list results, list grads)
# retain_grad(): put gradients into the .grad of the tensors.
cdef object retain_gradients(Hooks hooks, list grads, bint recorded)
# Post-accumulate-grad hooks; their argument is the leaf.
cdef object call_accumulated(Hooks hooks, object leaf)
