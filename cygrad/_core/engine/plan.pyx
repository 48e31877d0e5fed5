"""
The plan of one backward: its nodes, their order, and the buffers of their gradients.

Nodes are found with an explicit stack, never by recursion. A node stores its index in the plan that has claimed it (one
atomic exchange); a node that another thread's backward has claimed is looked up in a table instead. The order is
decreasing sequence number; an AccumulateGrad comes right after the last node that sends it a gradient.
"""

from libc.stdint cimport INT32_MAX, INT64_MAX, int32_t, int64_t, uint64_t
from libc.stdio cimport snprintf
from libc.stdlib cimport calloc, free, malloc, qsort, realloc
from libc.string cimport memset
from cygrad._core.arrays.array cimport array_t, release, retain
from cygrad._core.graph.node cimport Hooks, Node, has_renumbered, node_t
from cygrad._core.memory.atomic cimport atomic_add, atomic_claim, atomic_load, atomic_store
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, OK, RUNTIME_ERROR, check, message, unlikely


# ----------------------------------------------------------------------------------------------------------------- plan

cdef int64_t _plans = 0          # 0 marks an unclaimed node
cdef int64_t _sharing = 0        # plans that share nodes
cdef bint _has_compiled = False

# The plans of this thread, outermost first: nested backward. The engine continues in another thread long before it is
# full.
cdef extern from * nogil:
    """
    enum { MAX_NESTED = 128 };
    static __thread struct { void *plans[MAX_NESTED]; int size; } nested;
    """
    enum:
        MAX_NESTED
    void **nested_plans "nested.plans"
    int nested_size "nested.size"


cdef void _push_nested(plan_t *plan) noexcept nogil:
    global nested_size
    if nested_size < MAX_NESTED:
        nested_plans[nested_size] = plan
        nested_size += 1


cdef void _pop_nested(const plan_t *plan) noexcept nogil:
    global nested_size
    cdef int i, position = nested_size - 1
    while position >= 0 and nested_plans[position] != plan:
        position -= 1
    if position < 0:
        return
    for i in range(position, nested_size - 1):
        nested_plans[i] = nested_plans[i + 1]
    nested_size -= 1


cdef void mark_compiled(node_t *node) noexcept:
    global _has_compiled
    _has_compiled = True
    node.python |= HAS_COMPILED_GRAPH


cdef bint has_compiled() noexcept nogil:
    return _has_compiled


cdef bint others_share_nodes(const plan_t *plan) noexcept nogil:
    return atomic_load(&_sharing) > plan.shares_nodes


cdef int plans_of_thread(plan_t **plans, int capacity) noexcept nogil:
    cdef int i, count = min(nested_size, capacity)
    for i in range(count):
        plans[i] = <plan_t *>nested_plans[nested_size - 1 - i]
    return count


cdef int _no_memory() noexcept nogil:
    snprintf(message(), MESSAGE, b"backward: no memory for the plan of the graph")
    return MEMORY_ERROR


# ---- index of a node in a plan

cdef int64_t _slot(const plan_t *plan, const node_t *node) noexcept nogil:
    cdef int64_t mask = plan.table_size - 1
    cdef int64_t slot = ((<size_t>node >> 6) * <size_t>0x9E3779B97F4A7C15) >> 20 & mask
    while plan.table_nodes[slot] != NULL and plan.table_nodes[slot] != node:
        slot = (slot + 1) & mask
    return slot


