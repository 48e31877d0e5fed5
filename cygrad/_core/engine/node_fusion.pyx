"""
Node fusion: run the backward of consecutive element-wise nodes in one pass over memory.

One by one, a chain of k element-wise nodes reads and writes memory k times, and again where gradients are summed. Here
the formulas of consecutive nodes become the stages of one fused loop, which reads saved tensors and writes only the
gradients that other nodes need.

Results are bit-identical to those of the unfused run: each element passes through the same operations, and gradients
are summed in the same order. A node can be fused if its formulas are element-wise (or return the gradient itself), for
real numbers and one shape, and if tiles can read its saved tensors directly. Up to MAX_SKIPPED nodes between fused
ones are skipped.

In a team other members run nodes concurrently. A node can be fused there if it waits only for nodes of the fusion:
then no other member has a reference to it.
"""

from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc
from cygrad._core.arrays.array cimport (
    ARRAY, array_empty, array_t, clear, exclusive, is_number, release, retain, same_shape, value_t,
)
from cygrad._core.arrays.dtype cimport is_short, itemsize
from cygrad._core.elementwise.expression cimport MAX_INPUTS
from cygrad._core.elementwise.tiles cimport (
    MAX_CELLS, MAX_FUSED, fused_loop_t, fused_operand_t, fused_stage_t, place_cells, run_fused_loop, slots_t,
    specialize, specialized_t,
)
from cygrad._core.engine.node_run cimport MAX_FUSED_NODES, deliver, fused_t, set_fuser
from cygrad._core.engine.plan cimport contributions_t, item_t, mark_fused, plan_find, plan_t, still_waiting, was_fused
from cygrad._core.graph.native cimport can_take, fit, native_backward, take_saved
from cygrad._core.graph.node cimport node_t, note_release
from cygrad._core.memory.atomic cimport atomic_add, atomic_load, lock, unlock
from cygrad._core.memory.errors cimport MEMORY_ERROR, OK
from cygrad._core.program.executor cimport (
    EVALUATE, GRADS_SPACE, SAVED_SPACE, operand_slot, operand_space, program_t,
)
from cygrad._core.table.operator cimport MAX_ARGUMENTS, MAX_SAVED, first_edge, operator_t


cdef enum:
    MAX_OPERANDS = MAX_FUSED
    MAX_STAGES = 48
    MAX_FUSION_CELLS = 256
    MAX_ITEMSIZE = 8                # bytes of an element: fusions have no complex numbers
    MAX_DELIVERIES = 64
    MAX_SKIPPED = 8                   # nodes skipped at most; no more than MAX_FUSED_NODES

cdef int64_t _fuse_from = 65536         # elements of a node; below, passes over memory cost little
cdef int64_t _fusions = 0


# State of an operand of the fused loop: a saved array, or a gradient.
ctypedef struct operand_state_t:
    array_t *array            # its whole memory; NULL: it exists one tile at a time
    int32_t last              # the last stage that reads it, or -1
    int32_t deliveries        # number of consumers outside of the fusion
    int32_t owned             # the fusion holds a reference to the array
    int32_t computed          # written by a stage; until then `array` is the destination

# The output of an edge.
ctypedef struct delivery_t:
    item_t *source
    int32_t edge
    int64_t buffer            # target of the edge
    int32_t operand
    int32_t waits             # not yet summed with others
    int32_t to_fit            # must be reduced or cast for the target
    int32_t rank              # in a team: rank of its first contribution among the contributions to the target
    int32_t count             # number of contributions summed in it

ctypedef struct fusion_t:
    plan_t *plan
    bint keep
    const array_t *like       # the first gradient: all have its shape
    int32_t n_deliveries
    fused_t nodes
    fused_t skipped            # items between them that cannot be fused
    value_t saved[MAX_FUSED_NODES][MAX_SAVED]
    delivery_t deliveries[MAX_DELIVERIES]
    int32_t n_cells
    operand_state_t states[MAX_OPERANDS]              # parallel to `operands`
    fused_operand_t operands[MAX_OPERANDS]
    fused_stage_t stages[MAX_STAGES]
    char *cells[MAX_FUSION_CELLS]
    double complex numbers[MAX_FUSION_CELLS]
    fused_loop_t loop


# ------------------------------------------------------------------------------------------------------- fusibility

