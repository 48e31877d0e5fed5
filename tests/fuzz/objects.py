"""Extension types, their methods, and uninitialized instances."""

import contextlib
import gc
import importlib
import inspect
import itertools
import os
import pkgutil
import random
import signal
import sys
from functools import partial

import cygrad as t
import cygrad._core
from cygrad._core.table.operator import operators

COMPILED_CALLABLES = ("cython_function_or_method", "builtin_function_or_method")
OF_ALL = set(dir(object)) - {"__init__", "__repr__", "__eq__", "__hash__", "__reduce__", "__dir__"}


def extension_types():
    """Name -> type, of all that the compiled modules make, those of single operators' nodes among them."""
    (t.ones(2, requires_grad=True) * 2).sum().backward()
    for module in pkgutil.walk_packages(cygrad._core.__path__, "cygrad._core."):
        if ".testing" not in module.name and not module.name.startswith(("cygrad._core.compiled", "cygrad._core.lib")):
            importlib.import_module(module.name)
    found, waiting = {}, [object]
    while waiting:
        for one in type.__subclasses__(waiting.pop()):
            ours = str(one.__module__).partition(".")[0] == "cygrad" and not one.__name__.startswith("__pyx")
            if ours and not one.__flags__ & 1 << 9:                 # not made by Python
                found[f"{one.__module__}.{one.__qualname__}"] = one
            waiting.append(one)
    return dict(sorted(found.items()))


EXTENSION_TYPES = extension_types()


def attributes(owner):
    """Return the methods and properties of a type, special methods included."""
    return sorted({name for part in owner.__mro__[:-1] for name in vars(part)} - OF_ALL) or ["__repr__"]


def unbound(name, attribute):
    """Return the method of a type, or the getter of a property."""
    owner = EXTENSION_TYPES[name]
    found = next(vars(part)[attribute] for part in (*owner.__mro__, object) if attribute in vars(part))
    if isinstance(found, staticmethod | classmethod):
        return found.__get__(None, owner)
    if callable(found):
        return found
    if hasattr(found, "__get__"):
        return partial(_read, found)
    return lambda *arguments: found


def _read(descriptor, value=None, *new):
    if new:
        return descriptor.__set__(value, new[0])
    return descriptor.__get__(value, type(value))


def bare(name="cygrad._core.graph.modes._Mode", derived=False):
    """An object without initialization; `derived`: of a class of Python whose ``__init__`` does nothing."""
    owner = EXTENSION_TYPES[name]
    if derived:
        return type("Derived", (owner,), {"__init__": lambda self: None})()
    return owner.__new__(owner)


def compiled(found):
    """Return whether it is one that is told its own object by C, which is to look what it is told?"""
    return type(found).__name__ in ("method_descriptor", "wrapper_descriptor", "getset_descriptor", "member_descriptor")


def accepted():
    """Return the methods that do not refuse another object with a TypeError."""
    wrong = []
    for name, owner in EXTENSION_TYPES.items():
        for part in (part for part in owner.__mro__ if part.__module__ == owner.__module__):
            for attribute, found in vars(part).items():
                wrong += [f"{name}.{attribute} of {wrong_self!r} with {rest} more" for rest in range(4)
                          for wrong_self in (1.5, None, EXTENSION_TYPES) if not refuses(found, wrong_self, rest)]
    return wrong


def refuses(found, wrong_self, rest):
    """Return whether it must raise TypeError; Python functions need not."""
    read = found if callable(found) else getattr(found, "__get__", None)
    if read is None or isinstance(found, staticmethod | classmethod):
        return True
    try:
        read(wrong_self, *[None] * rest)
    except TypeError:
        return True
    except Exception:
        return not compiled(found)
    return not compiled(found) or (wrong_self is None and read is not found)       # of None: the descriptor itself


def callables():
    """Name -> every compiled function, method, getter, class and operator of `cygrad._core`, internal ones too."""
    found = {id(value): (f"operators.{name}", value) for name, value in vars(operators).items()}
    for module in [module for name, module in sorted(sys.modules.items())
                   if name.startswith("cygrad._core.") and ".testing" not in name]:
        for name, value in vars(module).items():
            ours = inspect.isclass(value) and str(value.__module__).startswith("cygrad")
            members = vars(value).items() if ours else ()
            for attribute, member in [("", value), *((f".{attribute}", member) for attribute, member in members)]:
                member = getattr(member, "fget", None) or getattr(member, "__func__", member)
                kind = type(member).__name__
                if (kind in COMPILED_CALLABLES and str(member.__module__).startswith("cygrad")) or (kind == "type"
                                                                                                    and ours):
                    found.setdefault(id(member), (f"{module.__name__}.{name}{attribute}", member))
    return dict(found.values())


def argument_lists(seed):
    """Arguments of the wrong types: all lists of up to two, and random ones of three to six."""
    x = t.ones(2, requires_grad=True)
    values = [None, 1.5, -1, 1 << 40, "x", (), [None], (None,), {}, bare, x, [x.detach()], bare(), object]
    for n in range(3):
        yield from itertools.product(values, repeat=n)
    rng = random.Random(seed)
    for _ in range(200):
        yield rng.choices(values, k=rng.randint(3, 6))
    for n in (3, 4):
        yield from ([value] * n for value in values)
    for name in EXTENSION_TYPES:
        with contextlib.suppress(TypeError):
            yield [bare(name)]


def killed():
    """The callables that end the process, or do not return, when they get arguments of wrong types."""
    wrong = []
    for name, found in sorted(callables().items()):
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            for arguments in argument_lists(name):
                with contextlib.suppress(Exception):
                    found(*arguments)
            gc.collect()
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        if status:
            wrong.append(f"{name}: wait status {status}")
    return wrong
