"""
Collect guards on what a function reads besides its arguments: variables, closures, classes, modules, optimizers,
containers.

The collector starts at the global and free variables in the code of the function and visits all attributes, classes and
containers that can be reached. Values that cannot be compared, or that may differ in each call, prevent a trace.
`Observer` aborts the trace if other code runs.
"""

import abc
import dis
import functools
import sys
import types
from collections import OrderedDict, defaultdict
from typing import Any

import numpy as np

import cygrad
from cygrad import Tensor
from cygrad._core.compiler.guards import (
    ANY,
    ATTRIBUTE,
    CELL,
    CLASS,
    ENTRY,
    FUNCTION,
    ITEM,
    ITEMS,
    LENGTH,
    OBJECT,
    SET,
    attribute,
    class_state,
    function_state,
)
from cygrad._core.compiler.variant import CompiledCallable
from cygrad.compiling.observer import location
from cygrad.compiling.purity import PURE_MODULES, is_library_file, is_pure, module_of, of_package
from cygrad.nn.hooks import ALL_MODULES
from cygrad.nn.module import Module
from cygrad.optim.hooks import ALL_OPTIMIZERS

__all__ = ["GuardCollector"]

# Types of immutable values.
CONSTANT = {int, float, complex, bool, str, bytes, type(None), type(Ellipsis), type(NotImplemented), range,
            cygrad.dtype, cygrad.device, cygrad.layout, cygrad.memory_format, types.CodeType, np.dtype}
# Attributes whose values no guard covers.
UNGUARDED = {
    "_version", "storage_offset", "untyped_storage", "storage", "output_nr", "grad_fn", "_backward_hooks",
    "default_factory", "retains_grad", "_base", "_is_view", "next_functions", "_saved_tensors", "__globals__",
    "__builtins__", "f_globals", "f_locals", "f_back", "tb_frame", "gi_frame", "_getframe", "currentframe",
    "__subclasses__", "cell_contents", "get_num_threads", "get_num_interop_threads", "get_printoptions",
    "are_deterministic_algorithms_enabled", "_grad_fn", "get_float32_matmul_precision", "is_anomaly_enabled",
    "get_default_device", "is_autocast_enabled", "__annotations__", "__closure__", "__dataclass_fields__"}
# Class attributes without influence on results.
SKIPPED = {"__doc__", "__module__", "__dict__", "__weakref__", "__annotations__", "__orig_bases__", "__parameters__",
           "__abstractmethods__", "_abc_impl", "__slots__", "__match_args__", "__dataclass_fields__",
           "__dataclass_params__", "__qualname__", "__firstlineno__", "__static_attributes__"}
# Names that contain "grad" but do not read .grad.
NO_READERS = {"zero_grad", "no_grad", "enable_grad", "set_grad_enabled", "is_grad_enabled", "requires_grad",
              "requires_grad_", "autograd", "cygrad", "create_graph", "retain_graph", "grad_outputs", "inference_mode"}
# Names of code that may read options of an optimizer.
OPTION_READERS = {"param_groups", "state_dict", "getattr", "attrgetter", "vars", "__dict__", "repr", "str"}
# Attribute that a step sets on its optimizer; it is compared with its value after the traced step.
STEP_MARK = "_opt_called"
MAX_VALUES = 100_000
# Number of classes that were registered with abstract base classes.
REGISTRATIONS = property(lambda cls: abc.get_cache_token())


