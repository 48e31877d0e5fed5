"""
Backward: one plan of the reachable nodes, then run it.

`run_backward` turns what the user asked for into roots and targets, builds the plan and runs it: native stretches
without the GIL, nodes with hooks or Python code in between, on the calling thread. With create_graph everything is
recorded: the same plan, the gradients being Tensors and the formulas operations on them.
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc
from cygrad._core.anomaly cimport explain, look_for_nan
from cygrad._core.array cimport array_empty_like, array_t, release, retain, same_shape, shape_text
from cygrad._core.dtype cimport dtype_name, is_complex, is_differentiable
from cygrad._core.elementwise cimport as_dtype, fill
from cygrad._core.errors cimport MEMORY_ERROR, check
from cygrad._core.hook_calls cimport call_posthooks, call_prehooks, call_tensor_hooks, retain_gradients
from cygrad._core.modes cimport ANOMALY_NAN, thread_state, thread_state_t
from cygrad._core.node cimport HAS_PACKED_TENSORS, Hooks, Node, node_t
from cygrad._core.plan cimport buffer_t, item_t, plan_build, plan_find, plan_free, plan_restrict, plan_t
from cygrad._core.run cimport FINISHED, LOOK_FOR_SIGNALS, NEEDS_PYTHON, add_part, advance, deliver, run_node
from cygrad._core.saved cimport SavedHooks, saved_hooks
from cygrad._core.storage cimport has_pending, release_pending
from cygrad._core.team cimport run_with_team, worth_a_team
from cygrad._core.tensor cimport (
    SLOT_ADD, Tensor, describe, grad_fn_of, gradient_edge, protocol, set_gradient, tensor_of,
    wrap)
from cygrad._core.value cimport INTEGER, value_t

from cygrad._core.saved import pop_hooks, push_hooks
import threading

cdef enum:
    DEEP = 60               # backward calls inside each other on one stack before the next one gets a new thread
    DEEPEST = 1000          # such threads on top of each other


cdef class GraphTask:
    """One call of backward: its plan and how it is to be run."""

    cdef plan_t plan
    cdef bint keep                  # retain_graph
    cdef bint recorded              # create_graph
    cdef list gradients             # recorded: the Tensor waiting in each buffer, or None
    cdef list captured              # recorded: the Tensor that was captured in each buffer, or None
    cdef list callbacks             # to be called when all is done
    cdef object error               # what Python code raised inside a team

    def __dealloc__(self):
        plan_free(&self.plan)

    # ------------------------------------------------------------------------------------------------------- running

    cdef int run(self) except -1:
        cdef int64_t place = 0
        cdef int status
        if thread_state().anomaly:
            return self.run_watched()
        if self.recorded:
            for place in range(self.plan.n_items):
                item = &self.plan.items[self.plan.order[place]]
                if item.needed:
                    self.run_python(item)
            return 0
        if worth_a_team(&self.plan):
            return self.run_team()
        while True:
            with nogil:
                status = advance(&self.plan, &place, self.keep)
            if status == FINISHED:
                return 0
            if status == LOOK_FOR_SIGNALS:
                PyErr_CheckSignals()
            elif status == NEEDS_PYTHON:
                self.run_python(&self.plan.items[self.plan.order[place]])
                place += 1
            else:
                check(status)

    cdef int run_watched(self) except -1:
        """Anomaly mode: every node on the calling thread, with a word about the one that fails."""
        cdef int64_t place
        for place in range(self.plan.n_items):
            item = &self.plan.items[self.plan.order[place]]
            if item.needed:
                try:
                    self.run_python(item)
                except Exception:
                    explain(<Node>item.node.object)
                    raise
        return 0

    cdef int run_team(self) except -1:
        cdef int status
        with nogil:
            status = run_with_team(&self.plan, self.keep, _python_item, <void *>self)
        if self.error is not None:
            error, self.error = self.error, None
            raise error
        return check(status)

    # ------------------------------------------------------------------------------- a node on the calling thread

    cdef list take(self, item_t *item):
        """The gradients that wait for a node, as Tensors."""
        cdef int64_t i
        cdef list grads = []
        cdef array_t *array
        for i in range(item.buffers, item.buffers + item.node.n_outputs):
            if self.recorded:
                grads.append(self.gradients[i])
                self.gradients[i] = None
            else:
                array = self.plan.buffers[i].sum
                self.plan.buffers[i].sum = NULL
                grads.append(None if array == NULL else tensor_of(array))
        return grads

    cdef int give(self, item_t *target, int64_t input_nr, Tensor gradient) except -1:
        """Recorded: hand a gradient to an input of the plan."""
        cdef int64_t buffer = target.buffers + input_nr
        if target.needed:
            if self.gradients[buffer] is None:
                self.gradients[buffer] = gradient
            else:
                self.gradients[buffer] = protocol.binary(SLOT_ADD, self.gradients[buffer], gradient)
        return 0

    cdef int capture(self, item_t *item, list grads) except -1:
        cdef int i
        cdef buffer_t *buffer
        for i in range(item.node.n_outputs):
            if grads[i] is None:
                continue
            if self.recorded:
                self.captured[item.buffers + i] = grads[i]
            else:
                buffer = &self.plan.buffers[item.buffers + i]
                release(buffer.captured)
                buffer.captured = retain((<Tensor>grads[i]).array)
        return 0

    cdef int run_python(self, item_t *item) except -1:
        cdef node_t *c = item.node
        cdef Node node = <Node>c.object
        cdef Hooks hooks = node.hooks
        cdef list grads = self.take(item)
        cdef list results
        cdef int i
        if hooks is not None and hooks.tensor:
            call_tensor_hooks(node, hooks, grads)
        if item.captured:
            self.capture(item, grads)
        if item.executed and hooks is not None and hooks.before:
            grads = call_prehooks(node, hooks, grads)
        if hooks is not None and hooks.retained:
            retain_gradients(hooks, grads, self.recorded)
        if not item.executed:
            return 0
        if self.recorded and c.gradient != NULL:
            _accumulate(<Tensor>node.payload, grads[0])
            results = []
        elif any([grad is not None for grad in grads]):
            if self.recorded or c.backward == NULL or c.python & HAS_PACKED_TENSORS:
                results = node.apply(grads, self.keep, self.recorded)
            else:
                results = self.run_native(item, grads)
        else:
            results = [None] * c.n_edges
        if hooks is not None and hooks.accumulated and c.gradient != NULL:
            for hook in list(hooks.accumulated.values()):
                hook(node.payload)
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
                self.plan.buffers[item.buffers + i].sum = retain((<Tensor>grads[i]).array)
        item.captured = 0
        with nogil:
            status = run_node(&self.plan, item, out, self.keep)
        item.captured = captured
        cdef list results = [None] * c.n_edges
        for i in range(c.n_edges):
            if out[i] != NULL:
                results[i] = tensor_of(out[i])
        free(out)
        check(status)
        return results


cdef int _accumulate(Tensor leaf, Tensor gradient) except -1:
    """Recorded: the sum is an operation like any other, and .grad a result of it."""
    cdef Tensor former, total
    cdef array_t *seen
    while gradient is not None and leaf.leaf_requires_grad:
        former = leaf.grad
        # A copy, as nobody else's memory may become .grad; nor may an expanded one.
        total = gradient.clone() if former is None else protocol.binary(SLOT_ADD, former, gradient)
        # Another thread may have added its own while the sum was computed.
        seen = NULL if leaf.gradient == NULL else leaf.gradient.value
        if seen == (NULL if former is None else former.array):
            set_gradient(leaf, total)
            break
    return 0


cdef int _python_item(void *task, item_t *item) noexcept with gil:
    # Only the calling thread gets here, without any lock.
    try:
        if item == NULL:
            PyErr_CheckSignals()
        else:
            (<GraphTask>task).run_python(item)
        return 0
    except BaseException as error:
        (<GraphTask>task).error = error
        return -1


# ------------------------------------------------------------------------------------------------- from the user's call

cdef class GradientEdge:
    """
    A place in the graph where a gradient arrives: an output of a node.

    Attributes
    ----------
    node : Node
    output_nr : int
    """

    cdef readonly Node node
    cdef readonly int64_t output_nr

    def __cinit__(self, Node node not None, output_nr):
        if not 0 <= output_nr < node.c.n_outputs:
            raise ValueError(f"GradientEdge: {node.name()} has no such output (got {output_nr}, expected less than "
                             f"{node.c.n_outputs}).")
        self.node = node
        self.output_nr = output_nr

    def __iter__(self):
        return iter((self.node, self.output_nr))

    def __getitem__(self, index):
        return (self.node, self.output_nr)[index]

    def __eq__(self, other):
        return isinstance(other, GradientEdge) and (self.node, self.output_nr) == (other.node, other.output_nr)

    def __hash__(self):
        return hash((self.node, self.output_nr))

    def __repr__(self):
        return f"GradientEdge(node={self.node!r}, output_nr={self.output_nr})"


def get_gradient_edge(tensor):
    """
    The place in the graph where the gradient of `tensor` arrives.

    Parameters
    ----------
    tensor : Tensor
        It must require grad.

    Returns
    -------
    GradientEdge

    Raises
    ------
    RuntimeError
        If the tensor does not require grad.

    Examples
    --------
    >>> import cygrad
    >>> x = cygrad.ones(2, requires_grad=True)
    >>> cygrad.autograd.graph.get_gradient_edge(x * 2).node.name()
    'MulBackward0'
    """
    cdef int64_t input_nr
    if not isinstance(tensor, Tensor):
        raise TypeError(f"get_gradient_edge: expected a Tensor (got {type(tensor).__name__}).")
    node = gradient_edge(<Tensor>tensor, &input_nr)
    if node is None:
        raise RuntimeError(f"get_gradient_edge: the tensor does not require grad (got a {describe(tensor)}).")
    return GradientEdge(node, input_nr)


cdef GradientEdge _edge_of(object place, str operation, str role, int position):
    cdef int64_t input_nr
    cdef Tensor tensor
    if isinstance(place, GradientEdge):
        return place
    if not isinstance(place, Tensor):
        raise TypeError(f"{operation}: {role} {position} must be a Tensor or a GradientEdge "
                        f"(got {type(place).__name__}).")
    tensor = <Tensor>place
    node = gradient_edge(tensor, &input_nr)
    if node is None:
        raise RuntimeError(f"{operation}: {role} {position} does not require grad and has no grad_fn (got a "
                           f"{describe(tensor)}). {_why_not(tensor)}")
    return GradientEdge(node, input_nr)


cdef str _why_not(Tensor tensor):
    if not is_differentiable(tensor.array.dtype):
        return "Integer and bool tensors carry no gradient; compute with floating point ones."
    return ("It is a leaf without requires_grad=True, or it was made by detach(), under no_grad() or inference_mode(), "
            "or from tensors none of which requires grad.")


cdef array_t *_root_gradient(object output, object grad, str operation, int position) except NULL:
    """The array of a root's gradient, owned: what was given, checked and cast; or a one for a scalar."""
    cdef Tensor root, given
    cdef array_t *array
    cdef value_t one
    if grad is None:
        if not isinstance(output, Tensor):
            raise RuntimeError(f"{operation}: output {position} is a GradientEdge, which needs a gradient (got None).")
        root = <Tensor>output
        if root.array.size != 1:
            raise RuntimeError(f"{operation}: a gradient can be made implicitly only for scalars (got output "
                               f"{position} of shape {shape_text(root.array).decode()}). Reduce it, for example with "
                               "sum(), or pass a gradient of its shape.")
        if is_complex(root.array.dtype):
            raise RuntimeError(f"{operation}: a gradient can be made implicitly only for real scalars (got output "
                               f"{position} of dtype {dtype_name(root.array.dtype).decode()}). Pass a gradient, or "
                               "take the real part or abs() first.")
        array = array_empty_like(root.array, -1)
        if array == NULL:
            check(MEMORY_ERROR)
        one.kind = INTEGER
        one.of.integer = 1
        check(fill(array, &one))
        return array
    if not isinstance(grad, Tensor):
        raise TypeError(f"{operation}: the gradient of output {position} must be a Tensor or None "
                        f"(got {type(grad).__name__}).")
    given = <Tensor>grad
    if isinstance(output, Tensor):
        root = <Tensor>output
        if not same_shape(given.array, root.array):
            raise RuntimeError(f"{operation}: the gradient of output {position} has the wrong shape (got "
                               f"{shape_text(given.array).decode()}, expected {shape_text(root.array).decode()}).")
        if is_complex(given.array.dtype) != is_complex(root.array.dtype):
            raise RuntimeError(f"{operation}: the gradient of output {position} has the wrong dtype (got "
                               f"{dtype_name(given.array.dtype).decode()}, expected "
                               f"{dtype_name(root.array.dtype).decode()}).")
        if given.array.dtype != root.array.dtype:
            array = as_dtype(given.array, root.array.dtype)
            if array == NULL:
                check(MEMORY_ERROR)
            return array
    return retain(given.array)


