"""
The node of a custom function, which is the ``ctx`` of its methods.

Attributes set in forward are there in backward. A saved tensor is stored as its array and its edge, like those of other
nodes: neither inputs nor outputs are kept alive as objects, and there is no reference cycle.
"""

cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint32_t
from cygrad._core.arrays.array cimport array_empty_like, array_t, release, retain, same_shape, shape_text
from cygrad._core.arrays.dtype cimport dtype_name, is_complex, is_floating
from cygrad._core.arrays.value cimport ARRAY, INTEGER, clear, value_t
from cygrad._core.elementwise.elementwise cimport fill
from cygrad._core.graph.backward_calls cimport freed_error, note_release
from cygrad._core.graph.inplace cimport attach_result, is_inplace_view
from cygrad._core.graph.modes cimport thread_state
from cygrad._core.graph.native cimport fit_recorded
from cygrad._core.graph.node cimport HAS_PACKED_TENSORS, Node, kept_t, node_t, release_saved
from cygrad._core.graph.saved cimport PackedTensor, alias, attach, attach_edge, pack_tensor
from cygrad._core.graph.tensor cimport Tensor, protocol, provided, requires_grad, wrap
from cygrad._core.graph.tensor_identity cimport known_tensor
from cygrad._core.graph.version_errors cimport version_error
from cygrad._core.memory.atomic cimport atomic_load, lock, unlock
from cygrad._core.memory.errors cimport MEMORY_ERROR, check
from cygrad._core.memory.storage cimport deallocate

from cygrad._core.graph.saved import saved_tensor
from cygrad._core.graph.user_warnings import warn_user


cdef extern from "Python.h":
    void PyType_Modified(type)
    ctypedef struct _Type "PyTypeObject":
        PyObject *tp_dict
        object (*tp_new)(_Type *, object, PyObject *)


