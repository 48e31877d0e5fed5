"""Functions of a table get their names."""

__all__ = ["finished"]


def finished(home, functions):
    """The functions by name, each knowing its name, and the module `home` where pickle finds it."""
    for name, function in functions.items():
        function.__name__ = function.__qualname__ = name
        function.__module__ = home
        function.__doc__ = function.__doc__ or f"``{name}`` as the array API standard has it."
    return functions
