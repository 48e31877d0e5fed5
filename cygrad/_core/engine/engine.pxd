"""Backward: plan the reachable nodes, then run them."""

from cygrad._core.graph.node cimport Node
