"""Hooks for saved tensors: how a tensor is packed away, and how it comes back."""

from libc.stdint cimport int64_t
from cygrad._core.arrays.array cimport array_t
from cygrad._core.graph.node cimport Node, edge_t, node_t
from cygrad._core.graph.tensor cimport Tensor

cdef class SavedHooks:
    """A pair of hooks that holds for everything saved by a thread."""
    cdef readonly object pack
    cdef readonly object unpack
    cdef SavedHooks outer         # the pair that this one covers, or None

cdef class PackedTensor:
    """What a pack hook made of a saved tensor."""
    cdef object value
    cdef object hook              # makes it a tensor again
    cdef array_t *meta            # the shape and dtype that it must then have
    cdef str place                # "MulBackward0, 'self'", for messages
    # What the hook returns, checked.
    cdef Tensor unpack_raw(self)
    # A new Tensor outside the graph; runs the hook.
    cdef Tensor unpack(self)

# The pair that holds in this thread; to be asked only if thread_state().saved_hooks is not NULL.
cdef SavedHooks saved_hooks()
cdef PackedTensor pack_tensor(Node node, str name, Tensor tensor, object pack, object unpack)
# allow_mutation_on_saved_tensors: the tensor is about to be changed in place. To be called if thread_state().guarded.
cdef int before_change(Tensor tensor) except -1
# A Tensor of its own over the same memory, without history.
cdef Tensor alias(array_t *array)
# Make the tensor (one without history) output `output_nr` of the node; of an AccumulateGrad: the leaf itself.
cdef int attach(Tensor tensor, Node node, int64_t output_nr) except -1
cdef inline int attach_edge(Tensor tensor, const edge_t *edge) except -1:
    return 0 if edge.node == NULL else attach(tensor, <Node>edge.node.object, edge.input_nr)