cdef bint _is_fusable(const item_t *item) noexcept nogil:
    """Return whether a node can be fused, before its gradient is known."""
    cdef const node_t *node = item.node
    cdef const operator_t *op = node.op
    cdef const program_t *formula
    cdef int i
    if (node.work < _fuse_from or node.backward != native_backward or item.python or node.python or item.captured
            or not item.executed or node.n_outputs != 1 or op.listed != MAX_ARGUMENTS or not op.compiled):
        return False
    for i in range(op.n_arguments):
        if op.formulas[i] != NULL and node.needed >> i & 1:
            formula = op.formulas[i]
            if not (formula.n_instructions == 0 and operand_space(formula.result) == GRADS_SPACE
                    or formula.n_instructions == 1 and formula.instructions.kind == EVALUATE and formula.reads & 1):
                return False
    return True


cdef bint _computes_gradient(const item_t *item, int64_t size) noexcept nogil:
    """Return whether the node computes a gradient for an operand of fewer than `size` elements; -1: for any."""
    cdef const node_t *node = item.node
    cdef const program_t *formula
    cdef int i, edge
    for i in range(node.op.n_arguments):
        formula = node.op.formulas[i]
        if formula != NULL and node.needed >> i & 1 and formula.n_instructions:
            edge = first_edge(node.op, i, node.n_edges)
            if size < 0 or node.metas != NULL and node.metas[edge] != NULL and node.metas[edge].size < size:
                return True
    return False


cdef bint _is_directly_addressable(const fusion_t *fusion, const array_t *array, int64_t *step,
                                   int64_t *row) noexcept nogil:
    """Return whether tiles can read an array that broadcasts to the shape of the fusion; see `fused_operand_t`."""
    cdef const array_t *like = fusion.like
    cdef int64_t size, stride, covered = 1, trailing = 1
    cdef int64_t nbytes = itemsize(array.dtype)
    cdef bint over = False                   # no further dimension can be merged
    cdef int d, own
    step[0] = row[0] = 0
    if array.storage == NULL or array.ndim > like.ndim or nbytes > MAX_ITEMSIZE:
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


cdef bint _contribution_fits(const fusion_t *fusion, const array_t *contribution, int *dtype) noexcept nogil:
    if contribution == NULL:
        return True
    cdef int64_t step, row
    if (is_short(contribution.dtype) or not same_shape(contribution, fusion.like)
            or not _is_directly_addressable(fusion, contribution, &step, &row)
            or dtype[0] >= 0 and dtype[0] != contribution.dtype):
        return False
    dtype[0] = contribution.dtype
    return True


cdef inline contributions_t *_contributions(const fusion_t *fusion, const item_t *item) noexcept nogil:
    """Return the contributions to its gradient that a team keeps separate; NULL if there are none."""
    cdef contributions_t *contributions = fusion.plan.contributions
    return &contributions[item.buffers] if contributions != NULL and contributions[item.buffers].count else NULL


cdef bint _gradient_fits(fusion_t *fusion, const item_t *item, int *dtype) noexcept nogil:
    """Return whether the item's gradient has the common shape, and its dtype."""
    cdef const array_t *sum = fusion.plan.sums[item.buffers]
    cdef const contributions_t *contributions = _contributions(fusion, item)
    cdef const delivery_t *delivery
    cdef int i
    dtype[0] = -1
    if fusion.like == NULL:
        fusion.like = sum
    if not _contribution_fits(fusion, sum, dtype):
        return False
    if contributions != NULL:
        for i in range(contributions.count):
            if not _contribution_fits(fusion, contributions.arrays[i], dtype):
                return False
    for i in range(fusion.n_deliveries):
        delivery = &fusion.deliveries[i]
        if not delivery.waits or delivery.buffer != item.buffers:
            continue
        if delivery.to_fit or dtype[0] >= 0 and dtype[0] != fusion.operands[delivery.operand].dtype:
            return False
        dtype[0] = fusion.operands[delivery.operand].dtype
    return dtype[0] >= 0


cdef bint _is_computed_in_fusion(const fusion_t *fusion, const item_t *item) noexcept nogil:
    """Return whether the fusion computes a contribution to the item's gradient."""
    cdef int i
    for i in range(fusion.n_deliveries):
        if (fusion.deliveries[i].waits and fusion.deliveries[i].buffer == item.buffers
                and fusion.states[fusion.deliveries[i].operand].computed):
            return True
    return False


cdef bint _is_gradient(const program_t *formula, int operand, const value_t *saved, value_t *value) noexcept nogil:
    """Return whether the operand of a formula is the gradient; else get the value, saved or constant."""
    cdef int space = operand_space(formula.instructions.operands[operand])
    cdef int slot = operand_slot(formula.instructions.operands[operand])
    value.kind = ARRAY
    if space == GRADS_SPACE:
        return True
    value[0] = saved[slot] if space == SAVED_SPACE else formula.constants[slot]
    return False


