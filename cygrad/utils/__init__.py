"""Utilities: checkpointing, data loading, DLPack, pytrees and operator modes."""

from cygrad._core import late_attributes as _late_attributes
from cygrad.utils import checkpoint, data

__all__ = ["checkpoint", "data"]

__getattr__, __dir__ = _late_attributes(__name__, {name: name for name in (
    "benchmark", "dlpack", "flop_counter", "hooks", "pytree", "tensorboard")})