def run_backward(str operation, outputs, grads, keep, create, inputs, accumulate, allow_unused):
    """
    Run backward from `outputs`; the core of ``autograd.backward`` and ``autograd.grad``.

    Parameters
    ----------
    operation : str
        What the messages call it.
    outputs : sequence of Tensor or GradientEdge
    grads : sequence of Tensor or None
        One per output.
    keep, create : bool
        Keep what nodes saved; record the backward itself.
    inputs : sequence of Tensor or GradientEdge, or None
        Restrict backward to what leads there.
    accumulate : bool
        Add to ``.grad``; else return the gradients of `inputs`.
    allow_unused : bool
        None instead of an error for inputs that are not reached.

    Returns
    -------
    list of Tensor or None
        The gradients of `inputs` unless `accumulate`.
    """
    cdef thread_state_t *state = thread_state()
    if state.depth >= DEEP:
        return _in_new_thread(operation, outputs, grads, keep, create, inputs, accumulate, allow_unused)
    cdef int disabled = state.grad_disabled
    state.depth += 1
    state.grad_disabled = not create
    try:
        return _run_backward(operation, outputs, grads, keep, create, inputs, accumulate, allow_unused)
    finally:
        state.depth -= 1
        state.grad_disabled = disabled
        if has_pending():
            release_pending()


