"""
Autocast of functions composed of operators.

Rows of operators have a key for autocast; composed functions use the decorator `computes_in`. Outside of autocast it
reads one thread-local variable.
"""

from functools import wraps

from cygrad._core.arrays.dtype import float32
from cygrad._core.dispatch.operator_modes import cast, current, exchange, leave

__all__ = ["computes_in"]


def computes_in(way):
    """
    Decorate a function: in `autocast`, cast its floating point arguments to one dtype and run it with autocast
    disabled.

    Parameters
    ----------
    way : {"float32", "lower"}
        float32, or the dtype of autocast.
    """
    def decorate(function):
        @wraps(function)
        def decorated(*args, **options):
            block = current()
            if block is None:
                return function(*args, **options)
            target = float32 if way == "float32" else block
            args, options = cast(args, target), {name: cast(value, target) for name, value in options.items()}
            before = exchange(None, True)
            try:
                return function(*args, **options)
            finally:
                leave(before)
        return decorated
    return decorate
