"""The grad modes under the name by which some programs import them."""

from cygrad._core.graph.modes import enable_grad, inference_mode, no_grad, set_grad_enabled

__all__ = ["enable_grad", "inference_mode", "no_grad", "set_grad_enabled"]
