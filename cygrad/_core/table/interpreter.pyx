"""
Interpreter of lowered formulas: steps on values, without the GIL.

Temporaries are owned; saved values and constants are borrowed; gradients belong to the caller, who says which of them
this formula may take.
"""

from libc.stdint cimport int16_t, int64_t, uint32_t
from libc.stdio cimport snprintf
from cygrad._core.arrays.array cimport MAX_DIMS, array_t, retain
from cygrad._core.arrays.dtype cimport is_complex, itemsize
from cygrad._core.arrays.value cimport (
    ARRAY, ARRAYS, BOOLEAN, COMPLEX, DTYPE, INTEGER, INTEGERS, NOTHING, REAL,
    clear, copy_value, is_number, set_array, set_arrays, set_integers, value_t)
from cygrad._core.elementwise.elementwise cimport evaluate
from cygrad._core.elementwise.nan_watch cimport nan_watchers, watch
from cygrad._core.kernels.reduction.fused_reduction cimport evaluate_summed
from cygrad._core.memory.errors cimport INDEX_ERROR, MESSAGE, OK, RUNTIME_ERROR, message
from cygrad._core.primitives.primitive_table cimport primitive
from cygrad._core.table.scalar cimport scalar, truth

cdef int _conj = primitive("conj")
# Operations of the hardware, whose status flags report a nan.
cdef enum:
    N_PLAIN = 8
cdef int[N_PLAIN] _plain
_plain[:] = [primitive("add"), primitive("sub"), primitive("mul"), primitive("div"), primitive("neg"),
             primitive("conj"), primitive("square"), primitive("reciprocal")]

ctypedef struct spaces_t:
    value_t *spaces[4]
    uint32_t takes
    const array_t *meta


cdef int run(const code_t *code, const value_t *saved, value_t *grads, uint32_t takes, const array_t *meta,
             value_t *out) noexcept nogil:
    cdef value_t[MAX_TEMPORARIES] temporaries
    cdef spaces_t frame
    cdef int i, status
    out.kind = NOTHING
    frame.spaces[SAVED_SPACE] = <value_t *>saved
    frame.spaces[GRADS_SPACE] = grads
    frame.spaces[TEMPORARY_SPACE] = temporaries
    frame.spaces[CONSTANT_SPACE] = code.constants
    frame.takes = takes
    frame.meta = meta
    if code.n_steps == 1 and code.steps.kind == FUSED:       # by far the most frequent: no temporaries
        status = _fused(code, code.steps, &frame, out)
        if status == OK and code.steps.last:
            _release_last(code.steps, &frame)
        return status
    for i in range(code.n_temporaries):
        temporaries[i].kind = NOTHING
    status = _steps(code, &frame)
    if status == OK:
        status = _take(&frame, <int16_t>code.result, True, out)
    for i in range(code.n_temporaries):
        if temporaries[i].kind != NOTHING:
            clear(&temporaries[i])
    return status


cdef inline value_t *_at(spaces_t *frame, int16_t operand) noexcept nogil:
    return &frame.spaces[operand >> 8][operand & 255]


cdef inline bint _ours(spaces_t *frame, int16_t operand) noexcept nogil:
    """May the last reader take the value over?"""
    return (operand >> 8 == TEMPORARY_SPACE
            or operand >> 8 == GRADS_SPACE and frame.takes >> (operand & 255) & 1)


cdef int _take(spaces_t *frame, int16_t operand, bint last, value_t *to) noexcept nogil:
    """Return the value itself on its last use, else a copy that owns its parts."""
    cdef value_t *value = _at(frame, operand)
    if last and _ours(frame, operand):
        to[0] = value[0]
        value.kind = NOTHING
        return OK
    return copy_value(to, value)


