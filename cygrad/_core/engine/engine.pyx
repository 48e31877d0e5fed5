"""
Backward: plan the reachable nodes, then run them.

`run_backward` converts its arguments to roots and targets, builds the plan and executes it: native nodes without the
GIL, nodes with hooks or Python code on the calling thread. With create_graph the same plan is executed with gradients
as Tensors and formulas as recorded operations.
"""

from cpython.exc cimport PyErr_CheckSignals
from cpython.object cimport PyObject
from cpython.ref cimport Py_XDECREF, Py_XINCREF
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc
from cygrad._core.arrays.array cimport (
    INTEGER, array_empty_like, array_meta, array_t, release, retain, same_shape, shape_text, value_t,
)
from cygrad._core.arrays.dtype cimport BOOL, dtype_name, is_complex, is_differentiable
from cygrad._core.elementwise.elementwise cimport as_dtype, fill
from cygrad._core.elementwise.tiles cimport holds_nan
from cygrad._core.engine.node_run cimport (
    CHECK_SIGNALS, FINISHED, NEEDS_PYTHON, add_contribution, advance, deliver, run_node, run_watched_item,
    run_with_team, should_use_team, wanted_arguments,
)
from cygrad._core.engine.plan cimport (
    HAS_COMPILED_GRAPH, UNREACHED, callbacks, has_compiled, item_t, others_share_nodes, plan_build, plan_capture,
    plan_capturing, plan_find, plan_free, plan_restrict, plan_restrict_direct, plan_t, run_callbacks,
)
from cygrad._core.graph.boxing cimport is_entry
from cygrad._core.graph.hooks cimport (
    call_accumulated, call_posthooks, call_prehooks, call_tensor_hooks, fit_gradients, retain_gradients, separated,
)
from cygrad._core.graph.mode_stack cimport Mode, abort_trace, active_modes, mode_at, set_modes
from cygrad._core.graph.modes cimport (
    ANOMALY_NAN, ANOMALY_ON, BACKWARD_MODES, PROFILER_MODE, RESULT_MODES, USER_MODE, grad_enabled, is_tracing,
    is_watched, thread_state, thread_state_t,
)
from cygrad._core.graph.node cimport (
    FREE_THREADED, HAS_HOOKS, HAS_PACKED_TENSORS, HAS_SPARSE_GRADIENT, Hooks, Node, accumulator_of,
    keep_gradient, node_t, release_saved, remember_call, set_edge, work_for, working_for,
)
from cygrad._core.graph.saved cimport SavedHooks, saved_hooks
from cygrad._core.graph.tensor cimport (
    INFERENCE_VIEW, NO_GRAD_VIEW, SLOT_ADD, Tensor, any_unusual, describe, grad_fn_of, gradient_edge, is_bare,
    is_inference, is_meta, known_tensor, propagate_array_api, protocol, provided, replace_gradient, requires_grad,
    slot_of, tensor_of, version_of_gradient, wrap,
)
from cygrad._core.graph.untracked_reason cimport CONSTANT_OUTPUT, DATA, DETACHED, DETACHED_IN_PLACE, GRADIENT, UNTRACKED
from cygrad._core.memory.errors cimport MEMORY_ERROR, check
from cygrad._core.memory.storage cimport forget_place, has_pending, release_pending

import cygrad._core.engine.node_fusion  # noqa: F401  # no-cython-lint  # lets run_items() fusion
import sys
import threading
from collections import namedtuple

cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(object)
from cygrad._core.graph.node import set_evaluating
from cygrad._core.graph.saved import pop_hooks, push_hooks
from cygrad._core.graph.user_warnings import warn_user


# ---------------------------------------------------------------------------------------------------------------- edges

# Edges of the graph, and the gradients that backward starts with, from the arguments of backward.

cdef class Edge:
    """An output of a node, with the metadata of its tensor; keeps the node alive."""

    cdef Node node
    cdef int64_t output_nr
    cdef array_t *meta            # shape and dtype of the gradient's tensor, or NULL if unknown

    def __dealloc__(self):
        release(self.meta)
        self.meta = NULL


cdef Edge _edge(Node node, int64_t output_nr):
    cdef Edge edge = Edge.__new__(Edge)
    edge.node, edge.output_nr = node, output_nr
    return edge


