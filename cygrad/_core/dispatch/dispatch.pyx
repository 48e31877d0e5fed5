"""
From a Python call to a recorded operation: boxing, promotion, the kernel, the node.

`call` is the general way. `unary` and `binary` are the same steps for element-wise operators, with a short cut for
what eager code does most: small contiguous tensors of one dtype and shape.
"""

cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint32_t
from cygrad._core.arrays.array cimport array_empty_like, array_meta, array_t, release, retain, same_shape, shape_text
from cygrad._core.arrays.dtype cimport DTYPES, category, dtype_name, is_differentiable
from cygrad._core.arrays.value cimport (
    ARRAY, ARRAYS, NOTHING, clear, copy_value, kernel_t, set_array, set_arrays, value_t,
)
from cygrad._core.dispatch.autocast cimport AUTOCASTING, AUTOCASTS, call_autocast
from cygrad._core.dispatch.out_argument cimport check_out, result_type, write_out
from cygrad._core.dispatch.tangents cimport InplaceStep, inplace_step, push_forward
from cygrad._core.dispatch.work cimport size_of
from cygrad._core.elementwise.elementwise cimport copy_into, entries, entry_t, evaluate, program_t, result_dtype
from cygrad._core.graph.boxing cimport box, frame_t, plain_object, unbox
from cygrad._core.graph.inplace cimport bump_version, check_inplace, rebase_history
from cygrad._core.graph.meta cimport any_is_meta, any_meta, forget_elements, is_meta
from cygrad._core.graph.modes cimport grad_enabled, thread_state, thread_state_t
from cygrad._core.graph.native cimport NativeNode, native_node, pack_saved, set_meta, version_of
from cygrad._core.graph.node cimport Node, kept_t, node_t, set_edge
from cygrad._core.graph.override cimport is_plain, override
from cygrad._core.graph.profiling cimport (
    GIVEN, PROFILED, begin_event, end_event, fill_given, intercept, profiled, take_given,
)
from cygrad._core.graph.saved cimport SavedHooks, saved_hooks
from cygrad._core.graph.tensor cimport (
    DIFFERENTIABLE_VIEW, MULTI_OUTPUT_VIEW, Tensor, grad_fn_of, gradient_edge, requires_grad, wrap, wrap_view,
)
from cygrad._core.graph.tensor_identity cimport known_tensor
from cygrad._core.graph.view_requirement cimport takes_part
from cygrad._core.memory.atomic cimport atomic_load
from cygrad._core.memory.errors cimport MEMORY_ERROR, check
from cygrad._core.table.operator cimport (
    ELEMENTWISE, LIST_RESULT, MAX_RESULTS, NO_GRADIENT, TENSORS, VIEW, Operator, operator_t)
from cygrad._core.table.stored cimport run_computed, run_computed_into

cdef enum:
    SMALL = 2048                # elements up to which an element-wise call keeps the GIL
    LARGE = 16384               # elements from which any kernel runs without it


# --------------------------------------------------------------------------------------------------------- recording

cdef inline bint _wants_gradient(Tensor tensor) except -1:
    if tensor.base is not None:        # it may have another history now, by an in-place change of its base
        grad_fn_of(tensor)
        return takes_part(tensor)
    return requires_grad(tensor)


cdef uint32_t _needed(const operator_t *op, frame_t *frame) except? 0xffffffff:
    """Bit i: argument i has a derivative formula and requires grad."""
    cdef int i
    cdef uint32_t needed = 0
    for i in range(op.n_arguments):
        if not op.arguments[i].differentiable or frame.objects[i] == NULL:
            continue
        if op.arguments[i].kind == TENSORS:
            for item in <list>frame.objects[i]:
                if item is not None and _wants_gradient(<Tensor>item):
                    needed |= 1u << i
                    break
        elif _wants_gradient(<Tensor>frame.objects[i]):
            needed |= 1u << i
    return needed


cdef int _keep_metas(kept_t *kept, const value_t *value) except -1:
    """Save shapes and dtypes, and nothing of the memory."""
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


