"""``overrides``: what libraries ask about classes that define ``__torch_function__``."""

import functools
from contextlib import contextmanager

import cygrad
from cygrad import Tensor
from cygrad._core.arrays.dtype import library_name
from cygrad._core.graph.boxing import asked_in_turn, call_override
from cygrad.compatibility import function_overrides
from cygrad.utils.operator_modes import OperatorMode as TorchDispatchMode
from cygrad.utils.operator_modes import Overload as OpOverload
from cygrad.utils.operator_modes import Packet as OpOverloadPacket

__all__ = [
    "BaseTorchFunctionMode", "OpOverload", "OpOverloadPacket", "TorchDispatchMode", "TorchFunctionMode",
    "get_default_nowrap_functions", "get_ignored_functions", "get_overridable_functions", "get_testing_overrides",
    "handle_torch_function", "has_torch_function", "has_torch_function_unary", "has_torch_function_variadic",
    "is_tensor_like", "is_tensor_method_or_property", "is_traceable_wrapper_subclass", "resolve_name",
    "transform_subclass", "wrap_torch_function",
]


def has_torch_function(relevant_args):
    """Whether the class of one of the arguments takes over functions: a subclass of Tensor, or another class."""
    return bool(asked_in_turn(relevant_args))


def has_torch_function_unary(arg):
    """Return the same of one argument."""
    return has_torch_function((arg,))


def has_torch_function_variadic(*args):
    """Return the same of several arguments."""
    return has_torch_function(args)


def handle_torch_function(public_api, relevant_args, *args, **kwargs):
    """Let the arguments that take over functions compute this one, a subclass before its bases."""
    return call_override(public_api, relevant_args, args, kwargs)


def is_tensor_like(inp):
    """Whether an object is a Tensor or takes over functions of tensors."""
    return isinstance(inp, Tensor) or hasattr(inp, "__torch_function__")


def is_tensor_method_or_property(func):
    """Whether a function is one of the Tensor type."""
    return getattr(Tensor, getattr(func, "__name__", ""), None) is func


def resolve_name(f):
    """Return the name of a function."""
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


class TorchFunctionMode(TorchDispatchMode):
    """
    The base of blocks that take over what is called on tensors.

    Programs define ``__torch_function__(func, types, args, kwargs)``; within it the block is not asked again. Where
    this library stands in for PyTorch it is told of all public functions; else of operators, so that a function
    composed of several is a call for each.
    """

    def __enter__(self):
        if library_name() == "torch":
            function_overrides.dispatch_functions()
        function_overrides.modes().append(self)
        return super().__enter__()

    def __exit__(self, *error):
        function_overrides.modes().pop()
        super().__exit__(*error)

    @contextmanager
    def _suspended(self):
        modes = function_overrides.modes()
        place = modes.index(self)
        inner, modes[place:] = modes[place:], []
        try:
            with super()._suspended():
                yield
        finally:
            modes[place:] = inner

    def __init__(self):
        self.inner = None

    def __torch_function__(self, func, types, args=(), kwargs=None):
        """What a mode makes of a call."""
        raise NotImplementedError(f"__torch_function__: {type(self).__name__} does not define it.")

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        """Hand an operator over, as the public function of its name where there is one."""
        public = None if func.changes else getattr(cygrad, func._row, None) or getattr(
            cygrad.nn.functional, func._row, None)
        if public is None:
            def public(*args, **options):
                return func(*args, **options)
            public.__name__ = f"{func._row}{'_' * func.changes}"
        with self._suspended():
            return self.__torch_function__(public, types, args, kwargs or {})


BaseTorchFunctionMode = TorchFunctionMode


def is_traceable_wrapper_subclass(t):
    """Whether a tensor is of a class that wraps others and gives them by ``__tensor_flatten__``."""
    kind = t if isinstance(t, type) else type(t)
    return issubclass(kind, Tensor) and hasattr(kind, "__tensor_flatten__") and hasattr(kind, "__tensor_unflatten__")


def transform_subclass(t, callback, outer_size=None, outer_stride=None):
    """Return a tensor of the same class that wraps what ``callback(name, tensor)`` returns for each wrapped tensor."""
    names, context = t.__tensor_flatten__()
    wrapped = {name: callback(name, getattr(t, name)) for name in names}
    return type(t).__tensor_unflatten__(wrapped, context, t.size() if outer_size is None else outer_size,
                                        t.stride() if outer_stride is None else outer_stride)
