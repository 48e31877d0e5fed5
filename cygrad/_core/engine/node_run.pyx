"""Execution of a plan, without the GIL: run each node and move its gradients to the next ones."""

from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint32_t
from libc.stdio cimport snprintf
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset, strstr
from cygrad._core.arrays.array cimport (
    ARRAY, NOTHING, array_empty_like, array_t, exclusive, release, same_shape, shape_text, value_t,
)
from cygrad._core.elementwise.elementwise cimport accumulate, copy_into
from cygrad._core.elementwise.tiles cimport begin_watch, end_watch, holds_nan, watch, watch_t
from cygrad._core.engine.plan cimport (
    contributions_t, item_t, one_arrived, plan_capture, plan_find, plan_t, still_waiting, was_fused,
)
from cygrad._core.graph.node cimport ALL_ARGUMENTS, node_name, node_t, note_release, work_for
from cygrad._core.memory.atomic cimport atomic_load, lock, unlock
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, OK, RUNTIME_ERROR, message
from cygrad._core.memory.storage cimport allocate, deallocate
from cygrad._core.table.operator cimport first_edge, operator_t
from cygrad._core.threads.parallel cimport call_team, help_team, in_team, leave_team, run_team, thread_limit


# ------------------------------------------------------------------------------------------------------------- node run

cdef enum:
    MAX_ON_STACK = 8                   # inputs or edges of a node kept on the stack


cdef extern from "<time.h>" nogil:
    struct timespec:
        int64_t tv_sec
        int64_t tv_nsec
    int clock_gettime(int clock, timespec *time)
    int CLOCK_MONOTONIC

cdef enum:
    NODE_WORK = 64                    # minimum work of a node
    CLOCK_WORK = 1 << 18              # elements between two reads of the clock
    SIGNAL_CHECK_INTERVAL = 30000000  # nanoseconds between two signal checks


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


cdef int add_contribution(array_t **sum, array_t *contribution) noexcept nogil:
    cdef array_t *fresh
    cdef int status
    if sum[0] == NULL:
        sum[0] = contribution
        return OK
    if sum[0].dtype != contribution.dtype or not same_shape(sum[0], contribution):
        snprintf(message(), MESSAGE, b"backward: two gradients of one tensor do not match (got shapes %s and %s). "
                 b"A backward or hook returned a gradient of the wrong shape or dtype.",
                 shape_text(sum[0]), shape_text(contribution))
        release(contribution)
        return RUNTIME_ERROR
    if exclusive(sum[0]):
        status = accumulate(sum[0], contribution)
        release(contribution)
        return status
    if exclusive(contribution):                      # a + b and b + a are bit-identical
        status = accumulate(contribution, sum[0])
        release(sum[0])
        sum[0] = contribution
        return status
    fresh = array_empty_like(sum[0], -1)
    if fresh == NULL:
        release(contribution)
        return MEMORY_ERROR
    status = copy_into(fresh, sum[0])
    if status == OK:
        status = accumulate(fresh, contribution)
    release(sum[0])
    release(contribution)
    sum[0] = fresh
    return status


cdef int _deliver_contribution(plan_t *plan, int64_t buffer, int32_t rank, array_t *gradient) noexcept nogil:
    """In a team: add contributions in order of rank; later ones wait."""
    cdef contributions_t *contributions = &plan.contributions[buffer]
    cdef array_t *contribution
    cdef int status = OK
    if contributions.count == 1:                     # not read before the node runs
        contributions.arrays[rank] = gradient
        return OK
    lock(&contributions.lock)
    contributions.arrays[rank] = gradient
    if not contributions.adding:
        contributions.adding = True
        while (status == OK and contributions.added < contributions.count
                and contributions.arrays[contributions.added] != NULL):
            contribution = contributions.arrays[contributions.added]
            contributions.arrays[contributions.added] = NULL
            contributions.added += 1
            unlock(&contributions.lock)
            status = add_contribution(&plan.sums[buffer], contribution)
            lock(&contributions.lock)
        contributions.adding = False
    unlock(&contributions.lock)
    return status


cdef int deliver(plan_t *plan, item_t *item, int edge, array_t *gradient) noexcept nogil:
    cdef item_t *target = plan_find(plan, item.node.edges[edge].node)
    cdef int64_t buffer
    if not target.needed:
        release(gradient)
        return OK
    buffer = target.buffers + item.node.edges[edge].input_nr
    if plan.ranks == NULL:
        return add_contribution(&plan.sums[buffer], gradient)
    return _deliver_contribution(plan, buffer, plan.ranks[item.first_edge + edge], gradient)


