"""Utilities: checkpointing, data loading, DLPack, pytrees and operator modes."""

from cygrad.utils import checkpoint, data

__all__ = ["checkpoint", "data"]
