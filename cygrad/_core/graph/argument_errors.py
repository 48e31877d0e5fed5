"""Errors about wrong arguments: checks of single values, and names for errors that Python raises in the package."""

import functools
import re
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["as_callable", "as_dim", "as_instance", "as_integer", "as_items", "as_number", "as_pairs", "as_sizes",
           "described", "name_operation", "names_arguments"]

_Function = TypeVar("_Function", bound=Callable[..., Any])
_NAMED = re.compile(r"[\w.]+(\(\))?: ")
_PLACEHOLDER = object()
# Word of a documented type -> the types it accepts.
_ACCEPTED = {
    "int": lambda value: hasattr(value, "__index__"),
    "float": lambda value: hasattr(value, "__float__") or hasattr(value, "__index__"),
    "number": lambda value: hasattr(value, "__float__") or hasattr(value, "__complex__"),
    "str": lambda value: isinstance(value, str),
    "bool": lambda value: True,
    "callable": callable,
    "tuple": lambda value: hasattr(value, "__iter__") and not isinstance(value, str),
    "list": lambda value: hasattr(value, "__iter__") and not isinstance(value, str),
    "sequence": lambda value: hasattr(value, "__len__") and not isinstance(value, str),
    "iterable": lambda value: hasattr(value, "__iter__") and not isinstance(value, str),
    "dict": lambda value: hasattr(value, "keys"),
    "None": lambda value: value is None,
    "optional": lambda value: value is None,
    **dict.fromkeys(("Tensor", "Module", "Optimizer", "LRScheduler", "Distribution", "Transform", "PackedSequence"),
                    None),
}


def as_integer(operation, name, value, least=None):
    """Return the value as an int, if it is an integer of at least `least`, not a bool."""
    try:
        if isinstance(value, bool):
            raise TypeError
        whole = value.__index__()
    except (AttributeError, TypeError, RuntimeError):
        raise TypeError(f"{operation}: argument '{name}' must be an integer (got {described(value)}).") from None
    if not -1 << 63 <= whole < 1 << 63:
        raise OverflowError(f"{operation}: argument '{name}' does not fit 64 bits (got {whole}). Use a smaller one.")
    if least is not None and whole < least:
        raise ValueError(f"{operation}: argument '{name}' must be at least {least} (got {whole}).")
    return whole


def as_callable(operation, name, value):
    """Return the value, if it can be called."""
    if not callable(value):
        raise TypeError(f"{operation}: argument '{name}' must be callable (got {described(value)}).")
    return value


def as_dim(operation, dim, ndim):
    """Return the dimension of a tensor with `ndim` dimensions, counted from the front."""
    if type(dim) is not int:
        dim = as_integer(operation, "dim", dim)
    if not -ndim <= dim < ndim:
        raise IndexError(f"{operation}: dimension out of range (got {dim}, expected to be in [{-ndim}, {ndim - 1}]).")
    return dim % ndim


def as_instance(operation, name, value, kind):
    """Return the value, if it is an instance of this class (the last word of the error is its name)."""
    if not isinstance(value, kind):
        raise TypeError(f"{operation}: argument '{name}' must be a {kind.__name__} (got {described(value)}).")
    return value


def as_items(operation, name, value, kind):
    """Return a list of the items, if the value is an iterable of instances of this class."""
    if not hasattr(value, "__iter__") or isinstance(value, str):
        raise TypeError(f"{operation}: argument '{name}' must be an iterable of {kind.__name__} (got "
                        f"{described(value)}).")
    return [as_instance(operation, name, item, kind) for item in value]


def as_pairs(operation, value):
    """Return a list of the items, if the value is an iterable of pairs."""
    pairs = list(value)
    for number, pair in enumerate(pairs):
        if not hasattr(pair, "__len__"):
            raise TypeError(f"{operation}: expected a mapping or pairs of name and value (got {described(value)}).")
        if len(pair) != 2:
            raise ValueError(f"{operation}: update sequence element #{number} has length {len(pair)}; 2 is required")
    return pairs


def as_number(operation, name, value):
    """Return the value, if it is a real number (or a tensor of one)."""
    if not hasattr(value, "__float__") and not hasattr(value, "__index__"):
        raise TypeError(f"{operation}: argument '{name}' must be a number (got {described(value)}).")
    return value


