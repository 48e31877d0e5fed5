"""
Programs made ready for the dtypes of their inputs: loops found, casts inserted, buffers assigned.

Each instruction's operands meet in the dtype that the promotion rules give them; where an operand has
another one, a cast becomes a step of its own, so that arrays are cast tile by tile. Numbers are held in
cells and cast once per call. What is computed from numbers alone stays a number in the eyes of promotion.

What meets in float16, bfloat16 or complex32 is computed in float32 or complex64, and rounded once, as the result:
between the instructions of a program it stays as it is.
"""

from libc.stdio cimport snprintf
from libc.stdlib cimport free, malloc
from cygrad._core.arrays.dtype cimport (
    BOOL, DTYPES, FLOAT64, INT64, complex_of, computed_in, default_float, dtype_name, is_complex, is_differentiable,
    is_integral, is_short, itemsize, promotable, promote, real_of)
from cygrad._core.arrays.promotion cimport DIMENSIONED, WEAK, common_dtype, dtype_of, rank_of, settled
from cygrad._core.arrays.value cimport ARRAY
from cygrad._core.elementwise.program cimport MAX_REGISTERS, instruction_t
from cygrad._core.memory.atomic cimport atomic_claim, atomic_load
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, NOT_IMPLEMENTED, OK, RUNTIME_ERROR, message
from cygrad._core.primitives.cast cimport cast_loops, number_to_cell
from cygrad._core.primitives.primitive_table cimport FLOAT, MAX_ARITY, SELECT, entries, entry_t, primitives
from cygrad._core.primitives.primitive_table cimport primitive as primitive_of
from cygrad._core.primitives.short_loops cimport chain_operation

cdef int _remainder = primitive_of("remainder"), _fmod = primitive_of("fmod")

cdef enum:
    MAX_CACHED = 64           # cached specializations per program; further ones are made for each call
    MAX_STEPS = 256
    MAX_SLOTS = 512
    NO_SLOT = -2

# What is known of a register while instructions become steps.
ctypedef struct register_t:
    int32_t dtype
    int32_t rank
    int32_t slot[<int>DTYPES]      # its slot in each dtype, or NO_SLOT
    int32_t number            # index of the input, or n_inputs + index of the constant; -1: not a number

ctypedef struct builder_t:
    specialized_t *made
    register_t registers[MAX_REGISTERS]
    step_t steps[MAX_STEPS]
    int32_t n_steps
    int32_t n_slots           # virtual: a new one for each step, until buffers are assigned
    int32_t n_cells
    int32_t status


cdef void _set_key(const value_t *inputs, int n, uint64_t *key) noexcept nogil:
    """Pack dtype and rank of each input, six bits each; the default dtype on top."""
    cdef int i
    cdef uint64_t code
    key[0] = 0
    key[1] = default_float()
    for i in range(n):
        code = dtype_of(&inputs[i]) | (rank_of(&inputs[i]) << 4)
        if i < 6:
            key[0] = (key[0] << 6) | code
        else:
            key[1] = (key[1] << 6) | code


cdef specialized_t *specialize(program_t *program, const value_t *inputs, int *status) noexcept nogil:
    cdef uint64_t[2] key
    cdef int64_t *head = <int64_t *>&program.specialized
    cdef specialized_t *found
    cdef int n = 0
    _set_key(inputs, program.n_inputs, key)
    found = <specialized_t *>atomic_load(head)
    while found != NULL:
        if found.key[0] == key[0] and found.key[1] == key[1]:
            return found
        found = found.next
        n += 1
    found = _build(program, inputs, status)
    if found == NULL:
        return NULL
    found.key[0] = key[0]
    found.key[1] = key[1]
    found.temporary = n >= MAX_CACHED
    # Two threads may publish the same one: harmless, because lookups return the first.
    while not found.temporary:
        found.next = <specialized_t *>atomic_load(head)
        if atomic_claim(head, <int64_t>found.next, <int64_t>found):
            break
    return found


cdef void discard(specialized_t *specialized) noexcept nogil:
    free(specialized.steps)
    free(specialized)


