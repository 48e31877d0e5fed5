"""Alias module of `LazyModuleMixin`."""

from cygrad.nn.lazy import LazyModuleMixin

__all__ = ["LazyModuleMixin"]
