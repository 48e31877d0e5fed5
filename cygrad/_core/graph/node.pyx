"""
The nodes of the graph: a Python object for the garbage collector and the user, a C block for the engine.

A Node object is small: hooks, metadata and a pointer to one block of C memory with the edges and the saved values,
which the engine reads without the GIL. The garbage collector visits the edges too: `_install` puts a traverse and a
clear function before Cython's own. Destroying a chain never recurses: a dying node appends its edges to a thread-local
list, which the outermost dying node processes.
"""

cimport cython
from cpython.object cimport PyObject, PyTypeObject, visitproc
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int64_t, uint32_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memset
from cygrad._core.arrays.array cimport array_t, release
from cygrad._core.arrays.value cimport NOTHING, clear, is_number
from cygrad._core.graph.borrowed_references cimport FREE_THREADED, Py_REFCNT, count_down, count_up
from cygrad._core.graph.modes cimport ANOMALY_ON, thread_state, thread_state_t
from cygrad._core.memory.atomic cimport lock, unlock
from cygrad._core.memory.errors cimport unlikely
from cygrad._core.memory.storage cimport allocate, deallocate

import threading
from importlib import import_module
from cygrad._core.arrays.dtype import library_name
from cygrad._core.graph.removable_handle import RemovableHandle

ENGINES_OWN = {"AccumulateGrad", "CopySlices", "GraphRoot"}

cdef extern from "Python.h":
    ctypedef struct _Type "PyTypeObject":
        Py_ssize_t tp_basicsize
        unsigned long tp_flags
        const char *tp_name
        const char *tp_doc
        PyObject *tp_dict
        _Type *tp_base
        object (*tp_new)(_Type *, object, PyObject *)
        void (*tp_dealloc)(PyObject *) noexcept
        int (*tp_traverse)(PyObject *, visitproc, void *) noexcept
        int (*tp_clear)(PyObject *) noexcept
    unsigned long Py_TPFLAGS_DEFAULT, Py_TPFLAGS_BASETYPE
    int PyType_Ready(_Type *) except -1
    void PyType_Modified(type)
    _Type PyType_Type
    void Py_SET_REFCNT(PyObject *, Py_ssize_t)
    void Py_SET_TYPE(PyObject *, _Type *)
    void PyObject_GC_Track(PyObject *)
    bint PyObject_GC_IsTracked(PyObject *)
    void PyObject_GC_UnTrack(PyObject *)

cdef int64_t _sequence = 0
cdef tuple _no_arguments = ()


cdef int64_t next_sequence_nr() noexcept:
    return count_up(&_sequence)


# ---------------------------------------------------------------------------------------------- gradients of leaves

cdef gradient_t *gradient_new() noexcept nogil:
    cdef gradient_t *gradient = <gradient_t *>allocate(sizeof(gradient_t))
    if gradient != NULL:
        gradient.count = 1
        gradient.lock = gradient.sparse = 0
        gradient.value = NULL
        gradient.accumulator = gradient.parked = NULL
    return gradient


cdef void gradient_release(gradient_t *gradient) noexcept:
    if gradient != NULL and count_down(&gradient.count) == 0:
        release(gradient.value)
        if gradient.parked != NULL:
            _free_parked(gradient.parked.object)
        deallocate(gradient, sizeof(gradient_t))


# ---- creation and deallocation

cdef enum:
    FREE_NODES = 1024          # enough for most graphs

cdef PyObject *_free[FREE_NODES]       # free list of plain nodes, complete except for their blocks
cdef int _n_free = 0


cdef inline bint _is_plain(type type) noexcept:
    return (<_Type *>type).tp_dealloc == _plain_dealloc


cdef Node node_new(type type, int n_edges, int n_outputs, int n_saved, bint with_metas):
    global _n_free
    cdef Node node
    cdef bint plain = _is_plain(type)
    cdef int64_t nbytes = sizeof(node_t) + n_edges * sizeof(edge_t) + n_saved * sizeof(kept_t)
    cdef node_t *c
    if with_metas:
        nbytes += n_edges * sizeof(array_t *)
    if plain and not unlikely(_n_free == 0):
        _n_free -= 1
        Py_SET_TYPE(_free[_n_free], <_Type *>type)
        node = <Node>_free[_n_free]              # its first reference
    else:
        node = <Node>(<_Type *>type).tp_new(<_Type *>type, _no_arguments, NULL)
        if plain:
            PyObject_GC_UnTrack(<PyObject *>node)
    c = <node_t *>allocate(nbytes)
    if unlikely(c == NULL):
        raise MemoryError(f"{type.__name__}: no memory for a node of {nbytes} bytes")
    memset(c, 0, nbytes)
    c.object = <PyObject *>node
    c.edges = <edge_t *>(c + 1)
    c.saved = <kept_t *>(c.edges + n_edges)
    c.n_edges = n_edges
    c.n_outputs = n_outputs
    c.n_saved = n_saved
    c.nbytes = nbytes
    if with_metas:
        c.metas = _metas_inside(c)
    c.sequence_nr = next_sequence_nr()
    node.c = c
    if plain:
        _link(c)
    if unlikely(thread_state().anomaly & ANOMALY_ON):
        import traceback                     # here, because it is slow and rarely needed
        gc_track(c)
        node.notes = {"traceback_": traceback.format_stack()}
        if _evaluating.node is not None:
            node.notes["parent_"] = _evaluating.node
    return node


