"""
Automatic differentiation: backward through the recorded graph, and control of recording.

``backward`` and ``grad`` run the graph; `graph` inspects it; ``no_grad`` and similar managers disable and enable
recording.
"""

from cygrad._core import late_attributes as _late_attributes
from cygrad._core.graph.modes import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from cygrad.autograd import anomaly_mode, forward_ad, function, grad_mode
from cygrad.autograd.anomaly_mode import (
    detect_anomaly,
    is_anomaly_check_nan_enabled,
    is_anomaly_enabled,
    set_detect_anomaly,
)
from cygrad.autograd.function import Function
from cygrad.autograd.gradcheck import gradcheck, gradgradcheck
from cygrad.autograd.run import backward, grad
from cygrad.autograd.variable import Variable

__all__ = [
    "Function", "Variable", "anomaly_mode", "backward", "detect_anomaly", "enable_grad", "forward_ad", "function",
    "functional", "grad", "grad_mode", "gradcheck", "gradgradcheck", "graph", "inference_mode",
    "is_anomaly_check_nan_enabled",
    "is_anomaly_enabled", "is_grad_enabled", "is_inference_mode_enabled", "no_grad", "per_sample_grad",
    "set_detect_anomaly", "set_grad_enabled",
]

__getattr__, __dir__ = _late_attributes(__name__, {
    "functional": "functional", "graph": "graph", "per_sample_grad": ".func.per_sample"})