class GradientEdge(namedtuple("GradientEdge", ["node", "output_nr", "ownership_token"])):
    """
    Edge of the graph: an output of a node, to which a gradient flows.

    Attributes
    ----------
    node : Node
    output_nr : int
    ownership_token : object or None
        Further attributes of the tensor, from `get_gradient_edge`; keeps the node alive.

    Examples
    --------
    >>> from cygrad.autograd.graph import get_gradient_edge
    >>> edge = get_gradient_edge(cygrad.ones(2, requires_grad=True).exp())
    >>> edge.node.name(), edge.output_nr
    ('ExpBackward0', 0)
    """

    __slots__ = ()

    def __new__(cls, node, output_nr, ownership_token=None):
        if not isinstance(node, Node):
            raise TypeError(f"GradientEdge: expected a node (got {type(node).__name__}).")
        if not 0 <= output_nr < (<Node>node).c.n_outputs:
            raise ValueError(f"GradientEdge: {node.name()} has no output of this index (got {output_nr}, expected "
                             f"less than {(<Node>node).c.n_outputs}).")
        return super().__new__(cls, node, output_nr, ownership_token)

    def __eq__(self, other):
        return isinstance(other, GradientEdge) and self[:2] == other[:2]

    def __ne__(self, other):
        return not self == other

    def __hash__(self):
        return hash(self[:2])

    def __repr__(self):
        return f"GradientEdge(node={self.node!r}, output_nr={self.output_nr})"


def get_gradient_edge(tensor):
    """
    Return the edge of the graph to which the gradient of `tensor` flows.

    Parameters
    ----------
    tensor : Tensor
        A tensor that requires grad.

    Returns
    -------
    GradientEdge

    Raises
    ------
    RuntimeError
        If the tensor does not require grad.

    Examples
    --------
    >>> x = cygrad.ones(2, requires_grad=True)
    >>> cygrad.autograd.graph.get_gradient_edge(x * 2).node.name()
    'MulBackward0'
    """
    cdef int64_t input_nr
    cdef Edge edge
    if not isinstance(tensor, Tensor):
        raise TypeError(f"get_gradient_edge: expected a Tensor (got {type(tensor).__name__}).")
    node = gradient_edge(separated(<Tensor>tensor), &input_nr)
    if node is None:
        raise RuntimeError(f"get_gradient_edge: It is not possible to get the gradient edge for a Tensor that does "
                           f"not require gradients (got a {describe(tensor)}).")
    edge = _edge(node, input_nr)
    edge.meta = array_meta((<Tensor>tensor).array)
    if edge.meta == NULL:
        check(MEMORY_ERROR)
    return GradientEdge(node, input_nr, edge)


cdef Edge _edge_of(object source, str operation, str role, int position, bint may_be_unused):
    """Return the edge of a Tensor or GradientEdge; `role` and `position` are for the message."""
    cdef int64_t input_nr
    cdef Tensor tensor
    if not isinstance(source, Tensor):
        if isinstance(source, GradientEdge):
            if (<Node>source.node).c.python & HAS_COMPILED_GRAPH:
                edges = type(source.node)._forward_cls._eager_edges(source.node, False)
                source = source if edges is None else edges[source.output_nr]
            return _edge(source.node, source.output_nr)
        raise TypeError(f"{operation}: {role} {position} must be a Tensor or a GradientEdge "
                        f"(got {type(source).__name__}).")
    tensor = <Tensor>source
    node = gradient_edge(tensor, &input_nr)
    if node is None and may_be_unused and tensor.requires_grad:
        input_nr = 0  # a view without history of a tensor that requires grad: a leaf that is not reachable
        node = accumulator_of(tensor, slot_of(tensor, b"backward"), tensor.array, is_bare(tensor))
    if node is None:
        what = (f"element {position} of tensors does not require grad and does not have a grad_fn (got a "
                if role == "output" else
                f"One of the differentiated Tensors does not require grad (got for {role} {position} a ")
        raise RuntimeError(f"{operation}: {what}{describe(tensor)}). {_why_not(tensor)}")
    return _edge(node, input_nr)


cdef dict _reasons = {
    UNTRACKED: "It was created without recording: under no_grad(), or in a backward without create_graph=True. "
               "Compute it outside of the block, or within enable_grad().",
    DETACHED: "It was created by detach(), outside of the graph. Use the original tensor.",
    DETACHED_IN_PLACE: "It was removed from the graph by detach_(). Use detach() instead, which returns a second "
                       "tensor.",
    DATA: "It was created by .data, outside of the graph. Use the tensor itself.",
    CONSTANT_OUTPUT: "A custom Function returned it and called ctx.mark_non_differentiable() on it.",
    GRADIENT: "It is a gradient, computed without create_graph=True. Call backward or grad with create_graph=True to "
              "differentiate it.",
}


cdef str _why_not(Tensor tensor):
    """Return the reason why the tensor is outside of the graph, if it is known."""
    cdef Tensor source = tensor if tensor.base is None else tensor.base
    if tensor.array.dtype == BOOL:
        return "Bool tensors, as returned by comparisons and logical functions, have no gradient."
    if not is_differentiable(tensor.array.dtype):
        return (f"No gradient flows through {dtype_name(tensor.array.dtype).decode()} tensors, as returned by "
                "conversions to integers, argmax, argsort and counts. Use floating point tensors.")
    if is_inference(tensor) or tensor.view_kind == INFERENCE_VIEW:
        return "It was created in inference mode, without recording. Compute it outside of inference_mode()."
    if tensor.view_kind == NO_GRAD_VIEW and requires_grad(source):
        return "It is a view created under no_grad(), without recording. Create it outside."
    return _reasons.get(source.untracked) or (
        "It is a leaf without requires_grad=True, or computed from tensors that do not require grad. Call "
        "requires_grad_() on the inputs before they are used.")