cdef int _table_insert(plan_t *plan, node_t *node, int64_t item) noexcept nogil:
    cdef node_t **nodes = plan.table_nodes
    cdef int64_t *items = plan.table_items
    cdef int64_t i, slot, size = plan.table_size
    if 2 * plan.table_used >= size:
        plan.table_size = 2 * size if size else 64
        plan.table_nodes = <node_t **>calloc(plan.table_size, sizeof(node_t *))
        plan.table_items = <int64_t *>malloc(plan.table_size * sizeof(int64_t))
        if plan.table_nodes == NULL or plan.table_items == NULL:
            free(plan.table_nodes)
            free(plan.table_items)
            plan.table_nodes, plan.table_items, plan.table_size = nodes, items, size
            return _no_memory()
        for i in range(size):
            if nodes[i] != NULL:
                slot = _slot(plan, nodes[i])
                plan.table_nodes[slot] = nodes[i]
                plan.table_items[slot] = items[i]
        free(nodes)
        free(items)
    slot = _slot(plan, node)
    plan.table_nodes[slot] = node
    plan.table_items[slot] = item
    plan.table_used += 1
    return OK


cdef int64_t _find(const plan_t *plan, node_t *node) noexcept nogil:
    cdef int64_t slot
    if atomic_load(&node.task) == plan.id:
        return node.index
    if plan.table_used:
        slot = _slot(plan, node)
        if plan.table_nodes[slot] != NULL:
            return plan.table_items[slot]
    return -1


cdef item_t *plan_find(plan_t *plan, node_t *node) noexcept nogil:
    cdef int64_t index = _find(plan, node)
    return &plan.items[index] if index >= 0 else NULL


cdef int _grow(plan_t *plan) noexcept nogil:
    cdef int64_t capacity = 2 * plan.capacity if plan.capacity else 32
    cdef item_t *items = <item_t *>realloc(plan.items, capacity * sizeof(item_t))
    if items == NULL:
        return _no_memory()
    plan.items, plan.capacity = items, capacity
    return OK


