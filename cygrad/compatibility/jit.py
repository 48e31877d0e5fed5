"""
``jit``: programs run eagerly; functions that would compile them return them unchanged, with one warning.
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
_compiled = {}             # id -> weak reference of modules passed to `script` or `trace`


def tell_once(name):
    """Warn once that programs are not compiled."""
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
    """Mark a module as compiled, and add the method `save`."""
    if _python_isinstance(obj, cygrad.nn.Module):
        if not hasattr(cygrad.nn.Module, "save"):
            cygrad.nn.Module.save = save
        key = id(obj)
        _compiled[key] = weakref.ref(obj, lambda _: _compiled.pop(key, None))
    return obj


def _same(obj=None, *args, **options):
    """Return the object, or without one an identity decorator."""
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
    """Return False."""
    return False


is_tracing = is_scripting


def fork(func, *args, **kwargs):
    """Return the result, computed immediately."""
    return func(*args, **kwargs)


def wait(future):
    """Return the result of `fork`."""
    return future


@contextlib.contextmanager
def _block(*args, **options):
    yield


optimized_execution = strict_fusion = fuser = _block
set_fusion_strategy = onednn_fusion_enabled = enable_onednn_fusion = lambda *args: None


class _Compiled(type):
    """Metaclass whose instances include modules passed to `script` or `trace`."""

    def __instancecheck__(cls, instance):
        return super().__instancecheck__(instance) or (cls is ScriptModule and id(instance) in _compiled)


class ScriptModule(cygrad.nn.Module, metaclass=_Compiled):
    """A scripted module; subclasses are subclasses of `Module`."""


class ScriptFunction:
    """Type of compiled functions, without instances."""


class ScriptMethod:
    """Type of compiled methods, without instances."""


class TracerWarning(Warning):
    """Warning category of tracing."""

    @staticmethod
    def ignore_lib_warnings():
        """Do nothing."""


RecursiveScriptModule = TopLevelTracedModule = TracedModule = ScriptModule
Final = typing.Final
Error = TracingCheckError = RuntimeError
script_method = _same
_overload = _overload_method = _same


def save(m, f, _extra_files=None):
    """Pickle a whole module to a file; loading needs its classes."""
    cygrad.save(m, f, format="torch", pickle=True)


def load(f, map_location=None, _extra_files=None, _restore_shapes=False):
    """Read a file of `save`. It may run code: load only trusted files."""
    return cygrad.load(f, map_location=map_location, weights_only=False)


def __getattr__(name):
    """Return a placeholder of a private function, which says so when it is called."""
    if name.startswith("_") and not name.startswith("__"):
        from cygrad.compatibility.absent import placeholder
        return placeholder(f"torch.jit.{name}", "Programs are not compiled by TorchScript: run them as they are.")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
