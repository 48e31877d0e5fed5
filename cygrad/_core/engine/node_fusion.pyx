"""
Backward of element-wise nodes that follow each other, in one pass over memory.

Node after node, a chain of k element-wise nodes costs k passes over memory, and as many again where gradients meet. The
plan knows them all beforehand: here the formulas of consecutive nodes become the stages of one fused loop. Only what
saved tensors hold is read, and only what leaves the fusion is written.

Every element goes through the operations of the nodes one by one, and gradients meet in the same order: each bit is
that of the run node by node. Taken are nodes whose formulas are element-wise (or hand the gradient on), of real
numbers and one shape, with saved tensors without gaps or broadcast in a simple way. A few nodes between them that do
not fit are passed over.

In a team other members run nodes at the same time. A node may join there if all that it still waits for are nodes of
the fusion: no other code can get a reference then.
"""

from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc
from cygrad._core.arrays.array cimport (
    ARRAY, array_empty, array_t, clear, exclusive, is_number, release, retain, same_shape, value_t,
)
from cygrad._core.arrays.dtype cimport is_short, itemsize
from cygrad._core.elementwise.program cimport MAX_INPUTS
from cygrad._core.elementwise.tiles cimport (
    MAX_CELLS, MAX_FUSED, fused_loop_t, fused_operand_t, fused_stage_t, place_cells, run_fused_loop, slots_t,
    specialize, specialized_t,
)
from cygrad._core.engine.node_run cimport MOST_FUSED, deliver, fused_t, set_fuser
from cygrad._core.engine.plan cimport item_t, mark_fused, parts_t, plan_find, plan_t, still_waiting, was_fused
from cygrad._core.graph.native cimport can_take, fit, native_backward, take_saved
from cygrad._core.graph.node cimport node_t, note_release
from cygrad._core.memory.atomic cimport atomic_add, atomic_load, lock, unlock
from cygrad._core.memory.errors cimport MEMORY_ERROR, OK
from cygrad._core.table.interpreter cimport FUSED, GRADS_SPACE, SAVED_SPACE, code_t
from cygrad._core.table.operator cimport MAX_ARGUMENTS, MAX_SAVED, first_edge, operator_t


cdef enum:
    MOST_FLOWS = MAX_FUSED
    MOST_STEPS = 48
    MOST_CELLS = 256
    WIDEST = 8                # bytes of an element: fusions have no complex numbers
    MOST_DELIVERIES = 64
    FAR = 8                   # nodes skipped at most; no more than MOST_FUSED

cdef int64_t _fuse_from = 65536         # elements of a node; below, passes over memory cost little
cdef int64_t _fusions = 0


# What is known of an operand of the fused loop: a saved array, or a gradient.
ctypedef struct flow_t:
    array_t *array            # its whole memory; NULL: it exists one tile at a time
    int32_t last              # the last stage that reads it, or -1
    int32_t deliveries        # number of consumers outside of the fusion
    int32_t owned             # the fusion holds a reference to the array
    int32_t computed          # written by a stage: until then `array` is the destination

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
    int32_t n_cells
    flow_t flows[MOST_FLOWS]              # parallel to `operands`
    fused_operand_t operands[MOST_FLOWS]
    fused_stage_t stages[MOST_STEPS]
    char *cells[MOST_CELLS]
    double complex numbers[MOST_CELLS]
    fused_loop_t loop


# ------------------------------------------------------------------------------------------------------- what fits

cdef bint _may_join(const item_t *item) noexcept nogil:
    """Return whether this node can be fused, as far as is known without its gradient."""
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
    """Return whether the node computes a gradient for a broadcast operand; -1: for any operand."""
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
    """Return whether tiles can read an operand that broadcasts to the shape of the fusion; see fused_operand_t."""
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
    """Return the dtype of the item's gradient if it has the common shape; otherwise -1."""
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
        if delivery.to_fit or dtype[0] >= 0 and dtype[0] != fusion.operands[delivery.flow].dtype:
            return False
        dtype[0] = fusion.operands[delivery.flow].dtype
    return dtype[0] >= 0


cdef bint _computed_here(const fusion_t *fusion, const item_t *item) noexcept nogil:
    """Return whether any part of the item's gradient is computed in the fusion."""
    cdef int i
    for i in range(fusion.n_deliveries):
        if (fusion.deliveries[i].waits and fusion.deliveries[i].buffer == item.buffers
                and fusion.flows[fusion.deliveries[i].flow].computed):
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
    if program == NULL or program.temporary or program.partial or itemsize(program.dtype) > WIDEST:
        return NULL
    return program


cdef bint _formulas_fit(fusion_t *fusion, node_t *node, int dtype, specialized_t **programs) noexcept nogil:
    """Return whether all formulas can be fused. programs[argument]: specialized, or NULL to pass the gradient on."""
    cdef const code_t *code
    cdef value_t[MAX_SAVED] saved
    cdef int i
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
    unlock(&node.lock)
    return fits


cdef bint _has_room(const fusion_t *fusion, const operator_t *op) noexcept nogil:
    """Check capacity for the worst case of a node: a flow per saved value, a formula and two sums per argument."""
    cdef int more = 3 * op.n_arguments + fusion.n_deliveries
    return (fusion.nodes.count < MOST_FUSED and fusion.n_deliveries + op.n_arguments <= MOST_DELIVERIES
            and fusion.loop.n_operands + op.n_saved + 1 + more <= MOST_FLOWS
            and fusion.loop.n_stages + more <= MOST_STEPS
            and fusion.n_cells + op.n_arguments * MAX_CELLS <= MOST_CELLS)


# -------------------------------------------------------------------------------------------------- making the stages

