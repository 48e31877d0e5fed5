"""
The nodes of the graph: a Python object for the garbage collector and the user, a C block for the engine.

A Node object is small: hooks, metadata and a pointer to one block of C memory with the edges and the saved values,
which the engine reads without the GIL. The garbage collector visits the edges too: `_install` puts a traverse and a
clear function before Cython's own. Destroying a chain never recurses: a dying node appends its edges to a thread-local
list, which the outermost dying node processes.
"""

cimport cython
from cpython.object cimport PyObject, PyTypeObject, visitproc
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XINCREF
from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.stdio cimport snprintf
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcmp, memcpy, memset, strrchr
from cygrad._core.arrays.array cimport (
    ARRAY, NOTHING, array_empty_like, array_meta, array_t, clear, exclusive, is_number, release, retain, same_shape,
    set_array, shape_text, value_t,
)
from cygrad._core.arrays.dtype cimport dtype_name
from cygrad._core.elementwise.copying cimport array_like, is_non_overlapping_and_dense
from cygrad._core.elementwise.elementwise cimport accumulate, copy_into
from cygrad._core.graph.modes cimport ANOMALY_ON, thread_state, thread_state_t
from cygrad._core.memory.atomic cimport (
    atomic_add, atomic_increment, atomic_load, atomic_load32, atomic_store32, lock, lock_inner, lock_patiently, unlock,
)
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, OK, RUNTIME_ERROR, check, message, unlikely
from cygrad._core.memory.storage cimport allocate, deallocate, drop_reference, forget_place, version_t

import os
import threading
from importlib import import_module
from cygrad._core.arrays.dtype import library_name


# -------------------------------------------------------------------------------------------------- borrowed references

# Borrowed pointers to Python objects that may be dying: mutexes for reading them without a GIL.
#
# A mutex in each array would enlarge arrays in builds that need none, so arrays share these.

cdef enum:
    LOCKS = 64
    LINE = 16                  # a cache line each

cdef int32_t[LOCKS * LINE] _locks


cdef int32_t *lending_lock(const void *address) noexcept nogil:
    # Blocks of 128 bytes are the most frequent: neighbors get separate mutexes.
    return &_locks[((<size_t>address >> 7) ^ (<size_t>address >> 13)) % LOCKS * LINE]


# ----------------------------------------------------------------------------------------------------- removable handle

# Handles of registered hooks of tensors, nodes, modules and optimizers.

cdef int64_t _handles = 0


def _constant(value):
    return lambda: value


class RemovableHandle:
    """
    Removes a registered hook: by ``remove()``, which may be called twice, or on exit as a context manager.

    Parameters
    ----------
    hooks : dict
        Hooks by their numbers.
    hook : callable, optional
        Registered in `hooks`, under a number that no other handle has.
    extra_dict : dict or list of dict, optional
        Further dicts from which ``remove()`` deletes the number.
    """

    def __init__(self, hooks, hook=None, *, extra_dict=()):
        # One step, so that handles have unique numbers without a GIL.
        self.id = atomic_add(&_handles, 1)
        self.hooks = hooks
        self.extra = (extra_dict,) if isinstance(extra_dict, dict) else tuple(extra_dict)
        if hook is not None:
            hooks[self.id] = hook

    @property
    def hooks_dict_ref(self):
        """Return the dict of the hooks."""
        return _constant(self.hooks)

    @property
    def extra_dict_ref(self):
        """Return the further dicts, each as a function."""
        return tuple([_constant(hooks) for hooks in self.extra])

    def __getstate__(self):
        return self.hooks, self.id

    def __setstate__(self, state):
        self.hooks, self.id = state
        self.extra = ()

    def remove(self):
        """Remove the hook."""
        for hooks in (self.hooks, *self.extra):
            hooks.pop(self.id, None)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.remove()


# ----------------------------------------------------------------------------------------------------------------- node

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


cdef bint _renumbered = False


cdef void mark_renumbered() noexcept:
    global _renumbered
    _renumbered = True


