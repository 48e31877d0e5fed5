"""Nodes and edges of the recorded graph, and hooks."""

from cygrad._core import public_dir as _public_dir
from cygrad._core.engine.engine import GradientEdge, get_gradient_edge
from cygrad._core.engine.plan import queue_callback
from cygrad._core.graph.inplace import increment_version
from cygrad._core.graph.node import Node
from cygrad.autograd.drawing import to_dot, to_svg
from cygrad.autograd.memory import memory_report
from cygrad.autograd.multi_grad_hook import register_multi_grad_hook
from cygrad.autograd.order import backward_order
from cygrad.autograd.saved import (
    allow_mutation_on_saved_tensors,
    disable_saved_tensors_hooks,
    save_on_cpu,
    saved_tensors_hooks,
)

__all__ = [
    "GradientEdge", "Node", "allow_mutation_on_saved_tensors", "backward_order", "disable_saved_tensors_hooks",
    "get_gradient_edge", "increment_version", "memory_report", "queue_callback", "register_multi_grad_hook",
    "save_on_cpu", "saved_tensors_hooks", "to_dot", "to_svg",
]
__dir__ = _public_dir(__name__)