cdef array_t *_root_gradient(object output, object grad, str operation, int position) except NULL:
    """Return the array of a root's gradient, owned: the argument, checked and cast; or a one for a scalar."""
    cdef const array_t *root = NULL
    cdef array_t *given
    cdef array_t *array
    if isinstance(output, Tensor):
        root = (<Tensor>output).array
    elif isinstance(output.ownership_token, Edge):
        root = (<Edge>output.ownership_token).meta
    if grad is None:
        return _implicit_gradient(root, operation, position)
    if not isinstance(grad, Tensor):
        raise TypeError(f"{operation}: gradients can be either Tensors or None (got {type(grad).__name__} for output "
                        f"{position}).")
    given = (<Tensor>grad).array
    if root != NULL:
        if not same_shape(given, root):
            shape = output.shape if isinstance(output, Tensor) else shape_text(root).decode()
            raise RuntimeError(f"{operation}: Mismatch in shape: grad_output[{position}] has a shape of {grad.shape} "
                               f"and output[{position}] has a shape of {shape}.")
        if is_complex(given.dtype) != is_complex(root.dtype):
            raise RuntimeError(f"{operation}: output {position} and its gradient are required to have the same dtype, "
                               f"as for real or complex (got {dtype_name(given.dtype).decode()}, expected "
                               f"{dtype_name(root.dtype).decode()}).")
        if given.dtype != root.dtype:
            array = as_dtype(given, root.dtype)
            if array == NULL:
                check(MEMORY_ERROR)
            return array
    return retain(given)


cdef array_t *_implicit_gradient(const array_t *root, str operation, int position) except NULL:
    cdef array_t *array
    cdef value_t one
    if root == NULL:
        raise RuntimeError(f"{operation}: output {position} is a GradientEdge of a node, so its shape is not known "
                           "(got None as its gradient). Pass a gradient, or use "
                           "get_gradient_edge(tensor).")
    if root.size != 1:
        raise RuntimeError(f"{operation}: grad can be implicitly created only for scalar outputs (got output "
                           f"{position} of shape {shape_text(root).decode()}). Reduce it, for example with sum(), or "
                           "pass a gradient of its shape.")
    if is_complex(root.dtype):
        raise RuntimeError(f"{operation}: grad can be implicitly created only for real scalar outputs but got "
                           f"{dtype_name(root.dtype).decode()} for output {position}. Pass a gradient, or take the "
                           "real part or abs() first.")
    array = array_empty_like(root, -1)
    if array == NULL:
        check(MEMORY_ERROR)
    one.kind = INTEGER
    one.of.integer = 1
    check(fill(array, &one))
    return array


# -------------------------------------------------------------------------------------------------------------- anomaly

# Anomaly mode: the line of the forward that a failing node comes from, and where nan first appears.

cdef object explain(Node node, object error):
    stack = None if node.notes is None else node.notes.get("traceback_")
    if not thread_state().anomaly & ANOMALY_ON:      # only a profiler is active
        return None
    if stack is None:
        text = (f"Error detected in {node.name()}. No forward pass information is available: enable anomaly mode "
                "during the forward, too.")
    else:
        text = f"Error detected in {node.name()}. Traceback of forward call that caused the error:\n{''.join(stack)}"
    texts = [text]
    # A node created by a backward: the nodes for which it was created, nested.
    seen = {node}
    while node.notes is not None and node.notes.get("parent_") not in (None, *seen):
        node = node.notes["parent_"]
        seen.add(node)
        stack = (node.notes or {}).get("traceback_")
        texts.append(f"Previous calculation was induced by {node.name()}. " + (
            "No forward pass information is available." if stack is None else
            f"Traceback of forward call that induced the previous calculation:\n{''.join(stack)}"))
    for text in texts:
        try:
            warn_user(text)
        except Warning:                  # warnings are errors: raise the error of backward instead
            error.add_note(text)
            print(text, file=sys.stderr)


cdef int raise_nan(Node node, int number) except -1:
    raise RuntimeError(f"Function '{node.name()}' returned nan values in its {number}th output.")


cdef int look_for_nan(Node node, list results) except -1:
    cdef int i
    for i in range(len(results)):
        if results[i] is not None and holds_nan((<Tensor>results[i]).array):
            raise_nan(node, i)
    return 0


def anomaly_state():
    """
    Return whether anomaly mode is on in this thread, and whether it checks for nan.

    Returns
    -------
    tuple of bool
    """
    cdef int flags = thread_state().anomaly
    return bool(flags & ANOMALY_ON), bool(flags & ANOMALY_NAN)


def set_anomaly_state(mode, check_nan):
    """
    Set anomaly mode in this thread.

    Parameters
    ----------
    mode : bool
    check_nan : bool
        Whether to check every gradient for nan.
    """
    cdef int flags = thread_state().anomaly & ~(ANOMALY_ON | ANOMALY_NAN)
    thread_state().anomaly = flags | ((ANOMALY_ON | (ANOMALY_NAN if check_nan else 0)) if mode else 0)


