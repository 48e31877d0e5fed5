"""
``jit``: programs run as they are, so what would compile them returns them unchanged, and says so once.
"""

import contextlib
import typing
import warnings
import weakref

import cygrad
from cygrad.compatibility.futures import Future

__all__ = [
    "Attribute", "Future", "annotate", "export", "fork", "freeze", "ignore", "interface", "is_scripting", "is_tracing",
    "isinstance", "load", "optimize_for_inference", "optimized_execution", "save", "script", "script_if_tracing",
    "set_fusion_strategy", "strict_fusion", "trace", "trace_module", "unused", "wait",
]

_told = set()
_compiled = {}             # id -> weak reference: modules that have been given to `script` or `trace`


def tell_once(name):
    """Say once that something is returned as it is."""
    if name not in _told:
        _told.add(name)
        warnings.warn(f"{name}: nothing is compiled here; the function or module is returned as it is.", stacklevel=3)


def script(obj, *args, **options):
    """Return the function, module or class itself."""
    tell_once("jit.script")
    return _noted(obj)


def trace(func, *args, **options):
    """Return the function or module itself."""
    tell_once("jit.trace")
    return _noted(func)


def trace_module(mod, inputs, *args, **options):
    """Return the module itself."""
    tell_once("jit.trace_module")
    return _noted(mod)


def _noted(obj):
    """Remember that a module counts as compiled; it gets the method `save` of such modules."""
    if _python_isinstance(obj, cygrad.nn.Module):
        if not hasattr(cygrad.nn.Module, "save"):
            cygrad.nn.Module.save = save
        key = id(obj)
        _compiled[key] = weakref.ref(obj, lambda _: _compiled.pop(key, None))
    return obj


def _same(obj=None, *args, **options):
    """The object itself; without one, a decorator that returns what it gets."""
    return (lambda function: function) if obj is None or not callable(obj) else obj


export = ignore = unused = interface = script_if_tracing = _script_if_tracing = freeze = optimize_for_inference = _same
_python_isinstance = isinstance


def isinstance(obj, target_type):
    """Return the built-in function."""
    return _python_isinstance(obj, target_type)


def annotate(the_type, the_value):
    """Return the value."""
    return the_value


def Attribute(value, type=None):
    """Return the value."""
    return value


def is_scripting():
    """No."""
    return False


is_tracing = is_scripting


def fork(func, *args, **kwargs):
    """Return the result, computed immediately."""
    return func(*args, **kwargs)


def wait(future):
    """The result of `fork`, which is there already."""
    return future


@contextlib.contextmanager
def _block(*args, **options):
    yield


optimized_execution = strict_fusion = fuser = _block
set_fusion_strategy = onednn_fusion_enabled = enable_onednn_fusion = lambda *args: None


class _Compiled(type):
    """Says also of modules that have been compiled, as far as anything is here, that they are scripted ones."""

    def __instancecheck__(cls, instance):
        return super().__instancecheck__(instance) or (cls is ScriptModule and id(instance) in _compiled)


class ScriptModule(cygrad.nn.Module, metaclass=_Compiled):
    """A module; to make a subclass of it is to make one of `Module`."""


class ScriptFunction:
    """The type of compiled functions, of which there are none."""


class ScriptMethod:
    """The type of compiled methods, of which there are none."""


class TracerWarning(Warning):
    """A warning that tracing would give."""

    @staticmethod
    def ignore_lib_warnings():
        """Nothing to do."""


RecursiveScriptModule = TopLevelTracedModule = TracedModule = ScriptModule
Final = typing.Final
Error = TracingCheckError = RuntimeError
script_method = _same
_overload = _overload_method = _same


def save(m, f, _extra_files=None):
    """Write a module to a file, by pickling it whole; the classes have to be there where it is loaded."""
    cygrad.save(m, f, format="torch", pickle=True)


def load(f, map_location=None, _extra_files=None, _restore_shapes=False):
    """Read what `save` has written. It runs code of the file: load only what you trust."""
    return cygrad.load(f, map_location=map_location, weights_only=False)
