"""The nodes of the graph: a Python object for the garbage collector and the user, a C block for the engine."""

from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint32_t
from cygrad._core.arrays.array cimport array_t, value_t
from cygrad._core.memory.atomic cimport atomic_add, atomic_decrement, lock_inner, unlock
from cygrad._core.memory.storage cimport version_t
from cygrad._core.table.operator cimport operator_t

# -------------------------------------------------------------------------------------------------- borrowed references

# Borrowed pointers to Python objects that may be dying.
#
# Arrays and gradient slots have borrowed pointers to their Tensor and AccumulateGrad. A reader takes a reference
# if the object is still alive. With the GIL, checking the refcount is enough. Without it the object may be dying in
# another thread: the pointer is read under a mutex that the dying object locks to erase the pointer before its memory
# is freed, and the reference is taken by an atomic step that fails if the refcount is zero.

cdef extern from * nogil:
    """
    #ifdef Py_GIL_DISABLED
    #define FREE_THREADED 1
    #if PY_VERSION_HEX >= 0x030E0000
    #define make_lendable(object) PyUnstable_EnableTryIncRef(object)
    #define take_if_alive(object) PyUnstable_TryIncRef(object)
    #else
    /*
     * Python 3.13 has these functions for itself only. The owning thread counts apart from all others, whose count has
     * two bits of flags below it. Once the first flag is set, the owner merges its count into theirs before the object
     * dies; so a merged count of zero means death, and an unmerged one that the owner still has some.
     */
    static inline void make_lendable(PyObject *object) {
        Py_ssize_t seen = __atomic_load_n(&object->ob_ref_shared, __ATOMIC_RELAXED);
        while (!(seen & _Py_REF_SHARED_FLAG_MASK)
               && !__atomic_compare_exchange_n(&object->ob_ref_shared, &seen, seen | _Py_REF_MAYBE_WEAKREF, 0,
                                               __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {}
    }
    static inline int take_if_alive(PyObject *object) {
        Py_ssize_t seen;
        if (__atomic_load_n(&object->ob_tid, __ATOMIC_RELAXED) == _Py_ThreadId()
                || __atomic_load_n(&object->ob_ref_local, __ATOMIC_RELAXED) == _Py_IMMORTAL_REFCNT_LOCAL) {
            Py_INCREF(object);
            return 1;
        }
        seen = __atomic_load_n(&object->ob_ref_shared, __ATOMIC_RELAXED);
        while (seen != 0 && seen != _Py_REF_MERGED) {
            if (__atomic_compare_exchange_n(&object->ob_ref_shared, &seen, seen + (1 << _Py_REF_SHARED_SHIFT), 0,
                                            __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) return 1;
        }
        return 0;
    }
    #endif
    #else
    #define FREE_THREADED 0
    #define make_lendable(object) ((void)0)
    static inline int take_if_alive(PyObject *object) {
        if (Py_REFCNT(object) <= 0) return 0;
        Py_INCREF(object);
        return 1;
    }
    #endif
    """
    # A compile-time constant: code under it is removed in builds with a GIL.
    bint FREE_THREADED
    # Allow the object to be borrowed; call it before other code has a reference.
    void make_lendable(PyObject *object)
    int Py_REFCNT(PyObject *object)
    # Take a new reference (true), unless the object is dying.
    bint take_if_alive(PyObject *object)

# Without a GIL: the inner mutex for pointers to and from this address. A few are shared by all addresses.
cdef int32_t *lending_lock(const void *address) noexcept nogil

# Refcounts that change under the GIL only: with a GIL, no atomic operation is needed. Returns the new value.
cdef inline int64_t count_up(int64_t *count) noexcept:
    if FREE_THREADED:
        return atomic_add(count, 1)
    count[0] += 1
    return count[0]

cdef inline int64_t count_down(int64_t *count) noexcept:
    if FREE_THREADED:
        return atomic_decrement(count)
    count[0] -= 1
    return count[0]

