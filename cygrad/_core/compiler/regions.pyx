"""
Element-wise programs made while a recording is lowered, and sweeps: several of them in one pass over memory.

A sweep runs all of its programs on a piece of some hundred elements, then on the next one. What only the sweep itself
reads never leaves the caches. Each program does with each element what it would do with all of them at a time, so bits
are the same; and pieces depend on the problem alone, so they are for any number of threads.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t
from libc.stdio cimport snprintf
from libc.stdlib cimport calloc, free
from libc.string cimport memset
from cygrad._core.arrays.array cimport MAX_DIMS, array_empty, array_empty_like, array_meta, array_t, release
from cygrad._core.arrays.dtype cimport FLOAT32, FLOAT64, itemsize
from cygrad._core.arrays.value cimport set_array, value_t
from cygrad._core.compiler.recorder cimport Constant, Held, lent
from cygrad._core.elementwise.elementwise cimport evaluate, forget, instruction_t, program_t
from cygrad._core.graph.boxing cimport plain_object
from cygrad._core.memory.atomic cimport atomic_claim, atomic_load
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, OK, message
from cygrad._core.memory.storage cimport storage_new, storage_release, storage_t
from cygrad._core.primitives.primitive_table cimport primitives
from cygrad._core.table.operator cimport Operator
from cygrad._core.threads.parallel cimport parallel_for

cdef extern from "simd/fetch.h" nogil:
    void fetch(const char *memory, int64_t nbytes, bint written)

cdef enum:
    CACHED = 1 << 18          # bytes of all places together that a piece should take
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


def number_everywhere(Held held not None):
    """The number that all elements of an array of float32 or float64 are, if only one lies in memory; else None."""
    if not _is_one_number(held.array) or held.array.size == 0:
        return None
    if held.array.dtype == FLOAT32:
        return (<float *>held.array.data)[0]
    return (<double *>held.array.data)[0] if held.array.dtype == FLOAT64 else None


def layout_of(Held model not None, tuple shape not None):
    """The layout of an array of another shape, row-major, that is otherwise like this one."""
    cdef Held made = Held.__new__(Held)
    cdef int64_t[MAX_DIMS] sizes
    cdef array_t *array
    cdef int i
    for i in range(len(shape)):
        sizes[i] = shape[i]
    array = array_empty(lent(model).dtype, len(shape), sizes)
    if array != NULL:
        made.array = array_meta(array)
        release(array)
    if made.array == NULL:
        raise MemoryError("compile: no memory for a layout")
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


cdef struct region_run_t:
    const sweep_t *sweep
    array_t *arrays[<int>MAX_PLACES]      # arguments and results
    int64_t n
    int64_t piece             # elements
    int dtype
    int64_t error
    char text[256]


cdef int run_sweep(const sweep_t *sweep, const value_t *arguments, array_t **layouts, const int32_t *slots,
                   array_t **table) noexcept nogil:
    cdef region_run_t work
    cdef int64_t places = sweep.n_arguments + sweep.n_results + sweep.n_rooms, grain
    cdef int i
    work.sweep, work.error = sweep, OK
    for i in range(sweep.n_arguments):
        work.arrays[i] = arguments[i].of.array
    for i in range(sweep.n_results):
        table[slots[i]] = array_empty_like(layouts[slots[i]], -1)
        if table[slots[i]] == NULL:
            return MEMORY_ERROR
        work.arrays[sweep.n_arguments + i] = table[slots[i]]
    work.n, work.dtype = layouts[slots[0]].size, layouts[slots[0]].dtype
    work.piece = CACHED // (places * itemsize(work.dtype)) // 16 * 16
    work.piece = min(max(work.piece, <int64_t>LEAST), <int64_t>MOST)
    grain = WORK // (work.piece * sweep.n_parts)
    parallel_for(_run_pieces, &work, (work.n + work.piece - 1) // work.piece, grain if grain > 1 else 1)
    if work.error != OK:
        snprintf(message(), MESSAGE, b"%s", work.text)
    return <int>work.error


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
    """Some pieces, with rooms of this thread's own."""
    cdef region_run_t *work = <region_run_t *>context
    cdef const sweep_t *sweep = work.sweep
    cdef array_t *array
    cdef array_t[<int>MAX_PLACES] views
    cdef value_t[<int>MAX_INPUTS] values
    cdef storage_t *storage = NULL
    cdef int64_t[1] shape, strides
    cdef int64_t place, size = itemsize(work.dtype), start
    cdef int i, k, status, n_held = sweep.n_arguments + sweep.n_results, n_places = n_held + sweep.n_rooms
    if sweep.n_rooms:
        storage = storage_new(sweep.n_rooms * work.piece * size)
        if storage == NULL:
            _fail(work, MEMORY_ERROR)
            return
    strides[0] = 1
    memset(views, 0, n_places * sizeof(array_t))
    for i in range(n_places):
        array = work.arrays[i] if i < n_held else NULL
        views[i].count, views[i].dtype, views[i].contiguous = 2, work.dtype, True
        views[i].storage = storage if array == NULL else array.storage
        views[i].shape, views[i].strides = shape, strides
        if array == NULL:
            views[i].data, views[i].ndim = storage.data + (i - n_held) * work.piece * size, 1
        elif _is_one_number(array):
            views[i].data, views[i].size = array.data, 1
        else:
            views[i].ndim = 1
    for place in range(begin, end):
        if atomic_load(&work.error) != OK:
            break
        start = place * work.piece
        shape[0] = min(work.piece, work.n - start)
        for i in range(n_places):
            if views[i].ndim:
                views[i].size = shape[0]
                if i < n_held:
                    views[i].data = work.arrays[i].data + start * size
                    if work.n >= FAR and place + 1 < end:
                        fetch(views[i].data + shape[0] * size, min(work.piece, work.n - start - shape[0]) * size,
                              i >= sweep.n_arguments)
        for i in range(sweep.n_parts):
            for k in range(sweep.parts[i].program.n_inputs):
                set_array(&values[k], &views[sweep.parts[i].inputs[k]])
            status = evaluate(sweep.parts[i].program, values, 0, &views[sweep.parts[i].out], NULL)
            if status != OK:
                _fail(work, status)
                break
    storage_release(storage)
