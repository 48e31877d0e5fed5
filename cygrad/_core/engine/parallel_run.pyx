"""
Running a plan with several workers: ready nodes from one queue, Python code on the calling thread.

Every member takes the ready native node that comes first in the plan; one that finds none takes a piece of another's
large kernel (`help_team`), and leaves if it finds nothing for a while: it is called back when there is. The calling
thread, member 0, stays; it runs the nodes with Python code, in the order of the plan.
Gradients of one input are added in the order of their producers, and wait where they come too early: the sum, and with
it every bit of the result, is that of the serial run.
"""

from libc.stdint cimport INT32_MAX, int32_t, int64_t
from libc.stdio cimport snprintf
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset
from cygrad._core.arrays.array cimport array_t, release
from cygrad._core.engine.node_run cimport MOST_FUSED, add_part, fused_t, signal_check_t, run_items, should_check_signals
from cygrad._core.engine.plan cimport item_t, one_arrived, parts_t, plan_find, plan_t, still_waiting, was_fused
from cygrad._core.graph.backward_calls cimport work_for
from cygrad._core.graph.node cimport node_t
from cygrad._core.memory.atomic cimport lock, unlock
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, OK, RUNTIME_ERROR, message
from cygrad._core.threads.parallel cimport (
    call_team, help_team, in_team, leave_team, run_team, thread_limit)

cdef extern from "<sched.h>" nogil:
    int sched_yield()

cdef enum:
    LONG = 1 << 18              # elements that a chunk of a kernel, or waiting for one, counts for
    MOST_CALLED = 1 << 10       # members called at a time, at most
    WAIT = 64                   # rounds of polling of an idle member before it leaves
    MOST_TAKEN = 16             # nodes taken at a time, at most
    MOST_READY = 64             # nodes that become ready passed on at a time, at most
    LITTLE = 16                 # of WEIGHT: small nodes are taken together up to that, if others have some too
    WORTHWHILE = 262144         # elements of work in the plan; opening a team costs about 10 microseconds
    NODE_WORTHWHILE = 8192      # ... of a node on average; below, queueing it costs more than a helper gains

ctypedef struct run_team_t:
    plan_t *plan
    bint keep
    python_item_t python_item
    void *task
    int32_t lock                # guards all fields below; what items wait for is counted by atomic operations
    int64_t *ready              # heap of ready native items, the first in the plan on top: position << 8 | weight
    int64_t n_ready
    int64_t remaining           # items that have not finished
    int64_t *python_places      # items for the calling thread, in order
    int64_t n_python, next_python
    int64_t *late               # native items that have got a hook since the team started
    int64_t n_late
    int status
    char text[1024]             # message of the first failure


cdef bint worth_a_team(const plan_t *plan) noexcept nogil:
    return (plan.n_items > 2 and plan.work >= WORTHWHILE and plan.work >= plan.n_items * NODE_WORTHWHILE
            and thread_limit() > 1)


# ---- ready queue

cdef inline int64_t _entry(const item_t *item) noexcept nogil:
    return <int64_t>item.place << 8 | item.weight


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
    cdef parts_t *parts
    for k in range(plan.n_items):
        edges += plan.items[k].node.n_edges
    team.ready = <int64_t *>malloc((plan.n_items + 1) * sizeof(int64_t))
    team.python_places = <int64_t *>malloc((plan.n_items + 1) * sizeof(int64_t))
    team.late = <int64_t *>malloc((plan.n_items + 1) * sizeof(int64_t))
    plan.ranks = <int32_t *>malloc((edges + 1) * sizeof(int32_t))
    plan.parts = <parts_t *>calloc(plan.n_buffers + 1, sizeof(parts_t))
    if (edges > INT32_MAX or team.ready == NULL or team.python_places == NULL or team.late == NULL or plan.ranks == NULL
            or plan.parts == NULL):
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
                    parts = &plan.parts[target.buffers + item.node.edges[j].input_nr]
                    plan.ranks[item.first_edge + j] = parts.count
                    parts.count += 1
                    target.waiting += 1
        if item.python:
            team.python_places[team.n_python] = k
            team.n_python += 1
    for k in range(plan.n_buffers):
        parts = &plan.parts[k]
        if parts.count:
            parts.arrays = <array_t **>calloc(parts.count, sizeof(array_t *))
            if parts.arrays == NULL:
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
    """Fail in the child of a fork by a hook: the work of other members is lost."""
    team.lock = 0                   # no thread is left that could hold it
    snprintf(message(), MESSAGE, b"backward: the process was forked while this backward was at work (by a hook?), and "
             b"the child cannot finish it. Leave the hook in the parent only, or run backward anew in the child.")
    _fail(team, RUNTIME_ERROR)