cdef int _new_flow(fusion_t *fusion, array_t *array, int dtype) noexcept nogil:
    cdef int i = fusion.loop.n_operands
    fusion.loop.n_operands += 1
    fusion.operands[i] = fused_operand_t(NULL, itemsize(dtype), 0, dtype, False)
    fusion.flows[i] = flow_t(array, -1, 0, False, array == NULL)
    if array != NULL:
        fusion.operands[i].data = array.data
        _lies_evenly(fusion, array, &fusion.operands[i].step, &fusion.operands[i].row)
    return i


cdef fused_stage_t *_new_stage(fusion_t *fusion, specialized_t *program, int dtype) noexcept nogil:
    cdef fused_stage_t *stage = &fusion.stages[fusion.loop.n_stages]
    fusion.loop.n_stages += 1
    stage.program = program
    stage.cells = &fusion.cells[fusion.n_cells]
    stage.out = _new_flow(fusion, NULL, dtype)
    return stage


cdef void _read(fusion_t *fusion, fused_stage_t *stage, int input, int flow) noexcept nogil:
    """Make a flow an input of the last stage; -1 for a number."""
    stage.inputs[input] = flow
    if flow >= 0:
        fusion.flows[flow].last = fusion.loop.n_stages - 1


cdef int _sum(fusion_t *fusion, int first, int second) noexcept nogil:
    cdef fused_stage_t *stage = _new_stage(fusion, NULL, fusion.operands[first].dtype)
    _read(fusion, stage, 0, first)
    _read(fusion, stage, 1, second)
    return stage.out


cdef int _arrived(fusion_t *fusion, array_t **part, int flow) noexcept nogil:
    """Take over a part that existed before the fusion; the flow of the sum with it."""
    cdef int other
    if part[0] == NULL:
        return flow
    other = _new_flow(fusion, part[0], part[0].dtype)
    fusion.flows[other].owned = True
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
    cdef fused_stage_t *stage = _new_stage(fusion, program, program.dtype)
    cdef value_t[MAX_INPUTS] inputs
    cdef slots_t slots
    cdef int i, space, place
    for i in range(code.steps.n_inputs):
        space, place = code.steps.inputs[i] >> 8, code.steps.inputs[i] & 255
        inputs[i].kind = ARRAY
        if space == GRADS_SPACE:
            _read(fusion, stage, i, gradient)
            continue
        inputs[i] = saved[place] if space == SAVED_SPACE else code.constants[place]
        if inputs[i].kind != ARRAY:
            _read(fusion, stage, i, -1)
            continue
        if saved_flows[place] < 0:
            saved_flows[place] = _new_flow(fusion, inputs[i].of.array, inputs[i].of.array.dtype)
        _read(fusion, stage, i, saved_flows[place])
    place_cells(program, inputs, &slots, &fusion.numbers[fusion.n_cells])
    for i in range(program.n_cells):
        stage.cells[i] = slots.data[program.n_inputs + i]
    fusion.n_cells += program.n_cells
    return stage.out


cdef void _hand_on(fusion_t *fusion, item_t *item, int edge, int flow) noexcept nogil:
    """Add an edge to a node of the fusion, or out of it; contributions to one target are summed immediately."""
    cdef node_t *node = item.node
    cdef item_t *target = plan_find(fusion.plan, node.edges[edge].node)
    cdef int64_t buffer = target.buffers + node.edges[edge].input_nr
    cdef const array_t *meta = NULL if node.metas == NULL else node.metas[edge]
    cdef bint to_fit = meta != NULL and not (same_shape(meta, fusion.like)
                                             and meta.dtype == fusion.operands[flow].dtype)
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
            and fusion.operands[first.flow].dtype == fusion.operands[flow].dtype
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
    cdef flow_t *flow
    cdef flow_t *ending
    cdef fused_operand_t *operand
    cdef const fused_operand_t *other
    cdef int i, k
    for i in range(fusion.n_deliveries):
        if fusion.deliveries[i].waits:
            fusion.flows[fusion.deliveries[i].flow].deliveries += 1
    for i in range(fusion.loop.n_stages):
        flow, operand = &fusion.flows[fusion.stages[i].out], &fusion.operands[fusion.stages[i].out]
        if flow.deliveries == 0:
            continue
        for k in range(fusion.loop.n_operands):
            ending, other = &fusion.flows[k], &fusion.operands[k]
            if (ending.owned and not ending.computed and ending.deliveries == 0 and ending.last <= i
                    and other.dtype == operand.dtype and other.step == operand.step and other.row == 0
                    and exclusive(ending.array)):
                flow.array = ending.array
                ending.owned = False
                break
        else:
            flow.array = array_empty(operand.dtype, fusion.like.ndim, fusion.like.shape)
            if flow.array == NULL:
                return MEMORY_ERROR
        flow.owned = True
        operand.data, operand.kept = flow.array.data, True
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
        flow = &fusion.flows[delivery.flow]
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
    for i in range(fusion.loop.n_operands):
        flow = &fusion.flows[i]
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
    """Return whether the item waits for nodes of the fusion only."""
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
    """Return whether a node soon after this one that it leads to can join the fusion."""
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
    fusion.n_cells = 0
    fusion.loop.n_operands = fusion.loop.n_stages = 0
    fusion.loop.operands, fusion.loop.stages = fusion.operands, fusion.stages
    status[0] = _collect(fusion, place)
    if fusion.nodes.count and status[0] == OK:
        for i in range(fusion.nodes.count):
            mark_fused(fusion.nodes.items[i])
        fusion.loop.size = fusion.like.size
        atomic_add(&_fusions, 1)
        status[0] = _make_room(fusion)
        if status[0] == OK:
            status[0] = run_fused_loop(&fusion.loop)
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