class Code:
    """Names that a code object and its inner code objects read."""

    def __init__(self, code):
        self.codes, self.globals, self.imports, self.names, self.reason = {code}, {}, set(), set(code.co_names), None
        self.matches = False                    # patterns of sequences or mappings
        self.values: set[Any] = set()           # global names and attributes that are loaded for more than a call
        line = code.co_firstlineno
        for instruction in dis.get_instructions(code):
            line = (instruction.positions and instruction.positions.lineno) or line
            position = location(code, line)
            kind, name = instruction.opname, instruction.argval
            if kind in ("LOAD_GLOBAL", "LOAD_NAME"):
                self.globals.setdefault(name, position)
                if kind == "LOAD_NAME" or not (instruction.arg or 0) & 1:         # the bit says that a call follows
                    self.values.add((None, name))
            elif kind == "IMPORT_FROM" or (kind == "LOAD_ATTR" and (sys.version_info < (3, 12)
                                                                   or not (instruction.arg or 0) & 1)):
                self.values.add(name)
            elif kind in ("STORE_GLOBAL", "DELETE_GLOBAL"):
                self.abort(f"it assigns the global variable {name!r} ({position}). Return the value instead")
            elif kind in ("STORE_DEREF", "DELETE_DEREF") and name in code.co_freevars:
                self.abort(f"it assigns the variable {name!r} of an outer function ({position}). Return the value "
                             "instead")
            elif kind == "IMPORT_NAME":
                self.imports.add(name)
            elif kind == "IMPORT_STAR":
                self.abort(f"it imports all names of a module ({position})")
            if kind in ("LOAD_ATTR", "LOAD_METHOD", "LOAD_CONST") and isinstance(name, str) and name in UNGUARDED:
                self.abort(f"it reads {name!r} ({position}), which is not compared before a program runs")
            elif kind in ("MATCH_SEQUENCE", "MATCH_MAPPING"):
                self.matches = True
            elif kind in ("GET_AWAITABLE", "GET_AITER", "GET_ANEXT"):
                self.abort(f"it is asynchronous ({position})")
        for constant in code.co_consts:
            if isinstance(constant, str):
                self.names.add(constant)
                self.values.add(constant)
            if isinstance(constant, types.CodeType):
                inner = code_of(constant)
                self.codes |= inner.codes
                self.globals = inner.globals | self.globals
                self.imports |= inner.imports
                self.names |= inner.names
                self.values |= inner.values
                self.matches |= inner.matches
                if inner.reason is not None and "outer function" not in inner.reason:
                    self.abort(inner.reason)

    def abort(self, reason):
        """Record the first reason why the code cannot be traced."""
        self.reason = self.reason or reason


@functools.lru_cache(maxsize=10_000)
def code_of(code):
    """Return the `Code` of a code object."""
    return Code(code)


