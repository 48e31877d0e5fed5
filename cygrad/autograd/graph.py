"""The recorded graph: its nodes, its edges, and where gradients arrive."""

from cygrad._core.engine import GradientEdge, get_gradient_edge
from cygrad._core.node import Node
from cygrad.autograd.saved import (
    allow_mutation_on_saved_tensors,
    disable_saved_tensors_hooks,
    save_on_cpu,
    saved_tensors_hooks,
)

__all__ = [
    "GradientEdge", "Node", "allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks", "get_gradient_edge",
    "save_on_cpu", "saved_tensors_hooks",
]
