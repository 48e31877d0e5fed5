"""The functions of the operator table, for code that composes them."""

from types import SimpleNamespace

from cygrad.operators import OPERATORS

__all__ = ["operators"]

operators = SimpleNamespace(**OPERATORS)
