"""
From a Python call to a recorded operation: boxing, promotion, the kernel, the node.

`call` is the general path. `unary` and `binary` do the same for element-wise operators, with a fast path for the most
frequent case of eager code: small contiguous tensors of one dtype and shape.
"""

cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint32_t
from cygrad._core.arrays.array cimport array_empty_like, array_meta, array_t, release, retain, same_shape, shape_text
from cygrad._core.arrays.dtype cimport DTYPES, category, dtype_name, is_complex, is_differentiable
from cygrad._core.arrays.value cimport ARRAY, NOTHING, clear, set_array, value_t
from cygrad._core.dispatch.execution cimport (
    LARGE, call_boxed, keep, keep_results, needed_by, program_of, record, run_kernel, wants_gradient)
from cygrad._core.dispatch.operation_errors cimport check_operation
from cygrad._core.dispatch.standard_operands cimport (
    is_array_api_operand, of_two_dtypes, promoted, standard_operator)
from cygrad._core.dispatch.work cimport size_of
from cygrad._core.elementwise.elementwise cimport copy_into, entries, entry_t, evaluate, program_t, result_dtype
from cygrad._core.graph.boxing cimport box, frame_t, unbox
from cygrad._core.graph.inplace cimport bump_version, check_inplace, rebase_history
from cygrad._core.graph.meta cimport any_is_meta, any_meta, any_unusual, is_meta
from cygrad._core.graph.mode_stack cimport InplaceStep, begin_inplace, handle_call
from cygrad._core.graph.modes cimport (
    CALL_MODES, EXCEPT_AUTOCAST, RESULT_MODES, grad_enabled, thread_state, thread_state_t)
from cygrad._core.graph.native cimport NativeNode, native_node, set_meta
from cygrad._core.graph.node cimport Node, kept_t, node_t, set_edge
from cygrad._core.graph.override cimport override
from cygrad._core.graph.array_api_marks cimport propagate_array_api
from cygrad._core.graph.tensor cimport DIFFERENTIABLE_VIEW, Tensor, gradient_edge, is_plain, wrap
from cygrad._core.memory.atomic cimport atomic_load
from cygrad._core.memory.errors cimport MEMORY_ERROR, OK, check, unlikely
from cygrad._core.table.operator cimport ELEMENTWISE, MAX_RESULTS, NO_GRADIENT, Operator, operator_t

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
        raise TypeError(f"{operator.name}_: can only modify a Tensor in place (got "
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
                raise NotImplementedError(f"{name}: an argument of device 'meta' has no elements to change others by.")
            return tensor
        if tensor.base is not None and tensor.view_kind > DIFFERENTIABLE_VIEW:
            check_inplace(tensor, name, False)       # before reading its history, which it may have lost
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
                raise RuntimeError(f"{name}: the result does not fit (got shape "
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
    cdef int result = result_dtype(program_of(operator), frame.values)
    if result < 0:
        check(-result)
    if category(result) > category(tensor.array.dtype):
        names = dtype_name(result).decode(), dtype_name(tensor.array.dtype).decode()
        raise RuntimeError(f"{operator.name}_: the result type {names[0]} can't be cast to the desired output type "
                           f"{names[1]}. Use the form without underscore.")
    if not operator.descriptor.flags & NO_GRADIENT and is_complex(tensor.array.dtype) and not is_complex(result):
        raise RuntimeError(f"{operator.name}_: in-place {operator.name} is not supported for complex tensors (got a "
                           f"{dtype_name(tensor.array.dtype).decode()} tensor). Use the form without underscore.")
    return 0


cdef int _evaluate_into(Operator operator, frame_t *frame, array_t *own, int64_t size) except -1:
    cdef program_t *program = program_of(operator)
    cdef array_t *result = NULL
    cdef int status
    if size < LARGE:
        status = evaluate(program, frame.values, 0, own, &result)
    else:
        with nogil:
            status = evaluate(program, frame.values, 0, own, &result)
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
    if op.arguments[0].differentiable and wants_gradient(x):
        needed = 1
    if y is not None and op.arguments[1].differentiable and wants_gradient(y):
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
