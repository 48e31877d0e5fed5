"""
Custom autograd functions: calling and recording them.

The node is created first, because forward writes to it; then forward runs with grad mode disabled; then the outputs are
connected to the graph, and the tensors of save_for_backward are saved.
"""

from libc.stdint cimport int32_t, int64_t
from libc.string cimport memset
from cygrad._core.arrays.array cimport array_meta, array_t, array_view, retain
from cygrad._core.arrays.dtype cimport is_differentiable
from cygrad._core.arrays.value cimport set_array
from cygrad._core.custom.function_node cimport CONSTANT, OBJECT, OUTPUT, FunctionNode
from cygrad._core.custom.function_tangents cimport push_custom
from cygrad._core.graph.inplace cimport bump_version, check_inplace, is_inplace_view, rebase_history
from cygrad._core.graph.meta cimport any_meta
from cygrad._core.graph.modes cimport set_dual_level, thread_state, thread_state_t
from cygrad._core.graph.native cimport set_meta
from cygrad._core.graph.node cimport HAS_PYTHON_BACKWARD, Node, kept_t, node_new, node_t, set_edge
from cygrad._core.graph.override cimport is_entry
from cygrad._core.graph.saved cimport SavedHooks, alias, pack_tensor, saved_hooks
from cygrad._core.graph.tensor cimport (
    CUSTOM_VIEW, DIFFERENTIABLE_VIEW, MULTI_OUTPUT_VIEW, Tensor, describe, grad_fn_of, gradient_edge, provided,
    requires_grad, set_node, wrap_view)
from cygrad._core.graph.untracked_reason cimport CONSTANT_OUTPUT
from cygrad._core.graph.view_requirement cimport takes_part
from cygrad._core.memory.atomic cimport atomic_load
from cygrad._core.memory.errors cimport MEMORY_ERROR, check
from cygrad._core.memory.storage cimport allocate, deallocate
from cygrad._core.graph.user_warnings import warn_user

from cygrad._core.graph.override import call_override

cdef tuple _nothing = ()


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
    cdef int disabled = state.grad_disabled, dual_level = state.dual_level
    cdef tuple saved
    if any_meta:
        for argument in <tuple>arguments:
            if is_entry(argument) and getattr(type(argument), "_overrides_functions", True):
                return call_override(cls.apply, arguments, arguments, {})
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
    outputs = _finish(node, <tuple>arguments, results, recorded)
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
    """Connect the outputs to the graph and save the tensors that forward asked for."""
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
    node.to_save = None
    node.dirty = None
    node.constants = None
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
            raise RuntimeError(f"{node.name()}: some elements marked as dirty during the forward method were not "
                               f"returned as output (got a {describe(tensor)}). The inputs that are modified in place "
                               "must all be outputs of the Function.")
        if not _holds(arguments, tensor):
            warn_user(f"{node.name()}: only input Tensors should be given to ctx.mark_dirty(). If a Tensor is no "
                      "input, there is no need to pass it.")
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
            raise RuntimeError(f"{name}: a Function that modifies a view in place can return that one Tensor only (got "
                               f"{n} outputs). Apply it to a clone(), or split the Function.")
        if edge != 0:
            raise RuntimeError(f"{name}: a view that the Function modifies in place must be its first Tensor argument "
                               f"(got it as number {edge}). Reorder the arguments, or apply the Function to a clone().")
    rebase_history(tensor, node)
    if tensor.node is node:
        tensor.output_nr = <int32_t>output_nr
    return tensor


cdef Tensor _returned_input(FunctionNode node, Tensor tensor, Py_ssize_t output_nr, bint flows):
    """Handle an input that is returned as is: the output is a view of it."""
    cdef array_t *own = tensor.array
    cdef Tensor view = wrap_view(array_view(own, own.dtype, own.ndim, own.shape, own.strides, 0), tensor)
    if view.base is not None:
        view.view_kind = CUSTOM_VIEW
    if flows:
        view.node = node
        view.output_nr = <int32_t>output_nr
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