# --------------------------------------------------------------------------------------------------------------- engine

cdef enum:
    DEEP = 60               # nested backward calls on one stack before the next one gets a new thread
    DEEPEST = 1000          # nested threads of that kind
    BRIEF = 16              # nodes, and elements that they access: smaller plans take less time than
    BRIEF_WORK = 1024       # releasing and acquiring the GIL


cdef class GraphTask:
    """One call of backward: its plan and options."""

    cdef plan_t plan
    cdef bint recorded              # create_graph
    cdef bint direct                # inputs are the ends of a part of the graph: nodes beyond are not executed
    cdef list gradients             # create_graph: the Tensor waiting in each buffer, or None
    cdef list captured              # create_graph: the Tensor captured in each buffer, or None
    cdef object error               # exception raised by Python code inside a team

    def __dealloc__(self):
        plan_free(&self.plan)

    # ------------------------------------------------------------------------------------------------------- running

    cdef int run(self) except -1:
        cdef int64_t position = 0
        cdef int status
        if is_watched():
            return self.run_watched()
        if self.recorded:
            for position in range(self.plan.n_items):
                item = &self.plan.items[self.plan.order[position]]
                if item.needed:
                    self.run_python(item)
            return 0
        if should_use_team(&self.plan):
            return self.run_team()
        while True:
            if self.plan.n_items <= BRIEF and self.plan.work <= BRIEF_WORK:
                status = advance(&self.plan, &position, self.plan.keep)
            else:
                with nogil:
                    status = advance(&self.plan, &position, self.plan.keep)
            if status == FINISHED:
                return 0
            if status == CHECK_SIGNALS:
                PyErr_CheckSignals()
            elif status == NEEDS_PYTHON:
                self.run_python(&self.plan.items[self.plan.order[position]])
                position += 1
            else:
                check(status)

    cdef int run_watched(self) except -1:
        """Run every node on the calling thread, for anomaly mode or a profiler, naming a node that fails."""
        cdef Mode profiler = mode_at(PROFILER_MODE)
        cdef int64_t position
        cdef int status, nan_in
        cdef bint look = thread_state().anomaly & ANOMALY_NAN != 0
        cdef bint clean = not look or self.is_clean()
        for position in range(self.plan.n_items):
            item = &self.plan.items[self.plan.order[position]]
            if not item.needed:
                continue
            PyErr_CheckSignals()
            outer = set_evaluating(<Node>item.node.object)
            event = None if profiler is None else profiler.begin_node((<Node>item.node.object).name())
            try:
                if self.recorded or item.python or item.node.python:
                    clean = False                # Python code may have modified anything
                    self.run_python(item)
                    continue
                with nogil:
                    status = run_watched_item(&self.plan, item, self.plan.keep, look, &clean, &nan_in)
                check(status)
                if nan_in >= 0:
                    raise_nan(<Node>item.node.object, nan_in)
            except Exception as error:
                explain(<Node>item.node.object, error)
                raise
            finally:
                set_evaluating(outer)
                if profiler is not None:
                    profiler.end_node(event)
        return 0

    cdef bint is_clean(self) noexcept:
        """Anomaly mode: return whether the initial gradients contain no nan."""
        cdef int64_t i
        for i in range(self.plan.n_buffers):
            if self.plan.sums[i] != NULL and holds_nan(self.plan.sums[i]):
                return False
        return True

    cdef int run_team(self) except -1:
        cdef int status
        with nogil:
            status = run_with_team(&self.plan, self.plan.keep, _python_item, <void *>self)
        if self.error is not None:
            error, self.error = self.error, None
            raise error
        return check(status)

    # ------------------------------------------------------------------------------- a node on the calling thread

    cdef list take(self, item_t *item):
        """Return the gradients that wait for a node, as Tensors."""
        cdef int64_t i
        cdef list grads = []
        cdef array_t *array
        for i in range(item.buffers, item.buffers + item.node.n_outputs):
            if self.recorded:
                grads.append(self.gradients[i])
                self.gradients[i] = None
            else:
                array = self.plan.sums[i]
                self.plan.sums[i] = NULL
                grads.append(None if array == NULL else tensor_of(array))
        return grads

    cdef int give(self, item_t *target, int64_t input_nr, Tensor gradient) except -1:
        """create_graph: pass a gradient to an input of the plan."""
        cdef int64_t buffer = target.buffers + input_nr
        if target.needed:
            if self.gradients[buffer] is None:
                self.gradients[buffer] = gradient
            else:
                gradient = protocol.binary(SLOT_ADD, self.gradients[buffer], gradient)
                if thread_state().modes & BACKWARD_MODES and not grad_enabled() and not gradient.array.contiguous:
                    gradient = gradient.contiguous()           # as `add_contribution` does
                self.gradients[buffer] = gradient
        return 0

    cdef int capture(self, item_t *item, list grads) except -1:
        cdef int i
        for i in range(item.node.n_outputs):
            if grads[i] is None:
                continue
            if self.recorded:
                self.captured[item.buffers + i] = grads[i]
            else:
                plan_capture(&self.plan, item.buffers + i, (<Tensor>grads[i]).array)
        return 0

    cdef int run_python(self, item_t *item) except -1:
        cdef node_t *c = item.node
        cdef Node node = <Node>c.object
        cdef Hooks hooks = node.hooks
        cdef list grads = self.take(item)
        cdef list results
        cdef int i
        cdef bint sparse
        self.plan.current = c
        if item.python & UNREACHED and not any([grad is not None for grad in grads]):
            return 0
        if self.direct and item.captured:          # hooks are called where the gradient arrives at the input
            return self.capture(item, grads)
        if hooks is not None and hooks.fitted:
            fit_gradients(node, hooks, grads)
        if hooks is not None and hooks.tensor:
            call_tensor_hooks(node, hooks, grads)
        if hooks is not None and hooks.retained:
            retain_gradients(hooks, grads, self.recorded)
        if item.captured:
            self.capture(item, grads)
        if not item.executed:
            return 0
        if hooks is not None and hooks.before:
            grads = call_prehooks(node, hooks, grads)
        sparse = c.gradient != NULL and is_entry(grads[0])
        if not sparse and (c.python & HAS_SPARSE_GRADIENT or c.gradient != NULL and c.gradient.sparse):
            _make_dense(<Tensor>node.payload, c, grads[0])
        if sparse or c.gradient != NULL and self.recorded and not _adds_natively(grads[0]):
            _accumulate(<Tensor>node.payload, grads[0])
            results = []
        elif c.gradient != NULL and _hand_over(c, grads):
            results = []
        elif c.gradient == NULL and self.recorded or c.backward == NULL or c.python & HAS_PACKED_TENSORS:
            try:
                results = node.apply(grads, self.plan.keep, self.recorded, wanted_arguments(&self.plan, item))
            except RuntimeError as error:
                if c.backward != NULL and type(error) is RuntimeError and node.name() not in str(error):
                    error.args = (f"{node.name()}: {error}",)          # as _name_node() does for a native backward
                raise
            hooks = node.hooks               # an unpack hook may have registered the first ones
        else:
            results = self.run_native(item, grads)
        if hooks is not None and hooks.accumulated and c.gradient != NULL:
            call_accumulated(hooks, node.payload)
        if hooks is not None and hooks.after:
            results = call_posthooks(node, hooks, results, grads)
        del grads
        if thread_state().anomaly & ANOMALY_NAN:
            look_for_nan(node, results)
        for i in range(c.n_edges):
            if results[i] is None or c.edges[i].node == NULL:
                continue
            if self.recorded:
                self.give(plan_find(&self.plan, c.edges[i].node), c.edges[i].input_nr, results[i])
            else:
                check(deliver(&self.plan, item, i, retain((<Tensor>results[i]).array)))
        return 0

    cdef list run_native(self, item_t *item, list grads):
        """Run a native node whose gradients have been Tensors for its hooks."""
        cdef node_t *c = item.node
        cdef int i, status
        cdef array_t **out = <array_t **>malloc((c.n_edges + 1) * sizeof(array_t *))
        cdef int captured = item.captured
        if out == NULL:
            raise MemoryError(f"{type(<object>c.object).__name__}: no memory for its gradients")
        for i in range(c.n_edges):
            out[i] = NULL
        for i in range(c.n_outputs):
            if grads[i] is not None:
                self.plan.sums[item.buffers + i] = retain((<Tensor>grads[i]).array)
        item.captured = 0
        with nogil:
            status = run_node(&self.plan, item, out, self.plan.keep)
        item.captured = captured
        cdef list results = [None] * c.n_edges
        for i in range(c.n_edges):
            if out[i] != NULL:
                results[i] = tensor_of(out[i])
        free(out)
        check(status)
        return results


