"""
The tensor: an array, its node, its gradient.

Only what needs C fields is here. Everything else of Tensor - operators, indexing, conversions, printing - are functions
of other modules, which `install` adds to the type.
"""

cimport cython
from cpython.buffer cimport PyObject_GetBuffer
from cpython.object cimport PyObject, PyObject_GenericSetAttr
from cpython.ref cimport Py_DECREF, Py_XDECREF
from libc.stdint cimport int16_t, int32_t, int64_t
from cygrad._core.arrays.array cimport (
    ARRAY, ARRAYS, MAX_DIMS, array_meta, array_over, array_t, array_view, overlaps_itself, release, replace_version,
    retain, same_shape, shape_text, size_of, value_t,
)
from cygrad._core.arrays.dtype cimport dtype_name, dtype_object, is_differentiable
from cygrad._core.graph.modes cimport TRACING_MODE, thread_state, thread_state_t
from cygrad._core.graph.node cimport (
    FREE_THREADED, HAS_SPARSE_GRADIENT, Hooks, Node, accumulator_of, gc_track_all, gradient_new, gradient_release,
    gradient_t, has_weak_references, known_accumulator, lock_lending, make_lendable, node_t, take_if_alive,
    unlock_lending,
)
from cygrad._core.graph.untracked_reason cimport DATA, DETACHED, DETACHED_IN_PLACE, GRADIENT, NO_REASON, UNTRACKED
from cygrad._core.memory.atomic cimport atomic_claim, atomic_increment, atomic_load, lock, lock_patiently, unlock
from cygrad._core.memory.errors cimport MEMORY_ERROR, OK, check, unlikely
from cygrad._core.memory.storage cimport (
    NO_ELEMENTS, has_pending, release_pending, storage_foreign, storage_release, storage_t, version_new,
    version_release,
)

from cygrad._core.graph.user_warnings import warn_user


# ----------------------------------------------------------------------------------------------------- tensor free list

# The free list of tensors.
#
# Cython's own free list clears and reinitializes each object, and saves the current exception around `__dealloc__`. A
# Tensor with nothing but an array, a node and a gradient leaves its fields as in a new one, so that freeing and
# creating it costs a third.

cdef extern from "Python.h":
    ctypedef struct _Type "PyTypeObject":
        object (*tp_new)(_Type *, object, PyObject *)
        void (*tp_dealloc)(PyObject *) noexcept
        PyObject *tp_dict
    void PyObject_GC_Track(PyObject *)
    void PyObject_GC_UnTrack(PyObject *)

cdef enum:
    MAX_FREE_TENSORS = 512

cdef PyObject *_free_tensors[MAX_FREE_TENSORS]
cdef int _n_free = 0
cdef tuple _nothing = ()

# Slots that Cython generated for the type, before other modules replaced them.
cdef object (*_cython_new)(_Type *, object, PyObject *)
cdef void (*_cython_dealloc)(PyObject *) noexcept
_cython_new = (<_Type *>Tensor).tp_new
_cython_dealloc = (<_Type *>Tensor).tp_dealloc


cdef Tensor bare_tensor():
    global _n_free
    if unlikely(_n_free == 0):
        return <Tensor>_cython_new(<_Type *>Tensor, _nothing, NULL)
    _n_free -= 1
    PyObject_GC_Track(_free_tensors[_n_free])
    return <Tensor>_free_tensors[_n_free]              # its first reference


cdef void _dealloc(PyObject *self) noexcept:
    global _n_free
    cdef array_t *array = (<Tensor>self).array
    cdef gradient_t *gradient = (<Tensor>self).gradient
    if unlikely(type_of(self) != <PyObject *>Tensor or _n_free == MAX_FREE_TENSORS or (<Tensor>self).attributes != NULL
                or (<Tensor>self).leaf_hooks is not None or (<Tensor>self).dual_level or has_weak_references(self)):
        _cython_dealloc(self)
        return
    PyObject_GC_UnTrack(self)
    if array != NULL and array.tensor == <void *>self:
        array.tensor = NULL
    # Objects that die with it may create Tensors and get this one: reset its fields before dropping any reference.
    if (<Tensor>self).node is not None:
        _node = (<Tensor>self).node
        (<Tensor>self).node = None
    if (<Tensor>self).base is not None:
        _base = (<Tensor>self).base
        (<Tensor>self).base = None
    if (<Tensor>self).grad_tensor is not None:
        _grad = (<Tensor>self).grad_tensor
        (<Tensor>self).grad_tensor = None
    (<Tensor>self).array = NULL
    (<Tensor>self).gradient = NULL
    (<Tensor>self).output_nr = (<Tensor>self).leaf_requires_grad = 0
    (<Tensor>self).view_kind = (<Tensor>self).untracked = 0
    (<Tensor>self).view_version = 0
    _free_tensors[_n_free] = self
    _n_free += 1
    release(array)
    if gradient != NULL:
        gradient_release(gradient)


if not FREE_THREADED:
    (<_Type *>Tensor).tp_dealloc = _dealloc


# ------------------------------------------------------------------------------------------------------ tensor identity

# The mapping between Tensors and arrays.
#
# An array has a borrowed pointer to its Tensor, so that the same memory is the same object for users. Without a GIL
# that Tensor may be dying in another thread, or another thread may replace its array: see `graph/node`.