cdef object _run_backward(str operation, object outputs, object grads, bint keep, bint create, object inputs,
                          bint accumulate, bint allow_unused):
    cdef GraphTask task = GraphTask()
    cdef list roots = [_edge_of(output, operation, "output", i) for i, output in enumerate(outputs)]
    cdef list targets
    cdef GradientEdge edge
    cdef Py_ssize_t i, n = len(roots)
    cdef int status
    cdef item_t *item
    cdef array_t *array
    cdef node_t **nodes = <node_t **>malloc((n + 1) * sizeof(node_t *))
    if nodes == NULL:
        raise MemoryError(f"{operation}: no memory for {n} roots")
    for i in range(n):
        nodes[i] = (<GradientEdge>roots[i]).node.c
    with nogil:
        status = plan_build(&task.plan, nodes, n)
    free(nodes)
    check(status)
    task.keep = keep
    task.recorded = create
    if create:
        task.gradients = [None] * task.plan.n_buffers
        task.captured = [None] * task.plan.n_buffers
    for i in range(n):
        edge = <GradientEdge>roots[i]
        item = plan_find(&task.plan, edge.node.c)
        if create and grads[i] is not None:
            _root_array_checked(outputs[i], grads[i], operation, i)
            task.give(item, edge.output_nr, grads[i])
        else:
            array = _root_gradient(outputs[i], grads[i], operation, i)
            if create:
                task.give(item, edge.output_nr, wrap(array))
            else:
                check(add_part(&task.plan.buffers[item.buffers + edge.output_nr].sum, array))
    targets = None
    if inputs is not None:
        targets = _restrict(task, operation, inputs, accumulate)
    task.run()
    if targets is None or accumulate:
        return []
    return _captured(task, operation, inputs, targets, allow_unused)


