"""
Custom autograd functions: calling and recording them.

The node is created first, because forward writes to it; then forward runs with grad mode disabled; then the outputs are
connected to the graph, and the tensors of save_for_backward are saved.
"""

cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.string cimport memset
from cygrad._core.arrays.array cimport (
    ARRAY, INTEGER, array_empty_like, array_meta, array_t, array_view, clear, release, retain, same_shape, set_array,
    shape_text, value_t,
)
from cygrad._core.arrays.dtype cimport dtype_name, is_complex, is_differentiable, is_floating
from cygrad._core.dispatch.tangents cimport any_tangent, set_tangent, tangent_of
from cygrad._core.elementwise.elementwise cimport fill
from cygrad._core.graph.boxing cimport is_entry
from cygrad._core.graph.inplace cimport attach_result, bump_version, check_inplace, is_inplace_view, rebase_history
from cygrad._core.graph.modes cimport set_dual_level, thread_state, thread_state_t
from cygrad._core.graph.native cimport fit_recorded, set_meta
from cygrad._core.graph.node cimport (
    HAS_PACKED_TENSORS, HAS_PYTHON_BACKWARD, Node, freed_error, kept_t, node_new, node_t, note_release, release_saved,
    set_edge, version_error,
)
from cygrad._core.graph.saved cimport (
    PackedTensor, SavedHooks, alias, attach, attach_edge, pack_tensor, saved_hooks, with_elements,
)
from cygrad._core.graph.tensor cimport (
    CUSTOM_VIEW, DIFFERENTIABLE_VIEW, MULTI_OUTPUT_VIEW, Tensor, any_meta, describe, grad_fn_of, gradient_edge,
    is_meta, known_tensor, protocol, provided, requires_grad, set_node, wrap, wrap_view,
)
from cygrad._core.graph.untracked_reason cimport CONSTANT_OUTPUT
from cygrad._core.graph.view_requirement cimport takes_part
from cygrad._core.memory.atomic cimport atomic_load, lock, unlock
from cygrad._core.memory.errors cimport MEMORY_ERROR, check
from cygrad._core.memory.storage cimport allocate, deallocate

from cygrad._core.creation.factories import zeros_like
from cygrad._core.dispatch.tangents import laid_out, paused
from cygrad._core.graph.boxing import call_override
from cygrad._core.graph.saved import saved_tensor
from cygrad._core.graph.user_warnings import warn_user


# -------------------------------------------------------------------------------------------------------- function node

# The node of a custom function, which is the ``ctx`` of its methods.
#
# Attributes set in forward are there in backward. A saved tensor is stored as its array and its edge, like those of
# other nodes: neither inputs nor outputs are kept alive as objects, and there is no reference cycle.

cdef extern from "Python.h":
    void PyType_Modified(type)
    ctypedef struct _Type "PyTypeObject":
        PyObject *tp_dict
        object (*tp_new)(_Type *, object, PyObject *)


