"""Dispatch of NumPy functions called with Tensors: to a row of the table, or to NumPy on their memory."""

import inspect

import numpy as np

from cygrad import Tensor
from cygrad.numpy_protocols import (
    changes,
    creation,
    fft,
    joining,
    linalg,
    numerics,
    polynomials,
    products,
    reductions,
    selection,
    shapes,
)
from cygrad.numpy_protocols.arrays import NotNumeric, as_tensor, full_name, has_history, plain_arrays
from cygrad.numpy_protocols.outputs import write

__all__ = ["CHANGES", "FUNCTIONS", "array_function"]

_HOMES = ((np, (creation, joining, numerics, polynomials, products, reductions, selection, shapes)),
          (np.linalg, (linalg,)), (np.fft, (fft,)), (np.lib.stride_tricks, (shapes.strides,)))
# Functions of NumPy -> their rows; those that write into their first argument are separate.
FUNCTIONS = {getattr(home, name): row for home, modules in _HOMES for module in modules
             for name, row in module.rows.items() if hasattr(home, name)}
CHANGES = {getattr(np, name): row for name, row in changes.rows.items()}


def array_function(self, func, types, args, kwargs):
    """Implement ``Tensor.__array_function__``."""
    for other in types:
        if other is not np.ndarray and not issubclass(other, Tensor):
            return NotImplemented
    row = FUNCTIONS.get(func)
    if row is None:
        row = CHANGES.get(func)
        return without_row(func, args, kwargs) if row is None else called(row, func, args, kwargs)
    try:
        return _with_row(row, func, args, kwargs)
    except NotNumeric:
        return without_row(func, args, kwargs)


def _with_row(row, func, args, kwargs):
    args = [as_tensor(value) if type(value) is np.ndarray else value for value in args]
    out = None
    if kwargs:
        kwargs = {name: as_tensor(value) if type(value) is np.ndarray and name != "out" else value
                  for name, value in kwargs.items()}
        out = kwargs.pop("out", None)
    result = called(row, func, args, kwargs)
    return result if out is None else write(full_name(func), result, out)


def called(row, function, args, kwargs):
    """Call the row; an error names unsupported arguments."""
    try:
        return row(*args, **kwargs)
    except TypeError:
        try:
            inspect.signature(row).bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{full_name(function)}: unsupported arguments for Tensors ({error}).") from None
        raise


def without_row(function, args, kwargs):
    """Call NumPy's own function on the memory of Tensors, if none has a history to lose."""
    if has_history(args) or has_history(kwargs):
        raise TypeError(f"{full_name(function)}: is not supported, and a tensor that requires grad would lose "
                        "its history as a NumPy array. Use supported functions, or detach().")
    return function(*plain_arrays(tuple(args)), **plain_arrays(kwargs))