class _Evaluating(threading.local):
    """Anomaly mode: return the node that this thread runs, for which others are created; or None."""

    node = None


_evaluating = _Evaluating()


def set_evaluating(node):
    """Anomaly mode: set the node that this thread runs (None: none); returns the former one."""
    former = _evaluating.node
    _evaluating.node = node
    return former


cdef void set_edge(node_t *node, int i, node_t *target, int64_t input_nr) noexcept:
    node.edges[i].node = target
    node.edges[i].input_nr = input_nr
    if target != NULL:
        Py_INCREF(<object>target.object)
        if target.next == NULL and node.next != NULL:
            gc_track(node)
        # Backward runs by decreasing numbers. The history of a view may be created only now, when it is read.
        if target.sequence_nr >= node.sequence_nr and target.gradient == NULL:
            node.sequence_nr = next_sequence_nr()


cdef void release_saved(node_t *node) noexcept nogil:
    cdef int i
    lock(&node.lock)
    node.released = 1
    for i in range(node.n_saved):
        clear(&node.saved[i].value)
    unlock(&node.lock)


cdef inline array_t **_metas_inside(node_t *node) noexcept nogil:
    """Return the metas of a node that was created with space for them."""
    return <array_t **>(node.saved + node.n_saved)


cdef inline void _release_metas(node_t *node) noexcept nogil:
    cdef int i
    if node.metas != NULL:
        for i in range(node.n_edges):
            release(node.metas[i])
        if node.metas != _metas_inside(node):
            deallocate(node.metas, node.n_edges * sizeof(array_t *))
        node.metas = NULL


cdef inline void _free_block(node_t *c) noexcept:
    """Free all that a dying node has in C."""
    cdef int i
    if c.next != NULL:
        _unlink(c)
    if c.inner != NULL and c.inner.inner == c:
        c.inner.inner = NULL
    for i in range(c.n_saved):
        if c.saved[i].value.kind != NOTHING and not is_number(&c.saved[i].value):
            clear(&c.saved[i].value)
    _release_metas(c)
    if c.gradient != NULL:
        if c.gradient.accumulator == c:
            c.gradient.accumulator = NULL
        gradient_release(c.gradient)
    if c.n_edges:
        _drop_edges(c)
    deallocate(c, c.nbytes)


# Objects whose last reference may be ours to drop, for the outermost dying node of this thread.
cdef extern from * nogil:
    """
    #include <pthread.h>
    #include "memory/thread_variable.h"
    THREAD_VARIABLE struct { PyObject **items; Py_ssize_t size, capacity; } dying;

    static pthread_key_t dying_end;
    static void forget_dying(void *items) {
        free(items);
        dying.items = NULL;
        dying.capacity = 0;
    }
    static int watch_dying(void) { return pthread_key_create(&dying_end, forget_dying); }
    static void set_dying(PyObject **items, Py_ssize_t capacity) {
        dying.items = items;
        dying.capacity = capacity;
        pthread_setspecific(dying_end, items);        /* freed when the thread ends */
    }
    """
    int watch_dying()
    void set_dying(PyObject **items, Py_ssize_t capacity)
    PyObject **dying_items "dying.items"
    Py_ssize_t dying_size "dying.size"
    Py_ssize_t dying_capacity "dying.capacity"


if watch_dying() != 0:
    raise ImportError("cygrad: the system has no free thread-local key")


cdef void _drop_later(PyObject *object) noexcept:
    global dying_size
    cdef PyObject **items
    if dying_size == dying_capacity:
        items = <PyObject **>realloc(dying_items, (2 * dying_capacity + 64) * sizeof(PyObject *))
        if items == NULL:          # no memory for the list: recurse
            Py_DECREF(<object>object)
            return
        set_dying(items, 2 * dying_capacity + 64)
    dying_items[dying_size] = object
    dying_size += 1


