"""Execution of a plan: nodes one after the other, with gradients moved to the next. No GIL."""

from libc.stdint cimport int64_t, uint32_t
from libc.stdio cimport snprintf
from libc.string cimport memcpy, memset, strstr
from cygrad._core.arrays.array cimport array_empty_like, array_t, exclusive, release, same_shape, shape_text
from cygrad._core.arrays.value cimport ARRAY, NOTHING, value_t
from cygrad._core.elementwise.elementwise cimport accumulate, copy_into
from cygrad._core.engine.plan cimport item_t, parts_t, plan_capture, plan_find, plan_t
from cygrad._core.graph.backward_calls cimport note_release
from cygrad._core.graph.node cimport ALL_ARGUMENTS, node_t
from cygrad._core.graph.version_errors cimport node_name
from cygrad._core.memory.atomic cimport atomic_load, lock, unlock
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, OK, RUNTIME_ERROR, message
from cygrad._core.memory.storage cimport allocate, deallocate
from cygrad._core.table.operator cimport first_edge, operator_t

cdef enum:
    FEW = 8                   # inputs or edges of a node kept on the stack


cdef extern from "<time.h>" nogil:
    struct timespec:
        int64_t tv_sec
        int64_t tv_nsec
    int clock_gettime(int clock, timespec *time)
    int CLOCK_MONOTONIC

cdef enum:
    NODE_WORK = 64            # minimum work of a node
    CLOCK_WORK = 1 << 18      # elements between two reads of the clock
    SIGNAL_CHECK_INTERVAL = 30000000       # nanoseconds between two signal checks


cdef bint should_check_signals(signal_check_t *check, int64_t work) noexcept nogil:
    cdef timespec time
    cdef int64_t now
    cdef bint first
    check.work += work + NODE_WORK
    if check.work < CLOCK_WORK:
        return False
    check.work = 0
    clock_gettime(CLOCK_MONOTONIC, &time)
    now = time.tv_sec * 1000000000 + time.tv_nsec
    if check.deadline and now < check.deadline:
        return False
    first = check.deadline == 0
    check.deadline = now + SIGNAL_CHECK_INTERVAL
    return not first


cdef int add_part(array_t **sum, array_t *part) noexcept nogil:
    cdef array_t *fresh
    cdef int status
    if sum[0] == NULL:
        sum[0] = part
        return OK
    if sum[0].dtype != part.dtype or not same_shape(sum[0], part):
        snprintf(message(), MESSAGE, b"backward: two gradients of one tensor do not match (got shapes %s and %s). "
                 b"A backward or hook returned a gradient of the wrong shape or dtype.",
                 shape_text(sum[0]), shape_text(part))
        release(part)
        return RUNTIME_ERROR
    if exclusive(sum[0]):
        status = accumulate(sum[0], part)
        release(part)
        return status
    if exclusive(part):                      # a + b and b + a are bit-identical
        status = accumulate(part, sum[0])
        release(sum[0])
        sum[0] = part
        return status
    fresh = array_empty_like(sum[0], -1)
    if fresh == NULL:
        release(part)
        return MEMORY_ERROR
    status = copy_into(fresh, sum[0])
    if status == OK:
        status = accumulate(fresh, part)
    release(sum[0])
    release(part)
    sum[0] = fresh
    return status


cdef int _deliver_part(plan_t *plan, int64_t buffer, int32_t rank, array_t *gradient) noexcept nogil:
    """In a team: add contributions in order of rank; later ones wait."""
    cdef parts_t *parts = &plan.parts[buffer]
    cdef array_t *part
    cdef int status = OK
    if parts.count == 1:                     # not read before the node runs
        parts.arrays[rank] = gradient
        return OK
    lock(&parts.lock)
    parts.arrays[rank] = gradient
    if not parts.adding:
        parts.adding = True
        while status == OK and parts.added < parts.count and parts.arrays[parts.added] != NULL:
            part = parts.arrays[parts.added]
            parts.arrays[parts.added] = NULL
            parts.added += 1
            unlock(&parts.lock)
            status = add_part(&plan.sums[buffer], part)
            lock(&parts.lock)
        parts.adding = False
    unlock(&parts.lock)
    return status


