"""Element-wise functions that select an operator by their arguments."""

import numpy as np

from cygrad._core.arrays.dtype import float64
from cygrad._core.dispatch.dispatch import check_power
from cygrad._core.graph.argument_errors import as_number
from cygrad._core.graph.early_forms import factors_first
from cygrad._core.graph.tensor import Tensor
from cygrad._core.table.docstrings import documented
from cygrad._core.table.operator import operators
from cygrad.composite.out_forms import category

__all__ = ["add", "add_", "allclose", "clamp", "clamp_", "clip", "clip_", "div", "div_", "divide", "divide_", "equal",
           "gelu", "isclose", "pow", "pow_", "rsub", "sub", "sub_", "subtract", "subtract_", "true_divide",
           "true_divide_"]

# Shared parameter descriptions.
_PARAMETERS = {
    "input": "Tensor\n    Modified in place.",
    "alpha": "number, default 1\n    Of a category not higher than the result: no bool for numbers, no float for "
             "integers.",
}
_RETURNED = "Tensor\n    `input` itself."

METHODS = [name for name in __all__ if name != "gelu"]

KINDS = ("bool", "whole", "real", "complex")
ROUNDINGS = {None: "div", "floor": "floor_divide", "trunc": "trunc_divide"}


def _rounded(rounding_mode, operation):
    """Return the operator for a rounding mode."""
    if rounding_mode not in ROUNDINGS:
        raise RuntimeError(f"{operation}: unknown rounding_mode (got {rounding_mode!r}, expected None, 'trunc' or "
                           "'floor').")
    return ROUNDINGS[rounding_mode]


@documented(_PARAMETERS)
def div(input, other, *, rounding_mode=None, out=None):
    """Divide element-wise.

    Parameters
    ----------
    input, other : Tensor or number
        Broadcast against each other.
    rounding_mode : {None, "trunc", "floor"}, optional
        None is true division, floating point for integers too. "trunc" rounds quotients toward zero, "floor" down; both
        keep integer dtypes.

    Raises
    ------
    RuntimeError
        If `rounding_mode` is unknown.

    Examples
    --------
    >>> cygrad.div(cygrad.tensor([5, -5]), 2)
    tensor([ 2.5000, -2.5000])
    >>> cygrad.div(cygrad.tensor([5, -5]), 2, rounding_mode="floor")
    tensor([ 2, -3])
    """
    function = getattr(operators, _rounded(rounding_mode, "div"))
    if out is None:
        return function(input, other)
    return function(input, other, out=out)


@documented(_PARAMETERS, returns=_RETURNED)
def div_(input, other, *, rounding_mode=None):
    """In-place version of `div`.

    Parameters
    ----------
    other : Tensor or number
    rounding_mode : {None, "trunc", "floor"}, optional

    Examples
    --------
    >>> cygrad.tensor([1., 3.]).div_(2)
    tensor([0.5000, 1.5000])
    """
    return getattr(operators, _rounded(rounding_mode, "div_") + "_")(input, other)


divide = true_divide = div
divide_ = true_divide_ = div_


def _kind(value):
    """Return the category of a Tensor or number, an index of KINDS."""
    if isinstance(value, Tensor):
        return category(value)
    return 0 if isinstance(value, bool) else 1 if hasattr(value, "__index__") else 2 + isinstance(value, complex)


def _check_alpha(name, input, other, alpha):
    """Return the category of the result, which must hold alpha."""
    kind, result = _kind(alpha), max(_kind(input), _kind(other))
    if kind > max(result, 1) or (kind == 0 and result):
        raise RuntimeError(f"{name}: alpha must not be of a higher category than the result (got {alpha!r}, which is "
                           f"{KINDS[kind]}, expected {KINDS[result]}). Convert alpha or a tensor first.")
    return result


def _scaled(name, form, input, other, alpha, out=None):
    """Compute `add`, `sub` and their in-place forms in one pass over memory."""
    options = {} if out is None else {"out": out}
    if type(alpha) is int and alpha == 1:
        return getattr(operators, name + form)(input, other, **options)
    if _check_alpha(name, input, other, alpha) == 0:                # for bool, alpha selects or drops `other`
        part = other if alpha else operators.logical_and(other, False) if isinstance(other, Tensor) else False
        return getattr(operators, name + form)(input, part, **options)
    return getattr(operators, f"{name}_scaled{form}")(input, other, alpha=alpha, **options)


