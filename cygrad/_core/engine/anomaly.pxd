"""Anomaly mode: which line of the forward a failing node comes from, and where nan begins."""

from cygrad._core.graph.node cimport Node

# Warn with the Python stack that made the node, which is about to raise.
cdef object explain(Node node, object error)
# Raise if a gradient that the node has computed holds nan.
cdef int look_for_nan(Node node, list results) except -1
cdef int raise_nan(Node node, int number) except -1
