"""
Calls of operators: boxing, promotion, the kernel, the node.

`call` is the general path. `unary` and `binary` do the same for element-wise operators, with a fast path for the most
frequent case of eager code: small contiguous tensors of one dtype and shape.
"""

cimport cython
from cpython.float cimport PyFloat_Check
from cpython.long cimport PyLong_AsLongLongAndOverflow, PyLong_Check
from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint32_t
from libc.stdio cimport snprintf
from cygrad._core.arrays.array cimport (
    ARRAY, ARRAYS, INTEGER, MAX_DIMS, NOTHING, array_empty_like, array_meta, array_t, clear, copy_value, is_number,
    kernel_t, release, retain, same_shape, set_array, set_arrays, shape_text, value_t,
)
from cygrad._core.arrays.dtype cimport (
    DTYPES, FLOAT32, FLOAT64, UINT64, category, dtype_name, dtype_object, is_complex, is_differentiable, promotable,
    promote,
)
from cygrad._core.creation.creation cimport tensor_from
from cygrad._core.dispatch.tangents cimport check_out, result_type, write_out
from cygrad._core.dispatch.work cimport size_of
from cygrad._core.elementwise.elementwise cimport (
    broadcast_shape, copy_into, entries, entry_t, evaluate, expression_t, result_dtype,
)
from cygrad._core.graph.boxing cimport begin_frame, box, box_number, frame_t, override, overrides, plain_object, unbox
from cygrad._core.graph.inplace cimport bump_version, check_inplace, rebase_history
from cygrad._core.graph.mode_stack cimport InplaceStep, begin_inplace, handle_call, notify_executed
from cygrad._core.graph.modes cimport (
    CALL_MODES, EXCEPT_AUTOCAST, RESULT_MODES, grad_enabled, thread_state, thread_state_t,
)
from cygrad._core.graph.native cimport NativeNode, native_node, pack_saved, set_meta, version_of
from cygrad._core.graph.node cimport Node, kept_t, node_t, set_edge
from cygrad._core.graph.saved cimport SavedHooks, saved_hooks
from cygrad._core.graph.tensor cimport (
    DIFFERENTIABLE_VIEW, MULTI_OUTPUT_VIEW, SLOTS, SLOT_ABS, SLOT_ADD, SLOT_AND, SLOT_DIV, SLOT_EQ, SLOT_FLOOR_DIV,
    SLOT_GE, SLOT_GT, SLOT_INVERT, SLOT_LE, SLOT_LSHIFT, SLOT_LT, SLOT_MATMUL, SLOT_MUL, SLOT_NE, SLOT_NEG, SLOT_OR,
    SLOT_POW, SLOT_REMAINDER, SLOT_RSHIFT, SLOT_SUB, SLOT_XOR, WITHOUT_ELEMENTS, Tensor, adapt, any_is_meta, any_meta,
    any_unusual, describe, gradient_edge, is_meta, is_plain, known_tensor, mark_array_api, propagate_array_api,
    protocol, provided, requires_grad, unusual_among, wrap, wrap_view,
)
from cygrad._core.memory.atomic cimport atomic_load
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, OK, check, message, unlikely
from cygrad._core.table.operator cimport (
    CALL_BINARY, ELEMENTWISE, LIST_RESULT, MAX_ARGUMENTS, MAX_RESULTS, NO_GRADIENT, TENSORS, VIEW, Operator, first_edge,
    operator_t, run_in_compute_dtypes, run_in_compute_dtypes_inplace, saved_t, table,
)

import numpy as np
from cygrad._core.graph.operation_names import called_operation
from cygrad._core.table.operator import operators


# ---------------------------------------------------------------------------------------------------- standard operands

# Operands that are Array API arrays: differences from the rules for other tensors.
#
# 0-dim arrays are promoted like others, so they are cast before the operation; and floor division has
# limits where an operand is infinite.

cdef Operator _floor_divide = None, _floored_quotient = None


cdef tuple promoted(Tensor a, Tensor b, bint always):
    cdef int common
    if not promotable(a.array.dtype, b.array.dtype) or not (always or (a.array.ndim == 0) != (b.array.ndim == 0)):
        return a, b
    common = promote(a.array.dtype, b.array.dtype)
    return _cast(a, common), _cast(b, common)


cdef Tensor _cast(Tensor tensor, int dtype):
    return tensor if tensor.array.dtype == dtype else operators.cast(tensor, dtype_object(dtype))


cdef Operator standard_operator(Operator operator, object a, object b):
    global _floor_divide, _floored_quotient
    if _floor_divide is None:               # the table is complete only after this module has been imported
        _floored_quotient, _floor_divide = table["floored_quotient"], table["floor_divide"]
    if operator is _floor_divide and (_is_floating(a) or _is_floating(b)):
        return _floored_quotient
    return operator


