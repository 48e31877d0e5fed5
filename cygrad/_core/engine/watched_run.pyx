"""
Execution of nodes in anomaly mode: one at a time, checking each result for nan.

While no gradient contains nan, a node can only introduce one by its own computation. Element-wise programs report
whether they have written one (`nan_watch`), views of clean gradients are clean, and the rest is scanned.
"""

from libc.string cimport memset
from cygrad._core.arrays.array cimport array_t, release
from cygrad._core.elementwise.nan_watch cimport begin_watch, end_watch, holds_nan, watch, watch_t
from cygrad._core.engine.node_run cimport deliver, run_node
from cygrad._core.engine.plan cimport item_t, plan_t
from cygrad._core.graph.node cimport node_t
from cygrad._core.memory.errors cimport MEMORY_ERROR, OK
from cygrad._core.memory.storage cimport allocate, deallocate

cdef enum:
    FEW = 8               # edges of a node kept on the stack


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
    cdef array_t *few[FEW]
    cdef array_t **out = few
    cdef int i, status, failed
    nan_in[0] = -1
    if node.n_edges > FEW:
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
    if node.n_edges > FEW:
        deallocate(out, node.n_edges * sizeof(array_t *))
    return status