cdef specialized_t *_formula(fusion_t *fusion, const program_t *formula, const value_t *saved,
                             int dtype) noexcept nogil:
    """
    Return the specialized formula for these saved values and a gradient of this dtype; NULL if it cannot be fused.
    """
    cdef value_t[MAX_INPUTS] inputs
    cdef array_t gradient
    cdef specialized_t *expression
    cdef int64_t step, row
    cdef int i, status = OK
    gradient.dtype = dtype
    gradient.ndim = fusion.like.ndim
    for i in range(formula.instructions.n_operands):
        if _is_gradient(formula, i, saved, &inputs[i]):
            inputs[i].of.array = &gradient
        elif inputs[i].kind == ARRAY:
            if not _is_directly_addressable(fusion, inputs[i].of.array, &step, &row):
                return NULL
        elif not is_number(&inputs[i]):
            return NULL
    expression = specialize(formula.instructions.expression, inputs, &status)
    if (expression == NULL or expression.temporary or expression.partial
            or itemsize(expression.dtype) > MAX_ITEMSIZE):
        return NULL
    return expression


cdef bint _formulas_fit(fusion_t *fusion, node_t *node, int dtype, specialized_t **expressions) noexcept nogil:
    """Return whether all formulas can be fused, and specialize them; a NULL expression returns the gradient itself."""
    cdef const program_t *formula
    cdef value_t[MAX_SAVED] saved
    cdef int i
    cdef bint fits
    lock(&node.lock)            # another thread may be about to release the saved values
    fits = not node.released
    for i in range(node.op.n_saved):
        saved[i] = node.saved[i].value
    for i in range(node.op.n_arguments):
        expressions[i] = NULL
        formula = node.op.formulas[i]
        if fits and formula != NULL and formula.n_instructions and node.needed >> i & 1:
            expressions[i] = _formula(fusion, formula, saved, dtype)
            fits = expressions[i] != NULL
    unlock(&node.lock)
    return fits


cdef bint _has_capacity(const fusion_t *fusion, const operator_t *op) noexcept nogil:
    """Check capacity for the most that a node adds: an operand per saved value, a formula and two sums per argument."""
    cdef int more = 3 * op.n_arguments + fusion.n_deliveries
    return (fusion.nodes.count < MAX_FUSED_NODES and fusion.n_deliveries + op.n_arguments <= MAX_DELIVERIES
            and fusion.loop.n_operands + op.n_saved + 1 + more <= MAX_OPERANDS
            and fusion.loop.n_stages + more <= MAX_STAGES
            and fusion.n_cells + op.n_arguments * MAX_CELLS <= MAX_FUSION_CELLS)


# ------------------------------------------------------------------------------------------------------------ stages

cdef int _new_operand(fusion_t *fusion, array_t *array, int dtype) noexcept nogil:
    cdef int i = fusion.loop.n_operands
    fusion.loop.n_operands += 1
    fusion.operands[i] = fused_operand_t(NULL, itemsize(dtype), 0, dtype, False)
    fusion.states[i] = operand_state_t(array, -1, 0, False, array == NULL)
    if array != NULL:
        fusion.operands[i].data = array.data
        _is_directly_addressable(fusion, array, &fusion.operands[i].step, &fusion.operands[i].row)
    return i


cdef fused_stage_t *_new_stage(fusion_t *fusion, specialized_t *expression, int dtype) noexcept nogil:
    cdef fused_stage_t *stage = &fusion.stages[fusion.loop.n_stages]
    fusion.loop.n_stages += 1
    stage.expression = expression
    stage.cells = &fusion.cells[fusion.n_cells]
    stage.out = _new_operand(fusion, NULL, dtype)
    return stage


cdef void _read(fusion_t *fusion, fused_stage_t *stage, int input, int operand) noexcept nogil:
    """Make an operand an input of the last stage; -1 for a number."""
    stage.inputs[input] = operand
    if operand >= 0:
        fusion.states[operand].last = fusion.loop.n_stages - 1


cdef int _sum(fusion_t *fusion, int first, int second) noexcept nogil:
    cdef fused_stage_t *stage = _new_stage(fusion, NULL, fusion.operands[first].dtype)
    _read(fusion, stage, 0, first)
    _read(fusion, stage, 1, second)
    return stage.out