cdef inline bint _is_floating(object value) noexcept:
    return is_plain(value) and category((<Tensor>value).array.dtype) == category(FLOAT32)


def standard(result, *arguments):
    """
    Mark the results of a function of the namespace as Array API arrays.

    Parameters
    ----------
    result : object
        A Tensor, or several; other values are returned unchanged.
    *arguments : object
        Of the function. An argument that is returned is not marked; the result is a new Tensor of the same memory.

    Returns
    -------
    object
    """
    if isinstance(result, Tensor):
        return _standard(<Tensor>result, arguments)
    if isinstance(result, (tuple, list)):
        parts = [_standard(<Tensor>part, arguments) if isinstance(part, Tensor) else part for part in result]
        return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)
    return result


cdef Tensor _standard(Tensor tensor, tuple arguments):
    if not is_plain(tensor) or is_array_api(tensor.array):
        return tensor
    for argument in arguments:
        if argument is tensor:
            tensor = operators.alias(tensor)
            break
    mark_array_api(tensor.array)
    return tensor


def follows_standard(Tensor tensor not None):
    """Whether a tensor is an Array API array."""
    return is_array_api(tensor.array)


# ----------------------------------------------------------------------------------------------------- operation errors

# Error messages of shared kernels and expressions begin with the operation that was called.

cdef int check_operation(int status, str operation, bint inplace) except -1:
    cdef bytes text
    if status == OK:
        return 0
    before, found, rest = (<bytes>message()).partition(b":")
    if found and before in (b"", operation.encode()):
        text = called_operation(operation + "_" if inplace else operation).encode() + found + rest
        snprintf(message(), MESSAGE, b"%s", <char *>text)
    return check(status)


# ------------------------------------------------------------------------------------------------------------ execution

# Execution of an operation after its arguments are boxed: the kernel or element-wise expression, the node, the results.

# --------------------------------------------------------------------------------------------------------- recording

cdef inline int _n_differentiable(const operator_t *op) noexcept:
    """Return how many arguments have a derivative formula; they come first in the row."""
    return op.n_single + (op.listed != MAX_ARGUMENTS)


cdef uint32_t needed_by(const operator_t *op, frame_t *frame) except? 0xffffffff:
    cdef int i = -1, left = _n_differentiable(op)
    cdef uint32_t needed = 0
    while left:
        i += 1
        if not op.arguments[i].differentiable:
            continue
        left -= 1
        if frame.objects[i] == NULL:
            continue
        if op.arguments[i].kind == TENSORS:
            for item in <list>frame.objects[i]:
                if item is not None and needs_gradient(<Tensor>item):
                    needed |= 1u << i
                    break
        elif (<Tensor>frame.objects[i]).base is None:
            if requires_grad(<Tensor>frame.objects[i]):
                needed |= 1u << i
        elif needs_gradient(<Tensor>frame.objects[i]):
            needed |= 1u << i
    return needed


cdef int _keep_metas(kept_t *kept, const value_t *value) except -1:
    """Save shapes and dtypes, without the memory."""
    cdef array_t *meta
    cdef int i
    if value.kind == ARRAY:
        meta = array_meta(value.of.array)
        if meta == NULL:
            check(MEMORY_ERROR)
        set_array(&kept.value, meta)
        return 0
    check(set_arrays(&kept.value, value.count))
    for i in range(value.count):
        if value.of.arrays[i] != NULL:
            kept.value.of.arrays[i] = array_meta(value.of.arrays[i])
            if kept.value.of.arrays[i] == NULL:
                check(MEMORY_ERROR)
    return 0


cdef int keep(NativeNode node, int position, const value_t *value, bint meta) except -1:
    """Save one value for backward."""
    cdef kept_t *kept = &node.c.saved[position]
    cdef SavedHooks hooks
    cdef int i
    if meta and (value.kind == ARRAY or value.kind == ARRAYS):
        return _keep_metas(kept, value)
    if value.kind == ARRAY:
        if value.of.array.version == NULL:
            raise RuntimeError(f"{node.c.op.name.decode()}: Inference tensors cannot be saved for backward (got one "
                               f"as '{node.c.op.saved[position].name.decode()}'). Make a normal one with clone().")
    elif value.kind == ARRAYS:
        for i in range(value.count):
            if value.of.arrays[i] != NULL and value.of.arrays[i].version == NULL:
                raise RuntimeError(f"{node.c.op.name.decode()}: Inference tensors cannot be saved for backward (got "
                                   f"one in '{node.c.op.saved[position].name.decode()}'). Make a normal one with "
                                   "clone().")
    if thread_state().saved_hooks != NULL and (value.kind == ARRAY or value.kind == ARRAYS):
        hooks = saved_hooks()
        return pack_saved(node, position, value, False, hooks.pack, hooks.unpack)
    kept.version = version_of(value)
    return check(copy_value(&kept.value, value))


