"""
The node of an operator of the table: running its formulas, natively or recorded.

The native execution takes the saved values out of the node (or retains them, if the graph is kept), checks their
versions, lets the operator's machine compute, and brings each gradient to the shape and dtype of its argument:
the one place where broadcasting and complex-to-real are undone.
"""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint32_t
from libc.stdio cimport snprintf
from libc.string cimport memset
from cygrad._core.array cimport array_meta, array_t, array_view, release, retain, same_shape, shape_text
from cygrad._core.atomic cimport atomic_load, lock, unlock
from cygrad._core.boxing cimport plain_object
from cygrad._core.dtype cimport dtype_name, dtype_object, is_complex, itemsize
from cygrad._core.elementwise cimport as_dtype
from cygrad._core.errors cimport MEMORY_ERROR, MESSAGE, OK, RUNTIME_ERROR, check, message
from cygrad._core.node cimport (
    HAS_PACKED_TENSORS, Node, edge_t, install_collector, kept_t, node_new, node_t, node_type, release_saved)
from cygrad._core.operator cimport (
    MAX_ARGUMENTS, MAX_SAVED, TENSORS, Operator, differentiate, operator_t, saved_t, table)
from cygrad._core.storage cimport allocate
from cygrad._core.tensor cimport Tensor, known_tensor, tensor_of
from cygrad._core.value cimport (
    ARRAY, ARRAYS, INTEGERS, NOTHING, clear, copy_value, find_kernel, kernel_t, set_array, set_integers, value_t)

import cygrad._core.complex_view  # registers real_view
import cygrad._core.reduce  # registers sum_to

cdef kernel_t _sum_to = find_kernel("sum_to")
cdef kernel_t _real_view = find_kernel("real_view")
cdef dict _node_types = {}           # operator name -> type of its nodes


cdef NativeNode native_node(Operator operator, int n_edges, int n_outputs):
    cls = _node_types.get(operator.name)
    if cls is None:
        cls = _node_types[operator.name] = node_type(operator.descriptor.node_name.decode(), NativeNode)
    cdef NativeNode node = <NativeNode>node_new(<type>cls, n_edges, n_outputs, operator.descriptor.n_saved)
    node.c.op = &operator.descriptor
    node.c.backward = _backward
    return node


cdef int set_meta(node_t *node, int i, const array_t *array) except -1:
    if node.metas == NULL:
        node.metas = <array_t **>allocate(node.n_edges * sizeof(array_t *))
        if node.metas == NULL:
            raise MemoryError(f"{node.op.name.decode()}: no memory for the shapes of its arguments")
        memset(node.metas, 0, node.n_edges * sizeof(array_t *))
    node.metas[i] = array_meta(array)
    if node.metas[i] == NULL:
        check(MEMORY_ERROR)
    return 0


cdef int fit(array_t *meta, array_t **gradient) noexcept nogil:
    cdef value_t[2] arguments
    cdef value_t result
    cdef array_t *cast
    cdef int status
    if meta == NULL or gradient[0] == NULL:
        return OK
    if is_complex(gradient[0].dtype) and not is_complex(meta.dtype):
        result.kind = NOTHING
        arguments[0].kind = ARRAY
        arguments[0].of.array = gradient[0]
        status = _real_view(arguments, &result)
        if status != OK:
            return status
        release(gradient[0])
        gradient[0] = result.of.array
    if not same_shape(gradient[0], meta):
        result.kind = NOTHING
        arguments[0].kind = ARRAY
        arguments[0].of.array = gradient[0]
        arguments[1].kind = INTEGERS
        arguments[1].count = meta.ndim
        arguments[1].of.integers = meta.shape
        status = _sum_to(arguments, &result)
        if status != OK:
            return status
        release(gradient[0])
        gradient[0] = result.of.array
    if gradient[0].dtype != meta.dtype:
        cast = as_dtype(gradient[0], meta.dtype)
        if cast == NULL:
            return MEMORY_ERROR
        release(gradient[0])
        gradient[0] = cast
    return OK


cdef int64_t version_of(const value_t *value) noexcept nogil:
    """The version of a saved array; of a list, the sum (versions only grow); 0 for everything else."""
    cdef int i
    cdef int64_t version = 0
    if value.kind == ARRAY and value.of.array.version != NULL and value.of.array.storage != NULL:
        version = atomic_load(&value.of.array.version.value)
    elif value.kind == ARRAYS:
        for i in range(value.count):
            if value.of.arrays[i] != NULL and value.of.arrays[i].version != NULL:
                version += atomic_load(&value.of.arrays[i].version.value)
    return version