cdef int _make_dense(Tensor leaf, node_t *node, object arriving) except -1:
    """Make a sparse .grad dense, because a dense gradient is added to it."""
    node.python &= ~HAS_SPARSE_GRADIENT
    cdef Tensor former
    cdef int64_t version
    while node.gradient.sparse and arriving is not None:
        former = leaf.grad
        if former is not None:                     # else it was set to None meanwhile
            version = version_of_gradient(former.array)
            replace_gradient(leaf, former, version, former.to_dense().contiguous())
    return 0


cdef bint _hand_over(node_t *node, list grads):
    """Make an unshared first gradient .grad without a copy, so that later hooks see the same tensor."""
    cdef Tensor gradient = grads[0]
    if gradient is None or FREE_THREADED or Py_REFCNT(gradient) > 2 or node.released:      # `grads` and `gradient`
        return False
    return keep_gradient(node, gradient.array)


cdef bint _adds_natively(object gradient) except -1:
    """Accumulate in a mode written in Python as without one, under the mutex of .grad."""
    return (thread_state().modes & (1 << USER_MODE | RESULT_MODES) == 1 << USER_MODE and not grad_enabled()
            and not is_entry(gradient))


cdef int _accumulate(Tensor leaf, Tensor gradient) except -1:
    """create_graph: accumulate by an operation, whose result becomes .grad."""
    cdef Tensor former, total
    cdef int64_t version
    while gradient is not None and leaf.leaf_requires_grad:
        former = leaf.grad
        version = 0 if former is None else version_of_gradient(former.array)
        # As add_gradient() does it, also if this backward has aborted the trace.
        if former is not None and (is_tracing() or not (grad_enabled() or thread_state().modes)):
            protocol.inplace(SLOT_ADD, former, gradient)
            if former.array.version != NULL:
                forget_place(former.array.version)
            break
        # A copy, because shared or expanded memory must not become .grad.
        total = (protocol.binary(SLOT_ADD, former, gradient) if former is not None else
                 gradient.new_empty(gradient.shape).copy_(gradient)          # as in PyTorch: CopyBackwards
                 if grad_enabled() and leaf.array.contiguous and gradient.array.contiguous
                 and not (is_tracing() or thread_state().modes or is_meta(gradient.array)) else
                 gradient.clone() if leaf.array.contiguous and (
                     gradient.array.contiguous or is_meta(gradient.array)) else
                 gradient.contiguous() if leaf.array.contiguous else
                 leaf.detach().clone().copy_(gradient))
        # Another thread may have accumulated meanwhile: into another array, or in place.
        if replace_gradient(leaf, former, version, total):
            break
    return 0


