"""
The node of an operator of the table: running its formulas, natively or recorded.

The native execution takes the saved values out of the node (or retains them, if the graph is retained), checks their
versions, runs the operator's formulas, and converts each gradient to the shape and dtype of its argument: the only
place where broadcasting and complex-to-real are undone.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.stdio cimport snprintf
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memset
from cygrad._core.arrays.array cimport (
    ARRAY, ARRAYS, INTEGERS, NOTHING, array_meta, array_t, clear, copy_value, find_kernel, kernel_t, release, retain,
    same_shape, set_array, set_arrays, shape_text, value_t,
)
from cygrad._core.arrays.dtype cimport computed_in, dtype_name, dtype_object, is_complex, itemsize
from cygrad._core.elementwise.elementwise cimport as_contiguous, as_dtype
from cygrad._core.elementwise.tiles cimport nan_watchers, watch
from cygrad._core.graph.boxing cimport COUNTS_ARGUMENTS, count_arguments, plain_object
from cygrad._core.graph.inplace cimport attach_result, is_inplace_view
from cygrad._core.graph.mode_stack cimport abort_trace
from cygrad._core.graph.modes cimport BACKWARD_MODES, RESULT_MODES, grad_enabled, thread_state
from cygrad._core.graph.node cimport (
    ALL_ARGUMENTS, HAS_PACKED_TENSORS, Node, add_gradient, edge_t, freed_error, gc_track_all, install_collector, kept_t,
    node_new, node_t, node_type, note_release, release_saved, version_error,
)
from cygrad._core.graph.saved cimport PackedTensor, alias, attach_edge, pack_tensor
from cygrad._core.graph.tensor cimport Tensor, known_tensor, protocol, tensor_of, wrap
from cygrad._core.memory.atomic cimport atomic_load, atomic_store32, lock, unlock
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, OK, RUNTIME_ERROR, check, message
from cygrad._core.memory.storage cimport allocate
from cygrad._core.table.operator cimport (
    ELEMENTWISE, MAX_ARGUMENTS, MAX_SAVED, PLAIN_FORMULAS, Operator, any_storage_only, cast_to_compute_dtypes,
    differentiate, first_edge, operator_t, saved_t,
)

import cygrad._core.kernels.reduction.reductions  # registers sum_to
import cygrad._core.kernels.shape.shape  # registers real_view
from cygrad._core.graph.saved import saved_tensor
from cygrad._core.graph.saved_meta import Meta
from cygrad._core.table.operator import operators


# ----------------------------------------------------------------------------------------------------- traced gradients

# Gradients of a traced backward, in the layout of the eager ones.
#
# A traced backward runs formulas as operations on tensors, eager runs them on arrays. The elements agree; the strides
# may not, and sums and products round by strides.

cdef list native_gradients(Node node, list grads, uint32_t wanted):
    cdef node_t *c = node.c
    cdef list gradients = []
    cdef int i, status
    cdef value_t *arrays = <value_t *>calloc(c.n_outputs + 1, sizeof(value_t))
    cdef array_t **out = <array_t **>calloc(c.n_edges + 1, sizeof(array_t *))
    if arrays == NULL or out == NULL:
        free(arrays)
        free(out)
        raise MemoryError(f"{node.name()}: no memory for its gradients")
    for i in range(c.n_outputs):
        if grads[i] is not None:
            set_array(&arrays[i], retain((<Tensor>grads[i]).array))
    status = native_backward(c, arrays, out, True, wanted)
    for i in range(c.n_edges):
        gradients.append(None if status != OK or out[i] == NULL else wrap(out[i]))
    free(arrays)
    free(out)
    check(status)
    return gradients


cdef object laid_out_as(Tensor gradient, Tensor native, Node node):
    cdef array_t *model = native.array
    if not (gradient.array.dtype == model.dtype and same_shape(gradient.array, model)
            and _same_bits(gradient.array, model)):
        abort_trace(f"the traced backward of {node.name()} rounds differently")
        return gradient
    return gradient if _same_strides(gradient.array, model) else _copied_as(gradient, model, node)


cdef object _copied_as(Tensor gradient, const array_t *model, Node node):
    """Return a copy of a gradient with the strides of an array."""
    cdef int i
    order = sorted(range(model.ndim), key=lambda dim: -model.strides[<int>dim])
    with_layout = gradient
    for i in range(model.ndim):
        if model.strides[i] == 0:
            with_layout = with_layout.narrow(i, 0, 1)
    with_layout = with_layout.permute(order).contiguous().permute([order.index(dim) for dim in range(model.ndim)])
    with_layout = with_layout.expand(gradient.shape)
    if _same_strides((<Tensor>with_layout).array, model):
        return with_layout
    abort_trace(f"the gradient of {node.name()} has strides that a copy cannot have")
    return gradient


cdef bint _same_strides(const array_t *a, const array_t *b) noexcept:
    cdef int i
    for i in range(a.ndim):
        if a.size and a.shape[i] > 1 and a.strides[i] != b.strides[i]:
            return False
    return True


cdef bint _same_bits(array_t *a, array_t *b) except -1:
    cdef array_t *left = as_contiguous(a, a.dtype)
    cdef array_t *right = as_contiguous(b, b.dtype)
    cdef bint same = left != NULL and right != NULL and memcmp(
        left.data, right.data, a.size * itemsize(a.dtype)) == 0
    cdef int status = OK if left != NULL and right != NULL else MEMORY_ERROR
    release(left)
    release(right)
    check(status)
    return same


# --------------------------------------------------------------------------------------------------------------- native

cdef kernel_t _sum_to = find_kernel("sum_to")
cdef kernel_t _real_view = find_kernel("real_view")


cdef NativeNode native_node(Operator operator, int n_edges, int n_outputs, bint with_metas):
    if operator.node_type is None:
        operator.node_type = node_type(operator.descriptor.node_name.decode(), NativeNode)
    cdef Node node = node_new(operator.node_type, n_edges, n_outputs, operator.descriptor.n_saved, with_metas)
    node.c.op = operator.descriptor
    node.c.backward = native_backward
    return <NativeNode>node


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
    if nan_watchers and not (gradient[0].dtype == meta.dtype and same_shape(gradient[0], meta)):
        watch().kernels = 1
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
        if computed_in(gradient[0].dtype) != gradient[0].dtype:
            cast = as_dtype(gradient[0], computed_in(gradient[0].dtype))
            if cast == NULL:
                return MEMORY_ERROR
            release(gradient[0])
            gradient[0] = cast
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
    """Return the version of a saved array; of a list, the sum (versions only grow); 0 for everything else."""
    cdef int i
    cdef int64_t version = 0
    if value.kind == ARRAY and value.of.array.version != NULL and value.of.array.storage != NULL:
        version = atomic_load(&value.of.array.version.value)
    elif value.kind == ARRAYS:
        for i in range(value.count):
            if value.of.arrays[i] != NULL and value.of.arrays[i].version != NULL:
                version += atomic_load(&value.of.arrays[i].version.value)
    return version


cdef inline bint _was_detached(const node_t *node, int position) noexcept nogil:
    """Return whether detach_() has removed the saved argument from the graph. (Results may be detached.)"""
    cdef const kept_t *kept = &node.saved[position]
    return (kept.value.kind == ARRAY and kept.value.of.array.detached
            and not node.op.saved[position].from_result)


cdef int _check_version(const node_t *node, int position) noexcept nogil:
    cdef const kept_t *kept = &node.saved[position]
    cdef array_t *array = kept.value.of.array
    cdef int64_t found = version_of(&kept.value)
    cdef const saved_t *layout = &node.op.saved[position]
    cdef int edge
    if _was_detached(node, position):
        snprintf(message(), MESSAGE,
                 b"%s: Trying to use a saved tensor that has been detached in-place, by detach_() (got the %s tensor "
                 b"of shape %s saved as '%s'). Use detach(), which returns a second tensor.", node.op.node_name,
                 dtype_name(array.dtype), shape_text(array), layout.name)
        return RUNTIME_ERROR
    if found == kept.version:
        return OK
    if kept.value.kind == ARRAYS:
        snprintf(message(), MESSAGE,
                 b"%s: one of the variables needed for gradient computation has been modified by an inplace operation "
                 b"(got one of the %d tensors saved as '%s' with versions that add up to %lld, expected %lld). Use an "
                 b"operation that returns a new tensor, or clone() before modifying it.",
                 node.op.node_name, <int>kept.value.count, node.op.saved[position].name, <long long>found,
                 <long long>kept.version)
        return RUNTIME_ERROR
    if layout.from_result:
        return version_error(node.op.node_name, layout.name, array, kept.version, node, layout.index)
    edge = _first_edge(node, layout.index)
    if edge < 0:
        return version_error(node.op.node_name, layout.name, array, kept.version, NULL, 0)
    return version_error(node.op.node_name, layout.name, array, kept.version, node.edges[edge].node,
                         node.edges[edge].input_nr)


cdef bint _holds_arrays(const node_t *node) noexcept nogil:
    """Return whether the node saves the memory of any tensor; otherwise it can run repeatedly."""
    cdef int i
    for i in range(node.n_saved):
        if has_memory(&node.saved[i].value):
            return True
    return False


cdef bint can_take(node_t *node) noexcept nogil:
    cdef int i
    cdef bint can
    lock(&node.lock)
    can = not (node.released or node.python & HAS_PACKED_TENSORS)
    for i in range(node.op.n_saved):
        can = can and version_of(&node.saved[i].value) == node.saved[i].version and not _was_detached(node, i)
    unlock(&node.lock)
    return can


cdef int take_saved(node_t *node, value_t *saved, bint keep, bint packed) noexcept nogil:
    cdef int i, status = OK, n = node.op.n_saved
    lock(&node.lock)
    if node.released:
        status = freed_error(node)
    elif node.python & HAS_PACKED_TENSORS and not packed:
        snprintf(message(), MESSAGE, b"%s: hooks were registered on a saved tensor while another thread ran backward "
                 b"through it. Register them before.", node.op.node_name)
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
        # As note_release does, but without asking which thread this is.
        atomic_store32(&node.released_by, <int32_t>atomic_load(&node.task))
    unlock(&node.lock)
    if status != OK:
        for i in range(n):
            clear(&saved[i])
    return status


cdef int _scatter(node_t *node, value_t *out, array_t **gradients) noexcept nogil:
    """Pass the gradients of the arguments to the edges: one each, or one per entry of a list. Takes `out` over."""
    cdef const operator_t *op = node.op
    cdef int i, j, edge, status = OK
    for i in range(op.n_arguments):
        edge = first_edge(op, i, node.n_edges)
        if i != op.listed and out[i].kind == ARRAY:
            gradients[edge] = out[i].of.array
            out[i].kind = NOTHING
        elif i == op.listed and out[i].kind == ARRAYS:
            for j in range(min(out[i].count, node.n_edges - op.n_single)):
                gradients[edge + j] = out[i].of.arrays[j]
                out[i].of.arrays[j] = NULL
            clear(&out[i])
    for i in range(node.n_edges):
        if gradients[i] != NULL and node.edges[i].node == NULL:
            release(gradients[i])
            gradients[i] = NULL
        if node.metas != NULL and status == OK:
            status = fit(node.metas[i], &gradients[i])
    return status


cdef int native_backward(node_t *node, value_t *grads, array_t **gradients, bint keep, uint32_t wanted) noexcept nogil:
    cdef value_t[MAX_SAVED] saved
    cdef int i, status
    status = take_saved(node, saved, keep, False)
    if status != OK:
        for i in range(node.n_outputs):
            clear(&grads[i])
        return status
    return _compute(node, saved, grads, gradients, wanted)


cdef int _compute(node_t *node, value_t *saved, value_t *grads, array_t **gradients,
                  uint32_t wanted) noexcept nogil:
    """
    Run the formulas on saved values and gradients, both of which it takes over. Without gradients the result is empty.
    """
    cdef value_t[MAX_ARGUMENTS] out
    cdef array_t **metas = node.metas
    cdef int i, status = OK
    cdef bint defined = False
    for i in range(node.n_outputs):
        defined |= grads[i].kind != NOTHING
    # (Nodes created by the fast paths of dispatch have no metas, and none of these dtypes.)
    if defined and metas != NULL and (any_storage_only(grads, node.n_outputs)
                                      or any_storage_only(saved, node.op.n_saved)):
        if node.op.flags & PLAIN_FORMULAS and not _is_broadcast(node, grads):
            metas = NULL
        else:
            status = cast_to_compute_dtypes(saved, node.op.n_saved) or cast_to_compute_dtypes(grads, node.n_outputs)
    if status != OK:
        defined = False
        for i in range(node.n_outputs):
            clear(&grads[i])
    if defined:
        status = differentiate(node.op, saved, grads, node.n_outputs, node.needed & wanted, metas, node.n_edges, out)
    else:
        for i in range(node.op.n_arguments):
            out[i].kind = NOTHING
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


cdef bint _is_broadcast(const node_t *node, const value_t *grads) noexcept nogil:
    """Return whether an operand was broadcast; its gradient is then rounded only after it is summed."""
    cdef int i
    if node.op.flags & ELEMENTWISE and node.metas != NULL:
        for i in range(node.n_edges):
            if node.metas[i] != NULL and not same_shape(node.metas[i], grads.of.array):
                return True
    return False


cdef object _meta_object(const array_t *array):
    cdef int i
    return Meta(tuple([array.shape[i] for i in range(array.ndim)]), dtype_object(array.dtype),
                tuple([array.strides[i] for i in range(array.ndim)]), <size_t>array.data // itemsize(array.dtype))


cdef int _first_edge(const node_t *node, int argument) noexcept nogil:
    """Return the edge of a differentiable argument that is not a list; -1 if it has none."""
    if not node.op.arguments[argument].differentiable:
        return -1
    return first_edge(node.op, argument, node.n_edges)


cdef bint _is_at(Tensor tensor, const edge_t *edge):
    """Return whether the edge still belongs to the tensor; False after detach_(), for example."""
    if edge.node == NULL:
        return True
    if tensor.node is None:
        return tensor.leaf_requires_grad and tensor.gradient != NULL and tensor.gradient.accumulator == edge.node
    return tensor.node.c == edge.node and tensor.output_nr == edge.input_nr


cdef int _borrow_saved(node_t *node, int position, value_t *to) except -1:
    """Copy a saved value, because another thread's backward may release it."""
    cdef int status
    to.kind = NOTHING
    lock(&node.lock)
    if node.released:
        status = freed_error(node)
    else:
        status = OK if not has_memory(&node.saved[position].value) else _check_version(node, position)
        if status == OK:
            status = copy_value(to, &node.saved[position].value)
    unlock(&node.lock)
    return check(status)