cdef int _take_contribution(fusion_t *fusion, array_t **contribution, int operand) noexcept nogil:
    """Take over a contribution from before the fusion, and return the operand of the sum with it."""
    cdef int other
    if contribution[0] == NULL:
        return operand
    other = _new_operand(fusion, contribution[0], contribution[0].dtype)
    fusion.states[other].owned = True
    contribution[0] = NULL
    return other if operand < 0 else _sum(fusion, operand, other)


cdef int _gradient(fusion_t *fusion, item_t *item) noexcept nogil:
    """Return the operand of an item's gradient: the sum of earlier contributions and those of the fusion, in order."""
    cdef const contributions_t *contributions = _contributions(fusion, item)
    cdef delivery_t *delivery
    cdef int i, rank, operand = -1
    operand = _take_contribution(fusion, &fusion.plan.sums[item.buffers], operand)
    for rank in range(contributions.count if contributions != NULL else 1):
        if contributions != NULL:
            operand = _take_contribution(fusion, &contributions.arrays[rank], operand)
        for i in range(fusion.n_deliveries):
            delivery = &fusion.deliveries[i]
            if delivery.waits and delivery.buffer == item.buffers and (contributions == NULL or delivery.rank == rank):
                delivery.waits = False
                operand = delivery.operand if operand < 0 else _sum(fusion, operand, delivery.operand)
    return operand


cdef int _compute(fusion_t *fusion, const program_t *formula, specialized_t *expression, const value_t *saved,
                  int *saved_operands, int gradient) noexcept nogil:
    """Add the stage of a formula, and return the operand of its result."""
    cdef fused_stage_t *stage = _new_stage(fusion, expression, expression.dtype)
    cdef value_t[MAX_INPUTS] inputs
    cdef slots_t slots
    cdef int i, position
    for i in range(formula.instructions.n_operands):
        if _is_gradient(formula, i, saved, &inputs[i]):
            _read(fusion, stage, i, gradient)
            continue
        if inputs[i].kind != ARRAY:
            _read(fusion, stage, i, -1)
            continue
        position = operand_slot(formula.instructions.operands[i])
        if saved_operands[position] < 0:
            saved_operands[position] = _new_operand(fusion, inputs[i].of.array, inputs[i].of.array.dtype)
        _read(fusion, stage, i, saved_operands[position])
    place_cells(expression, inputs, &slots, &fusion.numbers[fusion.n_cells])
    for i in range(expression.n_cells):
        stage.cells[i] = slots.data[expression.n_inputs + i]
    fusion.n_cells += expression.n_cells
    return stage.out


cdef void _add_delivery(fusion_t *fusion, item_t *item, int edge, int operand) noexcept nogil:
    """Record the gradient of an edge; contributions to one target are summed immediately."""
    cdef node_t *node = item.node
    cdef item_t *target = plan_find(fusion.plan, node.edges[edge].node)
    cdef int64_t buffer = target.buffers + node.edges[edge].input_nr
    cdef const array_t *meta = NULL if node.metas == NULL else node.metas[edge]
    cdef bint to_fit = meta != NULL and not (same_shape(meta, fusion.like)
                                             and meta.dtype == fusion.operands[operand].dtype)
    cdef delivery_t *delivery
    cdef int i
    cdef delivery_t *first = NULL
    cdef int waiting = 0, rank = 0 if fusion.plan.ranks == NULL else fusion.plan.ranks[item.first_edge + edge]
    for i in range(fusion.n_deliveries):
        if fusion.deliveries[i].waits and fusion.deliveries[i].buffer == buffer:
            first = &fusion.deliveries[i]
            waiting += 1
    # If another contribution comes first, the sum begins with it: keep the contributions separate until then.
    if (waiting == 1 and not to_fit and not first.to_fit
            and fusion.operands[first.operand].dtype == fusion.operands[operand].dtype
            and (fusion.plan.ranks == NULL or first.rank == 0 and rank == first.count)
            and fusion.plan.sums[buffer] == NULL):
        first.operand = _sum(fusion, first.operand, operand)
        first.count += 1
        return
    delivery = &fusion.deliveries[fusion.n_deliveries]
    fusion.n_deliveries += 1
    delivery.source, delivery.edge, delivery.buffer, delivery.operand = item, edge, buffer, operand
    delivery.waits, delivery.to_fit, delivery.rank, delivery.count = True, to_fit, rank, 1


