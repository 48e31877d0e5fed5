"""What libraries ask about types that take over functions of tensors: there are none but Tensor and its subclasses."""

import functools

from cygrad import Tensor
from cygrad.utils.operator_modes import OperatorMode as TorchDispatchMode
from cygrad.utils.operator_modes import Overload as OpOverload
from cygrad.utils.operator_modes import Packet as OpOverloadPacket

__all__ = [
    "BaseTorchFunctionMode", "OpOverload", "OpOverloadPacket", "TorchDispatchMode", "TorchFunctionMode",
    "get_default_nowrap_functions", "get_ignored_functions", "get_overridable_functions", "get_testing_overrides",
    "handle_torch_function", "has_torch_function", "has_torch_function_unary", "has_torch_function_variadic",
    "is_tensor_like", "is_tensor_method_or_property", "resolve_name", "wrap_torch_function",
]


def has_torch_function(relevant_args):
    """Whether one of the arguments takes over functions: one that is no Tensor and has ``__torch_function__``."""
    return any(not isinstance(arg, Tensor) and hasattr(type(arg), "__torch_function__") for arg in relevant_args)


def has_torch_function_unary(arg):
    """The same of one argument."""
    return has_torch_function((arg,))


def has_torch_function_variadic(*args):
    """The same of several arguments."""
    return has_torch_function(args)


def handle_torch_function(public_api, relevant_args, *args, **kwargs):
    """Let the arguments that take over functions compute this one, the most derived type first."""
    types = {type(arg): arg for arg in relevant_args
             if not isinstance(arg, Tensor) and hasattr(type(arg), "__torch_function__")}
    for kind in sorted(types, key=lambda kind: -len(kind.__mro__)):
        result = types[kind].__torch_function__(public_api, tuple(types), args, kwargs)
        if result is not NotImplemented:
            return result
    raise TypeError(f"{getattr(public_api, '__name__', public_api)}: no implementation for "
                    f"{', '.join(kind.__name__ for kind in types)}.")


def is_tensor_like(inp):
    """Whether an object is a Tensor or takes over functions of tensors."""
    return isinstance(inp, Tensor) or hasattr(inp, "__torch_function__")


def is_tensor_method_or_property(func):
    """Whether a function is one of the Tensor type."""
    return getattr(Tensor, getattr(func, "__name__", ""), None) is func


def resolve_name(f):
    """The name of a function."""
    return f"{getattr(f, '__module__', '')}.{getattr(f, '__qualname__', f)}"


def wrap_torch_function(dispatcher):
    """Let a function be taken over by the arguments that ``dispatcher`` returns."""
    def wrap(function):
        @functools.wraps(function)
        def call(*args, **kwargs):
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(function, relevant, *args, **kwargs)
            return function(*args, **kwargs)
        return call
    return wrap


def get_ignored_functions():
    """Functions that cannot be taken over."""
    return set()


def get_default_nowrap_functions():
    """Functions whose results are no subclasses."""
    return set()


def get_testing_overrides():
    """Functions with dummies of the same signature: none are listed."""
    return {}


def get_overridable_functions():
    """Functions by the module that they belong to: none are listed."""
    return {}


class TorchFunctionMode:
    """The base of blocks that take all functions over: programs may define some, and are told at their entry."""

    def __init__(self):
        self.inner = None

    def __torch_function__(self, func, types, args=(), kwargs=None):
        """What a mode makes of a call."""
        raise NotImplementedError(f"__torch_function__: {type(self).__name__} does not define it.")

    def __enter__(self):
        raise NotImplementedError(f"{type(self).__name__}: functions are not taken over by blocks here. Define "
                                  "__torch_function__ on a subclass of Tensor.")

    def __exit__(self, *error):
        return False


BaseTorchFunctionMode = TorchFunctionMode