cdef void forget(program_t *program) noexcept nogil:
    cdef specialized_t *found = <specialized_t *>program.specialized
    cdef specialized_t *next
    program.specialized = NULL
    while found != NULL:
        next = found.next
        discard(found)
        found = next


cdef specialized_t *_build(program_t *program, const value_t *inputs, int *status) noexcept nogil:
    cdef builder_t *builder = <builder_t *>malloc(sizeof(builder_t))
    cdef specialized_t *made = <specialized_t *>malloc(sizeof(specialized_t))
    if made != NULL:
        made.steps = NULL
    if builder != NULL and made != NULL:
        builder.made = made
        status[0] = _build_steps(builder, program, inputs)
        if status[0] == OK:
            made.steps = <step_t *>malloc(builder.n_steps * sizeof(step_t))
            status[0] = OK if made.steps != NULL else MEMORY_ERROR
        if status[0] == OK:
            status[0] = _assign_buffers(builder, program)
    else:
        status[0] = MEMORY_ERROR
    if status[0] == MEMORY_ERROR:
        snprintf(message(), MESSAGE, b"out of memory for an element-wise program")
    free(builder)
    if status[0] != OK:
        if made != NULL:
            free(made.steps)
        free(made)
        return NULL
    return made


cdef int _build_steps(builder_t *builder, program_t *program, const value_t *inputs) noexcept nogil:
    """Create steps on virtual slots: inputs, cells (up to MAX_CELLS), then one for each step."""
    cdef specialized_t *made = builder.made
    cdef register_t *register
    cdef const value_t *value
    cdef int i, d, status, n_values = program.n_inputs + program.n_constants
    builder.n_steps = 0
    builder.n_cells = 0
    builder.n_slots = program.n_inputs + MAX_CELLS
    made.n_inputs = program.n_inputs
    made.cost = 0
    made.exact = True
    made.partial = False
    for i in range(n_values):
        register = &builder.registers[i]
        value = &inputs[i] if i < program.n_inputs else &program.constants[i - program.n_inputs]
        register.dtype = dtype_of(value)
        register.rank = rank_of(value)
        register.number = -1 if value.kind == ARRAY else i
        for d in range(DTYPES):
            register.slot[d] = NO_SLOT
        if register.number < 0:
            register.slot[register.dtype] = i
    for i in range(program.n_instructions):
        status = _add_instruction(builder, program, &program.code[i])
        if status != OK:
            return status
    return _add_result(builder, program)


cdef int _add_instruction(builder_t *builder, program_t *program,
                          const instruction_t *instruction) noexcept nogil:
    cdef int[3] by_rank
    cdef int i, code, computed, rank = WEAK, slot, operands_from = 0
    cdef int primitive = instruction.primitive, n = primitives[primitive].arity
    cdef int[MAX_ARITY] slots
    cdef register_t *register
    cdef const entry_t *entry
    by_rank[0] = by_rank[1] = by_rank[2] = -1
    if primitives[primitive].rule == SELECT:
        operands_from = 1
    for i in range(n):
        register = &builder.registers[instruction.inputs[i]]
        if register.rank < rank:
            rank = register.rank
        if i >= operands_from:
            if by_rank[register.rank] >= 0 and not promotable(by_rank[register.rank], register.dtype):
                return _refuse_promotion(primitives[primitive].name, by_rank[register.rank], register.dtype)
            by_rank[register.rank] = (register.dtype if by_rank[register.rank] < 0
                                      else promote(by_rank[register.rank], register.dtype))
    code = common_dtype(by_rank[0], by_rank[1], by_rank[2])
    if primitives[primitive].rule == FLOAT and not is_differentiable(code):
        code = FLOAT64 if rank == WEAK else default_float()
    elif by_rank[0] < 0 and by_rank[1] < 0 and rank != WEAK:
        code = settled(code)      # where(array, number, number)
    computed = code
    if is_short(code) and (entries[primitive][code].loop == NULL or program.n_instructions > 1):
        computed = computed_in(code)
    if (INT64 if is_integral(code) else computed_in(code)) <= primitives[primitive].identity and (
            code != BOOL or primitives[primitive].identity > INT64):
        builder.registers[instruction.out] = builder.registers[instruction.inputs[0]]
        return OK
    entry = &entries[primitive][computed]
    if entry.loop == NULL:
        snprintf(message(), MESSAGE, b"%s: not implemented for %s. Convert the tensor to another dtype "
                 b"first.",
                 primitives[primitive].name, dtype_name(code))
        return NOT_IMPLEMENTED
    for i in range(n):
        slots[i] = _slot_in(builder, program, instruction.inputs[i], BOOL if i < operands_from else code,
                            BOOL if i < operands_from else computed,
                            entry.out_dtype == BOOL or primitive == _remainder or primitive == _fmod)
        if slots[i] < 0:
            return RUNTIME_ERROR
    builder.made.cost += primitives[primitive].cost
    if not primitives[primitive].exact or is_complex(code):
        builder.made.exact = False
    if primitives[primitive].partial and is_integral(code):
        builder.made.partial = True
    slot = _add_step(builder, entry.loop, entry.data, n, slots, entry.out_dtype)
    if slot < 0:
        return RUNTIME_ERROR
    register = &builder.registers[instruction.out]
    # The result in the wider dtype is not rounded yet; |complex32| is a float16.
    register.dtype = (entry.out_dtype if computed == code or not is_differentiable(entry.out_dtype)
                      else code if entry.out_dtype == computed
                      else real_of(code) if is_complex(code) else complex_of(code))
    register.rank = rank
    register.number = -1
    for i in range(DTYPES):
        register.slot[i] = NO_SLOT
    register.slot[entry.out_dtype] = slot
    return OK