cdef int _check_version(const node_t *node, int position) noexcept nogil:
    cdef const kept_t *kept = &node.saved[position]
    cdef array_t *array = kept.value.of.array
    cdef int64_t found = version_of(&kept.value)
    if found == kept.version:
        return OK
    if kept.value.kind == ARRAYS:
        snprintf(message(), MESSAGE,
                 b"%s: a tensor that backward needs was changed in place (got one of the %d tensors saved as '%s' with "
                 b"versions that add up to %lld, expected %lld). Use an operation that makes a new tensor, or clone() "
                 b"before the change.", node.op.node_name, <int>kept.value.count, node.op.saved[position].name,
                 <long long>found, <long long>kept.version)
        return RUNTIME_ERROR
    snprintf(message(), MESSAGE,
             b"%s: a tensor that backward needs was changed in place (got the %s tensor of shape %s saved as '%s' "
             b"at version %lld, expected version %lld). Use an operation that makes a new tensor, or clone() before "
             b"the change.", node.op.node_name, dtype_name(array.dtype), shape_text(array),
             node.op.saved[position].name, <long long>found, <long long>kept.version)
    return RUNTIME_ERROR


cdef bint _holds_arrays(const node_t *node) noexcept nogil:
    """Does the node keep the memory of any tensor? One that does not can run again and again."""
    cdef int i
    cdef const value_t *value
    for i in range(node.n_saved):
        value = &node.saved[i].value
        if value.kind == ARRAYS or value.kind == ARRAY and value.of.array.storage != NULL:
            return True
    return False


cdef int _take_saved(node_t *node, value_t *saved, bint keep) noexcept nogil:
    """Move the saved values out of the node, or copy them if the graph is kept."""
    cdef int i, status = OK, n = node.op.n_saved
    lock(&node.lock)
    if node.released:
        snprintf(message(), MESSAGE,
                 b"%s: its saved values are freed already (got a second backward through this node, expected one). "
                 b"Call the first backward or grad with retain_graph=True to go through the graph again.",
                 node.op.node_name)
        status = RUNTIME_ERROR
    elif node.python & HAS_PACKED_TENSORS:
        snprintf(message(), MESSAGE, b"%s: packed tensors need the Python execution", node.op.node_name)
        status = RUNTIME_ERROR
    else:
        for i in range(n):
            if status == OK:
                status = _check_version(node, i)
    if status != OK:
        unlock(&node.lock)
        return status
    keep = keep or not _holds_arrays(node)
    for i in range(n):
        if keep:
            saved[i].kind = NOTHING
            if status == OK:
                status = copy_value(&saved[i], &node.saved[i].value)
        else:
            saved[i] = node.saved[i].value
            node.saved[i].value.kind = NOTHING
    if not keep:
        node.released = 1
    unlock(&node.lock)
    if status != OK:
        for i in range(n):
            clear(&saved[i])
    return status


cdef int _scatter(node_t *node, value_t *out, array_t **gradients) noexcept nogil:
    """Hand the gradients of the arguments to the edges: one each, or one per entry of a list. Takes `out` over."""
    cdef const operator_t *op = node.op
    cdef int i, j, edge = 0, status = OK, single = 0, listed
    for i in range(op.n_arguments):
        if op.arguments[i].differentiable and op.arguments[i].kind != TENSORS:
            single += 1
    for i in range(op.n_arguments):
        if not op.arguments[i].differentiable:
            continue
        if op.arguments[i].kind == TENSORS:
            listed = node.n_edges - single
            if out[i].kind == ARRAYS:
                for j in range(listed):
                    if j < out[i].count:
                        gradients[edge + j] = out[i].of.arrays[j]
                        out[i].of.arrays[j] = NULL
                clear(&out[i])
            edge += listed
        else:
            if out[i].kind == ARRAY:
                gradients[edge] = out[i].of.array
                out[i].kind = NOTHING
            edge += 1
    for i in range(node.n_edges):
        if gradients[i] != NULL and node.edges[i].node == NULL:
            release(gradients[i])
            gradients[i] = NULL
        if node.metas != NULL and status == OK:
            status = fit(node.metas[i], &gradients[i])
    return status


