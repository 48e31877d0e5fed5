"""
Backward of element-wise nodes that follow each other, in one sweep over memory.

Node after node, a chain of k element-wise nodes costs k passes over memory, and as many again where gradients meet. The
plan knows them all beforehand: here the formulas of consecutive nodes become one list of steps, which run on one tile
after the other. Only what saved tensors hold is read, and only what leaves the sweep is written.

Every element goes through the operations of the nodes one by one, and gradients meet in the same order: each bit is
that of the run node by node. Taken are nodes whose formulas are element-wise (or hand the gradient on), of real
numbers and one shape, with saved tensors without gaps or broadcast in a simple way. A few nodes between them that do
not fit are passed over.

In a team other members run nodes at the same time. A node may join there if all that it still waits for are nodes of
the sweep: nobody else can get hold of it then.
"""

from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc
from cygrad._core.array cimport array_empty, array_t, exclusive, release, retain, same_shape
from cygrad._core.atomic cimport atomic_add, atomic_load, lock, unlock
from cygrad._core.calls cimport note_release
from cygrad._core.dtype cimport itemsize
from cygrad._core.errors cimport MEMORY_ERROR, OK
from cygrad._core.machine cimport FUSED, GRADS_SPACE, SAVED_SPACE, code_t
from cygrad._core.native cimport can_take, fit, native_backward, take_saved
from cygrad._core.node cimport node_t
from cygrad._core.operator cimport MAX_ARGUMENTS, MAX_SAVED, first_edge, operator_t
from cygrad._core.plan cimport item_t, mark_swept, parts_t, plan_find, plan_t, was_swept
from cygrad._core.program cimport MAX_INPUTS
from cygrad._core.run cimport MOST_SWEPT, deliver, set_sweeper, swept_t
from cygrad._core.specialise cimport MAX_CELLS, specialise, specialised_t
from cygrad._core.sweep_tiles cimport (
    MOST_CALLS, MOST_CELLS, MOST_FLOWS, MOST_STEPS, WIDEST, fits_tiles, flow_t, program_of_sweep_t, run_sweep,
    sweep_step_t)
from cygrad._core.tiles cimport place_cells, slots_t
from cygrad._core.value cimport ARRAY, clear, is_number, value_t

cdef enum:
    MOST_DELIVERIES = 64
    FAR = 8                   # nodes that are passed over at most; no more than MOST_SWEPT

cdef int64_t _sweep_from = 65536         # elements of a node; below, passes over memory cost little
cdef int64_t _sweeps = 0


# What an edge hands on.
ctypedef struct delivery_t:
    item_t *source
    int32_t edge
    int64_t buffer            # where it leads
    int32_t flow
    int32_t waits             # it is not yet part of anything else
    int32_t to_fit            # it has to be brought to another shape or dtype
    int32_t rank              # in a team: of its first part among the contributions to the target
    int32_t count             # parts that it is the sum of

ctypedef struct sweep_t:
    plan_t *plan
    bint keep
    const array_t *like       # the gradient that came first: all have its shape
    int32_t n_deliveries
    swept_t nodes
    swept_t passed            # items between them that could not join
    value_t saved[MOST_SWEPT][MAX_SAVED]
    delivery_t deliveries[MOST_DELIVERIES]
    program_of_sweep_t program


# ------------------------------------------------------------------------------------------------------- what fits

