"""
Custom functions: a node whose backward is Python code, and which is the context that the code works with.

`apply` makes the node first, because forward writes to it; runs forward without recording; then gives the outputs
their place in the graph and saves what forward asked for. The context that backward gets is the node itself, so what
forward has put there is there. A saved tensor is kept as its array and the edge that it came by, like those of other
nodes: neither inputs nor outputs are kept alive as objects, and no cycle arises.
"""

from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memset
from cygrad._core.array cimport array_empty_like, array_meta, array_t, array_view, release, retain, same_shape, shape_text
from cygrad._core.atomic cimport atomic_load
from cygrad._core.dtype cimport dtype_name, is_complex, is_differentiable, is_floating
from cygrad._core.elementwise cimport fill
from cygrad._core.errors cimport MEMORY_ERROR, check
from cygrad._core.inplace cimport bump_version, check_inplace, rebase_history
from cygrad._core.modes cimport thread_state, thread_state_t
from cygrad._core.native cimport fit_recorded, set_meta
from cygrad._core.node cimport HAS_PACKED_TENSORS, HAS_PYTHON_BACKWARD, Node, kept_t, node_new, node_t, release_saved, set_edge
from cygrad._core.saved cimport PackedTensor, SavedHooks, alias, attach, attach_edge, pack_tensor, saved_hooks
from cygrad._core.storage cimport allocate, deallocate
from cygrad._core.tensor cimport (
    CUSTOM_VIEW, DIFFERENTIABLE_VIEW, MULTI_OUTPUT_VIEW, Tensor, describe, grad_fn_of, gradient_edge, known_tensor,
    requires_grad, tensor_of, wrap, wrap_view)
from cygrad._core.value cimport ARRAY, INTEGER, NOTHING, set_array, value_t
from cygrad._core.versions cimport version_error

from cygrad._core.saved import saved_tensor
import warnings

cdef tuple _nothing = ()