cdef void _drop_edges(node_t *c) noexcept:
    """Drop the references of the edges, without recursion however long the chain."""
    global dying_size
    cdef int i
    cdef node_t *target
    cdef thread_state_t *state = thread_state()
    cdef bint outermost = not state.draining
    state.draining = 1
    for i in range(c.n_edges):
        target = c.edges[i].node
        c.edges[i].node = NULL
        if target == NULL:
            continue
        # Nodes that die through the outermost one append their edges.
        if outermost or not FREE_THREADED and Py_REFCNT(target.object) > 1:
            Py_DECREF(<object>target.object)
        else:
            _drop_later(target.object)
    if not outermost:
        return
    while dying_size:
        dying_size -= 1
        Py_DECREF(<object>dying_items[dying_size])
    state.draining = 0
    if dying_capacity > 4096:
        free(dying_items)
        set_dying(NULL, 0)


# ----------------------------------------------------------------------------------------------------------- classes

cdef class Hooks:
    """The hooks of one node, in the order in which they were registered."""

    def __cinit__(self):
        self.tensor = {}
        self.before = {}
        self.fitted = {}
        self.retained = {}
        self.after = {}
        self.accumulated = {}


@cython.binding(False)      # methods check the type of self
@cython.freelist(256)
cdef class Node:
    """
    A node of the graph, which backward runs.

    Users meet nodes as ``tensor.grad_fn`` and follow them by `next_functions`.
    """

    def __init__(self, *arguments, **options):
        _refuse(type(self))

    def __dealloc__(self):
        cdef node_t *c = self.c
        if c == NULL:
            return
        self.c = NULL
        _free_block(c)

    cdef Hooks ensure_hooks(self):
        # Without a GIL two threads may register first hooks concurrently: both must get the same dicts.
        with cython.critical_section(self):
            if self.hooks is None:
                self.hooks = Hooks()
                gc_track_all()
            self.c.python |= HAS_HOOKS
        return self.hooks

    cdef list apply(self, list grads, bint keep, bint recorded, uint32_t wanted):
        raise NotImplementedError(f"{type(self).__name__}: this node cannot be run")

    def __call__(self, *gradients):
        """
        Run the node once: gradients of its results to gradients of its arguments.

        Parameters
        ----------
        *gradients : Tensor or None
            One for each result.

        Returns
        -------
        Tensor or None, or a tuple of them if there are several arguments
            What was saved stays; hooks are not called.
        """
        from cygrad._core.graph.edges import call_node     # which knows tensors, as this module does not
        return call_node(self, gradients)

    def name(self):
        """The name of the node, such as ``MulBackward0``."""
        name = type(self).__name__
        # PyTorch names those of its engine with their namespace.
        return f"torch::autograd::{name}" if name in ENGINES_OWN and library_name() == "torch" else name

    @property
    def next_functions(self):
        """Pairs (node, input number) that receive the results of this node; (None, 0) where none is needed."""
        cdef int i
        cdef list pairs = []
        for i in range(self.c.n_edges):
            if self.c.edges[i].node == NULL:
                pairs.append((None, 0))
            else:
                pairs.append((<object>self.c.edges[i].node.object, self.c.edges[i].input_nr))
        return tuple(pairs)

    @property
    def metadata(self):
        """A dict for arbitrary user data."""
        with cython.critical_section(self):          # one dict, also for two threads that access it first
            if self.notes is None:
                self.notes = {}
                gc_track_all()
        return self.notes

    @property
    def requires_grad(self):
        """True: nodes exist only where gradients are needed."""
        return True

    def _sequence_nr(self):
        """Sequence number of the node: larger is later; backward runs in decreasing order."""
        return self.c.sequence_nr

    def register_hook(self, hook):
        """
        Call ``hook(grad_inputs, grad_outputs)`` after this node has run.

        Parameters
        ----------
        hook : callable
            Takes two tuples of tensors or None; may return a tuple that replaces `grad_inputs`.

        Returns
        -------
        RemovableHandle
        """
        _check_callable(hook, "register_hook")
        return RemovableHandle(self.ensure_hooks().after, hook)

    def register_prehook(self, hook):
        """
        Call ``hook(grad_outputs)`` before this node runs.

        Parameters
        ----------
        hook : callable
            Takes a tuple of tensors or None; may return a tuple that replaces it.

        Returns
        -------
        RemovableHandle
        """
        _check_callable(hook, "register_prehook")
        return RemovableHandle(self.ensure_hooks().before, hook)

    def __repr__(self):
        return f"<{type(self).__name__} object at {<size_t><void *>self:#x}>"

    def _repr_html_(self):
        return import_module("cygrad.notebook.objects").object_html(self)


def _check_callable(hook, operation):
    if not callable(hook):
        raise TypeError(f"{operation}: the hook must be callable (got {type(hook).__name__}).")


# ---- tracking by the garbage collector

cdef int _traverse(PyObject *self, visitproc visit, void *argument) noexcept:
    cdef node_t *c = (<Node>self).c
    cdef int i, status
    if c != NULL:
        for i in range(c.n_edges):
            if c.edges[i].node != NULL:
                status = visit(c.edges[i].node.object, argument)
                if status:
                    return status
    return _node_traverse(self, visit, argument)


