"""Rounding to a number of decimals."""

from cygrad._core.graph.argument_errors import as_integer
from cygrad._core.table.operator import operators
from cygrad.composite.out_forms import as_tensor_argument

__all__ = ["round", "round_"]
METHODS = __all__


def round(input, decimals=0, *, out=None):
    """Round each element to the nearest multiple of ``10 ** -decimals``, with halves to even.

    Parameters
    ----------
    input : Tensor
        Real or integer, of any shape.
    decimals : int, default 0
        Number of decimals; negative ones count to the left of the point. Requires floating point if not 0.
    out : Tensor, optional
        Tensor that the result is written to.

    Returns
    -------
    Tensor
        Derivative 0.

    Raises
    ------
    RuntimeError
        If the dtype is complex, or integral and `decimals` is not 0.

    Examples
    --------
    >>> cygrad.round(cygrad.tensor([0.5, 1.5, -2.6]))
    tensor([ 0.,  2., -3.])
    >>> cygrad.round(cygrad.tensor([1.234, 5.678]), decimals=1)
    tensor([1.2000, 5.7000])
    """
    if decimals == 0:
        return operators.round(input) if out is None else operators.round(input, out=out)
    _check_decimals(input, decimals)
    scale = 10.0 ** abs(decimals)
    first, last = (operators.mul, operators.div) if decimals > 0 else (operators.div, operators.mul)
    # Products of 16-bit floats are not accurate enough.
    wide = input.float() if input.dtype.itemsize < 4 else input
    rounded = last(operators.round(first(wide, scale)), scale).to(input.dtype)
    # Where the product overflows, there are no decimals.
    return operators.where(operators.isfinite(rounded), rounded, input.detach() if decimals > 0 else rounded, out=out)


def round_(input, decimals=0):
    """In-place version of `round`.

    Parameters
    ----------
    input : Tensor
        Modified in place.
    decimals : int, default 0

    Returns
    -------
    Tensor
        `input` itself.

    Examples
    --------
    >>> cygrad.tensor([0.5, 1.5, -2.6]).round_()
    tensor([ 0.,  2., -3.])
    """
    if decimals == 0:
        return operators.round_(input)
    _check_decimals(input, decimals)
    return input.copy_(round(input, decimals))


def _check_decimals(input, decimals):
    as_tensor_argument("round", "input", input)
    if abs(as_integer("round", "decimals", decimals)) > 308:
        raise ValueError(f"round: decimals must be from -308 to 308 (got {decimals}).")
    if not input.dtype.is_floating_point:
        raise RuntimeError(f"round: decimals require a floating point dtype (got {input.dtype} and "
                           f"decimals={decimals}). Convert with to() first.")
