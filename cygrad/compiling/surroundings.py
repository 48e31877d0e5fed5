"""
What a function sees besides its arguments: variables, closures, modules, optimizers, containers.

From the code of the function, and of the functions of the user that it names, follows which global variables are read;
from there it goes on through attributes and containers. What is found is compared before each replay. What cannot be
compared, or may give something else each time, is a reason not to compile.
"""

import builtins
import dis
import functools
import types

import cygrad
from cygrad import Tensor
from cygrad._core.arrays.dtype import library_name
from cygrad.nn.hooks import ALL_MODULES
from cygrad.nn.module import Module
from cygrad.optim.hooks import ALL_OPTIMIZERS

__all__ = ["CELL", "ENTRY", "ITEM", "LENGTH", "Surroundings"]

ITEM, ENTRY, CELL, LENGTH = range(4)

SIMPLE = (int, float, complex, str, bytes, type(None), type(Ellipsis), slice, range, cygrad.dtype, cygrad.device,
          cygrad.layout, cygrad.memory_format)
# Modules whose functions give the same for the same arguments.
CALM = {"math", "cmath", "operator", "functools", "itertools", "typing", "types", "collections", "contextlib", "abc",
        "dataclasses", "enum", "copy", "builtins", "__future__", "cygrad", "torch", "warnings"}
# Functions of Python that tell of the world, or change it.
RESTLESS = {"print", "input", "open", "exec", "eval", "next", "breakpoint", "__import__", "globals", "locals", "vars",
            "hash", "id"}
MOST = 20_000


@functools.cache
def names_of(code):
    """Global names that a code object reads, with the functions in it; or a reason why it cannot be known."""
    names, reason = [], None
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            names.append(instruction.argval)
        elif instruction.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
            reason = f"it assigns the global variable {instruction.argval!r}"
        elif instruction.opname == "STORE_DEREF" and instruction.argval in code.co_freevars:
            reason = f"it assigns the variable {instruction.argval!r} of an outer function"
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            inner, why = names_of(constant)
            names += inner
            outer = why is not None and "outer function" in why
            reason = reason or (None if outer else why)
    return tuple(dict.fromkeys(names)), reason


