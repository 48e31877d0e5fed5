"""
In-place operations and views: permission checks, and rewriting of history.

An in-place operation makes its tensor the output of a new node. If the tensor is a view, one region of its base is
modified: the base becomes the output of a CopySlices node, which sends the gradient of that region through the
operation and the rest to the old base; every view of the base detects the new version when its grad_fn is read next,
and becomes a view of the new base.
"""

from cpython.ref cimport Py_DECREF
from libc.stdint cimport int64_t, uint32_t
from cygrad._core.arrays.array cimport (
    ARRAY, INTEGER, NOTHING, array_empty_like, array_over, array_t, array_view, overlaps_itself, release, set_integers,
    shape_text, value_t,
)
from cygrad._core.arrays.dtype cimport complex_of, dtype_object, is_complex, is_differentiable, itemsize, real_of
from cygrad._core.elementwise.elementwise cimport copy_into, fill
from cygrad._core.graph.boxing cimport plain_object
from cygrad._core.graph.modes cimport grad_enabled, thread_state, thread_state_t
from cygrad._core.graph.node cimport (
    ALL_ARGUMENTS, HAS_PACKED_TENSORS, HAS_PYTHON_BACKWARD, Node, gc_unlink, gc_untrack, install_collector, kept_t,
    node_new, node_t, remember_place, set_edge,
)
from cygrad._core.graph.saved cimport before_change
from cygrad._core.graph.tensor cimport (
    CUSTOM_VIEW, DIFFERENTIABLE_VIEW, INFERENCE_VIEW, MULTI_OUTPUT_VIEW, NO_GRAD_VIEW, Tensor, as_tensor, describe,
    gradient_edge, is_inference, protocol, requires_grad, set_node, wrap,
)
from cygrad._core.graph.untracked_reason cimport DETACHED_IN_PLACE
from cygrad._core.kernels.arguments cimport check_same_shape
from cygrad._core.memory.atomic cimport atomic_increment, atomic_store
from cygrad._core.memory.errors cimport MEMORY_ERROR, OK, check
from cygrad._core.memory.storage cimport storage_new, storage_t

from cygrad._core.graph.operation_names import operation_error
from cygrad._core.table.operator import operators
import numpy as np

cdef dict _restricted = {
    NO_GRAD_VIEW: "A view was created in no_grad mode and is being modified inplace with grad mode enabled. Create it "
                  "outside, or modify its base",
    MULTI_OUTPUT_VIEW: "This view is the output of a function that returns multiple views (split, unbind, ...). Use "
                       "one that returns one view, or clone() it",
    CUSTOM_VIEW: "This view was created inside a custom Function. Return a clone() from the Function, or call "
                 "mark_dirty on its input",
    INFERENCE_VIEW: "A view was created in inference mode and is being modified inplace in normal mode. Create it "
                    "outside",
}


cdef int check_inplace(Tensor tensor, str operation, bint recorded) except -1:
    """Raise an error that names the operation if the tensor may not be modified in place."""
    cdef Tensor base = tensor.base
    if thread_state().guarded:
        before_change(tensor)
    if is_inference(tensor):
        if not thread_state().inference:
            raise _refusal(operation, f"Inplace update to inference tensor outside InferenceMode is not allowed (got a "
                                      f"{describe(tensor)}). Create a normal one with clone().")
        return 0
    if tensor.array.storage != NULL and not tensor.array.storage.writable:
        raise _refusal(operation, f"the memory is read-only (got a {describe(tensor)} over a read-only buffer). Use "
                                  "clone() first.")
    if grad_enabled() and tensor.leaf_requires_grad and tensor.node is None:
        raise _refusal(operation, f"a leaf Variable that requires grad is being used in an in-place operation (got a "
                                  f"{describe(tensor)}). Modify it under no_grad(), or modify a clone().")
    if base is not None and grad_enabled() and (recorded or requires_grad(base) or requires_grad(tensor)):
        if requires_grad(tensor) and not requires_grad(base) and base.untracked == DETACHED_IN_PLACE:
            raise _refusal(operation, f"this view cannot be modified in place, because detach_() has detached its "
                                      f"base from the graph (got a {describe(tensor)}). Create the view again.")
        if tensor.view_kind > DIFFERENTIABLE_VIEW:
            maker = "" if tensor.view_kind in (NO_GRAD_VIEW, INFERENCE_VIEW) or tensor.node is None else (
                f"Output {tensor.output_nr} of {tensor.node.name()} is a view and is being modified inplace. ")
            raise _refusal(operation, f"{maker}{_restricted[tensor.view_kind]} (got a {describe(tensor)}).")
        if base.node is None and (base.leaf_requires_grad or tensor.node is not None):
            raise _refusal(operation, f"a view of a leaf Variable that requires grad is being used in an in-place "
                                      f"operation (got a {describe(tensor)}, view of a {describe(base)}). Modify it "
                                      "under no_grad(), or modify a clone().")
        if tensor.view_kind == DIFFERENTIABLE_VIEW:
            _place_in(base.array, tensor.array, operation)   # raises an error before anything is modified
    if overlaps_itself(tensor.array) and operation not in ("fill_", "zero_"):          # writes equal elements
        raise _refusal(operation, "several elements of the tensor share a memory location (got a "
                                  f"{describe(tensor)} with strides {tensor.stride()}). Use clone() before modifying "
                                  "it.")
    return 0


