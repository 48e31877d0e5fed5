"""The functions of the operator table as attributes, for code that composes them."""

from types import SimpleNamespace

from cygrad.operators import INPLACE, OPERATORS

__all__ = ["operators"]

# By the names of the rows; the forms that change their first argument have an underscore.
operators = SimpleNamespace(**OPERATORS, **INPLACE)