class Surroundings:
    """
    What a function sees besides its arguments.

    Parameters
    ----------
    values : iterable
        The function, and arguments that are neither tensors nor plain values.

    Attributes
    ----------
    guards : list of tuple
        (kind, container, key, value): what has to be the same next time; this list itself stands for what is missing.
    tensors : list of Tensor
    optimizers : list
    reason : str or None
    """

    def __init__(self, values):
        self.guards, self.tensors, self.optimizers, self.reason = [], [], [], None
        self.seen = {}
        self.stack = list(values)
        while self.stack and self.reason is None:
            self.look(self.stack.pop())
            if len(self.guards) > MOST:
                self.reason = f"it names more than {MOST} values"

    def add(self, kind, container, key, value):
        """Compare this, and look at what it is."""
        self.guards.append((kind, container, key, value))
        self.stack.append(value)

    def look(self, value):
        """Go on from one value."""
        if isinstance(value, SIMPLE) or id(value) in self.seen:
            return
        self.seen[id(value)] = value                 # it lives as long as its number is in use
        if isinstance(value, Tensor):
            self.tensors.append(value)
        elif isinstance(value, types.FunctionType):
            self.look_at_function(value)
        elif isinstance(value, types.MethodType):
            self.stack += [value.__self__, value.__func__]
        elif isinstance(value, functools.partial):
            self.stack += [value.func, value.args, value.keywords]
        elif isinstance(value, types.ModuleType):
            if value.__name__.partition(".")[0] not in CALM:
                self.reason = f"it uses the module {value.__name__!r}, which may give something else each time"
        elif isinstance(value, type):
            self.look_at_class(value)
        elif isinstance(value, (tuple, frozenset)):
            self.stack += value
        elif isinstance(value, list):
            self.guards.append((LENGTH, value, len(value), None))
            for place, item in enumerate(value):
                self.add(ENTRY, value, place, item)
        elif isinstance(value, dict):
            self.guards.append((LENGTH, value, len(value), None))
            for key, item in value.items():
                self.add(ITEM, value, key, item)
        elif hasattr(value, "param_groups") and hasattr(value, "state") and hasattr(value, "step"):
            self.look_at_optimizer(value)
        elif is_compiled(value) or isinstance(value, cygrad.Generator):
            return                                   # what is drawn is noted
        elif is_restless(value) or not hasattr(value, "__dict__"):
            self.reason = f"it uses a {type(value).__name__}, which may give something else each time"
        else:
            self.look_at_object(value)

    def look_at_function(self, function):
        """Global variables, closure and defaults of a function of the user."""
        if of_package(function.__module__):
            return
        names, self.reason = names_of(function.__code__)
        for name in names:
            if name in function.__globals__:
                self.add(ITEM, function.__globals__, name, function.__globals__[name])
            elif name in RESTLESS and hasattr(builtins, name):
                self.reason = f"it calls {name}()"
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            try:
                self.add(CELL, cell, name, cell.cell_contents)
            except ValueError:
                self.reason = f"its variable {name!r} has no value yet"
        self.stack += [function.__defaults__, function.__kwdefaults__]
        wrapped = function.__dict__.get("__wrapped__")
        self.stack += [wrapped] if wrapped is not None else []

    def look_at_class(self, cls):
        """The methods of a class of the user."""
        for base in cls.__mro__:
            if not of_package(base.__module__) and base.__module__ != "builtins":
                for member in list(vars(base).values()):
                    if isinstance(member, (classmethod, staticmethod)):
                        member = member.__func__
                    elif isinstance(member, property):
                        member = member.fget
                    if isinstance(member, types.FunctionType):
                        self.stack.append(member)

    def look_at_object(self, value):
        """The attributes of an object, and the methods of its class."""
        members = vars(value)
        if isinstance(value, Module):
            self.look_at_hooks(value, ALL_MODULES)
        for name, item in members.items():
            if name != "_non_persistent_buffers_set":
                self.add(ITEM, members, name, item)
        if not of_package(type(value).__module__):
            self.guards.append((LENGTH, members, len(members), None))
            self.stack.append(type(value))

    def look_at_optimizer(self, optimizer):
        """Parameters and state; options are read anew in each replay."""
        members = vars(optimizer)
        self.optimizers.append(optimizer)
        for name in ("param_groups", "state"):
            self.guards.append((ITEM, members, name, members[name]))
        self.look_at_hooks(optimizer, ALL_OPTIMIZERS)
        self.guards.append((LENGTH, optimizer.param_groups, len(optimizer.param_groups), None))
        for place, group in enumerate(optimizer.param_groups):
            self.guards.append((ENTRY, optimizer.param_groups, place, group))
            self.add(ITEM, group, "params", group["params"])
        self.look(optimizer.state)
        if not of_package(type(optimizer).__module__):
            self.stack.append(type(optimizer))

    def look_at_hooks(self, value, of_all):
        """There are none now, and must be none then."""
        kinds = [getattr(of_all, kind) for kind in type(of_all).__mro__[-2].__slots__]
        if value._hooks is not None or any(kinds):
            self.reason = f"hooks are registered on a {type(value).__name__}"
        self.guards.append((ITEM, vars(value), "_hooks", vars(value).get("_hooks", self.guards)))
        if id(of_all) not in self.seen:
            self.seen[id(of_all)] = of_all
            self.guards += [(LENGTH, kind, 0, None) for kind in kinds]

    def changed(self, same):
        """What is another value now, as text; None if nothing is."""
        for kind, container, key, value in self.guards:
            if kind == LENGTH:
                if len(container) != key:
                    return f"a {type(container).__name__} of {key} entries"
                continue
            if kind == CELL:
                found = container.cell_contents
            elif kind == ITEM:
                found = container.get(key, self.guards)
            else:
                found = container[key] if key < len(container) else same
            if not same(found, value):
                return repr(key)
        return None


def of_package(module):
    """Is that a module of this package?"""
    root = (module or "").partition(".")[0]
    return root == "cygrad" or root == "torch" == library_name()         # which stands in for it then


def is_compiled(value):
    """Is it a function or an object of compiled code of this package?"""
    kind = type(value)
    return kind.__name__ in ("cython_function_or_method", "builtin_function_or_method") or (
        of_package(kind.__module__) and not hasattr(value, "__dict__"))


def is_restless(value):
    """Is it something that gives one thing after the other?"""
    return hasattr(value, "__next__")