class GuardCollector:
    """
    Guards on what a function reads besides its arguments.

    Parameters
    ----------
    values : iterable
        The function, and arguments that are neither tensors nor plain values.
    state : list of tuple
        (dict, key) of the attributes that the program reads and sets itself.

    Attributes
    ----------
    guards : list of tuple
        (kind, container, key, value) to compare; this list itself as value means that the key is missing.
    tensors : list of Tensor
    optimizers : list
    codes : set of code
        All Python code that the function can reach and that can be traced.
    seen : dict
        id of each reachable object -> the object.
    reason : str or None
    """

    def __init__(self, values, state=()):
        self.state, self.attributes = {(id(items), key) for items, key in state}, set()      # ids of dicts
        self.guards, self.tensors, self.optimizers, self.reason = [], [], [], None
        self.seen, self.codes, self.names, self.values, self.modules = {}, set(), set(), set(), {}
        self.stack = [(value, "the function") for value in values]
        self.visit_pending()
        looked = set()
        while self.reason is None:                   # attributes of modules
            pending = [(module, name) for module in self.modules.values() for name in self.names
                       if (id(module), name) not in looked]
            if not pending:
                break
            for module, name in pending:
                looked.add((id(module), name))
                value = module.__dict__.get(name, self)
                if value is not self:
                    self.guard_named(module.__dict__, name, value, f"{module.__name__}.{name}", name)
                elif not is_library(module):
                    self.guards.append((ITEM, module.__dict__, name, self.guards))
            self.visit_pending()

    def guard_registrations(self):
        """Guard which classes are registered with abstract base classes."""
        if id(REGISTRATIONS) not in self.seen:
            self.seen[id(REGISTRATIONS)] = REGISTRATIONS
            self.guards.append((ATTRIBUTE, REGISTRATIONS, REGISTRATIONS, abc.get_cache_token()))

    def visit_pending(self):
        """Visit everything that can be reached from the stack."""
        while self.stack and self.reason is None:
            self.visit(*self.stack.pop())
            if len(self.guards) > MAX_VALUES:
                self.reason = f"it can reach more than {MAX_VALUES} values"

    def guard(self, kind, container, key, value, path):
        """Add a guard and visit its value."""
        self.guards.append((kind, container, key, value))
        self.stack.append((value, path))

    def guard_named(self, variables, name, value, path, use):
        """Guard a variable; a C function that is only called is checked when it runs."""
        self.guards.append((ITEM, variables, name, value))
        if use in self.values or not is_c_function(value):
            self.stack.append((value, path))

    @property
    def reads_gradients(self):
        """Return whether user code may read .grad."""
        return any("grad" in name for name in self.names - NO_READERS)

    def changed_state(self):
        """Return the (dict, key) of attributes that were bound to other tensors, or None if others were."""
        found = []
        for kind, items, keys, values in self.guards:
            for key, value in zip(keys, values, strict=True) if kind == ITEMS else ():
                if value is not ANY and items.get(key) is not value:
                    if id(items) not in self.attributes or not {type(value), type(items.get(key))} <= {Tensor,
                                                                                                     type(None)}:
                        return None
                    found.append((items, key))
        return found

    def guard_marks(self):
        """
        Guard what the collector has left to steps of optimizers; call it after the traced steps.

        These are an attribute that they set, which attributes there are, and options, if other code may read them.
        """
        for members in map(vars, self.optimizers):
            self.guards += [(ITEM, members, STEP_MARK, members.get(STEP_MARK, self.guards)),
                            (LENGTH, members, len(members), None)]
            for group in members["param_groups"] if self.names & OPTION_READERS else ():
                self.guards += [(ITEM, group, name, option) for name, option in group.items()]

    def guard_library(self, ran):
        """Guard the functions, classes and flags that the code of this package has read from its public modules."""
        found = {}
        for code, variables in ran.items():
            for name in code.co_names if "._core" not in variables["__name__"] else ():
                value = variables.get(name)
                if type(value) is types.ModuleType and of_package(value.__name__):
                    found |= {(id(vars(value)), part): (vars(value), vars(value)[part])
                              for part in (vars(value) if "getattr" in code.co_names else code.co_names)
                              if part in vars(value)}
                elif value is not None:
                    found[id(variables), name] = variables, value
        self.guards += [(ITEM, variables, name, value) for (_, name), (variables, value) in found.items()
                        if callable(value) or type(value) in (bool, str)]

    def refuse(self, path, value):
        """Reject a value that no guard can compare."""
        self.reason = (f"it uses {path}, a {type(value).__name__} of the module {type(value).__module__!r}, which may "
                       "return different values in each call. Pass its result as an argument")

    def visit(self, value, path):
        """Visit one value."""
        kind = type(value)
        if kind is str and value in UNGUARDED:
            self.reason = f"it uses the name {value!r} ({path}), which is not compared before a program runs"
        if kind in CONSTANT or value is ANY or id(value) in self.seen or issubclass(kind, np.generic):
            return
        self.seen[id(value)] = value                 # keep it alive, because its id is a key
        if issubclass(kind, Tensor):                 # isinstance may call a __getattribute__ of the user
            self.visit_tensor(value, path)
        elif kind is types.FunctionType:
            self.visit_function(value, path)
        elif kind is types.MethodType:
            self.stack += [(value.__self__, path), (value.__func__, path)]
        elif kind is functools.partial:
            for name in ("func", "args", "keywords"):
                self.guard(ATTRIBUTE, value, vars(kind)[name], getattr(value, name), path)
            self.guard_items(vars(value), path)
        elif kind is types.ModuleType:
            self.visit_module(value, path)
        elif issubclass(kind, type):
            self.visit_class(value, path)
        elif kind in (tuple, frozenset):
            self.stack += [(item, path) for item in value]
        elif kind is slice:
            self.stack += [(item, path) for item in (value.start, value.stop, value.step)]
        elif kind is list:
            self.guard_entries(value, path)
        elif kind in (dict, defaultdict):            # a default entry changes the length
            self.guard_items(value, path)
        elif kind is set:
            self.guards.append((SET, value, len(value), list(value)))
            self.stack += [(item, path) for item in value]
        elif kind is property:
            self.stack += [(part, path) for part in (value.fget, value.fset, value.fdel)]
        elif kind in (classmethod, staticmethod):
            self.stack.append((value.__func__, path))
        elif {"param_groups", "state"} <= own_attributes(value).keys():
            self.visit_optimizer(value, path)
        elif is_c_function(value) and not is_pure(value):
            self.reason = (f"it uses {path} as a value, {value.__name__}() of the module {module_of(value)!r}, which "
                           "may return different values in each call. Pass its result as an argument")
        elif issubclass(kind, CompiledCallable):
            members = vars(value)
            self.guards += [(OBJECT, value, kind, members), (LENGTH, members, len(members), None)]
            for name in members.keys() - value.OWN:
                self.guard(ITEM, members, name, members[name], f"{path}.{name}")
        elif is_native(value) or kind is cygrad.Generator:
            return                                   # calls are observed and draws are traced
        elif hasattr(kind, "__next__"):
            self.refuse(path, value)
        else:
            self.visit_object(value, path)

    def guard_items(self, items, path):
        """Guard all items of a dict, in order."""
        values = [ANY if (id(items), key) in self.state else item for key, item in items.items()]
        self.guards.append((ITEMS, items, tuple(items), tuple(values)))
        for key, item in zip(items, values, strict=True):
            self.stack += [(item, f"{path}.{key}")] if type(key) is str else [(item, f"{path}[...]"), (key, path)]

    def guard_entries(self, entries, path):
        """Guard all entries of a list."""
        self.guards.append((LENGTH, entries, len(entries), None))
        for position, item in enumerate(list(entries)):
            self.guard(ENTRY, entries, position, item, f"{path}[{position}]")

    def visit_tensor(self, tensor, path):
        """Reject tensors with user attributes or of a user class."""
        self.tensors.append(tensor)
        if not of_package(type(tensor).__module__):
            self.stack.append((type(tensor), path))
        attributes = tensor.__dict__
        if attributes:
            self.guard_items(attributes, path)

    def visit_function(self, function, path):
        """Visit global variables, closure, defaults, attributes and code of a user function."""
        if of_package(function.__module__) or function.__module__ in PURE_MODULES:
            return
        if is_library_file(function.__code__.co_filename) and function.__module__ in sys.modules and is_library_file(
                getattr(sys.modules[function.__module__], "__file__", None) or ""):
            self.reason = (f"it uses {path}, {function.__qualname__}() of the module {function.__module__!r}, which "
                           "may return different values in each call. Call it outside and pass the result as an "
                           "argument")
            return
        code = code_of(function.__code__)
        self.reason = code.reason
        self.codes |= code.codes
        self.names |= code.names
        if code.matches:
            self.guard_registrations()
        if not is_library_file(function.__code__.co_filename):
            self.values |= code.values
        self.guards.append((FUNCTION, function, None, function_state(function)))
        for name, position in code.globals.items():
            self.visit_variable(function, name, position)
        for name in code.imports:
            if name not in sys.modules:
                self.reason = f"it imports the module {name!r} ({path}). Import it at the top of the file"
                return
            for part in [name, name.partition(".")[0]]:
                self.guard(ITEM, sys.modules, part, sys.modules[part], part)
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            try:
                self.guard(CELL, cell, name, cell.cell_contents, name)
            except ValueError:
                self.reason = f"its variable {name!r} has no value yet"
        self.stack.append((function.__defaults__, path))
        if function.__kwdefaults__ is not None:
            self.stack.append((function.__kwdefaults__, path))
        self.guard_items(function.__dict__, path)

    def visit_variable(self, function, name, position):
        """Guard a global variable or builtin of a function."""
        for items in (function.__globals__, function.__builtins__):
            if name in items:
                self.guard_named(items, name, items[name], f"{name} ({position})", (None, name))
                return
            self.guards.append((ITEM, items, name, self.guards))

    def visit_module(self, module, path):
        """Guard the variables of a module whose names occur in the code."""
        self.modules[id(module)] = module
        if self.names & {"__dict__", "getattr"} and not is_library(module):
            self.reason = f"it uses the module {module.__name__!r} ({path}) and reads attributes by name"

    def visit_class(self, cls, path):
        """Guard the members of a class and its bases."""
        for base in cls.__mro__:                     # operators of such objects are not observed
            if not (base.__module__ in PURE_MODULES or base.__module__ == "numpy") and is_opaque(base):
                self.reason = (f"it uses {path}, the type {base.__name__} of the module {base.__module__!r}, whose "
                               "objects may differ in each call. Pass a number or tensor made of it as an argument")
                return
        if not cls.__flags__ & 1 << 9:               # a static type is immutable
            return
        self.guards.append((CLASS, cls, None, class_state(cls)))
        for base in cls.__mro__:
            if not base.__flags__ & 1 << 9:
                continue
            own = not of_package(base.__module__) and base.__module__ not in PURE_MODULES
            for name, member in list(vars(base).items()):
                if name not in SKIPPED and (own or is_replaced(member)):
                    self.stack.append((member, f"{path}.{name}"))
        if type(cls) is not type:
            self.stack.append((type(cls), path))
        if isinstance(cls, abc.ABCMeta):
            self.guard_registrations()

    def visit_object(self, value, path):
        """Guard the attributes, slots and class of an object."""
        cls = type(value)
        if not of_package(cls.__module__) and (hidden_state(cls)  # type: ignore[arg-type]
                                                or issubclass(cls, OrderedDict)):
            self.refuse(path, value)
            return
        members = own_attributes(value, None)
        self.guards.append((OBJECT, value, cls, self.guards if members is None else members))
        if issubclass(cls, Module):
            self.visit_hooks(value, ALL_MODULES, path)
        if members is not None:
            self.attributes |= {id(members), id(members.get("_buffers"))}
            self.guard_items(members, path)
        for base in cls.__mro__:
            for name, member in vars(base).items():
                if isinstance(member, types.MemberDescriptorType) and base.__flags__ & 1 << 9:
                    item = attribute(value, member, self.guards)
                    self.guards.append((ATTRIBUTE, value, member, item))
                    if item is not self.guards:
                        self.stack.append((item, f"{path}.{name}"))
        if issubclass(cls, dict):
            self.guard_items(value, path)
        elif issubclass(cls, list):
            self.guard_entries(value, path)
        elif issubclass(cls, (tuple, frozenset)):
            self.stack += [(item, path) for item in value]
        self.stack.append((cls, path))

    def visit_optimizer(self, optimizer, path):
        """Guard parameters and state of an optimizer; options are read in each execution."""
        members = vars(optimizer)
        self.optimizers.append(optimizer)
        self.guards.append((OBJECT, optimizer, type(optimizer), members))
        self.visit_hooks(optimizer, ALL_OPTIMIZERS, path)
        for name, item in members.items():
            if name != STEP_MARK:
                self.guards.append((ITEM, members, name, item))
                self.stack += [] if name == "param_groups" else [(item, f"{path}.{name}")]
        self.guards.append((LENGTH, optimizer.param_groups, len(optimizer.param_groups), None))
        for position, group in enumerate(optimizer.param_groups):
            self.guards.append((ENTRY, optimizer.param_groups, position, group))
            self.guards.append((LENGTH, group, len(group), None))
            self.guard(ITEM, group, "params", group["params"], f"{path}.param_groups[{position}]")
            for name, option in group.items():
                if name not in ("params", "param_names") and not is_constant(option):
                    self.refuse(f"{path}.param_groups[{position}][{name!r}]", option)
        self.stack.append((type(optimizer), path))

    def visit_hooks(self, value, of_all, path):
        """Guard that no hooks are registered."""
        kinds = [getattr(of_all, kind) for kind in type(of_all).__mro__[-2].__slots__]  # type: ignore[attr-defined]
        if value._hooks is not None or any(kinds):
            self.reason = f"hooks are registered on a {type(value).__name__} ({path})"
        if id(of_all) not in self.seen:
            self.seen[id(of_all)] = of_all
            self.guards += [(LENGTH, kind, 0, None) for kind in kinds]


