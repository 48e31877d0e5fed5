"""Where programs look for what makes a module lazy."""

from cygrad.nn.lazy import LazyModuleMixin

__all__ = ["LazyModuleMixin"]