cdef int deliver(plan_t *plan, item_t *item, int edge, array_t *gradient) noexcept nogil:
    cdef item_t *target = plan_find(plan, item.node.edges[edge].node)
    cdef int64_t buffer
    if not target.needed:
        release(gradient)
        return OK
    buffer = target.buffers + item.node.edges[edge].input_nr
    if plan.ranks == NULL:
        return add_part(&plan.sums[buffer], gradient)
    return _deliver_part(plan, buffer, plan.ranks[item.first_edge + edge], gradient)


cdef void _name_node(const node_t *node) noexcept nogil:
    """Prefix this thread's message with the node that failed."""
    cdef char[MESSAGE] text
    cdef const char *name = node_name(node)
    memcpy(text, message(), MESSAGE)
    if strstr(text, name) == NULL:
        snprintf(message(), MESSAGE, b"%s: %s", name, text)


cdef uint32_t wanted_arguments(plan_t *plan, const item_t *item) noexcept nogil:
    cdef const node_t *node = item.node
    cdef const operator_t *op = node.op
    cdef uint32_t wanted = 0
    cdef int i, k, edge, count
    if not plan.restricted or op == NULL:
        return ALL_ARGUMENTS
    for i in range(op.n_arguments):
        if not op.arguments[i].differentiable:
            continue
        edge = first_edge(op, i, node.n_edges)
        count = node.n_edges - op.n_single if i == op.listed else 1
        for k in range(edge, edge + count):
            if node.edges[k].node != NULL and plan_find(plan, node.edges[k].node).needed:
                wanted |= <uint32_t>1 << i
    return wanted


cdef int run_node(plan_t *plan, item_t *item, array_t **out, bint keep) noexcept nogil:
    cdef node_t *node = item.node
    cdef array_t **sums = &plan.sums[item.buffers]
    cdef value_t[FEW] few
    cdef value_t *grads = few
    cdef int i, status = OK
    if node.n_outputs > FEW:
        grads = <value_t *>allocate(node.n_outputs * sizeof(value_t))
        if grads == NULL:
            return MEMORY_ERROR
    for i in range(node.n_outputs):
        grads[i].kind = NOTHING
        if sums[i] != NULL:
            if item.captured:
                plan_capture(plan, item.buffers + i, sums[i])
            if item.executed:
                grads[i].kind = ARRAY
                grads[i].of.array = sums[i]
            else:
                release(sums[i])
            sums[i] = NULL
    if item.executed:
        status = node.backward(node, grads, out, keep, wanted_arguments(plan, item))
        if node.released and atomic_load(&node.task) != plan.id:
            note_release(node)          # another call claimed the node meanwhile
        if status != OK:
            _name_node(node)
    if node.n_outputs > FEW:
        deallocate(grads, node.n_outputs * sizeof(value_t))
    return status


cdef int run_item(plan_t *plan, item_t *item, bint keep) noexcept nogil:
    cdef node_t *node = item.node
    cdef array_t *few[FEW]
    cdef array_t **out = few
    cdef int i, status, failed
    if node.n_edges > FEW:
        out = <array_t **>allocate(node.n_edges * sizeof(array_t *))
        if out == NULL:
            return MEMORY_ERROR
    memset(out, 0, node.n_edges * sizeof(array_t *))
    status = run_node(plan, item, out, keep)
    for i in range(node.n_edges):
        if out[i] != NULL:
            failed = deliver(plan, item, i, out[i])
            status = status if status != OK else failed
    if node.n_edges > FEW:
        deallocate(out, node.n_edges * sizeof(array_t *))
    return status


cdef fuser_t _fuser = NULL
cdef int64_t _fuse_from = 0


cdef void set_fuser(fuser_t fuser, int64_t elements) noexcept:
    global _fuser, _fuse_from
    _fuser, _fuse_from = fuser, elements


cdef int run_items(plan_t *plan, item_t *item, bint keep, fused_t *done) noexcept nogil:
    cdef int status
    if item.node.work >= _fuse_from and _fuser != NULL and _fuser(plan, item.place, keep, &status, done):
        return status
    done.count = 1
    done.items[0] = item
    return run_item(plan, item, keep)