cdef int _python_item(void *task, item_t *item) noexcept with gil:
    # Only the calling thread gets here, without a mutex.
    try:
        if item == NULL:
            PyErr_CheckSignals()
        else:
            (<GraphTask>task).run_python(item)
        return 0
    except BaseException as error:
        (<GraphTask>task).error = error
        return -1


def run_backward(str operation, outputs, grads, keep, create, inputs, accumulate, allow_unused, direct=False):
    """
    Run backward from `outputs`; the core of ``autograd.backward`` and ``autograd.grad``, with their arguments.

    `operation` is its name in error messages; `keep` and `create` are retain_graph and create_graph. With `accumulate`
    the gradients of `inputs` are added to ``.grad``, otherwise they are returned; `allow_unused` returns None for
    unreached inputs. With `direct`, gradients exclude paths through other inputs.
    """
    return _enter(operation, outputs, grads, keep, create, inputs, accumulate, allow_unused, direct)


def tensor_backward(Tensor input not None, gradient=None, retain_graph=None, create_graph=False, inputs=None):
    """
    Add the gradient of this tensor with respect to the leaves of the graph to the leaves' ``.grad``.

    Parameters
    ----------
    gradient : Tensor, optional
        The vector of the vector-Jacobian product, of this tensor's shape. A scalar needs none.
    retain_graph : bool, optional
        Whether to keep saved tensors for another backward. Default: the value of `create_graph`.
    create_graph : bool, default False
        Whether to record the computation of the gradients.
    inputs : Tensor, GradientEdge or sequence of them, optional
        Tensors whose gradients are accumulated. Default: all leaves.

    Examples
    --------
    >>> x = cygrad.tensor([1.0, 2.0], requires_grad=True)
    >>> (x * 3).backward(cygrad.ones(2))
    >>> x.grad
    tensor([3., 3.])
    """
    cdef bint create, keep
    if inputs is not None or not (gradient is None or isinstance(gradient, Tensor)):
        provided["backward"](input, gradient, retain_graph, create_graph, inputs)
        return
    create = create_graph
    keep = create if retain_graph is None else retain_graph
    _enter("backward", (input,), (gradient,), keep, create, None, True, True)


cdef object _enter(str operation, object outputs, object grads, bint keep, bint create, object inputs, bint accumulate,
                   bint allow_unused, bint direct=False):
    cdef thread_state_t *state = thread_state()
    if state.depth >= DEEP:
        return _in_new_thread(operation, outputs, grads, keep, create, inputs, accumulate, allow_unused, direct)
    cdef int disabled = state.grad_disabled
    cdef int64_t outer = working_for(), call
    cdef void *hooks = state.saved_hooks          # own reference: hooks that backward enters end with it
    Py_XINCREF(<PyObject *>hooks)
    state.depth += 1
    state.grad_disabled = not create
    try:
        return _run_backward(operation, outputs, grads, keep, create, inputs, accumulate, allow_unused, direct)
    finally:
        call = work_for(outer)
        if callbacks and call != outer:
            callbacks.pop(call, None)
        state.depth -= 1
        state.grad_disabled = disabled
        hooks, state.saved_hooks = state.saved_hooks, hooks
        Py_XDECREF(<PyObject *>hooks)
        if has_pending():
            release_pending()