cdef Tensor tensor_of(array_t *array):
    cdef Tensor tensor = known_tensor(array)
    if tensor is not None:
        release(array)
        return tensor
    tensor = bare_tensor()
    if FREE_THREADED:
        return _published(tensor, array)
    tensor.array = array
    array.tensor = <void *>tensor
    return tensor


cdef Tensor _published(Tensor made, array_t *array):
    """Return the Tensor of an array that other threads may use: `made`, or one that another thread made meanwhile."""
    cdef PyObject *other = NULL
    made.array = array
    make_lendable(<PyObject *>made)
    lock_lending(array)
    if array.tensor != NULL and take_if_alive(<PyObject *>array.tensor):
        other = <PyObject *>array.tensor
    else:
        array.tensor = <void *>made
    unlock_lending(array)
    return made if other == NULL else _taken(other)


cdef Tensor _taken(PyObject *found):
    """Return the Tensor to which `take_if_alive` has added a reference."""
    cdef Tensor tensor = <Tensor>found
    Py_DECREF(tensor)
    return tensor


cdef Tensor living_tensor(const array_t *array):
    cdef PyObject *found = NULL
    # A dying Tensor erases the pointer under this mutex before its memory is freed (cygrad._core.graph.type_slots).
    lock_lending(array)
    if array.tensor != NULL and take_if_alive(<PyObject *>array.tensor):
        found = <PyObject *>array.tensor
    unlock_lending(array)
    return None if found == NULL else _taken(found)


cdef void replace_array(Tensor tensor, array_t *array) noexcept:
    cdef array_t *replaced
    array.tensor = <void *>tensor
    make_lendable(<PyObject *>tensor)
    lock_lending(<void *>tensor)             # a reader of the pointer adds its reference there
    replaced = tensor.array
    tensor.array = array
    unlock_lending(<void *>tensor)
    if replaced == NULL:
        return
    lock_lending(replaced)
    if replaced.tensor == <void *>tensor:
        replaced.tensor = NULL
    unlock_lending(replaced)
    if replaced.is_gradient and replaced.count > 1 and replaced.dtype == array.dtype and (
            tensor.untracked == GRADIENT or tensor.node is None and not tensor.leaf_requires_grad):
        _replace_gradient(tensor, replaced)
    release(replaced)


cdef void _replace_gradient(Tensor gradient, const array_t *replaced):
    """Let the leaf of which this is the ``.grad`` have its new memory or shape (``x.grad.data = t``)."""
    import gc                                # imported here, because few programs need it
    for leaf in gc.get_referrers(gradient):
        if (isinstance(leaf, Tensor) and (<Tensor>leaf).grad_tensor is gradient and (<Tensor>leaf).gradient != NULL
                and (<Tensor>leaf).gradient.value == replaced):
            _replace(leaf, gradient, True, NULL, 0)


cdef object adopt(Tensor self, Tensor source, bint keep_version):
    cdef array_t *own = held_array(source)
    cdef array_t *view = array_view(own, own.dtype, own.ndim, own.shape, own.strides, 0)
    release(own)
    if view == NULL:
        check(MEMORY_ERROR)
    if keep_version:
        if self.array.version != NULL:
            atomic_increment(&self.array.version.count)
        replace_version(view, self.array.version)
        view.array_api = self.array.array_api
    elif view.version == NULL and self.array != NULL and self.array.version != NULL:
        # Memory of an inference tensor has no version counter. The normal tensor gets one of its own.
        if replace_version(view, version_new()) != OK:
            release(view)
            raise MemoryError("set_: no memory for a version counter")
    replace_array(self, view)


# ------------------------------------------------------------------------------------------------------ array api marks

# Marks of Array API arrays: tensors returned by functions of that namespace.

cdef void mark_array_api(array_t *array) noexcept:
    array.array_api = True
    note_unusual()


cdef void propagate_array_api(array_t *array, const array_t *example) noexcept:
    if is_array_api(example):
        mark_array_api(array)


cdef int unusual_among(int n, const value_t *values) noexcept:
    cdef int i, j
    cdef int found = WITHOUT_ELEMENTS if any_meta and any_is_meta(n, values) else 0
    for i in range(n):
        if values[i].kind == ARRAY and is_array_api(values[i].of.array):
            return found | BY_STANDARD
        if values[i].kind == ARRAYS:
            for j in range(values[i].count):
                if values[i].of.arrays[j] != NULL and is_array_api(values[i].of.arrays[j]):
                    return found | BY_STANDARD
    return found


cdef int adapt(int unusual, int n, value_t *results) except -1:
    cdef int i, j
    if unusual & WITHOUT_ELEMENTS:
        forget_elements(n, results)
    if not unusual & BY_STANDARD:
        return 0
    for i in range(n):
        if results[i].kind == ARRAY:
            _mark_new(results[i].of.array)
        elif results[i].kind == ARRAYS:
            for j in range(results[i].count):
                _mark_new(results[i].of.arrays[j])
    return 0


cdef inline void _mark_new(array_t *array) noexcept:
    """Mark results, except those that are an argument itself."""
    if array != NULL and array.tensor == NULL:
        mark_array_api(array)


# ------------------------------------------------------------------------------------------------------------ gradients

