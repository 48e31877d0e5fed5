"""
Automatic differentiation: backward through the recorded graph, and what controls the recording.

``backward`` and ``grad`` run the graph; `graph` looks at it; ``no_grad`` and its kin switch recording off and on.
"""

from cygrad._core.modes import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from cygrad.autograd import function, grad_mode, graph
from cygrad.autograd.function import Function
from cygrad.autograd.gradcheck import gradcheck, gradgradcheck
from cygrad.autograd.run import backward, grad

__all__ = [
    "Function", "backward", "enable_grad", "function", "grad", "grad_mode", "gradcheck", "gradgradcheck", "graph", "inference_mode",
    "is_grad_enabled", "is_inference_mode_enabled", "no_grad", "set_grad_enabled",
]
