"""
Autocast and 16-bit floats for functions composed of operators.

Rows of operators have a key for autocast; composed functions use the decorator `computes_in`. Outside of autocast it
reads one thread-local variable.
"""

from functools import reduce, wraps

from cygrad._core.arrays.dtype import bfloat16, float16, float32, promote_types
from cygrad._core.dispatch.operator_modes import cast, current, exchange, leave
from cygrad._core.graph.tensor import Tensor
from cygrad.composite.out_forms import into

__all__ = ["SHORT", "computes_in", "in_float32", "rounded_once"]


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


SHORT = frozenset((float16, bfloat16))


def in_float32(function, *args, out=None, **options):
    """Call a function of several operators in float32, and round only its result to the 16-bit dtype of the tensors."""
    tensors = [value for value in (*args, *options.values())
               if isinstance(value, Tensor) and value.dtype.is_floating_point]
    dtype = reduce(promote_types, [tensor.dtype for tensor in tensors if tensor.ndim] or [tensors[0].dtype])
    result = function(*cast(args, float32), **{name: cast(value, float32) for name, value in options.items()})
    return into(function.__name__, result.to(dtype), out)


def rounded_once(function):
    """Decorate a function of several operators that rounds only its result if its first argument has 16-bit floats."""
    first = function.__code__.co_varnames[0]

    @wraps(function)
    def decorated(*args, **options):
        if getattr(args[0] if args else options.get(first), "dtype", None) in SHORT:
            return in_float32(function, *args, **options)
        return function(*args, **options)
    return decorated