# The gradient slot of a leaf: created once, read and replaced as a whole.
#
# The slot's mutex guards its array, because backward adds to it without the GIL. The Tensor object of it is stored in
# the leaf, under the leaf's critical section: ``x.grad is x.grad``.

cdef gradient_t *slot_of(Tensor leaf, const char *operation) except NULL:
    cdef gradient_t *made
    if leaf.gradient == NULL:
        made = gradient_new()
        if made == NULL:
            raise MemoryError(f"{operation.decode()}: no memory for a gradient slot")
        # Without a GIL two threads may use a new leaf at the same time: the second uses the slot of the first.
        if not atomic_claim(<int64_t *>&leaf.gradient, 0, <int64_t>made):
            gradient_release(made)
    return leaf.gradient


cdef Tensor gradient_of(Tensor leaf):
    cdef Tensor found = None
    if leaf.gradient != NULL:
        # Two threads that read concurrently get one object, and neither drops it while the other takes a reference.
        with cython.critical_section(leaf):
            found = _known_gradient(leaf)
    if found is None and leaf.node is not None and not _retains_grad(leaf):
        warn_user(f".grad of a non-leaf is not retained (got a result of {leaf.node.name()}), so it is None. "
                  "Call retain_grad() on it before backward, or ask autograd.grad for it.")
    return found


cdef Tensor _known_gradient(Tensor leaf):
    cdef array_t *value
    lock_patiently(&leaf.gradient.lock)
    value = leaf.gradient.value
    if value != NULL:
        retain(value)
    unlock(&leaf.gradient.lock)
    if value == NULL:
        leaf.grad_tensor = None
    elif leaf.grad_tensor is None or leaf.grad_tensor.array != value:
        if any_unusual and value.tensor == NULL:
            propagate_array_api(value, leaf.array)
        value.is_gradient = True
        leaf.grad_tensor = tensor_of(value)
        if not is_bare(leaf):
            gc_track_all()
        if leaf.grad_tensor.untracked in (NO_REASON, UNTRACKED):
            leaf.grad_tensor.untracked = GRADIENT
    else:
        release(value)
    return leaf.grad_tensor


cdef bint _retains_grad(Tensor tensor):
    return (tensor.node is not None and tensor.node.hooks is not None
            and tensor.output_nr in tensor.node.hooks.retained)


cdef object set_gradient(Tensor leaf, Tensor value):
    if leaf.gradient != NULL or value is not None:
        _replace(leaf, value, True, NULL, 0)
    return None


cdef int64_t version_of_gradient(const array_t *array) noexcept nogil:
    return 0 if array == NULL or array.version == NULL else atomic_load(&array.version.value)


cdef bint replace_gradient(Tensor leaf, Tensor former, int64_t version, Tensor value) except -1:
    return _replace(leaf, value, False, NULL if former is None else former.array, version)


cdef bint _replace(Tensor leaf, Tensor value, bint always, array_t *former, int64_t version) except -1:
    cdef gradient_t *slot = slot_of(leaf, b"grad")
    cdef array_t *array
    cdef array_t *replaced
    cdef bint sparse
    # Array and Tensor object change together: if two threads set .grad, one of them wins with both.
    with cython.critical_section(leaf):
        array = NULL if value is None else held_array(value)
        if value is not None:
            array.is_gradient = True
            slot_of(value, b"grad")                    # marks it as known to the graph, see `set_node`
        sparse = array != NULL and not array.contiguous and type(value) is not Tensor and overlaps_itself(array)
        lock_patiently(&slot.lock)
        replaced = slot.value
        if not always and (replaced != former or version != version_of_gradient(replaced)):
            unlock(&slot.lock)
            release(array)
            return False
        slot.value = array
        slot.sparse = sparse
        if sparse and slot.accumulator != NULL:        # a running backward may have scheduled it on a worker
            slot.accumulator.python |= HAS_SPARSE_GRADIENT
        unlock(&slot.lock)
        leaf.grad_tensor = value
        if value is not None and value.node is not None and value.untracked == NO_REASON:
            value.untracked = GRADIENT
        if value is not None and not is_bare(leaf):
            gc_track_all()
    release(replaced)
    return True


# --------------------------------------------------------------------------------------------------------------- tensor

cdef extern from "Python.h":
    void PyType_Modified(type)


cdef inline Tensor _made(array_t *array):
    """Return a new Tensor for an array, linked both ways."""
    if array == NULL:
        check(MEMORY_ERROR)
    cdef Tensor tensor = bare_tensor()
    tensor.array = array
    array.tensor = <void *>tensor
    make_lendable(<PyObject *>tensor)
    return tensor


cdef Tensor wrap(array_t *array):
    cdef Tensor tensor = _made(array)
    cdef thread_state_t *state = thread_state()
    tensor.untracked = <int16_t>state.grad_disabled          # UNTRACKED, if so
    if state.inference:
        if array.own_version:
            version_release(array.version)
        array.version = NULL
        return tensor
    if has_pending():
        release_pending()
    return tensor