cdef NativeNode record(Operator operator, frame_t *frame, uint32_t needed, int n_outputs):
    cdef operator_t *op = operator.descriptor
    cdef const saved_t *saved
    cdef value_t *value
    cdef array_t *meta
    cdef int i = -1, edge = 0, n_edges = op.n_single, left = _n_differentiable(op)
    cdef NativeNode node
    cdef node_t *c
    if not op.compiled:
        operator.compile()
    if op.listed != MAX_ARGUMENTS:
        n_edges += <int>len(<list>frame.objects[op.listed])
    node = native_node(operator, n_edges, n_outputs, True)
    c = node.c
    c.needed = needed
    while left:
        i += 1
        if not op.arguments[i].differentiable:
            continue
        left -= 1
        if op.arguments[i].kind == TENSORS:
            for item in <list>frame.objects[i]:
                if item is not None:
                    _connect(c, edge, <Tensor>item)
                edge += 1
        else:
            if frame.objects[i] != NULL:
                _connect(c, edge, <Tensor>frame.objects[i])
            edge += 1
    for i in range(op.n_saved):
        saved = &op.saved[i]
        if not saved.needed_by & needed or saved.from_result:
            continue
        value = &frame.values[saved.index]
        if is_number(value):
            c.saved[i].value = value[0]
            continue
        if value.kind == ARRAY and not saved.memory_by & needed and op.arguments[saved.index].differentiable:
            meta = c.metas[first_edge(op, saved.index, n_edges)]
            if meta != NULL:
                meta.count += 1              # not shared yet
                set_array(&c.saved[i].value, meta)
                continue
        if value.kind != NOTHING:
            keep(node, i, value, not saved.memory_by & needed)
    return node


cdef inline int _connect(node_t *c, int edge, Tensor tensor) except -1:
    cdef int64_t input_nr
    cdef Node target = gradient_edge(tensor, &input_nr)
    if target is not None:
        set_edge(c, edge, target.c, input_nr)
        set_meta(c, edge, tensor.array)
    return 0


cdef int keep_results(NativeNode node, value_t *results) except -1:
    cdef const operator_t *op = node.c.op
    cdef int i
    for i in range(op.n_saved):
        if op.saved[i].from_result and op.saved[i].needed_by & node.c.needed:
            keep(node, i, &results[op.saved[i].index], not op.saved[i].memory_by & node.c.needed)
    return 0


# ---------------------------------------------------------------------------------------------------------- execution

cdef expression_t *expression_of(Operator operator) except NULL:
    if operator.descriptor.expression == NULL:
        operator.ensure_expression()
    return operator.descriptor.expression


cdef int run(Operator operator, frame_t *frame, array_t *into, value_t *results, int64_t size) except -1:
    cdef operator_t *op = operator.descriptor
    cdef expression_t *expression
    cdef array_t *result = NULL
    cdef int status
    if op.flags & ELEMENTWISE:
        expression = expression_of(operator)
        if size < LARGE:
            status = evaluate(expression, frame.values, 0, into, &result)
        else:
            with nogil:
                status = evaluate(expression, frame.values, 0, into, &result)
        if unlikely(status != OK):
            check_operation(status, operator.name, False)
        set_array(&results[0], retain(into) if into != NULL else result)
        return 0
    return run_kernel(op, op.kernel, frame, results, size)


cdef array_t *_destination(Operator operator, frame_t *frame, object out) except? NULL:
    """Return the array of `out` if an element-wise result has its shape and dtype, and needs no copy; else NULL."""
    cdef int64_t[MAX_DIMS] shape
    cdef array_t *array
    cdef expression_t *expression
    cdef int d, ndim
    if not operator.descriptor.flags & ELEMENTWISE or not isinstance(out, Tensor):
        return NULL
    array, expression = (<Tensor>out).array, expression_of(operator)
    if result_dtype(expression, frame.values) != array.dtype:
        return NULL
    ndim = broadcast_shape(frame.values, expression.n_inputs, shape)
    if ndim != array.ndim:
        return NULL
    for d in range(ndim):
        if shape[d] != array.shape[d]:
            return NULL
    return array


cdef int run_kernel(operator_t *op, kernel_t kernel, frame_t *frame, value_t *results, int64_t size) except -1:
    cdef int status
    if unlikely(frame.storage_only):
        with nogil:
            if kernel == op.into:
                status = run_in_compute_dtypes_inplace(op, kernel, frame.values, results)
            else:
                status = run_in_compute_dtypes(op, kernel, frame.values, results)
    elif size < LARGE:
        status = kernel(frame.values, results)
    else:
        with nogil:
            status = kernel(frame.values, results)
    return check_operation(status, op.name.decode(), False) if unlikely(status != OK) else 0