@cython.binding(False)      # methods check the type of self
cdef class FunctionNode(Node):
    """The node of a custom function: the ``ctx`` of its static methods."""

    def __cinit__(self):
        self.materialize = True

    def __init__(self, *arguments, **options):
        raise TypeError(f"{type(self).__name__}: nodes are created by apply() of a custom Function; the type cannot "
                        "be called.")

    def __dealloc__(self):
        cdef int i
        if self.c == NULL:
            return
        _forget_saved(self)
        for i in range(self.n_known):
            release(self.outputs[i])
        if self.outputs != NULL:
            deallocate(self.outputs, self.n_known * sizeof(array_t *))
        if self.edges_of != NULL:
            deallocate(self.edges_of, self.n_arguments * sizeof(int32_t))

    # -------------------------------------------------------------------------------------------- what forward may call

    def save_for_backward(self, *tensors):
        """
        Save tensors for backward, which finds them as ``ctx.saved_tensors``.

        Inputs and outputs should be kept like this, not as attributes: it makes no reference cycle, detects in-place
        changes, and obeys saved-tensor hooks. To be called once, in forward or setup_context.

        Parameters
        ----------
        *tensors : Tensor or None
        """
        self.to_save = tensors

    def save_for_forward(self, *tensors):
        """
        Save tensors for `jvp`.

        Parameters
        ----------
        *tensors : Tensor or None
        """
        for position, tensor in enumerate(tensors):
            if tensor is not None and not isinstance(tensor, Tensor):
                raise TypeError(f"save_for_forward: can only save Tensors and None (got {type(tensor).__name__} at "
                                f"position {position}). Put other things into attributes of ctx.")
        self.saved_for_forward = tensors

    def mark_dirty(self, *tensors):
        """
        Mark inputs that forward modifies in place; each must be returned as an output.

        Parameters
        ----------
        *tensors : Tensor
        """
        self.dirty = tensors

    def mark_non_differentiable(self, *tensors):
        """
        Mark outputs that are not differentiable.

        Parameters
        ----------
        *tensors : Tensor
        """
        for tensor in tensors:
            if not isinstance(tensor, Tensor):
                raise RuntimeError(f"mark_non_differentiable: expected Tensors (got {type(tensor).__name__}). Outputs "
                                   "that are no Tensors carry no gradient anyway.")
        self.constants = tensors

    def set_materialize_grads(self, value):
        """
        Set whether backward gets zeros (the default) or None for outputs without a gradient.

        Parameters
        ----------
        value : bool
        """
        self.materialize = value

    @property
    def materialize_grads(self):
        """Whether backward gets zeros for outputs without a gradient."""
        return bool(self.materialize)

    @materialize_grads.setter
    def materialize_grads(self, value):
        self.materialize = value

    # ------------------------------------------------------------------------------------------------- what is saved

    @property
    def saved_tensors(self):
        """The tensors of `save_for_backward`, a tuple; in jvp those of `save_for_forward`, if any."""
        cdef int i
        if self.saved_for_forward is not None:
            return self.saved_for_forward
        if self.c.released:
            check(freed_error(self.c))
        return tuple([self.unpack(i) for i in range(self.c.n_saved)])

    @property
    def saved_variables(self):
        """Former name of `saved_tensors`."""
        warn_user("saved_variables is deprecated; use saved_tensors.", DeprecationWarning)
        return self.saved_tensors

    @property
    def _raw_saved_tensors(self):
        """The saved tensors as `SavedTensor` objects, which take hooks."""
        cdef int i
        if self.c.released:
            return self.saved_tensors        # raises
        return tuple([saved_tensor(self, i) for i in range(self.c.n_saved)])

    cdef object unpack(self, int position):
        cdef object value = self.unpack_plain(position)
        # Restore the tangent that it had, if the thread is still in that level of forward mode.
        if self.payload is not None and thread_state().dual_level and value is not None:
            level, tangents = self.payload
            if level == thread_state().dual_level and tangents[position] is not None:
                protocol.attach_tangents(value, tangents[position])
        return value

    cdef object unpack_plain(self, int position):
        cdef array_t *array
        cdef int32_t origin
        cdef Tensor tensor
        if self.packed is not None and self.packed[position] is not None:
            tensor = (<PackedTensor>self.packed[position]).unpack_raw()
            origin = self.origins[position]
            if not requires_grad(tensor) and (
                    origin == CONSTANT or 0 <= origin < OUTPUT and self.c.edges[origin].node == NULL):
                return tensor                # the saved tensor was outside the graph, too
            return self.placed(alias(tensor.array), position)
        array = _borrow_saved(self, position)
        if array == NULL:
            return None
        try:
            return self.known(array, position)
        finally:
            release(array)

    cdef object known(self, array_t *array, int position):
        """Return a saved tensor as the user's Tensor object: itself, or its twin."""
        cdef node_t *c = self.c
        cdef int32_t origin = self.origins[position]
        cdef Tensor tensor
        if origin == OBJECT and self.objects is not None:
            return self.objects[position]
        tensor = known_tensor(array)
        if tensor is not None and (is_inplace_view(tensor, c) if origin >= OUTPUT
                                   else origin < 0 or _is_at(tensor, c, origin)):
            return tensor
        return self.placed(alias(array), position)

    cdef Tensor placed(self, Tensor tensor, int position):
        cdef int32_t origin = self.origins[position]
        if origin == OBJECT:
            node, output_nr = self.objects[position]
            attach(tensor, node, output_nr)
        elif origin >= OUTPUT:
            attach_result(tensor, self, origin - OUTPUT)
        elif origin >= 0:
            attach_edge(tensor, &self.c.edges[origin])
        return tensor

    def _unpack(self, int position):
        """Return the saved object at `position`."""
        if self.c.released:
            return self.saved_tensors        # raises
        return self.unpack(position)

    def _pack(self, int position, pack, unpack):
        """Replace the saved object at `position` by what the pack hook returns."""
        cdef array_t *array
        if self.packed is not None and self.packed[position] is not None:
            raise RuntimeError(f"register_hooks: hooks are registered already (got a second pair for what "
                               f"{self.name()} "
                               "saved, expected one).")
        if self.c.released:
            raise RuntimeError(f"register_hooks: {self.name()} has released what it saved. Register the hooks before "
                               "backward, or call backward with retain_graph=True.")
        array = _borrow_saved(self, position)
        if array == NULL:
            raise RuntimeError(f"register_hooks: {self.name()} has saved no tensor at position {position} (got None).")
        try:
            self.set_packed(position, pack_tensor(self, str(position), alias(array), pack, unpack))
        finally:
            release(array)
        lock(&self.c.lock)
        clear(&self.c.saved[position].value)
        unlock(&self.c.lock)

    cdef int set_packed(self, int position, object packed) except -1:
        if self.packed is None:
            self.packed = [None] * self.c.n_saved
        self.packed[position] = packed
        self.c.python |= HAS_PACKED_TENSORS
        return 0

    # ------------------------------------------------------------------------------------------------------- backward

    cdef list apply(self, list grads, bint keep, bint recorded, uint32_t wanted):
        cdef int i
        if self.materialize and self.outputs != NULL:
            grads = list(grads)              # hooks that run after this see the incoming gradients
            for i in range(self.n_known):
                if grads[i] is None and self.outputs[i] != NULL:
                    grads[i] = _zeros(self.outputs[i])
        cdef list gradients = _checked(self, _backward_of(type(self)._forward_cls)(self, *grads))
        if not keep and self.c.n_saved:
            release_saved(self.c)
            note_release(self.c)
            self.packed = None
            self.objects = None
        return gradients


