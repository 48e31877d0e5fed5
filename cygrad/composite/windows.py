"""
Window functions. A periodic window is a symmetric window with one more element, without the last.
"""

from math import pi

from cygrad._core.arrays.dtype import get_default_dtype
from cygrad._core.creation.factories import arange, ones
from cygrad._core.graph.argument_errors import as_integer, as_number
from cygrad._core.table.docstrings import documented
from cygrad._core.table.operator import operators
from cygrad.composite.dtypes import on_device

__all__ = ["bartlett_window", "blackman_window", "hamming_window", "hann_window", "kaiser_window"]

# Shared parameter descriptions.
_PARAMETERS = {
    "periodic": "bool, default True\n"
                "    Whether the window is periodic; N is the length then, else one less.",
    "dtype": "dtype, optional\n    Floating.",
    "layout": "optional\n    Accepted and ignored.",
    "device": "device or str, optional",
}
_RETURNED = "Tensor\n    A vector."


def _window(operation, length, periodic, dtype, requires_grad, function):
    """Return the window ``function(n, N)``, where n are the indices and N is the last index of the symmetric window."""
    dtype = get_default_dtype() if dtype is None else dtype
    if not dtype.is_floating_point:
        raise RuntimeError(f"{operation}: dtype must be floating point (got {dtype}).")
    if (length := as_integer(operation, "window_length", length)) < 0:
        raise RuntimeError(f"{operation}: the length must not be negative (got {length}).")
    if length < 2:
        window = ones(length, dtype=dtype)
    else:
        last = length if periodic else length - 1
        window = operators.cast(function(arange(length, dtype=dtype), last), dtype)
    return window.requires_grad_() if requires_grad else window


def _cosines(coefficients):
    """Return the function that sums coefficient k times cos(2 pi k n / N)."""
    def function(n, last):
        result = coefficients[0]
        for k, coefficient in enumerate(coefficients[1:], 1):
            result = operators.add(operators.mul(operators.cos(operators.mul(n, 2 * pi * k / last)), coefficient),
                                   result)
        return result
    return function


@documented(_PARAMETERS, returns=_RETURNED)
@on_device
def hann_window(window_length, periodic=True, *, dtype=None, layout=None, device=None, requires_grad=False):
    """Return the Hann window: ``(1 - cos(2 pi n / N)) / 2``.

    Parameters
    ----------
    window_length : int
    requires_grad : bool, default False

    Examples
    --------
    >>> cygrad.hann_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return _window("hann_window", window_length, periodic, dtype, requires_grad, _cosines((0.5, -0.5)))


@documented(_PARAMETERS, returns=_RETURNED)
@on_device
def hamming_window(window_length, periodic=True, alpha=0.54, beta=0.46, *, dtype=None, layout=None, device=None,
                   requires_grad=False):
    """Return the Hamming window: ``alpha - beta * cos(2 pi n / N)``.

    Parameters
    ----------
    window_length : int
    alpha, beta : float, default 0.54 and 0.46
    requires_grad : bool, default False

    Examples
    --------
    >>> cygrad.hamming_window(4)
    tensor([0.0800, 0.5400, 1.0000, 0.5400])
    """
    return _window("hamming_window", window_length, periodic, dtype, requires_grad, _cosines((alpha, -beta)))


@documented(_PARAMETERS, returns=_RETURNED)
@on_device
def blackman_window(window_length, periodic=True, *, dtype=None, layout=None, device=None, requires_grad=False):
    """Return the Blackman window: ``0.42 - 0.5 * cos(2 pi n / N) + 0.08 * cos(4 pi n / N)``.

    Parameters
    ----------
    window_length : int
    requires_grad : bool, default False

    Examples
    --------
    >>> cygrad.blackman_window(5, periodic=False)[1:4]
    tensor([0.3400, 1.0000, 0.3400])
    """
    return _window("blackman_window", window_length, periodic, dtype, requires_grad, _cosines((0.42, -0.5, 0.08)))


@documented(_PARAMETERS, returns=_RETURNED)
@on_device
def bartlett_window(window_length, periodic=True, *, dtype=None, layout=None, device=None, requires_grad=False):
    """Return the Bartlett (triangular) window: ``1 - abs(2 n / N - 1)``.

    Parameters
    ----------
    window_length : int
    requires_grad : bool, default False

    Examples
    --------
    >>> cygrad.bartlett_window(5, periodic=False)
    tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    return _window("bartlett_window", window_length, periodic, dtype, requires_grad,
                   lambda n, last: operators.rsub(operators.abs(operators.sub(operators.mul(n, 2 / last), 1)), 1))


@documented(_PARAMETERS, returns=_RETURNED)
@on_device
def kaiser_window(window_length, periodic=True, beta=12.0, *, dtype=None, layout=None, device=None,
                  requires_grad=False):
    """Return the Kaiser window: ``i0(beta * sqrt(1 - (2 n / N - 1)**2)) / i0(beta)``.

    Parameters
    ----------
    window_length : int
    beta : float, default 12
        Shape parameter; larger values are narrower.
    requires_grad : bool, default False

    Examples
    --------
    >>> cygrad.kaiser_window(5, periodic=False, beta=2.0)
    tensor([0.4387, 0.8348, 1.0000, 0.8348, 0.4387])
    """
    as_number("kaiser_window", "beta", beta)

    def function(n, last):
        place = operators.square(operators.sub(operators.mul(n, 2 / last), 1))
        argument = operators.mul(operators.sqrt(operators.clamp_min(operators.rsub(place, 1), 0)), abs(beta))
        # Scale by exponentials to avoid overflow.
        scaled = operators.mul(operators.i0e(argument), operators.exp(operators.sub(argument, abs(beta))))
        return operators.div(scaled, operators.i0e(ones((), dtype=n.dtype) * abs(beta)))

    return _window("kaiser_window", window_length, periodic, dtype, requires_grad, function)