@cython.binding(False)      # methods check the type of self
cdef class NativeNode(Node):
    """A node of an operator of the table."""

    cdef object unpack(self, int position):
        """Return the saved value at `position` as the user's object: the Tensor that was saved, or its twin."""
        cdef value_t own
        _checked(self, position)
        if self.packed is not None and self.packed[position] is not None:
            return self.unpack_packed(position)
        _borrow_saved(self.c, position, &own)
        try:
            return self.known(&own, position)
        finally:
            clear(&own)

    cdef object known(self, value_t *value, int position):
        """Convert a saved value to the user's object."""
        cdef node_t *c = self.c
        cdef const saved_t *layout = &c.op.saved[position]
        cdef int edge
        if value.kind == ARRAY:
            if value.of.array.storage == NULL:
                return _meta_object(value.of.array)
            edge = -1 if layout.from_result else _first_edge(c, layout.index)
            return self.dual(self.twin(value.of.array, layout.from_result, layout.index, edge), position)
        if value.kind == ARRAYS:
            return self.dual([None if value.of.arrays[i] == NULL
                              else _meta_object(value.of.arrays[i]) if value.of.arrays[i].storage == NULL
                              else self.twin(value.of.arrays[i], False, 0, -1) for i in range(value.count)], position)
        return plain_object(value)

    cdef object dual(self, object value, int position):
        """Restore the tangents of a saved value, if the thread is still in that level of forward mode."""
        if self.payload is not None and thread_state().dual_level:
            level, tangents = self.payload
            if level == thread_state().dual_level and tangents[position] is not None:
                protocol.attach_tangents(value, tangents[position])
        return value

    cdef Tensor twin(self, array_t *array, bint from_result, int result, int edge):
        cdef Tensor tensor = known_tensor(array)
        if from_result and not is_inplace_view(tensor, self.c):
            tensor = None
        if tensor is not None and (edge < 0 or _is_at(tensor, &self.c.edges[edge])):
            return tensor
        # A second array over the same memory: the first one belongs to the user's Tensor.
        return self.placed(alias(array), from_result, result, edge)

    cdef Tensor placed(self, Tensor tensor, bint from_result, int result, int edge):
        """Give a tensor without history the history of the saved one."""
        if from_result:
            attach_result(tensor, self, result)
        elif edge >= 0:
            attach_edge(tensor, &self.c.edges[edge])
        return tensor

    cdef object unpack_packed(self, int position):
        cdef const saved_t *layout = &self.c.op.saved[position]
        cdef int edge = -1 if layout.from_result else _first_edge(self.c, layout.index)
        packed = self.packed[position]
        if isinstance(packed, list):
            return [None if item is None else (<PackedTensor>item).unpack() for item in packed]
        return self.dual(self.placed((<PackedTensor>packed).unpack(), layout.from_result, layout.index, edge), position)

    cdef list apply_natively(self, list grads, bint keep, uint32_t wanted):
        """Run a node natively whose saved values hooks have packed."""
        cdef node_t *c = self.c
        cdef value_t[MAX_SAVED] saved
        cdef list unpacked = [None if item is None else self.unpack_packed(i) for i, item in enumerate(self.packed)]
        cdef list gradients = [None] * c.n_edges
        cdef int i, status
        cdef value_t *arrays = <value_t *>calloc(c.n_outputs, sizeof(value_t))
        cdef array_t **out = <array_t **>calloc(c.n_edges, sizeof(array_t *))
        for i in range(c.op.n_saved):
            saved[i].kind = NOTHING
        try:
            if arrays == NULL or out == NULL:
                raise MemoryError(f"{self.name()}: no memory for its gradients")
            check(take_saved(c, saved, keep, True))
            if not keep:
                c.released = 1
                note_release(c)
                self.packed = None
            for i in range(c.op.n_saved):
                if unpacked[i] is not None:
                    _box_saved(&saved[i], unpacked[i])
            for i in range(c.n_outputs):
                if grads[i] is not None:
                    set_array(&arrays[i], retain((<Tensor>grads[i]).array))
            with nogil:
                status = _compute(c, saved, arrays, out, wanted)
            for i in range(c.n_outputs):
                arrays[i].kind = NOTHING
            check(status)
            for i in range(c.n_edges):
                if out[i] != NULL:
                    gradients[i] = tensor_of(out[i])
            return gradients
        finally:
            for i in range(c.op.n_saved):
                clear(&saved[i])
            if arrays != NULL:
                for i in range(c.n_outputs):
                    clear(&arrays[i])
            free(arrays)
            free(out)

    cdef list apply(self, list grads, bint keep, bint recorded, uint32_t wanted):
        cdef node_t *c = self.c
        cdef const operator_t *op = c.op
        cdef int i, edge
        if c.released:
            check(freed_error(c))
        if not recorded and self.packed is not None:
            return self.apply_natively(grads, keep, wanted)
        # Eager runs the formulas on arrays, unless it creates a graph: a traced backward gives the same.
        cdef bint traced = (recorded and thread_state().modes & BACKWARD_MODES and thread_state().grad_disabled
                            and self.packed is None)
        cdef list native = native_gradients(self, grads, wanted) if traced else []
        cdef tuple saved = tuple([self.unpack(i) if c.saved[i].value.kind != NOTHING or self.packed is not None
                                  else None for i in range(op.n_saved)])
        if not keep and (self.packed is not None or _holds_arrays(c)):
            release_saved(c)
            note_release(c)
            self.packed = None
        for gradient in grads:
            if gradient is not None:
                break
        else:
            return [None] * c.n_edges
        cdef Operator row = <Operator>op.object
        cdef list gradients = [None] * c.n_edges
        cdef tuple given = tuple(grads)
        for i in range(op.n_arguments):
            if not (op.arguments[i].differentiable and c.needed & wanted & <uint32_t>1 << i):
                continue
            edge = first_edge(op, i, c.n_edges)
            result = row.recorded_function(i)(given, saved)
            if i != op.listed:
                gradients[edge] = result
            elif result:
                gradients[edge:edge + len(result)] = result
        for i in range(c.n_edges):
            if gradients[i] is not None and c.edges[i].node == NULL:
                gradients[i] = None
            if gradients[i] is not None and c.metas != NULL and c.metas[i] != NULL:
                gradients[i] = fit_recorded(c.metas[i], gradients[i])
            if traced and gradients[i] is not None and native[i] is not None:
                gradients[i] = laid_out_as(gradients[i], native[i], self)
        return count_arguments(c, gradients) if recorded and op.flags & COUNTS_ARGUMENTS else gradients

    def __getattr__(self, str name):
        cdef int i
        raw = name.startswith("_raw_saved_")
        if raw or name.startswith("_saved_"):
            wanted = name[11 if raw else 7:].encode()
            for i in range(self.c.op.n_saved):
                if self.c.op.saved[i].name == wanted:
                    return saved_tensor(self, i) if raw else self.unpack(i)
        if name == "_saved_self_sym_sizes" and self.c.metas != NULL and self.c.metas[0] != NULL:
            return tuple([self.c.metas[0].shape[i] for i in range(self.c.metas[0].ndim)])
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def _operator(self):
        """The `Operator` of the node."""
        return <object>self.c.op.object

    def _unpack(self, int position):
        """Return the saved object at `position`."""
        return self.unpack(_checked(self, position))

    def _packed(self, int position):
        """Return the `PackedTensor` at `position`, or None."""
        return None if self.packed is None else self.packed[position]

    def _pack(self, int position, pack, unpack):
        """Replace the saved object at `position` by what the pack hook returns."""
        cdef value_t own
        if self.packed is not None and self.packed[position] is not None:
            raise RuntimeError(f"register_hooks: hooks have already been set for a value saved by {self.name()} (got a "
                               "second pair).")
        if self.c.released:
            raise RuntimeError(f"register_hooks: {self.name()} called on a saved tensor after it has been freed. "
                               "Register hooks before backward, or call backward with retain_graph=True.")
        _borrow_saved(self.c, position, &own)
        try:
            if not has_memory(&own):
                raise RuntimeError(f"register_hooks: {self.name()} has saved no tensor there, and registering hooks on "
                                   f"None is forbidden (got {plain_object(&own)!r}).")
            pack_saved(self, position, &own, True, pack, unpack)
        finally:
            clear(&own)
        _release_packed(self.c, position)

    def __dir__(self):
        cdef int i
        names = [self.c.op.saved[i].name.decode() for i in range(self.c.op.n_saved)]
        return sorted(set(object.__dir__(self)) | {f"_saved_{name}" for name in names}
                      | {f"_raw_saved_{name}" for name in names})


