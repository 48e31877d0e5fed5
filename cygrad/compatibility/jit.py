"""
``jit``: programs run as they are, so what would compile them returns them unchanged, and says so once.
"""

import contextlib
import warnings

from cygrad.compatibility import absent

__all__ = [
    "Attribute", "annotate", "export", "fork", "freeze", "ignore", "interface", "is_scripting", "is_tracing",
    "isinstance", "load", "optimize_for_inference", "optimized_execution", "save", "script", "script_if_tracing",
    "set_fusion_strategy", "strict_fusion", "trace", "trace_module", "unused", "wait",
]

_told = set()


def tell_once(name):
    """Say once that something is returned as it is."""
    if name not in _told:
        _told.add(name)
        warnings.warn(f"{name}: nothing is compiled here; the function or module is returned as it is.", stacklevel=3)


def script(obj, *args, **options):
    """The function, module or class itself."""
    tell_once("jit.script")
    return obj


def trace(func, *args, **options):
    """The function or module itself."""
    tell_once("jit.trace")
    return func


def trace_module(mod, inputs, *args, **options):
    """The module itself."""
    tell_once("jit.trace_module")
    return mod


def _same(obj=None, *args, **options):
    """The object itself; without one, a decorator that returns what it gets."""
    return (lambda function: function) if obj is None or not callable(obj) else obj


export = ignore = unused = interface = script_if_tracing = freeze = optimize_for_inference = _same
_python_isinstance = isinstance


def isinstance(obj, target_type):
    """The built-in function."""
    return _python_isinstance(obj, target_type)


def annotate(the_type, the_value):
    """The value."""
    return the_value


def Attribute(value, type=None):
    """The value."""
    return value


def is_scripting():
    """No."""
    return False


is_tracing = is_scripting


def fork(func, *args, **kwargs):
    """The result, computed at once."""
    return func(*args, **kwargs)


def wait(future):
    """The result of `fork`, which is there already."""
    return future


@contextlib.contextmanager
def _block(*args, **options):
    yield


optimized_execution = strict_fusion = fuser = _block
set_fusion_strategy = onednn_fusion_enabled = enable_onednn_fusion = lambda *args: None
ScriptModule, ScriptFunction, RecursiveScriptModule = (absent.placeholder(f"torch.jit.{name}") for name in (
    "ScriptModule", "ScriptFunction", "RecursiveScriptModule"))
Final = absent.Anything
save, load = absent.placeholder("torch.jit.save"), absent.placeholder("torch.jit.load")
Error = RuntimeError