cdef void _name_node(const node_t *node) noexcept nogil:
    """Prefix this thread's message with the node that failed."""
    cdef char[MESSAGE] text
    cdef const char *name = node_name(node)
    memcpy(text, message(), MESSAGE)
    if strstr(text, name) == NULL:
        snprintf(message(), MESSAGE, b"%s%s%s", name, b"" if text[0] == b":" else b": ", text)


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
    cdef value_t[MAX_ON_STACK] on_stack
    cdef value_t *grads = on_stack
    cdef int i, status = OK
    if node.n_outputs > MAX_ON_STACK:
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
    if node.n_outputs > MAX_ON_STACK:
        deallocate(grads, node.n_outputs * sizeof(value_t))
    return status


cdef int run_item(plan_t *plan, item_t *item, bint keep) noexcept nogil:
    cdef node_t *node = item.node
    cdef array_t *on_stack[MAX_ON_STACK]
    cdef array_t **out = on_stack
    cdef int i, status, failed
    if node.n_edges > MAX_ON_STACK:
        out = <array_t **>allocate(node.n_edges * sizeof(array_t *))
        if out == NULL:
            return MEMORY_ERROR
    memset(out, 0, node.n_edges * sizeof(array_t *))
    status = run_node(plan, item, out, keep)
    for i in range(node.n_edges):
        if out[i] != NULL:
            failed = deliver(plan, item, i, out[i])
            status = status if status != OK else failed
    if node.n_edges > MAX_ON_STACK:
        deallocate(out, node.n_edges * sizeof(array_t *))
    return status


cdef fuser_t _fuser = NULL
cdef int64_t _fuse_from = 0


cdef void set_fuser(fuser_t fuser, int64_t elements) noexcept:
    global _fuser, _fuse_from
    _fuser, _fuse_from = fuser, elements


cdef int run_items(plan_t *plan, item_t *item, bint keep, fused_t *done) noexcept nogil:
    cdef int status
    if item.node.work >= _fuse_from and _fuser != NULL and _fuser(plan, item.position, keep, &status, done):
        return status
    done.count = 1
    done.items[0] = item
    return run_item(plan, item, keep)


# ----------------------------------------------------------------------------------------------------------- serial run

# Execution of a plan on one thread: items in order, large element-wise ones fused where possible. No GIL.

cdef int advance(plan_t *plan, int64_t *position, bint keep) noexcept nogil:
    cdef item_t *item
    cdef signal_check_t signal_check = signal_check_t(0, 0)
    cdef fused_t done
    cdef int status
    while position[0] < plan.n_items:
        item = &plan.items[plan.order[position[0]]]
        if item.needed and not was_fused(item):
            if item.python or item.node.python:      # a hook may have been registered since the plan was made
                return NEEDS_PYTHON
            status = run_items(plan, item, keep, &done)
            if status != OK:
                return status
        position[0] += 1
        if should_check_signals(&signal_check, item.node.work):
            return CHECK_SIGNALS
    return FINISHED


# ---------------------------------------------------------------------------------------------------------- watched run

# Execution in anomaly mode: one node at a time, checking each result for nan.
#
# While no gradient contains nan, a node can only introduce one by its own computation. Element-wise programs report
# whether they have written one (`elementwise/tiles`), views of clean gradients are clean, and the rest is scanned.

cdef int _find_nan(const node_t *node, array_t **out, bint clean) noexcept nogil:
    """Return the index of a gradient that contains nan; -1 if none does."""
    cdef const watch_t *seen = watch()
    cdef int i
    if clean and not seen.nan and not seen.kernels and node.op != NULL:
        return -1
    for i in range(node.n_edges):
        if out[i] != NULL and holds_nan(out[i]):
            return i
    return -1


cdef int run_watched_item(plan_t *plan, item_t *item, bint keep, bint look, bint *clean, int *nan_in) noexcept nogil:
    cdef node_t *node = item.node
    cdef array_t *on_stack[MAX_ON_STACK]
    cdef array_t **out = on_stack
    cdef int i, status, failed
    nan_in[0] = -1
    if node.n_edges > MAX_ON_STACK:
        out = <array_t **>allocate(node.n_edges * sizeof(array_t *))
        if out == NULL:
            return MEMORY_ERROR
    memset(out, 0, node.n_edges * sizeof(array_t *))
    if look:
        begin_watch()
        watch().nan = watch().kernels = 0
    status = run_node(plan, item, out, keep)
    if look and status == OK:
        nan_in[0] = _find_nan(node, out, clean[0])
        watch().nan = 0
    for i in range(node.n_edges):
        if out[i] == NULL:
            continue
        if status == OK and nan_in[0] < 0:
            failed = deliver(plan, item, i, out[i])
            status = status if status != OK else failed
        else:
            release(out[i])
    if look:
        clean[0] = clean[0] and not watch().nan          # two gradients of one tensor may add up to nan
        end_watch()
    if node.n_edges > MAX_ON_STACK:
        deallocate(out, node.n_edges * sizeof(array_t *))
    return status