cdef int _keep(NativeNode node, int position, const value_t *value, bint meta) except -1:
    """Save one value for backward."""
    cdef kept_t *kept = &node.c.saved[position]
    cdef SavedHooks hooks
    cdef int i
    if meta and (value.kind == ARRAY or value.kind == ARRAYS):
        return _keep_metas(kept, value)
    if value.kind == ARRAY:
        if value.of.array.version == NULL:
            raise RuntimeError(f"{node.c.op.name.decode()}: an inference tensor cannot be saved for backward (got one "
                               f"as '{node.c.op.saved[position].name.decode()}'). Make a normal one with clone().")
    elif value.kind == ARRAYS:
        for i in range(value.count):
            if value.of.arrays[i] != NULL and value.of.arrays[i].version == NULL:
                raise RuntimeError(f"{node.c.op.name.decode()}: an inference tensor cannot be saved for backward (got "
                                   f"one in '{node.c.op.saved[position].name.decode()}'). Make a normal one with "
                                   "clone().")
    if thread_state().saved_hooks != NULL and (value.kind == ARRAY or value.kind == ARRAYS):
        hooks = saved_hooks()
        return pack_saved(node, position, value, False, hooks.pack, hooks.unpack)
    kept.version = version_of(value)
    return check(copy_value(&kept.value, value))


cdef NativeNode _record(Operator operator, frame_t *frame, uint32_t needed, int n_outputs):
    """A node with its edges and what it saves of the arguments; results are saved by `_keep_results`."""
    cdef operator_t *op = &operator.descriptor
    cdef int i, edge = 0, n_edges = 0
    cdef NativeNode node
    if not op.compiled:
        operator.compile()
    for i in range(op.n_arguments):
        if op.arguments[i].differentiable:
            n_edges += len(<list>frame.objects[i]) if op.arguments[i].kind == TENSORS else 1
    node = native_node(operator, n_edges, n_outputs)
    node.c.needed = needed
    for i in range(op.n_arguments):
        if not op.arguments[i].differentiable:
            continue
        if op.arguments[i].kind == TENSORS:
            for item in <list>frame.objects[i]:
                if item is not None:
                    _connect(node, edge, <Tensor>item)
                edge += 1
        else:
            if frame.objects[i] != NULL:
                _connect(node, edge, <Tensor>frame.objects[i])
            edge += 1
    for i in range(op.n_saved):
        if op.saved[i].needed_by & needed and not op.saved[i].from_result:
            _keep(node, i, &frame.values[op.saved[i].index], not op.saved[i].memory_by & needed)
    return node


cdef int _connect(NativeNode node, int edge, Tensor tensor) except -1:
    cdef int64_t input_nr
    cdef Node target = gradient_edge(tensor, &input_nr)
    if target is not None:
        set_edge(node.c, edge, target.c, input_nr)
        set_meta(node.c, edge, tensor.array)
    return 0


cdef int _keep_results(NativeNode node, value_t *results) except -1:
    cdef const operator_t *op = node.c.op
    cdef int i
    for i in range(op.n_saved):
        if op.saved[i].from_result and op.saved[i].needed_by & node.c.needed:
            _keep(node, i, &results[op.saved[i].index], not op.saved[i].memory_by & node.c.needed)
    return 0


# ------------------------------------------------------------------------------------------------------ the general way

cdef inline program_t *_program(Operator operator) except NULL:
    if operator.descriptor.program == NULL:
        operator.ensure_program()
    return operator.descriptor.program


cdef int _run(Operator operator, frame_t *frame, value_t *results, int64_t size) except -1:
    cdef operator_t *op = &operator.descriptor
    cdef program_t *program
    cdef array_t *result = NULL
    cdef int status
    if op.flags & ELEMENTWISE:
        program = _program(operator)
        if size < LARGE:
            status = evaluate(program, frame.values, 0, NULL, &result)
        else:
            with nogil:
                status = evaluate(program, frame.values, 0, NULL, &result)
        check(status)
        set_array(&results[0], result)
        return 0
    return _run_kernel(op, op.kernel, frame, results, size)


