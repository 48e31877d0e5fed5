"""Conversion of expressions and programs from Python objects to C structs."""

cimport cython
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_FromStringAndSize
from cpython.bytes cimport PyBytes_AS_STRING
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memset
from cygrad._core.arrays.array cimport (
    BOOLEAN, COMPLEX, DTYPE, INTEGER, INTEGERS, NOTHING, REAL, TEXT, find_kernel, value_t,
)
from cygrad._core.arrays.dtype cimport dtype
from cygrad._core.elementwise.elementwise cimport forget, primitive_arity
from cygrad._core.elementwise.expression cimport expression_t, primitive_call_t
from cygrad._core.primitives.primitive_table cimport MAX_ARITY, primitive
from cygrad._core.program.executor cimport (
    CALL, FUSED_LOOP, MAX_FUSED_OPERANDS, NO_OPERAND, VIEW, instruction_t, loop_template_t, program_t,
)


@cython.final
@cython.no_gc                     # no cycle leads through it
cdef class TypedInstruction:
    """
    An instruction of the executor, as compiled modules make them.

    `Instruction` has the same fields; it is Python, because formulas are lowered before anything is compiled.
    """


cdef TypedInstruction typed_instruction(int kind, list operands, list results):
    cdef TypedInstruction made = TypedInstruction.__new__(TypedInstruction)
    made.kind, made.operands, made.results, made.dead, made.target = kind, operands, results, [], NO_OPERAND
    return made


cdef TypedInstruction _typed(object instruction):
    """Return the TypedInstruction of an `Instruction`."""
    cdef TypedInstruction made
    if isinstance(instruction, TypedInstruction):
        return instruction
    made = typed_instruction(instruction.kind, instruction.operands, instruction.results)
    made.which, made.target, made.last, made.dead = (
        instruction.which, instruction.target, instruction.last, instruction.dead)
    made.name, made.kernel, made.expression, made.detail = (
        instruction.name, instruction.kernel, instruction.expression, instruction.detail)
    return made


cdef void *memory(Py_ssize_t nbytes, list keep) except NULL:
    block = PyByteArray_FromStringAndSize(NULL, nbytes if nbytes else 1)
    memset(PyByteArray_AS_STRING(block), 0, nbytes)
    keep.append(block)
    return PyByteArray_AS_STRING(block)


cdef const char *text(str string, list keep) except NULL:
    encoded = string.encode()
    keep.append(encoded)
    return PyBytes_AS_STRING(encoded)


cdef int constant_value(object constant, value_t *value, list keep) except -1:
    cdef int64_t *numbers
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
        numbers = <int64_t *>memory(len(constant) * sizeof(int64_t), keep)
        for i, number in enumerate(constant):
            numbers[i] = number
        value.kind, value.count, value.of.integers = INTEGERS, len(constant), numbers
    else:
        raise TypeError(f"formula: no constant can be a {type(constant).__name__} (got {constant!r})")
    return 0


@cython.final
@cython.no_gc_clear
cdef class _Specializations:
    """Frees the specializations of an expression, before its memory."""
    cdef expression_t *expression
    cdef list keep

    def __dealloc__(self):
        if self.expression != NULL:
            forget(self.expression)


cdef expression_t *build_expression(int n_inputs, list constants, list code, int result, list keep) except NULL:
    cdef _Specializations owner = _Specializations()
    cdef expression_t *expression
    cdef primitive_call_t *call
    cdef int k, i, index
    owner.keep = []
    expression = <expression_t *>memory(sizeof(expression_t) + len(constants) * sizeof(value_t)
                                        + len(code) * sizeof(primitive_call_t), owner.keep)
    expression.constants = <value_t *>(expression + 1)
    expression.code = <primitive_call_t *>(expression.constants + len(constants))
    expression.n_inputs, expression.n_constants, expression.n_instructions = n_inputs, len(constants), len(code)
    expression.n_registers, expression.result = n_inputs + len(constants) + len(code), result
    for k, constant in enumerate(constants):
        constant_value(getattr(constant, "plain", constant), &expression.constants[k], owner.keep)
    for k, (name, out, inputs) in enumerate(code):
        index = primitive(name)
        if primitive_arity(index) != len(inputs):
            raise ValueError(f"expression: the primitive '{name}' has {primitive_arity(index)} operands "
                             f"(got {len(inputs)})")
        call = &expression.code[k]
        call.primitive = index
        call.out = out
        for i in range(MAX_ARITY):
            call.inputs[i] = inputs[i] if i < len(inputs) else -1
    owner.expression = expression
    keep.append(owner)
    return expression


