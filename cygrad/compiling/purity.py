"""Functions of Python and C that are known to be pure."""

import functools
import os
import sysconfig
import types

import numpy as np

import cygrad
from cygrad._core.arrays.dtype import library_name

__all__ = ["IMPURE_BUILTINS", "PURE_MODULES", "is_library_file", "is_package_file", "is_pure", "module_of",
           "of_package"]

# Modules of pure functions.
PURE_MODULES = {
    "math", "cmath", "operator", "_operator", "functools", "_functools", "itertools", "typing", "types", "collections",
    "_collections", "collections.abc", "_collections_abc", "contextlib", "abc", "_abc", "dataclasses", "enum", "copy",
    "builtins", "__future__", "numbers", "bisect", "_bisect", "heapq", "_heapq", "string", "keyword", "reprlib"}
# Builtins that read more than their arguments or have side effects.
IMPURE_BUILTINS = {"print", "input", "open", "exec", "eval", "compile", "breakpoint", "__import__", "globals", "locals",
                   "vars", "hash", "id", "warn", "warn_explicit"}
# Types whose methods read and change only their object.
PURE_TYPES = {int, float, complex, bool, str, bytes, bytearray, tuple, list, dict, set, frozenset, slice, range,
              property, type(None), types.GeneratorType, types.MethodType, types.FunctionType, types.MappingProxyType,
              type({}.keys()), type({}.values()), type({}.items()), functools.partial, object}

_PACKAGE = os.path.dirname(cygrad.__file__) + os.sep
_LIBRARIES = (sysconfig.get_paths()["stdlib"] + os.sep, os.path.dirname(np.__file__) + os.sep, "<frozen ",
              "<__array_function__")


def of_package(module):
    """Return whether the module belongs to this package."""
    root = (module or "").partition(".")[0]
    return root == "cygrad" or root == "torch" == library_name()         # installed as torch


@functools.cache
def is_package_file(path):
    """Return whether the file belongs to this package."""
    return path.startswith((_PACKAGE, "cygrad/_core"))


@functools.cache
def is_library_file(path):
    """Return whether the file belongs to the standard library or NumPy."""
    return path.startswith(_LIBRARIES) and f"{os.sep}site-packages{os.sep}" not in path.removeprefix(_LIBRARIES[1])


def module_of(function):
    """Return the module of a function of C, or of the object whose method it is."""
    return getattr(function, "__module__", None) or type(getattr(function, "__self__", None)).__module__


def is_pure(function):
    """Return whether a function of C or of this package is known to be pure."""
    owner, name = getattr(function, "__self__", None), getattr(function, "__name__", "")
    owner = getattr(function, "__objclass__", None) if owner is None else owner
    if of_package(getattr(function, "__module__", None)):
        return True
    if isinstance(owner, types.ModuleType):
        return name not in IMPURE_BUILTINS and (owner.__name__ in PURE_MODULES or of_package(owner.__name__))
    kind = owner if isinstance(owner, type) else type(owner)
    if owner is None:
        module = getattr(function, "__module__", None)
        return module in PURE_MODULES and name not in IMPURE_BUILTINS
    if name in ("__subclasses__", "__reduce__", "__reduce_ex__"):
        return False
    bases = kind.__mro__[:-1] or (kind,)
    return kind is type or any(base in PURE_TYPES or of_package(base.__module__) for base in bases)
