"""
Element-wise functions that prepare arguments for operators: ldexp, frexp, nan_to_num, isin and others.
"""

import numpy as np

from cygrad._core.arrays.dtype import bool as boolean
from cygrad._core.arrays.dtype import complex128, float64, get_default_dtype, int16, int32
from cygrad._core.creation.creation import as_tensor
from cygrad._core.creation.factories import ones_like
from cygrad._core.dispatch.named_results import named_result
from cygrad._core.graph.argument_errors import as_number
from cygrad._core.graph.tensor import Tensor
from cygrad._core.table.docstrings import documented
from cygrad._core.table.operator import operators
from cygrad.composite.dtypes import result_type
from cygrad.composite.out_forms import as_tensor_argument, inplace, into

__all__ = ["float_power", "frexp", "heaviside", "isin", "isreal", "ldexp", "logit", "nan_to_num", "nextafter"]

LARGEST = {"float16": 65504.0, "bfloat16": 3.3895313892515355e38, "float32": 3.4028234663852886e38,
           "float64": 1.7976931348623157e308}
FEW = 16              # comparing with up to so few elements is faster than sorting them



def _width(tensor):
    return str((tensor.real if tensor.is_complex() else tensor).dtype).rpartition(".")[2]


# ---- steps

def heaviside(input, values, *, out=None):
    for name, value in (("input", input), ("values", values)):
        as_tensor_argument("heaviside", name, value)
    if input.dtype != values.dtype:
        raise RuntimeError(f"heaviside: input and values must have the same dtype (got {input.dtype} and "
                           f"{values.dtype}). Convert one of them with .to().")
    return _heaviside(input, values) if out is None else _heaviside(input, values, out=out)


def nextafter(input, other, *, out=None):
    for name, value in (("input", input), ("other", other)):
        as_tensor_argument("nextafter", name, value)
    if not (isinstance(input, Tensor) and isinstance(other, Tensor) and input.dtype == other.dtype
            and _width(input) in ("float16", "bfloat16")):
        return _nextafter(input, other) if out is None else _nextafter(input, other, out=out)
    # A wider dtype has other neighbors, so step in the bits, which are ordered like the numbers.
    start, end = (_rank(value.detach()) for value in (input, other))
    rank = start + operators.sign(end - start)
    bits = operators.where(rank < 0, -rank - 2**15, rank)
    bits = operators.where((rank == 0) & (start < 0), -2**15, bits)
    found = operators.cast(bits, int16).view(input.dtype)
    found = operators.where(start == end, other.detach(), found)
    found = operators.where(operators.isnan(input) | operators.isnan(other), input.detach() + other.detach(), found)
    result = operators.where(start == start, input, other)
    result.detach().copy_(found)                   # the derivatives are those of where()
    return into("nextafter", result, out)


def _rank(tensor):
    """Return the rank of each element among the numbers of a 16-bit dtype; 0 for zero."""
    bits = operators.cast(tensor.view(int16), int32)
    return operators.where(bits < 0, -(bits + 2**15), bits)


_heaviside, _nextafter = operators.heaviside, operators.nextafter
heaviside.__doc__, nextafter.__doc__ = _heaviside.__doc__, _nextafter.__doc__


# ---- powers of two and others

def ldexp(input, other, *, out=None):
    """Multiply each element by a power of two: ``input * 2**other``.

    Parameters
    ----------
    input : Tensor
    other : Tensor
        Exponents; broadcast with `input`.
    out : Tensor, optional
        Tensor that the result is written to.

    Returns
    -------
    Tensor
        Integers give the default dtype. Derivative: ``2**other``, and ``result * log(2)``.

    Examples
    --------
    >>> cygrad.ldexp(cygrad.tensor([3.0]), cygrad.tensor([2]))
    tensor([12.])
    """
    as_tensor_argument("ldexp", "input", input)
    as_tensor_argument("ldexp", "other", other)
    if not (other.is_floating_point() or other.is_complex()):
        # The powers have the precision of `input`.
        real = input.dtype.to_real()
        other = operators.cast(other, real if real.is_floating_point else get_default_dtype())
    return operators.ldexp_scale(input, other) if out is None else operators.ldexp_scale(input, other, out=out)