@documented(_PARAMETERS)
def add(input, other, *more, alpha=1, out=None):
    """Return the sum ``input + alpha * other``.

    Parameters
    ----------
    input, other : Tensor or number
        Broadcast against each other.

    Examples
    --------
    >>> cygrad.add(cygrad.tensor([1., 2.]), cygrad.tensor([1., 1.]), alpha=10)
    tensor([11., 12.])
    """
    if more:
        return factors_first(add, (input, other, *more), ("alpha",), out=out)
    return _scaled("add", "", input, other, alpha, out)


@documented(_PARAMETERS, returns=_RETURNED)
def add_(input, other, *more, alpha=1):
    """In-place version of `add`.

    Parameters
    ----------
    other : Tensor or number

    Examples
    --------
    >>> cygrad.tensor([1., 2.]).add_(1)
    tensor([2., 3.])
    """
    if more:
        return factors_first(add_, (input, other, *more), ("alpha",))
    return _scaled("add", "_", input, other, alpha)


@documented(_PARAMETERS)
def sub(input, other, *more, alpha=1, out=None):
    """Return the difference ``input - alpha * other``.

    Parameters
    ----------
    input, other : Tensor or number
        Broadcast against each other.

    Examples
    --------
    >>> cygrad.sub(cygrad.tensor([11., 12.]), cygrad.tensor([1., 1.]), alpha=10)
    tensor([1., 2.])
    """
    if more:
        return factors_first(sub, (input, other, *more), ("alpha",), out=out)
    return _scaled("sub", "", input, other, alpha, out)


@documented(_PARAMETERS, returns=_RETURNED)
def sub_(input, other, *more, alpha=1):
    """In-place version of `sub`.

    Parameters
    ----------
    other : Tensor or number

    Examples
    --------
    >>> cygrad.tensor([1., 2.]).sub_(1)
    tensor([0., 1.])
    """
    if more:
        return factors_first(sub_, (input, other, *more), ("alpha",))
    return _scaled("sub", "_", input, other, alpha)


@documented(_PARAMETERS)
def rsub(input, other, *, alpha=1):
    """Return the difference with swapped operands: ``other - alpha * input``.

    Parameters
    ----------
    input, other : Tensor or number

    Examples
    --------
    >>> cygrad.rsub(cygrad.tensor([1.0, 2.0]), 10)
    tensor([9., 8.])
    """
    if type(alpha) is not int:
        _check_alpha("rsub", input, other, alpha)
    return operators.rsub(input, other, alpha=alpha)


subtract = sub
subtract_ = sub_


@documented(_PARAMETERS)
def pow(input, exponent, *, out=None):
    """Raise each element to a power.

    Parameters
    ----------
    input, exponent : Tensor, ndarray or number
        Broadcast against each other; at least one is a Tensor.

    Raises
    ------
    RuntimeError
        If integers are raised to negative integer powers.

    Examples
    --------
    >>> cygrad.pow(cygrad.tensor([1., 2., 3.]), 2)
    tensor([1., 4., 9.])
    >>> cygrad.pow(2, cygrad.tensor([1., 2., 3.]))
    tensor([2., 4., 8.])
    """
    function = _power(input, exponent, "")
    return function(input, exponent) if out is None else function(input, exponent, out=out)


def _power(input, exponent, suffix):
    """Return the operator for a tensor or a number as the exponent."""
    if isinstance(exponent, Tensor | np.ndarray):
        return getattr(operators, "pow_tensor" + suffix)
    check_power(input, exponent)
    return getattr(operators, "pow" + suffix)


@documented(_PARAMETERS, returns=_RETURNED)
def pow_(input, exponent):
    """In-place version of `pow`.

    Parameters
    ----------
    exponent : Tensor or number

    Examples
    --------
    >>> cygrad.tensor([1., 2.]).pow_(2)
    tensor([1., 4.])
    """
    return _power(input, exponent, "_")(input, exponent)


def _clamp_form(min, max):
    """Return the name of the operator for the given bounds, and its arguments."""
    if min is None and max is None:
        raise RuntimeError("clamp: at least one of 'min' and 'max' must be given (got None and None).")
    if max is None:
        return "clamp_min", (min,)
    if min is None:
        return "clamp_max", (max,)
    return "clamp_between", (min, max)


