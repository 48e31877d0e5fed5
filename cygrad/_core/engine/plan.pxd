"""The plan of one backward: its nodes, their order, and the buffers of their gradients."""

from libc.stdint cimport int32_t, int64_t, int8_t
from cygrad._core.arrays.array cimport array_t
from cygrad._core.graph.node cimport node_t

# ----------------------------------------------------------------------------------------------------------------- plan

cdef enum:
    WEIGHT = 1 << 12
    MAX_WEIGHT = 127
    UNREACHED = 2             # in item_t.python: maybe no gradient arrives; then its hooks are not called
    HAS_COMPILED_GRAPH = 16   # in node_t.python: the node of a compiled function, which nodes of eager can replace

# Half a cache line, because plans of large graphs exceed the caches.
ctypedef struct item_t:
    node_t *node
    int32_t waiting           # edges into this node whose gradient has not arrived
    int32_t buffers           # index of its first input buffer
    int32_t position  # position in the execution order; before, of the last node that sends it a gradient
    int32_t first_edge        # index of its first edge in plan.ranks
    int8_t needed             # its gradient is requested, or it leads to one that is
    int8_t executed           # the node itself runs (false: only its captured gradient is requested)
    int8_t python             # runs on the calling thread
    int8_t fused              # it has run in a fusion with earlier items
    int8_t captured           # its gradient is requested: kept in plan.captured
    int8_t leaf               # an AccumulateGrad
    int8_t before_leaf        # sends a gradient to an AccumulateGrad
    int8_t weight             # its work in units of WEIGHT elements, at most MAX_WEIGHT

# Other members may read this flag while it is set: a late reader finds that the item still waits.
cdef extern from * nogil:
    """
    #define was_fused(item) __atomic_load_n(&(item)->fused, __ATOMIC_ACQUIRE)
    #define mark_fused(item) __atomic_store_n(&(item)->fused, 1, __ATOMIC_RELEASE)
    #define still_waiting(item) __atomic_load_n(&(item)->waiting, __ATOMIC_ACQUIRE)
    #define one_arrived(item) __atomic_sub_fetch(&(item)->waiting, 1, __ATOMIC_ACQ_REL)
    """
    bint was_fused(const item_t *item)
    void mark_fused(item_t *item)
    int32_t still_waiting(const item_t *item)
    int32_t one_arrived(item_t *item)      # return the number of gradients that are still to arrive

# Contributions to one input in a team, by rank. They are added in this order when they arrive; early ones wait.
ctypedef struct contributions_t:
    array_t **arrays
    int32_t count
    int32_t added             # number of those added or being added
    int32_t adding            # a thread is adding, unlocked
    int32_t lock              # guards the fields above

ctypedef struct plan_t:
    int64_t id                # mark of claimed nodes
    int64_t n_items, capacity
    item_t *items                   # in the order of discovery: item index = node.index
    int32_t *order                  # items in execution order
    int64_t n_buffers               # one for each input of each node
    array_t **sums                  # arrived gradients
    array_t **captured              # requested gradients; NULL if none is requested
    contributions_t *contributions  # in a team, else NULL
    int64_t last_nr                 # sequence number of the previous item, during discovery
    int32_t unsorted                # items were not found in execution order
    int64_t work                    # rough cost of the plan
    int32_t any_python
    int32_t restricted        # some items are not needed
    int32_t keep              # retain_graph
    int32_t shares_nodes      # another plan has claimed one of its nodes that is no leaf
    node_t *current           # the last node for which Python code has run; NULL before
    int32_t *ranks            # in a team: rank of each edge among the contributions to its target; else NULL
    # Nodes that another plan has claimed: their items, by address (open addressing).
    int64_t table_size, table_used
    node_t **table_nodes
    int64_t *table_items

# Fill the plan from the roots; -1 (with a message) without memory. No GIL needed.
cdef int plan_build(plan_t *plan, node_t **roots, int64_t n_roots) noexcept nogil
# Mark as needed only what leads to the targets: backward(inputs=...) and grad(). `captured`: target nodes whose
# gradient is only returned, so that they run only if a node after them is needed, too.
cdef void plan_restrict(plan_t *plan, node_t **targets, int64_t n_targets, bint captured) noexcept nogil
# After plan_restrict: execute only paths from the roots to the targets that contain no other target.
cdef void plan_restrict_direct(plan_t *plan, node_t **roots, int64_t n_roots, node_t **targets,
                               int64_t n_targets) noexcept nogil
# Allocate memory for captured gradients; -1 (with a message) on failure. `plan_capture` retains one.
cdef int plan_capturing(plan_t *plan) noexcept nogil
cdef void plan_capture(plan_t *plan, int64_t buffer, array_t *gradient) noexcept nogil
cdef void plan_free(plan_t *plan) noexcept nogil
# Return the item of a node, or NULL if the plan does not reach it.
cdef item_t *plan_find(plan_t *plan, node_t *node) noexcept nogil
# Mark the node of a compiled function. From then on, plans are built with the GIL held.
cdef void mark_compiled(node_t *node) noexcept
# Return whether there are nodes of compiled functions.
cdef bint has_compiled() noexcept nogil
# Return whether other plans contain nodes that another one has claimed, apart from leaves.
cdef bint others_share_nodes(const plan_t *plan) noexcept nogil
# Return this thread's live plans, the innermost first, and their number, at most `capacity`.
cdef int plans_of_thread(plan_t **plans, int capacity) noexcept nogil

# ------------------------------------------------------------------------------------------------------ final callbacks

# Callbacks at the end of a backward.

# Callbacks by the id of the plan. Each thread accesses only its own.
cdef dict callbacks

# Call the callbacks of a backward.
cdef int run_callbacks(int64_t call) except -1
