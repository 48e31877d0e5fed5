"""Helpers around training: nothing of the core depends on them."""

from cygrad.utils import checkpoint

__all__ = ["checkpoint"]
