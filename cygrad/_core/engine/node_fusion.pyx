"""
Backward of element-wise nodes that follow each other, in one pass over memory.

Node after node, a chain of k element-wise nodes costs k passes over memory, and as many again where gradients meet. The
plan knows them all beforehand: here the formulas of consecutive nodes become one list of steps, which run on one tile
after the other. Only what saved tensors hold is read, and only what leaves the fusion is written.

Every element goes through the operations of the nodes one by one, and gradients meet in the same order: each bit is
that of the run node by node. Taken are nodes whose formulas are element-wise (or hand the gradient on), of real
numbers and one shape, with saved tensors without gaps or broadcast in a simple way. A few nodes between them that do
not fit are passed over.

In a team other members run nodes at the same time. A node may join there if all that it still waits for are nodes of
the fusion: no other code can get a reference then.
"""

from libc.stdint cimport int32_t, int64_t, uintptr_t
from libc.stdio cimport snprintf
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy
from cygrad._core.arrays.array cimport (
    ARRAY, array_empty, array_t, clear, exclusive, is_number, release, retain, same_shape, value_t,
)
from cygrad._core.arrays.dtype cimport is_short, itemsize
from cygrad._core.elementwise.program cimport MAX_INPUTS
from cygrad._core.elementwise.tiles cimport (
    MAX_CELLS, OUT_SLOT, WORK, place_cells, slots_t, specialize, specialized_t, step_t,
)
from cygrad._core.engine.node_run cimport MOST_FUSED, deliver, fused_t, set_fuser
from cygrad._core.engine.plan cimport item_t, mark_fused, parts_t, plan_find, plan_t, still_waiting, was_fused
from cygrad._core.graph.native cimport can_take, fit, native_backward, take_saved
from cygrad._core.graph.node cimport node_t, note_release
from cygrad._core.memory.atomic cimport atomic_add, atomic_load, atomic_store, lock, unlock
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, OK, message
from cygrad._core.primitives.primitive_table cimport MAX_ARITY, entries, loop_t, primitive
from cygrad._core.primitives.typed_loops cimport short_loop, short_loop_t
from cygrad._core.table.interpreter cimport FUSED, GRADS_SPACE, SAVED_SPACE, code_t
from cygrad._core.table.operator cimport MAX_ARGUMENTS, MAX_SAVED, first_edge, operator_t
from cygrad._core.threads.parallel cimport parallel_for


# ---------------------------------------------------------------------------------------------------------- fused tiles

# Running what a fusion is made of: steps on gradients, tile by tile.
#
# All steps run on one tile before the next one is begun, while it lies in the first-level cache. Loops would still wait
# for memory at every first touch, and memory for the loops in between, which together takes as long as node by node; so
# after each call of a loop the same piece of the next tile is asked for. Tiles are small, and little may be done for
# one but the loops: all steps are flattened into calls first, with pointers that move on by themselves.
#
# Tiles depend on the problem alone, never on the threads; and as every step is element-wise, its bits do not depend on
# the tiles.

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


# ---------------------------------------------------------------------------------------------------------- node fusion

cdef enum:
    MOST_DELIVERIES = 64
    FAR = 8                   # nodes skipped at most; no more than MOST_FUSED

cdef int64_t _fuse_from = 65536         # elements of a node; below, passes over memory cost little
cdef int64_t _fusions = 0


# The output of an edge.
ctypedef struct delivery_t:
    item_t *source
    int32_t edge
    int64_t buffer            # target of the edge
    int32_t flow
    int32_t waits             # not yet part of another sum
    int32_t to_fit            # must be reduced or cast for its target
    int32_t rank              # in a team: rank of its first part among the contributions to the target
    int32_t count             # number of parts summed in it

ctypedef struct fusion_t:
    plan_t *plan
    bint keep
    const array_t *like       # the first gradient: all have its shape
    int32_t n_deliveries
    fused_t nodes
    fused_t passed            # items between them that could not join
    value_t saved[MOST_FUSED][MAX_SAVED]
    delivery_t deliveries[MOST_DELIVERIES]
    program_of_fusion_t program


# ------------------------------------------------------------------------------------------------------- what fits

