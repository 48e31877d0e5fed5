"""
Execution of a specialized expression over a loop nest, tile by tile.

A tile is a part of a row, or several short rows. Operands without a uniform stride in it are first gathered into a
buffer, and so are strided ones if a loop might round them differently: results do not depend on the layout of the
inputs. Tiles depend only on the problem, never on the threads.
"""

from libc.stdint cimport int64_t, uint16_t, uintptr_t
from libc.stdio cimport snprintf
from libc.stdlib cimport free, llabs, malloc
from libc.string cimport memset
from cygrad._core.arrays.array cimport (
    ARRAY, DIMENSIONED, MAX_DIMS, WEAK, array_t, common_dtype, dtype_of, rank_of, resolve_weak,
)
from cygrad._core.arrays.dtype cimport (
    BOOL, DTYPES, FLOAT16, FLOAT32, FLOAT64, INT64, complex_of, computed_in, default_float, dtype_name, is_complex,
    is_differentiable, is_integral, is_short, itemsize, promotable, promote, real_of,
)
from cygrad._core.elementwise.copying cimport nest_pointer
from cygrad._core.elementwise.expression cimport MAX_REGISTERS, primitive_call_t
from cygrad._core.memory.atomic cimport atomic_claim, atomic_decrement, atomic_increment, atomic_load, atomic_store
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, NOT_IMPLEMENTED, OK, RUNTIME_ERROR, message
from cygrad._core.primitives.primitive_table cimport (
    CHAIN_CODE, ELEMENTS, FLOAT, HELD, MAX_ARITY, NUMBER, SELECT, WHOLE, cast_loops, chain_operation, chain_step_t,
    entries, entry_t, loop_status, number_to_cell, primitive as primitive_of, primitives, run_chain, set_loop_status,
    short_loop, short_loop_t, short_operation,
)
from cygrad._core.threads.grain cimport CHUNK, rows_per_chunk
from cygrad._core.threads.parallel cimport parallel_for


# ------------------------------------------------------------------------------------------------------------ nan watch

# Looking for nan while gradients are computed: what has been seen since the watch began, and scans of arrays.
#
# An expression that is watched for nan checks each tile right after writing it, when the tile is in
# the first-level cache: that costs little, and no second pass over memory. If it is plain arithmetic on gradients,
# which hold no nan, the processor's status flag is sufficient. (Not for saved values: a nan
# among them propagates without setting the flag.) Results of other kernels are scanned afterwards.

cdef extern from "elementwise/tile_rows.h" nogil:
    bint (*nan_in_floats)(const float *x, int64_t n, int64_t step)
    bint (*nan_in_doubles)(const double *x, int64_t n, int64_t step)
    bint (*nan_in_shorts)(const uint16_t *x, int64_t n, int64_t step, int infinity)
    bint repeat_rows(char *to, const char *data, int64_t size, int64_t step, int64_t stride, int64_t length,
                     int64_t rows)

cdef extern from * nogil:
    """
    #include <fenv.h>
    #ifdef FE_INVALID
    enum { CYGRAD_INVALID = FE_INVALID, has_status_flags = 1 };
    #else
    enum { CYGRAD_INVALID = 0, has_status_flags = 0 };
    #endif
    """
    int has_status_flags, invalid "CYGRAD_INVALID"
    int feclearexcept(int)
    int fetestexcept(int)

cdef extern from * nogil:
    """
    #include "memory/thread_variable.h"
    THREAD_VARIABLE struct { int on, nan, plain, kernels; } own;
    """
    watch_t own


cdef watch_t *watch() noexcept nogil:
    return <watch_t *>&own


cdef int how_to_watch() noexcept nogil:
    if not watch().on:
        return 0
    return LISTEN if watch().plain and has_status_flags else LOOK


cdef void clear_invalid() noexcept nogil:
    feclearexcept(invalid)


cdef bint was_invalid() noexcept nogil:
    return fetestexcept(invalid) != 0


cdef bint may_hold_nan(int watched, const char *data, int dtype, int64_t n) noexcept nogil:
    return was_invalid() if watched == LISTEN else row_holds_nan(data, dtype, n, itemsize(dtype))


cdef void begin_watch() noexcept nogil:
    watch().on += 1
    atomic_increment(&nan_watchers)


cdef void end_watch() noexcept nogil:
    watch().on -= 1
    atomic_decrement(&nan_watchers)