cdef int _abort_trace_if_unsupported(plan_t *plan) except -1:
    """Abort the trace if a backward on arrays does what a trace of Tensors cannot contain."""
    cdef int64_t i
    if thread_state().inference:
        return abort_trace("a backward was called in inference mode")
    if plan.any_python:
        for i in range(plan.n_items):
            if plan.items[i].node.python & HAS_HOOKS:
                return abort_trace("a backward called hooks")
    return 0


cdef object _run_backward(str operation, object outputs, object grads, bint keep, bint create, object inputs,
                          bint accumulate, bint allow_unused, bint direct=False):
    cdef GraphTask task = GraphTask()
    for source in () if inputs is None else inputs:     # before the graph is walked
        if isinstance(source, Tensor):
            separated(<Tensor>source)
    cdef list roots = [_edge_of(output, operation, "output", i, False) for i, output in enumerate(outputs)]
    cdef list targets
    cdef Edge edge
    cdef Py_ssize_t i, n = len(roots)
    cdef item_t *item
    cdef array_t *array
    _build_plan(task, operation, roots)
    if is_tracing():
        _abort_trace_if_unsupported(&task.plan)
    # In a level of forward mode the gradients have tangents, which only the execution on Tensors computes; entries too.
    create = create or thread_state().modes & (BACKWARD_MODES | RESULT_MODES)
    for grad in grads:
        create = create or is_entry(grad)
    if has_compiled() and not is_tracing():
        while _replace_compiled(&task.plan, roots, create):
            plan_free(&task.plan)
            _build_plan(task, operation, roots)
    remember_call(task.plan.id, keep)
    work_for(task.plan.id)
    task.plan.keep = keep
    task.direct = direct
    task.recorded = create
    if create:
        task.gradients = [None] * task.plan.n_buffers
        task.captured = [None] * task.plan.n_buffers
    for i in range(n):
        edge = <Edge>roots[i]
        item = plan_find(&task.plan, edge.node.c)
        if create and grads[i] is not None:
            _root_array_checked(outputs[i], grads[i], operation, i)
            task.give(item, edge.output_nr, grads[i])
        else:
            array = _root_gradient(outputs[i], grads[i], operation, i)
            if create:
                task.give(item, edge.output_nr, wrap(array))
            else:
                task.plan.work += array.size
                check(add_contribution(&task.plan.sums[item.buffers + edge.output_nr], array))
    targets = None
    if inputs is not None:
        targets = _restrict(task, operation, inputs, accumulate, allow_unused, roots if direct else [])
    task.run()
    if callbacks:
        run_callbacks(task.plan.id)
    if targets is None or accumulate:
        return []
    return _captured(task, operation, inputs, targets, allow_unused)


cdef int _build_plan(GraphTask task, str operation, list roots) except -1:
    cdef Py_ssize_t i, n = len(roots)
    cdef int status
    cdef node_t **nodes = <node_t **>malloc((n + 1) * sizeof(node_t *))
    if nodes == NULL:
        raise MemoryError(f"{operation}: no memory for {n} roots")
    for i in range(n):
        nodes[i] = (<Edge>roots[i]).node.c
    if has_compiled():
        status = plan_build(&task.plan, nodes, n)
    else:
        with nogil:
            status = plan_build(&task.plan, nodes, n)
    free(nodes)
    return check(status)


cdef bint _replace_compiled(plan_t *plan, list roots, bint create) except -1:
    """
    Replace nodes of compiled functions by nodes of eager where a program would add in another order, in the graph.

    A program adds all contributions of its function to a gradient before those of other functions arrive. Return
    whether the graph or the roots have changed, so that the plan must be built again.
    """
    cdef int64_t i
    cdef int k
    cdef node_t *c
    cdef node_t *target
    cdef dict replaced = {}
    cdef bint changed = False
    for i in range(plan.n_items if plan.any_python else 0):
        c = plan.items[i].node
        if c.python & HAS_COMPILED_GRAPH and (<Node>c.object).hooks is None:
            edges = type(<object>c.object)._forward_cls._eager_edges(
                <object>c.object, create or _adds_to_others(plan, <Node>c.object, roots))
            if edges is not None:
                replaced[<size_t>c] = edges
    for moves in range(2 if replaced else 0):
        for i in range(plan.n_items):
            c = plan.items[i].node
            for k in range(c.n_edges):
                target = c.edges[k].node
                if target == NULL or not target.python & HAS_COMPILED_GRAPH or <size_t>target not in replaced:
                    continue
                if moves:
                    edge = replaced[<size_t>target][c.edges[k].input_nr]
                    set_edge(c, k, (<Node>edge.node).c, edge.output_nr)
                    release_saved(target)
                    Py_XDECREF(target.object)
                    changed = True
                elif c.task != plan.id or others_share_nodes(plan):        # another backward reads the edge
                    if (<object>target.object).separated:
                        raise RuntimeError("backward: another backward runs through the node of a compiled function "
                                           "while the gradient of one of its results is needed. Register hooks first.")
                    del replaced[<size_t>target]
    for k in range(len(roots)):
        edges = replaced.get(<size_t>(<Edge>roots[k]).node.c)
        if edges is not None:
            edge = edges[(<Edge>roots[k]).output_nr]
            roots[k], changed = _edge(edge.node, edge.output_nr), True
    return changed