cdef inline void lock_lending(const void *address) noexcept nogil:
    if FREE_THREADED:
        lock_inner(lending_lock(address))

cdef inline void unlock_lending(const void *address) noexcept nogil:
    if FREE_THREADED:
        unlock(lending_lock(address))

# ----------------------------------------------------------------------------------------------------------------- node

# Reasons why a node must run on the calling thread, under the GIL.
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

# The block of a node: this struct, then edges, then saved values.
ctypedef struct node_t:
    PyObject *object          # the Node of the block, borrowed
    backward_t backward       # NULL: only Python code can run it
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
    """The hooks of one node, in the order of registration."""
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
# Record that a program has set a sequence number: their order is no longer that of the graph.
cdef void mark_renumbered() noexcept
cdef bint has_renumbered() noexcept nogil

# ------------------------------------------------------------------------------------------------------ source location

# Source locations: the running Python function and its bytecode offset, converted to file and line on demand.

# Return a new reference to the code object of the running function - the user's, if it called one of this package's -
# and the offset of its current instruction, or NULL. Needs the GIL. The text can be read later without it.
cdef PyObject *running_code(int *offset) noexcept
# Write "FILE:LINE, in FUNCTION" into `text`, of which `capacity` bytes are left; returns its length.
cdef int write_place(char *text, int capacity, PyObject *code, int offset) noexcept nogil

# ------------------------------------------------------------------------------------------------------- version errors

# Records of in-place operations, for messages that name the line.

# Record the running Python code as the last to modify the memory of this counter. Needs the GIL.
cdef void remember_place(version_t *version) noexcept
# The same for the result of `running_code`, if it modifies several.
cdef void remember_code(version_t *version, PyObject *code, int offset) noexcept
# Write the message about a saved tensor that was modified; returns RUNTIME_ERROR. `maker` and `output_nr` say which
# output of which node it is (NULL: unknown).
cdef int version_error(const char *operation, const char *name, const array_t *array, int64_t expected,
                       const node_t *maker, int64_t output_nr) noexcept nogil
# Return the name of a node's type, without the module.
cdef const char *node_name(const node_t *node) noexcept nogil

# ------------------------------------------------------------------------------------------------------- backward calls

# Records of backward calls, for messages that name the call that freed a graph.

# Set the call that this thread works for (0: none, -1: a call from no user code); returns the former one.
cdef int64_t work_for(int64_t call) noexcept nogil
cdef int64_t working_for() noexcept nogil
# Record where the call that begins was made, if it may free anything. Needs the GIL.
cdef int remember_call(int64_t call, bint keep) except -1
# Record that this thread's call has released what the node saved.
cdef void note_release(node_t *node) noexcept nogil
# Write the message about a node whose saved tensors were freed, with the call that freed them; returns RUNTIME_ERROR.
cdef int freed_error(const node_t *node) noexcept nogil

# ----------------------------------------------------------------------------------------------------------- accumulate

# AccumulateGrad: adds gradients to a leaf's ``.grad``.

cdef class AccumulateGrad(Node):
    """Accumulates the gradient of a leaf into its ``.grad``."""

# Return the node of a leaf, created if necessary. `gradient` and `array` are the leaf's; `bare`: the leaf refers to no
# Python objects.
cdef AccumulateGrad accumulator_of(object leaf, gradient_t *gradient, const array_t *array, bint bare)
# Return the node of a leaf, or None.
cdef AccumulateGrad known_accumulator(gradient_t *gradient)
# gradient of the leaf += array, under its mutex; takes `array` over (keeps it if possible). No GIL needed.
cdef int add_gradient(node_t *node, array_t *array) noexcept nogil

# Give the leaf another node from now on; its former node still accumulates into the same gradient.
cdef void forget_accumulator(gradient_t *gradient) noexcept
# gradient of the leaf = array, with a new reference, if there is none and no other array shares the memory.
cdef bint keep_gradient(node_t *node, array_t *array) noexcept nogil