cdef bint has_renumbered() noexcept nogil:
    return _renumbered


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
        import traceback                     # imported here, because it is slow and rarely needed
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
    """The hooks of one node, in the order of registration."""

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

    Users access nodes as ``tensor.grad_fn`` and their `next_functions`.

    Examples
    --------
    >>> y = cygrad.ones(2, requires_grad=True).exp().sum()
    >>> y.grad_fn.name(), y.grad_fn.next_functions[0][0].name()
    ('SumBackward0', 'ExpBackward0')
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
            Saved tensors are kept; hooks are not called.
        """
        from cygrad._core.graph.native import call_node    # in a higher layer, because it uses tensors
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
        """Dict for user data."""
        with cython.critical_section(self):          # only one dict for concurrent first accesses
            if self.notes is None:
                self.notes = {}
                gc_track_all()
        return self.notes

    @property
    def requires_grad(self):
        """Always True: nodes exist only for required gradients."""
        return True

    def _sequence_nr(self):
        """Sequence number of the node: larger is later; backward runs in decreasing order."""
        return self.c.sequence_nr

    def _set_sequence_nr(self, number):
        """Set the sequence number: among nodes whose gradients are complete, backward runs the one with the largest."""
        self.c.sequence_nr = number
        mark_renumbered()

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
    raise TypeError(f"{cls.__name__}: nodes are created by operations on tensors that require grad; the type cannot be "
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


# ------------------------------------------------------------------------------------------------------ source location

# Source locations: the running Python function and its bytecode offset, converted to file and line on demand.
#
# Storing a location takes a pointer to a code object and a number. File name and line are computed only when an error
# is reported, which may be in a thread without the GIL.

cdef extern from * nogil:
    """
    #include <string.h>
    static char package[4096];         /* the directory of this package, with a slash at its end */
    static Py_ssize_t package_length;

    static int is_ours(PyCodeObject *code) {
        Py_ssize_t length;
        const char *file = PyUnicode_AsUTF8AndSize(code->co_filename, &length);
        if (file == NULL) PyErr_Clear();
        return file != NULL && length > package_length && package_length
               && memcmp(file, package, package_length) == 0;
    }
    static PyObject *users_code(int *offset) {
        PyFrameObject *frame = PyEval_GetFrame(), *outer;
        PyCodeObject *code;
        if (frame == NULL) { PyErr_Clear(); return NULL; }      /* no memory for an object of the frame */
        Py_INCREF(frame);
        code = PyFrame_GetCode(frame);
        while (is_ours(code) && (outer = PyFrame_GetBack(frame)) != NULL) {
            Py_DECREF(frame);
            Py_DECREF(code);
            frame = outer;
            code = PyFrame_GetCode(frame);
        }
        PyErr_Clear();                  /* of an outer frame that there was no memory for */
        *offset = PyFrame_GetLasti(frame);
        Py_DECREF(frame);
        /* Make sure that the texts below can be read later without the GIL. */
        if (PyUnicode_AsUTF8(code->co_filename) == NULL || PyUnicode_AsUTF8(code->co_qualname) == NULL) PyErr_Clear();
        return (PyObject *)code;
    }
    static int line_of(PyObject *code, int offset) { return PyCode_Addr2Line((PyCodeObject *)code, offset); }
    static const char *text_or(PyObject *text, const char *otherwise) {
        /* Its UTF-8 form is there since users_code; one that has none (lone surrogates) stays unnamed. */
        if (PyUnicode_IS_COMPACT_ASCII(text)) return (const char *)PyUnicode_DATA(text);
        const char *utf8 = ((PyCompactUnicodeObject *)text)->utf8;
        return utf8 == NULL ? otherwise : utf8;
    }
    static const char *file_of(PyObject *code) { return text_or(((PyCodeObject *)code)->co_filename, "?"); }
    static const char *function_of(PyObject *code) { return text_or(((PyCodeObject *)code)->co_qualname, "?"); }
    """
    char *package
    Py_ssize_t package_length
    PyObject *users_code(int *offset)
    int line_of(PyObject *code, int offset)
    const char *file_of(PyObject *code)
    const char *function_of(PyObject *code)


cdef int _set_package(bytes directory) except -1:
    global package_length
    if len(directory) < 4096:
        memcpy(package, <const char *>directory, len(directory))
        package_length = len(directory)
    return 0


_set_package(os.fsencode(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")))


cdef PyObject *running_code(int *offset) noexcept:
    return users_code(offset)


cdef int write_place(char *text, int capacity, PyObject *code, int offset) noexcept nogil:
    cdef int length = snprintf(text, capacity, b"%.400s:%d, in %.100s", file_of(code), line_of(code, offset),
                               function_of(code))
    return min(length, capacity - 1)


# ------------------------------------------------------------------------------------------------------- version errors

# Records of in-place operations, for messages that name the line.
#
# A version counter stores the code object and bytecode offset of the last in-place operation. File name and line are
# computed only when an error is reported, which may be in a thread without the GIL; a mutex keeps the code object alive
# meanwhile.

cdef extern from * nogil:
    """
    static const char *type_name(PyObject *object) { return Py_TYPE(object)->tp_name; }
    """
    const char *type_name(PyObject *object)

cdef int32_t _lock = 0             # guards every version_t.code against being dropped while it is read


cdef void remember_place(version_t *version) noexcept:
    cdef int offset = 0
    cdef PyObject *code = running_code(&offset)
    remember_code(version, code, offset)
    drop_reference(code)


cdef void remember_code(version_t *version, PyObject *code, int offset) noexcept:
    cdef void *replaced
    if <void *>code == version.code:
        version.offset = offset
        return
    Py_XINCREF(code)
    lock_inner(&_lock)
    replaced = version.code
    version.code = code
    version.offset = offset
    unlock(&_lock)
    drop_reference(replaced)


cdef const char *node_name(const node_t *node) noexcept nogil:
    cdef const char *name = type_name(node.object)
    cdef const char *dot = strrchr(name, c'.')
    return name if dot == NULL else dot + 1


cdef int version_error(const char *operation, const char *name, const array_t *array, int64_t expected,
                       const node_t *maker, int64_t output_nr) noexcept nogil:
    cdef version_t *version = array.version
    cdef int length = snprintf(
        message(), MESSAGE, b"%s: one of the variables needed for gradient computation has been modified by an inplace "
        b"operation (got the %s tensor of shape %s saved as '%s'",
        operation, dtype_name(array.dtype), shape_text(array), name)
    if maker != NULL and maker.gradient != NULL:
        length += snprintf(message() + length, MESSAGE - length, b", a leaf,")
    elif maker != NULL:
        length += snprintf(message() + length, MESSAGE - length, b", output %lld of %s,", <long long>output_nr,
                           node_name(maker))
    length += snprintf(message() + length, MESSAGE - length, b" is at version %lld; expected version %lld instead). ",
                       <long long>atomic_load(&version.value), <long long>expected)
    lock_inner(&_lock)
    if version.code != NULL and version.offset >= 0:
        length += snprintf(message() + length, MESSAGE - length, b"The last change was made at ")
        length += write_place(message() + length, MESSAGE - length, <PyObject *>version.code, version.offset)
        length += snprintf(message() + length, MESSAGE - length, b". ")
    unlock(&_lock)
    length += snprintf(message() + length, MESSAGE - length,
                       b"Use an operation that returns a new tensor, or clone() before modifying it.")
    if maker != NULL and maker.gradient != NULL:
        snprintf(message() + length, MESSAGE - length,
                 b" If another thread trains the same weights, see nn.parallel.share_weights.")
    return RUNTIME_ERROR


# ------------------------------------------------------------------------------------------------------- backward calls

# Records of backward calls, for messages that name the call that freed a graph.
#
# A released node has the number of the call that released it. The last calls, their place in the user's code and their
# thread are in a table that forgets the oldest.

cdef extern from * nogil:
    """
    #include "memory/thread_variable.h"
    enum { REMEMBERED = 1024, THREAD_NAME = 48 };
    typedef struct {
        int64_t number;                /* of the call, 0 for none */
        PyObject *code;                /* where it was made, or NULL */
        int offset;
        int64_t thread;                /* one number for each thread */
        char name[THREAD_NAME];        /* of the thread */
    } backward_call_t;
    static backward_call_t calls[REMEMBERED];
    THREAD_VARIABLE struct { int64_t call, number; char name[THREAD_NAME]; } own;
    """
    enum:
        REMEMBERED
        THREAD_NAME
    ctypedef struct backward_call_t:
        int64_t number
        PyObject *code
        int offset
        int64_t thread
        char name[48]
    backward_call_t calls[1]
    int64_t own_call "own.call"
    int64_t own_number "own.number"
    char *own_name "own.name"

cdef int64_t _threads = 0
cdef int32_t _calls_lock = 0             # guards the table


cdef int64_t work_for(int64_t call) noexcept nogil:
    global own_call
    cdef int64_t former = own_call
    own_call = call
    return former


cdef int64_t working_for() noexcept nogil:
    return own_call


cdef int _name_thread() except -1:
    global own_number
    cdef bytes name = threading.current_thread().name.encode("utf-8", "replace")
    snprintf(own_name, THREAD_NAME, b"%s", <const char *>name)
    own_number = atomic_add(&_threads, 1)
    return 0


cdef int remember_call(int64_t call, bint keep) except -1:
    cdef backward_call_t *entry = &calls[call % REMEMBERED]
    cdef backward_call_t fresh
    cdef PyObject *replaced
    if own_number == 0:
        _name_thread()
    fresh.number = call
    fresh.thread = own_number
    fresh.code = NULL
    fresh.offset = 0
    if not keep and own_call != -1:
        fresh.code = running_code(&fresh.offset)
    lock_inner(&_calls_lock)
    replaced = entry.code
    entry.number = call
    entry.code = fresh.code
    entry.offset = fresh.offset
    if entry.thread != fresh.thread:
        entry.thread = fresh.thread
        snprintf(entry.name, THREAD_NAME, b"%s", own_name)
    unlock(&_calls_lock)
    drop_reference(replaced)
    return 0


cdef void note_release(node_t *node) noexcept nogil:
    atomic_store32(&node.released_by, <int32_t>own_call)     # other threads may read it concurrently


cdef int freed_error(const node_t *node) noexcept nogil:
    cdef int32_t number = atomic_load32(<int32_t *>&node.released_by)
    cdef const backward_call_t *entry = &calls[number % REMEMBERED if number > 0 else 0]
    cdef const backward_call_t *failing = &calls[own_call % REMEMBERED if own_call > 0 else 0]
    cdef int length = snprintf(message(), MESSAGE, b"%s: Trying to backward through the graph a second time, or "
                               b"directly access saved tensors after they have already been freed by backward",
                               node_name(node))
    lock_inner(&_calls_lock)
    if number > 0 and <int32_t>entry.number == number:
        if entry.code != NULL:
            length += snprintf(message() + length, MESSAGE - length, b" at ")
            length += write_place(message() + length, MESSAGE - length, entry.code, entry.offset)
        if entry.thread != (failing.thread if own_call > 0 and failing.number == own_call else own_number):
            length += snprintf(message() + length, MESSAGE - length, b", in the thread '%s'", entry.name)
    unlock(&_calls_lock)
    snprintf(message() + length, MESSAGE - length,
             b". Specify retain_graph=True in that call.")
    return RUNTIME_ERROR


# ----------------------------------------------------------------------------------------------------------- accumulate

# AccumulateGrad: adds gradients to a leaf's ``.grad``.
#
# A mutex guards accumulation, so that concurrent backward calls on shared leaves lose nothing. It is held while the
# memory is modified, never while acquiring the GIL.

cdef array_t *_order_of(node_t *node) noexcept nogil:
    """Return shape and strides of a leaf that is not row-major, retained, or NULL."""
    cdef array_t *order = NULL
    if node.saved[0].value.kind == ARRAY:
        lock(&node.lock)
        if node.saved[0].value.kind == ARRAY:
            order = retain(node.saved[0].value.of.array)
        unlock(&node.lock)
    return order


cdef array_t *_own(node_t *node, array_t *array, bint copy) noexcept nogil:
    """
    Return the array itself if it may become .grad: its memory unshared, dense and in the layout of the leaf. Else a
    copy.
    """
    cdef array_t *order = _order_of(node)
    cdef array_t *own = NULL
    cdef bint ordered = order != NULL and same_shape(order, array)
    if ordered:
        if (memcmp(order.strides, array.strides, array.ndim * sizeof(int64_t)) == 0 and array.storage.owner == NULL
                and atomic_load(&array.count) == 1 and atomic_load(&array.storage.count) == 1):
            own = array
    elif exclusive(array):
        own = array
    if own == NULL and copy:
        own = array_like(order, array.dtype) if ordered else array_empty_like(array, -1)
        if own != NULL and copy_into(own, array) != OK:
            release(own)
            own = NULL
    release(order)
    return own


cdef int add_gradient(node_t *node, array_t *array) noexcept nogil:
    cdef gradient_t *gradient = node.gradient
    cdef int status = OK
    cdef array_t *own
    lock_patiently(&gradient.lock)
    if gradient.value != NULL:
        if gradient.value.dtype == array.dtype and same_shape(gradient.value, array):
            status = accumulate(gradient.value, array)
            if gradient.value.version != NULL:
                atomic_increment(&gradient.value.version.value)
                forget_place(gradient.value.version)
        else:
            snprintf(message(), MESSAGE, b"backward: the gradient does not match .grad (got shape %s, expected %s "
                     b"and the same dtype). Set .grad to None first.", shape_text(array), shape_text(gradient.value))
            status = RUNTIME_ERROR
        release(array)
    else:
        own = _own(node, array, True)
        if own != array:
            release(array)
        gradient.value = own
        if own == NULL:
            status = MEMORY_ERROR
    unlock(&gradient.lock)
    return status


cdef bint keep_gradient(node_t *node, array_t *array) noexcept nogil:
    cdef gradient_t *gradient = node.gradient
    cdef bint kept
    if _own(node, array, False) == NULL:
        return False
    lock_patiently(&gradient.lock)
    kept = gradient.value == NULL
    if kept:
        gradient.value = retain(array)
    unlock(&gradient.lock)
    return kept


cdef int _backward(node_t *node, value_t *grads, array_t **out, bint keep, uint32_t wanted) noexcept nogil:
    if grads[0].kind != ARRAY:
        return OK
    grads[0].kind = NOTHING
    if node.released:                   # requires_grad was set to False meanwhile
        release(grads[0].of.array)
        return OK
    return add_gradient(node, grads[0].of.array)


cdef class AccumulateGrad(Node):
    """The end of a path: adds the gradient to the leaf's ``.grad``."""

    @property
    def variable(self):
        """The leaf."""
        return self.payload