cdef Tensor wrap_view(array_t *array, Tensor base):
    cdef Tensor tensor = _made(array)
    # A view of an inference tensor has no history, nor has one of floating point bits as integers.
    if array.version == NULL or (not is_differentiable(array.dtype) and is_differentiable(base.array.dtype)):
        return tensor
    cdef thread_state_t *state = thread_state()
    tensor.base = base if base.base is None else base.base
    # A view of a restricted view is restricted alike.
    tensor.view_kind = (INFERENCE_VIEW if state.inference else NO_GRAD_VIEW if state.grad_disabled
                        else max(base.view_kind, <int16_t>DIFFERENTIABLE_VIEW))
    tensor.view_version = array.version.value
    return tensor


cdef inline bint _is_outdated(Tensor tensor) noexcept:
    """Update the history of a view whose base was modified in place; cygrad._core.graph.inplace does it."""
    return (tensor.base is not None and tensor.array.version != NULL
            and tensor.array.version.value != tensor.view_version)


cdef Node grad_fn_of(Tensor tensor):
    cdef int64_t output_nr
    if _is_outdated(tensor):
        _refresh(tensor)
    return _node_of(tensor, &output_nr)


cdef inline Node _node_of(Tensor tensor, int64_t *output_nr):
    cdef Node node
    lock_lending(<void *>tensor)             # node and number belong together, and neither may be freed meanwhile
    node = tensor.node
    output_nr[0] = tensor.output_nr
    unlock_lending(<void *>tensor)
    return node


cdef void set_node(Tensor tensor, Node node, int32_t output_nr) noexcept:
    cdef Node _replaced                      # perhaps the last reference: drop it after unlocking
    lock_lending(<void *>tensor)
    _replaced = tensor.node
    # If nodes refer to it, as a leaf or the gradient of one, the attribute may close a cycle.
    if _replaced is None and (tensor.gradient != NULL or tensor.untracked in (GRADIENT, DETACHED_IN_PLACE)):
        gc_track_all()
    tensor.node = node
    tensor.output_nr = output_nr
    unlock_lending(<void *>tensor)


cdef dict _origins = {
    NO_GRAD_VIEW: "it was created in no-grad mode", INFERENCE_VIEW: "it was created in inference mode",
    MULTI_OUTPUT_VIEW: "it is one of several outputs of one operation", CUSTOM_VIEW: "a custom Function returned it"}


cdef int _refresh(Tensor tensor) except -1:
    # Two threads may do this concurrently: each creates a node for the same function, and one of them stays.
    if tensor.node is None and not requires_grad(tensor.base):
        return 0                   # still outdated, because the base may require grad later
    if tensor.view_kind == DIFFERENTIABLE_VIEW:
        protocol.refresh_view(tensor)
    else:
        maker = "grad_fn" if tensor.node is None else tensor.node.name()
        raise RuntimeError(f"{maker}: output {tensor.output_nr} is a view whose base was modified in place (got "
                           f"version {tensor.array.version.value}, expected {tensor.view_version}), and its history "
                           f"cannot be rewritten, because {_origins[tensor.view_kind]}. Use an operation that returns "
                           "a new tensor, or create the view again after the modification, where operations are "
                           "recorded.")
    tensor.view_version = tensor.array.version.value
    return 0


cdef Node gradient_edge(Tensor tensor, int64_t *input_nr):
    cdef Node node
    if FREE_THREADED or tensor.node is not None or tensor.base is not None:
        if _is_outdated(tensor):
            _refresh(tensor)
        node = _node_of(tensor, input_nr)
        if node is not None:
            return node
    if not tensor.leaf_requires_grad:
        return None
    input_nr[0] = 0
    if tensor.gradient == NULL:
        slot_of(tensor, b"backward")
    node = accumulator_of(tensor, tensor.gradient, tensor.array, is_bare(tensor))
    if tensor.leaf_hooks is not None:
        _share_hooks(tensor, node)
    return node


cdef int _share_hooks(Tensor leaf, Node accumulator) except -1:
    """Tensor hooks belong to the leaf and outlive its accumulator; the node's own hooks die with the node."""
    cdef Hooks hooks = accumulator.ensure_hooks()
    if hooks.tensor is leaf.leaf_hooks.tensor:
        return 0
    with cython.critical_section(hooks):
        if FREE_THREADED:          # a backward of another thread may be about to read the former ones
            hooks.replaced = (hooks.replaced, hooks.tensor, hooks.accumulated)
        hooks.accumulated = leaf.leaf_hooks.accumulated
        hooks.tensor = leaf.leaf_hooks.tensor
    return 0


cdef int _note_requirement(Tensor leaf) except -1:
    """An earlier graph may still lead to a leaf that requires no grad any more."""
    cdef Node accumulator = None if leaf.gradient == NULL else known_accumulator(leaf.gradient)
    if accumulator is not None:
        accumulator.c.released = not leaf.leaf_requires_grad
    return 0


cdef Hooks hooks_of(Tensor tensor):
    """Return the hooks of this tensor: those of its node, or of the leaf itself."""
    cdef Node node = grad_fn_of(tensor)
    if node is not None:
        return node.ensure_hooks()
    with cython.critical_section(tensor):            # first hooks from two threads: both in the same dicts
        if tensor.leaf_hooks is None:
            tensor.leaf_hooks = Hooks()
            gc_track_all()
    node = None if tensor.gradient == NULL else known_accumulator(tensor.gradient)
    if node is not None:
        _share_hooks(tensor, node)
    return tensor.leaf_hooks


cdef bint _is_sparse(Tensor tensor):
    return hasattr(tensor, "as_gradient")