cdef int _sum_parts(plan_t *plan, item_t *item) noexcept nogil:
    """Sum the contributions to each input in the order of their producers."""
    cdef int i, j, status = OK
    cdef parts_t *parts
    for i in range(item.node.n_outputs):
        parts = &plan.parts[item.buffers + i]
        for j in range(parts.count):
            if parts.arrays[j] != NULL:
                if status == OK:
                    status = add_part(&plan.sums[item.buffers + i], parts.arrays[j])
                else:
                    release(parts.arrays[j])
                parts.arrays[j] = NULL
    return status


cdef int64_t _hand_over(run_team_t *team, const int64_t *entries, int n, int finished) noexcept nogil:
    """Queue items that became ready; -> number of ready items."""
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
    """After delivering gradients of items, count down their consumers. Little of it is locked."""
    cdef int64_t[MOST_READY] entries
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
                if n == MOST_READY:
                    _hand_over(team, entries, n, 0)
                    n = 0
                entries[n] = _entry(target)
                n += 1
    ready = _hand_over(team, entries, n, count)
    if ready > 1:                   # one is for the calling member
        call_team(<int>min(ready - 1, <int64_t>MOST_CALLED))


cdef int _take(run_team_t *team, int size, int64_t *entries) noexcept nogil:
    """Take the next native item and, while all members have work, small ones after it; -> count. The mutex is held."""
    cdef int count = 0, weight = 0
    while count < MOST_TAKEN and weight < LITTLE and (count == 0 or team.n_ready > size):
        entries[count] = _pop(team)
        if entries[count] < 0:
            break
        weight += entries[count] & 0xFF
        count += 1
    return count


cdef int _items_of(run_team_t *team, const int64_t *entries, int count, item_t **items) noexcept nogil:
    """Return the taken items, except those that have got a hook since; -> count."""
    cdef int i, n = 0
    for i in range(count):
        items[n] = &team.plan.items[team.plan.order[entries[i] >> 8]]
        if items[n].node.python:
            lock(&team.lock)
            team.late[team.n_late] = entries[i] >> 8
            team.n_late += 1
            unlock(&team.lock)
        else:
            n += 1
    return n


cdef int64_t _run_native(run_team_t *team, item_t **items, int count) noexcept nogil:
    """Run items, and what may be fused with each; -> the work that was done."""
    cdef item_t *finished[MOST_TAKEN + MOST_FUSED]
    cdef fused_t done
    cdef int64_t work = 0
    cdef int i, k, n = 0, status
    for i in range(count):
        status = _sum_parts(team.plan, items[i])
        if status == OK:
            status = run_items(team.plan, items[i], team.keep, &done)
        if status != OK:
            _fail(team, status)
            return work
        for k in range(done.count):
            work += done.items[k].node.work
            finished[n] = done.items[k]
            n += 1
        if n >= MOST_TAKEN or i == count - 1:
            _finish(team, finished, n)
            n = 0
    return work


cdef item_t *_next_python(run_team_t *team) noexcept nogil:
    """Return the next item of the calling thread if all its gradients are there; the team's mutex is held."""
    cdef item_t *item
    if team.next_python < team.n_python:
        item = &team.plan.items[team.plan.order[team.python_places[team.next_python]]]
        if still_waiting(item) == 0:
            team.next_python += 1
            return item
    if team.n_late:
        team.n_late -= 1
        return &team.plan.items[team.plan.order[team.late[team.n_late]]]
    return NULL


cdef void _member(void *context, int rank, int size) noexcept nogil:
    cdef run_team_t *team = <run_team_t *>context
    cdef plan_t *plan = team.plan
    cdef item_t *item
    cdef int64_t[MOST_TAKEN] entries
    cdef item_t *taken[MOST_TAKEN]
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
                count = _take(team, size, entries)
        ready = team.n_ready
        unlock(&team.lock)
        if over:
            return
        if item != NULL or count:
            idle = 0
        count = _items_of(team, entries, count, taken)
        if item != NULL:
            if ready:
                call_team(<int>min(ready, <int64_t>MOST_CALLED))
            status = _sum_parts(plan, item)
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
            work = LONG
            idle = 0
        elif rank != 0 and idle == WAIT:
            return
        else:
            work = LONG
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
    free(team.python_places)
    free(team.late)
    return team.status
