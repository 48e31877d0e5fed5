"""Running nodes of a plan in anomaly mode: one at a time, with a look for nan at what each has computed."""

from cygrad._core.engine.plan cimport item_t, plan_t

# Run a native item and deliver what it gives. With `look`, *nan_in is the gradient (its number) that holds nan, if one
# does, and nothing is delivered; else -1. *clean: nan has come from nowhere else so far in this backward.
cdef int run_watched_item(plan_t *plan, item_t *item, bint keep, bint look, bint *clean, int *nan_in) noexcept nogil
