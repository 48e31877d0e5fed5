"""
Element-wise programs made while a recording is lowered, and sweeps: several of them in one pass over memory.

A sweep runs all of its programs on a piece of some hundred elements, then on the next one. What only the sweep itself
reads never leaves the caches. So that little is done for a piece but the loops, their steps are one list of calls, and
cheap ones that follow each other are a chain, whose values stay in registers. Each program does with each element what
it would do with all of them at a time, so bits are the same; and pieces depend on the problem alone, so they are for
any number of threads.
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
from cygrad._core.compiler.recorder cimport Constant, Held, lent
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
    CACHED = 3 << 14          # bytes of all places and buffers together that a piece should take
    LEAST = 256               # elements of a piece, which has a multiple of so many: blocks of chains do not have more
    MOST = 2048
    WORK = 1 << 16            # elements that are worth a turn of a thread, times programs
    FAR = 1 << 18             # elements from which arrays are not in the caches anyway


def forward_program(Operator operator not None):
    """
    The forward of an element-wise operator: number of inputs, constants, instructions, the register of the result.

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
        raise IndexError(f"primitive_name: there is no primitive of this index (got {number}).")
    return &primitives[number]


def primitive_name(int number):
    """What the instructions call it."""
    return _checked_primitive(number).name.decode()


def primitive_cost(int number):
    """What it costs for an element, in additions."""
    return _checked_primitive(number).cost


def number_everywhere(Held held not None):
    """The number that all elements of an array of float32 or float64 are, if only one lies in memory; else None."""
    if not _is_one_number(lent(held)) or held.array.size == 0:
        return None
    if held.array.dtype == FLOAT32:
        return (<float *>held.array.data)[0]
    return (<double *>held.array.data)[0] if held.array.dtype == FLOAT64 else None


def layout_of(Held model not None, tuple shape not None, tuple strides=None, int buffer=0, int64_t offset=0):
    """The layout of an array of another shape that is otherwise like this one: row-major, or with these strides."""
    cdef Held made = Held.__new__(Held)
    cdef int64_t[MAX_DIMS] sizes
    cdef int64_t[MAX_DIMS] steps
    cdef array_t *array
    cdef int i
    for i in range(len(shape)):
        sizes[i] = shape[i]
        steps[i] = 0 if strides is None else strides[i]
    if strides is None:
        array = array_empty(lent(model).dtype, len(shape), sizes)
    else:
        array = array_view(lent(model), lent(model).dtype, len(shape), sizes, steps, 0)
    if array != NULL:
        made.array = array_meta(array)
        release(array)
    if made.array == NULL:
        raise MemoryError("compile: no memory for a layout")
    made.buffer, made.offset = buffer, offset
    return made


@cython.final
@cython.binding(False)
cdef class Region:
    """Memory of an element-wise program."""

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
cdef class Sweep:
    """
    Memory of a sweep.

    Parameters
    ----------
    n_arguments, n_results, n_rooms : int
    parts : list of tuple
        (what `Region` takes, places of its inputs, place of its result).
    """

    def __cinit__(self, int n_arguments, int n_results, int n_rooms, list parts):
        cdef Region region
        cdef int i, k
        self.regions = []
        self.sweep.parts = <part_t *>calloc(len(parts) + 1, sizeof(part_t))
        if self.sweep.parts == NULL or n_arguments + n_results + n_rooms > MAX_PLACES:
            raise MemoryError("compile: no memory for a pass over several operations")
        self.sweep.n_parts, self.sweep.n_arguments = len(parts), n_arguments
        self.sweep.n_results, self.sweep.n_rooms = n_results, n_rooms
        for i, (program, inputs, out) in enumerate(parts):
            region = Region(*program)
            self.regions.append(region)
            self.sweep.parts[i].program, self.sweep.parts[i].out = &region.program, out
            for k in range(len(inputs)):
                self.sweep.parts[i].inputs[k] = inputs[k]

    def __dealloc__(self):
        free(self.sweep.parts)


# One call of a loop for each piece. Operands lie in places, or in buffers, which are counted behind those.
cdef struct sweep_call_t:
    loop_t loop
    void *data
    int32_t n_inputs
    int32_t operands[MAX_ARITY + 1]       # inputs, then the result
    char *numbers[MAX_ARITY + 1]          # where the operand is a number, that
    int64_t steps[MAX_ARITY + 1]          # bytes from one element to the next; 0: the same for all
    int32_t operation         # of chains, with its precision; -1: it has to be called
    int32_t chained           # of the first one of a chain: how many calls that is
    int64_t code              # of chains


