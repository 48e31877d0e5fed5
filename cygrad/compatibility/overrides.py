"""``overrides``: helpers for classes that define ``__torch_function__``."""

import functools
from contextlib import contextmanager

import cygrad
from cygrad import Tensor
from cygrad._core.arrays.dtype import library_name
from cygrad._core.graph.boxing import call_override, overriding_arguments
from cygrad.compatibility import function_overrides
from cygrad.utils.operator_modes import OperatorMode as TorchDispatchMode
from cygrad.utils.operator_modes import Overload as OpOverload
from cygrad.utils.operator_modes import Packet as OpOverloadPacket

__all__ = [
    "BaseTorchFunctionMode", "OpOverload", "OpOverloadPacket", "TorchDispatchMode", "TorchFunctionMode",
    "get_default_nowrap_functions", "get_ignored_functions", "get_overridable_functions", "get_testing_overrides",
    "handle_torch_function", "has_torch_function", "has_torch_function_unary", "has_torch_function_variadic",
    "is_tensor_like", "is_tensor_method_or_property", "is_traceable_wrapper_subclass", "resolve_name",
    "return_and_correct_aliasing", "transform_subclass", "wrap_torch_function",
]


def has_torch_function(relevant_args):
    """Return whether an argument overrides functions by ``__torch_function__``."""
    return bool(overriding_arguments(relevant_args))


def has_torch_function_unary(arg):
    """Return whether one argument overrides functions."""
    return has_torch_function((arg,))


def has_torch_function_variadic(*args):
    """Return whether one of several arguments overrides functions."""
    return has_torch_function(args)


def handle_torch_function(public_api, relevant_args, *args, **kwargs):
    """Call ``__torch_function__`` of the arguments, subclasses before their bases."""
    return call_override(public_api, relevant_args, args, kwargs)


def is_tensor_like(inp):
    """Return whether an object is a Tensor or defines ``__torch_function__``."""
    return isinstance(inp, Tensor) or hasattr(inp, "__torch_function__")


def is_tensor_method_or_property(func):
    """Return whether a function is a method or property of Tensor."""
    return getattr(Tensor, getattr(func, "__name__", ""), None) is func


def resolve_name(f):
    """Return the name of a function."""
    return f"{getattr(f, '__module__', '')}.{getattr(f, '__qualname__', f)}"


def wrap_torch_function(dispatcher):
    """Dispatch a function on the arguments that ``dispatcher`` returns."""
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
    """Return the functions that cannot be overridden."""
    return set()


def get_default_nowrap_functions():
    """Return the functions that return plain tensors."""
    return set()


def get_testing_overrides():
    """Return an empty dict of functions to override."""
    return {}


def get_overridable_functions():
    """Return an empty dict of functions by module."""
    return {}


class TorchFunctionMode(TorchDispatchMode):
    """
    Base class of modes that override functions of tensors in a block.

    Subclasses define ``__torch_function__(func, types, args, kwargs)``, in which the mode is disabled. Under the
    stand-in it gets all public functions, else operators, several for a composite function.
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
        """Handle a call."""
        raise NotImplementedError(f"__torch_function__: {type(self).__name__} does not define it.")

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        """Pass an operator on, as its public function if any."""
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
    """Return whether the class of a tensor is a wrapper with ``__tensor_flatten__``."""
    kind = t if isinstance(t, type) else type(t)
    return issubclass(kind, Tensor) and hasattr(kind, "__tensor_flatten__") and hasattr(kind, "__tensor_unflatten__")


def return_and_correct_aliasing(func, args, kwargs, out):
    """Return what an operator returns for its wrapped tensors, or the argument that it modified."""
    return args[0] if func.__name__.partition(".")[0].endswith("_") else out


def transform_subclass(t, callback, outer_size=None, outer_stride=None):
    """Return a tensor of the same class that wraps what ``callback(name, tensor)`` returns for each wrapped tensor."""
    names, context = t.__tensor_flatten__()
    wrapped = {name: callback(name, getattr(t, name)) for name in names}
    return type(t).__tensor_unflatten__(wrapped, context, t.size() if outer_size is None else outer_size,
                                        t.stride() if outer_stride is None else outer_stride)