cdef bint _may_join(const item_t *item) noexcept nogil:
    """May this node be fused, as far as is known without its gradient?"""
    cdef const node_t *node = item.node
    cdef const operator_t *op = node.op
    cdef const code_t *code
    cdef int i
    if (node.work < _fuse_from or node.backward != native_backward or item.python or node.python or item.captured
            or not item.executed or node.n_outputs != 1 or op.listed != MAX_ARGUMENTS or not op.compiled):
        return False
    for i in range(op.n_arguments):
        if op.formulas[i] != NULL and node.needed >> i & 1:
            code = <const code_t *>op.formulas[i]
            if not (code.n_steps == 0 and code.result >> 8 == GRADS_SPACE
                    or code.n_steps == 1 and code.steps.kind == FUSED and code.reads & 1):
                return False
    return True


cdef bint _computes(const item_t *item, int64_t size) noexcept nogil:
    """Does the node compute a gradient for a broadcast operand? -1: for any operand?"""
    cdef const node_t *node = item.node
    cdef const code_t *code
    cdef int i, edge
    for i in range(node.op.n_arguments):
        code = <const code_t *>node.op.formulas[i]
        if code != NULL and node.needed >> i & 1 and code.n_steps:
            edge = first_edge(node.op, i, node.n_edges)
            if size < 0 or node.metas != NULL and node.metas[edge] != NULL and node.metas[edge].size < size:
                return True
    return False


cdef bint _lies_evenly(const fusion_t *fusion, const array_t *array, int64_t *step, int64_t *row) noexcept nogil:
    """Can the tiles read an operand that broadcasts to the fusion's shape? How: see flow_t."""
    cdef const array_t *like = fusion.like
    cdef int64_t size, stride, covered = 1, trailing = 1
    cdef int64_t nbytes = itemsize(array.dtype)
    cdef bint over = False                   # no more dimensions to merge
    cdef int d, own
    step[0] = row[0] = 0
    if array.storage == NULL or array.ndim > like.ndim or nbytes > WIDEST:
        return False
    for d in range(like.ndim - 1, -1, -1):
        own = d - (like.ndim - array.ndim)
        size = like.shape[d]
        if own >= 0 and array.shape[own] != size and array.shape[own] != 1:
            return False
        stride = 0 if own < 0 or array.shape[own] == 1 else array.strides[own] * nbytes
        if size == 1:
            continue
        if stride == 0 and step[0] == 0:
            trailing *= size
        elif stride == 0:
            over = True
        elif over or step[0] and stride != step[0] * covered:
            return False
        else:
            if step[0] == 0:
                step[0] = stride
            covered *= size
    if step[0] == 0:
        return True
    if trailing > 1:
        row[0] = trailing
        return not over
    if over:
        row[0] = -covered
    return step[0] == nbytes


cdef bint _part_fits(const fusion_t *fusion, const array_t *part, int *dtype) noexcept nogil:
    if part == NULL:
        return True
    cdef int64_t step, row
    if (is_short(part.dtype) or not same_shape(part, fusion.like) or not _lies_evenly(fusion, part, &step, &row)
            or dtype[0] >= 0 and dtype[0] != part.dtype):
        return False
    dtype[0] = part.dtype
    return True


cdef inline parts_t *_parts(const fusion_t *fusion, const item_t *item) noexcept nogil:
    """Return the parts of its gradient that a team keeps separate; NULL if there are none."""
    cdef parts_t *parts = fusion.plan.parts
    return &parts[item.buffers] if parts != NULL and parts[item.buffers].count else NULL


cdef bint _gradient_fits(fusion_t *fusion, const item_t *item, int *dtype) noexcept nogil:
    """Is there a gradient for the item, of the common shape? Returns its dtype."""
    cdef const array_t *sum = fusion.plan.sums[item.buffers]
    cdef const parts_t *parts = _parts(fusion, item)
    cdef const delivery_t *delivery
    cdef int i
    dtype[0] = -1
    if fusion.like == NULL:
        fusion.like = sum
    if not _part_fits(fusion, sum, dtype):
        return False
    if parts != NULL:
        for i in range(parts.count):
            if not _part_fits(fusion, parts.arrays[i], dtype):
                return False
    for i in range(fusion.n_deliveries):
        delivery = &fusion.deliveries[i]
        if not delivery.waits or delivery.buffer != item.buffers:
            continue
        if delivery.to_fit or dtype[0] >= 0 and dtype[0] != fusion.program.flows[delivery.flow].dtype:
            return False
        dtype[0] = fusion.program.flows[delivery.flow].dtype
    return dtype[0] >= 0


cdef bint _computed_here(const fusion_t *fusion, const item_t *item) noexcept nogil:
    """Is any of the item's gradient computed in the fusion?"""
    cdef int i
    for i in range(fusion.n_deliveries):
        if (fusion.deliveries[i].waits and fusion.deliveries[i].buffer == item.buffers
                and fusion.program.flows[fusion.deliveries[i].flow].computed):
            return True
    return False


