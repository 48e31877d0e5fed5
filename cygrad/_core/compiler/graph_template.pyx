"""The autograd graph of a traced call without tensor data, rebuilt over the saved tensors of another call."""

cimport cython
from libc.stdint cimport int64_t
from cygrad._core.arrays.array cimport array_meta, array_t, array_view, release, retain
from cygrad._core.arrays.dtype cimport itemsize
from cygrad._core.arrays.value cimport ARRAY, ARRAYS, copy_value, set_arrays, value_t
from cygrad._core.compiler.tracer cimport Buffer, TracedArray, array_of, number_of_array
from cygrad._core.graph.backward_calls cimport freed_error
from cygrad._core.graph.native cimport NativeNode, version_of
from cygrad._core.graph.node cimport Node, kept_t, next_sequence_nr, node_new, node_t, set_edge
from cygrad._core.graph.tensor cimport Tensor, gradient_edge, wrap
from cygrad._core.memory.errors cimport MEMORY_ERROR, check

from cygrad._core.graph.edges import GradientEdge


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
        Where the graph ends.

    Attributes
    ----------
    reason : str or None
        Why there is no template.
    sources : dict
        Number of a saved array -> its index among the saved tensors of a call, or a constant Tensor.
    """

    cdef list nodes               # node templates, ordered by sequence number
    cdef list edges               # per node: (number of a node or -1 - number of an input, input_nr), or None
    cdef list saved               # per node: (index, entry or -1, number of the base, offset in bytes or None)
    cdef list roots               # (number of a node, output_nr)
    cdef readonly object reason
    cdef public dict sources

    def __init__(self, tracer, list outputs not None, list inputs not None):
        cdef Tensor tensor
        cdef Node node
        cdef int64_t nr = 0
        cdef dict ends = {}, numbers = {}
        cdef list kept = []
        self.nodes, self.edges, self.saved, self.roots, self.sources = [], [], [], [], {}
        for position, tensor in enumerate(inputs):
            node = gradient_edge(tensor, &nr)
            kept.append(node)
            if node.hooks is not None:             # only a backward of the user calls them
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
            if not isinstance(node, NativeNode) or node.c.released or node.hooks is not None or (
                    node.packed is not None or node.payload is not None):
                self.reason = f"its result has a graph in which {node.name()} cannot be rebuilt in each call"
                return []
            for i in range(node.c.n_edges):
                if node.c.edges[i].node != NULL and (
                        (<size_t>node.c.edges[i].node, node.c.edges[i].input_nr) not in ends):
                    stack.append(<object>node.c.edges[i].node.object)
        return sorted(seen.values(), key=lambda node: (<Node>node).c.sequence_nr)

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
            end = ends.get((<size_t>c.edges[i].node, c.edges[i].input_nr))
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

    def reserve(self):
        """Reserve sequence numbers for the nodes of the current call and return the first."""
        cdef int64_t first = next_sequence_nr()
        for _ in range(1, len(self.nodes)):
            next_sequence_nr()
        return first

    def rebuild(self, Node context not None, list positions not None, int64_t first):
        """
        Rebuild the graph of one call.

        Parameters
        ----------
        context : Node
            Node that holds the saved tensors of the call; its edges lead to the inputs.
        positions : list of int
            Indices of the outputs to differentiate.
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
        cdef int i, number
        if context.c.released:
            check(freed_error(context.c))
        for skeleton, entries in zip(self.nodes, self.saved, strict=True):
            node = _like(skeleton)
            node.c.sequence_nr = first + len(nodes)
            for i in range(skeleton.c.n_saved):
                check(copy_value(&node.c.saved[i].value, &skeleton.c.saved[i].value))
            for position, entry, base, offset in entries:
                self.fill(&node.c.saved[<int>position], entry, self.sources[base], offset, context)
            nodes.append(node)
        for node, edges in zip(nodes, self.edges, strict=True):
            for i, edge in enumerate(edges):
                if edge is not None:
                    number = edge[0]
                    end = context.c.edges[-1 - number].node if number < 0 else (<Node>nodes[number]).c
                    if end != NULL:
                        set_edge(node.c, i, end, edge[1])
        inputs = [None if context.c.edges[i].node == NULL else
                  GradientEdge(<object>context.c.edges[i].node.object, context.c.edges[i].input_nr)
                  for i in range(context.c.n_edges)]
        return [GradientEdge(nodes[number], nr) for number, nr in [self.roots[i] for i in positions]], inputs

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
    for i in range(c.n_edges if c.metas != NULL else 0):
        if c.metas[i] != NULL:
            node.c.metas[i] = retain(c.metas[i])
    return node


def is_changed(Node context not None):
    """Return True if a saved tensor was modified in place."""
    cdef int i
    if context.c.released:
        check(freed_error(context.c))
    for i in range(context.c.n_saved):
        if version_of(&context.c.saved[i].value) != context.c.saved[i].version:
            return True
    return False
