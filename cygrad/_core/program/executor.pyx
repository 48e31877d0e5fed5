"""
Executor of programs.

Temporaries are owned; saved values and constants are borrowed; gradients belong to the caller, who says which of them
the program may take. Each value is released after its last use, to the memory cache of the thread, where the next
result finds it.
"""

from libc.math cimport exp, fabs, floor, fmod, hypot, log, pow, sqrt
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.stdio cimport snprintf
from libc.string cimport memcmp, strcmp
from cygrad._core.arrays.array cimport (
    ARRAY, ARRAYS, BOOLEAN, COMPLEX, DTYPE, INTEGER, INTEGERS, MAX_DIMS, NOTHING, REAL, TEXT, array_empty_like,
    array_over, array_t, array_view, as_real, clear, copy_value, find_kernel, is_number, kernel_t, release, retain,
    same_shape, set_array, set_arrays, set_integers, shape_text, value_t,
)
from cygrad._core.arrays.dtype cimport is_complex, itemsize
from cygrad._core.elementwise.elementwise cimport copy_into, evaluate
from cygrad._core.elementwise.expression cimport MAX_INPUTS
from cygrad._core.elementwise.tiles cimport (
    discard, fused_loop_t, fused_operand_t, nan_watchers, run_fused_loop, specialize, specialized_t, watch,
)
from cygrad._core.kernels.reduction.reductions cimport evaluate_summed
from cygrad._core.memory.atomic cimport atomic_increment
from cygrad._core.memory.errors cimport (
    INDEX_ERROR, MEMORY_ERROR, MESSAGE, OK, RUNTIME_ERROR, TYPE_ERROR, VALUE_ERROR, ZERO_DIVISION, message,
)
from cygrad._core.memory.storage cimport forget_place, storage_new, storage_release, storage_t, version_t
from cygrad._core.primitives.primitive_table cimport primitive


# ------------------------------------------------------------------------------------------------------------ execution

cdef kernel_t _sum_to = find_kernel("sum_to")


cdef inline value_t *_at(const values_t *values, int32_t operand) noexcept nogil:
    return &values.spaces[operand_space(operand)][operand_slot(operand)]


cdef inline bint _is_ours(const values_t *values, int32_t operand) noexcept nogil:
    """Return whether the last reader can take over the value."""
    return (operand_space(operand) == TEMPORARY_SPACE
            or operand_space(operand) == GRADS_SPACE and values.takes >> operand_slot(operand) & 1)


cdef inline void _release_dead(const instruction_t *instruction, values_t *values) noexcept nogil:
    cdef value_t *value
    cdef int i
    for i in range(instruction.n_dead):
        if _is_ours(values, instruction.dead[i]):
            value = _at(values, instruction.dead[i])
            if value.kind == ARRAY:
                release(value.of.array)
                value.kind = NOTHING
            else:
                clear(value)


cdef int execute(const program_t *program, values_t *values, int start, int stop, uint32_t reuse,
                 bint frees) noexcept nogil:
    cdef const instruction_t *instruction
    cdef int position = start, status
    while position < stop:
        instruction = &program.instructions[position]
        position += 1
        if instruction.kind == EVALUATE:
            status = _evaluate(program, instruction, values, reuse, _result(instruction, values))
        elif instruction.kind == CALL:
            status = _call(program, instruction, values)
        elif instruction.kind == VIEW:
            _point_view(_at(values, instruction.results[0]).of.array,
                        _at(values, instruction.operands[0]).of.array, instruction.offset)
            continue
        elif instruction.kind == ARRAYS_OF:
            status = _arrays_of(instruction, values, _at(values, instruction.results[0]))
        elif instruction.kind == JUMP:
            position = instruction.which
            continue
        elif instruction.kind == JUMP_UNLESS:
            if not truth(_at(values, instruction.operands[0])):
                position = instruction.which
            status = OK
        elif instruction.kind == JUMP_IF_THERE:
            if _is_there(instruction, values):
                position = instruction.which
            status = OK
        elif instruction.kind == MOVE:
            status = _take(values, instruction.operands[0], instruction.last & 1, _result(instruction, values))
        elif instruction.kind == COPY:
            status = _copy(program, instruction, values)
        elif instruction.kind == FUSED_LOOP:
            status = _run_loop(program, instruction, values)
        elif instruction.kind == ROUTINE:
            status = instruction.routine(instruction.context, values)
        elif instruction.kind == SCALAR:
            status = scalar(instruction.which, _at(values, instruction.operands[0]),
                            _at(values, instruction.operands[1]) if instruction.n_operands > 1 else NULL,
                            _result(instruction, values))
        else:
            status = _small(instruction, values, _result(instruction, values))
        if status != OK:
            return status
        if frees:
            _release_dead(instruction, values)
    return OK


