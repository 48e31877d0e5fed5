"""The node of an operator of the table: running its formulas, natively or recorded."""

from libc.stdint cimport int32_t, int64_t, uint32_t
from cygrad._core.arrays.array cimport ARRAY, ARRAYS, array_t, value_t
from cygrad._core.graph.node cimport Node, node_t
from cygrad._core.graph.tensor cimport Tensor
from cygrad._core.table.operator cimport Operator, operator_t

# ----------------------------------------------------------------------------------------------------- traced gradients

# Gradients of a traced backward, in the layout of the eager ones.

cdef inline bint has_memory(const value_t *value) noexcept nogil:
    """Return whether a saved value is an array, or a list with an array, saved with its elements."""
    cdef int i
    if value.kind == ARRAY:
        return value.of.array.storage != NULL
    if value.kind == ARRAYS:
        for i in range(value.count):
            if value.of.arrays[i] != NULL and value.of.arrays[i].storage != NULL:
                return True
    return False

# Return the gradients of the native execution of a node; releases nothing.
cdef list native_gradients(Node node, list grads, uint32_t wanted)
# Return a traced gradient with the strides of the native one; aborts the trace if it is not bit-identical, or no copy
# has those strides.
cdef object laid_out_as(Tensor gradient, Tensor native, Node node)

# --------------------------------------------------------------------------------------------------------------- native

cdef class NativeNode(Node):
    """A node of an operator of the table."""
    cdef object unpack(self, int position)
    cdef object known(self, value_t *value, int position)
    # Return the Tensor that was saved if it still exists, or one over the same memory.
    cdef Tensor twin(self, array_t *array, bint from_result, int result, int edge)
    cdef object dual(self, object value, int position)
    cdef Tensor placed(self, Tensor tensor, bint from_result, int result, int edge)
    cdef object unpack_packed(self, int position)
    cdef list apply_natively(self, list grads, bint keep, uint32_t wanted)

# Return the version that `kept_t.version` stores for a saved value.
cdef int64_t version_of(const value_t *value) noexcept nogil
# Create a node of the operator's own type (MulBackward0), with space for its saved values and, `with_metas`, for
# `set_meta`.
cdef NativeNode native_node(Operator operator, int n_edges, int n_outputs, bint with_metas)
# Store that the gradient of edge `i` must have the shape and dtype of `array`.
cdef int set_meta(node_t *node, int i, const array_t *array) except -1
# The backward of these nodes.
cdef int native_backward(node_t *node, value_t *grads, array_t **gradients, bint keep, uint32_t wanted) noexcept nogil
# Return whether take_saved() would succeed now.
cdef bint can_take(node_t *node) noexcept nogil
# Move the saved values out of the node into saved[n_saved], or copy them if the graph is retained. `packed`: the caller
# unpacks and adds what hooks have packed.
cdef int take_saved(node_t *node, value_t *saved, bint keep, bint packed) noexcept nogil
# Convert a gradient to the shape and dtype of meta: undo broadcasting, take the real part, cast. Takes `gradient` over.
cdef int fit(array_t *meta, array_t **gradient) noexcept nogil
# The same by operations, which are recorded in grad mode.
cdef object fit_recorded(const array_t *meta, Tensor gradient)
# Replace a saved tensor, or a list of them, by the result of the pack hooks. `detached`: pack gets it without history.
cdef int pack_saved(NativeNode node, int position, const value_t *value, bint detached, object pack,
                    object unpack) except -1