cdef specialized_t *_formula(fusion_t *fusion, const code_t *code, const value_t *saved, int dtype) noexcept nogil:
    """
    Return the specialized formula for these saved values and a gradient of this dtype; NULL if it cannot be fused.
    """
    cdef value_t[MAX_INPUTS] inputs
    cdef array_t gradient
    cdef specialized_t *program
    cdef int64_t step, row
    cdef int i, space, status = OK
    gradient.dtype = dtype
    gradient.ndim = fusion.like.ndim
    for i in range(code.steps.n_inputs):
        space = code.steps.inputs[i] >> 8
        if space == GRADS_SPACE:
            inputs[i].kind = ARRAY
            inputs[i].of.array = &gradient
            continue
        inputs[i] = saved[code.steps.inputs[i] & 255] if space == SAVED_SPACE else code.constants[
            code.steps.inputs[i] & 255]
        if inputs[i].kind == ARRAY:
            if not _lies_evenly(fusion, inputs[i].of.array, &step, &row):
                return NULL
        elif not is_number(&inputs[i]):
            return NULL
    program = specialize(code.steps.program, inputs, &status)
    if program == NULL or program.temporary or not fits_tiles(program):
        return NULL
    return program


cdef bint _formulas_fit(fusion_t *fusion, node_t *node, int dtype, specialized_t **programs) noexcept nogil:
    """Can all formulas of the node be fused? programs[argument]: specialized, NULL where the gradient is passed on."""
    cdef const code_t *code
    cdef value_t[MAX_SAVED] saved
    cdef int i, calls = fusion.program.n_calls + node.op.n_arguments + fusion.n_deliveries
    cdef bint fits
    lock(&node.lock)            # another thread may be about to release the saved values
    fits = not node.released
    for i in range(node.op.n_saved):
        saved[i] = node.saved[i].value
    for i in range(node.op.n_arguments):
        programs[i] = NULL
        code = <const code_t *>node.op.formulas[i]
        if fits and code != NULL and code.n_steps and node.needed >> i & 1:
            programs[i] = _formula(fusion, code, saved, dtype)
            fits = programs[i] != NULL
            calls += programs[i].n_steps if fits else 0
    unlock(&node.lock)
    return fits and calls <= MOST_CALLS


cdef bint _has_room(const fusion_t *fusion, const operator_t *op) noexcept nogil:
    """Check capacity for the worst case of a node: a flow per saved value, and a formula and two sums per argument."""
    cdef int more = 3 * op.n_arguments + fusion.n_deliveries
    return (fusion.nodes.count < MOST_FUSED and fusion.n_deliveries + op.n_arguments <= MOST_DELIVERIES
            and fusion.program.n_flows + op.n_saved + 1 + more <= MOST_FLOWS
            and fusion.program.n_steps + more <= MOST_STEPS
            and fusion.program.n_cells + op.n_arguments * MAX_CELLS <= MOST_CELLS)


# --------------------------------------------------------------------------------------------------- making the steps

cdef int _new_flow(fusion_t *fusion, array_t *array, int dtype) noexcept nogil:
    cdef int i = fusion.program.n_flows
    cdef flow_t *flow = &fusion.program.flows[i]
    fusion.program.n_flows += 1
    flow.array = array
    flow.step, flow.row = itemsize(dtype), 0
    if array != NULL:
        _lies_evenly(fusion, array, &flow.step, &flow.row)
    flow.dtype = dtype
    flow.last = -1
    flow.deliveries = 0
    flow.owned = False
    flow.computed = array == NULL
    return i


cdef fusion_step_t *_new_step(fusion_t *fusion, specialized_t *program, int dtype) noexcept nogil:
    cdef fusion_step_t *step = &fusion.program.steps[fusion.program.n_steps]
    fusion.program.n_steps += 1
    fusion.program.n_calls += program.n_steps if program != NULL else 1
    step.program = program
    step.n_inputs = 0
    step.first_cell = fusion.program.n_cells
    step.out = _new_flow(fusion, NULL, dtype)
    return step


cdef void _read(fusion_t *fusion, fusion_step_t *step, int flow) noexcept nogil:
    """Make a flow the next input of the step."""
    step.inputs[step.n_inputs] = flow
    step.n_inputs += 1
    if flow >= 0:
        fusion.program.flows[flow].last = fusion.program.n_steps - 1