def as_sizes(operation, name, value, count=None):
    """Return a tuple of integers; of one integer `count` copies."""
    if count is not None and hasattr(value, "__index__") and not getattr(value, "ndim", 0):
        return (as_integer(operation, name, value),) * count
    try:
        sizes = tuple([size.__index__() for size in value])
    except (AttributeError, TypeError, RuntimeError):
        single = "" if count is None else "an integer or "
        raise TypeError(f"{operation}: argument '{name}' must be {single}a sequence of integers (got "
                        f"{described(value)}).") from None
    return sizes if all(-1 << 63 <= size < 1 << 63 for size in sizes) else tuple(
        [as_integer(operation, name, size) for size in sizes])


def described(value):
    """Return what an error says of a wrong value: the value itself where it is short, else its type."""
    kind = type(value).__name__
    if kind in ("Tensor", "Parameter"):
        return f"a Tensor of shape {tuple(value.shape)}"
    if value is None or value is True or value is False:
        return repr(value)
    if isinstance(value, (str, int, float, complex, list, tuple)):
        text = repr(value)
        return f"{text if len(text) <= 40 else text[:37] + '...'} of type {kind}"
    return kind


def name_operation(error):
    """
    Name the operation and the wrong argument in an error that Python or NumPy raised in the package.

    Return whether it was one: errors that name their operation, and those raised by user code, stay as they are. The
    operation is the outermost
    public function of the package in the traceback, or the module whose `forward` that is. An argument is wrong if its
    documented type does not accept it.
    """
    if not isinstance(error, (TypeError, AttributeError, ValueError, OverflowError, KeyError, IndexError)):
        return False
    if (len(error.args) > 1 and type(error).__module__ == "builtins") or _NAMED.match(str(error)):
        return False
    found, trace = None, error.__traceback__
    while trace is not None:
        frame = trace.tb_frame
        name, module = frame.f_code.co_name, frame.f_globals.get("__name__") or ""
        inside = module.startswith("cygrad.")
        if found is None and inside and (name == "forward" or _is_public(name, frame)):
            found = frame
        trace = trace.tb_next
    if found is None or (not inside and not module.startswith("numpy.")):
        return False
    code, values = found.f_code, found.f_locals
    names = code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]
    owner = values.get("self")
    if code.co_name == "forward" and owner is not None:
        operation, doc = type(owner).__name__, type(owner).forward.__doc__
    else:
        operation = code.co_name
        doc = getattr(found.f_globals.get(operation), "__doc__", None)
    error.args = (f"{operation}: {_fault(doc, names, values) or _summary(error, names, values)}",)
    return True


def _is_public(name, frame):
    return not name.startswith("_") and (name in frame.f_globals.get("__all__", ())
                                         or getattr(frame.f_globals.get(name), "__code__", None) is frame.f_code)


def _fault(doc, names, values):
    """Return what the first argument that its documented type does not accept should be."""
    for name in names:
        value = values.get(name, _PLACEHOLDER)
        entry = re.search(rf"^ *(?:\*?\w+, )*{name}(?:, \*?\w+)* : (.*)$", doc or "", re.MULTILINE)
        kind = entry[1] if entry else "Tensor" if name == "input" else ""
        words = [word for word in re.split(r"[^\w]+", kind.partition(", default")[0]) if word in _ACCEPTED]
        if value is _PLACEHOLDER or not words or "{" in kind or ("default None" in kind and value is None):
            continue
        if not any(_accepts(word, value) for word in words):
            return f"argument '{name}' must be {re.split(', | of shape| ``', kind)[0]} (got {described(value)})."
    return None


def _accepts(word, value):
    accepted = _ACCEPTED[word]
    return any(base.__name__ == word for base in type(value).__mro__) if accepted is None else accepted(value)


def _summary(error, names, values):
    text = str(error).rstrip(".")
    given = ", ".join(f"{name}: {described(values[name])}" for name in names if name in values and name != "self")
    return f"{text} (got {given}). Check the types and values of the arguments."


def names_arguments(function: _Function) -> _Function:
    """Return the function with errors that name it and the wrong argument: for functions that are not called often."""
    @functools.wraps(function)
    def named(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except Exception as error:
            if name_operation(error) and isinstance(error, AttributeError):
                raise TypeError(*error.args) from None
            raise
    return named  # type: ignore[return-value]