cdef object _refusal(str operation, str text):
    return operation_error(RuntimeError, operation, text)


cdef int bump_version(Tensor tensor) noexcept:
    if tensor.array.version != NULL:
        atomic_increment(&tensor.array.version.value)
        remember_place(tensor.array.version)
    return 0


cdef int64_t _place_in(const array_t *base, const array_t *view, str operation) except? -1:
    """
    Return the offset of the view in its base, in elements of the view: real numbers in a view of the parts of complex
    ones.

    ``.data =`` and ``set_`` may have replaced the memory of either. Then the offsets in both memories decide which
    region of the base the view is, if it is one: CopySlices writes the region of a copy of the base.
    """
    cdef int64_t size = itemsize(view.dtype), first = 0, last = 0, low = 0, high = 0, place
    if view.storage == base.storage:
        place = (view.data - base.data) // size
    elif view.storage == NULL or base.storage == NULL:       # one of them has shape and dtype only
        place = 0
    else:
        place = (view.data - view.storage.data) // size - (base.data - base.storage.data) // itemsize(base.dtype)
    if view.size == 0:
        return place
    _reach(base, &first, &last)
    if is_complex(base.dtype) and not is_complex(view.dtype):
        first, last = 2 * first, 2 * last + 1
    _reach(view, &low, &high)
    if is_complex(view.dtype) and not is_complex(base.dtype):
        place, low, high = 2 * place, 2 * low, 2 * high + 1
    if base.size and first <= place + low and place + high <= last:
        return place // 2 if is_complex(view.dtype) and not is_complex(base.dtype) else place
    raise RuntimeError(f"{operation}: a view no longer refers to the memory of its base (got shape "
                       f"{shape_text(view).decode()} at offset {place} from the first element of a base of shape "
                       f"{shape_text(base).decode()}), because the memory of one of them was replaced. Create the "
                       "view again, or detach() it.")


cdef void _reach(const array_t *array, int64_t *first, int64_t *last) noexcept:
    """Return the smallest and the largest offset of an element, in elements."""
    cdef int64_t step
    cdef int i
    for i in range(array.ndim):
        step = array.strides[i] * (array.shape[i] - 1)
        if step < 0:
            first[0] += step
        else:
            last[0] += step


cdef int rebase_history(Tensor tensor, Node node) except -1:
    if not is_differentiable(tensor.array.dtype):
        return 0
    if tensor.base is None or tensor.view_kind != DIFFERENTIABLE_VIEW:
        _move(tensor, node, 0)
        return 0
    cdef Tensor base = tensor.base
    cdef int64_t input_nr
    cdef Node target = gradient_edge(base, &input_nr)
    cdef Node copy = _copy_slices(node, target, input_nr, base, tensor)
    _move(base, copy, 0)
    if base.array.version != tensor.array.version and base.array.version != NULL:
        atomic_increment(&base.array.version.value)           # for other views of it: it has a new history
    tensor.view_version = tensor.array.version.value - 1      # outdated: read the view of the new base
    return 0


cdef int _move(Tensor tensor, Node node, int output_nr) except -1:
    """
    Make the tensor an output of another node. Hooks stay with the old one, but retain_grad() moves along: it refers to
    the gradient of the tensor, not of a former value.
    """
    cdef Node former = tensor.node
    if former is not None and former.hooks is not None and tensor.output_nr in former.hooks.retained:
        reference = former.hooks.retained[tensor.output_nr]
        if reference() is tensor:
            former.hooks.retained.pop(tensor.output_nr, None)
            node.ensure_hooks().retained[output_nr] = reference
    set_node(tensor, node, output_nr)
    tensor.leaf_requires_grad = False
    return 0