@cython.binding(False)      # methods check the type of self
cdef class FunctionNode(Node):
    """The node of a custom function: the ``ctx`` of its static methods.

    Examples
    --------
    >>> class Square(cygrad.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x
    ...
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         x, = ctx.saved_tensors
    ...         return 2 * x * grad
    >>> x = cygrad.tensor(3.0, requires_grad=True)
    >>> cygrad.autograd.grad(Square.apply(x), x)
    (tensor(6.),)
    """

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
        Save tensors for backward, as ``ctx.saved_tensors``.

        Save inputs and outputs like this, not as attributes, to avoid reference cycles, detect in-place modifications,
        and apply saved-tensor hooks. Call it once, in forward or setup_context.

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
                                f"position {position}). Store other values in attributes of ctx.")
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
                raise RuntimeError(f"mark_non_differentiable: expected Tensors (got {type(tensor).__name__}). Other "
                                   "outputs never have a gradient.")
        self.constants = tensors

    def set_materialize_grads(self, value):
        """
        Set whether backward receives zeros (the default) or None for outputs without a gradient.

        Parameters
        ----------
        value : bool
        """
        self.materialize = value

    @property
    def materialize_grads(self):
        """Whether backward receives zeros for outputs without a gradient."""
        return bool(self.materialize)

    @materialize_grads.setter
    def materialize_grads(self, value):
        self.materialize = value

    # -------------------------------------------------------------------------------------------------- saved tensors

    @property
    def saved_tensors(self):
        """The tensors of `save_for_backward`, a tuple; in jvp those of `save_for_forward`."""
        cdef int i
        if self.saved_for_forward is not None:
            return self.saved_for_forward
        if self.c.released:
            if self.clears:
                raise RuntimeError(f"{self.name()}: saved_tensors can only be accessed once if "
                                   "clear_saved_tensors_on_access is set. Store them in variables.")
            check(freed_error(self.c))
        tensors = tuple([self.unpack(i) for i in range(self.c.n_saved)])
        if self.clears:
            _release(self)
        return tensors

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
            return self.placed(alias(with_elements(tensor).array), position)
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

    def _packed(self, int position):
        """Return the `PackedTensor` at `position`, or None."""
        return None if self.packed is None else self.packed[position]

    def _pack(self, int position, pack, unpack):
        """Replace the saved object at `position` by what the pack hook returns."""
        cdef array_t *array
        if self.packed is not None and self.packed[position] is not None:
            raise RuntimeError(f"register_hooks: hooks have already been set for a value saved by {self.name()} (got a "
                               "second pair).")
        if self.c.released:
            raise RuntimeError(f"register_hooks: {self.name()} called on a saved tensor after it has been freed. "
                               "Register hooks before backward, or call backward with retain_graph=True.")
        array = _borrow_saved(self, position)
        if array == NULL:
            raise RuntimeError(f"register_hooks: {self.name()} has saved no tensor at position {position}: registering "
                               "hooks on None is forbidden.")
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
        self.keeps = keep
        function = type(self)._forward_cls
        self.clears = not keep and function.clear_saved_tensors_on_access
        cdef list gradients = _checked(self, _backward_of(function)(self, *grads), grads)
        if not keep and self.c.n_saved:
            _release(self)
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
    cdef type made = type(getattr(function, "_node_name", function.__name__ + "Backward"), (FunctionNode,), {
        "__doc__": f"A node of the custom function {function.__name__}.", "__module__": function.__module__,
        "_forward_cls": function})
    (<_Type *>made).tp_new = _bare_new          # for node_new
    return made


cdef int _release(FunctionNode node) except -1:
    release_saved(node.c)
    note_release(node.c)
    node.packed = None
    node.objects = None
    return 0


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
    """Return the user-defined function: `backward`, or its other name `vjp`."""
    backward, vjp, default = cls.backward, cls.vjp, provided["function_backward"]
    if vjp is default:
        return backward
    if backward is not default:
        raise RuntimeError(f"{cls.__name__}: Implementing both 'backward' and 'vjp' for a custom Function is not "
                           "allowed. Define one of them.")
    return vjp


cdef bint _is_at(Tensor tensor, const node_t *c, int edge):
    """Return whether the edge still belongs to the tensor; False after detach_(), for example."""
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


