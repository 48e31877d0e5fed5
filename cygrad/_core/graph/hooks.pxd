"""Hooks of tensors and nodes, and retained gradients: the calls in backward."""

from cygrad._core.graph.node cimport Hooks, Node
from cygrad._core.graph.tensor cimport Tensor

# Give a result of a compiled function from which it has computed another one a node of its own; return the tensor.
cdef Tensor separated(Tensor tensor)
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