cdef bint _may_join(const item_t *item) noexcept nogil:
    """Could this node be part of a sweep, as far as can be told without its gradient?"""
    cdef const node_t *node = item.node
    cdef const operator_t *op = node.op
    cdef const code_t *code
    cdef int i
    if (node.work < _sweep_from or node.backward != native_backward or item.python or node.python or item.captured
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
    """Does the node compute anything for an operand with fewer elements, which was broadcast? -1: for any operand?"""
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


cdef bint _lies_evenly(const sweep_t *sweep, const array_t *array, int64_t *step, int64_t *row) noexcept nogil:
    """Can the tiles read an operand that broadcasts to the sweep's shape? How: see flow_t."""
    cdef const array_t *like = sweep.like
    cdef int64_t size, stride, covered = 1, trailing = 1
    cdef int64_t nbytes = itemsize(array.dtype)
    cdef bint over = False                   # the dimensions that are walked through have ended
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


cdef bint _part_fits(const sweep_t *sweep, const array_t *part, int *dtype) noexcept nogil:
    if part == NULL:
        return True
    cdef int64_t step, row
    if (not same_shape(part, sweep.like) or not _lies_evenly(sweep, part, &step, &row)
            or dtype[0] >= 0 and dtype[0] != part.dtype):
        return False
    dtype[0] = part.dtype
    return True


cdef inline parts_t *_parts(const sweep_t *sweep, const item_t *item) noexcept nogil:
    """The parts of its gradient that a team has kept apart; NULL if there are none."""
    cdef parts_t *parts = sweep.plan.parts
    return &parts[item.buffers] if parts != NULL and parts[item.buffers].count else NULL


cdef bint _gradient_fits(sweep_t *sweep, const item_t *item, int *dtype) noexcept nogil:
    """Is there a gradient for the item, and of the shape of all? Its dtype."""
    cdef const array_t *sum = sweep.plan.sums[item.buffers]
    cdef const parts_t *parts = _parts(sweep, item)
    cdef const delivery_t *delivery
    cdef int i
    dtype[0] = -1
    if sweep.like == NULL:
        sweep.like = sum
    if not _part_fits(sweep, sum, dtype):
        return False
    if parts != NULL:
        for i in range(parts.count):
            if not _part_fits(sweep, parts.arrays[i], dtype):
                return False
    for i in range(sweep.n_deliveries):
        delivery = &sweep.deliveries[i]
        if not delivery.waits or delivery.buffer != item.buffers:
            continue
        if delivery.to_fit or dtype[0] >= 0 and dtype[0] != sweep.program.flows[delivery.flow].dtype:
            return False
        dtype[0] = sweep.program.flows[delivery.flow].dtype
    return dtype[0] >= 0


cdef bint _computed_here(const sweep_t *sweep, const item_t *item) noexcept nogil:
    """Is any of the item's gradient computed in the sweep?"""
    cdef int i
    for i in range(sweep.n_deliveries):
        if (sweep.deliveries[i].waits and sweep.deliveries[i].buffer == item.buffers
                and sweep.program.flows[sweep.deliveries[i].flow].computed):
            return True
    return False


cdef specialised_t *_formula(sweep_t *sweep, const code_t *code, const value_t *saved, int dtype) noexcept nogil:
    """The formula made ready for these saved values and a gradient of this dtype; NULL if it cannot be swept."""
    cdef value_t[MAX_INPUTS] inputs
    cdef array_t gradient
    cdef specialised_t *program
    cdef int64_t step, row
    cdef int i, space, status = OK
    gradient.dtype = dtype
    gradient.ndim = sweep.like.ndim
    for i in range(code.steps.n_inputs):
        space = code.steps.inputs[i] >> 8
        if space == GRADS_SPACE:
            inputs[i].kind = ARRAY
            inputs[i].of.array = &gradient
            continue
        inputs[i] = saved[code.steps.inputs[i] & 255] if space == SAVED_SPACE else code.constants[
            code.steps.inputs[i] & 255]
        if inputs[i].kind == ARRAY:
            if not _lies_evenly(sweep, inputs[i].of.array, &step, &row):
                return NULL
        elif not is_number(&inputs[i]):
            return NULL
    program = specialise(code.steps.program, inputs, &status)
    if program == NULL or program.temporary or not fits_tiles(program):
        return NULL
    return program


cdef bint _formulas_fit(sweep_t *sweep, node_t *node, int dtype, specialised_t **programs) noexcept nogil:
    """Can all formulas of the node be swept? programs[argument]: made ready, NULL where the gradient is handed on."""
    cdef const code_t *code
    cdef value_t[MAX_SAVED] saved
    cdef int i, calls = sweep.program.n_calls + node.op.n_arguments + sweep.n_deliveries
    cdef bint fits
    lock(&node.lock)            # another thread may be about to release what is looked at
    fits = not node.released
    for i in range(node.op.n_saved):
        saved[i] = node.saved[i].value
    for i in range(node.op.n_arguments):
        programs[i] = NULL
        code = <const code_t *>node.op.formulas[i]
        if fits and code != NULL and code.n_steps and node.needed >> i & 1:
            programs[i] = _formula(sweep, code, saved, dtype)
            fits = programs[i] != NULL
            calls += programs[i].n_steps if fits else 0
    unlock(&node.lock)
    return fits and calls <= MOST_CALLS


cdef bint _has_room(const sweep_t *sweep, const operator_t *op) noexcept nogil:
    """For the worst that a node may add: a flow for each saved value, and a formula and two sums for each argument."""
    cdef int more = 3 * op.n_arguments + sweep.n_deliveries
    return (sweep.nodes.count < MOST_SWEPT and sweep.n_deliveries + op.n_arguments <= MOST_DELIVERIES
            and sweep.program.n_flows + op.n_saved + 1 + more <= MOST_FLOWS
            and sweep.program.n_steps + more <= MOST_STEPS
            and sweep.program.n_cells + op.n_arguments * MAX_CELLS <= MOST_CELLS)


# --------------------------------------------------------------------------------------------------- making the steps

cdef int _new_flow(sweep_t *sweep, array_t *array, int dtype) noexcept nogil:
    cdef int i = sweep.program.n_flows
    cdef flow_t *flow = &sweep.program.flows[i]
    sweep.program.n_flows += 1
    flow.array = array
    flow.step, flow.row = itemsize(dtype), 0
    if array != NULL:
        _lies_evenly(sweep, array, &flow.step, &flow.row)
    flow.dtype = dtype
    flow.last = -1
    flow.deliveries = 0
    flow.owned = False
    flow.computed = array == NULL
    return i


cdef sweep_step_t *_new_step(sweep_t *sweep, specialised_t *program, int dtype) noexcept nogil:
    cdef sweep_step_t *step = &sweep.program.steps[sweep.program.n_steps]
    sweep.program.n_steps += 1
    sweep.program.n_calls += program.n_steps if program != NULL else 1
    step.program = program
    step.n_inputs = 0
    step.first_cell = sweep.program.n_cells
    step.out = _new_flow(sweep, NULL, dtype)
    return step


cdef void _read(sweep_t *sweep, sweep_step_t *step, int flow) noexcept nogil:
    """Let a flow be the next input of the step."""
    step.inputs[step.n_inputs] = flow
    step.n_inputs += 1
    if flow >= 0:
        sweep.program.flows[flow].last = sweep.program.n_steps - 1


cdef int _sum(sweep_t *sweep, int first, int second) noexcept nogil:
    cdef sweep_step_t *step = _new_step(sweep, NULL, sweep.program.flows[first].dtype)
    _read(sweep, step, first)
    _read(sweep, step, second)
    return step.out


cdef int _arrived(sweep_t *sweep, array_t **part, int flow) noexcept nogil:
    """Take over a part that was there before the sweep; the flow of the sum with it."""
    cdef int other
    if part[0] == NULL:
        return flow
    other = _new_flow(sweep, part[0], part[0].dtype)
    sweep.program.flows[other].owned = True
    part[0] = NULL
    return other if flow < 0 else _sum(sweep, flow, other)


cdef int _gradient(sweep_t *sweep, item_t *item) noexcept nogil:
    """The flow of an item's gradient: what has arrived, and what was computed for it here, in that order."""
    cdef const parts_t *parts = _parts(sweep, item)
    cdef delivery_t *delivery
    cdef int i, rank, flow = -1
    flow = _arrived(sweep, &sweep.plan.sums[item.buffers], flow)
    for rank in range(parts.count if parts != NULL else 1):
        if parts != NULL:
            flow = _arrived(sweep, &parts.arrays[rank], flow)
        for i in range(sweep.n_deliveries):
            delivery = &sweep.deliveries[i]
            if delivery.waits and delivery.buffer == item.buffers and (parts == NULL or delivery.rank == rank):
                delivery.waits = False
                flow = delivery.flow if flow < 0 else _sum(sweep, flow, delivery.flow)
    return flow


cdef int _compute(sweep_t *sweep, const code_t *code, specialised_t *program, const value_t *saved, int *saved_flows,
                  int gradient) noexcept nogil:
    """The flow of a formula's result."""
    cdef program_of_sweep_t *whole = &sweep.program
    cdef sweep_step_t *step = _new_step(sweep, program, program.dtype)
    cdef value_t[MAX_INPUTS] inputs
    cdef slots_t slots
    cdef int i, space, place
    for i in range(code.steps.n_inputs):
        space, place = code.steps.inputs[i] >> 8, code.steps.inputs[i] & 255
        inputs[i].kind = ARRAY
        if space == GRADS_SPACE:
            _read(sweep, step, gradient)
            continue
        inputs[i] = saved[place] if space == SAVED_SPACE else code.constants[place]
        if inputs[i].kind != ARRAY:
            _read(sweep, step, -1)
            continue
        if saved_flows[place] < 0:
            saved_flows[place] = _new_flow(sweep, inputs[i].of.array, inputs[i].of.array.dtype)
        _read(sweep, step, saved_flows[place])
    place_cells(program, inputs, &slots, &whole.numbers[whole.n_cells])
    for i in range(program.n_cells):
        whole.cells[whole.n_cells + i] = slots.data[program.n_inputs + i]
    whole.n_cells += program.n_cells
    return step.out


cdef void _hand_on(sweep_t *sweep, item_t *item, int edge, int flow) noexcept nogil:
    """An edge leads somewhere: to a node of the sweep, or out of it; what goes to one place is summed at once."""
    cdef node_t *node = item.node
    cdef item_t *target = plan_find(sweep.plan, node.edges[edge].node)
    cdef int64_t buffer = target.buffers + node.edges[edge].input_nr
    cdef const array_t *meta = NULL if node.metas == NULL else node.metas[edge]
    cdef bint to_fit = meta != NULL and not (same_shape(meta, sweep.like)
                                             and meta.dtype == sweep.program.flows[flow].dtype)
    cdef delivery_t *delivery
    cdef int i
    cdef delivery_t *first = NULL
    cdef int waiting = 0, rank = 0 if sweep.plan.ranks == NULL else sweep.plan.ranks[item.first_edge + edge]
    for i in range(sweep.n_deliveries):
        if sweep.deliveries[i].waits and sweep.deliveries[i].buffer == buffer:
            first = &sweep.deliveries[i]
            waiting += 1
    # Where something else comes first, the sum begins with that: then the parts stay apart until they meet there.
    if (waiting == 1 and not to_fit and not first.to_fit
            and sweep.program.flows[first.flow].dtype == sweep.program.flows[flow].dtype
            and (sweep.plan.ranks == NULL or first.rank == 0 and rank == first.count)
            and sweep.plan.sums[buffer] == NULL):
        first.flow = _sum(sweep, first.flow, flow)
        first.count += 1
        return
    delivery = &sweep.deliveries[sweep.n_deliveries]
    sweep.n_deliveries += 1
    delivery.source, delivery.edge, delivery.buffer, delivery.flow = item, edge, buffer, flow
    delivery.waits, delivery.to_fit, delivery.rank, delivery.count = True, to_fit, rank, 1


cdef bint _join(sweep_t *sweep, item_t *item, int *status) noexcept nogil:
    """Add a node to the sweep if it fits."""
    cdef specialised_t *programs[MAX_ARGUMENTS]
    cdef int[MAX_SAVED] saved_flows
    cdef node_t *node = item.node
    cdef const operator_t *op = node.op
    cdef value_t *saved
    cdef int i, edge, gradient, flow, dtype
    # Alone it sums what it computes for a broadcast operand without writing it: joining must save as much.
    if not (_may_join(item) and _has_room(sweep, op) and _gradient_fits(sweep, item, &dtype) and can_take(node)
            and (not _computes(item, sweep.like.size) or _computed_here(sweep, item))
            and _formulas_fit(sweep, node, dtype, programs)):
        return False
    saved = sweep.saved[sweep.nodes.count]
    status[0] = take_saved(node, saved, sweep.keep, False)
    if status[0] != OK:
        return False
    sweep.nodes.items[sweep.nodes.count] = item
    sweep.nodes.count += 1
    gradient = _gradient(sweep, item)
    for i in range(op.n_saved):
        saved_flows[i] = -1
    for i in range(op.n_arguments):
        if op.formulas[i] == NULL or not node.needed >> i & 1:
            continue
        edge = first_edge(op, i, node.n_edges)
        if node.edges[edge].node == NULL or not plan_find(sweep.plan, node.edges[edge].node).needed:
            continue
        flow = gradient
        if programs[i] != NULL:
            flow = _compute(sweep, <const code_t *>op.formulas[i], programs[i], saved, saved_flows, gradient)
        _hand_on(sweep, item, edge, flow)
    return True


# ---------------------------------------------------------------------------------------------------- what comes of it

cdef int _make_room(sweep_t *sweep) noexcept nogil:
    """Memory for the gradients that leave the sweep: that of one which ends here, or new."""
    cdef program_of_sweep_t *program = &sweep.program
    cdef flow_t *flow
    cdef flow_t *ending
    cdef int i, k
    for i in range(sweep.n_deliveries):
        if sweep.deliveries[i].waits:
            program.flows[sweep.deliveries[i].flow].deliveries += 1
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
            flow.array = array_empty(flow.dtype, sweep.like.ndim, sweep.like.shape)
            if flow.array == NULL:
                return MEMORY_ERROR
        flow.owned = True
    return OK


cdef int _leave(sweep_t *sweep) noexcept nogil:
    """Hand the gradients to the nodes outside, in the order in which node by node would."""
    cdef delivery_t *delivery
    cdef flow_t *flow
    cdef array_t *array
    cdef int i, status = OK, failed
    for i in range(sweep.n_deliveries):
        delivery = &sweep.deliveries[i]
        if not delivery.waits:
            continue
        flow = &sweep.program.flows[delivery.flow]
        array = flow.array
        flow.deliveries -= 1
        if flow.deliveries == 0 and flow.owned:        # the last one gets our own reference
            flow.owned = False
            flow.array = NULL
        else:
            retain(array)
        failed = fit(delivery.source.node.metas[delivery.edge], &array) if delivery.to_fit else OK
        if failed == OK:
            failed = deliver(sweep.plan, delivery.source, delivery.edge, array)
        else:
            release(array)
        status = status if status != OK else failed
    return status


cdef void _end(sweep_t *sweep) noexcept nogil:
    cdef flow_t *flow
    cdef node_t *node
    cdef int i, k
    for i in range(sweep.program.n_flows):
        flow = &sweep.program.flows[i]
        if flow.owned:
            release(flow.array)
    for i in range(sweep.nodes.count):
        node = sweep.nodes.items[i].node
        for k in range(node.op.n_saved):
            clear(&sweep.saved[i][k])
        if node.released and atomic_load(&node.task) != sweep.plan.id:
            note_release(node)


cdef bint _leads_to(const item_t *item, const node_t *target) noexcept nogil:
    cdef int k
    for k in range(item.node.n_edges):
        if item.node.edges[k].node == target:
            return True
    return False


cdef bint _is_free(const sweep_t *sweep, item_t *item) noexcept nogil:
    """Does the item wait for nodes of the sweep only?"""
    cdef const node_t *node
    cdef int i, k, edges = 0
    cdef bint alone
    if sweep.plan.lock == NULL:
        # Everything before it has run but what was passed over; and none of that may come before it in a sum.
        for i in range(sweep.passed.count):
            if _leads_to(sweep.passed.items[i], item.node):
                return False
            for k in range(item.node.n_edges):
                if item.node.edges[k].node != NULL and _leads_to(sweep.passed.items[i], item.node.edges[k].node):
                    return False
        return True
    for i in range(sweep.nodes.count):
        node = sweep.nodes.items[i].node
        for k in range(node.n_edges):
            edges += node.edges[k].node == item.node
    lock(sweep.plan.lock)
    alone = 0 < item.waiting == edges
    unlock(sweep.plan.lock)
    return alone


cdef int _collect(sweep_t *sweep, int64_t place) noexcept nogil:
    """Let the item at `place` and those behind it join that can, and pass over some that cannot."""
    cdef plan_t *plan = sweep.plan
    cdef item_t *item
    cdef int status = OK
    while place < plan.n_items and sweep.passed.count < FAR:
        item = &plan.items[plan.order[place]]
        place += 1
        if not item.needed or was_swept(item) or item.node.gradient != NULL and not (item.python or item.node.python):
            continue                         # leaves take what they get afterwards
        if item.python or item.node.python:
            break                            # as its hooks might look at anything
        if not ((sweep.nodes.count == 0 or _is_free(sweep, item)) and _join(sweep, item, &status)):
            if status != OK or sweep.nodes.count == 0:
                break
            sweep.passed.items[sweep.passed.count] = item
            sweep.passed.count += 1
    return status


cdef bint _has_company(plan_t *plan, const item_t *item, int64_t place) noexcept nogil:
    """Is there a node close behind that this one leads to and that might join it?"""
    cdef const item_t *other
    cdef int64_t k, size = 0 if plan.sums[item.buffers] == NULL else plan.sums[item.buffers].size
    for k in range(place + 1, min(place + 1 + 2 * FAR, plan.n_items)):
        other = &plan.items[plan.order[k]]
        if (other.needed and not was_swept(other) and _leads_to(item, other.node) and _may_join(other)
                and not _computes(item, size) and (_computes(item, -1) or not _computes(other, size))):
            return True
    return False


cdef bint _sweep(plan_t *plan, int64_t place, bint keep, int *status, swept_t *done) noexcept nogil:
    cdef item_t *item = &plan.items[plan.order[place]]
    cdef sweep_t *sweep
    cdef bint ran
    cdef int i
    status[0] = OK
    done.count = 0
    if not _may_join(item) or not _has_company(plan, item, place):
        return False
    sweep = <sweep_t *>malloc(sizeof(sweep_t))
    if sweep == NULL:
        return False
    sweep.plan, sweep.keep, sweep.like = plan, keep, NULL
    sweep.nodes.count = sweep.passed.count = sweep.n_deliveries = 0
    sweep.program.n_flows = sweep.program.n_steps = sweep.program.n_cells = sweep.program.n_calls = 0
    status[0] = _collect(sweep, place)
    if sweep.nodes.count and status[0] == OK:
        for i in range(sweep.nodes.count):
            mark_swept(sweep.nodes.items[i])
        sweep.program.size = sweep.like.size
        atomic_add(&_sweeps, 1)
        status[0] = _make_room(sweep)
        if status[0] == OK:
            status[0] = run_sweep(&sweep.program)
        if status[0] == OK:
            status[0] = _leave(sweep)
    _end(sweep)
    done[0] = sweep.nodes
    ran = done.count > 0 or status[0] != OK
    free(sweep)
    return ran


def count_sweeps():
    """How many sweeps have been run, for tests."""
    return _sweeps


def set_sweep_from(int64_t elements):
    """Sweep nodes of so many elements and more; -> the former number."""
    global _sweep_from
    former, _sweep_from = _sweep_from, elements
    set_sweeper(_sweep, elements)
    return former


set_sweeper(_sweep, _sweep_from)
