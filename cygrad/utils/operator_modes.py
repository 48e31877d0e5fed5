"""
Modes in Python, which observe or replace calls of operators.

An `OperatorMode` receives every operator called in its block, including in-place operators and those of backward, which
then executes its formulas as operators.
"""

import importlib
import threading
from collections.abc import Callable
from contextlib import contextmanager
from functools import cache, partial
from operator import add, is_
from typing import Any

from cygrad import Tensor, is_grad_enabled, no_grad
from cygrad._core.dispatch.operator_modes import call_in_user_mode, call_precomputed, push_user_mode, set_user_mode
from cygrad._core.graph.boxing import Disabled
from cygrad._core.table.operator import operators

__all__ = ["OperatorMode", "Overload", "ops"]

# Rows of the operator table -> names of PyTorch's operators.
_NAMES = {"cast": "_to_copy", "convolution_input_backward": "convolution", "reshape": "view",
          "softmax": "_softmax", "log_softmax": "_log_softmax", "layer_norm": "native_layer_norm",
          "unreduce": "expand",
          "group_norm": "native_group_norm", "batch_norm": "native_batch_norm", "dropout": "native_dropout",
          "scaled_dot_product_attention": "_scaled_dot_product_flash_attention_for_cpu",
          **dict.fromkeys(("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"),
                          "convolution")}
# Rows with another order of arguments in PyTorch -> conversion to PyTorch's arguments, and back.
_ARGUMENTS: dict[str, tuple[Callable, Callable]] = {
    "unreduce": (lambda reduced, shape, dim=None, keepdim=False: (
        _with_reduced(reduced, shape, dim, keepdim), [*shape]), lambda reduced, shape: (
            reduced, shape, [place for place, size in enumerate(reduced.shape) if size == 1] or None,
            reduced.ndim > 0)),
    "linear": (lambda input, weight, *bias: (*bias, input, weight.t()),
               lambda *args: (args[-2], args[-1].t(), *args[:-2])),
    "convolution": (
        lambda input, weight, bias, stride, padding, dilation, groups: (
            input, weight, bias, *_per_dimension(input, stride, padding, dilation), False, [0] * (input.ndim - 2),
            groups),
        lambda *args: (*args[:6], args[8])),
    "convolution_input_backward": (
        lambda input, weight, bias, shape, stride, padding, dilation, groups: (
            input, weight, bias, *_per_dimension(input, stride, padding, dilation), True,
            [size - full for size, full in zip(
                shape[2:], _transposed(input, weight, stride, padding, dilation), strict=True)], groups),
        lambda input, weight, bias, stride, padding, dilation, transposed, output_padding, groups: (
            input, weight, bias, [input.shape[0], weight.shape[1] * groups, *map(
                add, _transposed(input, weight, stride, padding, dilation), output_padding)],
            stride, padding, dilation, groups)),
}
_PRODUCTS = {(1, 1): "dot", (2, 1): "mv", (2, 2): "mm"}


# The overload by which an operator is shown: one object is all of them.
_OVERLOADS = dict.fromkeys((
    "add", "bitwise_and", "bitwise_or", "div", "fmod", "ge", "gt", "le", "lt", "lerp", "mul", "remainder", "rsub",
    "slice", "split", "sub"), "Tensor") | {"select": "int", "transpose": "int", "unbind": "int", "where": "self"}


def _per_dimension(input, *options):
    """Return options of a convolution as lists with one number for each spatial dimension."""
    return [[value] * (input.ndim - 2) if isinstance(value, int) else list(value) for value in options]


def _with_reduced(reduced, shape, dim, keepdim):
    """Return the result of a reduction with its reduced dimensions as dimensions of size 1."""
    if keepdim or not dim:
        return reduced
    for number in sorted(place % len(shape) for place in dim):
        reduced = reduced.unsqueeze(number)
    return reduced


def _transposed(input, weight, *options):
    """Return the output sizes of a transposed convolution without output padding."""
    return [(size - 1) * stride - 2 * padding + dilation * (kernel - 1) + 1 for size, kernel, stride, padding, dilation
            in zip(input.shape[2:], weight.shape[2:], *_per_dimension(input, *options), strict=True)]


def _name(name, arguments):
    """Return PyTorch's overload for these arguments."""
    if name == "matmul":
        ranks = tuple(value.ndim for value in arguments[:2])
        return _PRODUCTS.get(ranks, "bmm" if min(ranks) > 2 else "mm")
    if name == "linear":
        return "mm" if arguments[2:3] in ([], [None]) else "addmm"
    return _NAMES.get(name, name).removesuffix("_dim").removesuffix("_all")