cdef list _checked(FunctionNode self, object results, list grads):
    """Check the result of backward; return a gradient or None per edge, with the shape and dtype of its argument."""
    cdef node_t *c = self.c
    cdef list gradients = [None] * c.n_edges
    cdef Py_ssize_t i, given, expected = self.n_arguments
    cdef int32_t edge
    if not isinstance(results, tuple):
        results = (results,)
    given = len(<tuple>results)
    if given != expected and not (given > expected and all([result is None for result in results[expected:]])):
        raise RuntimeError(f"{self.name()}: backward returned an incorrect number of gradients (expected {expected}, "
                           f"got {given}). Return one for each argument of forward, None where there is none.")
    for i in range(expected):
        result = (<tuple>results)[i]
        if result is None:
            continue
        edge = self.edges_of[i]
        if edge < 0:
            raise RuntimeError(f"{self.name()}: backward returned a gradient different from None for an argument that "
                               f"is not a Tensor (got {type(result).__name__} at position {i}, expected None).")
        if not isinstance(result, Tensor):
            raise RuntimeError(f"{self.name()}: backward must return Tensors and None: expected Variable or None (got "
                               f"{type(result).__name__} at position {i}).")
        if c.edges[edge].node != NULL:
            if is_meta((<Tensor>result).array) and any([grad is not None and not is_meta((<Tensor>grad).array)
                                                        for grad in grads]):
                if hasattr(result, "as_gradient"):
                    result = result.as_gradient(<object>c.edges[edge].node.object)       # sparse
                elif not is_entry(result):
                    raise RuntimeError(f"{self.name()}: backward returned a gradient on another device (got meta at "
                                       f"position {i}, expected cpu).")
            gradients[edge] = None if result is None else _fitted(self, i, c.metas[edge], <Tensor>result)
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
                           f"{shape_text(array).decode()} at position {position}, expected shape compatible with "
                           f"{shape_text(meta).decode()}).")
    if not is_floating(array.dtype) and is_complex(array.dtype) != is_complex(meta.dtype):
        raise RuntimeError(f"{self.name()}: backward returned a gradient of the wrong dtype (got "
                           f"{dtype_name(array.dtype).decode()} at position {position}, expected "
                           f"{dtype_name(meta.dtype).decode()}). Return the real part for a real input.")
    return fit_recorded(meta, gradient)


# ---------------------------------------------------------------------------------------------------- function tangents

# Forward mode through custom functions: their `jvp` maps tangents of the arguments to tangents of the outputs.

cdef int push_custom(FunctionNode node, object function, tuple arguments, object computed, object outputs,
                     tuple saved) except -1:
    cdef list tangents = [tangent_of(<Tensor>argument) if isinstance(argument, Tensor) else None
                          for argument in arguments]
    cdef tuple results = outputs if isinstance(outputs, tuple) else (outputs,)
    cdef list known
    cdef Tensor tensor, own
    if not any_tangent(tangents):
        return 0
    known = [tangent_of(<Tensor>item) if isinstance(item, Tensor) else None for item in saved or ()]
    cdef list given = _given(node, arguments, tangents)
    cdef list versions = [tangent._version if isinstance(tangent, Tensor) else None for tangent in given]
    if node.saved_for_forward is None:
        node.saved_for_forward = ()
    with paused():
        pushed = function.jvp(node, *given)
    pushed = _checked_tangents(node, pushed, results)
    for output, tangent in zip(results, pushed):
        for argument, own_tangent, handed, version in zip(arguments, tangents, given, versions):
            if own_tangent is not None and tangent is not None:
                _check_memory(node, <Tensor>output, <Tensor>tangent, <Tensor>argument, <Tensor>handed, version)
    for output, tangent in zip(results, pushed):
        if tangent is None:
            continue
        tensor = <Tensor>output
        own = tangent_of(tensor)
        if own is None:
            set_tangent(tensor, tangent)
        else:                              # modified in place: views of the tensor have views of its tangent
            with paused():
                own.copy_(tangent)
    # A backward in this level uses the tangents of the saved tensors.
    for i, item in enumerate(saved or ()):
        for before, after in zip(computed if isinstance(computed, tuple) else (computed,), results):
            if item is before and item is not None:
                known[i] = tangent_of(<Tensor>after)
    if any_tangent(known):
        node.payload = (thread_state().dual_level, known)
    return 0


cdef int _check_memory(FunctionNode node, Tensor output, Tensor tangent, Tensor argument, Tensor given,
                       object version) except -1:
    """Check that the tangent of an output that shares memory with an argument shares the memory of its tangent."""
    if output is argument:
        if tangent is not given or tangent._version == version:
            raise RuntimeError(f"{node.name()}: the inplace custom Function is not modifying the forward mode "
                               f"gradients inplace: its jvp function must modify the corresponding gradient inplace "
                               f"and return it (got "
                               f"{'it unchanged' if tangent is given else 'a new tangent'}).")
    elif (output.base is not None and output.base is (argument if argument.base is None else argument.base)
            and (tangent.base is None or tangent.base is not (given if given.base is None else given.base))):
        raise RuntimeError(f"{node.name()}: A custom Function's forward is returning a view (or an input as-is) but "
                           "its jvp is not returning a view of the given tangent (got one with separate memory). "
                           "Return tangent.view_as(tangent), or the view that forward returns.")
    return 0


