"""Helpers around training: nothing of the core depends on them."""

from cygrad.utils import checkpoint, data

__all__ = ["checkpoint", "data"]
