"""
Running what a fusion is made of: steps on gradients, tile by tile.

All steps run on one tile before the next one is begun, while it lies in the first-level cache. Loops would still wait
for memory at every first touch, and memory for the loops in between, which together takes as long as node by node; so
after each call of a loop the same piece of the next tile is asked for. Tiles are small, and little may be done for one
but the loops: all steps are flattened into calls first, with pointers that move on by themselves.

Tiles depend on the problem alone, never on the threads; and as every step is element-wise, its bits do not depend on
the tiles.
"""

from libc.stdint cimport int64_t, uintptr_t
from libc.stdio cimport snprintf
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy
from cygrad._core.arrays.dtype cimport itemsize
from cygrad._core.elementwise.specialize cimport OUT_SLOT, step_t
from cygrad._core.elementwise.tiles cimport WORK
from cygrad._core.memory.atomic cimport atomic_store
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, OK, message
from cygrad._core.primitives.primitive_table cimport MAX_ARITY, entries, loop_t, primitive
from cygrad._core.primitives.short_loops cimport short_loop, short_loop_t
from cygrad._core.threads.parallel cimport parallel_for

cdef extern from "engine/fused_loops.h" nogil:
    void spread(void *to, const char *data, int64_t size, int64_t step, int64_t row, int64_t position, int64_t n)

cdef extern from "simd/fetch.h" nogil:
    void fetch(const char *memory, int64_t nbytes, bint written)

cdef enum:
    TILE = 512            # elements

cdef int _add = primitive("add")

# One call of a loop per tile.
ctypedef struct loop_call_t:
    loop_t loop
    void *data
    short_loop_t quick        # cygrad's SIMD version, or NULL
    int64_t n_inputs
    char *pointers[MAX_ARITY + 1]         # into the tile: inputs, then the result
    int64_t steps[MAX_ARITY + 1]
    int64_t moves[MAX_ARITY + 1]          # bytes from one tile to the next
    int64_t n_moving
    int64_t moving[MAX_ARITY + 1]         # operands that advance
    int64_t ahead[MAX_ARITY + 1]          # bytes of the next tile to prefetch, unless an earlier call does

# A broadcast operand, expanded over each tile before its calls.
ctypedef struct broadcast_t:
    const flow_t *flow
    char *place

ctypedef struct calls_t:
    program_of_fusion_t *fusion
    char *workspace
    int32_t n_calls, n_broadcasts
    loop_call_t calls[MOST_CALLS]
    broadcast_t broadcasts[MOST_FLOWS]


ctypedef struct fusion_run_t:
    program_of_fusion_t *fusion
    int32_t n_places, n_buffers       # of the workspace
    int64_t error


cdef bint fits_tiles(const specialized_t *program) noexcept nogil:
    cdef int i
    for i in range(program.n_cells):
        if itemsize(program.cells[i].dtype) > WIDEST:
            return False
    return not program.partial and itemsize(program.dtype) <= WIDEST and (
        program.n_buffers == 0 or program.width <= WIDEST)


# ------------------------------------------------------------------------------------------------------- the workspace

cdef enum:
    PLACE = TILE * WIDEST + 320   # bytes of workspace for one operand; not a multiple of a page


cdef int _assign_places(program_of_fusion_t *fusion) noexcept nogil:
    """Assign a slot to each gradient that exists in tiles, reused once it is dead; -> number of slots."""
    cdef bint[MOST_FLOWS] taken
    cdef int i, k, place, count = 0
    cdef flow_t *flow
    for i in range(fusion.n_flows):
        if fusion.flows[i].row:
            fusion.flows[i].slot = count
            taken[count] = True
            count += 1
    for i in range(fusion.n_steps):
        flow = &fusion.flows[fusion.steps[i].out]
        if flow.array == NULL:
            place = 0
            while place < count and taken[place]:
                place += 1
            if place == count:
                count += 1
            taken[place] = True
            flow.slot = place
        for k in range(fusion.steps[i].n_inputs):
            if fusion.steps[i].inputs[k] >= 0:
                flow = &fusion.flows[fusion.steps[i].inputs[k]]
                if flow.array == NULL and flow.last == i:
                    taken[flow.slot] = False
    return count


# ------------------------------------------------------------------------------------------------------------ the calls

cdef bint _is_first(const calls_t *calls, int i, int k) noexcept nogil:
    """Does no call before this one access the operand's memory?"""
    cdef int j, m
    for j in range(i + 1):
        for m in range(MAX_ARITY + 1 if j < i else k):
            if calls.calls[j].pointers[m] == calls.calls[i].pointers[k]:
                return False
    return True


cdef void _operand(loop_call_t *call, int k, char *pointer, int64_t step, bint moves) noexcept nogil:
    call.pointers[k] = pointer
    call.steps[k] = step
    call.moves[k] = TILE * step if moves else 0


cdef void _flow_operand(loop_call_t *call, int k, const flow_t *flow, char *workspace, int64_t start) noexcept nogil:
    if flow.array != NULL and flow.row == 0:
        _operand(call, k, flow.array.data + start * flow.step, flow.step, True)
    else:
        _operand(call, k, workspace + flow.slot * PLACE, itemsize(flow.dtype), False)


cdef loop_call_t *_new_call(calls_t *calls, loop_t loop, void *data, int n_inputs) noexcept nogil:
    cdef loop_call_t *call = &calls.calls[calls.n_calls]
    cdef int k
    calls.n_calls += 1
    call.loop, call.data, call.n_inputs, call.n_moving = loop, data, n_inputs, 0
    for k in range(MAX_ARITY + 1):
        _operand(call, k, NULL, 0, False)
    return call