cdef list _given(FunctionNode node, tuple arguments, list tangents):
    """Return the arguments of jvp: zeros for tensors without a tangent, or None without materialize_grads."""
    cdef list given = []
    for argument, tangent in zip(arguments, tangents):
        if (tangent is None and node.materialize and isinstance(argument, Tensor)
                and is_differentiable((<Tensor>argument).array.dtype)):
            with paused():
                tangent = zeros_like(argument)
        given.append(tangent)
    return given


cdef list _checked_tangents(FunctionNode node, object pushed, tuple results):
    """Check the result of jvp; return a tangent or None per output, with its layout."""
    cdef tuple found = pushed if isinstance(pushed, tuple) else (pushed,)
    cdef list checked = []
    if len(found) != len(results):
        raise RuntimeError(f"{node.name()}: jvp returned an invalid number of forward gradients (expected "
                           f"{len(results)} but got {len(found)}). Return one for each output of forward, or None.")
    for number, (output, tangent) in enumerate(zip(results, found)):
        if tangent is None:
            checked.append(None)
            continue
        if not isinstance(tangent, Tensor):
            raise TypeError(f"{node.name()}: jvp must return Tensors or None (got {type(tangent).__name__} for output "
                            f"{number}).")
        if not isinstance(output, Tensor) or not is_differentiable((<Tensor>output).array.dtype):
            raise RuntimeError(f"{node.name()}: jvp returned a tangent for output {number}, which has no derivative "
                               f"(got a {describe(<Tensor>tangent)} for a {type(output).__name__}). You should return "
                               "None at that position instead.")
        if tangent.dtype != output.dtype or tangent.shape != output.shape:
            raise RuntimeError(f"{node.name()}: jvp must return tangents of the shape and dtype of the output (got a "
                               f"{describe(<Tensor>tangent)} for output {number}, expected a "
                               f"{describe(<Tensor>output)}).")
        with paused():
            if tangent.stride() != output.stride():
                tangent = laid_out(tangent, output)
        checked.append(tangent)
    return checked


# ------------------------------------------------------------------------------------------------------------- function

cdef tuple _nothing = ()


def apply(cls, arguments):
    """
    Run the forward of the custom function `cls` and record it.

    Parameters
    ----------
    cls : type
        A subclass of `Function`.
    arguments : tuple
        Arguments of forward, after ``ctx``.

    Returns
    -------
    Tensor, or the result of forward
    """
    cdef thread_state_t *state = thread_state()
    cdef int disabled = state.grad_disabled, dual_level = state.dual_level
    cdef tuple saved
    if any_meta:
        for argument in <tuple>arguments:
            if is_entry(argument):
                if getattr(type(argument), "_overrides_functions", True):
                    return call_override(cls.apply, arguments, arguments, {})
                if not disabled and argument.requires_grad:
                    raise RuntimeError(f"{cls.__name__}: custom Functions do not compute gradients of sparse tensors "
                                       "(got one that requires grad). Pass its values() or to_dense(), or detach() it.")
    cdef FunctionNode node = <FunctionNode>_node(cls._backward_cls, <tuple>arguments)
    cdef bint recorded = not disabled and True in node.needs_input_grad
    if recorded:
        _connect(node, <tuple>arguments)
    state.grad_disabled = 1
    set_dual_level(0)
    try:
        if cls.setup_context is provided["setup_context"]:
            results = cls.forward(node, *arguments)
        else:
            results = cls.forward(*arguments)
            cls.setup_context(node, arguments, results)
    finally:
        state.grad_disabled = disabled
        set_dual_level(dual_level)
    saved = node.to_save
    try:
        outputs = _finish(node, <tuple>arguments, results, recorded)
    finally:                                 # else outputs and node would be a reference cycle
        node.to_save = node.dirty = node.constants = None
    if dual_level:
        push_custom(node, cls, <tuple>arguments, results, outputs, saved)
    node.saved_for_forward = None
    return outputs


