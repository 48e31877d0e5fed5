"""The nodes of the graph: a Python object for the garbage collector and the user, a C block for the engine."""

from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint32_t
from cygrad._core.arrays.array cimport array_t
from cygrad._core.arrays.value cimport value_t
from cygrad._core.table.operator cimport operator_t

# Why a node has to run on the calling thread, under the GIL.
cdef enum:
    HAS_HOOKS = 1
    HAS_PYTHON_BACKWARD = 2
    HAS_PACKED_TENSORS = 4
    HAS_SPARSE_GRADIENT = 8

ctypedef struct edge_t:
    node_t *node          # strong: the edge holds a reference to node.object; NULL: no gradient needed
    int64_t input_nr      # index of that node's gradient

# The gradient slot of a leaf, shared by the leaf and its AccumulateGrad node.
ctypedef struct gradient_t:
    int64_t count
    int32_t lock          # guards `value` and the memory of *value during accumulation
    int32_t sparse        # .grad is a sparse tensor; only Python code adds to it
    array_t *value        # NULL: .grad is None
    node_t *accumulator       # the AccumulateGrad node, if any, borrowed
    node_t *parked            # an unreferenced one, kept for reuse, or NULL

# A saved value and its version when it was saved.
ctypedef struct kept_t:
    value_t value
    int64_t version

# Native backward: grads[n_outputs] are taken over; out[n_edges] are owned by the caller. Of the arguments of an
# operator only those in `wanted` (bit i: argument i) need a gradient.
ctypedef int (*backward_t)(node_t *node, value_t *grads, array_t **out, bint keep, uint32_t wanted) noexcept nogil

cdef enum:
    ALL_ARGUMENTS = 0xFFFFFFFF

# All that the engine needs of a node in one block of memory: the struct, then edges, then saved values.
ctypedef struct node_t:
    PyObject *object          # the Node of the block, borrowed
    backward_t backward       # NULL: only Python can run it
    edge_t *edges
    int32_t n_edges
    int32_t n_outputs         # number of gradients that it takes
    int64_t sequence_nr       # larger is later
    int64_t task              # the GraphTask that has claimed `index`, or 0
    int64_t index             # its index in that task's plan
    int64_t nbytes            # bytes of this block
    int64_t work              # rough cost of running it, in elements accessed
    int32_t python            # HAS_... flags: nonzero means "on the calling thread"
    int32_t lock              # guards `saved` and `released`
    int32_t released          # saved values were freed
    uint32_t needed           # bit i: argument i of the operator needs a gradient
    const operator_t *op      # NULL for nodes that are not of the table
    int32_t n_saved
    int32_t released_by       # the number of the call of backward that released `saved`, its last 32 bits
    kept_t *saved             # n_saved values
    array_t **metas           # NULL, or per edge the shape and dtype of its gradient
    gradient_t *gradient      # AccumulateGrad only
    node_t *inner             # CopySlices: the node of the slice, kept alive by the payload; that node: its CopySlices
    node_t *next              # links of the list of untracked nodes; NULL: the garbage collector tracks it
    node_t *previous

cdef extern from *:
    """
    #define has_weak_references(object) (*(PyObject **)((char *)(object) + Py_TYPE(object)->tp_weaklistoffset) != NULL)
    """
    bint has_weak_references(PyObject *object)

cdef class Hooks:
    """The hooks of one node, in the order in which they were registered."""
    cdef dict fitted          # output_nr -> a Tensor without memory, with the shape of the gradient; comes first
    cdef dict tensor          # output_nr -> {id: hook}
    cdef dict before          # {id: prehook(grad_outputs)}
    cdef dict retained        # output_nr -> weak reference to the Tensor whose .grad is kept
    cdef dict after           # {id: hook(grad_inputs, grad_outputs)}
    cdef dict accumulated     # {id: hook(tensor)}: post-accumulate-grad hooks
    cdef object replaced      # without a GIL: former dicts, which another thread may be reading

cdef class Node:
    cdef node_t *c
    cdef Hooks hooks              # or None
    cdef dict notes               # .metadata, created on first access
    cdef object payload           # AccumulateGrad: the leaf; CopySlices: the node of the slice; Function: the context
    cdef list packed              # saved values that went through hooks, by position, or None
    cdef object __weakref__
    cdef Hooks ensure_hooks(self)
    # Recorded or Python execution, under the GIL: grads is a list of Tensor or None, one per output; returns a list of
    # Tensor or None, one per edge. `wanted` as for backward_t.
    cdef list apply(self, list grads, bint keep, bint recorded, uint32_t wanted)

# Create a node of type `type` (a subtype of Node, made by node_type) with space for edges and saved values, all zero;
# `with_metas`: and for their metas.
cdef Node node_new(type type, int n_edges, int n_outputs, int n_saved, bint with_metas)
# Return the named subtype of `base`, such as MulBackward0: created once per name.
cdef type node_type(str name, type base)
# Let the garbage collector visit the edges of a subclass (one that adds no object attributes to Node's); `plain`: it
# adds nothing at all, and its nodes are untracked as long as that is possible.
cdef void install_collector(type cls, bint plain) noexcept

# A node is part of a reference cycle only if it leads to a Python object: hooks, metadata, attributes of a leaf. Until
# there is such an object, the garbage collector need not visit the graph.
cdef void gc_unlink(node_t *node) noexcept      # before the node is freed, or one of the next two
cdef void gc_untrack(node_t *node) noexcept     # the node leads to no such object
cdef void gc_track(node_t *node) noexcept       # a node without consumers has one
cdef void gc_track_all() noexcept               # any node may lead to one
cdef void set_edge(node_t *node, int i, node_t *target, int64_t input_nr) noexcept
cdef gradient_t *gradient_new() noexcept nogil
cdef void gradient_release(gradient_t *gradient) noexcept
# Free what the node saved (thread-safe, no GIL needed unless HAS_PACKED_TENSORS).
cdef void release_saved(node_t *node) noexcept nogil
cdef int64_t next_sequence_nr() noexcept
