"""The recorded graph: its nodes, its edges, and where gradients arrive."""

from cygrad._core.engine import GradientEdge, get_gradient_edge
from cygrad._core.node import Node

__all__ = ["GradientEdge", "Node", "get_gradient_edge"]