cdef bint _adds_to_others(plan_t *plan, Node node, list roots) except -1:
    """Return whether the node of a compiled function adds several contributions to a gradient that gets others, too."""
    cdef node_t *target
    cdef int k
    for number in node.graph.several:
        target = node.c.edges[<int>number].node
        if target != NULL:
            k = plan_find(plan, target).waiting
            for i in range(node.c.n_edges):
                k -= node.c.edges[<int>i].node == target
            if k or any([(<Edge>root).node.c == target for root in roots]):
                return True
    return False


cdef int _root_array_checked(object output, object grad, str operation, int position) except -1:
    release(_root_gradient(output, grad, operation, position))
    return 0


cdef list _restrict(GraphTask task, str operation, object inputs, bint accumulate, bint allow_unused, list roots):
    cdef list targets = [_edge_of(source, operation, "input", i, allow_unused) for i, source in enumerate(inputs)]
    cdef Py_ssize_t i, n = len(targets)
    cdef item_t *item
    cdef node_t **nodes = <node_t **>malloc((n + len(roots) + 1) * sizeof(node_t *))
    if nodes == NULL:
        raise MemoryError(f"{operation}: no memory for {n} inputs")
    for i in range(n):
        nodes[i] = (<Edge>targets[i]).node.c
        if accumulate and isinstance(inputs[i], Tensor) and grad_fn_of(<Tensor>inputs[i]) is not None:
            inputs[i].retain_grad()
    plan_restrict(&task.plan, nodes, n, not accumulate)
    for i in range(len(roots)):
        nodes[n + i] = (<Edge>roots[i]).node.c
    if roots:
        plan_restrict_direct(&task.plan, nodes + n, len(roots), nodes, n)
    free(nodes)
    if not accumulate:
        check(plan_capturing(&task.plan))
    for i in range(n):
        item = plan_find(&task.plan, (<Edge>targets[i]).node.c)
        if item != NULL:
            if accumulate:
                item.python = item.python or item.node.python != 0     # retain_grad above has added a hook
            else:
                item.captured = True
    return targets


cdef list _captured(GraphTask task, str operation, object inputs, list targets, bint allow_unused):
    cdef list results = []
    cdef Edge edge
    cdef item_t *item
    cdef array_t *array
    cdef bint fresh
    for position, target in enumerate(targets):
        edge = <Edge>target
        item = plan_find(&task.plan, edge.node.c)
        result = None
        if item != NULL:
            if task.recorded:
                result = task.captured[item.buffers + edge.output_nr]
                if thread_state().modes & BACKWARD_MODES and not grad_enabled() and result is not None:
                    result = result.detach()           # as natively: no view of an intermediate result
            else:
                array = task.plan.captured[item.buffers + edge.output_nr]
                if array != NULL:
                    fresh = known_tensor(array) is None
                    if fresh and any_unusual and isinstance(inputs[position], Tensor):
                        propagate_array_api(array, (<Tensor>inputs[position]).array)
                    result = tensor_of(retain(array))
                    if fresh:
                        (<Tensor>result).untracked = GRADIENT
        if result is None and not allow_unused:
            raise RuntimeError(f"{operation}: input {position} appears to not have been used in the graph, so it has "
                               "no gradient. Set allow_unused=True for None in its place, or materialize_grads=True "
                               "for zeros.")
        results.append(result)
    return results


_nesting = threading.local()      # .level: nesting depth of threads of backward calls below this one


def _in_new_thread(*arguments):
    """Continue on a new stack, so that backward can be nested to any depth."""
    cdef thread_state_t outer = thread_state()[0]
    cdef list modes = active_modes()
    cdef SavedHooks hooks = None if thread_state().saved_hooks == NULL else saved_hooks()
    cdef int level = getattr(_nesting, "level", 0) + 1
    outcome = []
    if level > DEEPEST:
        raise RecursionError(f"backward: nested more than {DEEP * DEEPEST} deep. Check that no hook or custom "
                             "backward calls itself recursively.")

    def body():
        _nesting.level = level
        thread_state().inference, thread_state().reports_grad = outer.inference, outer.reports_grad
        thread_state().anomaly = outer.anomaly
        set_modes(modes)
        thread_state().dual_level = outer.dual_level
        work_for(-1)
        if hooks is not None:
            push_hooks(hooks.pack, hooks.unpack)
        try:
            outcome.append((run_backward(*arguments), None))
        except BaseException as error:
            outcome.append((None, error))
        finally:
            pop_hooks()
            set_modes(None)

    thread = threading.Thread(target=body, name="cygrad nested backward")
    thread.start()
    thread.join()
    result, error = outcome[0]
    if error is not None:
        raise error
    return result