cdef void _flatten(calls_t *calls, int n_places, int64_t start) noexcept nogil:
    """Create the calls of all steps, with pointers at element `start`."""
    cdef program_of_fusion_t *fusion = calls.fusion
    cdef const fusion_step_t *step
    cdef const specialized_t *program
    cdef const step_t *part
    cdef loop_call_t *call
    cdef char *buffers = calls.workspace + n_places * PLACE
    cdef int i, j, k, slot
    calls.n_calls = calls.n_broadcasts = 0
    for i in range(fusion.n_flows):
        if fusion.flows[i].row:
            calls.broadcasts[calls.n_broadcasts].flow = &fusion.flows[i]
            calls.broadcasts[calls.n_broadcasts].place = calls.workspace + fusion.flows[i].slot * PLACE
            calls.n_broadcasts += 1
    for i in range(fusion.n_steps):
        step = &fusion.steps[i]
        program = step.program
        if program == NULL:
            slot = fusion.flows[step.out].dtype
            call = _new_call(calls, entries[_add][slot].loop, entries[_add][slot].data, 2)
            for k in range(2):
                _flow_operand(call, k, &fusion.flows[step.inputs[k]], calls.workspace, start)
            _flow_operand(call, 2, &fusion.flows[step.out], calls.workspace, start)
            continue
        for j in range(program.n_steps):
            part = &program.steps[j]
            call = _new_call(calls, part.loop, part.data, part.n_inputs)
            for k in range(part.n_inputs):
                slot = part.inputs[k]
                if slot < program.n_inputs:
                    _flow_operand(call, k, &fusion.flows[step.inputs[slot]], calls.workspace, start)
                    continue
                slot -= program.n_inputs
                if slot < program.n_cells:
                    _operand(call, k, fusion.cells[step.first_cell + slot], 0, False)
                else:
                    _operand(call, k, buffers + (slot - program.n_cells) * PLACE, _size_of_buffer(program, j,
                             part.inputs[k]), False)
            if part.out == OUT_SLOT:
                _flow_operand(call, part.n_inputs, &fusion.flows[step.out], calls.workspace, start)
            else:
                _operand(call, part.n_inputs, buffers + (part.out - program.n_inputs - program.n_cells) * PLACE,
                         part.out_size, False)
    for i in range(calls.n_calls):
        call = &calls.calls[i]
        call.quick = short_loop(call.loop, call.data, call.steps)
        for k in range(MAX_ARITY + 1):
            if call.moves[k]:
                call.moving[call.n_moving] = k
                call.ahead[call.n_moving] = call.moves[k] if _is_first(calls, i, k) else 0
                call.n_moving += 1


cdef int64_t _size_of_buffer(const specialized_t *program, int before, int slot) noexcept nogil:
    """Return the bytes per element of the last write before this step there."""
    cdef int j
    for j in range(before - 1, -1, -1):
        if program.steps[j].out == slot:
            return program.steps[j].out_size
    return 0


cdef void _run_tiles(void *context, int64_t begin, int64_t end) noexcept nogil:
    cdef fusion_run_t *run = <fusion_run_t *>context
    cdef calls_t calls
    cdef loop_call_t *call
    cdef char *pointers[MAX_ARITY + 1]
    cdef int64_t n, end_of = min(end * TILE, run.fusion.size), rest = end_of - begin * TILE
    cdef const flow_t *flow
    cdef int i
    cdef int64_t k, operand
    cdef char *memory = <char *>malloc((run.n_places + run.n_buffers) * PLACE + 64)
    if memory == NULL:
        atomic_store(&run.error, MEMORY_ERROR)
        return
    calls.fusion = run.fusion
    calls.workspace = <char *>((<uintptr_t>memory + 63) & ~<uintptr_t>63)
    _flatten(&calls, run.n_places, begin * TILE)
    while rest > 0:
        n = min(rest, <int64_t>TILE)
        for i in range(calls.n_broadcasts):
            flow = calls.broadcasts[i].flow
            spread(calls.broadcasts[i].place, flow.array.data, itemsize(flow.dtype), flow.step, flow.row, end_of - rest,
                   n)
        rest -= n
        for i in range(calls.n_calls):
            call = &calls.calls[i]
            if call.quick != NULL:
                call.quick(call.pointers[0], call.pointers[1], call.pointers[call.n_inputs], n)
            else:
                memcpy(pointers, call.pointers, sizeof(pointers))
                call.loop(pointers, &n, call.steps, call.data)
            for k in range(call.n_moving):
                operand = call.moving[k]
                call.pointers[operand] += call.moves[operand]
                fetch(call.pointers[operand], call.ahead[k], operand == call.n_inputs)
    free(memory)


cdef int run_fusion(program_of_fusion_t *fusion) noexcept nogil:
    cdef fusion_run_t run
    cdef int64_t cost = 0
    cdef int i
    run.fusion = fusion
    run.n_places = _assign_places(fusion)
    run.n_buffers = 0
    run.error = OK
    for i in range(fusion.n_steps):
        if fusion.steps[i].program == NULL:
            cost += 1
        else:
            run.n_buffers = max(run.n_buffers, fusion.steps[i].program.n_buffers)
            cost += fusion.steps[i].program.cost
    parallel_for(_run_tiles, &run, (fusion.size + TILE - 1) // TILE, max(WORK // (max(cost, 1) * TILE), 1))
    if run.error == MEMORY_ERROR:
        snprintf(message(), MESSAGE, b"backward: no memory for the tiles of %d element-wise operations", fusion.n_steps)
    return <int>run.error