class Overload:
    """
    An operator with PyTorch's name: ``ops.aten.mm.default``.

    Two overloads are equal if their names are equal.

    Attributes
    ----------
    namespace : str
    """

    namespace = "aten"

    def __init__(self, name):
        self._name, self._overload = name, _OVERLOADS.get(name.removesuffix("_"), "default")
        self.__name__ = f"{name}.{self._overload}"

    @property
    def overloadpacket(self):
        """The packet of all overloads."""
        return Packet(self._name)

    _overloadpacket = overloadpacket

    def name(self):
        """Return the name with its namespace."""
        return f"aten::{self._name}" + (f".{self._overload}" if self._overload != "default" else "")

    def __call__(self, *args, **kwargs):
        call = _active.__dict__.get("call")
        if call is not None and call is not self and call._name == self._name:       # called by its handler
            return call(*args, **kwargs)
        return self._function()(*args, **kwargs)

    def _function(self):
        package, functional = map(importlib.import_module, ("cygrad", "cygrad.nn.functional"))
        for names in (vars(package), vars(Tensor), vars(functional), vars(operators)):    # unfold is that of Tensor
            if self._name in names:
                return names[self._name]
        return getattr(package, self._name)               # imported on first access

    def __eq__(self, other):
        return isinstance(other, Overload) and other._name == self._name

    def __hash__(self):
        return hash(self._name)

    def __str__(self):
        return f"aten.{self._name}.{self._overload}"

    def __repr__(self):
        return f"<OpOverload(op='aten.{self._name}', overload='{self._overload}')>"


_active = threading.local()                     # `call`: the Call whose handler runs
_overload = cache(Overload)                     # one object of each name: programs compare them with `is`


class Call(Overload):
    """Operator of one call; calling it bypasses the current mode."""

    def __init__(self, name, arguments, out, inplace):
        super().__init__(_name(name, arguments) + "_" * inplace)
        self._row, self._options = name, {} if out is None else {"out": out}
        self._own: tuple[Any, ...] | None = tuple(arguments)
        self.arguments = _ARGUMENTS[name][0](*arguments) if name in _ARGUMENTS else self._own
        self.changes = inplace or out is not None               # kept for compatibility

    def _function(self):
        function = getattr(Tensor, f"{self._row}_") if self._name.endswith("_") else getattr(operators, self._row)
        return (lambda *args, **kwargs: function(*self._ordered(args), **self._options, **kwargs))

    def _ordered(self, args):
        """Convert arguments to the order of the row."""
        same = len(args) == len(self.arguments) and all(map(is_, args, self.arguments))
        if self._own is not None and same:
            return self._own
        return _ARGUMENTS[self._row][1](*args) if self._row in _ARGUMENTS else args

    def given(self, results, args, kwargs):
        """Record the call with given results (a tuple of tensors) instead of executing it."""
        return call_precomputed(self._row, results, getattr(operators, self._row), self._ordered(args), kwargs)


class Packet:
    """All overloads of an operator; calling it calls the default overload."""

    def __init__(self, name):
        self.__name__ = name

    def __call__(self, *args, **kwargs):
        return _overload(self.__name__)(*args, **kwargs)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _overload(self.__name__)

    def __eq__(self, other):
        return isinstance(other, Packet) and other.__name__ == self.__name__

    def __hash__(self):
        return hash(self.__name__)

    def __repr__(self):
        return f"<OpOverloadPacket(op='aten.{self.__name__}')>"


class _Aten:
    """Namespace of operators."""

    def __getattr__(self, name):
        try:
            Overload(name)._function()
        except AttributeError:
            known = name in _NAMES.values() or name in _PRODUCTS.values()
            if not known:
                raise AttributeError(f"ops.aten: there is no operator {name!r}.") from None
        return Packet(name)


class _Operators:
    """Namespaces of operators: ``aten``."""

    aten = _Aten()

    def __getattr__(self, name):
        raise AttributeError(f"ops: unknown namespace (got {name!r}, expected 'aten'). Define custom operators with "
                             "autograd.Function.")


ops = _Operators()


