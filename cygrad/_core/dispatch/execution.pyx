"""
Execution of an operation after its arguments are boxed: the kernel or element-wise program, the node, the results.
"""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint32_t
from cygrad._core.arrays.array cimport array_meta, array_t, release
from cygrad._core.arrays.dtype cimport is_differentiable
from cygrad._core.arrays.value cimport (
    ARRAY, ARRAYS, INTEGER, NOTHING, clear, copy_value, is_number, kernel_t, set_array, set_arrays, value_t,
)
from cygrad._core.dispatch.operation_errors cimport check_operation
from cygrad._core.dispatch.out_argument cimport check_out, result_type, write_out
from cygrad._core.dispatch.work cimport size_of
from cygrad._core.elementwise.elementwise cimport evaluate, program_t
from cygrad._core.graph.boxing cimport begin_frame, frame_t, plain_object, unbox
from cygrad._core.graph.meta cimport any_unusual
from cygrad._core.graph.mode_stack cimport handle_call, tell_executed
from cygrad._core.graph.modes cimport CALL_MODES, RESULT_MODES, grad_enabled, thread_state, thread_state_t
from cygrad._core.graph.native cimport NativeNode, native_node, pack_saved, set_meta, version_of
from cygrad._core.graph.node cimport Node, kept_t, node_t, set_edge
from cygrad._core.graph.saved cimport SavedHooks, saved_hooks
from cygrad._core.graph.array_api_marks cimport WITHOUT_ELEMENTS, adapt, unusual_among
from cygrad._core.graph.tensor cimport MULTI_OUTPUT_VIEW, Tensor, gradient_edge, requires_grad, wrap, wrap_view
from cygrad._core.graph.tensor_identity cimport known_tensor
from cygrad._core.memory.errors cimport MEMORY_ERROR, OK, check, unlikely
from cygrad._core.table.operator cimport (
    ELEMENTWISE, LIST_RESULT, MAX_ARGUMENTS, MAX_RESULTS, NO_GRADIENT, TENSORS, VIEW, Operator, first_edge, operator_t,
    saved_t)
from cygrad._core.table.storage_only cimport run_in_compute_dtypes, run_in_compute_dtypes_inplace


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
                if item is not None and wants_gradient(<Tensor>item):
                    needed |= 1u << i
                    break
        elif (<Tensor>frame.objects[i]).base is None:
            if requires_grad(<Tensor>frame.objects[i]):
                needed |= 1u << i
        elif wants_gradient(<Tensor>frame.objects[i]):
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

cdef program_t *program_of(Operator operator) except NULL:
    if operator.descriptor.program == NULL:
        operator.ensure_program()
    return operator.descriptor.program


cdef int run(Operator operator, frame_t *frame, value_t *results, int64_t size) except -1:
    cdef operator_t *op = operator.descriptor
    cdef program_t *program
    cdef array_t *result = NULL
    cdef int status
    if op.flags & ELEMENTWISE:
        program = program_of(operator)
        if size < LARGE:
            status = evaluate(program, frame.values, 0, NULL, &result)
        else:
            with nogil:
                status = evaluate(program, frame.values, 0, NULL, &result)
        if unlikely(status != OK):
            check_operation(status, operator.name, False)
        set_array(&results[0], result)
        return 0
    return run_kernel(op, op.kernel, frame, results, size)


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
            run(operator, frame, results, size)
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
            tell_executed(operator, frame, wrapped, node)
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