cdef int _gradients_of(const operator_t *op) noexcept:
    """
    Return how many gradients the node takes: indices and results that only formulas read, which come last, have none.
    """
    cdef int n = op.n_results
    while n > 1 and not op.differentiable_results >> (n - 1) & 1:
        n -= 1
    return n


cdef object call_boxed(Operator operator, frame_t *frame, object out, value_t *computed):
    cdef value_t[MAX_RESULTS] results
    cdef operator_t *op = operator.descriptor
    cdef thread_state_t *state = thread_state()
    cdef uint32_t needed = 0
    cdef int64_t size
    cdef NativeNode node = None
    cdef int i, status, unusual, n_results = op.n_results
    for i in range(n_results):
        results[i].kind = NOTHING
        if computed != NULL:
            results[i] = computed[i]
    try:
        unusual = unusual_among(frame.n, frame.values) if unlikely(any_unusual) else 0
        if not state.grad_disabled and not op.flags & NO_GRADIENT and not unusual & WITHOUT_ELEMENTS:
            needed = needed_by(op, frame)
        if unlikely(out is not None):
            check_out(operator, frame, out, needed)
        size = size_of(frame)
        if needed:
            node = record(operator, frame, needed, 1)
        if computed == NULL and (op.flags & ELEMENTWISE or frame.storage_only or size >= LARGE):
            run(operator, frame, NULL if out is None or unusual else _destination(operator, frame, out), results, size)
        elif computed == NULL:
            status = op.kernel(frame.values, results)
            if unlikely(status != OK):
                check_operation(status, operator.name, False)
        if unlikely(unusual):
            adapt(unusual, n_results, results)
        if node is not None:
            node.c.work = size
            if op.n_results > 1 or op.flags & LIST_RESULT:
                node.c.n_outputs = results[0].count if op.flags & LIST_RESULT else _gradients_of(op)
            if op.n_saved and op.saved[op.n_saved - 1].from_result:           # results come last there
                keep_results(node, results)
        if unlikely(out is not None):
            return write_out(operator, results, out)
        if op.n_results == 1 and results[0].kind == ARRAY:
            results[0].kind = NOTHING
            wrapped = _wrap_result(operator, frame, results[0].of.array, node, 0, False)
        else:
            wrapped = wrap_results(operator, frame, results, node)
        if unlikely(state.modes & RESULT_MODES):
            notify_executed(operator, frame, wrapped, node)
        return wrapped
    finally:
        for i in range(n_results):
            if results[i].kind != NOTHING:
                clear(&results[i])
        unbox(frame)


cdef object call_with_integers(Operator operator, Tensor self, int n, const int64_t *integers, array_t *made):
    cdef frame_t frame
    cdef value_t result
    cdef PyObject *arguments[MAX_ARGUMENTS]
    cdef list objects
    cdef int i
    if unlikely(thread_state().modes & CALL_MODES):
        release(made)
        objects = [self, *[integers[i] for i in range(n)]]
        for i in range(n + 1):
            arguments[i] = <PyObject *>objects[i]
        return handle_call(operator, arguments, None, False)
    begin_frame(&frame, self, n)
    for i in range(n):
        frame.values[i + 1].kind = INTEGER
        frame.values[i + 1].of.integer = integers[i]
    if made == NULL:
        return call_boxed(operator, &frame, None, NULL)
    set_array(&result, made)
    return call_boxed(operator, &frame, None, &result)


cdef Tensor _wrap_result(Operator operator, frame_t *frame, array_t *array, NativeNode node, int output_nr,
                         bint several):
    """
    Wrap a result, whose reference it takes over. An array that is an argument's own becomes that argument's Tensor.
    """
    cdef operator_t *op = operator.descriptor
    cdef Tensor tensor, first
    if array.tensor != NULL:
        tensor = known_tensor(array)
        if tensor is not None:
            release(array)
            return tensor
    first = None
    if op.flags & VIEW and op.arguments[0].kind != TENSORS:
        first = <Tensor>frame.objects[0]
    if first is not None and array.storage == first.array.storage:
        tensor = wrap_view(array, first)
        if array.version == NULL:            # of an inference tensor: outside the graph, too
            return tensor
        if several and tensor.base is not None and grad_enabled():
            tensor.view_kind = MULTI_OUTPUT_VIEW
    else:
        tensor = wrap(array)
    if node is not None and is_differentiable(array.dtype):
        tensor.node = node
        tensor.output_nr = output_nr
    return tensor