cdef AccumulateGrad known_accumulator(gradient_t *gradient):
    cdef PyObject *found = NULL
    if gradient.accumulator == NULL:
        return None
    if not FREE_THREADED:
        return <AccumulateGrad>gradient.accumulator.object
    # It may be dying in another thread: under this mutex its fields are still valid, because `_dealloc_node` needs it.
    lock_lending(gradient)
    if gradient.accumulator != NULL and take_if_alive(gradient.accumulator.object):
        found = gradient.accumulator.object
    unlock_lending(gradient)
    return _taken_node(found)


cdef void forget_accumulator(gradient_t *gradient) noexcept:
    lock_lending(gradient)
    gradient.accumulator = NULL
    unlock_lending(gradient)


cdef AccumulateGrad _taken_node(PyObject *found):
    """Return the node to which `take_if_alive` has added a reference, or NULL."""
    cdef AccumulateGrad node
    if found == NULL:
        return None
    node = <AccumulateGrad>found
    Py_DECREF(node)
    return node


cdef int _note_order(node_t *node, const array_t *array) except -1:
    """Copy the gradient in the layout of the leaf, if that is dense."""
    cdef array_t *order = NULL
    cdef value_t former
    if not array.contiguous and is_non_overlapping_and_dense(array):
        order = array_meta(array)
        if order == NULL:
            check(MEMORY_ERROR)
    lock(&node.lock)
    former = node.saved[0].value
    node.saved[0].value.kind = NOTHING
    if order != NULL:
        set_array(&node.saved[0].value, order)
    unlock(&node.lock)
    clear(&former)
    return 0