cdef int run_formula(const program_t *program, const value_t *saved, value_t *grads, uint32_t takes,
                     const array_t *meta, value_t *out) noexcept nogil:
    cdef value_t[MAX_TEMPORARIES] temporaries
    cdef values_t values
    cdef int i, status
    out.kind = NOTHING
    values.spaces[SAVED_SPACE] = <value_t *>saved
    values.spaces[GRADS_SPACE] = grads
    values.spaces[TEMPORARY_SPACE] = temporaries
    values.spaces[CONSTANT_SPACE] = program.constants
    values.takes = takes
    values.meta = meta
    if program.n_instructions == 1 and program.instructions.kind == EVALUATE:   # by far the most frequent
        status = _evaluate(program, program.instructions, &values, ALL, out)
        if status == OK:
            _release_dead(program.instructions, &values)
        return status
    for i in range(program.n_temporaries):
        temporaries[i].kind = NOTHING
    status = execute(program, &values, 0, program.n_instructions, ALL, True)
    if status == OK:
        status = _take(&values, program.result, True, out)
    for i in range(program.n_temporaries):
        if temporaries[i].kind != NOTHING:
            clear(&temporaries[i])
    return status


cdef inline value_t *_result(const instruction_t *instruction, values_t *values) noexcept nogil:
    """Return the place of the result; NULL if a target is written instead."""
    return _at(values, instruction.results[0]) if instruction.n_results else NULL


cdef int _take(values_t *values, int32_t operand, bint last, value_t *to) noexcept nogil:
    """Return the value itself on its last use, else a copy that owns its parts."""
    cdef value_t *value = _at(values, operand)
    if last and _is_ours(values, operand):
        to[0] = value[0]
        value.kind = NOTHING
        return OK
    return copy_value(to, value)


cdef bint _is_there(const instruction_t *instruction, values_t *values) noexcept nogil:
    """Return whether another formula has computed the shared value."""
    cdef int i
    for i in range(instruction.n_operands):
        if _at(values, instruction.operands[i]).kind != NOTHING:
            return True
    return False


cdef inline void _point_view(array_t *view, const array_t *base, int64_t offset) noexcept nogil:
    view.data = base.data + offset
    view.storage = <storage_t *>base.storage
    view.version = <version_t *>base.version


cdef int _changed(array_t *target, int status) noexcept nogil:
    """Record that no particular line modified a tensor."""
    if status == OK and target.version != NULL:
        atomic_increment(&target.version.value)
        forget_place(target.version)
    return status


# --------------------------------------------------------------------------------------------------------- instructions

cdef int _evaluate(const program_t *program, const instruction_t *instruction, values_t *values, uint32_t may_reuse,
                   value_t *result) noexcept nogil:
    cdef value_t[MAX_OPERANDS] operands
    cdef array_t *array = NULL
    cdef uint32_t reuse = 0
    cdef int i, status
    for i in range(instruction.n_operands):
        operands[i] = _at(values, instruction.operands[i])[0]
        if operands[i].kind == ARRAY:
            if instruction.last >> i & 1 and _is_ours(values, instruction.operands[i]):
                reuse |= <uint32_t>1 << i
        elif not is_number(&operands[i]):
            return _missing(program, instruction, i)
    reuse &= may_reuse
    if instruction.target != NO_OPERAND:
        array = _at(values, instruction.target).of.array
        status = evaluate(instruction.expression, operands, 0, array, NULL)
        return _changed(array, status) if instruction.which & IN_PLACE else status
    if instruction.which & CONJUGATE and operands[0].kind == ARRAY and not is_complex(operands[0].of.array.dtype):
        set_array(result, retain(operands[0].of.array))        # formulas conjugate regardless of the dtype
        if nan_watchers and not _is_clean(instruction.operands[0]):
            watch().kernels = 1
        return OK
    if nan_watchers:
        watch().plain = program.title != NULL and _is_plain(instruction, operands)
    if instruction.which & FINAL and values.meta != NULL:
        status = evaluate_summed(instruction.expression, operands, reuse, values.meta, &array)
    elif instruction.meta != NULL:
        status = evaluate_summed(instruction.expression, operands, reuse, instruction.meta, &array)
    else:
        status = evaluate(instruction.expression, operands, reuse, NULL, &array)
    if nan_watchers:
        watch().plain = 0
    if status != OK:
        return status
    set_array(result, array)
    if program.layouts == NULL:
        return OK
    if instruction.meta != NULL:
        status = _finish_sum(instruction, program.layouts[operand_slot(instruction.results[0])].array, result)
        if status != OK:
            return status
    return _fit_layout(program, instruction, 0, result)


