"""
Call path of compiled functions: check guards, execute, return results.

A `Variant` is one trace. Its guards compare all that the function could read with the traced call: layouts of tensors,
Python values, modes, and the variables, modules and containers that the function names. If none fits, Python runs.
"""

cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset
from cygrad._core.arrays.array cimport (
    ARRAY, ARRAYS, array_meta, array_t, array_view, copy_value, release, retain, same_layout, set_array,
    set_arrays, value_t,
)
from cygrad._core.arrays.dtype cimport default_float, itemsize
from cygrad._core.compiler.guards cimport (
    Guards, free_aliases, index_constants, is_same_value, same_aliases, tensor_guard_t, version_of_dict,
)
from cygrad._core.compiler.executable cimport LONG_WORK, Executable, acquire_gil, release_gil
from cygrad._core.compiler.tracer cimport (
    Buffer, TracedArray, array_of, has_plain_gradient, number_of_array, read_rule,
)
from cygrad._core.elementwise.elementwise cimport copy_into
from cygrad._core.engine.plan cimport mark_compiled
from cygrad._core.graph.modes cimport is_tracing, thread_state, thread_state_t
from cygrad._core.graph.native cimport NativeNode, has_memory, version_of
from cygrad._core.graph.node cimport Node, gradient_t, kept_t, next_sequence_nr, node_new, node_t, set_edge
from cygrad._core.graph.saved cimport attach
from cygrad._core.graph.tensor cimport (
    Tensor, grad_fn_of, gradient_edge, is_array_api, is_meta, mark_array_api, requires_grad, slot_of, wrap, wrap_view,
)
from cygrad._core.memory.atomic cimport lock_patiently, unlock
from cygrad._core.memory.errors cimport MEMORY_ERROR, OK, check
from cygrad._core.optimizers.optimize cimport rule_t
from cygrad._core.program.executor cimport copy_with_layout

from collections import Counter
from cygrad._core.arrays.array import HAS_DEFAULT_DEVICE, get_default_device
from cygrad._core.creation.factories import FILLS_UNINITIALIZED
from cygrad._core.engine.engine import GradientEdge
from cygrad._core.graph.modes import set_grad_enabled
from cygrad._core.table.operator import operators


# ------------------------------------------------------------------------------------------------------- graph template

# The autograd graph of a traced call without tensor data, rebuilt over the saved tensors of another call.