cdef AccumulateGrad _new_or_parked(gradient_t *gradient):
    cdef node_t *c = gradient.parked
    cdef AccumulateGrad node
    if c == NULL or thread_state().anomaly & ANOMALY_ON:         # anomaly mode stores where each node was created
        node = <AccumulateGrad>node_new(AccumulateGrad, 0, 1, 1, False)
        gc_unlink(node.c)
        node.c.backward = _backward
        return node
    gradient.parked = NULL
    _wake(c, NULL)
    node = <AccumulateGrad>c.object              # its first reference
    return node


cdef inline void _wake(node_t *c, gradient_t *gradient) noexcept:
    """Reinitialize a parked node, with the gradient, if there is one."""
    c.sequence_nr = next_sequence_nr()
    c.task = c.index = c.work = 0
    c.released = 0
    if gradient != NULL:
        c.gradient = gradient
        count_up(&gradient.count)


cdef AccumulateGrad accumulator_of(object leaf, gradient_t *gradient, const array_t *array, bint bare):
    cdef AccumulateGrad node
    cdef node_t *c = gradient.parked
    cdef PyObject *other = NULL
    if not FREE_THREADED and c != NULL and gradient.accumulator == NULL and array.contiguous \
            and not thread_state().anomaly & ANOMALY_ON:
        gradient.parked = NULL
        node = <AccumulateGrad>c.object          # its first reference
        _wake(c, gradient)
        node.payload = leaf
        gradient.accumulator = c
        if bare and node.notes is None:
            gc_untrack(c)
        else:
            gc_track(c)
        return node
    node = known_accumulator(gradient)
    if node is not None:
        if not array.contiguous or node.c.saved[0].value.kind == ARRAY:
            _note_order(node.c, array)
        return node
    node = _new_or_parked(gradient)
    if not array.contiguous:
        _note_order(node.c, array)
    node.payload = leaf
    node.c.gradient = gradient
    count_up(&gradient.count)
    if bare and node.notes is None:
        gc_untrack(node.c)
    else:
        gc_track(node.c)
    make_lendable(<PyObject *>node)
    # Another thread may have created one meanwhile (with a GIL too: anomaly mode runs Python code in node_new). A leaf
    # has one node, which hooks and `autograd.grad` rely on: drop ours.
    lock_lending(gradient)
    if gradient.accumulator != NULL and take_if_alive(gradient.accumulator.object):
        other = gradient.accumulator.object
    else:
        gradient.accumulator = node.c
    unlock_lending(gradient)
    return node if other == NULL else _taken_node(other)