cdef int _finish_sum(const instruction_t *instruction, const array_t *layout, value_t *result) noexcept nogil:
    """Sum the result if its evaluation did not, and remove dimensions of size 1 that the sum does not keep."""
    cdef value_t[2] operands
    cdef array_t *array = result.of.array
    cdef int status
    if not same_shape(array, instruction.meta):
        set_array(&operands[0], array)
        operands[1].kind, operands[1].count = INTEGERS, instruction.meta.ndim
        operands[1].of.integers = instruction.meta.shape
        result.kind = NOTHING
        status = _sum_to(operands, result)
        release(array)
        if status != OK:
            return status
        array = result.of.array
    if array.ndim != layout.ndim:
        result.of.array = array_view(array, layout.dtype, layout.ndim, layout.shape, layout.strides, 0)
        release(array)
        if result.of.array == NULL:
            result.kind = NOTHING
            return MEMORY_ERROR
    return OK


cdef int _call(const program_t *program, const instruction_t *instruction, values_t *values) noexcept nogil:
    cdef value_t[MAX_OPERANDS] operands
    cdef value_t[MAX_RESULTS] results
    cdef value_t *to
    cdef array_t *target
    cdef int i, status
    for i in range(instruction.n_operands):
        operands[i] = _at(values, instruction.operands[i])[0]
    for i in range(MAX_RESULTS):
        results[i].kind = NOTHING
    status = instruction.kernel(operands, results)
    if nan_watchers and program.title != NULL and not _is_clean_view(instruction, operands, results):
        watch().kernels = 1
    if status != OK:
        return status
    if instruction.target != NO_OPERAND:
        target = _at(values, instruction.target).of.array
        if not instruction.which & INTO:
            status = copy_into(target, results[0].of.array)
        clear(&results[0])
        return _changed(target, status) if instruction.which & IN_PLACE else status
    if instruction.which & UNPACK:
        status = _unpack(program, instruction, values, results)
        clear(&results[0])
        return status
    for i in range(instruction.n_results):
        if instruction.results[i] == NO_OPERAND:
            clear(&results[i])
            continue
        to = _at(values, instruction.results[i])
        if to.kind != NOTHING:        # a shared result of a call that did not compute the needed one
            clear(to)
        to[0] = results[i]
        if program.layouts != NULL and to.kind == ARRAY:
            status = _fit_layout(program, instruction, i, to) or status
    return status


cdef int _unpack(const program_t *program, const instruction_t *instruction, values_t *values,
                 value_t *results) noexcept nogil:
    """Move the arrays of a list to the results."""
    cdef value_t *to
    cdef int i, status = OK
    for i in range(instruction.n_results):
        if instruction.results[i] != NO_OPERAND:
            to = _at(values, instruction.results[i])
            set_array(to, results.of.arrays[i])
            results.of.arrays[i] = NULL
            status = _fit_layout(program, instruction, i, to) or status
    return status


cdef int _copy(const program_t *program, const instruction_t *instruction, values_t *values) noexcept nogil:
    """Copy into the target or a new array; without an operand, its elements are undefined."""
    cdef array_t *to
    if instruction.target != NO_OPERAND:
        to = _at(values, instruction.target).of.array
    else:
        to = _empty_with_layout(program.layouts[operand_slot(instruction.results[0])].array)
        if to == NULL:
            return MEMORY_ERROR
        set_array(_at(values, instruction.results[0]), to)
    return copy_into(to, _at(values, instruction.operands[0]).of.array) if instruction.n_operands else OK


