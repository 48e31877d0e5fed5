"""
``__torch_function__`` for methods, properties and functions that are not operators.

Operators call ``__torch_function__`` themselves. Composite functions and metadata call it only where needed: by methods
in the namespace of a subclass that defines it, and by functions in the modules of the stand-in.
"""

import functools
import importlib
import sys
import threading
from types import FunctionType, ModuleType

import cygrad
from cygrad import Tensor
from cygrad._core.arrays.dtype import library_name
from cygrad._core.dispatch.binding import StaticFunction
from cygrad._core.graph.boxing import call_override, overriding_arguments
from cygrad.operators import METHODS

__all__ = ["dispatch_functions", "dispatch_methods", "dispatching"]

SPECIAL = {"__bool__", "__contains__", "__deepcopy__", "__float__", "__format__", "__int__", "__len__", "__repr__"}
OWN = {"_cdata", "_make_subclass", "_make_wrapper_subclass", "as_subclass"}       # not overridable in PyTorch either
# Predicates and factories, not overridable in PyTorch either.
UNASKED = {"arange", "as_tensor", "asarray", "compile", "empty", "eye", "frombuffer", "from_numpy", "full",
           "get_device", "is_inference_mode_enabled", "is_storage", "is_tensor", "linspace", "load", "logspace",
           "manual_seed", "ones", "rand", "randint", "randn", "randperm", "save", "tensor", "typename", "vmap", "zeros"}
FUNCTIONS = (FunctionType, StaticFunction)
MODULES = ("cygrad", "cygrad.nn.functional", "cygrad.linalg", "cygrad.fft", "cygrad.special")


_thread = threading.local()


def modes():
    """Function modes of this thread, the innermost last."""
    return _thread.__dict__.setdefault("modes", [])


def dispatching(function, public=None):
    """
    Wrap `function`: call ``__torch_function__`` of its arguments with `public`, by default `function`.

    Classes of this library, entries of vmap and sparse tensors, handle the operators that a composite function calls.
    """
    def call(*args, **options):
        if public is not None and modes():
            mode, types = modes()[-1], {type(value): None for value in args if isinstance(value, Tensor)}
            with mode._suspended():
                return mode.__torch_function__(public, tuple(types), args, options)
        overriding = [value for value in overriding_arguments([
            part for value in (*args, *options.values())
            for part in (value if type(value) in (list, tuple) else (value,))
        ]) if not type(value).__module__.startswith("cygrad.")]
        if overriding:
            return call_override(public or function, overriding, args, options)
        return function(*args, **options)
    return functools.update_wrapper(call, function)


def _is_own(attribute):
    """Return whether the library defined an attribute of Tensor; functions set by programs are not overridable."""
    code = attribute.fget if isinstance(attribute, property) else attribute
    return not isinstance(code, FunctionType) or code.__globals__["__name__"].startswith("cygrad.")


def dispatch_methods(cls):
    """Add methods and properties to a subclass of Tensor that call its ``__torch_function__``."""
    for name, attribute in list(vars(Tensor).items()):
        if name in METHODS or name in OWN or (name.startswith("__") and name not in SPECIAL):
            continue
        attribute = getattr(Tensor, name)
        if getattr(cls, name) is not attribute or not _is_own(attribute):
            continue
        if hasattr(attribute, "__set__"):
            setattr(cls, name, property(dispatching(attribute.__get__), dispatching(attribute.__set__)))
        elif callable(attribute) and not isinstance(attribute, type):
            setattr(cls, name, dispatching(attribute))
    if library_name() == "torch":
        dispatch_functions()


@functools.cache
def dispatch_functions():
    """Make public composite functions call ``__torch_function__``."""
    modules = [importlib.import_module(name) for name in MODULES]
    for module in modules:
        for name, function in list(vars(module).items()):
            if type(function) in FUNCTIONS and not name.startswith("_") and name not in UNASKED:
                _replace(module, name, function)
    namespace = sys.modules.get("torch")
    if isinstance(namespace, ModuleType) and getattr(namespace, "cygrad", None) is cygrad:
        vars(namespace).update({name: getattr(cygrad, name) for name, function in vars(namespace).items()
                                if type(function) in FUNCTIONS and hasattr(cygrad, name)})


def _replace(module, name, function):
    def public(*args, **options):
        return replaced(*args, **options)
    replaced = dispatching(function, public)
    functools.update_wrapper(public, function)
    public.__module__, public.__qualname__ = module.__name__, name           # for pickle
    setattr(module, name, public)