cdef bint _add_node(fusion_t *fusion, item_t *item, int *status) noexcept nogil:
    """Add a node to the fusion if it can be fused."""
    cdef specialized_t *expressions[MAX_ARGUMENTS]
    cdef int[MAX_SAVED] saved_operands
    cdef node_t *node = item.node
    cdef const operator_t *op = node.op
    cdef value_t *saved
    cdef int i, edge, gradient, operand, dtype
    # Unfused, the gradient of a broadcast operand is reduced without being written: fusion must save as much.
    if not (_is_fusable(item) and _has_capacity(fusion, op) and _gradient_fits(fusion, item, &dtype) and can_take(node)
            and (not _computes_gradient(item, fusion.like.size) or _is_computed_in_fusion(fusion, item))
            and _formulas_fit(fusion, node, dtype, expressions)):
        return False
    saved = fusion.saved[fusion.nodes.count]
    status[0] = take_saved(node, saved, fusion.keep, False)
    if status[0] != OK:
        return False
    fusion.nodes.items[fusion.nodes.count] = item
    fusion.nodes.count += 1
    gradient = _gradient(fusion, item)
    for i in range(op.n_saved):
        saved_operands[i] = -1
    for i in range(op.n_arguments):
        if op.formulas[i] == NULL or not node.needed >> i & 1:
            continue
        edge = first_edge(op, i, node.n_edges)
        if node.edges[edge].node == NULL or not plan_find(fusion.plan, node.edges[edge].node).needed:
            continue
        operand = gradient
        if expressions[i] != NULL:
            operand = _compute(fusion, op.formulas[i], expressions[i], saved, saved_operands, gradient)
        _add_delivery(fusion, item, edge, operand)
    return True


# ---- results

cdef int _allocate_results(fusion_t *fusion) noexcept nogil:
    """Provide memory for gradients that other nodes need: that of a gradient read for the last time, or new memory."""
    cdef operand_state_t *state
    cdef operand_state_t *ending
    cdef fused_operand_t *operand
    cdef const fused_operand_t *other
    cdef int i, k
    for i in range(fusion.n_deliveries):
        if fusion.deliveries[i].waits:
            fusion.states[fusion.deliveries[i].operand].deliveries += 1
    for i in range(fusion.loop.n_stages):
        state, operand = &fusion.states[fusion.stages[i].out], &fusion.operands[fusion.stages[i].out]
        if state.deliveries == 0:
            continue
        for k in range(fusion.loop.n_operands):
            ending, other = &fusion.states[k], &fusion.operands[k]
            if (ending.owned and not ending.computed and ending.deliveries == 0 and ending.last <= i
                    and other.dtype == operand.dtype and other.step == operand.step and other.row == 0
                    and exclusive(ending.array)):
                state.array = ending.array
                ending.owned = False
                break
        else:
            state.array = array_empty(operand.dtype, fusion.like.ndim, fusion.like.shape)
            if state.array == NULL:
                return MEMORY_ERROR
        state.owned = True
        operand.data, operand.kept = state.array.data, True
    return OK


cdef int _deliver_results(fusion_t *fusion) noexcept nogil:
    """Deliver gradients to other nodes, in the order of the unfused run."""
    cdef delivery_t *delivery
    cdef operand_state_t *state
    cdef array_t *array
    cdef int i, status = OK, failed
    for i in range(fusion.n_deliveries):
        delivery = &fusion.deliveries[i]
        if not delivery.waits:
            continue
        state = &fusion.states[delivery.operand]
        array = state.array
        state.deliveries -= 1
        if state.deliveries == 0 and state.owned:        # the last consumer gets the fusion's reference
            state.owned = False
            state.array = NULL
        else:
            retain(array)
        failed = fit(delivery.source.node.metas[delivery.edge], &array) if delivery.to_fit else OK
        if failed == OK:
            failed = deliver(fusion.plan, delivery.source, delivery.edge, array)
        else:
            release(array)
        status = status if status != OK else failed
    return status


cdef void _release_all(fusion_t *fusion) noexcept nogil:
    cdef operand_state_t *state
    cdef node_t *node
    cdef int i, k
    for i in range(fusion.loop.n_operands):
        state = &fusion.states[i]
        if state.owned:
            release(state.array)
    for i in range(fusion.nodes.count):
        node = fusion.nodes.items[i].node
        for k in range(node.op.n_saved):
            clear(&fusion.saved[i][k])
        if node.released and atomic_load(&node.task) != fusion.plan.id:
            note_release(node)


cdef bint _has_edge_to(const item_t *item, const node_t *target) noexcept nogil:
    cdef int k
    for k in range(item.node.n_edges):
        if item.node.edges[k].node == target:
            return True
    return False