cdef int _run_loop(const program_t *program, const instruction_t *instruction, values_t *values) noexcept nogil:
    cdef const loop_template_t *template = instruction.loop
    cdef const array_t *model = program.layouts[operand_slot(instruction.results[0])].array
    cdef const expression_t *expression
    cdef fused_loop_t loop
    cdef fused_operand_t operands[MAX_FUSED_OPERANDS]
    cdef fused_stage_t stages[MAX_FUSED_OPERANDS]
    cdef value_t[<int>MAX_INPUTS] inputs
    cdef specialized_t *made
    cdef array_t *array
    cdef int64_t step = itemsize(model.dtype)
    cdef int i, k, n_ready = 0, n = instruction.n_operands, status = OK
    loop.size, loop.n_operands, loop.n_stages = model.size, template.n_operands, template.n_stages
    loop.operands, loop.stages = operands, stages
    for i in range(template.n_operands):
        operands[i] = fused_operand_t(NULL, step, 0, model.dtype, False)
    for i in range(n):
        array = _at(values, instruction.operands[i]).of.array
        operands[i].data = array.data
        operands[i].step = 0 if is_one_number(array) else step
    for i in range(instruction.n_results):
        array = array_empty_like(program.layouts[operand_slot(instruction.results[i])].array, -1)
        if array == NULL:
            return MEMORY_ERROR
        set_array(_at(values, instruction.results[i]), array)
        operands[n + i].data, operands[n + i].kept = array.data, True
    for i in range(template.n_stages):
        stages[i] = template.stages[i]
        expression = template.expressions[i]
        for k in range(expression.n_inputs):
            if stages[i].inputs[k] < n:
                inputs[k] = _at(values, instruction.operands[stages[i].inputs[k]])[0]
            else:
                set_array(&inputs[k], <array_t *>model)
        made = specialize(<expression_t *>expression, inputs, &status)
        if made == NULL:
            break
        stages[i].expression = made
        n_ready += 1
    if status == OK:
        status = run_fused_loop(&loop)
    for i in range(n_ready):
        if stages[i].expression.temporary:
            discard(<specialized_t *>stages[i].expression)
    return status


cdef int _small(const instruction_t *instruction, values_t *values, value_t *result) noexcept nogil:
    """Run the instructions on shapes, dtypes and lists."""
    cdef const value_t *first = _at(values, instruction.operands[0]) if instruction.n_operands else NULL
    cdef const value_t *second = _at(values, instruction.operands[1]) if instruction.n_operands > 1 else NULL
    cdef int64_t number
    if instruction.kind == ATTRIBUTE:
        return (_sizes(first, second, result) if instruction.which == SIZES
                else _attribute(instruction.which, first, result))
    if instruction.kind == TUPLE:
        return _tuple(instruction, values, result)
    if instruction.kind == SLICE:
        return _slice(first, second, _at(values, instruction.operands[2]), result)
    if instruction.kind == ITEM:
        return _item(first, second, result)
    # LISTED
    if first.kind != INTEGER and first.kind != BOOLEAN:
        return copy_value(result, first)
    number = first.of.integer
    return set_integers(result, 1, &number)


cdef int _attribute(int which, const value_t *value, value_t *result) noexcept nogil:
    cdef const array_t *array = value.of.array if value.kind == ARRAY else NULL
    cdef int64_t number
    if which == LEN_OF:
        number = value.count
    elif array == NULL:
        if not is_number(value) or which == DTYPE_OF:
            snprintf(message(), MESSAGE, b"formula: an attribute requires a tensor (got kind %d)",
                     <int>value.kind)
            return RUNTIME_ERROR
        # A number is like a 0-dim tensor.
        if which == SHAPE or which == STRIDES:
            return set_integers(result, 0, NULL)
        number = 1 if which == NUMEL else which == IS_COMPLEX and value.kind == COMPLEX
    elif which == SHAPE:
        return set_integers(result, array.ndim, array.shape)
    elif which == STRIDES:
        return set_integers(result, array.ndim, array.strides)
    elif which == DTYPE_OF:
        result.kind = DTYPE
        result.of.integer = array.dtype
        return OK
    elif which == NDIM:
        number = array.ndim
    elif which == NUMEL:
        number = array.size
    elif which == STORAGE_OFFSET:
        # Without a storage, `data` counts from zero: see array_meta.
        number = (array.data - (array.storage.data if array.storage != NULL else NULL)) // itemsize(array.dtype)
    else:
        number = is_complex(array.dtype)
    result.kind = BOOLEAN if which == IS_COMPLEX else INTEGER
    result.of.integer = number
    return OK


cdef int _sizes(const value_t *arrays, const value_t *dim, value_t *result) noexcept nogil:
    """
    Return the sizes of the arrays of a list in a dimension; -1 for those that `cat` skips: of shape (0,), or missing.
    """
    cdef const array_t *array
    cdef int64_t place
    cdef int i, status
    if arrays.kind != ARRAYS or dim.kind != INTEGER:
        snprintf(message(), MESSAGE, b"formula: sizes require a list of tensors")
        return RUNTIME_ERROR
    # Filled below: pointers and sizes have the same width.
    status = set_integers(result, arrays.count, <const int64_t *>arrays.of.arrays)
    if status != OK:
        return status
    for i in range(arrays.count):
        array = arrays.of.arrays[i]
        if array == NULL or array.ndim == 1 and array.shape[0] == 0:
            result.of.integers[i] = -1
            continue
        place = dim.of.integer + array.ndim if dim.of.integer < 0 else dim.of.integer
        if not 0 <= place < array.ndim:
            snprintf(message(), MESSAGE, b"formula: dimension out of range (got %lld for %d dimensions)",
                     <long long>dim.of.integer, <int>array.ndim)
            return INDEX_ERROR
        result.of.integers[i] = array.shape[place]
    return OK


