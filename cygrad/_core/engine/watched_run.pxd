"""Execution of nodes in anomaly mode: one at a time, checking each result for nan."""

from cygrad._core.engine.plan cimport item_t, plan_t

# Run a native item and deliver its gradients. With `look`, *nan_in is the index of a gradient that contains nan, if
# any, and nothing is delivered; else -1. *clean: no earlier nan in this backward.
cdef int run_watched_item(plan_t *plan, item_t *item, bint keep, bint look, bint *clean, int *nan_in) noexcept nogil