cdef class FunctionNode(Node):
    """The node of a custom function: what its static methods get as ``ctx``."""

    def __cinit__(self):
        self.materialize = True

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
        Keep tensors for backward, which finds them as ``ctx.saved_tensors``.

        Inputs and outputs should be kept like this, not as attributes: it makes no reference cycle, notices in-place
        changes, and obeys saved-tensor hooks. To be called once, in forward or setup_context.

        Parameters
        ----------
        *tensors : Tensor or None
        """
        self.to_save = tensors

    def save_for_forward(self, *tensors):
        """
        Keep tensors for `jvp`.

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
        Say which inputs forward has changed in place; each must be returned as an output.

        Parameters
        ----------
        *tensors : Tensor
        """
        self.dirty = tensors

    def mark_non_differentiable(self, *tensors):
        """
        Say which outputs carry no gradient.

        Parameters
        ----------
        *tensors : Tensor
        """
        self.constants = tensors

    def set_materialize_grads(self, value):
        """
        Say whether backward gets zeros (the default) or None for outputs without a gradient.

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
        """The tensors that forward gave to `save_for_backward`, a tuple."""
        cdef int i
        if self.c.released:
            raise RuntimeError(f"{self.name()}: its saved tensors are freed already (got a second backward through this "
                               "node, or a look at what it saved, after a backward). Call the first backward or grad "
                               "with retain_graph=True to go through the graph again.")
        return tuple([self.unpack(i) for i in range(self.c.n_saved)])

    @property
    def _raw_saved_tensors(self):
        """The saved tensors as `SavedTensor` objects, which take hooks."""
        cdef int i
        if self.c.released:
            return self.saved_tensors        # raises
        return tuple([saved_tensor(self, i) for i in range(self.c.n_saved)])

    cdef object unpack(self, int position):
        cdef node_t *c = self.c
        cdef kept_t *kept = &c.saved[position]
        cdef int32_t origin = self.origins[position]
        cdef array_t *array
        cdef Tensor tensor
        if self.packed is not None and self.packed[position] is not None:
            return self.placed((<PackedTensor>self.packed[position]).unpack(), position)
        if kept.value.kind != ARRAY:
            return None
        array = kept.value.of.array
        if atomic_load(&array.version.value) != kept.version:
            _raise_version_error(self, position)
        if origin == OBJECT:
            return self.objects[position]
        if origin < OUTPUT:
            tensor = known_tensor(array)
            if tensor is not None and (origin < 0 or _is_at(tensor, c, origin)):
                return tensor
        return self.placed(alias(array), position)

    cdef Tensor placed(self, Tensor tensor, int position):
        cdef int32_t origin = self.origins[position]
        if origin == OBJECT:
            node, output_nr = self.objects[position]
            attach(tensor, node, output_nr)
        elif origin >= OUTPUT:
            tensor.node = self
            tensor.output_nr = origin - OUTPUT
        elif origin >= 0:
            attach_edge(tensor, &self.c.edges[origin])
        return tensor

    def _unpack(self, int position):
        """What is saved at `position`."""
        if self.c.released:
            return self.saved_tensors        # raises
        return self.unpack(position)

    def _pack(self, int position, pack, unpack):
        """Store what is saved at `position` as the hooks say."""
        cdef kept_t *kept = &self.c.saved[position]
        cdef array_t *array
        if self.packed is not None and self.packed[position] is not None:
            raise RuntimeError(f"register_hooks: there are hooks already (got a second pair for what {self.name()} "
                               "saved, expected one).")
        if self.c.released:
            raise RuntimeError(f"register_hooks: {self.name()} has released what it saved. Register the hooks before "
                               "backward, or call backward with retain_graph=True.")
        if kept.value.kind != ARRAY:
            raise RuntimeError(f"register_hooks: {self.name()} has saved no tensor at position {position} (got None).")
        if atomic_load(&kept.value.of.array.version.value) != kept.version:
            _raise_version_error(self, position)
        packed = pack_tensor(self, str(position), alias(kept.value.of.array), pack, unpack)
        self.set_packed(position, packed)
        array = kept.value.of.array
        kept.value.kind = NOTHING
        release(array)

    cdef int set_packed(self, int position, object packed) except -1:
        if self.packed is None:
            self.packed = [None] * self.c.n_saved
        self.packed[position] = packed
        self.c.python |= HAS_PACKED_TENSORS
        return 0

    # ------------------------------------------------------------------------------------------------------- backward

    cdef list apply(self, list grads, bint keep, bint recorded):
        cdef int i
        if self.materialize and self.outputs != NULL:
            for i in range(self.n_known):
                if grads[i] is None and self.outputs[i] != NULL:
                    grads[i] = _zeros(self.outputs[i])
        cdef list gradients = _checked(self, _backward_of(type(self)._forward_cls)(self, *grads))
        if not keep and self.c.n_saved:
            release_saved(self.c)
            self.packed = None
            self.objects = None
        return gradients


cdef object _backward_of(cls):
    """The function that the user has written: `backward`, or `vjp` by its other name."""
    backward, vjp = cls.backward, cls.vjp
    if vjp is _default_backward:
        return backward
    if backward is not _default_backward:
        raise RuntimeError(f"{cls.__name__}: both 'backward' and 'vjp' are implemented for a custom Function (got two, "
                           "expected one). They are two names for one thing.")
    return vjp


cdef object _default_backward = None
cdef object _default_setup_context = None


def set_defaults(backward, setup_context):
    """What `Function` itself has, to tell what a subclass has written."""
    global _default_backward, _default_setup_context
    _default_backward, _default_setup_context = backward, setup_context


cdef bint _is_at(Tensor tensor, const node_t *c, int edge):
    """Does the tensor still belong where the edge leads? Not after detach_(), for example."""
    cdef const node_t *target = c.edges[edge].node
    if target == NULL:
        return not requires_grad(tensor)
    if tensor.node is None:
        return tensor.leaf_requires_grad and tensor.gradient != NULL and tensor.gradient.accumulator == target
    return tensor.node.c == target and tensor.output_nr == c.edges[edge].input_nr