cdef int _refresh_view(Tensor view) except -1:
    """
    Make `view` the output of an as_strided node on its current base; if only one of them is complex, of one on the real
    numbers of both. If the base is detached now, the node leads nowhere.
    """
    cdef thread_state_t *state = thread_state()
    cdef int disabled = state.grad_disabled
    cdef bint from_complex = is_complex(view.base.array.dtype), to_complex = is_complex(view.array.dtype)
    state.grad_disabled = 0
    cdef bint severed = not requires_grad(view.base)
    cdef Tensor fresh
    shape, strides, offset = view.shape, view.stride(), view.storage_offset()
    try:
        base = view.base.detach().requires_grad_() if severed else view.base
        if from_complex and not to_complex:
            base = operators.view_as_real(base)
        elif to_complex and not from_complex:
            shape, strides = _as_pairs(shape, strides)
            offset *= 2
        fresh = operators.as_strided(base, shape, strides, offset)
        if to_complex and not from_complex:
            fresh = operators.view_as_complex(fresh)
    finally:
        state.grad_disabled = disabled
    if severed:
        _cut_edge(fresh.node.c)
    _move(view, fresh.node, fresh.output_nr)
    return 0


cdef void _cut_edge(node_t *node) noexcept:
    cdef node_t *target = node.edges[0].node
    node.edges[0].node = NULL
    Py_DECREF(<object>target.object)


protocol.refresh_view = _refresh_view


cdef bint is_inplace_view(Tensor tensor, const node_t *node) noexcept:
    """Return whether the tensor is still the view that `node` wrote in place, with a history through its CopySlices."""
    return (tensor is not None and node.inner != NULL and tensor.view_kind == DIFFERENTIABLE_VIEW
            and tensor.base is not None and tensor.base.node is not None and tensor.base.node.c == node.inner)


cdef int attach_result(Tensor tensor, Node node, int output_nr) except -1:
    """
    Make a tensor without history the saved result `output_nr` of `node`.

    The result of an in-place operation on a view is a view of the output of its CopySlices: its gradient arrives
    there, so that the node of the slice runs once in a backward.
    """
    cdef node_t *copy = node.c.inner
    cdef kept_t *kept
    cdef Tensor base, view
    if copy == NULL:
        tensor.node = node
        tensor.output_nr = output_nr
        return 0
    kept = copy.saved
    base = wrap(_base_like(kept))
    view = wrap(array_view(base.array, <int>kept[DTYPE].value.of.integer, kept[SHAPE].value.count,
                           kept[SHAPE].value.of.integers, kept[STRIDES].value.of.integers,
                           kept[OFFSET].value.of.integer))
    set_node(base, <Node>copy.object, 0)
    view.base = base
    _refresh_view(view)
    tensor.node = view.node
    tensor.output_nr = view.output_nr
    return 0


# -------------------------------------------------------------------------------------------------------- CopySlices

cdef enum:                      # what a CopySlices node saves, besides the node of the slice in `inner`
    BASE_DTYPE, BASE_SHAPE, BASE_STRIDES, DTYPE, SHAPE, STRIDES, OFFSET
    VIEW_DTYPE                  # that of the view, except that DTYPE is that of the base's memory
    KEPT


cdef Node _copy_slices(Node inner, Node target, int64_t input_nr, Tensor base, Tensor view):
    cdef int i, n = inner.c.n_edges
    cdef Node node = node_new(CopySlices, n if n else 1, 1, KEPT, False)
    cdef value_t *kept[KEPT]
    node.payload = inner
    node.c.inner = inner.c
    inner.c.inner = node.c
    node.c.n_saved = KEPT
    if node.notes is None and inner.c.next != NULL:           # neither leads to a Python object: untrack it as well
        gc_unlink(node.c)
        gc_untrack(node.c)
    if inner.c.backward != NULL:             # else only Python code can run it, and so this node
        node.c.backward = _backward
    node.c.python |= inner.c.python & (HAS_PYTHON_BACKWARD | HAS_PACKED_TENSORS)
    node.c.work = base.array.size
    # Its first edge goes to the base's old history; the others are those of the operation on the slice.
    set_edge(node.c, 0, NULL if target is None else target.c, input_nr)
    for i in range(1, n):
        set_edge(node.c, i, inner.c.edges[i].node, inner.c.edges[i].input_nr)
    for i in range(KEPT):
        kept[i] = &node.c.saved[i].value
    _set_integer(kept[BASE_DTYPE], base.array.dtype)
    _set_integer(kept[DTYPE], _seen_dtype(base.array.dtype, is_complex(view.array.dtype)))
    _set_integer(kept[VIEW_DTYPE], view.array.dtype)
    check(set_integers(kept[BASE_SHAPE], base.array.ndim, base.array.shape))
    check(set_integers(kept[BASE_STRIDES], base.array.ndim, base.array.strides))
    check(set_integers(kept[SHAPE], view.array.ndim, view.array.shape))
    check(set_integers(kept[STRIDES], view.array.ndim, view.array.strides))
    _set_integer(kept[OFFSET], _place_in(base.array, view.array, "in-place operation"))
    # The gradient of the slice has the shape of the slice: the inner node's metas ensure that.
    return node


