"""Conversion of programs and formulas from Python descriptions to C structs."""

from libc.stdint cimport int16_t, int64_t
from libc.string cimport memset
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_FromStringAndSize
from cpython.bytes cimport PyBytes_AS_STRING
from cygrad._core.arrays.dtype cimport dtype
from cygrad._core.arrays.value cimport (
    BOOLEAN, COMPLEX, DTYPE, INTEGER, INTEGERS, NOTHING, REAL, TEXT, find_kernel, value_t)
from cygrad._core.elementwise.elementwise cimport instruction_t, primitive, primitive_arity, program_t
from cygrad._core.primitives.primitive_table cimport MAX_ARITY
from cygrad._core.table.interpreter cimport CALL, FUSED, code_step_t, code_t


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


cdef program_t *assemble_program(object program, list keep) except NULL:
    cdef program_t *result = <program_t *>_memory(sizeof(program_t), keep)
    cdef instruction_t *instruction
    cdef int k, i, index
    result.n_inputs = program.n_inputs
    result.n_constants = len(program.constants)
    result.n_instructions = len(program.instructions)
    result.n_registers = program.n_registers
    result.result = program.result
    result.constants = <value_t *>_memory(result.n_constants * sizeof(value_t), keep)
    for k, constant in enumerate(program.constants):
        constant_value(constant, &result.constants[k], keep)
    result.code = <instruction_t *>_memory(result.n_instructions * sizeof(instruction_t), keep)
    for k, (name, out, inputs) in enumerate(program.instructions):
        index = primitive(name)
        if primitive_arity(index) != len(inputs):
            raise ValueError(f"formula: the primitive '{name}' has {primitive_arity(index)} operands "
                             f"(got {len(inputs)})")
        instruction = &result.code[k]
        instruction.primitive = <int16_t>index
        instruction.out = out
        for i in range(MAX_ARITY):
            instruction.inputs[i] = inputs[i] if i < len(inputs) else -1
    return result


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