def frexp(input, *, out=None):
    """Return mantissa and exponent: ``input = mantissa * 2**exponent``.

    Parameters
    ----------
    input : Tensor
        Floating.
    out : tuple of Tensor, optional
        Tensors that the results are written to.

    Returns
    -------
    named tuple (mantissa, exponent) of Tensor
        The mantissa is 0 or its absolute value is in [1/2, 1); the exponent is int32. Infinities and nan are mantissas
        with exponent 0. Derivative of the mantissa: ``2**-exponent``.

    Raises
    ------
    RuntimeError
        If `input` is not floating point.

    Examples
    --------
    >>> cygrad.frexp(cygrad.tensor([3.0, -10.0]))
    frexp(mantissa=tensor([ 0.7500, -0.6250]), exponent=tensor([2, 4], dtype=cygrad.int32))
    """
    if not as_tensor_argument("frexp", "input", input).is_floating_point():
        raise RuntimeError(f"frexp: expected a floating Tensor (got {input.dtype}). Convert with to() first.")
    found = named_result("frexp", "mantissa", "exponent")(operators.frexp_mantissa(input),
                                                          operators.frexp_exponent(input))
    return into("frexp", found, out)


def float_power(input, exponent, *, out=None):
    """Raise each element to a power, in double precision.

    Parameters
    ----------
    input, exponent : Tensor, ndarray or number
        At least one is a Tensor.
    out : Tensor, optional
        Tensor that the result is written to.

    Returns
    -------
    Tensor
        complex128 if an argument is complex, else float64.

    Raises
    ------
    RuntimeError
        If neither is a Tensor.

    Examples
    --------
    >>> cygrad.float_power(cygrad.tensor([2, 4]), -0.5)
    tensor([0.7071, 0.5000], dtype=cygrad.float64)
    """
    values = [as_tensor(value) if isinstance(value, np.ndarray) else value for value in (input, exponent)]
    if not any(isinstance(value, Tensor) for value in values):
        raise TypeError(f"float_power: one argument must be a Tensor (got {type(input).__name__} and "
                        f"{type(exponent).__name__}).")
    parts = [value.is_complex() if isinstance(value, Tensor) else isinstance(value, complex) for value in values]
    dtype = complex128 if any(parts) else float64
    number = complex if any(parts) else float
    for name, value in (("input", input), ("exponent", exponent)):
        if not isinstance(value, (Tensor, np.ndarray, complex)):
            as_number("float_power", name, value)
    base, power = (operators.cast(value, dtype) if isinstance(value, Tensor) else number(value) for value in values)
    if out is not None and out.dtype != dtype:
        raise RuntimeError(f"float_power: out must have the dtype of the result (got {out.dtype}, expected {dtype}).")
    result = operators.pow_tensor(base, power) if isinstance(power, Tensor) else operators.pow(base, power)
    return into("float_power", result, out)


def _float_power_(input, exponent):
    """In-place version of `float_power` for float64 and complex128."""
    as_tensor_argument("float_power_", "input", input)
    complex_valued = any(value.is_complex() if isinstance(value, Tensor) else isinstance(value, complex)
                         for value in (input, exponent))
    wanted = complex128 if complex_valued else float64
    if input.dtype != wanted:
        raise RuntimeError(f"float_power_: the tensor must have the dtype of the result (got {input.dtype}, expected "
                           f"{wanted}). Use the form without underscore.")
    return _changed(input, exponent)


_changed = inplace(float_power)


# ---- logit

def logit(input, eps=None, *, out=None):
    """Return the inverse of the sigmoid: ``log(input / (1 - input))``.

    Parameters
    ----------
    input : Tensor
        Real.
    eps : float, optional
        Elements are clamped to ``[eps, 1 - eps]`` first. Without `eps`, elements outside of [0, 1] give nan.
    out : Tensor, optional
        Tensor that the result is written to.

    Returns
    -------
    Tensor
        Integers give the default dtype. Derivative: ``1 / (input * (1 - input))``, 0 where `eps` clamps, nan outside of
        [0, 1] without `eps`.

    Examples
    --------
    >>> cygrad.logit(cygrad.tensor([0.5, 0.9]))
    tensor([0.0000, 2.1972])
    >>> cygrad.logit(cygrad.tensor([0.0, 0.9]), eps=0.1)
    tensor([-2.1972,  2.1972])
    """
    if not as_tensor_argument("logit", "input", input).is_floating_point() and not input.is_complex():
        input = operators.cast(input, get_default_dtype())
    name, bounds = ("logit_plain", ()) if eps is None else ("logit_between", (eps,))
    function = getattr(operators, name)
    return function(input, *bounds) if out is None else function(input, *bounds, out=out)


