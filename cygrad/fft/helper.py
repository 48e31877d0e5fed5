"""Sample frequencies of a spectrum, and shifts of frequency 0 to the center."""

import math

from cygrad._core.arrays.dtype import get_default_dtype
from cygrad._core.creation.factories import arange
from cygrad._core.graph.argument_errors import as_dim, as_integer, as_number, as_sizes
from cygrad._core.graph.tensor import Tensor
from cygrad._core.table.docstrings import documented
from cygrad._core.table.operator import operators
from cygrad.composite.dtypes import on_device
from cygrad.composite.out_forms import as_tensor_argument, into

__all__ = ["fftfreq", "fftshift", "ifftshift", "rfftfreq"]

# Meaning of the parameters.
_PARAMETERS = {
    "n": "int\n    Length of the transform.",
    "d": "float, default 1.0\n    Distance of two samples.",
    "dtype": "dtype, optional\n    Floating or complex; by default the default dtype.",
    "layout": "optional\n    Taken and ignored: all Tensors are strided.",
    "device": "device or str, optional",
    "requires_grad": "bool, default False\n    Of the result.",
    "dim": "int or tuple of int, optional\n    All dimensions by default.",
}


def _frequencies(operation, numbers, n, d, dtype, requires_grad, out):
    """Return the numbers divided by n * d."""
    if dtype is None:
        dtype = get_default_dtype() if out is None else as_tensor_argument(operation, "out", out).dtype
    if not (dtype.is_floating_point or dtype.is_complex):
        raise ValueError(f"{operation}: requires a floating point or complex dtype (got {dtype}).")
    as_number(operation, "d", d)
    length = float(n * d)                # 0: the division gives inf and nan
    found = operators.mul(operators.cast(numbers, dtype), 1.0 / length if length else math.copysign(math.inf, length))
    found = into(operation, found, out)
    return found.requires_grad_() if requires_grad else found


@documented(_PARAMETERS)
@on_device
def fftfreq(n, d=1.0, *, out=None, dtype=None, layout=None, device=None, requires_grad=False):
    """Return the sample frequencies of `fft`: 0, 1, ..., then the negative ones, divided by ``n * d``.

    Returns
    -------
    Tensor
        Of n elements.

    Raises
    ------
    ValueError
        If the dtype is neither floating nor complex.

    Examples
    --------
    >>> cygrad.fft.fftfreq(4)
    tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """
    n = as_integer("fftfreq", "n", n)
    numbers = operators.cat([arange((n + 1) // 2), arange(-(n // 2), 0)], 0)
    return _frequencies("fftfreq", numbers, n, d, dtype, requires_grad, out)


@documented(_PARAMETERS)
@on_device
def rfftfreq(n, d=1.0, *, out=None, dtype=None, layout=None, device=None, requires_grad=False):
    """Return the sample frequencies of `rfft`: 0, 1, ..., n // 2, divided by ``n * d``.

    Returns
    -------
    Tensor
        Of ``n // 2 + 1`` elements.

    Raises
    ------
    ValueError
        If the dtype is neither floating nor complex.

    Examples
    --------
    >>> cygrad.fft.rfftfreq(4)
    tensor([0.0000, 0.2500, 0.5000])
    """
    n = as_integer("rfftfreq", "n", n)
    return _frequencies("rfftfreq", arange(n // 2 + 1), n, d, dtype, requires_grad, out)


def _shifted(operation, input, dim, shift):
    """Roll the input by shift(size) in each of the dimensions."""
    if not isinstance(input, Tensor):
        raise TypeError(f"{operation}: argument 'input' must be a Tensor (got {type(input).__name__}).")
    dims = tuple(range(input.ndim)) if dim is None else as_sizes(operation, "dim", dim, 1)
    for k in dims:
        as_dim(operation, k, input.ndim)
    if not dims:
        return operators.clone(input)
    return operators.roll(input, tuple(shift(input.shape[k]) for k in dims), dims)


@documented(_PARAMETERS)
def fftshift(input, dim=None):
    """Shift frequency 0 to the center of a spectrum.

    Returns
    -------
    Tensor
        Each dimension turned by half of its size.

    Raises
    ------
    IndexError
        If a dimension is out of range.

    Notes
    -----
    Derivative: `ifftshift`.

    Examples
    --------
    >>> cygrad.fft.fftshift(cygrad.fft.fftfreq(4))
    tensor([-0.5000, -0.2500,  0.0000,  0.2500])
    """
    return _shifted("fftshift", input, dim, lambda size: size // 2)


@documented(_PARAMETERS)
def ifftshift(input, dim=None):
    """Invert `fftshift`.

    Returns
    -------
    Tensor
        Each dimension turned back by half of its size.

    Raises
    ------
    IndexError
        If a dimension is out of range.

    Notes
    -----
    Derivative: `fftshift`.

    Examples
    --------
    >>> cygrad.fft.ifftshift(cygrad.tensor([-1, 0, 1]))
    tensor([ 0,  1, -1])
    """
    return _shifted("ifftshift", input, dim, lambda size: -(size // 2))