# --------------------------------------------------------------------------------------------------------- parallel run

# Execution of a plan by a team: members take ready nodes from one queue; Python code runs on the calling thread.
#
# Every member takes the first ready native node of the plan. Without one it takes a chunk of another member's large
# kernel (`help_team`), and leaves if polling finds none; it is called back when nodes become ready. The calling thread,
# member 0, stays and runs the nodes with Python code, in the order of the plan.
# Contributions to one gradient are added in the order of their producers, and early ones wait, so results are
# bit-identical to those of the serial run.

cdef extern from "<sched.h>" nogil:
    int sched_yield()

cdef enum:
    CHUNK_WORK = 1 << 18              # elements counted for a chunk of a kernel, or for waiting
    MAX_CALLED = 1 << 10              # members called at a time
    IDLE_ROUNDS = 64                  # rounds that an idle member polls before it leaves
    MAX_BATCH = 16                    # nodes that a member takes at a time
    MAX_QUEUED = 64                   # ready nodes queued at a time
    BATCH_WEIGHT = 16                 # weight of a batch of small nodes, if the queue has enough for all members
    MIN_TEAM_WORK = 262144            # elements of work in the plan; opening a team costs about 10 microseconds
    MIN_NODE_WORK = 8192              # ... of a node on average; below, queueing it costs more than a helper gains

ctypedef struct run_team_t:
    plan_t *plan
    bint keep
    python_item_t python_item
    void *task
    int32_t lock                # guards all fields below; what items wait for is counted by atomic operations
    int64_t *ready              # heap of ready native items, the first in the plan on top: position << 8 | weight
    int64_t n_ready
    int64_t remaining           # items that have not finished
    int64_t *python_positions   # items for the calling thread, in order
    int64_t n_python, next_python
    int64_t *hooked               # native items that got a hook after the team had started
    int64_t n_hooked
    int status
    char text[1024]             # message of the first failure


cdef bint should_use_team(const plan_t *plan) noexcept nogil:
    return (plan.n_items > 2 and plan.work >= MIN_TEAM_WORK and plan.work >= plan.n_items * MIN_NODE_WORK
            and thread_limit() > 1)


# ---- ready queue

cdef inline int64_t _entry(const item_t *item) noexcept nogil:
    return <int64_t>item.position << 8 | item.weight


cdef void _push(run_team_t *team, int64_t entry) noexcept nogil:
    cdef int64_t i = team.n_ready, parent
    team.n_ready += 1
    while i > 0:
        parent = (i - 1) // 2
        if team.ready[parent] <= entry:
            break
        team.ready[i] = team.ready[parent]
        i = parent
    team.ready[i] = entry


cdef int64_t _pop(run_team_t *team) noexcept nogil:
    cdef int64_t top, last, i = 0, child
    if team.n_ready == 0:
        return -1
    top = team.ready[0]
    team.n_ready -= 1
    last = team.ready[team.n_ready]
    while True:
        child = 2 * i + 1
        if child >= team.n_ready:
            break
        if child + 1 < team.n_ready and team.ready[child + 1] < team.ready[child]:
            child += 1
        if last <= team.ready[child]:
            break
        team.ready[i] = team.ready[child]
        i = child
    team.ready[i] = last
    return top


# ---- setup