cdef int _root_array_checked(object output, object grad, str operation, int position) except -1:
    release(_root_gradient(output, grad, operation, position))
    return 0


cdef list _restrict(GraphTask task, str operation, object inputs, bint accumulate):
    cdef list targets = [_edge_of(place, operation, "input", i) for i, place in enumerate(inputs)]
    cdef Py_ssize_t i, n = len(targets)
    cdef item_t *item
    cdef node_t **nodes = <node_t **>malloc((n + 1) * sizeof(node_t *))
    if nodes == NULL:
        raise MemoryError(f"{operation}: no memory for {n} inputs")
    for i in range(n):
        nodes[i] = (<GradientEdge>targets[i]).node.c
        if accumulate and isinstance(inputs[i], Tensor) and grad_fn_of(<Tensor>inputs[i]) is not None:
            inputs[i].retain_grad()
    plan_restrict(&task.plan, nodes, n, not accumulate)
    free(nodes)
    for i in range(n):
        item = plan_find(&task.plan, (<GradientEdge>targets[i]).node.c)
        if item != NULL:
            if accumulate:
                item.python = item.python or item.node.python != 0     # retain_grad above has added a hook
            else:
                item.captured = True
    return targets


cdef list _captured(GraphTask task, str operation, object inputs, list targets, bint allow_unused):
    cdef list results = []
    cdef GradientEdge edge
    cdef item_t *item
    cdef array_t *array
    for position, target in enumerate(targets):
        edge = <GradientEdge>target
        item = plan_find(&task.plan, edge.node.c)
        result = None
        if item != NULL:
            if task.recorded:
                result = task.captured[item.buffers + edge.output_nr]
            else:
                array = task.plan.buffers[item.buffers + edge.output_nr].captured
                if array != NULL:
                    result = tensor_of(retain(array))
        if result is None and not allow_unused:
            raise RuntimeError(f"{operation}: input {position} was not used to compute the outputs, so it has no "
                               "gradient. Pass allow_unused=True for None in its place, or materialize_grads=True for "
                               "zeros.")
        results.append(result)
    return results


_nesting = threading.local()      # .level: how many threads of nested backward calls lie below this one


def _in_new_thread(*arguments):
    """Go on with a fresh stack: backward inside backward may be nested to any depth."""
    cdef int inference = thread_state().inference, anomaly = thread_state().anomaly
    cdef SavedHooks hooks = None if thread_state().saved_hooks == NULL else saved_hooks()
    cdef int level = getattr(_nesting, "level", 0) + 1
    outcome = []
    if level > DEEPEST:
        raise RecursionError(f"backward: nested more than {DEEP * DEEPEST} deep. A hook or a custom backward calls "
                             "backward on itself without end.")

    def body():
        _nesting.level = level
        thread_state().inference = inference
        thread_state().anomaly = anomaly
        if hooks is not None:
            push_hooks(hooks.pack, hooks.unpack)
        try:
            outcome.append((run_backward(*arguments), None))
        except BaseException as error:
            outcome.append((None, error))
        finally:
            pop_hooks()

    thread = threading.Thread(target=body, name="cygrad nested backward")
    thread.start()
    thread.join()
    result, error = outcome[0]
    if error is not None:
        raise error
    return result
