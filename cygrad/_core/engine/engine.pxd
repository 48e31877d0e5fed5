"""Backward: one plan of the reachable nodes, then run it."""

from cygrad._core.graph.node cimport Node

# Who notes what this thread does (`dual_level` below zero) gives up, for a reason.
ctypedef int (*lost_t)(str reason) except -1
cdef int set_listener(lost_t lost) except -1