cdef bint row_holds_nan(const char *data, int dtype, int64_t n, int64_t step) noexcept nogil:
    cdef int64_t size = itemsize(dtype)
    if not is_differentiable(dtype):
        return False
    if step == 0:
        n = 1 if n else 0
    if is_complex(dtype):
        if n > 1 and step != size:
            return (row_holds_nan(data, real_of(dtype), n, step) or
                    row_holds_nan(data + size // 2, real_of(dtype), n, step))
        n, step, size, dtype = 2 * n, size // 2, size // 2, real_of(dtype)
    if is_short(dtype):
        return nan_in_shorts(<const uint16_t *>data, n, step, 0x7c00 if dtype == FLOAT16 else 0x7f80)
    if n <= 1:
        step = size
    if dtype == FLOAT32:
        return nan_in_floats(<const float *>data, n, step)
    return nan_in_doubles(<const double *>data, n, step)


ctypedef struct scan_t:
    const array_t *array
    int64_t found


cdef void _scan(void *context, int64_t begin, int64_t end) noexcept nogil:
    cdef scan_t *scan = <scan_t *>context
    cdef int64_t size = itemsize(scan.array.dtype)
    if atomic_load(&scan.found) == 0 and row_holds_nan(scan.array.data + begin * size, scan.array.dtype, end - begin,
                                                       size):
        atomic_store(&scan.found, 1)


cdef bint holds_nan(const array_t *array) noexcept nogil:
    cdef scan_t scan = scan_t(array, 0)
    cdef int64_t[MAX_DIMS] shape, strides, position
    cdef int64_t size = itemsize(array.dtype)
    cdef const char *data = array.data
    cdef int d, ndim = 0, inner = 0
    if array.size == 0 or not is_differentiable(array.dtype):
        return False
    if array.contiguous:
        parallel_for(_scan, &scan, array.size, CHUNK)
        return scan.found != 0
    # Row by row along the dimension with the smallest stride; dimensions with stride 0 are scanned once.
    for d in range(array.ndim):
        if array.shape[d] > 1 and array.strides[d] != 0:
            shape[ndim] = array.shape[d]
            strides[ndim] = array.strides[d] * size
            if llabs(strides[ndim]) < llabs(strides[inner]):
                inner = ndim
            position[ndim] = 0
            ndim += 1
    if ndim == 0:
        return row_holds_nan(data, array.dtype, 1, size)
    while True:
        if row_holds_nan(data, array.dtype, shape[inner], strides[inner]):
            return True
        d = 0
        while d < ndim:
            if d != inner:
                position[d] += 1
                data += strides[d]
                if position[d] < shape[d]:
                    break
                data -= position[d] * strides[d]
                position[d] = 0
            d += 1
        if d == ndim:
            return False


# ----------------------------------------------------------------------------------------------------------- specialize

# Expressions made ready for the dtypes of their inputs: loops found, casts inserted, buffers assigned.
#
# Each instruction's operands meet in the dtype that the promotion rules give them; where an operand has
# another one, a cast becomes a step of its own, so that arrays are cast tile by tile. Numbers are held in
# cells and cast once per call. Results of numbers alone are promoted as numbers.
#
# Operations in float16, bfloat16 or complex32 are computed in float32 or complex64, and only the result of an
# expression is rounded, once.

cdef int _remainder = primitive_of("remainder"), _fmod = primitive_of("fmod")

cdef enum:
    MAX_CACHED = 64           # cached specializations per expression; further ones are made for each call
    MAX_STEPS = 256
    MAX_LIVE_SLOTS = 512
    NO_SLOT = -2

# State of a register while instructions are converted to steps.
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


cdef specialized_t *specialize(expression_t *expression, const value_t *inputs, int *status) noexcept nogil:
    cdef uint64_t[2] key
    cdef int64_t *head = <int64_t *>&expression.specialized
    cdef specialized_t *found
    cdef int n = 0
    _set_key(inputs, expression.n_inputs, key)
    found = <specialized_t *>atomic_load(head)
    while found != NULL:
        if found.key[0] == key[0] and found.key[1] == key[1]:
            return found
        found = found.next
        n += 1
    found = _build(expression, inputs, status)
    if found == NULL:
        return NULL
    found.key[0] = key[0]
    found.key[1] = key[1]
    found.temporary = n >= MAX_CACHED
    # Two threads can publish the same one; lookups return the first.
    while not found.temporary:
        found.next = <specialized_t *>atomic_load(head)
        if atomic_claim(head, <int64_t>found.next, <int64_t>found):
            break
    return found


cdef void discard(specialized_t *specialized) noexcept nogil:
    free(specialized.steps)
    free(specialized)


cdef void forget(expression_t *expression) noexcept nogil:
    cdef specialized_t *found = <specialized_t *>expression.specialized
    cdef specialized_t *next
    expression.specialized = NULL
    while found != NULL:
        next = found.next
        discard(found)
        found = next


cdef specialized_t *_build(expression_t *expression, const value_t *inputs, int *status) noexcept nogil:
    cdef builder_t *builder = <builder_t *>malloc(sizeof(builder_t))
    cdef specialized_t *made = <specialized_t *>malloc(sizeof(specialized_t))
    if made != NULL:
        made.steps = NULL
    if builder != NULL and made != NULL:
        builder.made = made
        status[0] = _build_steps(builder, expression, inputs)
        if status[0] == OK:
            made.steps = <step_t *>malloc(builder.n_steps * sizeof(step_t))
            status[0] = OK if made.steps != NULL else MEMORY_ERROR
        if status[0] == OK:
            status[0] = _assign_buffers(builder, expression)
    else:
        status[0] = MEMORY_ERROR
    if status[0] == MEMORY_ERROR:
        snprintf(message(), MESSAGE, b"out of memory for an element-wise expression")
    free(builder)
    if status[0] != OK:
        if made != NULL:
            free(made.steps)
        free(made)
        return NULL
    return made


cdef int _build_steps(builder_t *builder, expression_t *expression, const value_t *inputs) noexcept nogil:
    """Create steps on virtual slots: inputs, cells (up to MAX_CELLS), then one for each step."""
    cdef specialized_t *made = builder.made
    cdef register_t *register
    cdef const value_t *value
    cdef int i, d, status, n_values = expression.n_inputs + expression.n_constants
    builder.n_steps = 0
    builder.n_cells = 0
    builder.n_slots = expression.n_inputs + MAX_CELLS
    made.n_inputs = expression.n_inputs
    made.cost = 0
    made.exact = True
    made.partial = False
    for i in range(n_values):
        register = &builder.registers[i]
        value = &inputs[i] if i < expression.n_inputs else &expression.constants[i - expression.n_inputs]
        register.dtype = dtype_of(value)
        register.rank = rank_of(value)
        register.number = -1 if value.kind == ARRAY else i
        for d in range(DTYPES):
            register.slot[d] = NO_SLOT
        if register.number < 0:
            register.slot[register.dtype] = i
    for i in range(expression.n_instructions):
        status = _add_instruction(builder, expression, &expression.code[i])
        if status != OK:
            return status
    return _add_result(builder, expression)


cdef int _add_instruction(builder_t *builder, expression_t *expression,
                          const primitive_call_t *instruction) noexcept nogil:
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
        code = resolve_weak(code)      # where(array, number, number)
    computed = code
    if is_short(code) and (entries[primitive][code].loop == NULL or expression.n_instructions > 1):
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
        slots[i] = _slot_in(builder, expression, instruction.inputs[i], BOOL if i < operands_from else code,
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


cdef int _slot_in(builder_t *builder, expression_t *expression, int index, int dtype, int computed,
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
        return _slot_of(builder, expression, index, computed)
    slots[0] = _slot_of(builder, expression, index, dtype)
    return slots[0] if slots[0] < 0 else _add_step(builder, cast_loops[dtype][computed], NULL, 1, slots, computed)


cdef int _add_step(builder_t *builder, loop_t loop, void *data, int n, const int *slots,
                   int dtype) noexcept nogil:
    """Return the slot of its result, or -1 if there are too many."""
    cdef step_t *step
    cdef int i
    if builder.n_steps >= MAX_STEPS:
        snprintf(message(), MESSAGE, b"element-wise expression: more than %d steps. Split it.", <int>MAX_STEPS)
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


cdef int _slot_of(builder_t *builder, expression_t *expression, int index, int dtype) noexcept nogil:
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
        snprintf(message(), MESSAGE, b"element-wise expression: more than %d numbers. Split it.", <int>MAX_CELLS)
        return -1
    cell = &builder.made.cells[builder.n_cells]
    cell.dtype = dtype
    cell.input = register.number if register.number < expression.n_inputs else -1
    if cell.input < 0:
        number_to_cell(&expression.constants[register.number - expression.n_inputs], dtype, cell.value)
    register.slot[dtype] = expression.n_inputs + builder.n_cells
    builder.n_cells += 1
    return register.slot[dtype]


cdef int _add_result(builder_t *builder, expression_t *expression) noexcept nogil:
    """Make the last step write the result."""
    cdef register_t *register = &builder.registers[expression.result]
    cdef int dtype = resolve_weak(register.dtype) if register.rank == WEAK else register.dtype
    cdef int slot = _slot_of(builder, expression, expression.result, dtype)
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


cdef int _assign_buffers(builder_t *builder, expression_t *expression) noexcept nogil:
    """
    Map virtual slots to inputs, cells and few buffers, each reused once its value is dead.

    A step never writes a buffer that it reads: a value that is the same for all elements occupies only the first
    element of its buffer.
    """
    cdef specialized_t *made = builder.made
    cdef step_t *step
    cdef int first = expression.n_inputs + MAX_CELLS
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
                snprintf(message(), MESSAGE, b"element-wise expression: more than %d temporaries. Split it.",
                         <int>MAX_BUFFERS)
                return RUNTIME_ERROR
            made.n_buffers += 1
        in_use[b] = i
        step.out = buffer_of[i] = expression.n_inputs + made.n_cells + b
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
    made.direct = made.direct and made.steps[0].n_inputs == expression.n_inputs
    return OK


# ---------------------------------------------------------------------------------------------------------------- tiles

cdef extern from "simd/fetch.h" nogil:
    void fetch(const char *memory, int64_t nbytes, bint written)

cdef enum:
    FAR = 1 << 18         # elements from which operands exceed the caches anyway
    LONG_ROW = 256        # elements from which a row is worth a separate tile
    SHORTEST_ROW = 64     # elements from which a row is worth a call of a short loop
    LARGEST = 4096
    MAX_LINKS = 16        # steps of a chain
    SHORTEST_CHAIN = 256  # elements of a block of a chain
    PORTION = 8192        # elements scanned for nan at a time


cdef int64_t tile_size(int64_t bytes) noexcept nogil:
    cdef int64_t n
    if bytes == 0:
        return CHUNK           # no buffers to keep in cache: as much as a thread takes at a time
    n = TARGET // bytes // SMALLEST * SMALLEST
    return SMALLEST if n < SMALLEST else LARGEST if n > LARGEST else n


cdef void place_cells(const specialized_t *expression, const value_t *inputs, slots_t *slots,
                      double complex *numbers) noexcept nogil:
    cdef int i
    for i in range(expression.n_cells):
        slots.steps[expression.n_inputs + i] = 0
        if expression.cells[i].input < 0:
            slots.data[expression.n_inputs + i] = <char *>expression.cells[i].value
        else:
            slots.data[expression.n_inputs + i] = <char *>&numbers[i]
            number_to_cell(&inputs[expression.cells[i].input], expression.cells[i].dtype, &numbers[i])


cdef inline void _run_step(const specialized_t *expression, const step_t *step, slots_t *slots, char *workspace,
                           int64_t capacity, int64_t done, int64_t n) noexcept nogil:
    """Run one step on n elements from number `done` on."""
    cdef char *pointers[MAX_ARITY + 1]
    cdef int64_t steps[MAX_ARITY + 1]
    cdef int k, slot
    cdef int64_t count = n, varies = 0
    for k in range(step.n_inputs):
        slot = step.inputs[k]
        pointers[k] = slots.data[slot] + done * slots.steps[slot]
        steps[k] = slots.steps[slot]
        varies |= steps[k]
    slot = step.out
    if slot == OUT_SLOT:
        pointers[step.n_inputs] = slots.out + done * slots.out_step
        steps[step.n_inputs] = slots.out_step
    else:
        # Compute a value that is the same for all elements once.
        if varies == 0:
            count = 1
        slots.data[slot] = _buffer(expression, slot, workspace, capacity)
        slots.steps[slot] = step.out_size if varies else 0
        if done and done + n > capacity:               # elements left over by a chain
            slots.data[slot] -= done * slots.steps[slot]
        pointers[step.n_inputs] = slots.data[slot] + done * slots.steps[slot]
        steps[step.n_inputs] = step.out_size
    step.loop(pointers, &count, steps, step.data)


cdef inline char *_buffer(const specialized_t *expression, int slot, char *workspace, int64_t capacity) noexcept nogil:
    return workspace + (slot - expression.n_inputs - expression.n_cells) * capacity * expression.width


cdef int _find_links(const specialized_t *expression, const step_t *first, slots_t *slots, char *workspace,
                     int64_t capacity, chain_step_t *links) noexcept nogil:
    """Return how many of the steps that may be one chain form one, by the strides of their operands; or 0."""
    cdef const char *pointers[2]
    cdef int[2] kinds
    cdef const step_t *step
    cdef int64_t size = first.out_size
    cdef int i, k, slot, count = 0, held = NO_SLOT
    for i in range(min(<int>first.links, <int>MAX_LINKS)):
        step = first + i
        kinds[0] = kinds[1] = HELD
        pointers[0] = pointers[1] = NULL
        for k in range(step.n_inputs):
            slot = step.inputs[k]
            if slot == held:
                continue
            pointers[k] = slots.data[slot]
            kinds[k] = ELEMENTS if slots.steps[slot] == size else NUMBER
            if kinds[k] == NUMBER and (slots.steps[slot] or slot >= expression.n_inputs + expression.n_cells):
                break
        else:
            if kinds[0] == NUMBER and (step.n_inputs == 1 or kinds[1] == NUMBER) or (
                    step.out == OUT_SLOT and slots.out_step != size):
                break
            links[i].code = CHAIN_CODE(step.operation >> 1, kinds[0], kinds[1], step.kept or step.out == OUT_SLOT)
            links[i].left, links[i].right, links[i].out = pointers[0], pointers[1], slots.out
            if step.out != OUT_SLOT:
                links[i].out = slots.data[step.out] = _buffer(expression, step.out, workspace, capacity)
                slots.steps[step.out] = size
            held = step.out
            count += 1
            continue
        break
    if count < 2:
        return 0
    step = first + count - 1
    if not step.kept and step.out != OUT_SLOT:
        links[count - 1].code += CHAIN_CODE(0, 0, 0, 1)
    return count


cdef void run_steps(const specialized_t *expression, slots_t *slots, char *workspace, int64_t capacity,
                    int64_t n) noexcept nogil:
    cdef int i
    if n >= SHORTEST_CHAIN:
        _run_chains(expression, slots, workspace, capacity, n)
    else:
        for i in range(expression.n_steps):
            _run_step(expression, &expression.steps[i], slots, workspace, capacity, 0, n)


cdef void _run_chains(const specialized_t *expression, slots_t *slots, char *workspace, int64_t capacity,
                      int64_t n) noexcept nogil:
    """Run consecutive steps as chains where possible, and the leftover elements step by step."""
    cdef chain_step_t links[MAX_LINKS]
    cdef int64_t done
    cdef int i = 0, k, chained
    while i < expression.n_steps:
        chained = done = 0
        if expression.steps[i].links > 1:
            chained = _find_links(expression, &expression.steps[i], slots, workspace, capacity, links)
            if chained:
                done = run_chain(expression.steps[i].operation & 1, links, chained, n)
        chained = max(chained, 1)
        if done < n:
            for k in range(i, i + chained):
                _run_step(expression, &expression.steps[k], slots, workspace, capacity, done, n - done)
        i += chained


cdef void _move_rows(const task_t *task, int k, char *tile, int64_t start, int64_t n) noexcept nogil:
    """Gather n elements of operand k, from `start` on, into a tile; or, for operand 0, scatter them."""
    cdef const nest_t *nest = &task.nest
    cdef int64_t[MAX_DIMS] position
    cdef int64_t index, count, column, rows, length = nest.shape[0]
    cdef int64_t steps[2]
    cdef char *pointers[2]
    cdef char *row = nest.data[k]
    cdef int d, first = 1, own = 1 if k == 0 else 0
    cdef int64_t tile_step = task.itemsize[k] if k else task.expression.steps[task.expression.n_steps - 1].out_size
    # Merge rows with a uniform stride in this operand.
    while first < nest.ndim and nest.strides[k][first] == nest.strides[k][first - 1] * nest.shape[first - 1]:
        length *= nest.shape[first]
        first += 1
    column, index = start % length, start // length
    row += column * nest.strides[k][0]
    for d in range(first, nest.ndim):
        position[d] = index % nest.shape[d]
        index //= nest.shape[d]
        row += position[d] * nest.strides[k][d]
    steps[own] = nest.strides[k][0]
    steps[1 - own] = tile_step
    while True:
        count = min(length - column, n)
        rows = 0
        if k and count == length and first < nest.ndim:
            rows = min(n // length, nest.shape[first] - position[first])
            if not repeat_rows(tile, row, tile_step, nest.strides[k][0], nest.strides[k][first], length, rows):
                rows = 0
        if rows == 0:
            pointers[own] = row
            pointers[1 - own] = tile
            task.move[k](pointers, &count, steps, NULL)
            rows = 1
        n -= rows * count
        if n == 0:
            return
        tile += rows * count * tile_step
        row += (rows - 1) * nest.strides[k][first] - column * nest.strides[k][0]
        position[first] += rows - 1
        column = 0
        d = first
        while True:
            position[d] += 1
            row += nest.strides[k][d]
            if position[d] < nest.shape[d]:
                break
            row -= position[d] * nest.strides[k][d]
            position[d] = 0
            d += 1


cdef bint _has_uniform_stride(const nest_t *nest, int k, int dims) noexcept nogil:
    """Return whether the stride is the same throughout the inner dimensions."""
    cdef int d
    for d in range(1, dims):
        if nest.strides[k][d] != nest.strides[k][d - 1] * nest.shape[d - 1]:
            return False
    return True


cdef inline bint _is_directly_addressable(const task_t *task, int k, int64_t size, int dims) noexcept nogil:
    """
    May the steps access operand k directly, with elements `size` bytes apart?

    Tiles of several rows are blocks of that many dimensions, or irregular (0).
    """
    cdef int64_t step = task.nest.strides[k][0]
    return (task.even[k] or task.rows == 0 or (dims and _has_uniform_stride(&task.nest, k, dims))) and (
        step == size or task.expression.exact or step == 0)


cdef void _run_and_look(task_t *task, slots_t *slots, char *workspace, int64_t n) noexcept nogil:
    """Run the steps in small blocks, and scan each for nan while it is in the L1 cache."""
    cdef const specialized_t *expression = task.expression
    cdef int64_t count
    cdef int k
    while n > 0:
        count = n if n < PORTION else PORTION
        run_steps(expression, slots, workspace, task.capacity, count)
        if row_holds_nan(slots.out, expression.dtype, count, slots.out_step):
            atomic_store(&task.nan, 1)
        for k in range(expression.n_inputs):
            if task.nest.data[k + 1] != NULL:
                slots.data[k] += count * slots.steps[k]
        slots.out += count * slots.out_step
        n -= count


cdef void _run_tile(task_t *task, slots_t *slots, char *workspace, int64_t start, int64_t n, char *to,
                    bint first) noexcept nogil:
    """
    Compute the tile of n elements from `start` on, into the result or, if given, into `to`. `first`: it is the first
    one.
    """
    cdef const specialized_t *expression = task.expression
    cdef const nest_t *nest = &task.nest
    cdef char *space = workspace + expression.n_buffers * task.capacity * expression.width
    cdef int64_t out_size = expression.steps[expression.n_steps - 1].out_size
    cdef bint scatter = to == NULL and not task.ready[0]
    cdef int k
    for k in range(1, nest.n):
        if nest.data[k] == NULL:
            continue
        if task.ready[k]:
            slots.data[k - 1] = (nest.data[k] + start * nest.strides[k][0] if task.even[k]
                                 else nest_pointer(nest, k, start))
            slots.steps[k - 1] = nest.strides[k][0]
        else:
            if first or not task.same[k]:
                _move_rows(task, k, space, start, n)
            slots.data[k - 1] = space
            slots.steps[k - 1] = task.itemsize[k]
            space += task.capacity * task.itemsize[k]
    if to != NULL or scatter:
        slots.out = to if to != NULL else space
        slots.out_step = out_size
    else:
        slots.out = (nest.data[0] + start * nest.strides[0][0] if task.even[0]
                     else nest_pointer(nest, 0, start))
        slots.out_step = nest.strides[0][0]
    if task.watched == LOOK:
        _run_and_look(task, slots, workspace, n)
    else:
        run_steps(expression, slots, workspace, task.capacity, n)
    if scatter:
        _move_rows(task, 0, space, start, n)


cdef void _fetch_tile(const task_t *task, int64_t start, int64_t n) noexcept nogil:
    """
    Prefetch the operands of the next tile.

    An expression reads one operand after the other, a few pages of each: too few for the hardware prefetcher.
    """
    cdef const nest_t *nest = &task.nest
    cdef int64_t step
    cdef int k
    for k in range(nest.n):
        step = nest.strides[k][0]
        if nest.data[k] != NULL and task.even[k] and 0 < step <= 16:
            fetch(nest.data[k] + start * step, min(n, nest.size - start) * step, k == 0)


cdef inline void _copy_cells(const task_t *task, slots_t *slots) noexcept nogil:
    cdef int k
    for k in range(task.expression.n_inputs, task.expression.n_inputs + task.expression.n_cells):
        slots.data[k] = task.cells.data[k]
        slots.steps[k] = 0


cdef void produce(void *context, int64_t start, int64_t n, char *to) noexcept nogil:
    cdef task_t *task = <task_t *>context
    cdef char[WORKSPACE + 64] memory
    cdef char *workspace = <char *>((<uintptr_t>memory + 63) & ~<uintptr_t>63)
    cdef slots_t slots
    cdef int64_t count
    _copy_cells(task, &slots)
    while n > 0:
        count = min(n, task.tile)
        # Some operands have a uniform stride only in tiles of whole blocks.
        count = min(count, task.tile - start % task.tile if task.rows
                    else task.nest.shape[0] - start % task.nest.shape[0])
        _run_tile(task, &slots, workspace, start, count, to, True)
        start += count
        n -= count
        to += count * itemsize(task.expression.dtype)


cdef void _run_tiles(void *context, int64_t begin, int64_t end) noexcept nogil:
    """Compute tiles begin..end, with the thread's own workspace and slots."""
    cdef task_t *task = <task_t *>context
    cdef char[WORKSPACE + 64] memory
    cdef char *workspace = <char *>((<uintptr_t>memory + 63) & ~<uintptr_t>63)
    cdef slots_t slots
    cdef int64_t tile, start, n, n_run = 0, length = task.nest.shape[0]
    cdef bint far = task.nest.size >= FAR and task.expression.steps[0].links < task.expression.n_steps
    if task.watched == LISTEN:
        clear_invalid()
    _copy_cells(task, &slots)
    for tile in range(begin, end):
        if task.rows:
            start = tile * task.rows * length
            n = task.rows * length
            if n > task.nest.size - start:
                n = task.nest.size - start
        else:
            start = (tile % task.tiles_per_row) * task.tile
            n = length - start if length - start < task.tile else task.tile
            start += (tile // task.tiles_per_row) * length
        if far and tile + 1 < end:
            _fetch_tile(task, start + n, n)
        _run_tile(task, &slots, workspace, start, n, NULL, n_run == 0 or n > n_run)
        n_run = max(n_run, n)
    if task.watched == LISTEN and was_invalid():
        atomic_store(&task.nan, 1)
    if task.expression.partial and loop_status() != OK:
        if atomic_claim(&task.error, OK, loop_status()):
            snprintf(task.text, sizeof(task.text), b"%s", message())
        set_loop_status(OK)


cdef int _collapsible_dims(const task_t *task, int64_t size) noexcept nogil:
    """Return how many inner dimensions a tile should hold so that broadcast operands are directly addressable; or 0."""
    cdef const nest_t *nest = &task.nest
    cdef int64_t block = nest.shape[0]
    cdef int k, dims = 1
    while dims < nest.ndim and block * nest.shape[dims] <= size:
        block *= nest.shape[dims]
        dims += 1
    for k in range(1, nest.n):
        if block >= LONG_ROW and nest.data[k] != NULL and not task.even[k] and _has_uniform_stride(nest, k, dims):
            return dims
    return 0


cdef bint _is_one_chain(task_t *task) noexcept nogil:
    """Return whether all steps form one chain; then only leftover elements need temporaries."""
    cdef const specialized_t *expression = task.expression
    cdef chain_step_t links[MAX_LINKS]
    cdef slots_t slots
    cdef int k
    if (expression.n_steps == 1 or expression.steps[0].links < expression.n_steps or task.nest.ndim > 1
            or task.move[0] != NULL):
        return False
    slots.out, slots.out_step = NULL, task.nest.strides[0][0]
    for k in range(expression.n_inputs + expression.n_cells):
        slots.data[k], slots.steps[k] = NULL, 0
        if k < expression.n_inputs and task.nest.data[k + 1] != NULL:
            slots.steps[k] = task.nest.strides[k + 1][0]
    for k in range(expression.n_steps):
        if expression.steps[k].kept:
            return False
    return _find_links(expression, expression.steps, &slots, NULL, 0, links) == expression.n_steps


cdef void prepare_task(task_t *task) noexcept nogil:
    """Determine operand access and tile size."""
    cdef nest_t *nest = &task.nest
    cdef const specialized_t *expression = task.expression
    cdef int64_t out_size = expression.steps[expression.n_steps - 1].out_size
    cdef int64_t bytes, size, length = nest.shape[0]
    cdef int k, d, dims = 0
    cdef bint chained = _is_one_chain(task)
    task.error = OK
    task.watched = how_to_watch() if nan_watchers else 0
    task.nan = 0
    # Reserve a buffer for every operand that may have to be gathered or scattered.
    task.rows = 0
    bytes = 0 if chained else expression.n_buffers * expression.width
    for k in range(nest.n):
        task.even[k] = _has_uniform_stride(nest, k, nest.ndim)
        size = task.itemsize[k] if k else out_size
        if nest.data[k] != NULL and not (task.even[k] and _is_directly_addressable(task, k, size, 0)
                                         and (k or task.move[0] == NULL)):
            bytes += size
    size = tile_size(bytes)
    if nest.ndim == 1 or length >= size or length >= LONG_ROW:
        task.tiles_per_row = (length + size - 1) // size
        task.tile = ((length + task.tiles_per_row - 1) // task.tiles_per_row + 15) // 16 * 16
        task.tiles_per_row = (length + task.tile - 1) // task.tile
    else:
        task.rows = size // length
        dims = _collapsible_dims(task, size)
        if dims:
            task.rows = 1
            for k in range(1, dims):
                task.rows *= nest.shape[k]
        task.tile = task.rows * length
    task.capacity = SHORTEST_CHAIN if chained else task.tile
    for k in range(1, nest.n):
        # numbers are in cells
        task.ready[k] = nest.data[k] != NULL and _is_directly_addressable(task, k, task.itemsize[k], dims)
        task.same[k] = task.rows > 0
        for d in range(1, nest.ndim):
            task.same[k] = task.same[k] and nest.strides[k][d] == 0
    task.ready[0] = task.move[0] == NULL and _is_directly_addressable(task, 0, out_size, dims)
    if not task.ready[0] and task.move[0] == NULL:       # same dtype, but no uniform stride: moved without a cast
        task.move[0] = cast_loops[expression.dtype][expression.dtype]


cdef short_loop_t _loop_of_rows(const task_t *task) noexcept nogil:
    """
    Return the loop that computes one row in place, without a tile for a broadcast operand; or NULL. Shorter rows that
    do not fill their vectors are faster in tiles of several.
    """
    cdef const nest_t *nest = &task.nest
    cdef int64_t steps[MAX_ARITY]
    cdef int k
    cdef int64_t shortest = LONG_ROW if nest.shape[0] % WHOLE else SHORTEST_ROW
    if (nest.ndim == 1 or not shortest <= nest.shape[0] <= LARGEST or nan_watchers
            or not task.expression.direct or task.move[0] != NULL or nest.strides[0][0] != task.itemsize[0]):
        return NULL
    for k in range(task.expression.n_inputs):
        steps[k] = nest.strides[k + 1][0]
    return short_loop(task.expression.steps[0].loop, task.expression.steps[0].data, steps)


cdef void _run_rows(void *context, int64_t begin, int64_t end) noexcept nogil:
    cdef task_t *task = <task_t *>context
    cdef const nest_t *nest = &task.nest
    cdef short_loop_t loop = _loop_of_rows(task)
    cdef const step_t *step = &task.expression.steps[0]
    cdef char *data[MAX_OPERANDS]
    cdef char *rest[MAX_OPERANDS]
    cdef int64_t steps[MAX_OPERANDS]
    cdef int64_t row, left = 0, length = nest.shape[0], remainder = length % WHOLE, whole = length - remainder
    cdef int k
    for row in range(begin, end):
        if left == 0:
            left = nest.shape[1] - row % nest.shape[1]
            for k in range(nest.n):
                data[k] = nest_pointer(nest, k, row * length)
        loop(data[1], data[nest.n - 1], data[0], whole)
        if remainder:
            for k in range(nest.n):
                steps[(k or nest.n) - 1] = nest.strides[k][0]
                rest[(k or nest.n) - 1] = data[k] + whole * nest.strides[k][0]
            step.loop(rest, &remainder, steps, step.data)
        for k in range(nest.n):
            data[k] += nest.strides[k][1]
        left -= 1


cdef int run_task(task_t *task) noexcept nogil:
    cdef int64_t tiles, length = task.nest.shape[0]
    if _loop_of_rows(task) != NULL:
        task.error = OK
        parallel_for(_run_rows, task, task.nest.size // length, rows_per_chunk(length, task.expression.cost))
        return OK
    prepare_task(task)
    if task.rows:
        tiles = (task.nest.size // length + task.rows - 1) // task.rows
    else:
        tiles = task.nest.size // length * task.tiles_per_row
    parallel_for(_run_tiles, task, tiles, rows_per_chunk(task.tile, task.expression.cost))
    if task.nan:
        watch().nan = 1
    if task.error != OK:
        snprintf(message(), MESSAGE, b"%s", task.text)
    return task.error


# ---------------------------------------------------------------------------------------------------------- fused loops

# All stages run on one tile before the next one begins, so temporaries stay in the L1 cache. To keep the overhead per
# tile small, the steps of all expressions form one list of calls, and runs of cheap calls form chains, whose values
# stay in registers. Each element passes the same operations as in separate loops, and tiles depend only on the size of
# the problem, so the bits do not depend on fusion or on the number of threads.

cdef extern from "elementwise/spread.h" nogil:
    void spread(void *to, const char *data, int64_t size, int64_t step, int64_t row, int64_t position, int64_t n)

cdef enum:
    FUSED_BYTES = 3 << 14     # of all operands and buffers for a tile
    SMALLEST_FUSED = 256      # elements; tiles are multiples of it, as are the blocks of chains
    LARGEST_FUSED = 2048
    UNCACHED = 1 << 18        # elements from which the next tile is prefetched
    FUSED_WORK = 1 << 19      # additions per chunk of a thread, each of which sets up a workspace
    PLACE_OFFSET = 320        # bytes between places of the workspace, so that they are not multiples of a page apart

cdef int _add = primitive_of("add")

# One primitive loop, called per tile. A place is an operand, then a part of the workspace.
ctypedef struct fused_call_t:
    loop_t loop
    void *data
    int32_t n_inputs
    int32_t places[MAX_ARITY + 1]         # inputs, then the result
    char *numbers[MAX_ARITY + 1]          # address of a scalar operand, or NULL
    int64_t steps[MAX_ARITY + 1]          # in bytes; 0: the same element
    int32_t operation         # operation code of short loops; -1: not chainable
    int32_t chained           # at the first call of a chain: number of calls
    int64_t code              # code in a chain

ctypedef struct fused_run_t:
    const fused_loop_t *loop
    fused_call_t *calls
    double complex *numbers   # loop-invariant values
    int32_t n_calls, n_numbers
    int32_t n_places          # of the workspace; buffers come last
    int32_t first_buffer
    int32_t places[<int>MAX_FUSED]        # of each operand
    int64_t tile              # elements
    int64_t width             # bytes of a place per element
    int64_t error
    char text[256]


cdef int run_fused_loop(const fused_loop_t *loop) noexcept nogil:
    cdef fused_run_t run
    cdef const specialized_t *expression
    cdef char *memory
    cdef int64_t cost = 0, bytes = 0
    cdef int i, n_calls = 0, n_buffers = 0
    run.loop, run.error, run.width = loop, OK, 1
    for i in range(loop.n_stages):
        expression = loop.stages[i].expression
        n_calls += 1 if expression == NULL else expression.n_steps
        cost += 1 if expression == NULL else expression.cost
        if expression != NULL and expression.n_buffers:
            n_buffers, run.width = max(n_buffers, expression.n_buffers), max(run.width, <int64_t>expression.width)
    for i in range(loop.n_operands):
        if loop.operands[i].data != NULL:
            bytes += itemsize(loop.operands[i].dtype)
        run.width = max(run.width, <int64_t>itemsize(loop.operands[i].dtype))
    _assign_places(&run)
    run.n_places += n_buffers
    memory = <char *>malloc(n_calls * (sizeof(double complex) + sizeof(fused_call_t)))
    if memory == NULL:
        return _no_memory_to_fuse(loop)
    run.numbers = <double complex *>memory
    run.calls = <fused_call_t *>(run.numbers + n_calls)
    _list_calls(&run)
    _find_chains(&run)
    if loop.size >= UNCACHED:
        bytes *= 2            # the next tile is prefetched
    run.tile = FUSED_BYTES // (bytes + run.n_places * run.width) // SMALLEST_FUSED * SMALLEST_FUSED
    run.tile = min(max(run.tile, <int64_t>SMALLEST_FUSED), <int64_t>LARGEST_FUSED)
    parallel_for(_run_fused_tiles, &run, (loop.size + run.tile - 1) // run.tile,
                 max(<int64_t>1, FUSED_WORK // (max(cost, <int64_t>1) * run.tile)))
    free(memory)
    if run.error == MEMORY_ERROR:
        return _no_memory_to_fuse(loop)
    if run.error != OK:
        snprintf(message(), MESSAGE, b"%s", run.text)
    return <int>run.error


cdef int _no_memory_to_fuse(const fused_loop_t *loop) noexcept nogil:
    snprintf(message(), MESSAGE, b"out of memory for the tiles of %d element-wise expressions", <int>loop.n_stages)
    return MEMORY_ERROR


cdef void _assign_places(fused_run_t *run) noexcept nogil:
    """Assign a place to each operand that is not read in its own memory, reused after its last reader."""
    cdef const fused_loop_t *loop = run.loop
    cdef const fused_stage_t *stage
    cdef int32_t[<int>MAX_FUSED] last
    cdef bint[<int>MAX_FUSED] taken
    cdef int i, k, place, operand, count = 0
    for i in range(loop.n_operands):
        run.places[i], last[i] = i, -1
        if loop.operands[i].row:
            run.places[i] = loop.n_operands + count
            taken[count] = True
            count += 1
    for i in range(loop.n_stages):
        stage = &loop.stages[i]
        for k in range(2 if stage.expression == NULL else stage.expression.n_inputs):
            if stage.inputs[k] >= 0:
                last[stage.inputs[k]] = i
    for i in range(loop.n_stages):
        stage = &loop.stages[i]
        if loop.operands[stage.out].data == NULL:
            place = 0
            while place < count and taken[place]:
                place += 1
            count = max(count, place + 1)
            taken[place] = True
            run.places[stage.out] = loop.n_operands + place
        for k in range(2 if stage.expression == NULL else stage.expression.n_inputs):
            operand = stage.inputs[k]
            if operand >= 0 and loop.operands[operand].data == NULL and last[operand] == i:
                taken[run.places[operand] - loop.n_operands] = False
    run.n_places, run.first_buffer = count, loop.n_operands + count


cdef void _set_operand(const fused_run_t *run, fused_call_t *call, int k, int operand) noexcept nogil:
    cdef const fused_operand_t *own = &run.loop.operands[operand]
    call.places[k] = run.places[operand]
    call.steps[k] = own.step if own.row == 0 else itemsize(own.dtype)
    call.numbers[k] = own.data if own.data != NULL and call.steps[k] == 0 else NULL


cdef void _list_calls(fused_run_t *run) noexcept nogil:
    """List the steps of all expressions as calls; compute loop-invariant values."""
    cdef const fused_loop_t *loop = run.loop
    cdef const fused_stage_t *stage
    cdef const specialized_t *expression
    cdef const step_t *step
    cdef fused_call_t *call = run.calls
    cdef char *numbers[<int>MAX_BUFFERS]          # address of a loop-invariant value
    cdef int64_t[<int>MAX_BUFFERS] buffers        # strides of buffers
    cdef int64_t varies, one = 1
    cdef int i, j, k, slot
    run.n_numbers = 0
    for i in range(loop.n_stages):
        stage = &loop.stages[i]
        expression = stage.expression
        if expression == NULL:
            memset(call, 0, sizeof(fused_call_t))
            slot = loop.operands[stage.out].dtype
            call.loop, call.data, call.n_inputs = entries[_add][slot].loop, entries[_add][slot].data, 2
            _set_operand(run, call, 0, stage.inputs[0])
            _set_operand(run, call, 1, stage.inputs[1])
            _set_operand(run, call, 2, stage.out)
            call.operation = short_operation(call.loop, call.data, call.steps)
            call += 1
            continue
        for j in range(expression.n_steps):
            step = &expression.steps[j]
            memset(call, 0, sizeof(fused_call_t))
            call.loop, call.data, call.n_inputs = step.loop, step.data, step.n_inputs
            varies = 0
            for k in range(step.n_inputs):
                slot = step.inputs[k]
                if slot < expression.n_inputs:
                    _set_operand(run, call, k, stage.inputs[slot])
                elif slot < expression.n_inputs + expression.n_cells:
                    slot -= expression.n_inputs
                    call.numbers[k] = stage.cells[slot] if stage.cells != NULL else <char *>expression.cells[slot].value
                else:
                    slot -= expression.n_inputs + expression.n_cells
                    call.places[k], call.steps[k] = run.first_buffer + slot, buffers[slot]
                    call.numbers[k] = numbers[slot]
                varies |= call.steps[k]
            k = step.n_inputs
            if step.out == OUT_SLOT:
                _set_operand(run, call, k, stage.out)
            else:
                slot = step.out - expression.n_inputs - expression.n_cells
                call.places[k], call.steps[k] = run.first_buffer + slot, step.out_size
                buffers[slot], numbers[slot] = step.out_size, NULL
                if varies == 0:
                    call.numbers[k] = numbers[slot] = <char *>&run.numbers[run.n_numbers]
                    buffers[slot] = 0
                    run.n_numbers += 1
                    call.loop(call.numbers, &one, call.steps, call.data)
                    continue
            call.operation = short_operation(call.loop, call.data, call.steps)
            call += 1
    run.n_calls = <int32_t>(call - run.calls)


cdef void _find_chains(fused_run_t *run) noexcept nogil:
    """Chain runs of cheap calls of one dtype; drop results that are read only within the chain."""
    cdef const fused_loop_t *loop = run.loop
    cdef bint[2 * <int>MAX_FUSED + <int>MAX_BUFFERS] read       # by a later call, or after the loop
    cdef int[3] kinds
    cdef int i, k, out, before, kept, chained = 0
    cdef fused_call_t *call
    cdef const fused_call_t *last
    memset(read, 0, sizeof(read))
    for i in range(loop.n_operands):
        read[run.places[i]] = loop.operands[i].kept
    for i in range(run.n_calls - 1, -1, -1):
        call = &run.calls[i]
        out = call.places[call.n_inputs]
        before = -1               # place whose value is in registers
        if i > 0 and call.operation >= 0:
            last = call - 1
            if last.operation >= 0 and (call.operation ^ last.operation) & 1 == 0:
                before = last.places[last.n_inputs]
        kinds[0] = kinds[1] = HELD
        kept = read[out]
        read[out] = False
        for k in range(call.n_inputs):
            if call.numbers[k] != NULL:
                kinds[k] = NUMBER
            elif call.places[k] != before:
                kinds[k] = ELEMENTS
                read[call.places[k]] = True
        if call.operation >= 0:
            call.code = CHAIN_CODE(call.operation >> 1, kinds[0], kinds[1], kept)
            chained += 1
            if before < 0:
                call.chained, chained = chained, 0


cdef void _fail_fused(fused_run_t *run, int status) noexcept nogil:
    if atomic_claim(&run.error, OK, status):
        snprintf(run.text, sizeof(run.text), b"%s", message())


cdef int _bind_chains(const fused_run_t *run, char **data, chain_step_t *links, char ***moving,
                      int64_t *moves) noexcept nogil:
    """Set the pointers of chains for a tile; return how many advance with the tiles, and list them."""
    cdef const fused_call_t *call
    cdef const char **pointers[3]
    cdef int i, k, n_moving = 0
    for i in range(run.n_calls):
        call = &run.calls[i]
        if call.operation < 0:
            continue
        links[i].code = call.code
        pointers[0], pointers[1] = &links[i].left, &links[i].right
        pointers[call.n_inputs] = <const char **>&links[i].out
        for k in range(call.n_inputs + 1):
            pointers[k][0] = data[call.places[k]] if call.numbers[k] == NULL else call.numbers[k]
            if call.numbers[k] == NULL and call.places[k] < run.loop.n_operands:
                moving[n_moving], moves[n_moving] = <char **>pointers[k], run.tile * call.steps[k]
                n_moving += 1
    return n_moving


cdef inline void _run_call(const fused_call_t *call, char **data, int64_t start, int64_t n) noexcept nogil:
    """Run a call on n elements of a tile from `start`."""
    cdef char *pointers[MAX_ARITY + 1]
    cdef int k
    for k in range(call.n_inputs + 1):
        pointers[k] = data[call.places[k]] + start * call.steps[k] if call.numbers[k] == NULL else call.numbers[k]
    call.loop(pointers, &n, call.steps, call.data)


cdef void _run_fused_tiles(void *context, int64_t begin, int64_t end) noexcept nogil:
    """Run some tiles in a workspace of this thread."""
    cdef fused_run_t *run = <fused_run_t *>context
    cdef const fused_loop_t *loop = run.loop
    cdef const fused_operand_t *operand
    cdef fused_call_t *call
    cdef chain_step_t *links
    cdef char ***moving
    cdef int64_t *moves
    cdef char *data[2 * <int>MAX_FUSED + <int>MAX_BUFFERS]
    cdef int32_t[<int>MAX_FUSED] held                 # operands that advance with the tiles
    cdef int32_t[<int>MAX_FUSED] spreading
    cdef int64_t position, n, done, next, place = run.tile * run.width + PLACE_OFFSET
    cdef int i, k, n_moving, n_held = 0, n_spreading = 0
    cdef char *memory = <char *>malloc(64 + run.n_places * place + run.n_calls * (
        sizeof(chain_step_t) + 3 * (sizeof(char **) + sizeof(int64_t))))
    if memory == NULL:
        _fail_fused(run, MEMORY_ERROR)
        return
    links = <chain_step_t *>memory
    moving = <char ***>(links + run.n_calls)
    moves = <int64_t *>(moving + 3 * run.n_calls)
    data[loop.n_operands] = <char *>((<uintptr_t>(moves + 3 * run.n_calls) + 63) & ~<uintptr_t>63)
    for i in range(1, run.n_places):
        data[loop.n_operands + i] = data[loop.n_operands] + i * place
    for i in range(loop.n_operands):
        operand = &loop.operands[i]
        if operand.row:
            spreading[n_spreading] = i
            n_spreading += 1
        elif operand.data != NULL and operand.step:
            data[i] = operand.data + begin * run.tile * operand.step
            held[n_held] = i
            n_held += 1
    n_moving = _bind_chains(run, data, links, moving, moves)
    for position in range(begin, end):
        if atomic_load(&run.error) != OK:
            break
        n = min(run.tile, loop.size - position * run.tile)
        if loop.size >= UNCACHED and position + 1 < end:
            next = min(run.tile, loop.size - (position + 1) * run.tile)
            for i in range(n_held):
                operand = &loop.operands[held[i]]
                fetch(data[held[i]] + run.tile * operand.step, next * operand.step, operand.kept)
        for i in range(n_spreading):
            operand = &loop.operands[spreading[i]]
            spread(data[run.places[spreading[i]]], operand.data, itemsize(operand.dtype), operand.step, operand.row,
                   position * run.tile, n)
        i = 0
        while i < run.n_calls:
            call = &run.calls[i]
            if call.operation < 0:
                _run_call(call, data, 0, n)
                i += 1
                continue
            done = run_chain(call.operation & 1, &links[i], call.chained, n)
            if done < n:
                for k in range(i, i + call.chained):
                    _run_call(&run.calls[k], data, done, n - done)
            i += call.chained
        for i in range(n_held):
            data[held[i]] += run.tile * loop.operands[held[i]].step
        for i in range(n_moving):
            moving[i][0] += moves[i]
        if loop_status() != OK:
            _fail_fused(run, loop_status())
            set_loop_status(OK)
    free(memory)