cdef int _tuple(const instruction_t *instruction, values_t *values, value_t *result) noexcept nogil:
    cdef int64_t[MAX_OPERANDS * MAX_DIMS] numbers
    cdef const value_t *part
    cdef int i, k, count = 0
    for i in range(instruction.n_operands):
        part = _at(values, instruction.operands[i])
        if part.kind == INTEGERS and part.count <= MAX_OPERANDS * MAX_DIMS - count:
            for k in range(part.count):
                numbers[count + k] = part.of.integers[k]
            count += part.count
        elif (part.kind == INTEGER or part.kind == BOOLEAN) and count < MAX_OPERANDS * MAX_DIMS:
            numbers[count] = part.of.integer
            count += 1
        else:
            snprintf(message(), MESSAGE,
                     b"formula: a tuple of something else than integers, or a too long one")
            return RUNTIME_ERROR
    return set_integers(result, count, numbers)


cdef inline int64_t _bound(const value_t *value, int64_t default, int64_t count) noexcept nogil:
    cdef int64_t bound = default if value.kind == NOTHING else value.of.integer
    if bound < 0:
        bound += count
    return 0 if bound < 0 else count if bound > count else bound


cdef int _slice(const value_t *value, const value_t *start, const value_t *stop,
                value_t *result) noexcept nogil:
    cdef int64_t begin, end
    if value.kind != INTEGERS:
        snprintf(message(), MESSAGE, b"formula: a slice requires a tuple")
        return RUNTIME_ERROR
    begin = _bound(start, 0, value.count)
    end = _bound(stop, value.count, value.count)
    return set_integers(result, <int>(end - begin) if end > begin else 0, value.of.integers + begin)


cdef int _item(const value_t *value, const value_t *index, value_t *result) noexcept nogil:
    cdef int64_t position = index.of.integer
    if (value.kind != INTEGERS and value.kind != ARRAYS) or index.kind != INTEGER:
        snprintf(message(), MESSAGE, b"formula: an item requires a tuple")
        return RUNTIME_ERROR
    if position < 0:
        position += value.count
    if not 0 <= position < value.count:
        snprintf(message(), MESSAGE, b"formula: index out of range (got %lld for %d values)",
                 <long long>index.of.integer, <int>value.count)
        return INDEX_ERROR
    if value.kind == INTEGERS:
        result.kind = INTEGER
        result.of.integer = value.of.integers[position]
    elif value.of.arrays[position] != NULL:
        set_array(result, retain(value.of.arrays[position]))
    return OK


cdef int _arrays_of(const instruction_t *instruction, values_t *values, value_t *result) noexcept nogil:
    """Make a list; one that belongs to the frame borrows its entries."""
    cdef const value_t *part
    cdef array_t *array
    cdef bint borrows = operand_space(instruction.results[0]) == LIST_SPACE
    cdef int i, status = OK if borrows else set_arrays(result, instruction.n_operands)
    if status != OK:
        return status
    for i in range(instruction.n_operands):
        part = _at(values, instruction.operands[i])
        if part.kind != ARRAY and part.kind != NOTHING:
            snprintf(message(), MESSAGE, b"formula: a list of something else than tensors")
            return RUNTIME_ERROR
        array = part.of.array if part.kind == ARRAY else NULL
        result.of.arrays[i] = array if borrows or array == NULL else retain(array)
    return OK


# --------------------------------------------------------------------------------------------------------- anomaly mode

# Where a nan in a gradient can only have come from the formula that is checked for it.

# Operations of the hardware, whose status flags report a nan.
cdef enum:
    N_PLAIN = 8
cdef int[N_PLAIN] _plain
_plain[:] = [primitive("add"), primitive("sub"), primitive("mul"), primitive("div"), primitive("neg"),
             primitive("conj"), primitive("square"), primitive("reciprocal")]


cdef bint _is_clean(int32_t operand) noexcept nogil:
    """Return whether the operand is a gradient, or computed from one in checked ways."""
    return _is_gradient(operand) or operand_space(operand) in (GRADS_SPACE, TEMPORARY_SPACE) and not watch().kernels