cdef int _raise_version_error(FunctionNode node, int position) except -1:
    cdef node_t *c = node.c
    cdef int32_t origin = node.origins[position]
    cdef array_t *array = c.saved[position].value.of.array
    cdef bytes operation = node.name().encode(), name = f"saved_tensors[{position}]".encode()
    if origin >= OUTPUT:
        return check(version_error(operation, name, array, c.saved[position].version, c, origin - OUTPUT))
    if origin >= 0:
        return check(version_error(operation, name, array, c.saved[position].version, c.edges[origin].node,
                                   c.edges[origin].input_nr))
    return check(version_error(operation, name, array, c.saved[position].version, NULL, 0))


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
    """What backward returned, as one gradient or None per edge, each of the shape and dtype of its argument."""
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
            raise RuntimeError(f"{self.name()}: backward returned a gradient different from None for an argument that is "
                               f"no Tensor (got {type(result).__name__} at position {i}, expected None).")
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


# ------------------------------------------------------------------------------------------------------------- forward

def apply(cls, arguments):
    """
    Run the forward of the custom function `cls` and record it.

    Parameters
    ----------
    cls : type
        A subclass of `Function`.
    arguments : tuple
        What forward is called with, after ``ctx``.

    Returns
    -------
    Tensor, or what forward returns
    """
    cdef thread_state_t *state = thread_state()
    cdef int disabled = state.grad_disabled
    cdef FunctionNode node = <FunctionNode>_node(cls._backward_cls, <tuple>arguments)
    cdef bint recorded = not disabled and True in node.needs_input_grad
    if recorded:
        _connect(node, <tuple>arguments)
    state.grad_disabled = 1
    try:
        if cls.setup_context is _default_setup_context:
            results = cls.forward(node, *arguments)
        else:
            results = cls.forward(*arguments)
            cls.setup_context(node, arguments, results)
    finally:
        state.grad_disabled = disabled
    return _finish(node, <tuple>arguments, results, recorded)


cdef FunctionNode _node(type cls, tuple arguments):
    """The node of one call: it knows its arguments, but leads nowhere yet."""
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
            if tensor.base is not None:      # it may have another history now, by an in-place change of its base
                grad_fn_of(tensor)
            needs.append(True if requires_grad(tensor) else False)
        else:
            needs.append(False)
    try:
        node = <FunctionNode>node_new(cls, n_edges, 1, 0)
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
    """Give the outputs their place in the graph, and save what forward asked for."""
    cdef bint single = not isinstance(results, tuple)
    cdef list outputs = [results] if single else list(<tuple>results)
    cdef Py_ssize_t i, n = len(outputs)
    cdef int differentiable = 0
    cdef tuple dirty = node.dirty if node.dirty is not None else _nothing
    cdef tuple constants = node.constants if node.constants is not None else _nothing
    cdef Tensor tensor
    cdef bint flows
    node.c.n_outputs = <int32_t>n
    if dirty:
        _check_dirty(node, arguments, outputs)
    for i in range(n):
        if not isinstance(outputs[i], Tensor):
            continue
        tensor = <Tensor>outputs[i]
        flows = recorded and is_differentiable(tensor.array.dtype) and not (constants and _holds(constants, tensor))
        differentiable += flows
        if dirty and _holds(dirty, tensor):
            outputs[i] = _changed_input(node, tensor, arguments, i, n, flows)
        elif _holds(arguments, tensor):
            outputs[i] = _returned_input(node, tensor, i, flows)
        else:
            outputs[i] = _output(node, tensor, i, flows)
    if differentiable > 1:
        for output in outputs:
            if isinstance(output, Tensor) and (<Tensor>output).base is not None and (<Tensor>output).node is node:
                (<Tensor>output).view_kind = MULTI_OUTPUT_VIEW
    if recorded:
        if n > 1 and node.materialize:
            _remember_outputs(node, outputs)
        if node.to_save:
            _save(node, arguments, outputs)
    node.to_save = None
    node.dirty = None
    node.constants = None
    return outputs[0] if single else tuple(outputs)


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
            raise RuntimeError(f"{node.name()}: some elements marked as dirty during the forward method were not "
                               f"returned as output (got a {describe(tensor)}). The inputs that are changed in place "
                               "must all be outputs of the Function.")
        if not _holds(arguments, tensor):
            warnings.warn(f"{node.name()}: only input Tensors should be given to ctx.mark_dirty(). If a Tensor is no "
                          "input, there is no need to pass it.", stacklevel=4)
    return 0