cdef int _seen_dtype(int base, bint as_complex) noexcept:
    """
    Return the elements of a base as a view sees them: the same, or the parts of complex ones, or pairs of real ones.
    """
    if is_complex(base) == as_complex:
        return base
    return complex_of(base) if as_complex else real_of(base)


cdef inline void _set_integer(value_t *value, int64_t integer) noexcept nogil:
    value.kind = INTEGER
    value.of.integer = integer


cdef int _backward(node_t *node, value_t *grads, array_t **gradients, bint keep, uint32_t wanted) noexcept nogil:
    cdef kept_t *kept = node.saved
    cdef int status
    cdef array_t *grad
    cdef array_t *whole
    cdef array_t *region
    cdef value_t slice_grad, zero
    if grads[0].kind != ARRAY:
        return OK
    grad = grads[0].of.array
    grads[0].kind = NOTHING
    status = check_same_shape(b"CopySlices", b"grad", grad, kept[BASE_SHAPE].value.count,
                              kept[BASE_SHAPE].value.of.integers)            # the base may have other memory since
    if status != OK:
        release(grad)
        return status
    # A copy of the gradient in the layout of the base, so that the slice's strides are valid in it.
    whole = _base_like(kept)
    if whole == NULL:
        release(grad)
        return MEMORY_ERROR
    status = copy_into(whole, grad)
    release(grad)
    region = NULL
    if status == OK:
        region = array_view(whole, <int>kept[DTYPE].value.of.integer, kept[SHAPE].value.count,
                            kept[SHAPE].value.of.integers, kept[STRIDES].value.of.integers,
                            kept[OFFSET].value.of.integer)
        status = MEMORY_ERROR if region == NULL else OK
    if status == OK:
        slice_grad.kind = ARRAY
        slice_grad.of.array = array_empty_like(region, <int>kept[VIEW_DTYPE].value.of.integer)
        status = MEMORY_ERROR if slice_grad.of.array == NULL else copy_into(slice_grad.of.array, region)
        if status == OK:
            node.inner.task = node.task          # the call that runs it
            status = node.inner.backward(node.inner, &slice_grad, gradients, keep, ALL_ARGUMENTS)
        else:
            release(slice_grad.of.array)
    if status == OK:
        if gradients[0] != NULL:
            status = copy_into(region, gradients[0])
            release(gradients[0])
        else:
            zero.kind = INTEGER
            zero.of.integer = 0
            status = fill(region, &zero)
        gradients[0] = whole
        if node.edges[0].node == NULL:
            release(whole)
            gradients[0] = NULL
    else:
        release(whole)
    release(region)
    return status


cdef array_t *_base_like(const kept_t *kept) noexcept nogil:
    """An uninitialized array with the geometry of the base, in memory of its own."""
    cdef int i, dtype = <int>kept[BASE_DTYPE].value.of.integer, ndim = kept[BASE_SHAPE].value.count
    cdef const int64_t *shape = kept[BASE_SHAPE].value.of.integers
    cdef const int64_t *strides = kept[BASE_STRIDES].value.of.integers
    cdef int64_t first = 0, elements = 1
    cdef storage_t *storage
    for i in range(ndim):
        if shape[i] == 0:
            first = elements = 0
            break
        elements += max(strides[i], -strides[i]) * (shape[i] - 1)
        first += max(-strides[i], 0) * (shape[i] - 1)
    storage = storage_new(elements * itemsize(dtype))
    return NULL if storage == NULL else array_over(storage, dtype, ndim, shape, strides, first)