cdef int _clear(PyObject *self) noexcept:
    cdef node_t *c = (<Node>self).c
    if c != NULL:
        _drop_edges(c)
    return _node_clear(self)


# Head of the list of untracked nodes.
cdef node_t _hidden
_hidden.next = _hidden.previous = &_hidden


cdef inline void _link(node_t *node) noexcept:
    if FREE_THREADED:                    # the list would need a mutex
        PyObject_GC_Track(node.object)
        return
    node.next = _hidden.next
    node.previous = &_hidden
    node.next.previous = node
    _hidden.next = node


cdef inline void _unlink(node_t *node) noexcept:
    node.previous.next = node.next
    node.next.previous = node.previous
    node.next = NULL


cdef void gc_untrack(node_t *node) noexcept:
    _link(node)


cdef void gc_unlink(node_t *node) noexcept:
    if node.next != NULL:
        _unlink(node)
    else:
        PyObject_GC_UnTrack(node.object)


cdef void gc_track(node_t *node) noexcept:
    if node.next != NULL:
        _unlink(node)
    if not PyObject_GC_IsTracked(node.object):
        PyObject_GC_Track(node.object)


cdef void gc_track_all() noexcept:
    while _hidden.next != &_hidden:
        gc_track(_hidden.next)


cdef void (*_cython_dealloc)(PyObject *) noexcept      # what Cython generated for plain nodes


cdef void _plain_dealloc(PyObject *self) noexcept:
    """Deallocate a node that has only its block: put it into the free list."""
    global _n_free
    cdef node_t *c = (<Node>self).c
    if unlikely(c == NULL or _n_free == FREE_NODES or FREE_THREADED or (<Node>self).hooks is not None
                or (<Node>self).notes is not None or (<Node>self).payload is not None
                or (<Node>self).packed is not None or has_weak_references(self)):
        _cython_dealloc(self)
        return
    gc_unlink(c)
    (<Node>self).c = NULL
    _free_block(c)
    if _n_free == FREE_NODES:                # others have died meanwhile
        _cython_dealloc(self)
        return
    _free[_n_free] = self
    _n_free += 1


cdef void _free_parked(PyObject *node) noexcept:
    """An unreferenced AccumulateGrad node whose leaf has died."""
    (<_Type *>Node).tp_dealloc(node)


cdef int (*_node_traverse)(PyObject *, visitproc, void *) noexcept
cdef int (*_node_clear)(PyObject *) noexcept


def _refuse(cls, *arguments, **options):
    """Raise the error for Python code that tries to create a node."""
    raise TypeError(f"{cls.__name__}: nodes are made by operations on tensors that require grad; the type cannot be "
                    "called or subclassed.")


cdef void install_collector(type cls, bint plain) noexcept:
    """
    Let the garbage collector visit the edges of this class (it must add no object attributes to Node's), and prevent
    Python code from creating a node without its C block.
    """
    global _cython_dealloc
    if plain:
        _cython_dealloc = (<_Type *>cls).tp_dealloc
        (<_Type *>cls).tp_dealloc = _plain_dealloc
    (<_Type *>cls).tp_traverse = _traverse
    (<_Type *>cls).tp_clear = _clear
    (<_Type *>cls).tp_flags &= ~Py_TPFLAGS_BASETYPE
    (<dict>(<_Type *>cls).tp_dict)["__new__"] = staticmethod(_refuse)
    PyType_Modified(cls)


_node_traverse = (<_Type *>Node).tp_traverse
_node_clear = (<_Type *>Node).tp_clear
install_collector(Node, False)


# -------------------------------------------------------------------------------------------------------- named types

cdef dict _types = {}
cdef list _type_names = []         # the bytes that tp_name points to


cdef type node_type(str name, type base):
    """
    A static type created at run time: its instances come from Node's free list and do not hold a reference to their
    type, as those of a Python subclass would.
    """
    found = _types.get(name)
    if found is not None:
        return <type>found
    cdef _Type *made = <_Type *>calloc(1, sizeof(PyTypeObject))
    if made == NULL:
        raise MemoryError(f"{name}: no memory for a type")
    cdef bytes dotted = b"cygrad.autograd.graph." + name.encode()
    _type_names.append(dotted)
    made.tp_name = dotted
    made.tp_basicsize = (<_Type *>base).tp_basicsize
    made.tp_base = <_Type *>base
    made.tp_flags = Py_TPFLAGS_DEFAULT
    Py_SET_REFCNT(<PyObject *>made, 1)
    Py_SET_TYPE(<PyObject *>made, &PyType_Type)
    PyType_Ready(made)
    cdef type result = <type><object>made
    return <type>_types.setdefault(name, result)     # another thread may have been faster