cdef FunctionNode _node(type cls, tuple arguments):
    """Create the node of a call: it has its arguments, but no edges yet."""
    cdef Py_ssize_t i, n = len(arguments)
    cdef int32_t n_edges = 0
    cdef FunctionNode node
    cdef int32_t *edges_of = NULL
    cdef list needs = []
    cdef Tensor tensor
    if n:
        edges_of = <int32_t *>allocate(n * sizeof(int32_t))
        if edges_of == NULL:
            raise MemoryError(f"{cls.__name__}: no memory for {n} arguments")
    for i in range(n):
        argument = arguments[i]
        edges_of[i] = -1
        if isinstance(argument, Tensor):
            tensor = <Tensor>argument
            edges_of[i] = n_edges
            n_edges += 1
            if tensor.base is not None:      # an in-place operation on its base may have changed its history
                grad_fn_of(tensor)
            needs.append(True if takes_part(tensor) else False)
        else:
            needs.append(False)
    try:
        node = <FunctionNode>node_new(cls, n_edges, 1, 0, False)
    except BaseException:
        deallocate(edges_of, n * sizeof(int32_t))
        raise
    node.n_arguments = <int32_t>n
    node.edges_of = edges_of
    node.needs_input_grad = tuple(needs)
    node.c.python = HAS_PYTHON_BACKWARD
    return node


cdef int _connect(FunctionNode node, tuple arguments) except -1:
    cdef Py_ssize_t i
    cdef int64_t input_nr
    cdef Node target
    for i in range(node.n_arguments):
        if node.edges_of[i] >= 0:
            target = gradient_edge(<Tensor>arguments[i], &input_nr)
            if target is not None:
                set_edge(node.c, node.edges_of[i], target.c, input_nr)
                set_meta(node.c, node.edges_of[i], (<Tensor>arguments[i]).array)
    return 0


cdef object _finish(FunctionNode node, tuple arguments, object results, bint recorded):
    """Connect the outputs to the graph and save the tensors of save_for_backward."""
    cdef bint single = not isinstance(results, tuple)
    cdef list outputs = [results] if single else list(<tuple>results)
    cdef Py_ssize_t i, n = len(outputs)
    cdef int differentiable = 0
    cdef tuple dirty = node.dirty if node.dirty is not None else _nothing
    cdef tuple constants = node.constants if node.constants is not None else _nothing
    cdef Tensor tensor
    cdef bint flows
    cdef dict first = {}               # the first output that refers to a Tensor returned several times
    node.c.n_outputs = <int32_t>n
    if dirty:
        _check_dirty(node, arguments, outputs)
    for i in range(n):
        if not isinstance(outputs[i], Tensor):
            continue
        tensor = <Tensor>outputs[i]
        if n > 1 and (_holds(dirty, tensor) or not _holds(arguments, tensor)):
            if first.setdefault(id(tensor), i) != i:
                outputs[i] = outputs[<Py_ssize_t>first[id(tensor)]]
                _returned_again(node, <Tensor>outputs[i], i)
                continue
        flows = recorded and is_differentiable(tensor.array.dtype) and not (constants and _holds(constants, tensor))
        differentiable += flows
        if dirty and _holds(dirty, tensor):
            outputs[i] = _changed_input(node, tensor, arguments, i, n, flows)
        elif _holds(arguments, tensor):
            outputs[i] = _returned_input(node, tensor, i, flows)
        else:
            outputs[i] = _output(node, tensor, i, flows, recorded and _holds(constants, tensor))
    if differentiable > 1:
        for output in outputs:
            if isinstance(output, Tensor) and (<Tensor>output).base is not None and (<Tensor>output).node is node:
                (<Tensor>output).view_kind = MULTI_OUTPUT_VIEW
    if recorded:
        if node.materialize:
            _remember_outputs(node, outputs, constants if constants and not getattr(
                node, "_materialize_non_diff_grads", True) else _nothing)
        if node.to_save:
            _save(node, arguments, outputs)
    return outputs[0] if single else tuple(outputs)