cdef int _set_up(run_team_t *team) noexcept nogil:
    cdef plan_t *plan = team.plan
    cdef int64_t k, edges = 0
    cdef int j
    cdef item_t *item
    cdef item_t *target
    cdef contributions_t *contributions
    for k in range(plan.n_items):
        edges += plan.items[k].node.n_edges
    team.ready = <int64_t *>malloc((plan.n_items + 1) * sizeof(int64_t))
    team.python_positions = <int64_t *>malloc((plan.n_items + 1) * sizeof(int64_t))
    team.hooked = <int64_t *>malloc((plan.n_items + 1) * sizeof(int64_t))
    plan.ranks = <int32_t *>malloc((edges + 1) * sizeof(int32_t))
    plan.contributions = <contributions_t *>calloc(plan.n_buffers + 1, sizeof(contributions_t))
    if (edges > INT32_MAX or team.ready == NULL or team.python_positions == NULL or team.hooked == NULL
            or plan.ranks == NULL or plan.contributions == NULL):
        snprintf(message(), MESSAGE, b"backward: no memory for the queue of %lld nodes", <long long>plan.n_items)
        return MEMORY_ERROR
    for k in range(plan.n_items):
        plan.items[k].waiting = 0
    edges = 0
    for k in range(plan.n_items):
        item = &plan.items[plan.order[k]]
        item.first_edge = <int32_t>edges
        edges += item.node.n_edges
        if not item.needed:
            continue
        team.remaining += 1
        for j in range(item.node.n_edges):
            if item.executed and item.node.edges[j].node != NULL:
                target = plan_find(plan, item.node.edges[j].node)
                if target.needed:
                    contributions = &plan.contributions[target.buffers + item.node.edges[j].input_nr]
                    plan.ranks[item.first_edge + j] = contributions.count
                    contributions.count += 1
                    target.waiting += 1
        if item.python:
            team.python_positions[team.n_python] = k
            team.n_python += 1
    for k in range(plan.n_buffers):
        contributions = &plan.contributions[k]
        if contributions.count:
            contributions.arrays = <array_t **>calloc(contributions.count, sizeof(array_t *))
            if contributions.arrays == NULL:
                snprintf(message(), MESSAGE, b"backward: no memory for the gradients of a node")
                return MEMORY_ERROR
    for k in range(plan.n_items):
        item = &plan.items[plan.order[k]]
        if item.needed and not item.python and item.waiting == 0:
            _push(team, _entry(item))
    return OK


# ------------------------------------------------------------------------------------------------------------ members

cdef void _fail(run_team_t *team, int status) noexcept nogil:
    lock(&team.lock)
    if team.status == OK:
        team.status = status
        memcpy(team.text, message(), MESSAGE)
    unlock(&team.lock)


cdef void _fail_after_fork(run_team_t *team) noexcept nogil:
    """Raise an error in the child of a fork by a hook, where the work of other members is lost."""
    team.lock = 0                   # no other thread exists that could hold it
    snprintf(message(), MESSAGE, b"backward: the process was forked during this backward, which cannot continue in "
                                 b"the child. Exit the hook in the parent only, or run a new backward in the child.")
    _fail(team, RUNTIME_ERROR)


cdef int _sum_contributions(plan_t *plan, item_t *item) noexcept nogil:
    """Sum the contributions to each input in the order of their producers."""
    cdef int i, j, status = OK
    cdef contributions_t *contributions
    for i in range(item.node.n_outputs):
        contributions = &plan.contributions[item.buffers + i]
        for j in range(contributions.count):
            if contributions.arrays[j] != NULL:
                if status == OK:
                    status = add_contribution(&plan.sums[item.buffers + i], contributions.arrays[j])
                else:
                    release(contributions.arrays[j])
                contributions.arrays[j] = NULL
    return status


cdef int64_t _queue_ready(run_team_t *team, const int64_t *entries, int n, int finished) noexcept nogil:
    """Queue items that became ready, and return the number of ready items."""
    cdef int64_t ready
    cdef int i
    lock(&team.lock)
    for i in range(n):
        _push(team, entries[i])
    team.remaining -= finished
    ready = team.n_ready
    unlock(&team.lock)
    return ready


cdef void _finish(run_team_t *team, item_t **items, int count) noexcept nogil:
    """Count down the consumers of delivered items, mostly without the mutex."""
    cdef int64_t[MAX_QUEUED] entries
    cdef node_t *node
    cdef item_t *target
    cdef int64_t ready
    cdef int i, j, n = 0
    for i in range(count):
        node = items[i].node
        for j in range(node.n_edges if items[i].executed else 0):
            if node.edges[j].node == NULL:
                continue
            target = plan_find(team.plan, node.edges[j].node)
            if (target.needed and one_arrived(target) == 0 and not target.python
                    and not was_fused(target)):
                if n == MAX_QUEUED:
                    _queue_ready(team, entries, n, 0)
                    n = 0
                entries[n] = _entry(target)
                n += 1
    ready = _queue_ready(team, entries, n, count)
    if ready > 1:                   # one is for the calling member
        call_team(<int>min(ready - 1, <int64_t>MAX_CALLED))


cdef int _pop_batch(run_team_t *team, int size, int64_t *entries) noexcept nogil:
    """Take the next native item, with small ones after it while all members have work. The mutex is held."""
    cdef int count = 0, weight = 0
    while count < MAX_BATCH and weight < BATCH_WEIGHT and (count == 0 or team.n_ready > size):
        entries[count] = _pop(team)
        if entries[count] < 0:
            break
        weight += entries[count] & 0xFF
        count += 1
    return count