cdef int _sum(fusion_t *fusion, int first, int second) noexcept nogil:
    cdef fusion_step_t *step = _new_step(fusion, NULL, fusion.program.flows[first].dtype)
    _read(fusion, step, first)
    _read(fusion, step, second)
    return step.out


cdef int _arrived(fusion_t *fusion, array_t **part, int flow) noexcept nogil:
    """Take over a part that existed before the fusion; the flow of the sum with it."""
    cdef int other
    if part[0] == NULL:
        return flow
    other = _new_flow(fusion, part[0], part[0].dtype)
    fusion.program.flows[other].owned = True
    part[0] = NULL
    return other if flow < 0 else _sum(fusion, flow, other)


cdef int _gradient(fusion_t *fusion, item_t *item) noexcept nogil:
    """Return the flow of an item's gradient: earlier contributions, then those computed here, in that order."""
    cdef const parts_t *parts = _parts(fusion, item)
    cdef delivery_t *delivery
    cdef int i, rank, flow = -1
    flow = _arrived(fusion, &fusion.plan.sums[item.buffers], flow)
    for rank in range(parts.count if parts != NULL else 1):
        if parts != NULL:
            flow = _arrived(fusion, &parts.arrays[rank], flow)
        for i in range(fusion.n_deliveries):
            delivery = &fusion.deliveries[i]
            if delivery.waits and delivery.buffer == item.buffers and (parts == NULL or delivery.rank == rank):
                delivery.waits = False
                flow = delivery.flow if flow < 0 else _sum(fusion, flow, delivery.flow)
    return flow


cdef int _compute(fusion_t *fusion, const code_t *code, specialized_t *program, const value_t *saved, int *saved_flows,
                  int gradient) noexcept nogil:
    """Return the flow of a formula's result."""
    cdef program_of_fusion_t *whole = &fusion.program
    cdef fusion_step_t *step = _new_step(fusion, program, program.dtype)
    cdef value_t[MAX_INPUTS] inputs
    cdef slots_t slots
    cdef int i, space, place
    for i in range(code.steps.n_inputs):
        space, place = code.steps.inputs[i] >> 8, code.steps.inputs[i] & 255
        inputs[i].kind = ARRAY
        if space == GRADS_SPACE:
            _read(fusion, step, gradient)
            continue
        inputs[i] = saved[place] if space == SAVED_SPACE else code.constants[place]
        if inputs[i].kind != ARRAY:
            _read(fusion, step, -1)
            continue
        if saved_flows[place] < 0:
            saved_flows[place] = _new_flow(fusion, inputs[i].of.array, inputs[i].of.array.dtype)
        _read(fusion, step, saved_flows[place])
    place_cells(program, inputs, &slots, &whole.numbers[whole.n_cells])
    for i in range(program.n_cells):
        whole.cells[whole.n_cells + i] = slots.data[program.n_inputs + i]
    whole.n_cells += program.n_cells
    return step.out


cdef void _hand_on(fusion_t *fusion, item_t *item, int edge, int flow) noexcept nogil:
    """Add an edge to a node of the fusion, or out of it; contributions to one target are summed immediately."""
    cdef node_t *node = item.node
    cdef item_t *target = plan_find(fusion.plan, node.edges[edge].node)
    cdef int64_t buffer = target.buffers + node.edges[edge].input_nr
    cdef const array_t *meta = NULL if node.metas == NULL else node.metas[edge]
    cdef bint to_fit = meta != NULL and not (same_shape(meta, fusion.like)
                                             and meta.dtype == fusion.program.flows[flow].dtype)
    cdef delivery_t *delivery
    cdef int i
    cdef delivery_t *first = NULL
    cdef int waiting = 0, rank = 0 if fusion.plan.ranks == NULL else fusion.plan.ranks[item.first_edge + edge]
    for i in range(fusion.n_deliveries):
        if fusion.deliveries[i].waits and fusion.deliveries[i].buffer == buffer:
            first = &fusion.deliveries[i]
            waiting += 1
    # If another contribution comes first, the sum begins with it: keep the parts separate until then.
    if (waiting == 1 and not to_fit and not first.to_fit
            and fusion.program.flows[first.flow].dtype == fusion.program.flows[flow].dtype
            and (fusion.plan.ranks == NULL or first.rank == 0 and rank == first.count)
            and fusion.plan.sums[buffer] == NULL):
        first.flow = _sum(fusion, first.flow, flow)
        first.count += 1
        return
    delivery = &fusion.deliveries[fusion.n_deliveries]
    fusion.n_deliveries += 1
    delivery.source, delivery.edge, delivery.buffer, delivery.flow = item, edge, buffer, flow
    delivery.waits, delivery.to_fit, delivery.rank, delivery.count = True, to_fit, rank, 1