install_collector(NativeNode, True)


def _conjugate(value):
    """Return the conjugate of a tensor or number; that of a real tensor is the tensor itself."""
    if isinstance(value, Tensor):
        return operators.conj(value) if is_complex((<Tensor>value).array.dtype) else value
    return value.conjugate()


operators.conjugate = _conjugate


cdef object fit_recorded(const array_t *meta, Tensor gradient):
    cdef int i
    if is_complex(gradient.array.dtype) and not is_complex(meta.dtype):
        gradient = operators.real(gradient)
    if not same_shape(gradient.array, meta):
        gradient = operators.sum_to(gradient, tuple([meta.shape[i] for i in range(meta.ndim)]))
    if gradient.array.dtype != meta.dtype:
        gradient = operators.cast(gradient, dtype_object(meta.dtype))
    return gradient


# ---- saved-tensor hooks

cdef int pack_saved(NativeNode node, int position, const value_t *value, bint detached, object pack,
                    object unpack) except -1:
    cdef str name = node.c.op.saved[position].name.decode()
    cdef int i
    cdef object packed
    # A result would form a cycle with its node: the hook gets an alias without history.
    detached = detached or node.c.op.saved[position].from_result
    if value.kind == ARRAY:
        packed = _pack_array(node, name, value.of.array, detached, pack, unpack)
    else:
        packed = [None if value.of.arrays[i] == NULL
                  else _pack_array(node, name, value.of.arrays[i], detached, pack, unpack)
                  for i in range(value.count)]
    if node.packed is None:
        node.packed = [None] * node.c.op.n_saved
    node.packed[position] = packed
    gc_track_all()
    node.c.python |= HAS_PACKED_TENSORS
    return 0


