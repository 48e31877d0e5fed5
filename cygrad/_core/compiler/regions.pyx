"""
Element-wise programs made while a recording is lowered, and sweeps: several of them in one pass over memory.

A sweep runs all of its programs on a piece of some hundred elements, then on the next one. What only the sweep itself
reads never leaves the caches. So that little is done for a piece but the loops, their steps are one list of calls. Each
program does with each element what it would do with all of them at a time, so bits are the same; and pieces depend on
the problem alone, so they are for any number of threads.
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
from cygrad._core.primitives.primitive_table cimport loop_status, loop_t, primitives, set_loop_status
from cygrad._core.primitives.short_loops cimport WHOLE, short_loop, short_loop_t
from cygrad._core.table.operator cimport Operator
from cygrad._core.threads.parallel cimport parallel_for

cdef extern from "simd/fetch.h" nogil:
    void fetch(const char *memory, int64_t nbytes, bint written)

cdef enum:
    CACHED = 3 << 14          # bytes of all places and buffers together that a piece should take
    LEAST = 256               # elements of a piece
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
                   tuple([program.code[i].inputs[k] for k in range(3) if program.code[i].inputs[k] >= 0]))
                  for i in range(program.n_instructions)])
    return program.n_inputs, constants, code, program.result


def primitive_name(int number):
    """What the instructions call it."""
    return primitives[number].name.decode()


def primitive_cost(int number):
    """What it costs for an element, in additions."""
    return primitives[number].cost


def number_everywhere(Held held not None):
    """The number that all elements of an array of float32 or float64 are, if only one lies in memory; else None."""
    if not _is_one_number(held.array) or held.array.size == 0:
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
            for k in range(3):
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
    short_loop_t quick        # ours for the same, or NULL
    int32_t n_inputs
    int32_t once              # what it makes is the same for all elements
    int32_t operands[4]       # inputs, then the result
    char *numbers[4]          # where the operand is a number, that
    int64_t steps[4]          # bytes from one element to the next; 0: the same for all


cdef struct region_run_t:
    const sweep_t *sweep
    specialized_t *programs[<int>MAX_PLACES]
    sweep_call_t *calls
    int32_t n_calls
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
        memory = storage_new(work.n_calls * sizeof(sweep_call_t))
        status = OK if memory != NULL else MEMORY_ERROR
    if status == OK:
        work.calls = <sweep_call_t *>memory.data
        _flatten(&work)
        work.piece = CACHED // (places * work.size + work.n_buffers * work.width) // 16 * 16
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
    """The steps of all programs as one list of calls."""
    cdef const sweep_t *sweep = work.sweep
    cdef int first_buffer = sweep.n_arguments + sweep.n_results + sweep.n_rooms
    cdef const specialized_t *program
    cdef const step_t *step
    cdef sweep_call_t *call = work.calls
    cdef int64_t[<int>MAX_BUFFERS] buffers        # steps in them
    cdef int64_t varies
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
                elif slot < program.n_inputs + program.n_cells:
                    call.numbers[k] = <char *>program.cells[slot - program.n_inputs].value
                else:
                    slot -= program.n_inputs + program.n_cells
                    call.operands[k], call.steps[k] = first_buffer + slot, buffers[slot]
                varies |= call.steps[k]
            k = step.n_inputs
            if step.out == OUT_SLOT:
                call.operands[k], call.steps[k] = sweep.parts[i].out, work.size
            else:
                slot = step.out - program.n_inputs - program.n_cells
                call.operands[k], call.steps[k] = first_buffer + slot, step.out_size
                call.once, buffers[slot] = varies == 0, step.out_size if varies else 0
            if not call.once:
                call.quick = short_loop(call.loop, call.data, call.steps)
            call += 1


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


cdef void _run_pieces(void *context, int64_t begin, int64_t end) noexcept nogil:
    """Some pieces, with rooms and buffers of this thread's own."""
    cdef region_run_t *work = <region_run_t *>context
    cdef const sweep_t *sweep = work.sweep
    cdef sweep_call_t *call
    cdef char *data[<int>MAX_PLACES + <int>MAX_BUFFERS]
    cdef char *pointers[4]
    cdef int64_t place, start, n, one = 1, rooms = sweep.n_rooms * work.piece * work.size
    cdef int i, k, n_held = sweep.n_arguments + sweep.n_results
    cdef storage_t *storage = storage_new(rooms + work.n_buffers * work.width * work.piece + 64)
    if storage == NULL:
        _fail(work, MEMORY_ERROR)
        return
    for i in range(sweep.n_rooms):
        data[n_held + i] = storage.data + i * work.piece * work.size
    for i in range(work.n_buffers):
        data[n_held + sweep.n_rooms + i] = storage.data + rooms + i * work.piece * work.width
    for place in range(begin, end):
        if atomic_load(&work.error) != OK:
            break
        start = place * work.piece
        n = min(work.piece, work.n - start)
        for i in range(n_held):
            data[i] = work.places[i] + start * work.steps[i]
            if work.steps[i] and work.n >= FAR and place + 1 < end:
                fetch(data[i] + n * work.size, min(work.piece, work.n - start - n) * work.size,
                      i >= sweep.n_arguments)
        for i in range(work.n_calls):
            call = &work.calls[i]
            for k in range(call.n_inputs + 1):
                pointers[k] = data[call.operands[k]] if call.numbers[k] == NULL else call.numbers[k]
            # What is left over behind whole vectors is NumPy's in any case.
            if call.quick != NULL and n % WHOLE == 0:
                call.quick(pointers[0], pointers[1], pointers[call.n_inputs], n)
            else:
                call.loop(pointers, &one if call.once else &n, call.steps, call.data)
        if loop_status() != OK:
            _fail(work, loop_status())
            set_loop_status(OK)
    storage_release(storage)