cdef object (*_bare_new)(_Type *, object, PyObject *)
_bare_new = (<_Type *>FunctionNode).tp_new
# A node without its C block is useless, so it cannot be created from Python.
(<dict>(<_Type *>FunctionNode).tp_dict)["__new__"] = Node.__dict__["__new__"]
PyType_Modified(FunctionNode)


def function_node_type(function):
    """
    Return the type of the nodes of a custom function.

    Parameters
    ----------
    function : type
        A subclass of `Function`.

    Returns
    -------
    type
        A subclass of `FunctionNode`, ``<Name>Backward``.
    """
    cdef type made = type(function.__name__ + "Backward", (FunctionNode,), {
        "__doc__": f"A node of the custom function {function.__name__}.", "__module__": function.__module__,
        "_forward_cls": function})
    (<_Type *>made).tp_new = _bare_new          # for node_new
    return made


cdef int _forget_saved(FunctionNode node) noexcept:
    cdef node_t *c = node.c
    cdef int64_t nbytes = c.n_saved * (sizeof(kept_t) + sizeof(int32_t))
    if node.origins == NULL:
        return 0
    release_saved(c)
    deallocate(c.saved, nbytes)
    node.origins = NULL
    c.saved = NULL
    c.n_saved = 0
    return 0


# ------------------------------------------------------------------------------------------------------------ backward

cdef object _backward_of(cls):
    """The function that the user has written: `backward`, or `vjp` by its other name."""
    backward, vjp, default = cls.backward, cls.vjp, provided["function_backward"]
    if vjp is default:
        return backward
    if backward is not default:
        raise RuntimeError(f"{cls.__name__}: both 'backward' and 'vjp' are implemented for a custom Function (got two, "
                           "expected one). Define one of them.")
    return vjp


cdef bint _is_at(Tensor tensor, const node_t *c, int edge):
    """Does the edge still belong to the tensor? Not after detach_(), for example."""
    cdef const node_t *target = c.edges[edge].node
    if target == NULL:
        return not requires_grad(tensor)
    if tensor.node is None:
        return tensor.leaf_requires_grad and tensor.gradient != NULL and tensor.gradient.accumulator == target
    return tensor.node.c == target and tensor.output_nr == c.edges[edge].input_nr