cdef inline int _run_kernel(operator_t *op, kernel_t kernel, frame_t *frame, value_t *results, int64_t size) except -1:
    cdef int status
    if frame.stored:
        with nogil:
            if kernel == op.into:
                status = run_computed_into(op, kernel, frame.values, results)
            else:
                status = run_computed(op, kernel, frame.values, results)
    elif size < LARGE:
        status = kernel(frame.values, results)
    else:
        with nogil:
            status = kernel(frame.values, results)
    return check(status)


cdef object _watched(Operator operator, PyObject **arguments, object out, bint inplace):
    """An operation of a thread that is profiled."""
    values = [<object>arguments[i] for i in range(operator.descriptor.n_arguments)]
    taken = intercept(operator, values, out, inplace)
    if taken is not None:
        return taken[0]
    event = begin_event(operator.name + "_" if inplace else operator.name, "operator", values)
    thread_state().anomaly &= ~PROFILED
    try:
        return call_inplace(operator, arguments) if inplace else call(operator, arguments, out)
    finally:
        thread_state().anomaly |= PROFILED
        end_event(event)


cdef object call(Operator operator, PyObject **arguments, object out):
    cdef frame_t frame
    cdef value_t[MAX_RESULTS] results
    cdef operator_t *op = &operator.descriptor
    cdef thread_state_t *state = thread_state()
    cdef uint32_t needed = 0
    cdef int64_t size
    cdef NativeNode node = None
    cdef tuple given = None
    cdef bint without_memory
    cdef int i
    if state.anomaly & (PROFILED | AUTOCASTING | GIVEN):
        if state.anomaly & PROFILED:
            return _watched(operator, arguments, out, False)
        if state.anomaly & AUTOCASTING and op.flags & AUTOCASTS and out is None:
            return call_autocast(operator, arguments)
        given = take_given(operator.name)
    _keep_alive = box(operator, arguments, &frame)
    for i in range(MAX_RESULTS):
        results[i].kind = NOTHING
    try:
        if frame.overridden:
            return override(operator, arguments, out, False)
        without_memory = any_meta and any_is_meta(frame.n, frame.values)
        if not state.grad_disabled and not op.flags & NO_GRADIENT and not without_memory:
            needed = _needed(op, &frame)
        if out is not None:
            check_out(operator, &frame, out, needed)
        size = size_of(&frame)
        if needed:
            node = _record(operator, &frame, needed, 1)
        if given is None:
            _run(operator, &frame, results, size)
        else:
            fill_given(given, op, results)
        if without_memory:
            forget_elements(MAX_RESULTS, results)
        if node is not None:
            node.c.work = size
            node.c.n_outputs = results[0].count if op.flags & LIST_RESULT else op.n_results
            _keep_results(node, results)
        if out is not None:
            return write_out(operator, results, out)
        wrapped = _wrap_results(operator, &frame, results, node)
        if state.dual_level:
            push_forward(operator, &frame, wrapped, node)
        return wrapped
    finally:
        for i in range(MAX_RESULTS):
            clear(&results[i])
        unbox(&frame)


cdef Tensor _wrap_result(Operator operator, frame_t *frame, array_t *array, NativeNode node, int output_nr,
                         bint several):
    """Takes `array` over. A result that is an argument's own array is that argument's Tensor."""
    cdef operator_t *op = &operator.descriptor
    cdef Tensor tensor, first
    if array.tensor != NULL:
        tensor = known_tensor(array)
        if tensor is not None:
            release(array)
            return tensor
    first = <Tensor>frame.objects[0] if op.flags & VIEW and op.arguments[0].kind != TENSORS else None
    if first is not None and array.storage == first.array.storage:
        tensor = wrap_view(array, first)
        if array.version == NULL:            # of an inference tensor: outside the graph as that is
            return tensor
        if several and tensor.base is not None and grad_enabled():
            tensor.view_kind = MULTI_OUTPUT_VIEW
    else:
        tensor = wrap(array)
    if node is not None and is_differentiable(array.dtype):
        tensor.node = node
        tensor.output_nr = output_nr
    return tensor