# ---- predicates

def nan_to_num(input, nan=0.0, posinf=None, neginf=None, *, out=None):
    """Replace nan and infinities by numbers.

    Parameters
    ----------
    input : Tensor
        Real and imaginary parts are replaced separately; integers stay.
    nan : number, default 0
    posinf, neginf : number, optional
        By default the largest and smallest finite number of the dtype.
    out : Tensor, optional
        Tensor that the result is written to.

    Returns
    -------
    Tensor
        Derivative: 1, or 0 where an element is replaced.

    Examples
    --------
    >>> cygrad.nan_to_num(cygrad.tensor([float("nan"), float("inf"), 1.0]), posinf=9)
    tensor([0., 9., 1.])
    """
    as_tensor_argument("nan_to_num", "input", input)
    if not (input.is_floating_point() or input.is_complex()):
        return into("nan_to_num", operators.clone(input), out)
    largest = LARGEST[_width(input)]
    numbers = (0.0 if nan is None else nan, largest if posinf is None else posinf,
               -largest if neginf is None else neginf)
    if input.is_complex():
        parts = operators.replace_non_finite(operators.view_as_real(input), *numbers)
        return into("nan_to_num", operators.view_as_complex(parts), out)
    function = operators.replace_non_finite
    return function(input, *numbers) if out is None else function(input, *numbers, out=out)


@documented()
def isreal(input):
    """Return whether the imaginary part of each element is 0.

    Returns
    -------
    Tensor
        Bool; true for all elements of a real tensor.

    Examples
    --------
    >>> cygrad.isreal(cygrad.tensor([1 + 0j, 1j]))
    tensor([ True, False])
    """
    if as_tensor_argument("isreal", "input", input).is_complex():
        return operators.eq(operators.imag_view(input.detach()), 0)
    return ones_like(input.detach(), dtype=boolean)


def isin(elements, test_elements, *, assume_unique=False, invert=False):
    """Return whether each element is in `test_elements`.

    Parameters
    ----------
    elements, test_elements : Tensor or number
        At least one is a Tensor.
    assume_unique : bool, default False
        Accepted and ignored.
    invert : bool, default False
        Whether to return the negation.

    Returns
    -------
    Tensor
        Bool, of the shape of `elements`. False for nan.

    Examples
    --------
    >>> cygrad.isin(cygrad.tensor([1, 2, 3]), cygrad.tensor([3, 1]))
    tensor([ True, False,  True])
    """
    if not isinstance(elements, Tensor) and not isinstance(test_elements, Tensor):
        raise TypeError("isin: one argument must be a Tensor (got two numbers).")
    if not isinstance(test_elements, Tensor):
        found = operators.eq(elements.detach(), test_elements)
        return operators.logical_not(found) if invert else found
    if not isinstance(elements, Tensor):
        found = operators.any(operators.eq(test_elements.detach(), elements))
        return operators.logical_not(found) if invert else found
    dtype = result_type(elements, test_elements)
    if dtype.is_complex:
        raise RuntimeError(f"isin: complex dtypes are not supported (got {dtype}).")
    wanted = operators.cast(elements.detach(), dtype)
    others = operators.cast(operators.reshape(test_elements.detach(), (test_elements.numel(),)), dtype)
    if others.numel() <= FEW:
        found = operators.any(operators.eq(operators.unsqueeze(wanted, -1), others), (-1,))
    else:
        others = operators.sort(others)[0]
        places = operators.searchsorted(others, operators.contiguous(wanted))
        places = operators.clamp_max(places, others.numel() - 1)
        near = operators.index_select(others, 0, operators.reshape(places, (places.numel(),)))
        found = operators.eq(operators.reshape(near, tuple(wanted.shape)), wanted)
    return operators.logical_not(found) if invert else found


METHODS = {
    "float_power": float_power, "float_power_": _float_power_, "frexp": frexp,
    "heaviside": heaviside, "heaviside_": inplace(heaviside), "nextafter": nextafter, "nextafter_": inplace(nextafter),
    "isreal": isreal,
    "ldexp": ldexp, "ldexp_": inplace(ldexp), "logit": logit, "logit_": inplace(logit),
    "nan_to_num": nan_to_num, "nan_to_num_": inplace(nan_to_num),
}
