"""
Interpreter of lowered formulas: steps on values, without the GIL.

Temporaries are owned; saved values and constants are borrowed; gradients belong to the caller, who says which of them
this formula may take.
"""

from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_FromStringAndSize
from cpython.bytes cimport PyBytes_AS_STRING
from libc.math cimport exp, fabs, floor, fmod, hypot, log, pow, sqrt
from libc.stdint cimport int16_t, int64_t, uint32_t, uint64_t
from libc.stdio cimport snprintf
from libc.string cimport memcmp, memset, strcmp
from cygrad._core.arrays.array cimport (
    ARRAY, ARRAYS, BOOLEAN, COMPLEX, DTYPE, INTEGER, INTEGERS, MAX_DIMS, NOTHING, REAL, TEXT, array_t, as_real, clear,
    copy_value, find_kernel, is_number, retain, set_array, set_arrays, set_integers, value_t,
)
from cygrad._core.arrays.dtype cimport dtype, is_complex, itemsize
from cygrad._core.elementwise.elementwise cimport evaluate, instruction_t, primitive_arity, program_t
from cygrad._core.elementwise.tiles cimport nan_watchers, watch
from cygrad._core.kernels.reduction.reductions cimport evaluate_summed
from cygrad._core.memory.errors cimport (
    INDEX_ERROR, MESSAGE, OK, RUNTIME_ERROR, TYPE_ERROR, VALUE_ERROR, ZERO_DIVISION, message,
)
from cygrad._core.primitives.primitive_table cimport MAX_ARITY, primitive


# --------------------------------------------------------------------------------------------------------------- scalar

# Arithmetic on Python numbers without the GIL, for numbers in formulas that are not constant.

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


# ---------------------------------------------------------------------------------------------------------- interpreter

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
    """Return whether the last reader can take over the value."""
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
    """Return whether another formula has computed the shared value."""
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
    """Return whether the operand is a gradient, or computed from one in checked ways."""
    return _is_gradient(operand) or operand >> 8 in (GRADS_SPACE, TEMPORARY_SPACE) and not watch().kernels


cdef bint _is_gradient(int16_t operand) noexcept nogil:
    """Return whether the operand is an incoming gradient rather than a shared value."""
    return operand >> 8 == GRADS_SPACE and operand & 255 < WANTED


cdef bint _is_clean_view(const code_step_t *step, const value_t *inputs, const value_t *result) noexcept nogil:
    """Return whether the call was just a view of a gradient."""
    return (step.n_inputs > 0 and inputs[0].kind == ARRAY and result.kind == ARRAY and _is_clean(step.inputs[0])
            and inputs[0].of.array.storage == result.of.array.storage)


cdef bint _is_plain(const code_step_t *step, const value_t *inputs) noexcept nogil:
    """Return whether this is arithmetic on numbers and gradients, so that a nan can only arise in it."""
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
        for i in range(step.n_out):        # other results of a call that did not compute the needed one
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


# --------------------------------------------------------------------------------------------------------- code builder

# Conversion of programs and formulas from Python descriptions to C structs.

cdef void *_memory(Py_ssize_t nbytes, list keep) except NULL:
    """Allocate zeroed memory that lives as long as `keep`."""
    block = PyByteArray_FromStringAndSize(NULL, nbytes if nbytes else 1)
    memset(PyByteArray_AS_STRING(block), 0, nbytes)
    keep.append(block)
    return PyByteArray_AS_STRING(block)


cdef const char *text(str string, list keep) except NULL:
    encoded = string.encode()
    keep.append(encoded)
    return PyBytes_AS_STRING(encoded)


cdef int constant_value(object constant, value_t *value, list keep) except -1:
    cdef int64_t *integers
    cdef int i
    value.kind = NOTHING
    value.count = 1
    value.imag = 0
    if constant is None:
        return 0
    if isinstance(constant, bool):
        value.kind, value.of.integer = BOOLEAN, constant
    elif isinstance(constant, int):
        value.kind, value.of.integer = INTEGER, constant
    elif isinstance(constant, float):
        value.kind, value.of.real = REAL, constant
    elif isinstance(constant, complex):
        value.kind, value.of.real, value.imag = COMPLEX, constant.real, constant.imag
    elif isinstance(constant, str):
        value.of.text = text(constant, keep)
        value.kind = TEXT
    elif isinstance(constant, dtype):
        value.kind, value.of.integer = DTYPE, (<dtype>constant).code
    elif isinstance(constant, (tuple, list)):
        integers = <int64_t *>_memory(len(constant) * sizeof(int64_t), keep)
        for i, number in enumerate(constant):
            integers[i] = number
        value.kind, value.count, value.of.integers = INTEGERS, len(constant), integers
    else:
        raise TypeError(f"formula: no constant can be a {type(constant).__name__} (got {constant!r})")
    return 0


