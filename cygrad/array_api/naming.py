"""Names, modules and signatures of the functions of a table."""

import functools
import inspect

from cygrad import Tensor
from cygrad._core.dispatch.dispatch import standard
from cygrad.array_api.examples import examples

__all__ = ["finished"]

EXAMPLES = examples()


def _on_tensors(name, function):
    @functools.wraps(function)
    def checked(x, /, *args, **options):
        if not isinstance(x, Tensor):
            raise TypeError(f"{name}: argument 'x' must be a Tensor (got {type(x).__name__}). Make one with asarray().")
        return standard(function(x, *args, **options), x)
    return checked


def _on_anything(function):
    @functools.wraps(function)
    def made(*args, **options):
        return standard(function(*args, **options), *args)
    return made


def finished(home, functions, arrays=True, check=True):
    """
    The functions by name, each knowing its name, and the module `home` where pickle finds it.

    Where the first parameter is ``x``, it is a Tensor; `check` says whether this still has to be checked. `arrays` says
    whether results are arrays: what the standard has rules for that other Tensors do not follow.
    """
    if arrays:
        functions = {name: _on_tensors(name, function) if check and function.__code__.co_varnames[:1] == ("x",)
                     else _on_anything(function) for name, function in functions.items()}
    for name, function in functions.items():
        function.__name__ = function.__qualname__ = name
        function.__module__ = home
        summary = inspect.cleandoc(function.__doc__ or f"``{name}`` as the array API standard has it.")
        function.__doc__ = summary + EXAMPLES.get(name, "")
    return functions