def own_attributes(value, default=types.MappingProxyType({})):
    """Return the dict of an object without calling its class; `default` if it has none."""
    try:
        found = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return default
    return found if isinstance(found, dict) else default


def is_constant(value):
    """Return whether the value is immutable, or a tuple of immutable values."""
    return type(value) in CONSTANT or (type(value) is tuple and all(map(is_constant, value)))


def is_replaced(member):
    """Return whether a user has replaced a member of a class of this package."""
    member = getattr(member, "__func__", member)
    return isinstance(member, types.FunctionType) and not (
        of_package(member.__module__) or member.__module__ in PURE_MODULES)


def is_library(module):
    """Return whether it is a module of this package or of pure functions?"""
    return module.__name__ in PURE_MODULES or of_package(module.__name__)


def is_c_function(value):
    """Return whether it is a function or method of C, not of this package?"""
    return type(value) in (types.BuiltinFunctionType, types.MethodDescriptorType)


def is_native(value):
    """Return whether it is a C function, or an object of compiled code of this package."""
    kind = type(value)
    return kind.__name__ in ("cython_function_or_method", "builtin_function_or_method", "method_descriptor",
                             "wrapper_descriptor", "getset_descriptor", "member_descriptor", "method-wrapper",
                             "classmethod_descriptor", "_tuplegetter", "ufunc",
                             "_ArrayFunctionDispatcher") or kind is object or (
        of_package(kind.__module__) and not hasattr(value, "__dict__"))


@functools.lru_cache(maxsize=10_000)
def hidden_state(cls):
    """Return whether instances have state besides attributes, slots and contents of Python containers."""
    return any(map(is_opaque, cls.__mro__)) or (issubclass(cls, (set, str, bytes)) and cls not in (set, str, bytes))


@functools.lru_cache(maxsize=10_000)
def is_opaque(cls):
    """Return whether a class adds state to its base that is in neither attributes nor slots."""
    if of_package(cls.__module__) or cls in (object, types.SimpleNamespace, list, dict, tuple, set, frozenset, int,
                                             float, complex, str, bytes):
        return False
    slots = sum(isinstance(member, (types.MemberDescriptorType, types.GetSetDescriptorType))
                for member in vars(cls).values())
    return not cls.__flags__ & 1 << 9 or cls.__basicsize__ - cls.__base__.__basicsize__ > 8 * slots