def clamp(input, min=None, max=None, *, out=None):
    """Clamp every element between two bounds.

    Parameters
    ----------
    input : Tensor
        Real.
    min, max : Tensor or number, optional
        At least one. The result is `max` where ``min > max``.
    out : Tensor, optional
        Tensor that the result is written to.

    Returns
    -------
    Tensor
        nan stays nan. Derivative 1 at a bound.

    Raises
    ------
    RuntimeError
        If both bounds are None.

    Examples
    --------
    >>> cygrad.clamp(cygrad.tensor([-1., 0.5, 2.]), 0, 1)
    tensor([0.0000, 0.5000, 1.0000])
    """
    name, bounds = _clamp_form(min, max)
    function = getattr(operators, name)
    return function(input, *bounds) if out is None else function(input, *bounds, out=out)


@documented(_PARAMETERS, returns=_RETURNED)
def clamp_(input, min=None, max=None):
    """In-place version of `clamp`.

    Parameters
    ----------
    min, max : Tensor or number, optional

    Examples
    --------
    >>> cygrad.tensor([-1., 2.]).clamp_(0, 1)
    tensor([0., 1.])
    """
    name, bounds = _clamp_form(min, max)
    return getattr(operators, f"{name}_")(input, *bounds)


clip = clamp
clip_ = clamp_


@documented(_PARAMETERS)
def gelu(input, *, approximate="none"):
    """Compute the Gaussian error linear unit ``x * P(X <= x)``.

    Parameters
    ----------
    input : Tensor
    approximate : {"none", "tanh"}, optional
        "tanh" approximates the distribution function.

    Raises
    ------
    RuntimeError
        If `approximate` is unknown.

    Examples
    --------
    >>> cygrad.gelu(cygrad.tensor([0., 1.]))
    tensor([0.0000, 0.8413])
    """
    if approximate not in ("none", "tanh"):
        raise RuntimeError(f"gelu: unknown approximation (got {approximate!r}, expected 'none' or 'tanh').")
    return (operators.gelu if approximate == "none" else operators.gelu_tanh)(input)


def _check_comparable(input, other, operation):
    for name, value in (("input", input), ("other", other)):
        if not isinstance(value, Tensor):
            raise TypeError(f"{operation}: argument '{name}' must be a Tensor (got {type(value).__name__}).")


def isclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Return whether elements differ by at most ``atol + rtol * abs(other)``.

    Parameters
    ----------
    input, other : Tensor
        Of the same dtype; broadcast against each other.
    rtol, atol : float, optional
        Not negative.
    equal_nan : bool, default False
        Whether nan is close to nan.

    Returns
    -------
    Tensor
        Bool.

    Raises
    ------
    RuntimeError
        If the dtypes differ, or a tolerance is negative.

    Examples
    --------
    >>> cygrad.isclose(cygrad.tensor([1., 2.]), cygrad.tensor([1., 2.1]))
    tensor([ True, False])
    """
    _check_comparable(input, other, "isclose")
    if input.dtype is not other.dtype:
        raise RuntimeError(f"isclose: the dtypes differ (got {input.dtype} and {other.dtype}). Convert one with to().")
    for name, value in (("rtol", rtol), ("atol", atol)):
        if as_number("isclose", name, value) < 0:
            raise RuntimeError(f"isclose: {name} must not be negative (got {value}).")
    if not (input.dtype.is_floating_point or input.dtype.is_complex):
        # The difference of integers may exceed their dtype.
        input, other = operators.cast(input, float64), operators.cast(other, float64)
    return operators.isclose(input, other, rtol, atol, equal_nan)


def allclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Return whether all elements are close, see `isclose`.

    Parameters
    ----------
    input, other : Tensor
        Of the same dtype; broadcast against each other.
    rtol, atol : float, optional
        Not negative.
    equal_nan : bool, default False
        Whether nan is close to nan.

    Returns
    -------
    bool

    Examples
    --------
    >>> cygrad.allclose(cygrad.tensor([1., 2.]), cygrad.tensor([1., 2. + 1e-6]))
    True
    """
    return bool(isclose(input, other, rtol, atol, equal_nan).all().item())


def equal(input, other):
    """Return whether two tensors have the same shape and equal elements.

    Parameters
    ----------
    input, other : Tensor

    Returns
    -------
    bool
        False if an element is nan.

    Examples
    --------
    >>> cygrad.equal(cygrad.tensor([1, 2]), cygrad.tensor([1, 2]))
    True
    """
    _check_comparable(input, other, "equal")
    if tuple(input.shape) != tuple(other.shape):
        return False
    return operators.equal(input, other)