cdef object wrap_results(Operator operator, frame_t *frame, value_t *results, NativeNode node):
    cdef operator_t *op = operator.descriptor
    cdef array_t *array
    cdef int i
    cdef list tensors
    if op.flags & LIST_RESULT:
        tensors = []
        for i in range(results[0].count):
            array = results[0].of.arrays[i]
            results[0].of.arrays[i] = NULL
            # The kernel returns no array where there is no result: a gradient for a tensor that `cat` skips.
            tensors.append(None if array == NULL else _wrap_result(operator, frame, array, node, i, True))
        return tuple(tensors)
    if op.n_results == 1:
        if results[0].kind != ARRAY:
            return plain_object(&results[0])
        results[0].kind = NOTHING
        return _wrap_result(operator, frame, results[0].of.array, node, 0, False)
    tensors = []
    for i in range(op.n_results):
        if results[i].kind != ARRAY:
            tensors.append(plain_object(&results[i]))
            continue
        results[i].kind = NOTHING
        tensors.append(_wrap_result(operator, frame, results[i].of.array,
                                    node if op.differentiable_results >> i & 1 else None, i, False))
    return result_type(operator)(*tensors)


# ------------------------------------------------------------------------------------------------------------- dispatch

cdef enum:
    SMALL = 2048                # elements up to which an element-wise call keeps the GIL


cdef object call(Operator operator, PyObject **arguments, object out):
    cdef frame_t frame
    if unlikely(thread_state().modes & CALL_MODES):
        return handle_call(operator, arguments, out, False)
    _keep_alive = box(operator, arguments, &frame)
    if unlikely(frame.overridden):
        unbox(&frame)
        return override(operator, arguments, out, False)
    return call_boxed(operator, &frame, out, NULL)


# ----------------------------------------------------------------------------------------------------------- in place

cdef object call_inplace(Operator operator, PyObject **arguments):
    cdef Tensor tensor
    if unlikely(thread_state().modes & CALL_MODES):
        return handle_call(operator, arguments, None, True)
    if not isinstance(<object>arguments[0], Tensor):
        raise TypeError(f"{called_operation(operator.name + '_')}: can only modify a Tensor in place (got "
                        f"{type(<object>arguments[0]).__name__}).")
    tensor = <Tensor>arguments[0]
    # Values, version and history change one after the other, and those of a view's base with them: without a GIL, other
    # in-place operations must wait. (As with it, only until a large kernel releases it.)
    with cython.critical_section(tensor, tensor if tensor.base is None else tensor.base):
        return _change(operator, arguments, tensor)


cdef Tensor _change(Operator operator, PyObject **arguments, Tensor tensor):
    cdef frame_t frame
    cdef value_t[MAX_RESULTS] results
    cdef operator_t *op = operator.descriptor
    cdef str name = operator.name + "_"
    cdef uint32_t needed = 0
    cdef NativeNode node = None
    cdef InplaceStep step = None
    cdef array_t *original = NULL
    cdef array_t *own
    cdef int64_t size
    cdef int i
    _keep_alive = box(operator, arguments, &frame)
    own = frame.values[0].of.array
    for i in range(MAX_RESULTS):
        results[i].kind = NOTHING
    try:
        if frame.overridden:
            return override(operator, arguments, None, True)
        if any_meta and any_is_meta(frame.n, frame.values):
            if not is_meta(own):
                raise NotImplementedError(f"{name}: an argument of device 'meta' has no elements (got one). Allocate "
                                          "it on the CPU first.")
            return tensor
        if tensor.base is not None and tensor.view_kind > DIFFERENTIABLE_VIEW:
            check_inplace(tensor, name, False)       # before reading its history, which can change
        if grad_enabled() and is_differentiable(own.dtype):
            needed = needed_by(op, &frame)
        check_inplace(tensor, name, needed != 0)
        if unlikely(thread_state().modes & RESULT_MODES):
            step = begin_inplace(operator, &frame)
        size = size_of(&frame)
        if needed:
            if not op.compiled:
                operator.compile()
            for i in range(op.n_saved):
                # The operation overwrites the tensor: give the formula a copy of the old value.
                if not op.saved[i].from_result and op.saved[i].index == 0 and op.saved[i].memory_by & needed:
                    original = array_empty_like(own, -1)
                    check(MEMORY_ERROR if original == NULL else copy_into(original, own))
                    frame.values[0].of.array = original
                    if step is not None:
                        step.saved_copy(original)
            node = record(operator, &frame, needed, 1)
            frame.values[0].of.array = own
            node.c.work = size
        if op.flags & ELEMENTWISE:
            _check_cast(operator, &frame, tensor)
            _evaluate_into(operator, &frame, own, size)
        elif op.into != NULL:
            run_kernel(op, op.into, &frame, results, size)
            clear(&results[0])
        else:
            run_kernel(op, op.kernel, &frame, results, size)
            if not same_shape(results[0].of.array, own):
                raise RuntimeError(f"{name}: the result does not match (got shape "
                                   f"{shape_text(results[0].of.array).decode()}, expected {shape_text(own).decode()}).")
            check(copy_into(own, results[0].of.array))
            clear(&results[0])
        bump_version(tensor)
        if node is not None:
            set_array(&results[0], retain(own))
            keep_results(node, results)
            rebase_history(tensor, node)
        if step is not None:
            step.finish(tensor, node)
        return tensor
    finally:
        frame.values[0].of.array = own
        release(original)
        for i in range(MAX_RESULTS):
            clear(&results[i])
        unbox(&frame)