cdef array_t *_borrow_saved(FunctionNode node, int position) except? NULL:
    """Return a saved array, retained, because another thread's backward may release it; NULL for None."""
    cdef kept_t *kept = &node.c.saved[position]
    cdef array_t *array = NULL
    cdef int64_t version
    cdef bint released
    lock(&node.c.lock)
    released = node.c.released
    version = kept.version
    if not released and kept.value.kind == ARRAY:
        array = retain(kept.value.of.array)
    unlock(&node.c.lock)
    if released:
        check(freed_error(node.c))
    if array != NULL and atomic_load(&array.version.value) != version:
        try:
            _raise_version_error(node, position, array, version)
        finally:
            release(array)
    return array


cdef int _raise_version_error(FunctionNode node, int position, array_t *array, int64_t version) except -1:
    cdef node_t *c = node.c
    cdef int32_t origin = node.origins[position]
    cdef bytes operation = node.name().encode(), name = f"saved_tensors[{position}]".encode()
    if origin >= OUTPUT:
        return check(version_error(operation, name, array, version, c, origin - OUTPUT))
    if origin >= 0:
        return check(version_error(operation, name, array, version, c.edges[origin].node, c.edges[origin].input_nr))
    return check(version_error(operation, name, array, version, NULL, 0))


cdef Tensor _zeros(array_t *meta):
    cdef array_t *array = array_empty_like(meta, -1)
    cdef value_t zero
    if array == NULL:
        check(MEMORY_ERROR)
    zero.kind = INTEGER
    zero.of.integer = 0
    check(fill(array, &zero))
    return wrap(array)


cdef list _checked(FunctionNode self, object results):
    """Check what backward returned; -> a gradient or None per edge, with the shape and dtype of its argument."""
    cdef node_t *c = self.c
    cdef list gradients = [None] * c.n_edges
    cdef Py_ssize_t i, given, expected = self.n_arguments
    cdef int32_t edge
    if not isinstance(results, tuple):
        results = (results,)
    given = len(<tuple>results)
    if given != expected and not (given > expected and all([result is None for result in results[expected:]])):
        raise RuntimeError(f"{self.name()}: backward returned an incorrect number of gradients (got {given}, expected "
                           f"{expected}). Return one for each argument of forward, None where there is none.")
    for i in range(expected):
        result = (<tuple>results)[i]
        if result is None:
            continue
        edge = self.edges_of[i]
        if edge < 0:
            raise RuntimeError(f"{self.name()}: backward returned a gradient different from None for an argument that "
                               f"is no Tensor (got {type(result).__name__} at position {i}, expected None).")
        if not isinstance(result, Tensor):
            raise RuntimeError(f"{self.name()}: backward must return Tensors and None (got {type(result).__name__} at "
                               f"position {i}, expected Tensor or None).")
        if c.edges[edge].node != NULL:
            gradients[edge] = _fitted(self, i, c.metas[edge], <Tensor>result)
    return gradients


cdef object _fitted(FunctionNode self, Py_ssize_t position, const array_t *meta, Tensor gradient):
    cdef const array_t *array = gradient.array
    cdef int i, extra
    cdef bint fits
    if array.dtype == meta.dtype and same_shape(array, meta):
        return gradient
    extra = array.ndim - meta.ndim
    fits = extra >= 0
    for i in range(meta.ndim):
        fits = fits and (meta.shape[i] == 1 or meta.shape[i] == array.shape[i + extra])
    if not fits:
        raise RuntimeError(f"{self.name()}: backward returned an invalid gradient (got shape "
                           f"{shape_text(array).decode()} at position {position}, expected one compatible with "
                           f"{shape_text(meta).decode()}).")
    if not is_floating(array.dtype) and is_complex(array.dtype) != is_complex(meta.dtype):
        raise RuntimeError(f"{self.name()}: backward returned a gradient of the wrong dtype (got "
                           f"{dtype_name(array.dtype).decode()} at position {position}, expected "
                           f"{dtype_name(meta.dtype).decode()}). A real input has a real gradient: take the real part.")
    return fit_recorded(meta, gradient)
