"""The plan of one backward: which nodes, in which order, and where their gradients wait."""

from libc.stdint cimport int32_t, int64_t
from cygrad._core.array cimport array_t
from cygrad._core.node cimport node_t

ctypedef struct item_t:
    node_t *node
    int32_t waiting           # edges into this node whose gradient has not arrived
    int32_t needed            # its gradient is asked for, or leads to one that is
    int32_t executed          # the node itself runs (false: only its captured gradient is wanted)
    int32_t python            # runs on the calling thread
    int32_t swept             # it has run, in a sweep with others before it
    int32_t captured          # somebody wants to see its gradient: it is kept in buffer_t.captured
    int64_t buffers           # index of its first input buffer
    int64_t last_producer     # place of the last node that sends it a gradient
    int64_t place             # its index in the order of running
    int64_t first_edge        # where its edges begin in plan.ranks

# Where contributions to one input wait. Serial runs add at once; teams keep them by rank: the sum has one order.
ctypedef struct buffer_t:
    array_t *sum
    array_t *captured
    array_t **parts
    int32_t n_parts

ctypedef struct plan_t:
    int64_t id                # what claimed nodes are marked with
    int64_t n_items, capacity
    item_t *items             # in the order of discovery: item index = node.index
    int64_t *order            # items in the order of running
    int64_t n_buffers
    buffer_t *buffers
    int64_t work              # rough cost of all of it
    int32_t any_python
    int32_t restricted        # some items are not needed
    int32_t *ranks            # in a team: rank of each edge among the contributions to its target; else NULL
    int32_t *lock             # in a team: what guards item_t.waiting
    # Nodes claimed by another plan at the moment: their places here, by address (open addressing).
    int64_t table_size, table_used
    node_t **table_nodes
    int64_t *table_items

# Fill the plan from the roots; -1 (with a message) without memory. No GIL needed.
cdef int plan_build(plan_t *plan, node_t **roots, int64_t n_roots) noexcept nogil
# Mark as needed only what leads to the targets: backward(inputs=...) and grad(). `captured`: target nodes whose
# gradient is only looked at, so that they run only if something behind them is needed too.
cdef void plan_restrict(plan_t *plan, node_t **targets, int64_t n_targets, bint captured) noexcept nogil
cdef void plan_free(plan_t *plan) noexcept nogil
# The item of a node, or NULL if the plan does not reach it.
cdef item_t *plan_find(plan_t *plan, node_t *node) noexcept nogil
# The plans that were built and not yet freed by this thread, the innermost first; their number, at most `room`.
cdef int plans_of_thread(plan_t **plans, int room) noexcept nogil