cdef bint _join(fusion_t *fusion, item_t *item, int *status) noexcept nogil:
    """Add a node to the fusion if it fits."""
    cdef specialized_t *programs[MAX_ARGUMENTS]
    cdef int[MAX_SAVED] saved_flows
    cdef node_t *node = item.node
    cdef const operator_t *op = node.op
    cdef value_t *saved
    cdef int i, edge, gradient, flow, dtype
    # Alone it reduces the gradient of a broadcast operand without writing it: fusing must save as much.
    if not (_may_join(item) and _has_room(fusion, op) and _gradient_fits(fusion, item, &dtype) and can_take(node)
            and (not _computes(item, fusion.like.size) or _computed_here(fusion, item))
            and _formulas_fit(fusion, node, dtype, programs)):
        return False
    saved = fusion.saved[fusion.nodes.count]
    status[0] = take_saved(node, saved, fusion.keep, False)
    if status[0] != OK:
        return False
    fusion.nodes.items[fusion.nodes.count] = item
    fusion.nodes.count += 1
    gradient = _gradient(fusion, item)
    for i in range(op.n_saved):
        saved_flows[i] = -1
    for i in range(op.n_arguments):
        if op.formulas[i] == NULL or not node.needed >> i & 1:
            continue
        edge = first_edge(op, i, node.n_edges)
        if node.edges[edge].node == NULL or not plan_find(fusion.plan, node.edges[edge].node).needed:
            continue
        flow = gradient
        if programs[i] != NULL:
            flow = _compute(fusion, <const code_t *>op.formulas[i], programs[i], saved, saved_flows, gradient)
        _hand_on(fusion, item, edge, flow)
    return True


# ---- results

cdef int _make_room(fusion_t *fusion) noexcept nogil:
    """Allocate the gradients that leave the fusion: reuse one that ends here, or create one."""
    cdef program_of_fusion_t *program = &fusion.program
    cdef flow_t *flow
    cdef flow_t *ending
    cdef int i, k
    for i in range(fusion.n_deliveries):
        if fusion.deliveries[i].waits:
            program.flows[fusion.deliveries[i].flow].deliveries += 1
    for i in range(program.n_steps):
        flow = &program.flows[program.steps[i].out]
        if flow.deliveries == 0:
            continue
        for k in range(program.n_flows):
            ending = &program.flows[k]
            if (ending.owned and not ending.computed and ending.deliveries == 0 and ending.last <= i
                    and ending.dtype == flow.dtype and ending.step == flow.step and ending.row == 0
                    and exclusive(ending.array)):
                flow.array = ending.array
                ending.owned = False
                break
        else:
            flow.array = array_empty(flow.dtype, fusion.like.ndim, fusion.like.shape)
            if flow.array == NULL:
                return MEMORY_ERROR
        flow.owned = True
    return OK


cdef int _leave(fusion_t *fusion) noexcept nogil:
    """Deliver the gradients to the nodes outside, in the order of the unfused execution."""
    cdef delivery_t *delivery
    cdef flow_t *flow
    cdef array_t *array
    cdef int i, status = OK, failed
    for i in range(fusion.n_deliveries):
        delivery = &fusion.deliveries[i]
        if not delivery.waits:
            continue
        flow = &fusion.program.flows[delivery.flow]
        array = flow.array
        flow.deliveries -= 1
        if flow.deliveries == 0 and flow.owned:        # the last consumer gets the fusion's reference
            flow.owned = False
            flow.array = NULL
        else:
            retain(array)
        failed = fit(delivery.source.node.metas[delivery.edge], &array) if delivery.to_fit else OK
        if failed == OK:
            failed = deliver(fusion.plan, delivery.source, delivery.edge, array)
        else:
            release(array)
        status = status if status != OK else failed
    return status


cdef void _end(fusion_t *fusion) noexcept nogil:
    cdef flow_t *flow
    cdef node_t *node
    cdef int i, k
    for i in range(fusion.program.n_flows):
        flow = &fusion.program.flows[i]
        if flow.owned:
            release(flow.array)
    for i in range(fusion.nodes.count):
        node = fusion.nodes.items[i].node
        for k in range(node.op.n_saved):
            clear(&fusion.saved[i][k])
        if node.released and atomic_load(&node.task) != fusion.plan.id:
            note_release(node)