cdef void (*_node_dealloc)(PyObject *) noexcept


cdef void _park(PyObject *self) noexcept:
    """
    With a GIL: the node is unreferenced, but the leaf may need it again immediately. A node without pending additions
    is parked in the gradient's slot, without the leaf.
    """
    cdef node_t *c = (<Node>self).c
    cdef gradient_t *gradient = NULL if c == NULL else c.gradient
    if (gradient == NULL or gradient.accumulator != c or gradient.parked != NULL or atomic_load(&gradient.count) == 1
            or (<Node>self).hooks is not None or (<Node>self).notes is not None or has_weak_references(self)):
        _node_dealloc(self)
        return
    gc_unlink(c)
    if c.saved[0].value.kind == ARRAY:
        clear(&c.saved[0].value)
    gradient.accumulator = NULL
    gradient.parked = c
    c.gradient = NULL
    count_down(&gradient.count)
    _leaf = (<Node>self).payload
    (<Node>self).payload = None
    # If the leaf dies now, so does this node.


cdef void _dealloc_node(PyObject *self) noexcept:
    """
    Without a GIL: erase the borrowed pointer to a node whose refcount is zero. This runs before Cython's deallocator,
    which raises the refcount temporarily, so that the node would seem alive.
    """
    cdef node_t *c = (<Node>self).c
    if c != NULL and c.gradient != NULL:
        lock_lending(c.gradient)
        if c.gradient.accumulator == c:
            c.gradient.accumulator = NULL
        unlock_lending(c.gradient)
    _node_dealloc(self)


_node_dealloc = (<_Type *>AccumulateGrad).tp_dealloc
(<_Type *>AccumulateGrad).tp_dealloc = _dealloc_node if FREE_THREADED else _park
install_collector(AccumulateGrad, False)
