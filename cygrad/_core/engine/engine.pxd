"""Backward: one plan of the reachable nodes, then run it."""

from cygrad._core.graph.node cimport Node