cdef int _check_cast(Operator operator, frame_t *frame, Tensor tensor) except -1:
    cdef int result = result_dtype(expression_of(operator), frame.values)
    if result < 0:
        check(-result)
    if category(result) > category(tensor.array.dtype):
        names = dtype_name(result).decode(), dtype_name(tensor.array.dtype).decode()
        raise RuntimeError(f"{called_operation(operator.name + '_')}: the result type {names[0]} can't be cast to the "
                           f"desired output type {names[1]}. Use the form without underscore.")
    if not operator.descriptor.flags & NO_GRADIENT and is_complex(tensor.array.dtype) and not is_complex(result):
        raise RuntimeError(f"{operator.name}_: in-place {operator.name} is not supported for complex tensors (got a "
                           f"{dtype_name(tensor.array.dtype).decode()} tensor). Use the form without underscore.")
    return 0


cdef int _evaluate_into(Operator operator, frame_t *frame, array_t *own, int64_t size) except -1:
    cdef expression_t *expression = expression_of(operator)
    cdef array_t *result = NULL
    cdef int status
    if size < LARGE:
        status = evaluate(expression, frame.values, 0, own, &result)
    else:
        with nogil:
            status = evaluate(expression, frame.values, 0, own, &result)
    release(result)
    return check_operation(status, operator.name, True) if unlikely(status != OK) else 0


# ---------------------------------------------------------------------------------------------------------- short ways

cdef inline array_t *_small_unary(int primitive, array_t *x) noexcept:
    """Compute one primitive on a small contiguous floating array; NULL in all other cases."""
    cdef entry_t *entry
    cdef array_t *result
    cdef char *pointers[2]
    cdef int64_t steps[2]
    if not x.contiguous or x.size > SMALL or not is_differentiable(x.dtype):
        return NULL
    entry = &entries[primitive][x.dtype]
    if entry.loop == NULL:
        return NULL
    result = array_empty_like(x, entry.out_dtype)
    if result == NULL:
        return NULL
    pointers[0] = x.data
    pointers[1] = result.data
    steps[0] = _itemsize[x.dtype]
    steps[1] = _itemsize[entry.out_dtype]
    entry.loop(pointers, &x.size, steps, entry.data)
    return result


cdef inline array_t *_small_binary(int primitive, array_t *x, array_t *y) noexcept:
    cdef entry_t *entry
    cdef array_t *result
    cdef char *pointers[3]
    cdef int64_t steps[3]
    if (x.dtype != y.dtype or not x.contiguous or not y.contiguous or x.size > SMALL or not is_differentiable(x.dtype)
            or not same_shape(x, y)):
        return NULL
    entry = &entries[primitive][x.dtype]
    if entry.loop == NULL:
        return NULL
    result = array_empty_like(x, entry.out_dtype)
    if result == NULL:
        return NULL
    pointers[0] = x.data
    pointers[1] = y.data
    pointers[2] = result.data
    steps[0] = steps[1] = _itemsize[x.dtype]
    steps[2] = _itemsize[entry.out_dtype]
    entry.loop(pointers, &x.size, steps, entry.data)
    return result


cdef int64_t[<int>DTYPES] _itemsize = [1, 1, 1, 2, 4, 8, 4, 8, 8, 16, 2, 2, 4, 2, 4, 8]


cdef inline int _short_edge(node_t *c, int edge, Tensor tensor) except -1:
    cdef int64_t input_nr
    cdef Node target = gradient_edge(tensor, &input_nr)
    if target is not None:
        set_edge(c, edge, target.c, input_nr)
    return 0


