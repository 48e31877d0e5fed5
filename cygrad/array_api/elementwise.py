"""The standard's element-wise functions: NumPy's ufuncs, on Tensors and numbers."""

import numpy as np

import cygrad
from cygrad import Tensor
from cygrad._core.table.operator import Operator, operators
from cygrad.array_api.naming import finished
from cygrad.numpy_protocols import numerics
from cygrad.numpy_protocols.arrays import cast, promoted
from cygrad.numpy_protocols.ufuncs import call

__all__ = ["FUNCTIONS"]


def _function(operator):
    """Return the function of a row with the key `array_api`: its ufunc, with NumPy's promotion."""
    name, ufunc = operator.row["array_api"], getattr(np, operator.row["numpy"][0])
    if ufunc.nin == 1:
        return lambda x, /: call(ufunc, x)

    def function(x1, x2, /):
        _check(name, x1, x2)
        return call(ufunc, x1, x2)
    return function


def _check(name, x1, x2):
    if not isinstance(x1, Tensor) and not isinstance(x2, Tensor):
        raise TypeError(f"{name}: one operand must be a Tensor (got {type(x1).__name__} and {type(x2).__name__}).")


def _floor_divide(x1, x2, /):
    _check("floor_divide", x1, x2)
    x1, x2 = promoted(x1, x2)
    return (operators.floored_quotient if x1.is_floating_point() else operators.floor_divide)(x1, x2)


def _sign(x, /):
    return cygrad.where(cygrad.isnan(x), complex("nan+nanj"), cygrad.sgn(x)) if x.is_complex() else call(np.sign, x)


def _round(x, /):
    return numerics.round(x) if x.is_floating_point() or x.is_complex() else x.clone()


def _clip(x, /, min=None, max=None):
    return cast(numerics.clip(x, min, max), x.dtype) if min is not None or max is not None else x.clone()


FUNCTIONS = finished("cygrad.array_api", {
    **{operator.row["array_api"]: _function(operator) for operator in vars(operators).values()
       if isinstance(operator, Operator) and operator.row["array_api"] and not operator.is_inplace},
    "floor_divide": _floor_divide}, check=False) | finished("cygrad.array_api", {
    "sign": _sign, "round": _round, "clip": _clip, "real": lambda x, /: x.real if x.is_complex() else x.clone(),
    "imag": lambda x, /: x.imag if x.is_complex() else cygrad.zeros_like(x)})