cdef int _refuse_promotion(const char *name, int first, int second) noexcept nogil:
    snprintf(message(), MESSAGE, b"%s: no integer type holds uint64 and signed integers (got %s and %s). Convert "
             b"one with to() first.", name, dtype_name(first), dtype_name(second))
    return RUNTIME_ERROR


cdef int _slot_in(builder_t *builder, program_t *program, int index, int dtype, int computed,
                  bint rounded) noexcept nogil:
    """
    Return the slot of the register in the compute dtype.

    An array of another dtype is rounded to the shorter one first, as if it had been cast separately; numbers and 0-dim
    arrays only if `rounded`: in comparisons, because a float16 tensor filled with 0.1 equals 0.1, and as divisors of
    remainders, as in PyTorch.
    """
    cdef register_t *register = &builder.registers[index]
    cdef int[1] slots
    if dtype == computed or register.slot[computed] != NO_SLOT or register.dtype == dtype or (
            register.rank != DIMENSIONED and not rounded):
        return _slot_of(builder, program, index, computed)
    slots[0] = _slot_of(builder, program, index, dtype)
    return slots[0] if slots[0] < 0 else _add_step(builder, cast_loops[dtype][computed], NULL, 1, slots, computed)


cdef int _add_step(builder_t *builder, loop_t loop, void *data, int n, const int *slots,
                   int dtype) noexcept nogil:
    """Return the slot of its result, or -1 if there are too many."""
    cdef step_t *step
    cdef int i
    if builder.n_steps >= MAX_STEPS:
        snprintf(message(), MESSAGE, b"element-wise program: more than %d steps. Split it.", <int>MAX_STEPS)
        return -1
    step = &builder.steps[builder.n_steps]
    builder.n_steps += 1
    step.loop = loop
    step.data = data
    step.n_inputs = n
    for i in range(n):
        step.inputs[i] = slots[i]
    step.out = builder.n_slots
    step.out_size = itemsize(dtype)
    builder.n_slots += 1
    return step.out


cdef int _slot_of(builder_t *builder, program_t *program, int index, int dtype) noexcept nogil:
    """Return the slot of the register in this dtype: cast, or put into a cell, on first use."""
    cdef register_t *register = &builder.registers[index]
    cdef cell_t *cell
    cdef int held
    cdef int[1] slots
    if register.slot[dtype] != NO_SLOT:
        return register.slot[dtype]
    if register.number < 0:
        held = register.dtype if register.slot[register.dtype] != NO_SLOT else computed_in(register.dtype)
        slots[0] = register.slot[held]
        builder.made.cost += 1
        register.slot[dtype] = _add_step(builder, cast_loops[held][dtype], NULL, 1, slots, dtype)
        return register.slot[dtype]
    if builder.n_cells >= MAX_CELLS:
        snprintf(message(), MESSAGE, b"element-wise program: more than %d numbers. Split it.", <int>MAX_CELLS)
        return -1
    cell = &builder.made.cells[builder.n_cells]
    cell.dtype = dtype
    cell.input = register.number if register.number < program.n_inputs else -1
    if cell.input < 0:
        number_to_cell(&program.constants[register.number - program.n_inputs], dtype, cell.value)
    register.slot[dtype] = program.n_inputs + builder.n_cells
    builder.n_cells += 1
    return register.slot[dtype]


