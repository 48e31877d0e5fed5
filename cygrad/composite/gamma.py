"""Functions of the gamma family that check their arguments."""

from cygrad._core.graph.argument_errors import as_integer
from cygrad._core.graph.tensor import Tensor
from cygrad._core.table.operator import operators
from cygrad.composite.mixed_precision import rounded_once
from cygrad.composite.out_forms import as_tensor_argument, inplace, into

__all__ = ["igamma", "igammac", "mvlgamma", "polygamma"]

def polygamma(n, input, *, out=None):
    """Return the n-th derivative of the digamma function of each element.

    Parameters
    ----------
    n : int
        Not negative; 0 is `digamma`. The method is ``input.polygamma(n)``.
    input : Tensor
    out : Tensor, optional
        Tensor that the result is written to.

    Returns
    -------
    Tensor
        ``(-1)**(n + 1) * n! * zeta(n + 1, input)`` (Abramowitz and Stegun, 6.4.10); integers give the default dtype.
        Derivative: ``polygamma(n + 1, input)``.

    Raises
    ------
    RuntimeError
        If `n` is negative.

    Examples
    --------
    >>> cygrad.polygamma(1, cygrad.tensor([1.0, 0.5]))
    tensor([1.6449, 4.9348])
    """
    if not hasattr(n, "__index__") or isinstance(n, Tensor):
        raise TypeError(f"polygamma: n must be an integer (got {n!r}).")
    if n < 0:
        raise RuntimeError(f"polygamma: n must not be negative (got {n}).")
    if n == 0:
        return operators.digamma(input) if out is None else operators.digamma(input, out=out)
    return operators.polygamma(n, input) if out is None else operators.polygamma(n, input, out=out)


def _polygamma_method(self, n):
    return polygamma(n, self)


_polygamma_method.__name__ = "polygamma"
_polygamma_method.__doc__ = polygamma.__doc__


@rounded_once
def mvlgamma(input, p, *, out=None):
    """Return the logarithm of the multivariate gamma function of each element.

    Parameters
    ----------
    input : Tensor
        Larger than ``(p - 1) / 2``; undefined elsewhere.
    p : int
        The dimension, at least 1.
    out : Tensor, optional
        Tensor that the result is written to.

    Returns
    -------
    Tensor
        ``p * (p - 1) / 4 * log(pi)`` plus the sum of ``lgamma(input - i / 2)`` over i below p.

    Raises
    ------
    RuntimeError
        If `p` is not positive.

    Examples
    --------
    >>> cygrad.mvlgamma(cygrad.tensor([1.0, 2.0]), 2)
    tensor([1.1447, 0.4516])
    """
    as_tensor_argument("mvlgamma", "input", input)
    if (p := as_integer("mvlgamma", "p", p)) < 1:
        raise RuntimeError(f"mvlgamma: p must be at least 1 (got {p}).")
    if p > 2**20:
        raise RuntimeError(f"mvlgamma: p is too large (got {p}, expected at most 2**20).")
    result = operators.lgamma(input)
    for i in range(1, p):
        result = operators.add(result, operators.lgamma(operators.sub(input, i / 2)))
    return into("mvlgamma", operators.add(result, p * (p - 1) / 4 * 1.1447298858494002), out)


# ---- functions without a derivative in the first argument

def igamma(input, other, *, out=None):
    """Return the regularized lower incomplete gamma function ``P(input, other)``.

    Parameters
    ----------
    input : Tensor
        Shape parameter, not negative.
    other : Tensor
        Upper limit of the integral, not negative.
    out : Tensor, optional
        Tensor that the result is written to.

    Returns
    -------
    Tensor
        The integral of ``t**(input - 1) * exp(-t) / gamma(input)`` from 0 to `other`, computed by series or continued
        fraction (Abramowitz and Stegun, 6.5.29 and 6.5.31), or Temme's expansion for large `input`. Derivative in
        `other`: the integrand.

    Raises
    ------
    NotImplementedError
        In backward, if `input` requires grad, because the derivative is not implemented.

    Examples
    --------
    >>> cygrad.igamma(cygrad.tensor([1.0, 2.0]), cygrad.tensor([1.0, 1.0]))
    tensor([0.6321, 0.2642])
    """
    return operators.igamma(input, other) if out is None else operators.igamma(input, other, out=out)


def igammac(input, other, *, out=None):
    """Return the regularized upper incomplete gamma function ``Q(input, other)``.

    Parameters
    ----------
    input : Tensor
        Shape parameter, not negative.
    other : Tensor
        Lower limit of the integral, not negative.
    out : Tensor, optional
        Tensor that the result is written to.

    Returns
    -------
    Tensor
        ``1 - igamma(input, other)``, accurate where it is small. Derivative in `other`: minus the integrand.

    Raises
    ------
    NotImplementedError
        In backward, if `input` requires grad, because the derivative is not implemented.

    Examples
    --------
    >>> cygrad.igammac(cygrad.tensor([1.0, 2.0]), cygrad.tensor([1.0, 1.0]))
    tensor([0.3679, 0.7358])
    """
    return operators.igammac(input, other) if out is None else operators.igammac(input, other, out=out)


def zeta(input, other, *, out=None):
    """Return the Hurwitz zeta function: the sum of ``(other + k)**-input`` over k from 0.

    Parameters
    ----------
    input : Tensor or number
        Exponents; inf at 1, nan below.
    other : Tensor or number
        Offsets; inf at 0 and negative integers.
    out : Tensor, optional
        Tensor that the result is written to.

    Returns
    -------
    Tensor
        Computed by the Euler-Maclaurin formula. Derivative in `other`: ``-input * zeta(input + 1, other)``.

    Raises
    ------
    NotImplementedError
        In backward, if `input` requires grad, because the derivative is not implemented.

    Examples
    --------
    >>> cygrad.special.zeta(cygrad.tensor([2.0, 4.0]), 1)
    tensor([1.6449, 1.0823])
    """
    return operators.zeta(input, other) if out is None else operators.zeta(input, other, out=out)


METHODS = {
    "igamma": igamma, "igamma_": inplace(igamma), "igammac": igammac, "igammac_": inplace(igammac),
    "mvlgamma": mvlgamma, "mvlgamma_": inplace(mvlgamma), "polygamma": _polygamma_method,
    "polygamma_": inplace(_polygamma_method),
}
