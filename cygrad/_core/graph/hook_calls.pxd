"""Calling the hooks of a node, and taking what they return in the place of gradients."""

from cygrad._core.graph.node cimport Hooks, Node

# Results that were given other memory by `.data =`: bring gradients to the shape and dtype that the node made.
cdef object fit_gradients(Node node, Hooks hooks, list grads)
# Tensor hooks: replace entries of `grads`, the gradients of the node's outputs.
cdef object call_tensor_hooks(Node node, Hooks hooks, list grads)
# Pre-hooks: return the gradients that the node is to run with.
cdef list call_prehooks(Node node, Hooks hooks, list grads)
# Post-hooks: return the gradients that the node is to hand on in the place of `results`.
cdef list call_posthooks(Node node, Hooks hooks, list results, list grads)
# retain_grad(): put gradients into the .grad of the tensors that asked for it.
cdef object retain_gradients(Hooks hooks, list grads, bint recorded)
# Post-accumulate-grad hooks, which get the leaf.
cdef object call_accumulated(Hooks hooks, object leaf)