cdef int _backward(node_t *node, value_t *grads, array_t **gradients, bint keep) noexcept nogil:
    cdef value_t[MAX_SAVED] saved
    cdef value_t[MAX_ARGUMENTS] out
    cdef int i, status
    for i in range(node.op.n_arguments):
        out[i].kind = NOTHING
    status = _take_saved(node, saved, keep)
    if status != OK:
        for i in range(node.n_outputs):
            clear(&grads[i])
        return status
    status = differentiate(node.op, saved, grads, node.n_outputs, node.needed, out)
    for i in range(node.op.n_saved):
        clear(&saved[i])
    if status == OK:
        status = _scatter(node, out, gradients)
    for i in range(node.op.n_arguments):
        clear(&out[i])
    if status != OK:
        for i in range(node.n_edges):
            release(gradients[i])
            gradients[i] = NULL
    return status


class Meta:
    """Shape and dtype of a tensor of which a node kept nothing else."""

    __slots__ = ("shape", "dtype", "strides", "storage_offset")

    def __init__(self, shape, dtype, strides, storage_offset):
        self.shape, self.dtype, self.strides, self.storage_offset = shape, dtype, strides, storage_offset

    @property
    def ndim(self):
        """Number of dimensions."""
        return len(self.shape)

    def numel(self):
        """Number of elements."""
        count = 1
        for size in self.shape:
            count *= size
        return count

    def is_complex(self):
        """Whether the dtype is complex."""
        return self.dtype.is_complex

    def __repr__(self):
        return f"Meta(shape={self.shape}, dtype={self.dtype})"