cdef Tensor _changed_input(FunctionNode node, Tensor tensor, tuple arguments, Py_ssize_t output_nr, Py_ssize_t n,
                           bint flows):
    """An input that forward has changed in place: its history goes through this node now."""
    cdef str name = node.name()
    cdef Py_ssize_t i
    cdef int32_t edge = 0
    if tensor.node is node:
        raise RuntimeError(f"{name}: an input marked as dirty is returned more than once (got a {describe(tensor)} as "
                           f"output {output_nr} again). Return it once.")
    check_inplace(tensor, name, flows)
    bump_version(tensor)
    if not flows:
        return <Tensor>tensor.detach() if requires_grad(tensor) else tensor
    for i in range(node.n_arguments):
        if arguments[i] is tensor:
            edge = node.edges_of[i]
            break
    if tensor.base is not None and tensor.view_kind == DIFFERENTIABLE_VIEW:
        if n > 1:
            raise RuntimeError(f"{name}: a Function that changes a view in place can return that one Tensor only (got "
                               f"{n} outputs). Apply it to a clone(), or split the Function.")
        if edge != 0:
            raise RuntimeError(f"{name}: a view that the Function changes in place must be its first Tensor argument "
                               f"(got it as number {edge}). Reorder the arguments, or apply the Function to a clone().")
    rebase_history(tensor, node)
    if tensor.node is node:
        tensor.output_nr = <int32_t>output_nr
    return tensor


cdef Tensor _returned_input(FunctionNode node, Tensor tensor, Py_ssize_t output_nr, bint flows):
    """An input that is returned as it is: the output is a view of it."""
    cdef array_t *own = tensor.array
    cdef Tensor view = wrap_view(array_view(own, own.dtype, own.ndim, own.shape, own.strides, 0), tensor)
    if view.base is not None:
        view.view_kind = CUSTOM_VIEW
    if flows:
        view.node = node
        view.output_nr = <int32_t>output_nr
    return view


cdef Tensor _output(FunctionNode node, Tensor tensor, Py_ssize_t output_nr, bint flows):
    if requires_grad(tensor):
        # Somebody else's place in the graph, or that of an output before this one, is left alone.
        tensor = <Tensor>tensor.detach()
    if tensor.base is not None:
        tensor.view_kind = CUSTOM_VIEW
        tensor.view_version = 0 if tensor.array.version == NULL else tensor.array.version.value
    if flows:
        tensor.node = node
        tensor.output_nr = <int32_t>output_nr
    return tensor


cdef int _remember_outputs(FunctionNode node, list outputs) except -1:
    """Shapes and dtypes, for zeros in the place of undefined gradients."""
    cdef Py_ssize_t i, n = len(outputs)
    node.outputs = <array_t **>allocate(n * sizeof(array_t *))
    if node.outputs == NULL:
        raise MemoryError(f"{node.name()}: no memory for the shapes of its outputs")
    memset(node.outputs, 0, n * sizeof(array_t *))
    node.n_known = <int32_t>n
    for i in range(n):
        if isinstance(outputs[i], Tensor):
            node.outputs[i] = array_meta((<Tensor>outputs[i]).array)
            if node.outputs[i] == NULL:
                check(MEMORY_ERROR)
    return 0


# -------------------------------------------------------------------------------------------------------------- saving

cdef int _save(FunctionNode node, tuple arguments, list outputs) except -1:
    cdef Py_ssize_t i, n = len(node.to_save)
    cdef node_t *c = node.c
    cdef Tensor tensor
    cdef int64_t nbytes = n * (sizeof(kept_t) + sizeof(int32_t))
    for i in range(n):
        if node.to_save[i] is not None and not isinstance(node.to_save[i], Tensor):
            raise TypeError(f"save_for_backward: can only save Tensors and None (got "
                            f"{type(node.to_save[i]).__name__} at position {i}). Put other things into attributes of "
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
        raise RuntimeError(f"{node.name()}: an inference tensor cannot be saved for backward (got one at position "
                           f"{position}). Make a normal one with clone().")
    if tensor.node is node:
        origin = OUTPUT + tensor.output_nr
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