cdef int _steps(const code_t *code, spaces_t *frame) noexcept nogil:
    """Run the steps. Values are released after their last use."""
    cdef const code_step_t *step
    cdef value_t *result
    cdef int position = 0, status
    while position < code.n_steps:
        step = &code.steps[position]
        position += 1
        result = _at(frame, <int16_t>step.out)
        if step.kind == FUSED:
            status = _fused(code, step, frame, result)
        elif step.kind == CALL:
            status = _call(code, step, frame, result)
        elif step.kind == JUMP:
            position = step.which
            continue
        elif step.kind == JUMP_UNLESS:
            if not truth(_at(frame, step.inputs[0])):
                position = step.which
            status = OK
        elif step.kind == JUMP_IF_THERE:
            if _is_there(step, frame):
                position = step.which
            status = OK
        elif step.kind == MOVE:
            status = _take(frame, step.inputs[0], step.last & 1, result)
        else:
            status = _small(step, frame, result)
        if status != OK:
            return status
        if step.last:
            _release_last(step, frame)
    return OK


cdef bint _is_there(const code_step_t *step, spaces_t *frame) noexcept nogil:
    """Has another formula computed what this one shares with it?"""
    cdef int i
    for i in range(step.n_inputs):
        if _at(frame, step.inputs[i]).kind != NOTHING:
            return True
    return False


cdef void _release_last(const code_step_t *step, spaces_t *frame) noexcept nogil:
    """Release values whose last use is this step."""
    cdef int i
    for i in range(step.n_inputs):
        if step.last >> i & 1 and _ours(frame, step.inputs[i]):
            clear(_at(frame, step.inputs[i]))


cdef int _fused(const code_t *code, const code_step_t *step, spaces_t *frame, value_t *result) noexcept nogil:
    cdef value_t[MAX_STEP_INPUTS] inputs
    cdef array_t *array = NULL
    cdef uint32_t reuse = 0
    cdef int i, status
    for i in range(step.n_inputs):
        inputs[i] = _at(frame, step.inputs[i])[0]
        if inputs[i].kind == ARRAY:
            if step.last >> i & 1 and _ours(frame, step.inputs[i]):
                reuse |= <uint32_t>1 << i
        elif not is_number(&inputs[i]):
            return _missing(code, step, i)
    if (step.program.n_instructions == 1 and step.program.code[0].primitive == _conj and inputs[0].kind == ARRAY
            and not is_complex(inputs[0].of.array.dtype)):
        set_array(result, retain(inputs[0].of.array))        # formulas conjugate regardless of the dtype
        if nan_watchers and not _is_clean(step.inputs[0]):
            watch().kernels = 1
        return OK
    if nan_watchers:
        watch().plain = _is_plain(step, inputs)
    if step.which and frame.meta != NULL:
        status = evaluate_summed(step.program, inputs, reuse, frame.meta, &array)
    else:
        status = evaluate(step.program, inputs, reuse, NULL, &array)
    if nan_watchers:
        watch().plain = 0
    if status == OK:
        set_array(result, array)
    return status


cdef bint _is_clean(int16_t operand) noexcept nogil:
    """Is the operand a gradient, or computed from one in checked ways?"""
    return _is_gradient(operand) or operand >> 8 in (GRADS_SPACE, TEMPORARY_SPACE) and not watch().kernels


cdef bint _is_gradient(int16_t operand) noexcept nogil:
    """Is the operand an incoming gradient rather than a shared value?"""
    return operand >> 8 == GRADS_SPACE and operand & 255 < WANTED


cdef bint _is_clean_view(const code_step_t *step, const value_t *inputs, const value_t *result) noexcept nogil:
    """Was the call just a view of a gradient?"""
    return (step.n_inputs > 0 and inputs[0].kind == ARRAY and result.kind == ARRAY and _is_clean(step.inputs[0])
            and inputs[0].of.array.storage == result.of.array.storage)


cdef bint _is_plain(const code_step_t *step, const value_t *inputs) noexcept nogil:
    """Is this arithmetic on numbers and gradients, so that a nan can only arise in it?"""
    cdef const program_t *program = step.program
    cdef int i, k
    for i in range(step.n_inputs):
        if inputs[i].kind == ARRAY:
            if not _is_clean(step.inputs[i]):
                return False
        elif _is_nan(&inputs[i]):
            return False
    for i in range(program.n_constants):
        if _is_nan(&program.constants[i]):
            return False
    for i in range(program.n_instructions):
        k = 0
        while k < N_PLAIN and program.code[i].primitive != _plain[k]:
            k += 1
        if k == N_PLAIN:
            return False
    return True


