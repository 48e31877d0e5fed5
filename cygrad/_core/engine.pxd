"""Backward: one plan of the reachable nodes, then run it."""

from cygrad._core.node cimport Node
