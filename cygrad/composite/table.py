"""The functions of the operator table as attributes, for code that composes them."""

from types import SimpleNamespace

from cygrad.operators import METHODS, OPERATORS

__all__ = ["operators"]

# By the names of the rows; the forms that change their first argument have an underscore.
operators = SimpleNamespace(
    **{name: function for name, function in METHODS.items() if name.endswith("_")}, **OPERATORS
)