cdef PackedTensor _pack_array(NativeNode node, str name, array_t *array, bint detached, object pack, object unpack):
    cdef Tensor tensor = None if detached else known_tensor(array)
    return pack_tensor(node, name, alias(array) if tensor is None else tensor, pack, unpack)


cdef int _release_packed(node_t *node, int position) noexcept nogil:
    """Remove the value that a node saved, now that it is packed."""
    lock(&node.lock)
    clear(&node.saved[position].value)
    unlock(&node.lock)
    return 0


cdef int _box_saved(value_t *value, object unpacked) except -1:
    cdef int i
    if isinstance(unpacked, Tensor):
        set_array(value, retain((<Tensor>unpacked).array))
        return 0
    check(set_arrays(value, <int>len(unpacked)))
    for i in range(len(unpacked)):
        if unpacked[i] is not None:
            value.of.arrays[i] = retain((<Tensor>unpacked[i]).array)
    return 0


cdef int _checked(NativeNode node, int position) except -1:
    if 0 <= position < node.c.op.n_saved:
        return position
    raise IndexError(f"{node.name()} saves {node.c.op.n_saved} values (got position {position}).")


def call_node(Node node not None, tuple gradients not None):
    """``node(*gradients)``: its formulas, once, as an operation of the thread; no hooks."""
    cdef bint recorded = grad_enabled() or thread_state().modes & (BACKWARD_MODES | RESULT_MODES)
    cdef list grads = list(gradients)
    if len(grads) != node.c.n_outputs:
        raise TypeError(f"{node.name()}: expected {node.c.n_outputs} arguments, got {len(grads)} instead. Pass a "
                        "gradient or None for each output.")
    for gradient in grads:
        if gradient is not None and not isinstance(gradient, Tensor):
            raise TypeError(f"{node.name()}: gradients must be Tensors or None (got {type(gradient).__name__}).")
    if node.c.gradient != NULL:
        if grads[0] is not None:
            check(add_gradient(node.c, retain((<Tensor>grads[0]).array)))
        return ()
    results = node.apply(grads, True, recorded, ALL_ARGUMENTS)
    return results[0] if len(results) == 1 else tuple(results)