cdef bint _is_gradient(int32_t operand) noexcept nogil:
    """Return whether the operand is an incoming gradient rather than a shared value."""
    return operand_space(operand) == GRADS_SPACE and operand_slot(operand) < WANTED


cdef bint _is_clean_view(const instruction_t *instruction, const value_t *operands,
                         const value_t *result) noexcept nogil:
    """Return whether the call was just a view of a gradient."""
    return (instruction.n_operands > 0 and operands[0].kind == ARRAY and result.kind == ARRAY
            and _is_clean(instruction.operands[0]) and operands[0].of.array.storage == result.of.array.storage)


cdef bint _is_plain(const instruction_t *instruction, const value_t *operands) noexcept nogil:
    """Return whether this is arithmetic on numbers and gradients, so that a nan can only arise in it."""
    cdef const expression_t *expression = instruction.expression
    cdef int i, k
    for i in range(instruction.n_operands):
        if operands[i].kind == ARRAY:
            if not _is_clean(instruction.operands[i]):
                return False
        elif _is_nan(&operands[i]):
            return False
    for i in range(expression.n_constants):
        if _is_nan(&expression.constants[i]):
            return False
    for i in range(expression.n_instructions):
        k = 0
        while k < N_PLAIN and expression.code[i].primitive != _plain[k]:
            k += 1
        if k == N_PLAIN:
            return False
    return True


cdef bint _is_nan(const value_t *number) noexcept nogil:
    if number.kind == REAL:
        return number.of.real != number.of.real
    return number.kind == COMPLEX


cdef int _missing(const program_t *program, const instruction_t *instruction, int i) noexcept nogil:
    """Raise the error for an element-wise operation on None: the formula lacks a check."""
    snprintf(message(), MESSAGE, b"%s: the formula computes with %s that is None. "
             b"Write '... if x is not None else ...' there.", program.title,
             b"a gradient" if _is_gradient(instruction.operands[i]) else b"a value")
    return RUNTIME_ERROR


# -------------------------------------------------------------------------------------------------------------- layouts

# Results of a compiled program have the layouts that they had in the trace.

cdef bint _has_layout(const array_t *array, const array_t *layout) noexcept nogil:
    """Compare dtype, shape and strides."""
    cdef int i
    if array.dtype != layout.dtype or not same_shape(array, layout):
        return False
    for i in range(layout.ndim):
        if array.strides[i] != layout.strides[i] and layout.shape[i] > 1:
            return False
    return True


cdef inline int _fit_layout(const program_t *program, const instruction_t *instruction, int number,
                            value_t *result) noexcept nogil:
    """Give a result its layout: the strides of an expression depend on its operands."""
    cdef const layout_t *layout = &program.layouts[operand_slot(instruction.results[number])]
    cdef const array_t *array = result.of.array
    if (array.contiguous and array.ndim == layout.ndim and array.size == layout.size
            and array.dtype == layout.dtype):
        return OK
    return _copy_to_layout(instruction, result, layout.array)


cdef int _copy_to_layout(const instruction_t *instruction, value_t *result, const array_t *layout) noexcept nogil:
    cdef array_t *array = result.of.array
    cdef int status
    if _has_layout(array, layout):
        return OK
    if array.dtype != layout.dtype or not same_shape(array, layout):
        snprintf(message(), MESSAGE, b"%s: the layout of the result differs from the trace (got shape %s). "
                                     b"Pass fullgraph=False and disable=True for this function.",
                 instruction.name, shape_text(array))
        return RUNTIME_ERROR
    result.of.array = _empty_with_layout(layout)
    if result.of.array == NULL:
        result.of.array = array
        return MEMORY_ERROR
    status = copy_into(result.of.array, array)
    release(array)
    return status


cdef array_t *_empty_with_layout(const array_t *layout) noexcept nogil:
    """Allocate an array with these strides; return NULL and set a message if out of memory."""
    cdef storage_t *storage
    cdef array_t *fresh
    cdef int64_t reach = 1
    cdef int i
    if layout.contiguous:
        return array_empty_like(layout, -1)
    for i in range(layout.ndim):
        reach += (layout.shape[i] - 1) * layout.strides[i]
    storage = storage_new(max(reach, layout.size) * itemsize(layout.dtype))
    if storage == NULL:
        return NULL
    fresh = array_over(storage, layout.dtype, layout.ndim, layout.shape, layout.strides, 0)
    if fresh == NULL:
        storage_release(storage)
    return fresh