cdef object _wrap_results(Operator operator, frame_t *frame, value_t *results, NativeNode node):
    cdef operator_t *op = &operator.descriptor
    cdef array_t *array
    cdef int i
    cdef list tensors
    if op.flags & LIST_RESULT:
        tensors = []
        for i in range(results[0].count):
            array = results[0].of.arrays[i]
            results[0].of.arrays[i] = NULL
            # The kernel gives no array where there is nothing to give: a gradient for a tensor that `cat` skips.
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


# ----------------------------------------------------------------------------------------------------------- in place

cdef object call_inplace(Operator operator, PyObject **arguments):
    cdef Tensor tensor
    if profiled():
        return _watched(operator, arguments, None, True)
    if not isinstance(<object>arguments[0], Tensor):
        raise TypeError(f"{operator.name}_: can only change a Tensor in place (got "
                        f"{type(<object>arguments[0]).__name__}).")
    tensor = <Tensor>arguments[0]
    # Values, version and history change one after the other, and those of a view's base with them: without a GIL,
    # another operation in place has to wait. (As with it, only until a large kernel lets others run.)
    with cython.critical_section(tensor, tensor if tensor.base is None else tensor.base):
        return _change(operator, arguments, tensor)


cdef Tensor _change(Operator operator, PyObject **arguments, Tensor tensor):
    cdef frame_t frame
    cdef value_t[MAX_RESULTS] results
    cdef operator_t *op = &operator.descriptor
    cdef str name = operator.name + "_"
    cdef uint32_t needed = 0
    cdef NativeNode node = None
    cdef InplaceStep step = None
    cdef array_t *original = NULL
    cdef array_t *own
    cdef int64_t size
    cdef int i, status
    _keep_alive = box(operator, arguments, &frame)
    own = frame.values[0].of.array
    for i in range(MAX_RESULTS):
        results[i].kind = NOTHING
    try:
        if frame.overridden:
            return override(operator, arguments, None, True)
        if is_meta(own):
            return tensor
        if tensor.base is not None and tensor.view_kind > DIFFERENTIABLE_VIEW:
            check_inplace(tensor, name, False)       # before its history is asked for, which it may have lost
        if grad_enabled() and is_differentiable(own.dtype):
            needed = _needed(op, &frame)
        check_inplace(tensor, name, needed != 0)
        if thread_state().dual_level:
            step = inplace_step(operator, &frame, _out_of_place)
        size = size_of(&frame)
        if needed:
            if not op.compiled:
                operator.compile()
            for i in range(op.n_saved):
                # The old value of the tensor is about to go: the formula gets a copy of it.
                if not op.saved[i].from_result and op.saved[i].index == 0 and op.saved[i].memory_by & needed:
                    original = array_empty_like(own, -1)
                    if original == NULL:
                        check(MEMORY_ERROR)
                    check(copy_into(original, own))
                    frame.values[0].of.array = original
            node = _record(operator, &frame, needed, 1)
            frame.values[0].of.array = own
            node.c.work = size
        if op.flags & ELEMENTWISE:
            _check_cast(operator, &frame, tensor)
            status = _evaluate_into(operator, &frame, own, size)
            check(status)
        elif op.into != NULL:
            _run_kernel(op, op.into, &frame, results, size)
            clear(&results[0])
        else:
            _run_kernel(op, op.kernel, &frame, results, size)
            if not same_shape(results[0].of.array, own):
                raise RuntimeError(f"{name}: the result does not fit (got shape "
                                   f"{shape_text(results[0].of.array).decode()}, expected {shape_text(own).decode()}).")
            check(copy_into(own, results[0].of.array))
            clear(&results[0])
        bump_version(tensor)
        if node is not None:
            set_array(&results[0], retain(own))
            _keep_results(node, results)
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


cdef object _out_of_place(Operator operator, frame_t *frame):
    """What an operation in place will give, without history."""
    cdef value_t[MAX_RESULTS] results
    cdef int i
    for i in range(MAX_RESULTS):
        results[i].kind = NOTHING
    try:
        _run(operator, frame, results, size_of(frame))
        return _wrap_results(operator, frame, results, None)
    finally:
        for i in range(MAX_RESULTS):
            clear(&results[i])