cdef object _meta_object(const array_t *array):
    cdef int i
    return Meta(tuple([array.shape[i] for i in range(array.ndim)]), dtype_object(array.dtype),
                tuple([array.strides[i] for i in range(array.ndim)]),
                <size_t>array.data // itemsize(array.dtype))


cdef int _first_edge(const node_t *node, int argument) noexcept nogil:
    """The edge of a differentiable argument that is no list; -1 if it has none."""
    cdef const operator_t *op = node.op
    cdef int i, single = 0, edge = 0
    if not op.arguments[argument].differentiable:
        return -1
    for i in range(op.n_arguments):
        if op.arguments[i].differentiable and op.arguments[i].kind != TENSORS:
            single += 1
    for i in range(argument):
        if op.arguments[i].differentiable:
            edge += node.n_edges - single if op.arguments[i].kind == TENSORS else 1
    return edge


cdef bint _is_at(Tensor tensor, const edge_t *edge):
    """Does the tensor still belong where the edge leads? Not after detach_(), for example."""
    if edge.node == NULL:
        return True
    if tensor.node is None:
        return tensor.leaf_requires_grad and tensor.gradient != NULL and tensor.gradient.accumulator == edge.node
    return tensor.node.c == edge.node and tensor.output_nr == edge.input_nr


cdef class NativeNode(Node):
    """A node of an operator of the table."""

    cdef object unpack(self, int position):
        """The saved value at `position` as the user knows it: the Tensor that was saved, or its twin."""
        cdef node_t *c = self.c
        cdef const saved_t *layout = &c.op.saved[position]
        cdef value_t *value = &c.saved[position].value
        cdef int edge
        if self.packed is not None and self.packed[position] is not None:
            return self.packed[position].unpack()
        if c.released:
            raise RuntimeError(f"{self.name()}: its saved values are freed already (got a second backward through this "
                               "node, or a look at what it saved, after a backward). Call the first backward or grad "
                               "with retain_graph=True to go through the graph again.")
        if value.kind == ARRAY:
            if value.of.array.storage == NULL:
                return _meta_object(value.of.array)
            check(_check_version(c, position))
            edge = -1 if layout.from_result else _first_edge(c, layout.index)
            return self.twin(value.of.array, layout.from_result, layout.index, edge)
        if value.kind == ARRAYS:
            return [None if value.of.arrays[i] == NULL else self.twin(value.of.arrays[i], False, 0, -1)
                    for i in range(value.count)]
        return plain_object(value)

    cdef Tensor twin(self, array_t *array, bint from_result, int result, int edge):
        cdef Tensor tensor = None if from_result else known_tensor(array)
        if tensor is not None and (edge < 0 or _is_at(tensor, &self.c.edges[edge])):
            return tensor
        # A second array over the same memory: the first one belongs to the Tensor that the user has.
        array = array_view(array, array.dtype, array.ndim, array.shape, array.strides, 0)
        if array == NULL:
            check(MEMORY_ERROR)
        tensor = tensor_of(array)
        if from_result:
            tensor.node = self
            tensor.output_nr = result
        elif edge >= 0 and self.c.edges[edge].node != NULL:
            target = <Node>self.c.edges[edge].node.object
            tensor.node = <Node>target
            tensor.output_nr = <int>self.c.edges[edge].input_nr
        return tensor

    cdef list apply(self, list grads, bint keep, bint recorded):
        cdef node_t *c = self.c
        cdef const operator_t *op = c.op
        cdef int i, j, edge = 0, single = 0, listed
        cdef tuple saved = tuple([self.unpack(i) if c.saved[i].value.kind != NOTHING or self.packed is not None
                                  else None for i in range(op.n_saved)])
        if not keep and (self.packed is not None or _holds_arrays(c)):
            release_saved(c)
            self.packed = None
        cdef Operator row = <Operator>op.object
        cdef list gradients = [None] * c.n_edges
        for i in range(op.n_arguments):
            if op.arguments[i].differentiable and op.arguments[i].kind != TENSORS:
                single += 1
        for i in range(op.n_arguments):
            if not op.arguments[i].differentiable:
                continue
            listed = c.n_edges - single if op.arguments[i].kind == TENSORS else 1
            if c.needed >> i & 1:
                result = row.recorded_function(i)(tuple(grads), saved)
                if op.arguments[i].kind == TENSORS:
                    for j, item in enumerate(result or ()):
                        gradients[edge + j] = item
                else:
                    gradients[edge] = result
            edge += listed
        for i in range(c.n_edges):
            if gradients[i] is not None and c.edges[i].node == NULL:
                gradients[i] = None
            if gradients[i] is not None and c.metas != NULL and c.metas[i] != NULL:
                gradients[i] = _fit_recorded(c.metas[i], gradients[i])
        return gradients

    def __getattr__(self, str name):
        cdef int i
        raw = name.startswith("_raw_saved_")
        if raw or name.startswith("_saved_"):
            wanted = name[11 if raw else 7:].encode()
            for i in range(self.c.op.n_saved):
                if self.c.op.saved[i].name == wanted:
                    return _saved_tensor(self, i) if raw else self.unpack(i)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __dir__(self):
        cdef int i
        names = [self.c.op.saved[i].name.decode() for i in range(self.c.op.n_saved)]
        return sorted(set(object.__dir__(self)) | {f"_saved_{name}" for name in names}
                      | {f"_raw_saved_{name}" for name in names})


install_collector(NativeNode)


cdef object _fit_recorded(const array_t *meta, Tensor gradient):
    """What `fit` does, as recorded operations."""
    cdef int i
    functions = _recorded_functions
    if is_complex(gradient.array.dtype) and not is_complex(meta.dtype):
        gradient = functions["real"](gradient)
    if not same_shape(gradient.array, meta):
        gradient = functions["sum_to"](gradient, tuple([meta.shape[i] for i in range(meta.ndim)]))
    if gradient.array.dtype != meta.dtype:
        gradient = functions["cast"](gradient, dtype_object(meta.dtype))
    return gradient


cdef dict _recorded_functions = {}


def set_functions(dict functions):
    """The public functions "real", "sum_to" and "cast", which fit recorded gradients to their arguments."""
    _recorded_functions.update(functions)


cdef class SavedTensor:
    """
    A value that a node keeps for backward, as ``node._raw_saved_<name>``.
    """

    cdef NativeNode node
    cdef int position

    def __init__(self, *arguments, **options):
        raise TypeError("SavedTensor: it cannot be made directly. Nodes have them as node._raw_saved_<name>.")

    def unpack(self):
        """The saved tensor."""
        if self.node is None:
            raise RuntimeError("SavedTensor: it belongs to no node.")
        return self.node.unpack(self.position)


cdef SavedTensor _saved_tensor(NativeNode node, int position):
    cdef SavedTensor saved = SavedTensor.__new__(SavedTensor)
    saved.node = node
    saved.position = position
    return saved