cdef int _add_result(builder_t *builder, program_t *program) noexcept nogil:
    """Make the last step write the result."""
    cdef register_t *register = &builder.registers[program.result]
    cdef int dtype = settled(register.dtype) if register.rank == WEAK else register.dtype
    cdef int slot = _slot_of(builder, program, program.result, dtype)
    cdef int[1] slots
    if slot < 0:
        return RUNTIME_ERROR
    builder.made.dtype = dtype
    if builder.n_steps == 0 or builder.steps[builder.n_steps - 1].out != slot:
        slots[0] = slot
        builder.made.cost += 1
        if _add_step(builder, cast_loops[dtype][dtype], NULL, 1, slots, dtype) < 0:
            return RUNTIME_ERROR
    return OK


cdef int _assign_buffers(builder_t *builder, program_t *program) noexcept nogil:
    """
    Map virtual slots to inputs, cells and few buffers, each reused once its value is dead.

    A step never writes a buffer that it reads: a value that is the same for all elements occupies only the first
    element of its buffer.
    """
    cdef specialized_t *made = builder.made
    cdef step_t *step
    cdef int first = program.n_inputs + MAX_CELLS
    cdef int16_t[MAX_STEPS] last_use
    cdef int16_t[MAX_STEPS] buffer_of
    cdef int16_t[MAX_BUFFERS] in_use      # step whose result it holds, or -1
    cdef int i, k, b
    made.n_steps = builder.n_steps
    made.n_cells = builder.n_cells
    made.n_buffers = 0
    made.width = 1
    for i in range(builder.n_steps):
        last_use[i] = i
        for k in range(builder.steps[i].n_inputs):
            if builder.steps[i].inputs[k] >= first:
                last_use[builder.steps[i].inputs[k] - first] = i
    for i in range(builder.n_steps):
        step = &made.steps[i]
        step[0] = builder.steps[i]
        for k in range(step.n_inputs):
            if step.inputs[k] >= first:
                step.inputs[k] = buffer_of[step.inputs[k] - first]
        if i == builder.n_steps - 1:
            step.out = OUT_SLOT
            break
        b = 0
        while b < made.n_buffers and in_use[b] >= 0:
            b += 1
        if b == made.n_buffers:
            if b >= MAX_BUFFERS:
                snprintf(message(), MESSAGE, b"element-wise program: more than %d temporaries. Split it.",
                         <int>MAX_BUFFERS)
                return RUNTIME_ERROR
            made.n_buffers += 1
        in_use[b] = i
        step.out = buffer_of[i] = program.n_inputs + made.n_cells + b
        if step.out_size > made.width:
            made.width = step.out_size
        for b in range(made.n_buffers):
            if in_use[b] >= 0 and last_use[in_use[b]] <= i:
                in_use[b] = -1
    for i in range(builder.n_steps - 1, -1, -1):
        step = &made.steps[i]
        step.operation = chain_operation(step.loop, step.data)
        step.links = step.operation >= 0
        step.kept = last_use[i] > i + 1
        if step.links and i + 1 < builder.n_steps and (step.operation ^ made.steps[i + 1].operation) & 1 == 0:
            for k in range(step[1].n_inputs):
                if step[1].inputs[k] == step.out and step.links == 1:
                    step.links += step[1].links
    made.direct = made.n_steps == 1
    for k in range(made.steps[0].n_inputs):
        if made.steps[0].inputs[k] != k:
            made.direct = False
    made.direct = made.direct and made.steps[0].n_inputs == program.n_inputs
    return OK
