"""Inspection of plans: of a future backward, by building its plan, or of the running one."""

from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc
from cygrad._core.engine.plan cimport item_t, plan_build, plan_find, plan_free, plan_restrict, plan_t, plans_of_thread
from cygrad._core.graph.node cimport Hooks, Node, node_t
from cygrad._core.memory.errors cimport check

cdef enum:
    MOST_NESTED = 128        # more than the engine nests in one thread


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
        Run only what leads there.

    Returns
    -------
    list of Node
    """
    cdef plan_t plan
    cdef item_t *item
    cdef list found = []
    cdef int64_t place
    cdef Py_ssize_t n_roots = len(roots), n_targets = 0 if targets is None else len(targets)
    cdef int status
    cdef node_t **wanted = NULL
    cdef node_t **nodes = _blocks(roots)
    if targets is not None:
        try:
            wanted = _blocks(targets)
        except BaseException:
            free(nodes)
            raise
    with nogil:
        status = plan_build(&plan, nodes, n_roots)
        if status == 0 and wanted != NULL:
            plan_restrict(&plan, wanted, n_targets, False)
    try:
        check(status)
        for place in range(plan.n_items):
            item = &plan.items[plan.order[place]]
            if item.needed:
                found.append(<Node>item.node.object)
    finally:
        plan_free(&plan)
        free(nodes)
        free(wanted)
    return found


def running():
    """
    Return the backward calls that this thread is inside of, the innermost first.

    Returns
    -------
    tuple of int
        A number for each that no other call has.
    """
    cdef plan_t *plans[MOST_NESTED]
    cdef int i, count = plans_of_thread(plans, MOST_NESTED)
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
    cdef plan_t *plan
    cdef item_t *item
    if plans_of_thread(&plan, 1) == 0:
        return False
    item = plan_find(plan, node.c)
    return item != NULL and item.needed != 0


def current_node():
    """Return the node for which the innermost backward of this thread runs Python code, or None."""
    cdef plan_t *plan
    if plans_of_thread(&plan, 1) == 0 or plan.current == NULL:
        return None
    return <Node>plan.current.object


def current_order():
    """Return the nodes that the innermost backward of this thread runs, in order; None outside of backward."""
    cdef plan_t *plan
    cdef int64_t i
    if plans_of_thread(&plan, 1) == 0:
        return None
    return [<Node>plan.items[plan.order[i]].node.object for i in range(plan.n_items)
            if plan.items[plan.order[i]].needed and plan.items[plan.order[i]].executed]


def captures():
    """
    Return whether the innermost backward of this thread returns gradients, as `grad` does, instead of accumulating.
    """
    cdef plan_t *plan
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
    cdef plan_t *plan
    cdef item_t *item
    cdef Hooks hooks = node.hooks
    if node.c.gradient == NULL or plans_of_thread(&plan, 1) == 0 or (hooks is not None and (
            any(hooks.tensor.values()) or hooks.retained or hooks.before or hooks.after or hooks.accumulated)):
        return False
    item = plan_find(plan, node.c)
    return item != NULL and item.needed != 0 and item.executed != 0 and item.captured == 0


def restricted():
    """
    Return whether the innermost backward of this thread was asked for some gradients only, by `grad` or ``inputs=``.
    """
    cdef plan_t *plans[MOST_NESTED]
    return plans_of_thread(plans, MOST_NESTED) > 0 and bool(plans[0].restricted)