cdef str describe(Tensor tensor):
    return f"{dtype_name(tensor.array.dtype).decode()} tensor of shape {shape_text(tensor.array).decode()}"


# Names in errors of setters, whose critical sections should not contain attribute access.

cdef str _type_of(object value):
    return type(value).__name__


cdef str _type_of_node(Tensor tensor):
    return tensor.node.name()


@cython.binding(False)      # methods check the type of self
cdef class Tensor:
    """
    An n-dimensional array with automatic differentiation.

    Create one with functions such as `cygrad.tensor`, `cygrad.zeros` and `cygrad.from_numpy`, or with ``Tensor(data)``,
    which copies `data` with the default floating dtype.

    Examples
    --------
    >>> x = cygrad.tensor([1.0, 2.0], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad
    tensor([2., 4.])
    """

    __array_priority__ = 1000.0        # NumPy arrays return NotImplemented in mixed operations

    def __init__(self, *data, **options):
        if (data or options) and type(self).__new__ is Tensor.__new__:      # another `__new__` has used the arguments
            _slot_functions["__init__"](self, data, options)

    def __dealloc__(self):
        if self.dual_level:
            protocol.forget_tangent(self)
        if self.array != NULL:
            if self.array.tensor == <void *>self:
                self.array.tensor = NULL
            release(self.array)
            self.array = NULL
        gradient_release(self.gradient)
        self.gradient = NULL
        Py_XDECREF(self.attributes)
        self.attributes = NULL

    def __setattr__(self, name, value):
        cdef bint bare = self.attributes == NULL
        PyObject_GenericSetAttr(self, name, value)
        if bare and self.attributes != NULL:         # the attribute may lead to the tensor, through the graph
            gc_track_all()

    # ------------------------------------------------------------------------------------------------------ metadata

    @property
    def shape(self):
        """Sizes of the dimensions, a `Size`, which is a tuple.

        Examples
        --------
        >>> cygrad.ones(2, 3).shape
        (2, 3)
        """
        return size_of(self.array)

    @property
    def dtype(self):
        """The `cygrad.dtype` of the elements.

        Examples
        --------
        >>> cygrad.ones(2).dtype
        cygrad.float32
        """
        return dtype_object(self.array.dtype)

    @property
    def ndim(self):
        """Number of dimensions.

        Examples
        --------
        >>> cygrad.ones(2, 3).ndim
        2
        """
        return self.array.ndim

    def __len__(self):
        if self.array.ndim == 0:
            raise TypeError("len: a 0-dim tensor has no length (got shape ()).")
        return self.array.shape[0]

    # --------------------------------------------------------------------------------------------------------- graph

    @property
    def requires_grad(self):
        """Whether gradients are computed for this tensor.

        Examples
        --------
        >>> cygrad.ones(2).requires_grad
        False
        """
        return requires_grad(self) or (self.base is not None and requires_grad(self.base))

    @requires_grad.setter
    @cython.critical_section             # reads first, then sets
    def requires_grad(self, value):
        cdef bint wanted = value is True
        if not wanted and value is not False:
            raise RuntimeError(f"requires_grad: expected True or False (got {_type_of(value)}).")
        if grad_fn_of(self) is not None:
            if wanted:
                return
            raise RuntimeError("requires_grad: you can only change requires_grad flags of leaf variables (got one "
                               f"created by {_type_of_node(self)}). Use detach() for an alias outside the graph.")
        if wanted and not is_differentiable(self.array.dtype):
            raise RuntimeError("requires_grad: only tensors of floating point and complex dtype can require "
                               f"gradients (got {dtype_name(self.array.dtype).decode()}). Convert it first, for "
                               "example with .float().")
        if wanted and is_inference(self) and not thread_state().inference:
            raise RuntimeError("requires_grad: Setting requires_grad=True on inference tensor outside InferenceMode is "
                               "not allowed. Create a normal one with clone().")
        self.leaf_requires_grad = wanted
        _note_requirement(self)

    @requires_grad.deleter
    def requires_grad(self):
        raise RuntimeError("requires_grad: cannot be deleted. Set it to False.")

    def requires_grad_(self, requires_grad=True):
        """Set ``requires_grad`` and return the tensor itself."""
        self.requires_grad = requires_grad
        return self

    @property
    def is_leaf(self):
        """Whether no recorded operation created this tensor.

        Examples
        --------
        >>> x = cygrad.ones(2, requires_grad=True)
        >>> x.is_leaf, (2 * x).is_leaf
        (True, False)
        """
        return grad_fn_of(self) is None

    @property
    def grad_fn(self):
        """The graph node that created this tensor, or None for leaves.

        Examples
        --------
        >>> x = cygrad.ones(2, requires_grad=True)
        >>> (2 * x).grad_fn.name()
        'MulBackward0'
        """
        return grad_fn_of(self)

    @property
    def output_nr(self):
        """Index of this tensor among the outputs of ``grad_fn``.

        Examples
        --------
        >>> x = cygrad.ones(2, requires_grad=True)
        >>> [part.output_nr for part in x.unbind()]
        [0, 1]
        """
        grad_fn_of(self)
        return self.output_nr

    @property
    def grad(self):
        """The accumulated gradient, a tensor or None; only leaves and `retain_grad` tensors have one.

        Examples
        --------
        >>> x = cygrad.ones(2, requires_grad=True)
        >>> (2 * x).sum().backward()
        >>> x.grad
        tensor([2., 2.])
        """
        return gradient_of(self)

    @grad.setter
    def grad(self, value):
        cdef Tensor tensor
        if value is None:
            set_gradient(self, None)
            return
        if not isinstance(value, Tensor):
            raise TypeError(f"grad: assigned grad expected to be a Tensor or None but got {type(value).__name__}.")
        tensor = <Tensor>value
        if tensor is self:
            raise RuntimeError("grad: can't assign Variable as its own grad.")
        if (tensor.array.dtype != self.array.dtype or not same_shape(tensor.array, self.array)
                or (is_meta(tensor.array) != is_meta(self.array) and value.device != (<object>self).device)):
            what = "size" if tensor.array.dtype == self.array.dtype else "type"
            raise RuntimeError(f"grad: assigned grad has data of a different {what} (got a {describe(tensor)} on "
                               f"{tensor.device}, expected a {describe(self)} on {self.device}).")
        set_gradient(self, tensor)

    @grad.deleter
    def grad(self):
        set_gradient(self, None)

    def detach(self):
        """
        A view outside the graph: it shares storage and version, and does not require grad.

        Returns
        -------
        Tensor

        Examples
        --------
        >>> x = cygrad.ones(2, requires_grad=True)
        >>> x.detach()
        tensor([1., 1.])
        """
        cdef array_t *own = self.array
        cdef Tensor tensor = wrap_view(array_view(own, own.dtype, own.ndim, own.shape, own.strides, 0), self)
        tensor.view_kind = NOT_A_VIEW
        tensor.untracked = DETACHED if requires_grad(self) else NO_REASON
        tensor.base = None
        return tensor

    @cython.critical_section             # several fields change one after the other
    def detach_(self):
        """Remove this tensor from the graph in place: it becomes a leaf that does not require grad."""
        if self.base is not None:
            raise RuntimeError("detach_: cannot detach a view in place, because its base has a history. Use "
                               "detach().")
        cdef array_t *own = self.array
        cdef array_t *view
        data_escapes()
        if self.node is not None:
            # Nodes that have saved it find the mark in its array.
            view = array_view(own, own.dtype, own.ndim, own.shape, own.strides, 0)
            if view == NULL:
                check(MEMORY_ERROR)
            own.detached = True
            replace_array(self, view)
        if self.dual_level:
            protocol.forget_tangent(self)
        set_node(self, None, 0)
        self.leaf_requires_grad = False
        self.untracked = DETACHED_IN_PLACE
        _note_requirement(self)
        return self

    @property
    def data(self):
        """A view outside the graph, with a new version counter.

        Examples
        --------
        >>> x = cygrad.ones(2, requires_grad=True)
        >>> x.data -= 1
        >>> x
        tensor([0., 0.], requires_grad=True)
        """
        cdef Tensor tensor = self.detach()
        tensor.untracked = DATA
        if tensor.array.version != NULL:
            if replace_version(tensor.array, version_new()) != OK:
                raise MemoryError("data: no memory for a version counter")
        return tensor

    @data.setter
    @cython.critical_section             # no in-place operation of another thread runs between check and change
    def data(self, value):
        cdef Tensor source
        if not isinstance(value, Tensor):
            raise TypeError(f"data: can only be set to a Tensor (got {_type_of(value)}).")
        source = <Tensor>value
        if (is_meta(source.array) or is_meta(self.array)) and _is_sparse(source) != _is_sparse(self):
            raise RuntimeError(f"data: incompatible tensor type (got a {'sparse' if _is_sparse(source) else 'dense'} "
                               f"tensor, expected a {'sparse' if _is_sparse(self) else 'dense'} one). Convert it with "
                               "to_sparse() or to_dense().")
        if requires_grad(self) and not is_differentiable(source.array.dtype):
            raise RuntimeError("data: the elements of a tensor that requires grad must be floating point or complex "
                               f"dtype (got a {describe(source)}).")
        if self.node is not None and not (source.array.dtype == self.array.dtype
                                          and same_shape(source.array, self.array)):
            grad_fn_of(self).ensure_hooks().fitted.setdefault(self.output_nr, _made(array_meta(self.array)))
        adopt(self, source, True)

    @data.deleter
    def data(self):
        raise RuntimeError("data: cannot be deleted. Delete the tensor, or set it to an empty one.")

    # ----------------------------------------------------------------------------------------------- number protocol

    def __add__(self, other):
        return protocol.binary(SLOT_ADD, self, other)

    def __radd__(self, other):
        return protocol.binary(SLOT_ADD, other, self)

    def __iadd__(self, other):
        return protocol.inplace(SLOT_ADD, self, other)

    def __sub__(self, other):
        return protocol.binary(SLOT_SUB, self, other)

    def __rsub__(self, other):
        return protocol.binary(SLOT_SUB, other, self)

    def __isub__(self, other):
        return protocol.inplace(SLOT_SUB, self, other)

    def __mul__(self, other):
        return protocol.binary(SLOT_MUL, self, other)

    def __rmul__(self, other):
        return protocol.binary(SLOT_MUL, other, self)

    def __imul__(self, other):
        return protocol.inplace(SLOT_MUL, self, other)

    def __truediv__(self, other):
        return protocol.binary(SLOT_DIV, self, other)

    def __rtruediv__(self, other):
        return protocol.binary(SLOT_DIV, other, self)

    def __itruediv__(self, other):
        return protocol.inplace(SLOT_DIV, self, other)

    def __floordiv__(self, other):
        return protocol.binary(SLOT_FLOOR_DIV, self, other)

    def __rfloordiv__(self, other):
        return protocol.binary(SLOT_FLOOR_DIV, other, self)

    def __ifloordiv__(self, other):
        return protocol.inplace(SLOT_FLOOR_DIV, self, other)

    def __mod__(self, other):
        return protocol.binary(SLOT_REMAINDER, self, other)

    def __rmod__(self, other):
        return protocol.binary(SLOT_REMAINDER, other, self)

    def __imod__(self, other):
        return protocol.inplace(SLOT_REMAINDER, self, other)

    def __pow__(self, other, modulo):
        return NotImplemented if modulo is not None else protocol.binary(SLOT_POW, self, other)

    def __rpow__(self, other, modulo):
        return NotImplemented if modulo is not None else protocol.binary(SLOT_POW, other, self)

    def __ipow__(self, other):
        return protocol.inplace(SLOT_POW, self, other)

    def __matmul__(self, other):
        return protocol.binary(SLOT_MATMUL, self, other)

    def __rmatmul__(self, other):
        return protocol.binary(SLOT_MATMUL, other, self)

    def __and__(self, other):
        return protocol.binary(SLOT_AND, self, other)

    def __rand__(self, other):
        return protocol.binary(SLOT_AND, other, self)

    def __iand__(self, other):
        return protocol.inplace(SLOT_AND, self, other)

    def __or__(self, other):
        return protocol.binary(SLOT_OR, self, other)

    def __ror__(self, other):
        return protocol.binary(SLOT_OR, other, self)

    def __ior__(self, other):
        return protocol.inplace(SLOT_OR, self, other)

    def __xor__(self, other):
        return protocol.binary(SLOT_XOR, self, other)

    def __rxor__(self, other):
        return protocol.binary(SLOT_XOR, other, self)

    def __ixor__(self, other):
        return protocol.inplace(SLOT_XOR, self, other)

    def __lshift__(self, other):
        return protocol.binary(SLOT_LSHIFT, self, other)

    def __rlshift__(self, other):
        return protocol.binary(SLOT_LSHIFT, other, self)

    def __ilshift__(self, other):
        return protocol.inplace(SLOT_LSHIFT, self, other)

    def __rshift__(self, other):
        return protocol.binary(SLOT_RSHIFT, self, other)

    def __rrshift__(self, other):
        return protocol.binary(SLOT_RSHIFT, other, self)

    def __irshift__(self, other):
        return protocol.inplace(SLOT_RSHIFT, self, other)

    def __neg__(self):
        return protocol.unary(SLOT_NEG, self)

    def __pos__(self):
        return self

    def __abs__(self):
        return protocol.unary(SLOT_ABS, self)

    def __invert__(self):
        return protocol.unary(SLOT_INVERT, self)

    def __richcmp__(self, other, int comparison):
        return protocol.binary(_comparisons[comparison], self, other)

    # Conversions to Python are functions of cygrad/conversion.py and printing.py.

    def __repr__(self):
        return _slot_functions["__repr__"](self)

    def __bool__(self):
        return _slot_functions["__bool__"](self)

    def __int__(self):
        return _slot_functions["__int__"](self)

    def __float__(self):
        return _slot_functions["__float__"](self)

    def __index__(self):
        return _slot_functions["__index__"](self)

    def __iter__(self):
        return _slot_functions["__iter__"](self)

    def __contains__(self, element):
        return _slot_functions["__contains__"](self, element)

    def __getbuffer__(self, Py_buffer *buffer, int flags):
        PyObject_GetBuffer(_slot_functions["__buffer__"](self), buffer, flags)

    def __hash__(self):
        if thread_state().modes & 1 << TRACING_MODE:
            _slot_functions["__hash__"](self)
        return <Py_ssize_t>(<size_t><void *>self >> 4)

    def __getitem__(self, key):
        return protocol.getitem(self, key)

    def __setitem__(self, key, value):
        protocol.setitem(self, key, value)

    def __delitem__(self, key):
        raise TypeError("a Tensor does not support deleting items (got del). Select the other items, for example with "
                        "x[mask].")


