"""Execution of a plan by several workers: ready nodes from one queue, Python code on the calling thread."""

from cygrad._core.engine.plan cimport item_t, plan_t

# Run one item under the GIL on the calling thread, or check for signals if it is NULL; nonzero if that raised (the
# exception is kept).
ctypedef int (*python_item_t)(void *task, item_t *item) noexcept with gil

# Does the plan have enough work, and this thread the budget, to pay for opening a team?
cdef bint worth_a_team(const plan_t *plan) noexcept nogil
cdef int run_with_team(plan_t *plan, bint keep, python_item_t python_item, void *task) noexcept nogil