cdef int _check_cast(Operator operator, frame_t *frame, Tensor tensor) except -1:
    cdef int result = result_dtype(_program(operator), frame.values)
    if result < 0:
        check(-result)
    if category(result) > category(tensor.array.dtype):
        raise RuntimeError(f"{operator.name}_: the result cannot be written in place (got a result of "
                           f"{dtype_name(result).decode()}, expected one that fits "
                           f"{dtype_name(tensor.array.dtype).decode()}). Use the form without underscore.")
    return 0


cdef int _evaluate_into(Operator operator, frame_t *frame, array_t *own, int64_t size) except -1:
    cdef program_t *program = _program(operator)
    cdef array_t *result = NULL
    cdef int status
    if size < LARGE:
        status = evaluate(program, frame.values, 0, own, &result)
    else:
        with nogil:
            status = evaluate(program, frame.values, 0, own, &result)
    release(result)
    return check(status)


# ---------------------------------------------------------------------------------------------------------- short ways

cdef inline array_t *_small_unary(const program_t *program, array_t *x) noexcept:
    """The result of one primitive on a small contiguous floating array; NULL if this is another case."""
    cdef entry_t *entry
    cdef array_t *result
    cdef char *pointers[2]
    cdef int64_t steps[2]
    if not x.contiguous or x.size > SMALL or program.n_instructions != 1 or not is_differentiable(x.dtype):
        return NULL
    entry = &entries[program.code[0].primitive][x.dtype]
    if entry.loop == NULL or program.n_constants or program.n_inputs != 1:
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


cdef inline array_t *_small_binary(const program_t *program, array_t *x, array_t *y) noexcept:
    cdef entry_t *entry
    cdef array_t *result
    cdef char *pointers[3]
    cdef int64_t steps[3]
    if (x.dtype != y.dtype or not x.contiguous or not y.contiguous or x.size > SMALL or not is_differentiable(x.dtype)
            or program.n_instructions != 1 or program.n_constants or program.n_inputs != 2
            or program.code[0].inputs[0] != 0 or program.code[0].inputs[1] != 1 or not same_shape(x, y)):
        return NULL
    entry = &entries[program.code[0].primitive][x.dtype]
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
    """Wrap and record the result of a short way: no broadcasting, one dtype, so no metas."""
    cdef operator_t *op = &operator.descriptor
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
    if op.arguments[0].differentiable and _wants_gradient(x):
        needed = 1
    if y is not None and op.arguments[1].differentiable and _wants_gradient(y):
        needed |= 2
    if not needed:
        return tensor
    if not op.compiled:
        operator.compile()
    node = native_node(operator, op.arguments[0].differentiable + (y is not None and op.arguments[1].differentiable), 1)
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
                _keep(node, i, &special, False)      # raises, or has it packed
                continue
            kept.value.of.array = retain(source)
            kept.version = atomic_load(&source.version.value)
    tensor.node = node
    return tensor


cdef object unary(Operator operator, object input, object out):
    cdef PyObject *argument = <PyObject *>input
    cdef thread_state_t *state = thread_state()
    cdef array_t *result
    if (out is None and is_plain(input) and not state.dual_level and not state.anomaly & (PROFILED | GIVEN)
            and not is_meta((<Tensor>input).array)):
        result = _small_unary(_program(operator), (<Tensor>input).array)
        if result != NULL:
            return _short_result(operator, result, <Tensor>input, None)
    return call(operator, &argument, out)


cdef object binary(Operator operator, object input, object other, object out):
    cdef PyObject *arguments[2]
    cdef thread_state_t *state = thread_state()
    cdef array_t *result
    if (out is None and is_plain(input) and is_plain(other) and not state.dual_level
            and not state.anomaly & (PROFILED | GIVEN)
            and not is_meta((<Tensor>input).array) and not is_meta((<Tensor>other).array)):
        result = _small_binary(_program(operator), (<Tensor>input).array, (<Tensor>other).array)
        if result != NULL:
            return _short_result(operator, result, <Tensor>input, <Tensor>other)
    arguments[0] = <PyObject *>input
    arguments[1] = <PyObject *>other
    return call(operator, arguments, out)