cdef dict _slot_functions = dict.fromkeys((
    "__init__", "__repr__", "__bool__", "__int__", "__float__", "__index__", "__iter__", "__contains__",
    "__buffer__", "__hash__"))

cdef int[6] _comparisons = [SLOT_LT, SLOT_LE, SLOT_EQ, SLOT_NE, SLOT_GT, SLOT_GE]      # in the order of Py_LT ... Py_GE


cdef Tensor as_tensor(object value, str operation):
    if isinstance(value, Tensor):
        return <Tensor>value
    if protocol.convert == NULL:
        raise TypeError(f"{operation}: expected a Tensor (got {type(value).__name__}).")
    return protocol.convert(value, operation)


cdef dict provided = {}


def provide(**functions):
    """Give the core functions and classes of the Python layers, by the names that `provided` lists."""
    provided.update(functions)
    cls = provided.get("plain_subclass")
    protocol.plain_subclass = <PyObject *>cls


def install(attributes):
    """Add functions, properties and other descriptors to the Tensor type, by their names."""
    cdef dict namespace = <dict>(<_Type *>Tensor).tp_dict
    for name, attribute in attributes.items():
        if name in _slot_functions:           # the type has a C slot for it, which calls the function
            _slot_functions[name] = attribute
        else:
            namespace[name] = attribute
            if isinstance(attribute, property):
                attribute.__set_name__(Tensor, name)           # for messages
    PyType_Modified(Tensor)