cdef inline int64_t _add(plan_t *plan, node_t *node) noexcept nogil:
    """Return the item of a node, created if it is new; -1 without memory. Reads all that the plan needs of a node."""
    cdef int64_t index = _find(plan, node)
    cdef item_t *item
    if index >= 0:
        return index
    if unlikely(plan.n_items == plan.capacity) and _grow(plan) != OK:
        return -1
    index = plan.n_items
    plan.n_items += 1
    item = &plan.items[index]
    item.node = node
    item.waiting = 0
    item.needed = 1
    item.executed = 1
    item.captured = 0
    item.fused = 0
    item.python = node.backward == NULL or node.python or (node.gradient != NULL and node.gradient.sparse)
    item.leaf = node.gradient != NULL
    item.before_leaf = 0
    item.buffers = <int32_t>plan.n_buffers
    item.position = -1
    if not item.leaf:
        plan.unsorted |= node.sequence_nr >= plan.last_nr
        plan.last_nr = node.sequence_nr
    plan.n_buffers += node.n_outputs
    plan.work += node.work
    item.weight = <int8_t>min(<uint64_t>node.work // WEIGHT, <uint64_t>MAX_WEIGHT)
    plan.any_python |= item.python
    if unlikely(not atomic_claim(&node.task, 0, plan.id)):
        if not (item.leaf or plan.shares_nodes):
            plan.shares_nodes = 1
            atomic_add(&_sharing, 1)
        return index if _table_insert(plan, node, index) == OK else -1
    node.index = index
    return index


# ------------------------------------------------------------------------------------------------------------ building

cdef extern from * nogil:
    """
    typedef struct { long long sequence_nr, item; } sort_key_t;
    static int later_first(const void *a, const void *b) {
        long long x = ((const sort_key_t *)a)->sequence_nr, y = ((const sort_key_t *)b)->sequence_nr;
        return x < y ? 1 : x > y ? -1 : 0;
    }
    """
    ctypedef struct sort_key_t:
        int64_t sequence_nr
        int64_t item
    int later_first(const void *, const void *)


cdef int plan_build(plan_t *plan, node_t **roots, int64_t n_roots) noexcept nogil:
    cdef int64_t i, target, done = 0
    cdef int j
    cdef node_t *node
    memset(plan, 0, sizeof(plan_t))
    plan.id = atomic_add(&_plans, 1)
    plan.last_nr = INT64_MAX
    _push_nested(plan)
    for i in range(n_roots):
        if _add(plan, roots[i]) < 0:
            return MEMORY_ERROR
    # The array of items is also the list of nodes to follow.
    while done < plan.n_items:
        node = plan.items[done].node
        for j in range(node.n_edges):
            if node.edges[j].node != NULL:
                target = _add(plan, node.edges[j].node)
                if target < 0:
                    return MEMORY_ERROR
                plan.items[target].waiting += 1
                plan.items[done].before_leaf |= plan.items[target].leaf
        done += 1
        if plan.n_items > INT32_MAX or plan.n_buffers > INT32_MAX:
            snprintf(message(), MESSAGE, b"backward: the graph is too large (got more than %d nodes or gradients). Run "
                     b"backward through parts of it, with detach between them.", INT32_MAX)
            return RUNTIME_ERROR
    plan.sums = <array_t **>calloc(plan.n_buffers + 1, sizeof(array_t *))
    plan.order = <int32_t *>malloc((plan.n_items + 1) * sizeof(int32_t))
    if plan.sums == NULL or plan.order == NULL:
        return _no_memory()
    return _sort(plan)


cdef int _later_first(plan_t *plan, int32_t *order, int64_t count) noexcept nogil:
    """Sort items by decreasing sequence number."""
    cdef int64_t k
    cdef sort_key_t *keys = <sort_key_t *>malloc((count + 1) * sizeof(sort_key_t))
    if keys == NULL:
        return _no_memory()
    for k in range(count):
        keys[k].sequence_nr = plan.items[order[k]].node.sequence_nr
        keys[k].item = order[k]
    qsort(keys, count, sizeof(sort_key_t), later_first)
    for k in range(count):
        order[k] = <int32_t>keys[k].item
    free(keys)
    return OK


cdef int _after_producers(plan_t *plan, int32_t *order, int64_t count) noexcept nogil:
    """Move items after all that send them gradients, where the program has set sequence numbers."""
    cdef int64_t k, place, target
    cdef int j
    cdef int32_t chosen
    cdef node_t *node
    cdef int64_t *waiting = <int64_t *>malloc((plan.n_items + 1) * sizeof(int64_t))
    if waiting == NULL:
        return _no_memory()
    for k in range(plan.n_items):
        waiting[k] = plan.items[k].waiting
    for place in range(count):
        k = place
        while k < count - 1 and waiting[order[k]]:
            k += 1
        chosen = order[k]
        while k > place:
            order[k] = order[k - 1]
            k -= 1
        order[place] = chosen
        node = plan.items[chosen].node
        for j in range(node.n_edges):
            if node.edges[j].node != NULL:
                target = _find(plan, node.edges[j].node)
                waiting[target] -= 1
    free(waiting)
    return OK


cdef int _sort(plan_t *plan) noexcept nogil:
    """Order by decreasing sequence number, with each AccumulateGrad right after its last producer."""
    cdef int64_t i, k, begin = plan.n_items
    cdef int32_t position = 0
    cdef int status
    # Items that are ordered by sequence number stay at the end of `order` until they are taken: ordered items, leaves
    # included, never reach them.
    for i in range(plan.n_items - 1, -1, -1):
        if not (plan.items[i].leaf and plan.items[i].waiting):
            begin -= 1
            plan.order[begin] = <int32_t>i
            plan.unsorted |= plan.items[i].leaf        # it is a root
    if plan.unsorted or has_renumbered():
        status = _later_first(plan, plan.order + begin, plan.n_items - begin)
        if status == OK and has_renumbered():
            status = _after_producers(plan, plan.order + begin, plan.n_items - begin)
        if status != OK:
            return status
    for k in range(begin, plan.n_items):
        _mark_leaves(plan, &plan.items[plan.order[k]], k)
    for k in range(begin, plan.n_items):
        i = plan.order[k]
        _append(plan, i, &position)
        _append_leaves(plan, &plan.items[i], k, &position)
    return OK


cdef inline void _append(plan_t *plan, int64_t item, int32_t *position) noexcept nogil:
    plan.order[position[0]] = <int32_t>item
    plan.items[item].position = position[0]
    position[0] += 1


cdef inline void _mark_leaves(plan_t *plan, const item_t *item, int64_t k) noexcept nogil:
    """This item, the k-th, is so far the last that sends a gradient to its leaves."""
    cdef int j
    cdef node_t *node
    if item.before_leaf:
        for j in range(item.node.n_edges):
            node = item.node.edges[j].node
            if node != NULL and node.gradient != NULL:
                plan_find(plan, node).position = <int32_t>~k


cdef inline void _append_leaves(plan_t *plan, const item_t *item, int64_t k, int32_t *position) noexcept nogil:
    """Order the leaves for which it is the last next."""
    cdef int j
    cdef int64_t leaf
    cdef node_t *node
    if item.before_leaf:
        for j in range(item.node.n_edges):
            node = item.node.edges[j].node
            if node != NULL and node.gradient != NULL:
                leaf = _find(plan, node)
                if plan.items[leaf].waiting and plan.items[leaf].position == ~k:
                    _append(plan, leaf, position)


cdef void plan_restrict(plan_t *plan, node_t **targets, int64_t n_targets, bint captured) noexcept nogil:
    cdef int64_t i, k
    cdef int j
    cdef item_t *item
    cdef item_t *target
    plan.restricted = 1
    for i in range(plan.n_items):
        plan.items[i].needed = 0
        plan.items[i].executed = 0
    for i in range(n_targets):
        item = plan_find(plan, targets[i])
        if item != NULL:
            item.needed = 1
            item.executed = not captured
    for k in range(plan.n_items - 1, -1, -1):          # from the leaves to the roots
        item = &plan.items[plan.order[k]]
        for j in range(item.node.n_edges):
            if item.node.edges[j].node != NULL:
                target = plan_find(plan, item.node.edges[j].node)
                if target.needed:
                    item.needed = 1
                    item.executed = 1


cdef void plan_restrict_direct(plan_t *plan, node_t **roots, int64_t n_roots, node_t **targets,
                               int64_t n_targets) noexcept nogil:
    cdef int64_t i, k
    cdef int j
    cdef item_t *item
    cdef item_t *target
    for i in range(plan.n_items):
        plan.items[i].executed *= 2                    # 2: not reached so far
    for i in range(n_targets):
        item = plan_find(plan, targets[i])
        if item != NULL:
            item.executed = 0
    for i in range(n_roots):
        item = plan_find(plan, roots[i])
        item.executed = item.executed != 0
    for k in range(plan.n_items):                      # from the roots to the leaves
        item = &plan.items[plan.order[k]]
        for j in range(item.node.n_edges if item.executed == 1 else 0):
            if item.node.edges[j].node != NULL:
                target = plan_find(plan, item.node.edges[j].node)
                target.executed = target.executed != 0
    for i in range(plan.n_items):
        if plan.items[i].executed == 2:
            plan.items[i].executed = plan.items[i].needed = 0


cdef int plan_capturing(plan_t *plan) noexcept nogil:
    plan.captured = <array_t **>calloc(plan.n_buffers + 1, sizeof(array_t *))
    return OK if plan.captured != NULL else _no_memory()


cdef void plan_capture(plan_t *plan, int64_t buffer, array_t *gradient) noexcept nogil:
    release(plan.captured[buffer])
    plan.captured[buffer] = retain(gradient)


cdef void plan_free(plan_t *plan) noexcept nogil:
    cdef int64_t i
    cdef int j
    if plan.shares_nodes:
        atomic_add(&_sharing, -1)
    _pop_nested(plan)
    for i in range(plan.n_items):
        if atomic_load(&plan.items[i].node.task) == plan.id:
            atomic_store(&plan.items[i].node.task, 0)
    for i in range(plan.n_buffers if plan.sums != NULL else 0):
        release(plan.sums[i])
    for i in range(plan.n_buffers if plan.captured != NULL else 0):
        release(plan.captured[i])
    for i in range(plan.n_buffers if plan.contributions != NULL else 0):
        for j in range(plan.contributions[i].count if plan.contributions[i].arrays != NULL else 0):
            release(plan.contributions[i].arrays[j])
        free(plan.contributions[i].arrays)
    free(plan.items)
    free(plan.order)
    free(plan.ranks)
    free(plan.sums)
    free(plan.captured)
    free(plan.contributions)
    free(plan.table_nodes)
    free(plan.table_items)
    memset(plan, 0, sizeof(plan_t))


# ------------------------------------------------------------------------------------------------------ plan inspection

# Inspection of plans: of a future backward, by building its plan, or of the running one.

cdef node_t **_blocks(list nodes) except NULL:
    """The C blocks of nodes, freed by the caller."""
    cdef Py_ssize_t i, n = len(nodes)
    cdef node_t **blocks = <node_t **>malloc((n + 1) * sizeof(node_t *))
    if blocks == NULL:
        raise MemoryError(f"backward_order: no memory for {n} nodes")
    for i in range(n):
        blocks[i] = (<Node?>nodes[i]).c
    return blocks


def order(list roots, list targets=None):
    """
    Return the nodes that backward would run, in order.

    Parameters
    ----------
    roots : list of Node
    targets : list of Node, optional
        Nodes whose gradients are requested; only nodes on paths to them are included.

    Returns
    -------
    list of Node
    """
    cdef plan_t plan
    cdef item_t *item
    cdef list found = []
    cdef int64_t position
    cdef Py_ssize_t n_roots = len(roots), n_targets = 0 if targets is None else len(targets)
    cdef int status = OK
    cdef node_t **wanted = NULL
    cdef node_t **nodes = _blocks(roots)
    if targets is not None:
        try:
            wanted = _blocks(targets)
        except BaseException:
            free(nodes)
            raise
    if _has_compiled:
        status = plan_build(&plan, nodes, n_roots)
    with nogil:
        if not _has_compiled:
            status = plan_build(&plan, nodes, n_roots)
        if status == 0 and wanted != NULL:
            plan_restrict(&plan, wanted, n_targets, False)
    try:
        check(status)
        for position in range(plan.n_items):
            item = &plan.items[plan.order[position]]
            if item.needed:
                found.append(<Node>item.node.object)
    finally:
        plan_free(&plan)
        free(nodes)
        free(wanted)
    return found


def running():
    """
    Return the running backward calls of this thread, innermost first.

    Returns
    -------
    tuple of int
        A unique number for each call.
    """
    cdef plan_t *plans[MAX_NESTED]
    cdef int i, count = plans_of_thread(plans, MAX_NESTED)
    return tuple([plans[i].id for i in range(count)])


def reaches(Node node not None):
    """
    Return whether the innermost backward of this thread computes the gradient that arrives at `node`.

    Parameters
    ----------
    node : Node

    Returns
    -------
    bool
        False outside of backward.
    """
    cdef plan_t *plan = NULL
    cdef item_t *item
    if plans_of_thread(&plan, 1) == 0:
        return False
    item = plan_find(plan, node.c)
    return item != NULL and item.needed != 0


def current_node():
    """Return the node for which the innermost backward of this thread runs Python code, or None."""
    cdef plan_t *plan = NULL
    if plans_of_thread(&plan, 1) == 0 or plan.current == NULL:
        return None
    return <Node>plan.current.object


def current_order():
    """Return the nodes that the innermost backward of this thread runs, in order; None outside of backward."""
    cdef plan_t *plan = NULL
    cdef int64_t i
    if plans_of_thread(&plan, 1) == 0:
        return None
    return [<Node>plan.items[plan.order[i]].node.object for i in range(plan.n_items)
            if plan.items[plan.order[i]].needed
            and (plan.items[plan.order[i]].executed or plan.items[plan.order[i]].captured)]


def keeps_graph():
    """Return whether the innermost backward of this thread retains the graph; False outside of backward."""
    cdef plan_t *plan = NULL
    return plans_of_thread(&plan, 1) > 0 and plan.keep != 0


def captures():
    """
    Return whether the innermost backward of this thread returns gradients, as `grad` does, instead of accumulating.
    """
    cdef plan_t *plan = NULL
    return plans_of_thread(&plan, 1) > 0 and plan.captured != NULL


def accumulates(Node node not None):
    """
    Return whether the innermost backward of this thread accumulates what arrives at `node` into a leaf without hooks
    that see it before or after.

    Parameters
    ----------
    node : Node

    Returns
    -------
    bool
        False outside of backward.
    """
    cdef plan_t *plan = NULL
    cdef item_t *item
    cdef Hooks hooks = node.hooks
    if node.c.gradient == NULL or plans_of_thread(&plan, 1) == 0 or (hooks is not None and (
            any(hooks.tensor.values()) or hooks.retained or hooks.before or hooks.after or hooks.accumulated)):
        return False
    item = plan_find(plan, node.c)
    return item != NULL and item.needed != 0 and item.executed != 0 and item.captured == 0


def mark_unreached(Node node not None, list gradients not None):
    """Skip, in the innermost backward of this thread, hooks of what only the None entries of `gradients` lead to."""
    cdef plan_t *plan = NULL
    cdef item_t *item
    cdef int i
    cdef set seen = set()
    if plans_of_thread(&plan, 1) == 0:
        return
    cdef list stack = [<object>node.c.edges[i].node.object for i in range(node.c.n_edges)
                       if gradients[i] is None and node.c.edges[i].node != NULL]
    while stack:
        node = stack.pop()
        item = plan_find(plan, node.c)
        if item == NULL or node in seen:
            continue
        seen.add(node)
        if item.python:
            item.python |= UNREACHED
        stack += [<object>node.c.edges[i].node.object for i in range(node.c.n_edges) if node.c.edges[i].node != NULL]


def restricted():
    """
    Return whether the innermost backward of this thread was asked for some gradients only, by `grad` or ``inputs=``.
    """
    cdef plan_t *plans[MAX_NESTED]
    return plans_of_thread(plans, MAX_NESTED) > 0 and bool(plans[0].restricted)


# ------------------------------------------------------------------------------------------------------ final callbacks

# Callbacks at the end of a backward.

callbacks = {}


cdef int run_callbacks(int64_t call) except -1:
    cdef list functions = callbacks.get(call, [])
    cdef Py_ssize_t done = 0
    while done < len(functions):             # a callback may queue another
        functions[done]()
        done += 1
    return 0


def queue_callback(callback):
    """
    Queue a callback for the end of the running backward.

    The callback is called by the innermost running backward of this thread, after all nodes have run and before it
    returns, in the order of queueing. Callbacks can queue further ones. If backward raises an error, none is called.

    Parameters
    ----------
    callback : callable
        Called without arguments.

    Raises
    ------
    RuntimeError
        Outside of backward.

    Examples
    --------
    >>> x = cygrad.ones(2, requires_grad=True)
    >>> def hook(grad):
    ...     cygrad.autograd.graph.queue_callback(lambda: print("gradient:", x.grad))
    >>> handle = x.register_hook(hook)
    >>> (x * 3).sum().backward()
    gradient: tensor([3., 3.])
    """
    cdef plan_t *plan = NULL
    if not callable(callback):
        raise TypeError(f"queue_callback: the callback must be callable (got {type(callback).__name__}).")
    if plans_of_thread(&plan, 1) == 0:
        raise RuntimeError("queue_callback: final callbacks can only be installed during backward pass (got a call "
                           "outside of it). Call it in a hook or in the backward of a custom Function.")
    callbacks.setdefault(plan.id, []).append(callback)