cdef int _returned_again(FunctionNode node, Tensor output, Py_ssize_t output_nr) except -1:
    """Handle an output that is returned twice: all gradients arrive at its last position."""
    if output.node is node:
        output.output_nr = <int32_t>output_nr
    return 0


cdef bint _holds(tuple items, object wanted):
    for item in items:
        if item is wanted:
            return True
    return False


cdef int _check_dirty(FunctionNode node, tuple arguments, list outputs) except -1:
    for tensor in node.dirty:
        if not isinstance(tensor, Tensor):
            raise TypeError(f"mark_dirty: expected Tensors (got {type(tensor).__name__}).")
        if not _holds(tuple(outputs), tensor):
            raise RuntimeError(f"{node.name()}: Some elements marked as dirty during the forward method were not "
                               f"returned as output. The inputs that are modified in place must all be outputs of the "
                               f"Function (got a {describe(tensor)} that is none).")
        if not _holds(arguments, tensor):
            warn_user(f"{node.name()}: only input Tensors should be given to ctx.mark_dirty(). Do not pass other "
                      "Tensors.")
    return 0


cdef Tensor _changed_input(FunctionNode node, Tensor tensor, tuple arguments, Py_ssize_t output_nr, Py_ssize_t n,
                           bint flows):
    """Handle an input that forward has modified in place: its history now goes through this node."""
    cdef str name = node.name()
    cdef Py_ssize_t i
    cdef int32_t edge = 0
    bump_version(tensor)
    check_inplace(tensor, name, flows)
    if not flows:
        return <Tensor>tensor.detach() if requires_grad(tensor) else tensor
    for i in range(node.n_arguments):
        if arguments[i] is tensor:
            edge = node.edges_of[i]
            break
    if tensor.base is not None and tensor.view_kind == DIFFERENTIABLE_VIEW:
        if n > 1:
            raise RuntimeError(f"{name}: your Function modifies inplace an input that is a view of another Tensor, so "
                               f"it must return only that Tensor (got {n} outputs). Apply it to a clone(), or split "
                               "the Function.")
        if edge != 0:
            raise RuntimeError(f"{name}: a view that the Function modifies in place must be its first Tensor argument "
                               f"(got it as number {edge}). Reorder the arguments, or apply the Function to a clone().")
    rebase_history(tensor, node)
    if tensor.node is node:
        tensor.output_nr = <int32_t>output_nr
    return tensor


cdef Tensor _returned_input(FunctionNode node, Tensor tensor, Py_ssize_t output_nr, bint flows):
    """Handle an input that is returned unchanged: the output is a view of it, of the class that its type decides."""
    cdef array_t *own = tensor.array
    cdef thread_state_t *state = thread_state()
    cdef int disabled = state.grad_disabled
    cdef Tensor view
    if type(tensor) is Tensor or is_meta(own):
        view = wrap_view(array_view(own, own.dtype, own.ndim, own.shape, own.strides, 0), tensor)
    else:
        state.grad_disabled = 1
        try:
            with paused():
                view = tensor.view_as(tensor)
        finally:
            state.grad_disabled = disabled
    if view.base is not None:
        view.view_kind = CUSTOM_VIEW
    if flows:
        set_node(view, node, <int32_t>output_nr)
    return view


cdef Tensor _output(FunctionNode node, Tensor tensor, Py_ssize_t output_nr, bint flows, bint marked):
    if requires_grad(tensor):
        # Leave the node of another tensor, or that of an earlier output, unchanged.
        tensor = <Tensor>tensor.detach()
    if tensor.base is not None:
        tensor.view_kind = CUSTOM_VIEW
        tensor.view_version = 0 if tensor.array.version == NULL else tensor.array.version.value
    elif not flows:
        tensor.untracked = CONSTANT_OUTPUT if marked else tensor.untracked
    if flows:
        set_node(tensor, node, <int32_t>output_nr)
    return tensor


