"""The ``out=`` and in-place forms of functions composed of operators."""

import functools
import inspect

from cygrad._core.creation.factories import write_to
from cygrad._core.dispatch.indexing import copy_
from cygrad._core.graph.modes import is_grad_enabled, no_grad
from cygrad._core.graph.tensor import Tensor
from cygrad._core.table.operator import operators

__all__ = ["MAX_PARTS", "all_spelled", "as_tensor_argument", "category", "copy_for", "inplace", "into",
           "refuse_shared_memory", "spelled"]

MAX_PARTS = 1 << 24          # parts of one tensor; more exceed the memory of most machines


def as_tensor_argument(operation, name, value):
    """Return the value, which must be a Tensor."""
    if not isinstance(value, Tensor):
        raise TypeError(f"{operation}: argument '{name}' must be a Tensor (got {type(value).__name__}).")
    return value


def copy_for(input, other):
    """
    Return a copy that `other` can be written to; under `vmap`, batched if `other` is.
    """
    if type(other) is Tensor or not hasattr(other, "_entries") or hasattr(input, "_entries"):
        return operators.clone(input)
    return other.new_empty(input.shape, dtype=input.dtype).copy_(input)


def into(operation, result, out, casts=False):
    """Return the result, written to `out` (a Tensor or a tuple) if given; `casts`: also of a wider dtype."""
    if out is None:
        return result
    if isinstance(result, tuple):
        if not isinstance(out, (tuple, list)) or len(out) != len(result):
            raise TypeError(f"{operation}: out must hold one Tensor for each result (got {out!r}).")
        written = [into(operation, part, target, casts) for part, target in zip(result, out, strict=True)]
        return type(result)(*written) if hasattr(result, "_fields") else tuple(written)
    as_tensor_argument(operation, "out", out)
    if is_grad_enabled() and (result.requires_grad or out.requires_grad):
        raise RuntimeError(f"{operation}: out=... arguments don't support automatic differentiation, but one of the "
                           "arguments requires grad. Use the form without out=, or no_grad().")
    if casts and category(result) <= category(out):
        result = result.to(out.dtype)
    return write_to(result.detach(), out, operation)


def category(tensor):
    """Return the category of the dtype: bool 0, integer 1, floating point 2, complex 3."""
    if str(tensor.dtype).endswith(".bool"):
        return 0
    return 1 + tensor.is_floating_point() + 2 * tensor.is_complex()


def refuse_shared_memory(operation, out, *arguments):
    """Raise if `out` overlaps an argument in memory."""
    for argument in arguments if out is not None else ():
        if all(tensor.numel() and tensor.is_contiguous() for tensor in (out, argument)):
            apart = argument.data_ptr() - out.data_ptr()
            if -argument.numel() * argument.element_size() < apart < out.numel() * out.element_size():
                raise RuntimeError(f"{operation}: elements of out overlap those of an argument. Pass another out, or "
                                   "clone() the argument.")


def inplace(function, grows=False):
    """Return the in-place form of a function, which copies the result to its input; `grows`: may change its shape."""
    name = f"{function.__name__}_"

    @functools.wraps(function)
    def changed(input, *args, **kwargs):
        as_tensor_argument(name, "input", input)
        if is_grad_enabled() and input.requires_grad and input.is_leaf:
            raise RuntimeError(f"{name}: a leaf that requires grad cannot be modified in place. Use the form without "
                               "underscore, or no_grad().")
        # The graph must not save the tensor that is modified.
        recorded = is_grad_enabled() and any(isinstance(value, Tensor) and value.requires_grad
                                             for value in (input, *args, *kwargs.values()))
        result = function(operators.clone(input) if recorded else input, *args, **kwargs)
        if grows and result.shape != input.shape:
            with no_grad():
                into(name, result, input.detach_())        # the clone is the input in the graph
        if result.shape != input.shape:
            raise RuntimeError(f"{name}: output with shape {tuple(input.shape)} doesn't match the broadcast shape "
                               f"{tuple(result.shape)} of the result. Use the form without underscore.")
        if category(result) > category(input):
            raise RuntimeError(f"{name}: the result type {result.dtype} can't be cast to the desired output type "
                               f"{input.dtype}. Use the form without underscore.")
        return copy_(input, result)

    if "out" in function.__code__.co_varnames:
        signature = inspect.signature(function)
        parameters = [parameter for parameter in signature.parameters.values() if parameter.name != "out"]
        changed.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    changed.__name__ = changed.__qualname__ = name
    changed.__doc__ = (f"In-place version of `{function.__name__}`.\n\nReturns\n-------\nTensor\n    `input` itself, "
                       "modified in place.\n")
    if function.__code__.co_argcount - len(function.__defaults__ or ()) == 1:
        changed.__doc__ += f"\nExamples\n--------\n>>> x = cygrad.tensor([0.25])\n>>> x.{name}() is x\nTrue\n"
    return changed


def spelled(function):
    """
    Add the aliases `axis` of `dim`, `keepdims` of `keepdim`, and `input` of the first argument.
    """
    first = function.__code__.co_varnames[0]

    def accepting(*args, **kwargs):
        if not kwargs:
            return function(*args)
        for theirs, ours in (("axis", "dim"), ("keepdims", "keepdim"), ("input", first)):
            if theirs in kwargs and theirs != ours:
                if ours in kwargs:
                    raise TypeError(f"{function.__name__}: {ours} is given twice (got {ours} and {theirs}).")
                kwargs[ours] = kwargs.pop(theirs)
        return function(*args, **kwargs)

    # As functools.wraps, but three times as fast, for import time.
    accepting.__name__, accepting.__qualname__ = function.__name__, function.__qualname__
    accepting.__module__, accepting.__doc__ = function.__module__, function.__doc__
    accepting.__annotations__ = function.__annotations__
    if function.__dict__:
        accepting.__dict__.update(function.__dict__)
    accepting.__wrapped__ = function  # type: ignore[attr-defined]
    return accepting


def all_spelled(functions):
    """Return the functions by name, with `spelled` applied to those with a parameter `dim`."""
    found, made = dict(functions), {}
    for name, function in functions.items():
        if "dim" not in getattr(function, "__code__", _no_code).co_varnames:      # fast path of most functions
            continue
        code = function.__code__
        names = code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]
        if "dim" in names and "axis" not in names and not hasattr(function, "__wrapped__"):
            if function not in made:
                made[function] = spelled(function)
                if function.__globals__.get(function.__name__) is function:       # pickle looks it up there
                    function.__globals__[function.__name__] = made[function]
            found[name] = made[function]
    return found


_no_code = (lambda: None).__code__