cdef Tensor _short_result(Operator operator, array_t *result, Tensor x, Tensor y):
    """Wrap and record the result of the fast path: no broadcasting, one dtype, so no saved shapes."""
    cdef operator_t *op = operator.descriptor
    cdef thread_state_t *state = thread_state()
    cdef Tensor tensor = wrap(result)
    cdef NativeNode node
    cdef node_t *c
    cdef kept_t *kept
    cdef uint32_t needed = 0
    cdef array_t *source
    cdef value_t special
    cdef int i, edge = 0
    if state.grad_disabled or op.flags & NO_GRADIENT:
        return tensor
    if op.arguments[0].differentiable and needs_gradient(x):
        needed = 1
    if y is not None and op.arguments[1].differentiable and needs_gradient(y):
        needed |= 2
    if not needed:
        return tensor
    if not op.compiled:
        operator.compile()
    node = native_node(operator, op.arguments[0].differentiable + (y is not None and op.arguments[1].differentiable), 1,
                       False)
    c = node.c
    c.needed = needed
    c.work = result.size
    if op.arguments[0].differentiable:
        if needed & 1:
            _short_edge(c, 0, x)
            if result.dtype != x.array.dtype:
                set_meta(c, 0, x.array)
        edge = 1
    if needed & 2:
        _short_edge(c, edge, y)
        if result.dtype != y.array.dtype:
            set_meta(c, edge, y.array)
    for i in range(op.n_saved):
        if op.saved[i].needed_by & needed:
            source = result if op.saved[i].from_result else x.array if op.saved[i].index == 0 else y.array
            kept = &c.saved[i]
            kept.value.kind = ARRAY
            if not op.saved[i].memory_by & needed:
                kept.value.of.array = array_meta(source)
                if kept.value.of.array == NULL:
                    kept.value.kind = NOTHING
                    check(MEMORY_ERROR)
                continue
            if source.version == NULL or state.saved_hooks != NULL:
                kept.value.kind = NOTHING
                set_array(&special, source)
                keep(node, i, &special, False)      # raises, or has it packed
                continue
            kept.value.of.array = retain(source)
            kept.version = atomic_load(&source.version.value)
    tensor.node = node
    return tensor


cdef object unary(Operator operator, object input, object out):
    cdef PyObject *argument = <PyObject *>input
    cdef thread_state_t *state = thread_state()
    cdef array_t *result
    if (operator.descriptor.primitive >= 0 and out is None and is_plain(input)
            and not state.modes & EXCEPT_AUTOCAST
            and not (any_meta and is_meta((<Tensor>input).array))):
        result = _small_unary(operator.descriptor.primitive, (<Tensor>input).array)
        if result != NULL:
            if any_unusual:
                propagate_array_api(result, (<Tensor>input).array)
            return _short_result(operator, result, <Tensor>input, None)
    return call(operator, &argument, out)


cdef object binary(Operator operator, object input, object other, object out):
    cdef PyObject *arguments[2]
    cdef thread_state_t *state = thread_state()
    cdef array_t *result
    if any_unusual and (is_array_api_operand(input) or is_array_api_operand(other)):
        operator = standard_operator(operator, input, other)
        if of_two_dtypes(input, other):
            input, other = promoted(<Tensor>input, <Tensor>other, False)
    if (operator.descriptor.primitive >= 0 and out is None and is_plain(input) and is_plain(other)
            and not state.modes & EXCEPT_AUTOCAST
            and not (any_meta and (is_meta((<Tensor>input).array) or is_meta((<Tensor>other).array)))):
        result = _small_binary(operator.descriptor.primitive, (<Tensor>input).array, (<Tensor>other).array)
        if result != NULL:
            if any_unusual:
                propagate_array_api(result, (<Tensor>input).array)
                propagate_array_api(result, (<Tensor>other).array)
            return _short_result(operator, result, <Tensor>input, <Tensor>other)
    arguments[0] = <PyObject *>input
    arguments[1] = <PyObject *>other
    return call(operator, arguments, out)


# ------------------------------------------------------------------------------------------------------ number protocol

# Tensor's number protocol: ``a + b`` and the other slots, connected to the operators of the table.
#
# The Tensor type is defined below the operators and calls up through `protocol`, a struct of function pointers.

cdef PyObject *_slots[SLOTS]
cdef list _slot_operators = []           # keeps them alive
cdef object _ndarray = np.ndarray
cdef Operator _power = None              # operator for exponents that are Tensors


def check_power(input, exponent):
    """Raise an error for integers to a negative integer power."""
    if (isinstance(input, Tensor) and isinstance(exponent, int) and exponent < 0
            and category((<Tensor>input).array.dtype) < category(FLOAT32)):
        raise RuntimeError("pow: integers to negative integer powers are not supported (got a "
                           f"{describe(<Tensor>input)} and the exponent {exponent}). Convert to a floating point "
                           "dtype first.")


cdef Operator _slot_operator(int slot, object a, object b):
    if slot != SLOT_POW:
        return <Operator>_slots[slot]
    if isinstance(b, Tensor) or isinstance(b, _ndarray):
        return _power
    check_power(a, b)
    return <Operator>_slots[slot]


cdef bint _is_operand(object value, object other, int slot) except -1:
    cdef value_t ignored
    cdef int overflow = 0
    if isinstance(value, Tensor) or PyFloat_Check(value):
        return True
    if PyLong_Check(value):
        PyLong_AsLongLongAndOverflow(value, &overflow)
        if overflow and not _needs_uint64(value, other):
            raise OverflowError(f"{(<Operator>_slots[slot]).name}: an integer does not fit 64 bits (got {value}). Use "
                                "a float.")
        return True
    return box_number(value, &ignored) or isinstance(value, _ndarray) or overrides(value)


