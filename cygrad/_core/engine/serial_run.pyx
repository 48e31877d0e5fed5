"""Execution of a plan on one thread: items in order, large element-wise ones fused where possible. No GIL."""

from libc.stdint cimport int64_t
from cygrad._core.engine.node_run cimport signal_check_t, run_items, should_check_signals, fused_t
from cygrad._core.engine.plan cimport item_t, plan_t, was_fused
from cygrad._core.memory.errors cimport OK


cdef int advance(plan_t *plan, int64_t *place, bint keep) noexcept nogil:
    cdef item_t *item
    cdef signal_check_t signal_check = signal_check_t(0, 0)
    cdef fused_t done
    cdef int status
    while place[0] < plan.n_items:
        item = &plan.items[plan.order[place[0]]]
        if item.needed and not was_fused(item):
            if item.python or item.node.python:      # a hook may have been registered since the plan was made
                return NEEDS_PYTHON
            status = run_items(plan, item, keep, &done)
            if status != OK:
                return status
        place[0] += 1
        if should_check_signals(&signal_check, item.node.work):
            return CHECK_SIGNALS
    return FINISHED