cdef bint _leads_to(const item_t *item, const node_t *target) noexcept nogil:
    cdef int k
    for k in range(item.node.n_edges):
        if item.node.edges[k].node == target:
            return True
    return False


cdef bint _is_free(const fusion_t *fusion, item_t *item) noexcept nogil:
    """Does the item wait for nodes of the fusion only?"""
    cdef const node_t *node
    cdef int i, k, edges = 0
    if fusion.plan.parts == NULL:
        # Everything before it has run except skipped items; none of these may come before it in a sum.
        for i in range(fusion.passed.count):
            if _leads_to(fusion.passed.items[i], item.node):
                return False
            for k in range(item.node.n_edges):
                if item.node.edges[k].node != NULL and _leads_to(fusion.passed.items[i], item.node.edges[k].node):
                    return False
        return True
    for i in range(fusion.nodes.count):
        node = fusion.nodes.items[i].node
        for k in range(node.n_edges):
            edges += node.edges[k].node == item.node
    return 0 < still_waiting(item) == edges


cdef int _collect(fusion_t *fusion, int64_t place) noexcept nogil:
    """Add the item at `place` and later ones that fit, skipping some that do not."""
    cdef plan_t *plan = fusion.plan
    cdef item_t *item
    cdef int status = OK
    while place < plan.n_items and fusion.passed.count < FAR:
        item = &plan.items[plan.order[place]]
        place += 1
        if not item.needed or was_fused(item) or item.node.gradient != NULL and not (item.python or item.node.python):
            continue                         # leaves get their gradients afterwards
        if item.python or item.node.python:
            break                            # its hooks might access anything
        if not ((fusion.nodes.count == 0 or _is_free(fusion, item)) and _join(fusion, item, &status)):
            if status != OK or fusion.nodes.count == 0:
                break
            fusion.passed.items[fusion.passed.count] = item
            fusion.passed.count += 1
    return status


cdef bint _has_company(plan_t *plan, const item_t *item, int64_t place) noexcept nogil:
    """Is there a node soon after this one that it leads to and that might join it?"""
    cdef const item_t *other
    cdef int64_t k, size = 0 if plan.sums[item.buffers] == NULL else plan.sums[item.buffers].size
    for k in range(place + 1, min(place + 1 + 2 * FAR, plan.n_items)):
        other = &plan.items[plan.order[k]]
        if (other.needed and not was_fused(other) and _leads_to(item, other.node) and _may_join(other)
                and not _computes(item, size) and (_computes(item, -1) or not _computes(other, size))):
            return True
    return False


cdef bint _fuse_nodes(plan_t *plan, int64_t place, bint keep, int *status, fused_t *done) noexcept nogil:
    cdef item_t *item = &plan.items[plan.order[place]]
    cdef fusion_t *fusion
    cdef bint ran
    cdef int i
    status[0] = OK
    done.count = 0
    if not _may_join(item) or not _has_company(plan, item, place):
        return False
    fusion = <fusion_t *>malloc(sizeof(fusion_t))
    if fusion == NULL:
        return False
    fusion.plan, fusion.keep, fusion.like = plan, keep, NULL
    fusion.nodes.count = fusion.passed.count = fusion.n_deliveries = 0
    fusion.program.n_flows = fusion.program.n_steps = fusion.program.n_cells = fusion.program.n_calls = 0
    status[0] = _collect(fusion, place)
    if fusion.nodes.count and status[0] == OK:
        for i in range(fusion.nodes.count):
            mark_fused(fusion.nodes.items[i])
        fusion.program.size = fusion.like.size
        atomic_add(&_fusions, 1)
        status[0] = _make_room(fusion)
        if status[0] == OK:
            status[0] = run_fusion(&fusion.program)
        if status[0] == OK:
            status[0] = _leave(fusion)
    _end(fusion)
    done[0] = fusion.nodes
    ran = done.count > 0 or status[0] != OK
    free(fusion)
    return ran


def count_fusions():
    """Return how many fusions have been run, for tests."""
    return _fusions


def set_fuse_from(int64_t elements):
    """Fuse nodes of n elements and more; return the former n."""
    global _fuse_from
    former, _fuse_from = _fuse_from, elements
    set_fuser(_fuse_nodes, elements)
    return former


set_fuser(_fuse_nodes, _fuse_from)