cdef struct region_run_t:
    const sweep_t *sweep
    specialized_t *programs[<int>MAX_PLACES]
    sweep_call_t *calls
    double complex *numbers   # what is the same for all elements
    int32_t n_calls
    int32_t n_numbers
    int32_t n_buffers
    char *places[<int>MAX_PLACES]         # arguments and results
    int64_t steps[<int>MAX_PLACES]
    int64_t n
    int64_t piece             # elements
    int64_t width             # bytes that a buffer needs for an element
    int64_t size              # of an element
    int64_t error
    char text[256]


cdef int run_sweep(const sweep_t *sweep, const value_t *arguments, array_t **layouts, const int32_t *slots,
                   array_t **table) noexcept nogil:
    cdef region_run_t work
    cdef const array_t *model = layouts[slots[0]]
    cdef storage_t *memory = NULL
    cdef int64_t places = sweep.n_arguments + sweep.n_results + sweep.n_rooms, grain
    cdef int i, status = OK, made = 0
    memset(&work, 0, sizeof(region_run_t))
    work.sweep, work.n, work.size = sweep, model.size, itemsize(model.dtype)
    for i in range(sweep.n_arguments):
        work.places[i] = arguments[i].of.array.data
        work.steps[i] = 0 if _is_one_number(arguments[i].of.array) else work.size
    for i in range(sweep.n_results):
        table[slots[i]] = array_empty_like(layouts[slots[i]], -1)
        if table[slots[i]] == NULL:
            return MEMORY_ERROR
        work.places[sweep.n_arguments + i] = table[slots[i]].data
    for i in range(sweep.n_arguments, places):
        work.steps[i] = work.size
    while status == OK and made < sweep.n_parts:
        status = _specialize(&work, made, arguments, layouts[slots[0]])
        made += status == OK
    if status == OK:
        memory = storage_new(work.n_calls * (sizeof(sweep_call_t) + sizeof(double complex)))
        status = OK if memory != NULL else MEMORY_ERROR
    if status == OK:
        work.numbers = <double complex *>memory.data
        work.calls = <sweep_call_t *>(work.numbers + work.n_calls)
        _flatten(&work)
        _find_chains(&work)
        work.piece = CACHED // (places * work.size + work.n_buffers * work.width) // LEAST * LEAST
        work.piece = min(max(work.piece, <int64_t>LEAST), <int64_t>MOST)
        grain = WORK // (work.piece * sweep.n_parts)
        parallel_for(_run_pieces, &work, (work.n + work.piece - 1) // work.piece, grain if grain > 1 else 1)
        if work.error != OK:
            snprintf(message(), MESSAGE, b"%s", work.text)
        status = <int>work.error
        storage_release(memory)
    for i in range(made):
        if work.programs[i].temporary:
            discard(work.programs[i])
    return status


cdef int _specialize(region_run_t *work, int number, const value_t *arguments, array_t *model) noexcept nogil:
    """Make a program ready for operands that are arguments, or look like `model`."""
    cdef const part_t *part = &work.sweep.parts[number]
    cdef value_t[<int>MAX_INPUTS] values
    cdef specialized_t *made
    cdef int k, status = OK
    for k in range(part.program.n_inputs):
        if part.inputs[k] < work.sweep.n_arguments:
            values[k] = arguments[part.inputs[k]]
        else:
            set_array(&values[k], model)
    made = specialize(part.program, values, &status)
    if made == NULL:
        return status
    work.programs[number] = made
    work.n_buffers, work.width = max(work.n_buffers, made.n_buffers), max(work.width, <int64_t>made.width)
    work.n_calls += made.n_steps
    return OK


cdef void _flatten(region_run_t *work) noexcept nogil:
    """The steps of all programs as one list of calls; what is the same for all elements is computed at once."""
    cdef const sweep_t *sweep = work.sweep
    cdef int first_buffer = sweep.n_arguments + sweep.n_results + sweep.n_rooms
    cdef const specialized_t *program
    cdef const step_t *step
    cdef sweep_call_t *call = work.calls
    cdef char *numbers[<int>MAX_BUFFERS]          # where a buffer would hold a number, that
    cdef int64_t[<int>MAX_BUFFERS] buffers        # steps in them
    cdef int64_t varies, one = 1
    cdef int i, j, k, slot
    for i in range(sweep.n_parts):
        program = work.programs[i]
        for j in range(program.n_steps):
            step = &program.steps[j]
            memset(call, 0, sizeof(sweep_call_t))
            call.loop, call.data, call.n_inputs = step.loop, step.data, step.n_inputs
            varies = 0
            for k in range(step.n_inputs):
                slot = step.inputs[k]
                if slot < program.n_inputs:
                    call.operands[k] = sweep.parts[i].inputs[slot]
                    call.steps[k] = work.steps[call.operands[k]]
                    if call.steps[k] == 0:
                        call.numbers[k] = work.places[call.operands[k]]
                elif slot < program.n_inputs + program.n_cells:
                    call.numbers[k] = <char *>program.cells[slot - program.n_inputs].value
                else:
                    slot -= program.n_inputs + program.n_cells
                    call.operands[k], call.steps[k] = first_buffer + slot, buffers[slot]
                    call.numbers[k] = numbers[slot]
                varies |= call.steps[k]
            k = step.n_inputs
            if step.out == OUT_SLOT:
                call.operands[k], call.steps[k] = sweep.parts[i].out, work.size
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


cdef void _find_chains(region_run_t *work) noexcept nogil:
    """Calls of cheap operations of one precision that follow each other; what nobody else reads is not kept."""
    cdef const sweep_t *sweep = work.sweep
    cdef bint read[<int>MAX_PLACES + <int>MAX_BUFFERS]         # by a call after this one, or by others
    cdef int kinds[3]
    cdef int i, k, out, before, kept, chained = 0
    cdef sweep_call_t *call
    cdef const sweep_call_t *last
    memset(read, 0, sizeof(read))
    for i in range(sweep.n_arguments, sweep.n_arguments + sweep.n_results):
        read[i] = True
    for i in range(work.n_calls - 1, -1, -1):
        call = &work.calls[i]
        out = call.operands[call.n_inputs]
        before = -1               # what is in registers
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


cdef void _fail(region_run_t *work, int status) noexcept nogil:
    if atomic_claim(&work.error, OK, status):
        snprintf(work.text, sizeof(work.text), b"%s", message())


cdef inline bint _is_one_number(const array_t *array) noexcept nogil:
    """Is it the same for all elements?"""
    cdef int i
    for i in range(array.ndim):
        if array.shape[i] > 1 and array.strides[i] != 0:
            return False
    return True


cdef int _place_chains(const region_run_t *work, char **data, chain_step_t *steps, char ***moving) noexcept nogil:
    """The steps of chains on a piece; -> how many pointers move on with the pieces."""
    cdef const sweep_call_t *call
    cdef const char **pointers[3]
    cdef int i, k, n_moving = 0, n_held = work.sweep.n_arguments + work.sweep.n_results
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


cdef inline void _call(const sweep_call_t *call, char **data, int64_t start, int64_t n) noexcept nogil:
    """n elements of a piece from `start` on."""
    cdef char *pointers[MAX_ARITY + 1]
    cdef int k
    for k in range(call.n_inputs + 1):
        pointers[k] = data[call.operands[k]] + start * call.steps[k] if call.numbers[k] == NULL else call.numbers[k]
    call.loop(pointers, &n, call.steps, call.data)


cdef void _run_pieces(void *context, int64_t begin, int64_t end) noexcept nogil:
    """Some pieces, with rooms and buffers of this thread's own."""
    cdef region_run_t *work = <region_run_t *>context
    cdef const sweep_t *sweep = work.sweep
    cdef sweep_call_t *call
    cdef chain_step_t *steps
    cdef char ***moving
    cdef char *data[<int>MAX_PLACES + <int>MAX_BUFFERS]
    cdef int64_t place, n, done, row = work.piece * work.size, width = work.piece * work.width
    cdef int64_t rooms = sweep.n_rooms * row + work.n_buffers * width
    cdef int i, k, n_moving, n_held = sweep.n_arguments + sweep.n_results
    cdef storage_t *storage = storage_new(rooms + work.n_calls * (sizeof(chain_step_t) + 3 * sizeof(char **)))
    if storage == NULL:
        _fail(work, MEMORY_ERROR)
        return
    for i in range(n_held):
        data[i] = work.places[i] + begin * work.piece * work.steps[i]
    for i in range(sweep.n_rooms):
        data[n_held + i] = storage.data + i * row
    for i in range(work.n_buffers):
        data[n_held + sweep.n_rooms + i] = storage.data + sweep.n_rooms * row + i * width
    steps = <chain_step_t *>(storage.data + rooms)
    moving = <char ***>(steps + work.n_calls)
    n_moving = _place_chains(work, data, steps, moving)
    for place in range(begin, end):
        if atomic_load(&work.error) != OK:
            break
        n = min(work.piece, work.n - place * work.piece)
        if work.n >= FAR and place + 1 < end:
            for i in range(n_held):
                if work.steps[i]:
                    fetch(data[i] + row, min(work.piece, work.n - (place + 1) * work.piece) * work.size,
                          i >= sweep.n_arguments)
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
            data[i] += work.piece * work.steps[i]
        for i in range(n_moving):
            moving[i][0] += row
        if loop_status() != OK:
            _fail(work, loop_status())
            set_loop_status(OK)
    storage_release(storage)
