"""
Autocast for functions composed of operators.

Operators have a key of their rows for that. A composed function uses `computes_in`; outside of blocks that costs
reading a thread-local variable.
"""

from functools import wraps

from cygrad._core.arrays.dtype import float32
from cygrad._core.dispatch.operator_modes import cast, current, exchange, leave

__all__ = ["computes_in"]


def computes_in(way):
    """
    Decorate a function that gets floating tensors in one dtype inside `autocast`, and then runs outside of it.

    Parameters
    ----------
    way : {"float32", "lower"}
        That type, or the one of the block.
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