cdef int _without_hooked(run_team_t *team, const int64_t *entries, int count, item_t **items) noexcept nogil:
    """Resolve the taken items, set aside those that got a hook since, and return the number of the others."""
    cdef int i, n = 0
    for i in range(count):
        items[n] = &team.plan.items[team.plan.order[entries[i] >> 8]]
        if items[n].node.python:
            lock(&team.lock)
            team.hooked[team.n_hooked] = entries[i] >> 8
            team.n_hooked += 1
            unlock(&team.lock)
        else:
            n += 1
    return n


cdef int64_t _run_native(run_team_t *team, item_t **items, int count) noexcept nogil:
    """Run items with the items fused with them, and return the work done."""
    cdef item_t *finished[MAX_BATCH + MAX_FUSED_NODES]
    cdef fused_t done
    cdef int64_t work = 0
    cdef int i, k, n = 0, status
    for i in range(count):
        status = _sum_contributions(team.plan, items[i])
        if status == OK:
            status = run_items(team.plan, items[i], team.keep, &done)
        if status != OK:
            _fail(team, status)
            return work
        for k in range(done.count):
            work += done.items[k].node.work
            finished[n] = done.items[k]
            n += 1
        if n >= MAX_BATCH or i == count - 1:
            _finish(team, finished, n)
            n = 0
    return work


cdef item_t *_next_python(run_team_t *team) noexcept nogil:
    """Return the next item of the calling thread if all its gradients have arrived. The mutex is held."""
    cdef item_t *item
    if team.next_python < team.n_python:
        item = &team.plan.items[team.plan.order[team.python_positions[team.next_python]]]
        if still_waiting(item) == 0:
            team.next_python += 1
            return item
    if team.n_hooked:
        team.n_hooked -= 1
        return &team.plan.items[team.plan.order[team.hooked[team.n_hooked]]]
    return NULL


cdef void _member(void *context, int rank, int size) noexcept nogil:
    cdef run_team_t *team = <run_team_t *>context
    cdef plan_t *plan = team.plan
    cdef item_t *item
    cdef int64_t[MAX_BATCH] entries
    cdef item_t *taken[MAX_BATCH]
    cdef signal_check_t signal_check = signal_check_t(0, 0)
    cdef int64_t work = 0           # the item that this member ran last
    cdef int64_t ready
    cdef int count, status, idle = 0
    cdef bint over
    work_for(plan.id)
    while True:
        if rank == 0 and should_check_signals(&signal_check, work) and team.python_item(team.task, NULL) != 0:
            _fail(team, RUNTIME_ERROR)
        if rank != 0 and leave_team():
            return
        if size > 1 and not in_team():
            _fail_after_fork(team)
        work = 0
        item = NULL
        count = 0
        lock(&team.lock)
        over = team.status != OK or team.remaining == 0
        if not over:
            if rank == 0:
                item = _next_python(team)
            if item == NULL:
                count = _pop_batch(team, size, entries)
        ready = team.n_ready
        unlock(&team.lock)
        if over:
            return
        if item != NULL or count:
            idle = 0
        count = _without_hooked(team, entries, count, taken)
        if item != NULL:
            if ready:
                call_team(<int>min(ready, <int64_t>MAX_CALLED))
            status = _sum_contributions(plan, item)
            if status != OK:
                _fail(team, status)
            elif team.python_item(team.task, item) != 0:
                snprintf(message(), MESSAGE, b"backward: Python code raised an exception")
                _fail(team, RUNTIME_ERROR)
            else:
                _finish(team, &item, 1)
        elif count:
            work = _run_native(team, taken, count)
        elif help_team():
            work = CHUNK_WORK
            idle = 0
        elif rank != 0 and idle == IDLE_ROUNDS:
            return
        else:
            work = CHUNK_WORK
            idle += 1
            sched_yield()


cdef int run_with_team(plan_t *plan, bint keep, python_item_t python_item, void *task) noexcept nogil:
    cdef run_team_t team
    cdef int size = thread_limit()
    memset(&team, 0, sizeof(run_team_t))
    team.plan = plan
    team.keep = keep
    team.python_item = python_item
    team.task = task
    team.status = _set_up(&team)
    if team.status == OK:
        run_team(_member, &team, size)
        if team.status != OK:
            memcpy(message(), team.text, MESSAGE)
    free(team.ready)
    free(team.python_positions)
    free(team.hooked)
    return team.status