def _handle(handler, name, arguments, options, out, inplace, of_class=False):
    """Pass a call to the ``__torch_dispatch__`` of a mode, or `of_class`."""
    while arguments and arguments[-1] is None:
        arguments.pop()
    options = {key: value for key, value in options.items() if value is not None}
    if name == "linear" and arguments[0].ndim > 2:                  # PyTorch flattens to a matrix product
        input, *parameters = arguments
        rows = _handle(handler, "reshape", [input, [-1, input.shape[-1]]], {}, None, False, of_class)
        rows = _handle(handler, "linear", [rows, *parameters], {}, None, False, of_class)
        return _handle(handler, "view", [rows, [*input.shape[:-1], rows.shape[-1]]], {}, out, False, of_class)
    types = tuple(dict.fromkeys(type(value) for value in arguments if isinstance(value, Tensor)))
    call = Call(name, arguments, out, inplace)
    if of_class:                # its arguments are of the class, those in PyTorch's order perhaps no more
        call._own = None
    public = out is None and call._name.removesuffix("_") in (name, *_PRODUCTS.values(), "bmm", "addmm")
    ours = (handler.__module__ or "").startswith("cygrad.")
    outer = _active.__dict__.get("call")
    _active.call = call
    try:
        return handler(_overload(call._name) if public and not ours else call, types, call.arguments, options)
    finally:
        _active.call = outer
        call.arguments = call._own = ()                 # modes keep calls as keys; tensors are not kept with them


def dispatch_custom(operator, arguments, options):
    """Return (what the current mode makes of a call of a custom operator,), or None without a mode."""
    types = tuple(dict.fromkeys(type(value) for value in arguments if isinstance(value, Tensor)))
    return call_in_user_mode(lambda handler: (handler.args[0](operator, types, arguments, options),))


def dispatch(cls, function, arguments, options):
    """
    Return what the ``__torch_dispatch__`` of a class of tensors makes of a call.

    It is called without grad where a tensor of the class requires grad; the call is recorded with its results. That
    needs the elements: classes that keep them in other tensors are refused then.
    """
    name, options, handler = function.__name__, dict(options), cls.__torch_dispatch__
    row = name.removesuffix("_")
    if getattr(operators, name, None) is not function:
        return handler(_overload(name), (cls,), arguments, options)
    out, given = options.pop("out", None), [part for value in arguments for part in (
        value if isinstance(value, (list, tuple)) else (value,))]
    if not (is_grad_enabled() and any(isinstance(value, cls) and value.requires_grad for value in given)):
        return _handle(handler, row, list(arguments), options, out, row != name, True)
    if row != name or any(isinstance(value, cls) and value.is_meta for value in given):
        raise NotImplementedError(
            f"{name}: {cls.__name__} computes it in __torch_dispatch__ and requires grad, which is not recorded "
            f"{'in place' if row != name else 'for tensors without data'}. Call it under no_grad(), "
            "or let the wrapped tensors require grad.")
    with no_grad():
        result = _handle(handler, row, list(arguments), dict(options), out, False, True)
    with Disabled(2):
        results = result if isinstance(result, (list, tuple)) else (result,)
        return call_precomputed(row, tuple(results), function, arguments, options)


class OperatorMode:
    """
    Context that passes calls of operators to its method ``__torch_dispatch__(func, types, args, kwargs)``.

    The method returns the result. In it, ``func(*args, **kwargs)`` executes the operator in the enclosing modes and
    records it for backward as usual. Only operators of this thread are passed.

    Examples
    --------
    >>> from cygrad.utils.operator_modes import OperatorMode
    >>> class Shown(OperatorMode):
    ...     def __torch_dispatch__(self, func, types, args=(), kwargs=None):
    ...         print(func)
    ...         return func(*args, **(kwargs or {}))
    >>> with Shown():
    ...     y = cygrad.ones(2, 3) @ cygrad.ones(3, 4)
    aten.mm.default
    """

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        """Handle a call."""
        raise NotImplementedError(f"__torch_dispatch__: {type(self).__name__} does not define it.")

    _outer: list                 # enclosing modes of each entered block

    @contextmanager
    def _suspended(self):
        """Disable this mode and its inner modes."""
        former = set_user_mode(self._outer[-1])
        try:
            yield
        finally:
            set_user_mode(former)

    def __enter__(self):
        self.__dict__.setdefault("_outer", []).append(push_user_mode(partial(_handle, self.__torch_dispatch__)))
        return self

    def __exit__(self, *error):
        set_user_mode(self._outer.pop())
