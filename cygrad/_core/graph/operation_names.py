"""The operation that the user called, for error messages."""

import sys

from cygrad._core.table.operator import find_operator

__all__ = ["called_operation", "operation_error"]

# Modules whose functions call user functions, such as transforms and dispatchers.
CALLERS = ("cygrad.func.", "cygrad.compiling.", "cygrad.utils.", "cygrad.autograd.", "cygrad._core.")


def called_operation(operator):
    """Return the outermost public function of the package on the stack, or the public name of this operator."""
    row = find_operator(operator.removesuffix("_"))
    if row is not None:
        operator = row.__name__ + "_" * operator.endswith("_")
    frame = sys._getframe()
    while frame is not None:
        module = frame.f_globals.get("__name__") or ""
        if not module.startswith("cygrad."):
            break
        name = frame.f_code.co_name
        if not module.startswith(CALLERS):
            if name in frame.f_globals.get("__all__", ()) or name in frame.f_globals.get("rows", ()):
                operator = name
            elif module.startswith("cygrad.distributions.") and (name == "__init__" or name[0] not in "_<"):
                operator = type(frame.f_locals["self"]).__name__ if name == "__init__" else frame.f_code.co_qualname
        frame = frame.f_back
    return operator


def operation_error(kind, operator, text):
    """Return an error of this class whose message begins with the operation that the user called."""
    return kind(f"{called_operation(operator)}: {text}")
