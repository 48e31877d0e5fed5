"""Saved-tensor hooks: pack and unpack."""

from libc.stdint cimport int64_t
from cygrad._core.arrays.array cimport array_t
from cygrad._core.graph.node cimport Node, edge_t, node_t
from cygrad._core.graph.tensor cimport Tensor

cdef class SavedHooks:
    """Pair of hooks for all tensors that a thread saves."""
    cdef readonly object pack
    cdef readonly object unpack
    cdef SavedHooks outer         # the pair outside of this one, or None

# Return a sparse tensor as a dense one, other tensors as they are.
cdef Tensor with_elements(Tensor tensor)

cdef class PackedTensor:
    """Result of a pack hook."""
    cdef object value
    cdef object hook              # the unpack hook
    cdef array_t *meta            # shape and dtype that it must return
    cdef str place                # "MulBackward0, 'self'", for messages
    # Return what the unpack hook returns, checked.
    cdef Tensor unpack_raw(self)
    # The same as a new Tensor outside the graph.
    cdef Tensor unpack(self)

# Return the pair of this thread; call it only if thread_state().saved_hooks is not NULL.
cdef SavedHooks saved_hooks()
cdef PackedTensor pack_tensor(Node node, str name, Tensor tensor, object pack, object unpack)
# allow_mutation_on_saved_tensors: call it before an in-place operation if thread_state().guarded.
cdef int before_change(Tensor tensor) except -1
# Return a new Tensor over the same memory, without history.
cdef Tensor alias(array_t *array)
# Make the tensor (one without history) output `output_nr` of the node; of an AccumulateGrad: the leaf itself.
cdef int attach(Tensor tensor, Node node, int64_t output_nr) except -1
cdef inline int attach_edge(Tensor tensor, const edge_t *edge) except -1:
    return 0 if edge.node == NULL else attach(tensor, <Node>edge.node.object, edge.input_nr)