cdef expression_t *primitive_expression(str name, int n_inputs, list keep) except NULL:
    return build_expression(n_inputs, [], [(name, n_inputs, range(n_inputs))], n_inputs, keep)


cdef expression_t *_expression_of(object expression, dict known, list keep) except NULL:
    """Return the C struct of an Expression; equal ones share one, for its specializations."""
    cdef list constants = expression.constants, inputs = expression.inputs, plain = constants
    cdef tuple numbers = ()
    if constants:
        plain = [getattr(constant, "plain", constant) for constant in constants]
        numbers = tuple([(type(number), repr(number)) for number in plain])
    # The program keeps the code alive, so equal ids are the same code.
    quick = len(inputs), numbers, <size_t><void *>expression.code, expression.result
    found = known.get(quick)
    if found is None:
        code, result = expression.registers()
        key = len(inputs), numbers, tuple([(name, out, *inputs) for name, out, inputs in code]), result
        found = known.get(key)
        if found is None:
            found = known[key] = <size_t>build_expression(len(inputs), plain, code, result, keep)
        known[quick] = found
    return <expression_t *><size_t>found


cdef int32_t *integers(list numbers, list keep) except? NULL:
    if not numbers:
        return NULL
    cdef int32_t *made = <int32_t *>memory(len(numbers) * sizeof(int32_t), keep)
    cdef Py_ssize_t i
    for i in range(len(numbers)):
        made[i] = numbers[i]
    return made


cdef int _count(list instructions) except -1:
    """Return the number of operands, results and dead operands of all instructions."""
    cdef TypedInstruction instruction
    cdef int n = 0
    for instruction in instructions:
        n += len(instruction.operands) + len(instruction.results) + len(instruction.dead)
    return n


cdef int32_t *_copied(list numbers, int32_t **free) except? NULL:
    """Copy integers to free memory and advance it."""
    cdef int32_t *made = free[0]
    cdef int i = 0
    for number in numbers:
        made[i] = number
        i += 1
    free[0] += i
    return made


cdef loop_template_t *_loop(tuple detail, dict known, list keep) except NULL:
    cdef loop_template_t *loop = <loop_template_t *>memory(sizeof(loop_template_t), keep)
    cdef int i, k
    n_operands, stages = detail
    if n_operands > MAX_FUSED_OPERANDS or len(stages) > MAX_FUSED_OPERANDS:
        raise RuntimeError(f"compile: too many operands of a fused loop (got {n_operands})")
    loop.n_operands, loop.n_stages = n_operands, len(stages)
    for i, (expression, inputs, out) in enumerate(stages):
        loop.expressions[i], loop.stages[i].out = _expression_of(expression, known, keep), out
        for k in range(len(inputs)):
            loop.stages[i].inputs[k] = inputs[k]
    return loop


cdef program_t *build_program(list instructions, list constants, int n_temporaries, list keep) except NULL:
    cdef program_t *program = <program_t *>memory(sizeof(program_t), keep)
    cdef instruction_t *made
    cdef list typed = [_typed(entry) for entry in instructions]
    cdef int32_t *free = <int32_t *>memory(_count(typed) * sizeof(int32_t), keep)
    cdef TypedInstruction instruction
    cdef dict known = {}, names = {}
    cdef int k
    program.n_instructions, program.n_temporaries = len(instructions), n_temporaries
    program.constants = <value_t *>memory(len(constants) * sizeof(value_t), keep)
    for k, constant in enumerate(constants):
        constant_value(constant, &program.constants[k], keep)
    program.instructions = <instruction_t *>memory(program.n_instructions * sizeof(instruction_t), keep)
    for k, instruction in enumerate(typed):
        made = &program.instructions[k]
        made.kind, made.which, made.target = <int>instruction.kind, instruction.which, instruction.target
        made.last = instruction.last
        made.n_operands, made.operands = len(instruction.operands), _copied(instruction.operands, &free)
        made.n_results, made.results = len(instruction.results), _copied(instruction.results, &free)
        made.n_dead, made.dead = len(instruction.dead), _copied(instruction.dead, &free)
        name = instruction.name
        if name is not None:
            if name not in names:
                names[name] = <size_t>text(name, keep)
            made.name = <const char *><size_t>names[name]
        if instruction.expression is not None:
            made.expression = _expression_of(instruction.expression, known, keep)
        if made.kind == CALL:
            made.kernel = find_kernel(instruction.kernel)
            if made.kernel == NULL:
                raise RuntimeError(f"{instruction.name}: no kernel '{instruction.kernel}' is registered")
        elif made.kind == VIEW:
            made.offset = instruction.detail
        elif made.kind == FUSED_LOOP:
            made.loop = _loop(instruction.detail, known, keep)
    return program
