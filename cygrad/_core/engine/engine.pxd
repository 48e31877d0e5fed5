"""Backward: plan the reachable nodes, then run them."""

from cygrad._core.graph.node cimport Node

# -------------------------------------------------------------------------------------------------------------- anomaly

# Anomaly mode: the line of the forward that a failing node comes from, and where nan first appears.

# Warn with the Python stack that created the node, which is about to raise.
cdef object explain(Node node, object error)
# Raise an error if a gradient computed by the node contains nan.
cdef int look_for_nan(Node node, list results) except -1
cdef int raise_nan(Node node, int number) except -1