cdef bint _is_nan(const value_t *number) noexcept nogil:
    if number.kind == REAL:
        return number.of.real != number.of.real
    return number.kind == COMPLEX


cdef int _missing(const code_t *code, const code_step_t *step, int i) noexcept nogil:
    """Raise the error for an element-wise operation on None: the formula lacks a check."""
    snprintf(message(), MESSAGE, b"%s: the formula computes with %s that is None. "
             b"Write '... if x is not None else ...' there.", code.title,
             b"a gradient" if _is_gradient(step.inputs[i]) else b"a value")
    return RUNTIME_ERROR


cdef int _call(const code_t *code, const code_step_t *step, spaces_t *frame, value_t *results) noexcept nogil:
    cdef value_t[MAX_STEP_INPUTS] inputs
    cdef int i, status
    for i in range(step.n_inputs):
        inputs[i] = _at(frame, step.inputs[i])[0]
    if step.out >> 8 == GRADS_SPACE:
        for i in range(step.n_out):        # other results of a call that returned none for what is needed now
            clear(&results[i])
    status = step.kernel(inputs, results)
    if nan_watchers and not _is_clean_view(step, inputs, results):
        watch().kernels = 1
    return status


cdef int _small(const code_step_t *step, spaces_t *frame, value_t *result) noexcept nogil:
    """Run the steps that compute no arrays."""
    cdef const value_t *first = _at(frame, step.inputs[0]) if step.n_inputs else NULL
    cdef const value_t *second = _at(frame, step.inputs[1]) if step.n_inputs > 1 else NULL
    cdef int64_t number
    if step.kind == SCALAR:
        return scalar(step.which, first, second, result)
    if step.kind == ATTRIBUTE and step.which == SIZES:
        return _sizes(first, second, result)
    if step.kind == ATTRIBUTE:
        return _attribute(step.which, first, result)
    if step.kind == TUPLE:
        return _tuple(step, frame, result)
    if step.kind == SLICE:
        return _slice(first, second, _at(frame, step.inputs[2]), result)
    if step.kind == ITEM:
        return _item(first, second, result)
    if step.kind == ARRAYS_OF:
        return _arrays_of(step, frame, result)
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
            snprintf(message(), MESSAGE, b"formula: an attribute of something that is no tensor (kind %d)",
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
        snprintf(message(), MESSAGE, b"formula: sizes of something that is no list of tensors")
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


cdef int _tuple(const code_step_t *step, spaces_t *frame, value_t *result) noexcept nogil:
    cdef int64_t[MAX_STEP_INPUTS * MAX_DIMS] numbers
    cdef const value_t *part
    cdef int i, k, count = 0
    for i in range(step.n_inputs):
        part = _at(frame, step.inputs[i])
        if part.kind == INTEGERS and part.count <= MAX_STEP_INPUTS * MAX_DIMS - count:
            for k in range(part.count):
                numbers[count + k] = part.of.integers[k]
            count += part.count
        elif (part.kind == INTEGER or part.kind == BOOLEAN) and count < MAX_STEP_INPUTS * MAX_DIMS:
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
        snprintf(message(), MESSAGE, b"formula: a slice of something that is no tuple")
        return RUNTIME_ERROR
    begin = _bound(start, 0, value.count)
    end = _bound(stop, value.count, value.count)
    return set_integers(result, <int>(end - begin) if end > begin else 0, value.of.integers + begin)


cdef int _item(const value_t *value, const value_t *index, value_t *result) noexcept nogil:
    cdef int64_t position = index.of.integer
    if (value.kind != INTEGERS and value.kind != ARRAYS) or index.kind != INTEGER:
        snprintf(message(), MESSAGE, b"formula: an item of something that is no tuple")
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


cdef int _arrays_of(const code_step_t *step, spaces_t *frame, value_t *result) noexcept nogil:
    cdef const value_t *part
    cdef int i, status = set_arrays(result, step.n_inputs)
    if status != OK:
        return status
    for i in range(step.n_inputs):
        part = _at(frame, step.inputs[i])
        if part.kind == ARRAY:
            result.of.arrays[i] = retain(part.of.array)
        elif part.kind != NOTHING:
            snprintf(message(), MESSAGE, b"formula: a list of something else than tensors")
            return RUNTIME_ERROR
    return OK