cdef class CopySlices(Node):
    """Rewrite the history of a base after one of its views was modified in place."""

    cdef list apply(self, list grads, bint keep, bint recorded, uint32_t wanted):
        if grads[0] is None:
            return [None] * self.c.n_edges
        cdef kept_t *kept = self.c.saved
        cdef bint from_complex = is_complex(<int>kept[BASE_DTYPE].value.of.integer)
        cdef bint to_complex = is_complex(<int>kept[DTYPE].value.of.integer)
        cdef bint base_in_pairs = from_complex and not to_complex, slice_in_pairs = to_complex and not from_complex
        shape, strides = plain_object(&kept[SHAPE].value), plain_object(&kept[STRIDES].value)
        base_shape, base_strides = plain_object(&kept[BASE_SHAPE].value), plain_object(&kept[BASE_STRIDES].value)
        offset, whole = kept[OFFSET].value.of.integer, grads[0]
        if base_in_pairs:
            base_shape, base_strides = _as_pairs(base_shape, base_strides)
            whole = operators.view_as_real(whole)
        elif slice_in_pairs:
            shape, strides = _as_pairs(shape, strides)
            offset *= 2
        inside = _places(base_shape, base_strides, shape, strides, offset)
        places = as_tensor(inside, "CopySlices")
        flat = operators.reshape(whole, (-1,))
        region = operators.reshape(operators.index_select(flat, 0, places), shape)
        region = operators.view_as_complex(region) if slice_in_pairs else region
        cdef list gradients = (<Node>self.payload).apply(
            [_as_dtype(region, <int>kept[VIEW_DTYPE].value.of.integer)], keep, recorded, ALL_ARGUMENTS)
        if gradients[0] is None:
            outside = operators.scatter(flat, 0, places, 0)
        else:
            inner = _as_dtype(gradients[0], <int>kept[DTYPE].value.of.integer)
            inner = operators.view_as_real(inner) if slice_in_pairs else inner
            outside = operators.scatter(flat, 0, places, operators.reshape(inner, (-1,)))
        outside = operators.reshape(outside, base_shape)
        gradients[0] = operators.view_as_complex(outside) if base_in_pairs else outside
        if self.c.edges[0].node == NULL:
            gradients[0] = None
        return gradients


install_collector(CopySlices, False)


cdef Tensor _as_dtype(Tensor tensor, int dtype):
    return tensor if tensor.array.dtype == dtype else tensor.to(dtype_object(dtype))


def _as_pairs(shape, strides):
    """Return shape and strides of the real view of a complex tensor, with pairs in the last dimension."""
    return [*shape, 2], [*(2 * stride for stride in strides), 1]


def _places(base_shape, base_strides, shape, strides, offset):
    """Return row-major positions in the base of the elements of the slice, a flat int64 array."""
    first = sum(min(stride * (size - 1), 0) for size, stride in zip(base_shape, base_strides))
    last = sum(max(stride * (size - 1), 0) for size, stride in zip(base_shape, base_strides))
    memory = np.zeros(last - first + 1, dtype=np.int64)
    count = int(np.prod(base_shape, dtype=np.int64))

    def see(start, size, steps):
        return np.lib.stride_tricks.as_strided(memory[start:], size, [8 * step for step in steps])

    see(-first, base_shape, base_strides)[...] = np.arange(count).reshape(base_shape)
    return np.ascontiguousarray(see(offset - first, shape, strides)).reshape(-1)


def increment_version(tensor):
    """
    Increment the version after a modification outside of cygrad, such as through NumPy.

    Backward then detects that a saved tensor was modified.

    Parameters
    ----------
    tensor : Tensor or iterable of Tensor
        Inference tensors have no version and are skipped.

    Examples
    --------
    >>> x = cygrad.zeros(2)
    >>> x.numpy()[:] = 1
    >>> cygrad.autograd.graph.increment_version(x)
    >>> x._version
    1
    """
    for part in (tensor,) if isinstance(tensor, Tensor) else tuple(tensor):
        if not isinstance(part, Tensor):
            raise TypeError(f"increment_version: expected Tensors (got {type(part).__name__}).")
        if not is_inference(part):                # it has no version
            bump_version(part)


def set_version(Tensor tensor not None, int64_t version):
    """Reset the version; only if saved tensors are unchanged."""
    if not is_inference(tensor):
        atomic_store(&tensor.array.version.value, version)