cdef array_t *copy_with_layout(array_t *array) noexcept nogil:
    cdef array_t *fresh = _empty_with_layout(array)
    if fresh != NULL and copy_into(fresh, array) != OK:
        release(fresh)
        return NULL
    return fresh


cdef bint is_one_number(const array_t *array) noexcept nogil:
    cdef int i
    for i in range(array.ndim):
        if array.shape[i] > 1 and array.strides[i] != 0:
            return False
    return True


# ----------------------------------------------------------------------------------------- arithmetic on Python numbers

# Without the GIL, for numbers of a program that are not constant.

cdef extern from "<complex.h>" nogil:
    double complex cpow(double complex, double complex)
    double complex cexp(double complex)
    double complex clog(double complex)
    double complex csqrt(double complex)
    double creal(double complex)
    double cimag(double complex)


cdef bint truth(const value_t *value) noexcept nogil:
    if value.kind == REAL:
        return value.of.real != 0
    if value.kind == COMPLEX:
        return value.of.real != 0 or value.imag != 0
    if BOOLEAN <= value.kind <= INTEGER:
        return value.of.integer != 0
    if value.kind == INTEGERS:
        return value.count != 0
    return value.kind != NOTHING


cdef int scalar(int operation, const value_t *a, const value_t *b, value_t *result) noexcept nogil:
    cdef const value_t *other = b if b != NULL else a
    if operation == IS_NONE:
        return _boolean(a.kind == NOTHING, result)
    if operation == NOT:
        return _boolean(not truth(a), result)
    if (operation == EQ or operation == NE) and not (is_number(a) and is_number(other)):
        return _boolean(_same(a, other) == (operation == EQ), result)
    if not is_number(a) or not is_number(other):
        snprintf(message(), MESSAGE, b"formula: arithmetic requires numbers (got kinds %d and %d)",
                 <int>a.kind, <int>other.kind)
        return TYPE_ERROR
    if a.kind == COMPLEX or other.kind == COMPLEX:
        return _complex(operation, a, other, result)
    if a.kind == REAL or other.kind == REAL:
        return _real(operation, as_real(a), as_real(other), result)
    return _integer(operation, a.of.integer, other.of.integer, result)


cdef bint _same(const value_t *a, const value_t *b) noexcept nogil:
    if a.kind != b.kind:
        return False
    if a.kind == INTEGERS:
        return (a.count == b.count
                and memcmp(a.of.integers, b.of.integers, a.count * sizeof(int64_t)) == 0)
    if a.kind == TEXT:
        return strcmp(a.of.text, b.of.text) == 0
    return a.kind == NOTHING or a.kind == DTYPE and a.of.integer == b.of.integer


cdef inline int _boolean(bint truth, value_t *result) noexcept nogil:
    result.kind = BOOLEAN
    result.of.integer = truth
    return OK


cdef inline int _put_real(double number, value_t *result) noexcept nogil:
    result.kind = REAL
    result.of.real = number
    return OK


cdef inline int _put_complex(double complex number, value_t *result) noexcept nogil:
    result.kind = COMPLEX
    result.of.real = creal(number)
    result.imag = cimag(number)
    return OK


cdef int _division_by_zero() noexcept nogil:
    snprintf(message(), MESSAGE, b"formula: division of a number by zero")
    return ZERO_DIVISION


cdef int _unsupported(int operation, const char *kind) noexcept nogil:
    snprintf(message(), MESSAGE, b"formula: operation %d is not defined for %s numbers", operation, kind)
    return TYPE_ERROR


cdef int _integer(int operation, int64_t a, int64_t b, value_t *result) noexcept nogil:
    """Compute on integers and bools. Results that Python makes floats are floats; 64 bits wrap around."""
    cdef int64_t number, base, rest
    if EQ <= operation <= GE:
        return _boolean(a == b if operation == EQ else a != b if operation == NE else a < b if operation == LT
                        else a <= b if operation == LE else a > b if operation == GT else a >= b, result)
    if operation == DIV or operation == SQRT or operation == EXP or operation == LOG \
            or operation == POW and b < 0:
        return _real(operation, <double>a, <double>b, result)
    if operation == ADD:
        number = <int64_t>(<uint64_t>a + <uint64_t>b)
    elif operation == SUB:
        number = <int64_t>(<uint64_t>a - <uint64_t>b)
    elif operation == MUL:
        number = <int64_t>(<uint64_t>a * <uint64_t>b)
    elif operation == FLOOR_DIVIDE or operation == REMAINDER:
        if b == 0:
            return _division_by_zero()
        if b == -1:          # INT64_MIN / -1 would trap
            number = <int64_t>(0 - <uint64_t>a) if operation == FLOOR_DIVIDE else 0
        else:
            rest = a % b
            number = a // b
            if rest != 0 and (rest < 0) != (b < 0):
                rest += b
                number -= 1
            number = number if operation == FLOOR_DIVIDE else rest
    elif operation == POW:
        number, base = 1, a
        while b:
            if b & 1:
                number = <int64_t>(<uint64_t>number * <uint64_t>base)
            base = <int64_t>(<uint64_t>base * <uint64_t>base)
            b >>= 1
    elif operation == NEG:
        number = <int64_t>(0 - <uint64_t>a)
    elif operation == ABS:
        number = <int64_t>(0 - <uint64_t>a) if a < 0 else a
    elif operation == CONJ:
        number = a
    elif operation == MAXIMUM:
        number = a if a > b else b
    elif operation == MINIMUM:
        number = a if a < b else b
    else:
        return _unsupported(operation, b"integer")
    result.kind = INTEGER
    result.of.integer = number
    return OK