cdef program_t *primitive_program(str name, int n_inputs, list keep) except NULL:
    cdef int index = primitive(name), i
    cdef program_t *program
    if primitive_arity(index) != n_inputs:
        raise RuntimeError(f"{name}: the primitive has {primitive_arity(index)} operands, "
                           f"'call' has {n_inputs} arguments")
    program = <program_t *>_memory(sizeof(program_t) + sizeof(instruction_t), keep)
    program.code = <instruction_t *>(program + 1)
    program.n_inputs = program.result = n_inputs
    program.n_instructions = 1
    program.n_registers = n_inputs + 1
    program.code.primitive = <int16_t>index
    program.code.out = <int16_t>n_inputs
    for i in range(MAX_ARITY):
        program.code.inputs[i] = <int16_t>i if i < n_inputs else -1
    return program


cdef program_t *assemble_program(object expression, list keep) except NULL:
    """Return an Expression on registers; its memory lives as long as `keep`."""
    cdef program_t *result = <program_t *>_memory(sizeof(program_t), keep)
    cdef int k
    code, last = expression.registers()
    set_instructions(result, len(expression.inputs), len(expression.constants), code, last, keep)
    for k, constant in enumerate(expression.constants):
        constant_value(constant, &result.constants[k], keep)
    return result


cdef int set_instructions(program_t *program, int n_inputs, int n_constants, list code, int result,
                          list keep) except -1:
    """Set a program, apart from its constants, to what `Expression.registers` returns."""
    cdef instruction_t *instruction
    cdef int k, i, index
    program.n_inputs, program.n_constants, program.n_instructions = n_inputs, n_constants, len(code)
    program.n_registers, program.result = n_inputs + n_constants + program.n_instructions, result
    program.constants = <value_t *>_memory(n_constants * sizeof(value_t), keep)
    program.code = <instruction_t *>_memory(program.n_instructions * sizeof(instruction_t), keep)
    for k, (name, out, inputs) in enumerate(code):
        index = primitive(name)
        if primitive_arity(index) != len(inputs):
            raise ValueError(f"formula: the primitive '{name}' has {primitive_arity(index)} operands "
                             f"(got {len(inputs)})")
        instruction = &program.code[k]
        instruction.primitive = <int16_t>index
        instruction.out = out
        for i in range(MAX_ARITY):
            instruction.inputs[i] = inputs[i] if i < len(inputs) else -1
    return 0


cdef code_t *assemble_code(object code, str title, list keep) except NULL:
    cdef code_t *result = <code_t *>_memory(sizeof(code_t), keep)
    cdef code_step_t *step
    cdef int k, i
    result.n_steps = len(code.steps)
    result.n_temporaries = code.n_temporaries
    result.result = code.result
    result.reads = code.reads
    result.title = text(title, keep)
    result.constants = <value_t *>_memory(len(code.constants) * sizeof(value_t), keep)
    for k, constant in enumerate(code.constants):
        constant_value(constant, &result.constants[k], keep)
    result.steps = <code_step_t *>_memory(result.n_steps * sizeof(code_step_t), keep)
    for k, lowered in enumerate(code.steps):
        step = &result.steps[k]
        step.kind = lowered.kind
        step.which = lowered.which
        step.out = lowered.out
        step.n_out = lowered.n_out
        step.n_inputs = len(lowered.inputs)
        step.last = lowered.last
        for i in range(step.n_inputs):
            step.inputs[i] = lowered.inputs[i]
        if step.kind == CALL:
            step.name = text(lowered.extra["name"], keep)
            step.kernel = find_kernel(lowered.extra["kernel"])
            if step.kernel == NULL:
                raise RuntimeError(f"{title}: no kernel '{lowered.extra['kernel']}' is registered")
        elif step.kind == FUSED:
            step.program = assemble_program(lowered.extra, keep)
    return result