# ----------------------------------------------------------------------------------------------------------------- meta

# Tensors of the meta device: shape and dtype without memory.
#
# All such arrays share one zero as their only element: every stride is 0. So operations read valid memory and raise the
# usual errors. Their computed results are discarded and replaced by arrays of this kind.

cdef char[16] _zero
cdef object _owner = object()
any_meta = any_unusual = False
meta_owner = <void *>_owner


cdef void note_unusual() noexcept:
    global any_unusual
    any_unusual = True


cdef array_t *meta_array(int dtype, int ndim, const int64_t *shape):
    global any_meta, any_unusual
    cdef int64_t[MAX_DIMS] strides
    cdef storage_t *storage = storage_foreign(_zero, sizeof(_zero), _owner, False)
    cdef array_t *array
    cdef int i
    if storage == NULL:
        return NULL
    storage.size_class = NO_ELEMENTS
    for i in range(ndim):
        strides[i] = 0
    array = array_over(storage, dtype, ndim, shape, strides, 0)
    if array == NULL:
        storage_release(storage)
        return NULL
    any_meta = any_unusual = True
    return array


cdef Tensor without_elements(Tensor tensor):
    if is_meta(tensor.array):
        return tensor
    return wrap(meta_array(tensor.array.dtype, tensor.array.ndim, tensor.array.shape))