cdef bint _needs_uint64(object value, object tensor) except -1:
    """Return whether an integer exceeds int64 but fits the dtype of the tensor operand."""
    return isinstance(tensor, Tensor) and (<Tensor>tensor).array.dtype == UINT64 and value >> 63 == 1


cdef inline object _operand(object value, object other):
    """Return the value, or a tensor of an integer that exceeds int64."""
    cdef int overflow = 0
    if PyLong_Check(value):
        PyLong_AsLongLongAndOverflow(value, &overflow)
        if overflow and _needs_uint64(value, other):
            return tensor_from(np.asarray(value, np.uint64), UINT64, "tensor")
    return value


cdef object _binary_slot(int slot, object a, object b):
    cdef Operator row
    cdef PyObject *arguments[2]
    if not (isinstance(a, Tensor) and isinstance(b, Tensor)):
        if not (_is_operand(a, b, slot) and _is_operand(b, a, slot)):
            return NotImplemented
        if PyLong_Check(a) or PyLong_Check(b):
            a, b = _operand(a, b), _operand(b, a)
    row = _slot_operator(slot, a, b)
    if row.call_kind == CALL_BINARY:
        return binary(row, a, b, None)
    if any_unusual and of_two_dtypes(a, b) and (is_array_api_operand(a) or is_array_api_operand(b)):
        a, b = promoted(<Tensor>a, <Tensor>b, True)
    arguments[0] = <PyObject *>a
    arguments[1] = <PyObject *>b
    return call(row, arguments, None)


cdef object _inplace_slot(int slot, object a, object b):
    cdef Operator row
    cdef PyObject *arguments[2]
    if not _is_operand(b, a, slot):
        return NotImplemented
    if PyLong_Check(b):
        b = _operand(b, a)
    row = _slot_operator(slot, a, b)
    if any_unusual and (is_array_api_operand(a) or is_array_api_operand(b)):
        row = standard_operator(row, a, b)
    arguments[0] = <PyObject *>a
    arguments[1] = <PyObject *>b
    return call_inplace(row, arguments)


cdef object _unary_slot(int slot, object a):
    if slot == SLOT_INVERT and category((<Tensor>a).array.dtype) >= category(FLOAT32):
        raise TypeError(f"~: only integer and bool tensors can be inverted (got a {describe(<Tensor>a)}). Convert "
                        "with to() first.")
    return unary(<Operator>_slots[slot], a, None)


def connect():
    """Set the operators of Tensor's number protocol; called once the table is complete."""
    global _power
    names = {SLOT_ADD: "add", SLOT_SUB: "sub", SLOT_MUL: "mul", SLOT_DIV: "div", SLOT_FLOOR_DIV: "floor_divide",
             SLOT_REMAINDER: "remainder", SLOT_POW: "pow", SLOT_MATMUL: "matmul", SLOT_AND: "bitwise_and",
             SLOT_OR: "bitwise_or", SLOT_XOR: "bitwise_xor", SLOT_LSHIFT: "left_shift",
             SLOT_RSHIFT: "right_shift", SLOT_EQ: "eq", SLOT_NE: "ne", SLOT_LT: "lt", SLOT_LE: "le",
             SLOT_GT: "gt", SLOT_GE: "ge", SLOT_NEG: "neg", SLOT_ABS: "abs", SLOT_INVERT: "bitwise_not"}
    for slot, name in names.items():
        operator = table[name]
        # The slots pass exactly two operands.
        if (<Operator>operator).descriptor.n_arguments > 2:
            raise RuntimeError(f"{name}: has more arguments than the number protocol supports")
        _slot_operators.append(operator)
        _slots[slot] = <PyObject *>operator
    _power = table["pow_tensor"]
    protocol.binary = _binary_slot
    protocol.inplace = _inplace_slot
    protocol.unary = _unary_slot


# ---------------------------------------------------------------------------------------------------------- ufunc calls

# ``__array_ufunc__`` of Tensor. Plain calls run here, for speed; others go to a Python package that is imported on
# first use.

def array_ufunc(Tensor self not None, ufunc, str method not None, *inputs, **options):
    """Compute a NumPy ufunc of Tensors."""
    cdef int dtype = self.array.dtype
    if not options and (dtype == FLOAT64 or dtype == FLOAT32) and method == "__call__":
        if len(inputs) == 1:
            function = (<dict>provided["ufuncs"]).get(ufunc)
            if function is not None:
                return function(self)
        elif (len(inputs) == 2 and isinstance(inputs[0], Tensor) and isinstance(inputs[1], Tensor)
                and (<Tensor>inputs[0]).array.dtype == dtype and (<Tensor>inputs[1]).array.dtype == dtype):
            function = (<dict>provided["ufuncs"]).get(ufunc)
            if function is not None:
                return function(inputs[0], inputs[1])
    return provided["general_ufunc"](self, ufunc, method, inputs, options)
