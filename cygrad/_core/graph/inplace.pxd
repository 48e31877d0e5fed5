"""In-place operations and views: permission checks, and rewriting of history."""

from cygrad._core.graph.node cimport Node, node_t
from cygrad._core.graph.tensor cimport Tensor

# Raise an error for tensors that must not be modified in place: leaves that require grad, expanded tensors, inference
# tensors outside
# inference mode, restricted views. `recorded`: the operation will be recorded.
cdef int check_inplace(Tensor tensor, str operation, bint recorded) except -1
# Count one in-place change of the tensor's memory.
cdef int bump_version(Tensor tensor) noexcept
# Make the tensor the output of `node`, whose first edge leads to the old history.
cdef int rebase_history(Tensor tensor, Node node) except -1
cdef bint is_inplace_view(Tensor tensor, const node_t *node) noexcept
cdef int attach_result(Tensor tensor, Node node, int output_nr) except -1