cdef bint any_is_meta(int n, const value_t *values) noexcept:
    cdef int i, j
    for i in range(n):
        if values[i].kind == ARRAY and is_meta(values[i].of.array):
            return True
        if values[i].kind == ARRAYS:
            for j in range(values[i].count):
                if values[i].of.arrays[j] != NULL and is_meta(values[i].of.arrays[j]):
                    return True
    return False


cdef int _forget(array_t **array) except -1:
    cdef array_t *made
    if array[0] == NULL or is_meta(array[0]):
        return 0
    made = meta_array(array[0].dtype, array[0].ndim, array[0].shape)
    if made == NULL:
        check(MEMORY_ERROR)
    release(array[0])
    array[0] = made
    return 0


cdef int forget_elements(int n, value_t *results) except -1:
    cdef int i, j
    for i in range(n):
        if results[i].kind == ARRAY:
            _forget(&results[i].of.array)
        elif results[i].kind == ARRAYS:
            for j in range(results[i].count):
                _forget(&results[i].of.arrays[j])
    return 0


cdef int check_elements(const array_t *array, str operation) except -1:
    if is_meta(array):
        raise NotImplementedError(f"{operation}: a tensor of device 'meta' has no elements. Allocate it with "
                                  "to_empty(device='cpu') of its module, or empty_like(x, device='cpu').")
    return 0


# ---------------------------------------------------------------------------------------------------------- kept memory

# Memory that nodes save for backward, as storages.

cdef int _add(dict storages, const array_t *array) except -1:
    if array != NULL and array.storage != NULL:
        storages[<size_t>array.storage] = array.storage.nbytes
    return 0


cdef int _add_saved(dict storages, node_t *c) except -1:
    cdef const value_t *value
    cdef int i, j
    lock(&c.lock)                # another thread's backward may release them; no foreign code runs below
    try:
        for i in range(c.n_saved):
            value = &c.saved[i].value
            if value.kind == ARRAY:
                _add(storages, value.of.array)
            elif value.kind == ARRAYS:
                for j in range(value.count):
                    _add(storages, value.of.arrays[j])
    finally:
        unlock(&c.lock)
    return 0


def kept(Node node not None):
    """
    Return the storages that a node saves for backward.

    Values packed by saved-tensor hooks are not included.

    Parameters
    ----------
    node : Node

    Returns
    -------
    dict
        From an identity of each storage to its bytes.
    """
    cdef dict storages = {}
    _add_saved(storages, node.c)
    if node.c.inner != NULL:     # the node of a slice that was modified in place: the payload keeps it alive
        _add_saved(storages, node.c.inner)
    return storages


def checked_freedom(str operation, double correction, input, Tensor result not None):
    """Return a variance or deviation of a tensor or array; warn if `correction` leaves no degrees of freedom."""
    cdef int64_t size = (<Tensor>input).array.size if isinstance(input, Tensor) else input.size
    if result.array.size and size <= correction * result.array.size:
        warn_user(f"{operation}: degrees of freedom is <= 0 (got shape {tuple(input.shape)} for results of shape "
                  f"{result.shape}, and correction={correction}). The result is nan or inf.")
    return result


def storage_of(Tensor tensor not None):
    """
    The identity of a tensor's storage, as in `kept`.

    Parameters
    ----------
    tensor : Tensor

    Returns
    -------
    int
    """
    return <size_t>tensor.array.storage
