"""
Element-wise expressions of compiled programs, and fused loops: several of them in one pass over memory.

A fused loop runs all of its expressions on a tile of some hundred elements, then on the next tile, so that temporaries
stay in the caches. To keep the overhead per tile small, all steps form one list of calls, and runs of cheap steps form
chains, whose values stay in registers. Each element passes the same operations as in separate loops, and tiles depend
only on the size of the problem, so results are bit-identical for any number of threads.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t
from libc.stdio cimport snprintf
from libc.stdlib cimport calloc, free
from libc.string cimport memset
from cygrad._core.arrays.array cimport (
    MAX_DIMS, array_empty, array_empty_like, array_meta, array_t, array_view, release)
from cygrad._core.arrays.dtype cimport FLOAT32, FLOAT64, itemsize
from cygrad._core.arrays.value cimport set_array, value_t
from cygrad._core.compiler.tracer cimport Constant, TracedArray, array_of
from cygrad._core.elementwise.elementwise cimport forget, instruction_t, program_t
from cygrad._core.elementwise.specialize cimport MAX_BUFFERS, OUT_SLOT, discard, specialize, specialized_t, step_t
from cygrad._core.graph.boxing cimport plain_object
from cygrad._core.memory.atomic cimport atomic_claim, atomic_load
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, OK, message
from cygrad._core.memory.storage cimport storage_new, storage_release, storage_t
from cygrad._core.primitives.chains cimport CHAIN_CODE, ELEMENTS, HELD, NUMBER, chain_step_t, run_chain
from cygrad._core.primitives.primitive_table cimport (
    MAX_ARITY, MAX_PRIMITIVES, loop_status, loop_t, primitive_t, primitives, set_loop_status)
from cygrad._core.primitives.short_loops cimport short_operation
from cygrad._core.table.operator cimport Operator
from cygrad._core.threads.parallel cimport parallel_for

cdef extern from "simd/fetch.h" nogil:
    void fetch(const char *memory, int64_t nbytes, bint written)

cdef enum:
    TILE_BYTES = 3 << 14      # of all operands and buffers for a tile
    MIN_TILE = 256            # elements; tiles are multiples of it, like the blocks of chains
    MAX_TILE = 2048
    GRAIN = 1 << 16           # elements times expressions per chunk of a thread
    UNCACHED = 1 << 18        # elements from which arrays exceed the caches


def forward_program(Operator operator not None):
    """
    Return the forward of an element-wise operator: n_inputs, constants, instructions, register of the result.

    Instructions are (primitive, register, registers of the operands).
    """
    cdef program_t *program
    cdef int i, k
    operator.ensure_program()
    program = operator.descriptor.program
    if program == NULL:
        return None
    constants = tuple([plain_object(&program.constants[i]) for i in range(program.n_constants)])
    code = tuple([(program.code[i].primitive, program.code[i].out,
                   tuple([program.code[i].inputs[k] for k in range(MAX_ARITY) if program.code[i].inputs[k] >= 0]))
                  for i in range(program.n_instructions)])
    return program.n_inputs, constants, code, program.result


cdef primitive_t *_checked_primitive(int number) except NULL:
    if not 0 <= number < MAX_PRIMITIVES or primitives[number].name == NULL:
        raise IndexError(f"primitive_name: unknown index (got {number}).")
    return &primitives[number]


def primitive_name(int number):
    """Return the name of a primitive."""
    return _checked_primitive(number).name.decode()


def primitive_cost(int number):
    """Return the cost of a primitive per element, in additions."""
    return _checked_primitive(number).cost


def number_everywhere(TracedArray traced not None):
    """Return the number in all elements of a float32 or float64 array that is expanded from one element; else None."""
    if not _is_one_number(array_of(traced)) or traced.array.size == 0:
        return None
    if traced.array.dtype == FLOAT32:
        return (<float *>traced.array.data)[0]
    return (<double *>traced.array.data)[0] if traced.array.dtype == FLOAT64 else None


def layout_of(TracedArray model not None, tuple shape not None, tuple strides=None, int buffer=0, int64_t offset=0):
    """Return the layout of an array with another shape: row-major, or with these strides."""
    cdef TracedArray made = TracedArray.__new__(TracedArray)
    cdef int64_t[MAX_DIMS] sizes
    cdef int64_t[MAX_DIMS] steps
    cdef array_t *array
    cdef int i
    for i in range(len(shape)):
        sizes[i] = shape[i]
        steps[i] = 0 if strides is None else strides[i]
    if strides is None:
        array = array_empty(array_of(model).dtype, len(shape), sizes)
    else:
        array = array_view(array_of(model), array_of(model).dtype, len(shape), sizes, steps, 0)
    if array != NULL:
        made.array = array_meta(array)
        release(array)
    if made.array == NULL:
        raise MemoryError("compile: no memory for a layout")
    made.buffer, made.offset = buffer, offset
    return made


@cython.final
@cython.binding(False)
cdef class Expression:
    """Owns an element-wise program."""

    def __cinit__(self, int n_inputs, list constants, list code, int n_registers, int result):
        cdef int i, k
        cdef Constant constant
        memset(&self.program, 0, sizeof(program_t))
        self.numbers = constants
        self.program.n_inputs, self.program.n_constants = n_inputs, len(constants)
        self.program.n_instructions, self.program.n_registers = len(code), n_registers
        self.program.result = result
        self.program.constants = <value_t *>calloc(len(constants) + 1, sizeof(value_t))
        self.program.code = <instruction_t *>calloc(len(code) + 1, sizeof(instruction_t))
        if self.program.constants == NULL or self.program.code == NULL:
            raise MemoryError("compile: no memory for an element-wise program")
        for i, constant in enumerate(constants):
            self.program.constants[i] = constant.value
        for i, (primitive, out, inputs) in enumerate(code):
            self.program.code[i].primitive, self.program.code[i].out = primitive, out
            for k in range(MAX_ARITY):
                self.program.code[i].inputs[k] = inputs[k] if k < len(inputs) else -1

    def __dealloc__(self):
        forget(&self.program)
        free(self.program.constants)
        free(self.program.code)


@cython.final
@cython.binding(False)
cdef class FusedLoop:
    """
    Owns a fused loop.

    Parameters
    ----------
    n_arguments, n_results, n_temporaries : int
    stages : list of tuple
        (arguments of `Expression`, operands of its inputs, operand of its result).
    """

    def __cinit__(self, int n_arguments, int n_results, int n_temporaries, list stages):
        cdef Expression expression
        cdef int i, k
        self.expressions = []
        self.fused_loop.stages = <stage_t *>calloc(len(stages) + 1, sizeof(stage_t))
        if self.fused_loop.stages == NULL or n_arguments + n_results + n_temporaries > MAX_OPERANDS:
            raise MemoryError("compile: no memory for a fused loop")
        self.fused_loop.n_stages, self.fused_loop.n_arguments = len(stages), n_arguments
        self.fused_loop.n_results, self.fused_loop.n_temporaries = n_results, n_temporaries
        for i, (program, inputs, out) in enumerate(stages):
            expression = Expression(*program)
            self.expressions.append(expression)
            self.fused_loop.stages[i].program, self.fused_loop.stages[i].out = &expression.program, out
            for k in range(len(inputs)):
                self.fused_loop.stages[i].inputs[k] = inputs[k]

    def __dealloc__(self):
        free(self.fused_loop.stages)


# One primitive loop, called per tile. Buffers are numbered after the operands.
cdef struct fused_call_t:
    loop_t loop
    void *data
    int32_t n_inputs
    int32_t operands[MAX_ARITY + 1]       # inputs, then the result
    char *numbers[MAX_ARITY + 1]          # address of a scalar operand, or NULL
    int64_t steps[MAX_ARITY + 1]          # in bytes; 0: the same element
    int32_t operation         # operation code of short loops; -1: not chainable
    int32_t chained           # at the first call of a chain: number of calls
    int64_t code              # code in a chain


cdef struct fused_run_t:
    const fused_loop_t *fused_loop
    specialized_t *programs[<int>MAX_OPERANDS]
    fused_call_t *calls
    double complex *numbers   # loop-invariant values
    int32_t n_calls
    int32_t n_numbers
    int32_t n_buffers
    char *operands[<int>MAX_OPERANDS]     # arguments and results
    int64_t steps[<int>MAX_OPERANDS]
    int64_t n
    int64_t tile              # elements
    int64_t width             # bytes of a buffer per element
    int64_t size              # bytes of an element
    int64_t error
    char text[256]


cdef int run_fused_loop(const fused_loop_t *fused_loop, const value_t *arguments, array_t **layouts,
                        const int32_t *slots, array_t **table) noexcept nogil:
    cdef fused_run_t work
    cdef const array_t *model = layouts[slots[0]]
    cdef storage_t *memory = NULL
    cdef int64_t operands = fused_loop.n_arguments + fused_loop.n_results + fused_loop.n_temporaries, grain
    cdef int i, status = OK, made = 0
    memset(&work, 0, sizeof(fused_run_t))
    work.fused_loop, work.n, work.size = fused_loop, model.size, itemsize(model.dtype)
    for i in range(fused_loop.n_arguments):
        work.operands[i] = arguments[i].of.array.data
        work.steps[i] = 0 if _is_one_number(arguments[i].of.array) else work.size
    for i in range(fused_loop.n_results):
        table[slots[i]] = array_empty_like(layouts[slots[i]], -1)
        if table[slots[i]] == NULL:
            return MEMORY_ERROR
        work.operands[fused_loop.n_arguments + i] = table[slots[i]].data
    for i in range(fused_loop.n_arguments, operands):
        work.steps[i] = work.size
    while status == OK and made < fused_loop.n_stages:
        status = _specialize(&work, made, arguments, layouts[slots[0]])
        made += status == OK
    if status == OK:
        memory = storage_new(work.n_calls * (sizeof(fused_call_t) + sizeof(double complex)))
        status = OK if memory != NULL else MEMORY_ERROR
    if status == OK:
        work.numbers = <double complex *>memory.data
        work.calls = <fused_call_t *>(work.numbers + work.n_calls)
        _flatten(&work)
        _find_chains(&work)
        work.tile = TILE_BYTES // (operands * work.size + work.n_buffers * work.width) // MIN_TILE * MIN_TILE
        work.tile = min(max(work.tile, <int64_t>MIN_TILE), <int64_t>MAX_TILE)
        grain = GRAIN // (work.tile * fused_loop.n_stages)
        parallel_for(_run_tiles, &work, (work.n + work.tile - 1) // work.tile, grain if grain > 1 else 1)
        if work.error != OK:
            snprintf(message(), MESSAGE, b"%s", work.text)
        status = <int>work.error
        storage_release(memory)
    for i in range(made):
        if work.programs[i].temporary:
            discard(work.programs[i])
    return status


cdef int _specialize(fused_run_t *work, int number, const value_t *arguments, array_t *model) noexcept nogil:
    """Specialize an expression for operands that are arguments or have the layout of `model`."""
    cdef const stage_t *stage = &work.fused_loop.stages[number]
    cdef value_t[<int>MAX_INPUTS] values
    cdef specialized_t *made
    cdef int k, status = OK
    for k in range(stage.program.n_inputs):
        if stage.inputs[k] < work.fused_loop.n_arguments:
            values[k] = arguments[stage.inputs[k]]
        else:
            set_array(&values[k], model)
    made = specialize(stage.program, values, &status)
    if made == NULL:
        return status
    work.programs[number] = made
    work.n_buffers, work.width = max(work.n_buffers, made.n_buffers), max(work.width, <int64_t>made.width)
    work.n_calls += made.n_steps
    return OK


cdef void _flatten(fused_run_t *work) noexcept nogil:
    """Flatten the steps of all expressions to one list of calls; compute loop-invariant values."""
    cdef const fused_loop_t *fused_loop = work.fused_loop
    cdef int first_buffer = fused_loop.n_arguments + fused_loop.n_results + fused_loop.n_temporaries
    cdef const specialized_t *program
    cdef const step_t *step
    cdef fused_call_t *call = work.calls
    cdef char *numbers[<int>MAX_BUFFERS]          # address of a loop-invariant value
    cdef int64_t[<int>MAX_BUFFERS] buffers        # strides of buffers
    cdef int64_t varies, one = 1
    cdef int i, j, k, slot
    for i in range(fused_loop.n_stages):
        program = work.programs[i]
        for j in range(program.n_steps):
            step = &program.steps[j]
            memset(call, 0, sizeof(fused_call_t))
            call.loop, call.data, call.n_inputs = step.loop, step.data, step.n_inputs
            varies = 0
            for k in range(step.n_inputs):
                slot = step.inputs[k]
                if slot < program.n_inputs:
                    call.operands[k] = fused_loop.stages[i].inputs[slot]
                    call.steps[k] = work.steps[call.operands[k]]
                    if call.steps[k] == 0:
                        call.numbers[k] = work.operands[call.operands[k]]
                elif slot < program.n_inputs + program.n_cells:
                    call.numbers[k] = <char *>program.cells[slot - program.n_inputs].value
                else:
                    slot -= program.n_inputs + program.n_cells
                    call.operands[k], call.steps[k] = first_buffer + slot, buffers[slot]
                    call.numbers[k] = numbers[slot]
                varies |= call.steps[k]
            k = step.n_inputs
            if step.out == OUT_SLOT:
                call.operands[k], call.steps[k] = fused_loop.stages[i].out, work.size
            else:
                slot = step.out - program.n_inputs - program.n_cells
                call.operands[k], call.steps[k] = first_buffer + slot, step.out_size
                buffers[slot], numbers[slot] = step.out_size, NULL
                if varies == 0:
                    call.numbers[k] = numbers[slot] = <char *>&work.numbers[work.n_numbers]
                    buffers[slot] = 0
                    work.n_numbers += 1
                    call.loop(call.numbers, &one, call.steps, call.data)
                    continue
            call.operation = short_operation(call.loop, call.data, call.steps)
            call += 1
    work.n_calls = <int32_t>(call - work.calls)


cdef void _find_chains(fused_run_t *work) noexcept nogil:
    """Chain runs of cheap calls of one dtype; drop results that are read only within the chain."""
    cdef const fused_loop_t *fused_loop = work.fused_loop
    cdef bint read[<int>MAX_OPERANDS + <int>MAX_BUFFERS]       # by a later call or by readers of the results
    cdef int kinds[3]
    cdef int i, k, out, before, kept, chained = 0
    cdef fused_call_t *call
    cdef const fused_call_t *last
    memset(read, 0, sizeof(read))
    for i in range(fused_loop.n_arguments, fused_loop.n_arguments + fused_loop.n_results):
        read[i] = True
    for i in range(work.n_calls - 1, -1, -1):
        call = &work.calls[i]
        out = call.operands[call.n_inputs]
        before = -1               # operand in registers
        if i > 0 and call.operation >= 0:
            last = call - 1
            if last.operation >= 0 and (call.operation ^ last.operation) & 1 == 0:
                before = last.operands[last.n_inputs]
        kinds[0] = kinds[1] = HELD
        kept = read[out]
        read[out] = False
        for k in range(call.n_inputs):
            if call.numbers[k] != NULL:
                kinds[k] = NUMBER
            elif call.operands[k] != before:
                kinds[k] = ELEMENTS
                read[call.operands[k]] = True
        if call.operation >= 0:
            call.code = CHAIN_CODE(call.operation >> 1, kinds[0], kinds[1], kept)
            chained += 1
            if before < 0:
                call.chained, chained = chained, 0


cdef void _fail(fused_run_t *work, int status) noexcept nogil:
    if atomic_claim(&work.error, OK, status):
        snprintf(work.text, sizeof(work.text), b"%s", message())


cdef inline bint _is_one_number(const array_t *array) noexcept nogil:
    """Do all elements share one location in memory?"""
    cdef int i
    for i in range(array.ndim):
        if array.shape[i] > 1 and array.strides[i] != 0:
            return False
    return True


cdef int _bind_chains(const fused_run_t *work, char **data, chain_step_t *steps, char ***moving) noexcept nogil:
    """Set the pointers of chains for a tile; return how many advance with the tiles."""
    cdef const fused_call_t *call
    cdef const char **pointers[3]
    cdef int i, k, n_moving = 0, n_held = work.fused_loop.n_arguments + work.fused_loop.n_results
    for i in range(work.n_calls):
        call = &work.calls[i]
        if call.operation < 0:
            continue
        steps[i].code = call.code
        pointers[0], pointers[1] = &steps[i].left, &steps[i].right
        pointers[call.n_inputs] = <const char **>&steps[i].out
        for k in range(call.n_inputs + 1):
            pointers[k][0] = data[call.operands[k]] if call.numbers[k] == NULL else call.numbers[k]
            if call.numbers[k] == NULL and call.operands[k] < n_held:
                moving[n_moving] = <char **>pointers[k]
                n_moving += 1
    return n_moving


cdef inline void _call(const fused_call_t *call, char **data, int64_t start, int64_t n) noexcept nogil:
    """Run a call on n elements of a tile from `start`."""
    cdef char *pointers[MAX_ARITY + 1]
    cdef int k
    for k in range(call.n_inputs + 1):
        pointers[k] = data[call.operands[k]] + start * call.steps[k] if call.numbers[k] == NULL else call.numbers[k]
    call.loop(pointers, &n, call.steps, call.data)


cdef void _run_tiles(void *context, int64_t begin, int64_t end) noexcept nogil:
    """Run some tiles with temporaries and buffers of this thread."""
    cdef fused_run_t *work = <fused_run_t *>context
    cdef const fused_loop_t *fused_loop = work.fused_loop
    cdef fused_call_t *call
    cdef chain_step_t *steps
    cdef char ***moving
    cdef char *data[<int>MAX_OPERANDS + <int>MAX_BUFFERS]
    cdef int64_t position, n, done, row = work.tile * work.size, width = work.tile * work.width
    cdef int64_t temporaries = fused_loop.n_temporaries * row + work.n_buffers * width
    cdef int i, k, n_moving, n_held = fused_loop.n_arguments + fused_loop.n_results
    cdef storage_t *storage = storage_new(temporaries + work.n_calls * (sizeof(chain_step_t) + 3 * sizeof(char **)))
    if storage == NULL:
        _fail(work, MEMORY_ERROR)
        return
    for i in range(n_held):
        data[i] = work.operands[i] + begin * work.tile * work.steps[i]
    for i in range(fused_loop.n_temporaries):
        data[n_held + i] = storage.data + i * row
    for i in range(work.n_buffers):
        data[n_held + fused_loop.n_temporaries + i] = storage.data + fused_loop.n_temporaries * row + i * width
    steps = <chain_step_t *>(storage.data + temporaries)
    moving = <char ***>(steps + work.n_calls)
    n_moving = _bind_chains(work, data, steps, moving)
    for position in range(begin, end):
        if atomic_load(&work.error) != OK:
            break
        n = min(work.tile, work.n - position * work.tile)
        if work.n >= UNCACHED and position + 1 < end:
            for i in range(n_held):
                if work.steps[i]:
                    fetch(data[i] + row, min(work.tile, work.n - (position + 1) * work.tile) * work.size,
                          i >= fused_loop.n_arguments)
        i = 0
        while i < work.n_calls:
            call = &work.calls[i]
            if call.operation < 0:
                _call(call, data, 0, n)
                i += 1
                continue
            done = run_chain(call.operation & 1, &steps[i], call.chained, n)
            if done < n:
                for k in range(i, i + call.chained):
                    _call(&work.calls[k], data, done, n - done)
            i += call.chained
        for i in range(n_held):
            data[i] += work.tile * work.steps[i]
        for i in range(n_moving):
            moving[i][0] += row
        if loop_status() != OK:
            _fail(work, loop_status())
            set_loop_status(OK)
    storage_release(storage)