cdef int _remember_outputs(FunctionNode node, list outputs, tuple skipped) except -1:
    """Save shapes and dtypes, for materializing undefined gradients as zeros."""
    cdef Py_ssize_t i, n = len(outputs)
    node.outputs = <array_t **>allocate(n * sizeof(array_t *))
    if node.outputs == NULL:
        raise MemoryError(f"{node.name()}: no memory for the shapes of its outputs")
    memset(node.outputs, 0, n * sizeof(array_t *))
    node.n_known = <int32_t>n
    for i in range(n):
        if isinstance(outputs[i], Tensor) and not _holds(skipped, outputs[i]):
            node.outputs[i] = array_meta((<Tensor>outputs[i]).array)
            if node.outputs[i] == NULL:
                check(MEMORY_ERROR)
    return 0


# -------------------------------------------------------------------------------------------------------------- saving

cdef int _save(FunctionNode node, tuple arguments, list outputs) except -1:
    cdef Py_ssize_t i, n = len(node.to_save)
    cdef node_t *c = node.c
    cdef int64_t nbytes = n * (sizeof(kept_t) + sizeof(int32_t))
    for i in range(n):
        if node.to_save[i] is not None and not isinstance(node.to_save[i], Tensor):
            raise TypeError(f"save_for_backward: can only save Tensors and None (got "
                            f"{type(node.to_save[i]).__name__} at position {i}). Store other values in attributes of "
                            "ctx.")
    c.saved = <kept_t *>allocate(nbytes)
    if c.saved == NULL:
        raise MemoryError(f"{node.name()}: no memory for {n} saved tensors")
    memset(c.saved, 0, nbytes)
    node.origins = <int32_t *>(c.saved + n)
    c.n_saved = <int32_t>n
    for i in range(n):
        node.origins[i] = CONSTANT
        if node.to_save[i] is not None:
            _save_one(node, i, <Tensor>node.to_save[i], arguments)
    return 0


cdef int _save_one(FunctionNode node, Py_ssize_t position, Tensor tensor, tuple arguments) except -1:
    cdef node_t *c = node.c
    cdef Py_ssize_t i
    cdef int32_t origin = CONSTANT
    cdef int64_t input_nr
    cdef SavedHooks hooks
    if tensor.array.version == NULL:
        raise RuntimeError(f"{node.name()}: Inference tensors cannot be saved for backward (got one at position "
                           f"{position}). Create a normal one with clone().")
    if tensor.node is node:
        origin = OUTPUT + tensor.output_nr
    elif is_inplace_view(tensor, c):
        origin = OUTPUT
    else:
        for i in range(node.n_arguments):
            if arguments[i] is tensor:
                origin = node.edges_of[i]
                break
        if origin == CONSTANT and requires_grad(tensor) or type(tensor) is not Tensor or tensor.attributes != NULL:
            origin = OBJECT
    node.origins[position] = origin
    if thread_state().saved_hooks != NULL:
        hooks = saved_hooks()
        given = alias(tensor.array) if origin >= OUTPUT else tensor
        if origin == OBJECT:
            target = gradient_edge(tensor, &input_nr)
            if target is None:
                node.origins[position] = CONSTANT
            else:
                _keep_object(node, position, (target, input_nr))
        node.set_packed(position, pack_tensor(node, str(position), given, hooks.pack, hooks.unpack))
        return 0
    c.saved[position].version = atomic_load(&tensor.array.version.value)
    set_array(&c.saved[position].value, retain(tensor.array))
    if origin == OBJECT:
        _keep_object(node, position, tensor)
    return 0


cdef int _keep_object(FunctionNode node, Py_ssize_t position, object item) except -1:
    if node.objects is None:
        node.objects = [None] * node.c.n_saved
    node.objects[position] = item
    return 0