cdef bint _waits_only_for_fusion(const fusion_t *fusion, item_t *item) noexcept nogil:
    """Return whether the item waits only for nodes of the fusion."""
    cdef const node_t *node
    cdef int i, k, edges = 0
    if fusion.plan.contributions == NULL:
        # All items before it have run, except skipped ones; these must not precede it in a sum.
        for i in range(fusion.skipped.count):
            if _has_edge_to(fusion.skipped.items[i], item.node):
                return False
            for k in range(item.node.n_edges):
                if item.node.edges[k].node != NULL and _has_edge_to(fusion.skipped.items[i], item.node.edges[k].node):
                    return False
        return True
    for i in range(fusion.nodes.count):
        node = fusion.nodes.items[i].node
        for k in range(node.n_edges):
            edges += node.edges[k].node == item.node
    return 0 < still_waiting(item) == edges


cdef int _collect(fusion_t *fusion, int64_t position) noexcept nogil:
    """Add the item at `position` and later ones that can be fused, skipping some that cannot."""
    cdef plan_t *plan = fusion.plan
    cdef item_t *item
    cdef int status = OK
    while position < plan.n_items and fusion.skipped.count < MAX_SKIPPED:
        item = &plan.items[plan.order[position]]
        position += 1
        if not item.needed or was_fused(item) or item.node.gradient != NULL and not (item.python or item.node.python):
            continue                         # leaves get their gradients afterwards
        if item.python or item.node.python:
            break                            # its hooks might access anything
        if not ((fusion.nodes.count == 0 or _waits_only_for_fusion(fusion, item)) and _add_node(fusion, item, &status)):
            if status != OK or fusion.nodes.count == 0:
                break
            fusion.skipped.items[fusion.skipped.count] = item
            fusion.skipped.count += 1
    return status


cdef bint _has_fusable_successor(plan_t *plan, const item_t *item, int64_t position) noexcept nogil:
    """Return whether one of the next nodes has an edge from this one and can be fused with it."""
    cdef const item_t *other
    cdef int64_t k, size = 0 if plan.sums[item.buffers] == NULL else plan.sums[item.buffers].size
    for k in range(position + 1, min(position + 1 + 2 * MAX_SKIPPED, plan.n_items)):
        other = &plan.items[plan.order[k]]
        if (other.needed and not was_fused(other) and _has_edge_to(item, other.node) and _is_fusable(other)
                and not _computes_gradient(item, size)
                and (_computes_gradient(item, -1) or not _computes_gradient(other, size))):
            return True
    return False


cdef bint _fuse_nodes(plan_t *plan, int64_t position, bint keep, int *status, fused_t *done) noexcept nogil:
    cdef item_t *item = &plan.items[plan.order[position]]
    cdef fusion_t *fusion
    cdef bint ran
    cdef int i
    status[0] = OK
    done.count = 0
    if not _is_fusable(item) or not _has_fusable_successor(plan, item, position):
        return False
    fusion = <fusion_t *>malloc(sizeof(fusion_t))
    if fusion == NULL:
        return False
    fusion.plan, fusion.keep, fusion.like = plan, keep, NULL
    fusion.nodes.count = fusion.skipped.count = fusion.n_deliveries = 0
    fusion.n_cells = 0
    fusion.loop.n_operands = fusion.loop.n_stages = 0
    fusion.loop.operands, fusion.loop.stages = fusion.operands, fusion.stages
    status[0] = _collect(fusion, position)
    if fusion.nodes.count and status[0] == OK:
        for i in range(fusion.nodes.count):
            mark_fused(fusion.nodes.items[i])
        fusion.loop.size = fusion.like.size
        atomic_add(&_fusions, 1)
        status[0] = _allocate_results(fusion)
        if status[0] == OK:
            status[0] = run_fused_loop(&fusion.loop)
        if status[0] == OK:
            status[0] = _deliver_results(fusion)
    _release_all(fusion)
    done[0] = fusion.nodes
    ran = done.count > 0 or status[0] != OK
    free(fusion)
    return ran


def count_fusions():
    """Return the number of fusions, for tests."""
    return _fusions


def set_fuse_from(int64_t elements):
    """Set the number of elements from which nodes are fused, and return the former one."""
    global _fuse_from
    former, _fuse_from = _fuse_from, elements
    set_fuser(_fuse_nodes, elements)
    return former


set_fuser(_fuse_nodes, _fuse_from)