@cython.binding(False)
cdef class GraphTemplate:
    """
    Graph nodes with metadata in place of saved arrays.

    A backward that the compiled one does not cover (of a subset of the results, or with ``create_graph``) runs through
    eager nodes that are rebuilt over the saved tensors of the call.

    Parameters
    ----------
    tracer : Tracer
    outputs : list of Tensor
    inputs : list of Tensor
        Nodes at the ends of the graph.

    Attributes
    ----------
    reason : str or None
        Reason why there is no template.
    sources : dict
        Number of a saved array -> its index among the saved tensors of a call, or a constant Tensor.
    """

    cdef list nodes               # node templates, ordered by sequence number
    cdef list edges               # per node: (number of a node or -1 - number of an input, input_nr), or None
    cdef list saved               # per node: (index, entry or -1, number of the base, offset in bytes or None)
    cdef list roots               # (number of a node, output_nr)
    cdef dict numbers             # address of a traced node -> its number
    cdef dict latest              # edge -> the largest sequence number of the nodes that it leads from
    cdef readonly object reason
    cdef public dict sources

    def __init__(self, tracer, list outputs not None, list inputs not None):
        cdef Tensor tensor
        cdef Node node
        cdef int64_t nr = 0
        cdef dict ends = {}, numbers = {}
        cdef list kept = []
        self.numbers, self.latest = numbers, {}
        self.nodes, self.edges, self.saved, self.roots, self.sources = [], [], [], [], {}
        for position, tensor in enumerate(inputs):
            node = gradient_edge(tensor, &nr)
            kept.append(node)
            if node.hooks is not None:             # they are called only by a backward of the user
                self.reason = "its result has a graph with hooks"
            ends[<size_t>node.c, nr] = -1 - position
        originals = self.reachable([gradient_edge(tensor, &nr) for tensor in outputs], ends)
        if self.reason is not None:
            return
        for node in originals:
            numbers[<size_t>node.c] = len(numbers)
        for node in originals:
            self.add(tracer, node, numbers, ends)
        for tensor in outputs:
            node = gradient_edge(tensor, &nr)
            self.roots.append((numbers[<size_t>node.c], nr))

    def reachable(self, list stack not None, dict ends not None):
        """Return the nodes between outputs and inputs, by sequence number."""
        cdef Node node
        cdef int i
        cdef dict seen = {}
        while stack:
            node = stack.pop()
            if <size_t>node.c in seen:
                continue
            seen[<size_t>node.c] = node
            if not isinstance(node, NativeNode) or node.hooks is not None or (
                    node.packed is not None or node.payload is not None):
                self.reason = f"its result has a graph in which {node.name()} cannot be rebuilt in each call"
                return []
            for i in range(node.c.n_edges):
                if node.c.edges[i].node != NULL and (
                        (<size_t>node.c.edges[i].node, node.c.edges[i].input_nr) not in ends):
                    stack.append(<object>node.c.edges[i].node.object)
        return sorted(seen.values(), key=lambda node: (<Node>node).c.sequence_nr)

    def reached(self):
        """Return the numbers of the inputs that edges lead to, in the order in which backward completes them."""
        last = {}
        for edges in reversed(self.edges):
            for edge in edges:
                if edge is not None and edge[0] < 0:
                    last.pop(-1 - edge[0], None)
                    last[-1 - edge[0]] = True
        return [*last]

    def several(self):
        """Return the numbers of the inputs whose gradients are sums."""
        ends = [edge[0] for edges in self.edges for edge in edges if edge is not None and edge[0] < 0]
        return [-1 - end for end, count in Counter(ends).items() if count > 1]

    def contains(self, Tensor tensor not None):
        """Return whether another output is computed from this tensor."""
        cdef int64_t nr = 0
        cdef Node node = gradient_edge(tensor, &nr)
        return (<size_t>node.c, nr) in self.latest

    def separates(self, Tensor view not None):
        """
        Return whether nodes from a view to its base can follow those of the graph.

        A node adds the gradients of its output in decreasing sequence numbers. The nodes of views are new in each call,
        so none of them may be part of the graph, or precede another node that reads the base.
        """
        cdef list nodes = _view_nodes(view)
        cdef Node node
        if nodes is None or any([<size_t>(<Node>node).c in self.numbers for node in nodes]):
            return False
        node = nodes[len(nodes) - 1]
        edge = <size_t>node.c.edges[0].node, node.c.edges[0].input_nr
        return node.c.sequence_nr > self.latest.get(edge, -1)

    cdef int add(self, object tracer, Node original, dict numbers, dict ends) except -1:
        """Add the template of a node."""
        cdef Node node = _like(original)
        cdef node_t *c = original.c
        cdef list edges = [], saved = []
        cdef int i
        for i in range(c.n_edges):
            if c.edges[i].node == NULL:
                edges.append(None)
                continue
            edge = <size_t>c.edges[i].node, c.edges[i].input_nr
            self.latest[edge] = max(self.latest.get(edge, -1), c.sequence_nr)
            end = ends.get(edge)
            edges.append((numbers[<size_t>c.edges[i].node] if end is None else end, c.edges[i].input_nr))
        for i in range(c.n_saved):
            self.strip(tracer, &c.saved[i].value, &node.c.saved[i].value, i, saved)
        self.nodes.append(node)
        self.edges.append(edges)
        self.saved.append(saved)
        return 0

    cdef int strip(self, object tracer, const value_t *value, value_t *to, int position, list saved) except -1:
        """Copy a saved value with metadata in place of arrays."""
        cdef int i
        if value.kind == ARRAY:
            to.of.array = self.without_elements(tracer, value.of.array, position, -1, saved)
            to.kind, to.count = ARRAY, 1
        elif value.kind == ARRAYS:
            check(set_arrays(to, value.count))
            for i in range(value.count):
                if value.of.arrays[i] != NULL:
                    to.of.arrays[i] = self.without_elements(tracer, value.of.arrays[i], position, i, saved)
        else:
            check(copy_value(to, value))
        return 0

    cdef array_t *without_elements(self, object tracer, array_t *array, int position, int entry,
                                   list saved) except NULL:
        cdef TracedArray traced
        cdef Buffer buffer
        cdef array_t *meta
        if array.storage == NULL:
            return retain(array)
        number = number_of_array(tracer, array)
        if number >= 0:
            traced = tracer.arrays[number]
            buffer = tracer.buffers[traced.buffer]
            # A detached alias is not the array of the user's tensor, so it needs an array of its own.
            saved.append((position, entry, buffer.first, None if number == buffer.first else traced.offset))
            self.sources[buffer.first] = None
            if array.version != array_of(tracer.arrays[buffer.first]).version:
                self.reason = "its backward needs a tensor with a version counter of its own (.data)"
        meta = array_meta(array)
        if meta == NULL:
            check(MEMORY_ERROR)
        return meta

    def resolve(self, tracer, dict positions not None):
        """Map each saved array to its index among the saved tensors of a call, or to a constant."""
        for number in self.sources:
            found = positions.get(number)
            self.sources[number] = wrap(retain(array_of(tracer.arrays[number]))) if found is None else found

    def reserve(self, Node context not None):
        """Reserve sequence numbers for the nodes of the current call, before that of `context`; return the first."""
        cdef int64_t first = next_sequence_nr()
        mark_compiled(context.c)
        for _ in range(len(self.nodes)):
            context.c.sequence_nr = next_sequence_nr()
        return first

    def rebuild(self, Node context not None, int64_t first):
        """
        Rebuild the graph of one call; its nodes are released if those of the call are.

        Parameters
        ----------
        context : Node
            Node that holds the saved tensors of the call; its edges lead to the inputs.
        first : int
            Return value of `reserve` in that call.

        Returns
        -------
        list of GradientEdge, list of GradientEdge
            Edges of the outputs and of the inputs.
        """
        cdef list nodes = []
        cdef Node node, skeleton
        cdef node_t *end
        cdef int64_t nr
        cdef int i, number
        for skeleton, entries in zip(self.nodes, self.saved, strict=True):
            node = _copy_of(skeleton)
            node.c.sequence_nr = first + len(nodes)
            if context.c.released and entries and not node.c.released:
                node.c.released, node.c.released_by = True, context.c.released_by
            for position, entry, base, offset in entries if not node.c.released else ():
                self.fill(&node.c.saved[<int>position], entry, self.sources[base], offset, context)
            nodes.append(node)
        for node, edges in zip(nodes, self.edges, strict=True):
            for i, edge in enumerate(edges):
                if edge is not None:
                    number, nr = edge
                    end = (<Node>nodes[number]).c if number >= 0 else NULL
                    if number < 0:             # an input, which may be another output of its node in each call
                        end, nr = context.c.edges[-1 - number].node, context.c.edges[-1 - number].input_nr
                    if end != NULL:
                        set_edge(node.c, i, end, nr)
        inputs = [None if context.c.edges[i].node == NULL else
                  GradientEdge(<object>context.c.edges[i].node.object, context.c.edges[i].input_nr)
                  for i in range(context.c.n_edges)]
        return [GradientEdge(nodes[number], nr) for number, nr in self.roots], inputs

    cdef int fill(self, kept_t *kept, int entry, object source, object offset, Node context) except -1:
        """Replace the metadata by an array, with the version at which the call saved it."""
        cdef array_t **where = &kept.value.of.array if entry < 0 else &kept.value.of.arrays[entry]
        cdef array_t *meta = where[0]
        cdef array_t *base
        cdef array_t *array
        cdef value_t value
        if isinstance(source, int):
            base = context.c.saved[<int>source].value.of.array
            kept.version += context.c.saved[<int>source].version
        else:
            base = (<Tensor?>source).array
            value.kind, value.of.array = ARRAY, base
            kept.version += version_of(&value)
        if offset is None:
            array = retain(base)
        else:
            array = array_view(base, meta.dtype, meta.ndim, meta.shape, meta.strides,
                               <int64_t>offset // itemsize(meta.dtype))
        if array == NULL:
            check(MEMORY_ERROR)
        where[0] = array
        release(meta)
        return 0


cdef Node _like(Node original):
    """Return a node with the same formulas and shapes, without edges and saved values."""
    cdef node_t *c = original.c
    cdef Node node = node_new(type(original), c.n_edges, c.n_outputs, c.n_saved, c.metas != NULL)
    cdef int i
    node.c.op, node.c.backward, node.c.work, node.c.needed = c.op, c.backward, c.work, c.needed
    node.c.released, node.c.released_by = c.released, c.released_by
    for i in range(c.n_edges if c.metas != NULL else 0):
        if c.metas[i] != NULL:
            node.c.metas[i] = retain(c.metas[i])
    return node


def connect(Tensor tensor not None, edge):
    """Connect a result to another node."""
    attach(tensor, edge.node, edge.output_nr)


def needs_nodes(Node context not None):
    """Return True if a saved tensor was modified in place or released, or in a mode that nodes know."""
    cdef int i
    cdef thread_state_t *state = thread_state()
    if context.c.released or state.modes or state.anomaly or state.inference:
        return True
    for i in range(context.c.n_saved):
        if version_of(&context.c.saved[i].value) != context.c.saved[i].version:
            return True
    return False


# -------------------------------------------------------------------------------------------------------------- variant

cdef extern from "Python.h":
    PyObject *PyDict_GetItem(PyObject *, PyObject *)
    Py_ssize_t PyDict_Size(PyObject *)
    PyObject *PyTuple_GET_ITEM(PyObject *, Py_ssize_t)
    void *Py_TYPE(object)


@cython.binding(False)
cdef class Variant:
    """
    One trace of a function: its guards and its program.

    Parameters
    ----------
    executable : Executable
    structure : object
        Of the arguments, from ``flatten``; None if all are positional and none is a container.
    leaves : tuple
        Per argument, the number of its tensor, or (value,).
    constants : tuple of Tensor
        Input tensors that are not arguments.
    layouts : list of tuple
        Fields of tensor_guard_t per input tensor, arguments first.
    guards : Guards
        Guards on what the function reads besides its arguments.
    options : list of tuple
        (index of an optimizer step, optimizer, param group, [(key, value)]).
    outputs : list of tuple
        (0, number of an input) or (1, slot, base, traced Tensor, its node, version), slot None: a view whose history is
        recorded in each call. `base` is the number of an input, or that of all inputs plus the index of an output.
    commits : list of (int, int)
        Number of a leaf, slot of its new gradient or -1.
    rebuild : callable, tuple or None
        Creates the return value from the outputs; (value,) if it is constant; None for a single tensor.
    graph : callable or None
        Connects outputs to the autograd graph; called with outputs and input tensors.
    draws : Draws or None
        Draws random numbers.
    containers : frozenset
        Ids of the objects that the function reads besides its arguments.
    attributes : list of tuple
        (dict, key) of the attributes that are read as further arguments and set to the second part of the result.
    undone : tuple of int or None
        Slots of the inputs to restore if an operation fails, from ``inputs_to_restore``.
    backward : bool
        The function runs a backward, so hooks of leaves matter.
    """

    def __cinit__(self, Executable executable, structure, tuple leaves, tuple constants, list tensors, list layouts,
                  Guards guards, list options, list outputs, list commits, rebuild, graph, draws, frozenset containers,
                  list attributes, tuple undone, bint backward):
        cdef Tensor tensor
        cdef tensor_guard_t *layout
        cdef thread_state_t *state = thread_state()
        cdef int i
        self.executable, self.structure, self.leaves, self.constants = executable, structure, leaves, constants
        self.rebuild, self.graph, self.optimizers, self.draws = rebuild, graph, options, draws
        self.containers, self.state, self.undone = containers, attributes, undone
        self.n_arguments, self.n_tensors, self.n_commits = len(leaves), len(layouts), len(commits)
        self.n_own = len(layouts) - len(constants)
        executable.n_tensors = self.n_tensors
        self.layouts = <tensor_guard_t *>calloc(len(layouts) + 1, sizeof(tensor_guard_t))
        self.guards = guards
        self.options = <option_t *>calloc(sum([len(entry[3]) for entry in options]) + 1, sizeof(option_t))
        self.commits = <commit_t *>calloc(len(commits) + 1, sizeof(commit_t))
        self.numbers = <int32_t *>calloc(len(leaves) + 1, sizeof(int32_t))
        if not (self.layouts and self.options and self.commits and self.numbers):
            raise MemoryError("compile: no memory for guards")
        self.keep = [layouts]
        self.set_results(outputs)
        for i, leaf in enumerate(leaves):
            self.numbers[i] = -1 if isinstance(leaf, tuple) else leaf
        for i, (leaf, slot) in enumerate(commits):
            self.commits[i] = commit_t(leaf, slot)
        for i, (gradient_array, gradient, written, identity, same_as, offset, gradient_same_as,
                gradient_offset) in enumerate(layouts):
            layout = &self.layouts[i]
            tensor = tensors[i]
            layout.array, layout.exact = retain(tensor.array), i >= self.n_own
            layout.requires_grad = requires_grad(tensor)
            self.keep.append(type(tensor))
            layout.type = Py_TYPE(tensor)
            layout.is_view, layout.normal = tensor.base is not None, tensor.array.version != NULL
            layout.is_leaf, layout.has_attributes = tensor.node is None, _has_attributes(tensor)
            layout.gradient, layout.written, layout.identity = gradient, written, identity
            layout.same_as, layout.offset = same_as, offset
            layout.gradient_same_as, layout.gradient_offset = gradient_same_as, gradient_offset
            if gradient == 1:
                layout.gradient_array = retain((<TracedArray?>gradient_array).array)
            self.any_written = self.any_written or written
            self.sees_gradients = self.sees_gradients or gradient >= 0
        self.hooks_are_free = graph is not None or not backward
        self.set_options()
        index_constants(&self.aliases, self.layouts, self.n_own, self.n_tensors)
        self.grad_disabled, self.inference, self.dtype = state.grad_disabled, state.inference, default_float()

    def set_results(self, list outputs):
        """Set `results` from the outputs."""
        cdef result_t *result
        cdef Tensor model
        cdef int i
        cdef list views = []
        self.nodes, self.n_results = [], len(outputs)
        self.results = <result_t *>calloc(len(outputs) + 1, sizeof(result_t))
        self.outgoing = <int32_t *>calloc(len(outputs) + 1, sizeof(int32_t))
        if self.results == NULL or self.outgoing == NULL:
            raise MemoryError("compile: no memory for a list of results")
        self.executable.n_outgoing = len(outputs)
        for i, given in enumerate(outputs):
            result = &self.results[i]
            result.tensor, result.base, self.outgoing[i] = -1, -1, -1
            self.nodes.append(None)
            if given[0] == 0:
                result.tensor = given[1]
                continue
            slot, base, model, node, result.version = given[1:]
            self.nodes[i], self.outgoing[i] = node, -1 if slot is None else slot
            result.base = -1 if base is None else base
            self.has_views = self.has_views or slot is None or result.base >= self.n_tensors
            if slot is None:
                self.nodes[i] = model.shape, model.stride(), model.storage_offset()
                if requires_grad(model):
                    views.append((i, model))
            result.view_kind, result.untracked = model.view_kind, model.untracked
            result.requires_grad = model.leaf_requires_grad
            result.output_nr, result.standard = model.output_nr, is_array_api(model.array)
        self.set_view_nodes(views)

    cdef int set_view_nodes(self, list views) except -1:
        """Set the templates of the nodes from views to their bases, in the order of their sequence numbers."""
        cdef Tensor view
        cdef Node node
        cdef dict bases = {}, numbers = {}
        for position, view in views:
            for node in _view_nodes(view):
                bases[node] = self.results[<int>position].base
        self.view_nodes, self.view_results = [], {}
        for node in sorted(bases, key=_sequence_nr):
            numbers[<size_t>node.c] = len(numbers)
            self.view_nodes.append((_copy_of(node), bases[node], numbers.get(<size_t>node.c.edges[0].node),
                                    node.c.edges[0].input_nr))
        for position, view in views:
            self.view_results[position] = numbers[<size_t>view.node.c], view.output_nr
        return 0

    def set_options(self):
        """Set the guards on options from `optimizers`."""
        cdef option_t *first
        cdef int i
        self.n_options = 0
        for i in range(len(self.optimizers)):
            first = &self.options[self.n_options]
            for key, value in self.optimizers[i][3]:
                self.options[self.n_options] = option_t(
                    <PyObject *>self.optimizers[i][2], <PyObject *>key, <PyObject *>value, i, 0, 0)
                self.n_options += 1
            first.n = len(self.optimizers[i][3])

    def __dealloc__(self):
        cdef int i
        if self.layouts != NULL:
            for i in range(self.n_tensors):
                release(self.layouts[i].array)
                release(self.layouts[i].gradient_array)
        free(self.layouts)
        free_aliases(&self.aliases)
        free(self.options)
        free(self.commits)
        free(self.numbers)
        free(self.results)
        free(self.outgoing)

    # ----------------------------------------------------------------------------------------------------------- guards

    def with_state(self, tuple leaves not None):
        """Return the arguments followed by the attributes that the function sets."""
        return leaves + tuple([items.get(key) for items, key in self.state])

    def generators(self):
        """Return the generators that it draws from."""
        return [] if self.draws is None else [generator for _, generator, _ in self.draws.generators]

    cdef bint matches(self, const tensor_guard_t *layout, Tensor tensor, array_t **gradient) except -1:
        """Compare a tensor with the trace; retain a .grad that is read, because other threads may replace it."""
        cdef array_t *array = tensor.array
        if tensor.base is not None:            # an in-place operation on its base may have changed its history
            try:
                grad_fn_of(tensor)
            except RuntimeError:
                return False
        if requires_grad(tensor) != layout.requires_grad or Py_TYPE(tensor) != layout.type:
            return False
        if (tensor.node is None) != layout.is_leaf or _has_attributes(tensor) != layout.has_attributes:
            return False
        if self.graph is None and (tensor.leaf_hooks is not None or _has_accumulator_hooks(tensor) or (
                not self.grad_disabled and tensor.node is not None)):
            return False
        if array != layout.array and (layout.exact or array.storage == NULL or is_meta(array)
                                      or not same_layout(array, layout.array)):
            return False
        if (tensor.base is not None) != layout.is_view or (array.version != NULL) != layout.normal or (
                is_array_api(array) != is_array_api(layout.array)):
            return False
        if layout.gradient < 0:
            return True
        if tensor.gradient == NULL or not layout.gradient:
            return (tensor.gradient != NULL and tensor.gradient.value != NULL) == layout.gradient
        if not has_plain_gradient(tensor):
            return False
        lock_patiently(&tensor.gradient.lock)
        if tensor.gradient.value != NULL:
            gradient[0] = retain(tensor.gradient.value)
        unlock(&tensor.gradient.lock)
        return gradient[0] != NULL and (gradient[0] == layout.gradient_array
                                        or same_layout(gradient[0], layout.gradient_array))

    cdef bint guards_hold(self, tuple leaves, run_frame_t *frame) except -1:
        cdef thread_state_t *state = thread_state()
        cdef int i
        if (state.grad_disabled != self.grad_disabled or state.inference != self.inference or not _is_plain(state)
                or self.dtype != default_float()):
            return False
        for i in range(self.n_own, self.n_tensors):
            frame.tensors[i] = PyTuple_GET_ITEM(<PyObject *>self.constants, i - self.n_own)
            if not (self.hooks_are_free and _is_same_leaf(&self.layouts[i], <Tensor>frame.tensors[i])) and (
                    not self.matches(&self.layouts[i], <Tensor>frame.tensors[i], &frame.gradients[i])):
                return False
        return self.arguments_hold(leaves, frame) and self.guards.hold() and self.options_hold() and (
            self.draws is None or self.draws.matches())

    def difference(self, tuple leaves not None, structure):
        """Describe the first guard that fails for a call with these arguments."""
        cdef thread_state_t *state = thread_state()
        cdef run_frame_t *frame
        cdef Tensor tensor
        cdef int i
        if len(leaves) != self.n_arguments or structure != self.structure:
            return "the number or structure of its arguments"
        if (state.grad_disabled != self.grad_disabled or state.inference != self.inference
                or self.dtype != default_float()):
            return "a mode (grad mode, inference mode, default dtype)"
        changed = self.guards.failed()
        if changed is not None:
            return changed
        frame = self.executable.acquire_frame()
        try:
            for i, leaf in enumerate(leaves):
                if self.numbers[i] < 0 or not isinstance(leaf, Tensor):
                    if self.numbers[i] >= 0 or not is_same_value(leaf, (<tuple>self.leaves[i])[0]):
                        return f"argument {i}, a {type(leaf).__name__}"
                elif not self.matches(&self.layouts[self.numbers[i]], <Tensor>leaf,
                                      &frame.gradients[self.numbers[i]]):
                    return f"argument {i}: shape, strides, dtype, requires_grad, hooks or .grad"
            for i, tensor in enumerate(self.constants):
                if not self.matches(&self.layouts[self.n_own + i], tensor, &frame.gradients[self.n_own + i]):
                    return (f"a tensor of shape {tuple(tensor.shape)} from its variables: memory, requires_grad, hooks "
                            "or .grad")
        finally:
            self.executable.finish(frame)
        return "which tensors share memory, an option of an optimizer, or a generator"

    cdef bint arguments_hold(self, tuple leaves, run_frame_t *frame) except -1:
        """Check what may differ between consecutive calls: the arguments."""
        cdef PyObject *argument
        cdef int i, number
        for i in range(self.n_arguments):
            argument = PyTuple_GET_ITEM(<PyObject *>leaves, i)
            number = self.numbers[i]
            if number < 0:
                if not is_same_value(<object>argument, (<tuple>self.leaves[i])[0]):
                    return False
            elif not isinstance(<object>argument, Tensor) or not self.matches(
                    &self.layouts[number], <Tensor>argument, &frame.gradients[number]):
                return False
            else:
                frame.tensors[number] = argument
        return same_aliases(&self.aliases, frame, self.sees_gradients, self.any_written)

    # ------------------------------------------------------------------------------------------------------- execution

    cdef bint options_hold(self) except -1:
        """Read changed options; return False if they need other arrays than the traced steps."""
        cdef option_t *option
        cdef rule_t rule
        cdef rule_t *former
        cdef uint64_t version = 0
        cdef int i = 0
        while i < self.n_options:
            option = &self.options[i]
            if option.n:
                version = version_of_dict(option.group)
                if version and version == option.version:
                    i += option.n
                    continue
            if PyDict_GetItem(option.group, option.key) != option.value:
                number, optimizer, group, options = self.optimizers[option.number]
                former = &self.executable.steps[<int>number].rule
                if not read_rule(optimizer, group, &rule) or rule.kind != former.kind or (
                        rule.amsgrad != former.amsgrad or (rule.momentum != 0) != (former.momentum != 0)):
                    return False
                former[0] = rule
                self.optimizers[option.number] = (
                    number, optimizer, group, [(name, group[name]) for name, _ in options])
                self.set_options()
                i = 0
                continue
            i += 1
            if i == self.n_options or self.options[i].n:
                self.confirm_options(i)
        return True

    cdef void confirm_options(self, int stop) noexcept:
        """Record the version of the group that ends before `stop`."""
        cdef int i = stop - 1
        while not self.options[i].n:
            i -= 1
        self.options[i].version = version_of_dict(self.options[i].group)

    cdef object execute(self, run_frame_t *frame, object compiled, object args, object kwargs):
        """
        Execute with the frame that `guards_hold` filled, and return the results.

        If an operation fails, undo all effects and call the function.
        """
        cdef void *gil_state
        cdef int i, status
        cdef list before = None
        self.executable.load_inputs(frame)
        if self.undone is not None:
            before = self.saved_inputs(frame)
        if self.draws is not None:
            self.draw(frame)
        self.find_targets(frame, frame.targets)
        gil_state = release_gil(self.executable.work >= LONG_WORK)
        status = self.run(frame, frame.targets)
        acquire_gil(gil_state)
        if status != OK:
            if status == MEMORY_ERROR or before is None:
                check(status)
            _restore(before)
            return compiled.function(*args, **kwargs)       # which raises the error
        self.runs += 1
        for i in range(self.n_commits):
            if (<Tensor>frame.tensors[self.commits[i].leaf]).grad_tensor is not None:
                (<Tensor>frame.tensors[self.commits[i].leaf]).grad_tensor = None
        result = self.make_result(frame)
        if self.state:
            result, values = result
            for (items, key), value in zip(self.state, values):
                items[key] = value
        return result

    cdef list saved_inputs(self, run_frame_t *frame):
        """Copy the inputs that the program may have modified when an operation fails, and the states of generators."""
        cdef list saved = [] if self.draws is None else [(self.draws, self.draws.states(), 0)]
        cdef TracedArray own, copy
        for slot in self.undone:
            own, copy = TracedArray(), TracedArray()       # a Tensor created in inference mode would drop the version
            own.array = retain(frame.table[<int>slot].of.array)
            copy.array = copy_with_layout(own.array)
            if copy.array == NULL:
                check(MEMORY_ERROR)
            saved.append((own, copy, -1 if own.array.version == NULL else own.array.version.value))
        return saved

    cdef int draw(self, run_frame_t *frame) except -1:
        """Draw the random numbers of this execution."""
        cdef list drawn = self.draws()
        for slot, number in self.executable.draws:
            set_array(&frame.table[<int>slot], retain((<Tensor>drawn[number]).array))
        return 0

    cdef int run(self, run_frame_t *frame, gradient_t **targets) noexcept nogil:
        """Run everything that does not need the GIL: operations, gradients, outputs, cleanup."""
        cdef int status = self.executable.run(frame)
        if status == OK:
            status = self.executable.collect_outputs(frame, self.outgoing, self.n_results)
        if status == OK:
            status = self.commit(frame, targets)
        self.executable.clear_table(frame)
        return status

    cdef object make_result(self, run_frame_t *frame):
        """Return the value that the function would return, from frame.outgoing."""
        cdef int i
        cdef list results
        if self.rebuild is None:
            return self.result(frame, 0, None)
        if isinstance(self.rebuild, tuple):
            return (<tuple>self.rebuild)[0]
        results = []
        for i in range(self.n_results):
            results.append(None if self.is_second(i) else self.result(frame, i, None))
        if self.graph is not None:
            results = self.graph(results, [<Tensor>frame.tensors[i] for i in range(self.n_tensors)])
        if self.has_views:
            self.make_views(frame, results)
        return self.rebuild(results)

    cdef int make_views(self, run_frame_t *frame, list results) except -1:
        """Add the views of other outputs, and the views whose history is recorded in each call."""
        cdef Tensor view
        cdef Node node, target
        cdef int64_t nr = 0
        cdef int i
        cdef list nodes = []
        for template, number, parent, nr in self.view_nodes:
            node = _copy_of(template)
            target = gradient_edge(self.base(frame, number, results), &nr) if parent is None else nodes[parent]
            set_edge(node.c, 0, target.c, nr)
            nodes.append(node)
        for i in range(len(results)):
            if not self.is_second(i):
                continue
            base = self.base(frame, self.results[i].base, results)
            if self.outgoing[i] >= 0:
                results[i] = self.result(frame, i, base)
                continue
            with set_grad_enabled(False):
                view = <Tensor>operators.as_strided(base, *self.nodes[i])
            view.view_kind = self.results[i].view_kind
            if i in self.view_results:
                parent, nr = self.view_results[i]
                attach(view, nodes[parent], nr)
            results[i] = view
        return 0

    cdef Tensor base(self, run_frame_t *frame, int number, list results):
        """Return an input tensor, or an output."""
        return <Tensor>frame.tensors[number] if number < self.n_tensors else results[number - self.n_tensors]

    cdef bint is_second(self, int number) noexcept:
        """Return whether the output is a view, which is created after other outputs."""
        cdef const result_t *given = &self.results[number]
        return given.base >= self.n_tensors or (given.base >= 0 and self.outgoing[number] < 0)

    cdef Tensor result(self, run_frame_t *frame, int number, Tensor base):
        """Return one output with the flags and the node of the traced one; `base` if that is an output, too."""
        cdef const result_t *given = &self.results[number]
        cdef array_t *array = frame.outgoing[number]
        cdef Tensor made
        if given.tensor >= self.n_tensors:
            return (<Tensor>frame.tensors[given.tensor - self.n_tensors]).grad
        if given.tensor >= 0:
            return <Tensor>frame.tensors[given.tensor]
        frame.outgoing[number] = NULL
        if given.standard:
            mark_array_api(array)
        if given.version >= 0 and array.version != NULL:
            array.version.value = given.version
        if base is None and given.base >= 0:
            base = <Tensor>frame.tensors[given.base]
        made = wrap(array) if base is None else wrap_view(array, base)
        made.view_kind, made.untracked = given.view_kind, given.untracked
        made.leaf_requires_grad = given.requires_grad
        if self.nodes[number] is not None:
            made.node, made.output_nr = <Node>self.nodes[number], given.output_nr
        return made

    cdef int find_targets(self, run_frame_t *frame, gradient_t **targets) except -1:
        """Find the slots for new gradients."""
        cdef int i
        for i in range(self.n_commits):
            targets[i] = slot_of(<Tensor>frame.tensors[self.commits[i].leaf], b"backward")
        return 0

    cdef int commit(self, run_frame_t *frame, gradient_t **targets) noexcept nogil:
        """Set or clear the gradients of leaves."""
        cdef array_t *array
        cdef array_t *replaced
        cdef int i
        for i in range(self.n_commits):
            array = NULL
            if self.commits[i].slot >= 0:
                array = self.executable.output_array(frame, self.commits[i].slot)
                if array == NULL:
                    return MEMORY_ERROR
            lock_patiently(&targets[i].lock)
            replaced = targets[i].value
            targets[i].value = array
            unlock(&targets[i].lock)
            release(replaced)
        return OK

    cdef object run_each(self, list calls, run_frame_t *frame):
        """Execute for several argument tuples with one GIL release; return None if a guard fails."""
        cdef Executable executable = self.executable
        cdef int i, position = 0, status = OK, n_calls = len(calls), n_inputs = executable.n_inputs
        cdef list results = []
        cdef array_t **sources
        cdef array_t *arrays[MAX_CALLS]
        cdef gradient_t **targets
        cdef void *gil_state
        if self.graph is not None or self.draws is not None or self.state or self.undone or self.n_results > 1 or (
                self.n_results) and (
                self.outgoing[0] < 0 or self.results[0].base >= 0):
            return None
        memset(arrays, 0, sizeof(arrays))
        sources = <array_t **>calloc(n_calls * (n_inputs + self.n_commits) + 1, sizeof(array_t *))
        if sources == NULL:
            raise MemoryError("compile: no memory for the arguments of all calls")
        targets = <gradient_t **>(sources + n_calls * n_inputs)
        try:
            for position in range(n_calls):
                if len(<tuple>calls[position]) != self.n_arguments or not (
                        self.arguments_hold(<tuple>calls[position], frame) if position
                        else self.guards_hold(<tuple>calls[position], frame)):
                    return None
                for i in range(n_inputs):
                    sources[position * n_inputs + i] = retain(executable.source(&executable.inputs[i],
                                                                                       frame))
                self.find_targets(frame, targets + position * self.n_commits)
            gil_state = release_gil(True)
            for position in range(n_calls):
                frame.filled = True
                for i in range(n_inputs):
                    set_array(&frame.table[executable.inputs[i].slot], retain(sources[position * n_inputs + i]))
                status = self.run(frame, targets + position * self.n_commits)
                arrays[position], frame.outgoing[0] = frame.outgoing[0], NULL
                if status != OK:
                    break
            acquire_gil(gil_state)
            if status != OK and (status == MEMORY_ERROR or self.undone is None):
                check(status)
            n_calls = position + (status == OK)            # the failing one is called again
            self.runs += n_calls
            for position in range(n_calls):
                frame.outgoing[0], arrays[position] = arrays[position], NULL
                results.append(self.make_result(frame))
            return results or None
        finally:
            n_calls = len(calls)
            for position in range(n_calls):
                release(arrays[position])
            for i in range(n_calls * n_inputs):
                release(sources[i])
            free(sources)


cdef int _restore(list saved) except -1:
    """Restore elements and versions of modified inputs, and states of generators."""
    cdef TracedArray own
    for found, copy, version in saved:
        if not isinstance(found, TracedArray):
            found.restore(copy)
            continue
        own = found
        check(copy_into(own.array, (<TracedArray>copy).array))
        if own.array.version != NULL:
            own.array.version.value = version
    return 0


cdef list _view_nodes(Tensor view):
    """Return the nodes from a view to its base; None if one of them cannot be copied, or has other inputs."""
    cdef int64_t nr = view.output_nr, end_nr = 0
    cdef Node node = view.node, end = gradient_edge(view.base, &end_nr)
    cdef list found = []
    cdef int i
    while node is not None and not (node is end and nr == end_nr):
        if not isinstance(node, NativeNode) or node.c.n_edges != 1 or node.c.released or (
                node.hooks is not None or node.packed is not None or node.payload is not None):
            return None
        for i in range(node.c.n_saved):
            if has_memory(&node.c.saved[i].value):
                return None
        found.append(node)
        nr = node.c.edges[0].input_nr
        node = None if node.c.edges[0].node == NULL else <Node>node.c.edges[0].node.object
    return found if node is not None and found else None


def _sequence_nr(Node node not None):
    return node.c.sequence_nr


cdef Node _copy_of(Node original):
    """Return a node with the same formulas, shapes and saved values, without edges."""
    cdef Node node = _like(original)
    cdef int i
    for i in range(node.c.n_saved):
        check(copy_value(&node.c.saved[i].value, &original.c.saved[i].value))
    return node


cdef inline bint _has_accumulator_hooks(Tensor tensor) noexcept:
    return tensor.gradient != NULL and tensor.gradient.accumulator != NULL and (
        (<Node>tensor.gradient.accumulator.object).hooks is not None)


cdef inline bint _is_same_leaf(const tensor_guard_t *layout, Tensor tensor) noexcept:
    """Return whether it is the traced leaf, of which the program reads no .grad."""
    return (tensor.array == layout.array and layout.gradient < 0 and tensor.node is None and layout.is_leaf
            and tensor.leaf_requires_grad == layout.requires_grad and Py_TYPE(tensor) == layout.type
            and tensor.base is None and not layout.is_view and _has_attributes(tensor) == layout.has_attributes)


def tensor_state(Tensor tensor not None):
    """Return what a program cannot change of a tensor: memory, history, hooks, attributes; compared by identity."""
    attributes = () if tensor.attributes == NULL else (<dict>tensor.attributes).items()
    return (<size_t>tensor.array, <size_t><void *>tensor.node, tensor.output_nr, tensor.leaf_requires_grad,
            <size_t><void *>tensor.base, <size_t><void *>tensor.leaf_hooks, _has_accumulator_hooks(tensor),
            [(name, id(value)) for name, value in attributes])


cdef inline bint _has_attributes(Tensor tensor) noexcept:
    return tensor.attributes != NULL and PyDict_Size(tensor.attributes) > 0


cdef list _default_device = HAS_DEFAULT_DEVICE, _fills = FILLS_UNINITIALIZED


cdef inline bint _is_plain(const thread_state_t *state) except -1:
    """Return whether programs support all modes of the thread."""
    return not (state.saved_hooks != NULL or state.anomaly or state.modes or state.guarded or state.depth) and (
        len(_fills) == 0) and (len(_default_device) == 0 or get_default_device().type == "cpu")


def can_trace():
    """Return whether the thread can trace in its current state."""
    return _is_plain(thread_state())


def is_traced():
    """Return whether the thread is tracing."""
    return bool(is_tracing())


@cython.binding(False)
cdef class CompiledCallable:
    """Calls a function through its variants; subclasses define `call_in_python` and `flatten`."""
    cdef readonly list variants
    cdef public bint nested       # some variant has keyword or container arguments

    def __cinit__(self, *args, **kwargs):
        self.variants = []

    def each(self, calls):
        """
        Call the function with one tuple of arguments after the other.

        If the calls match one variant that reads no .grad, the GIL is released once for up to 32 calls, so that threads
        with small models do not wait for each other.

        Parameters
        ----------
        calls : iterable of tuple
            Positional arguments, none of them containers.

        Returns
        -------
        list
            Return value of each call.
        """
        cdef Variant variant
        cdef run_frame_t *frame
        cdef list waiting = [tuple(call) for call in calls], results = []
        while len(results) < len(waiting):
            found = None
            for variant in self.variants:
                if found is None and variant.structure is None and not variant.sees_gradients:
                    frame = variant.executable.acquire_frame()
                    try:
                        found = variant.run_each(waiting[len(results):len(results) + MAX_CALLS], frame)
                    finally:
                        variant.executable.finish(frame)
            results += [self(*waiting[len(results)])] if found is None else found
        return results

    def find_variant(self, args, kwargs):
        """Return the Variant that a call would execute, or None."""
        cdef Variant variant
        cdef run_frame_t *frame
        leaves, structure, containers = self.flatten(args, kwargs)
        for variant in self.variants:
            if variant.n_arguments == len(leaves) + len(variant.state) and variant.structure == structure and (
                    len(set(containers)) == len(containers) and variant.containers.isdisjoint(containers)):
                frame = variant.executable.acquire_frame()
                try:
                    if variant.guards_hold(variant.with_state(leaves) if variant.state else leaves, frame):
                        return variant
                finally:
                    variant.executable.finish(frame)
        return None

    def __call__(self, *args, **kwargs):
        cdef Variant variant
        cdef tuple leaves = args
        cdef run_frame_t *frame
        structure, containers = None, ()
        if self.nested or kwargs:
            leaves, structure, containers = self.flatten(args, kwargs)
            if len(set(containers)) < len(containers):
                return self.call_in_python(args, kwargs)
        for variant in self.variants:
            if variant.n_arguments == len(leaves) + len(variant.state) and (
                    variant.structure is structure or variant.structure == structure) and (
                    not containers or variant.containers.isdisjoint(containers)):
                frame = variant.executable.acquire_frame()
                try:
                    if variant.guards_hold(variant.with_state(leaves) if variant.state else leaves, frame):
                        return variant.execute(frame, self, args, kwargs)
                finally:
                    variant.executable.finish(frame)
        return self.call_in_python(args, kwargs)