cdef int _real(int operation, double a, double b, value_t *result) noexcept nogil:
    cdef double rest
    if EQ <= operation <= GE:
        return _boolean(a == b if operation == EQ else a != b if operation == NE else a < b if operation == LT
                        else a <= b if operation == LE else a > b if operation == GT else a >= b, result)
    if operation == ADD:
        return _put_real(a + b, result)
    if operation == SUB:
        return _put_real(a - b, result)
    if operation == MUL:
        return _put_real(a * b, result)
    if operation == DIV:
        return _put_real(a / b, result) if b != 0 else _division_by_zero()
    if operation == FLOOR_DIVIDE or operation == REMAINDER:
        if b == 0:
            return _division_by_zero()
        rest = fmod(a, b)
        if rest != 0 and (rest < 0) != (b < 0):
            rest += b
        return _put_real(floor((a - rest) / b + 0.5) if operation == FLOOR_DIVIDE else rest, result)
    if operation == POW:
        if a == 0 and b < 0:
            return _division_by_zero()
        if a < 0 and floor(b) != b:          # Python's result is complex
            return _put_complex(cpow(a, b), result)
        return _put_real(pow(a, b), result)
    if operation == NEG:
        return _put_real(-a, result)
    if operation == ABS:
        return _put_real(fabs(a), result)
    if operation == SQRT or operation == LOG:
        if a < 0 or operation == LOG and a == 0:
            snprintf(message(), MESSAGE, b"formula: %s of the number %g",
                     b"sqrt" if operation == SQRT else b"log", a)
            return VALUE_ERROR
        return _put_real(sqrt(a) if operation == SQRT else log(a), result)
    if operation == EXP:
        return _put_real(exp(a), result)
    if operation == CONJ:
        return _put_real(a, result)
    if operation == MAXIMUM:
        return _put_real(b if b > a else a, result)
    if operation == MINIMUM:
        return _put_real(b if b < a else a, result)
    return _unsupported(operation, b"real")


cdef int _complex(int operation, const value_t *left, const value_t *right, value_t *result) noexcept nogil:
    cdef double complex a = as_real(left) + 1j * (left.imag if left.kind == COMPLEX else 0.0)
    cdef double complex b = as_real(right) + 1j * (right.imag if right.kind == COMPLEX else 0.0)
    if operation == EQ or operation == NE:
        return _boolean((creal(a) == creal(b) and cimag(a) == cimag(b)) == (operation == EQ), result)
    if operation == ADD:
        return _put_complex(a + b, result)
    if operation == SUB:
        return _put_complex(a - b, result)
    if operation == MUL:
        return _put_complex(a * b, result)
    if operation == DIV:
        if creal(b) == 0 and cimag(b) == 0:
            return _division_by_zero()
        return _put_complex(a / b, result)
    if operation == POW:
        if creal(a) == 0 and cimag(a) == 0:
            if cimag(b) != 0 or creal(b) < 0:
                return _division_by_zero()
            return _put_complex(1 if creal(b) == 0 else 0, result)
        return _put_complex(cpow(a, b), result)
    if operation == NEG:
        return _put_complex(-a, result)
    if operation == ABS:
        return _put_real(hypot(creal(a), cimag(a)), result)
    if operation == SQRT:
        return _put_complex(csqrt(a), result)
    if operation == EXP:
        return _put_complex(cexp(a), result)
    if operation == LOG:
        return _put_complex(clog(a), result)
    if operation == CONJ:
        return _put_complex(creal(a) - 1j * cimag(a), result)
    return _unsupported(operation, b"complex")
