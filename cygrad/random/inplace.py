"""
In-place sampling methods, for any strides.

The numbers are drawn into new memory and copied: so versions, histories and errors are those of every in-place
operation, and the graph knows that the old values are overwritten.
"""

import numpy as np

from cygrad._core.arrays.dtype import bool as bool_dtype
from cygrad._core.creation.creation import from_numpy
from cygrad._core.graph.argument_errors import as_number
from cygrad._core.graph.tensor import Tensor
from cygrad._core.table.docstrings import documented
from cygrad.composite.out_forms import as_tensor_argument
from cygrad.random import draws
from cygrad.random.generator import algorithm_of, chosen
from cygrad.random.sampling import below, check_bounds, check_probabilities, check_std

__all__ = ["METHODS"]

_RETURNED = "Tensor\n    Itself."


def _drawn(tensor, generator, operation, draw, kind, *arguments):
    """Fill a tensor with ``draw(generator, shape, kind, ...)``; a meta tensor is not filled."""
    if tensor.is_meta:
        return tensor
    generator = chosen(generator, operation)
    if generator.algorithm != "mt19937" or tensor.is_contiguous():
        return tensor.copy_(draws.tensor_over(draw(generator, tuple(tensor.shape), kind, *arguments)))
    # PyTorch draws in the memory order of the elements, one after the other.
    order = sorted(range(tensor.ndim), key=tensor.stride, reverse=True)
    arguments += (False,) if draw is draws.normal else ()              # not in blocks
    array = draw(generator, tuple(tensor.shape[dim] for dim in order), kind, *arguments)
    return tensor.copy_(from_numpy(np.asarray(array)).permute(*np.argsort(order).tolist()))


def _number(value, operation, name):
    try:
        return float(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(f"{operation}: {name} must be a number (got {type(value).__name__}: {error}).") from error


def _inexact(tensor, operation):
    as_tensor_argument(operation, "input", tensor)
    if not (tensor.is_floating_point() or tensor.is_complex()):
        raise NotImplementedError(f"{operation}: not implemented for {tensor.dtype.name} (expected a floating or "
                                  "complex dtype).")
    return draws.drawn_in(tensor.dtype)


@documented(returns=_RETURNED)
def normal_(self, mean=0.0, std=1.0, *, generator=None):
    """Fill with normal numbers: a method of Tensor.

    Parameters
    ----------
    mean, std : float, optional

    Raises
    ------
    RuntimeError
        If `std` is negative.

    Examples
    --------
    >>> cygrad.zeros(2).normal_(3, 0)
    tensor([3., 3.])
    """
    as_number("normal_", "mean", mean)
    check_std(std, "normal_")
    kind = _inexact(self, "normal_")
    return _drawn(self, generator, "normal_", draws.normal, kind, mean, std)


@documented(returns=_RETURNED)
def uniform_(self, *bounds, generator=None, **named):
    """Fill with uniform numbers in [from, to): a method of Tensor.

    Parameters
    ----------
    *bounds, **named : float
        `from` (default 0) and `to` (default 1), by position or name.

    Raises
    ------
    RuntimeError
        If `from` is above `to`, or a bound or their difference is not a finite number of the dtype.

    Examples
    --------
    >>> cygrad.zeros(2).uniform_(3, 3)
    tensor([3., 3.])
    """
    low, high = _bounds(bounds, named, (0.0, 1.0), "uniform_")
    if as_number("uniform_", "from", low) > as_number("uniform_", "to", high):
        raise RuntimeError(f"uniform_: the lower bound must not be above the upper one (got from={low} and to={high}).")
    kind = _inexact(self, "uniform_")
    limit = float(np.finfo(np.float16 if self.dtype.name in ("float16", "complex32") else kind).max)
    for name, value in (("from", low), ("to", high), ("to - from", high - low)):
        if not abs(value) <= limit:
            raise RuntimeError(f"uniform_: {name} is out of bounds for {self.dtype.name} (got from={low} and "
                               f"to={high}).")
    if self.dtype.name in draws.WIDER:
        return _drawn(self, generator, "uniform_", lambda source, shape, kind, *block: below(
            draws.uniform(source, shape, kind, low, high), self.dtype, low, high), kind)
    return _drawn(self, generator, "uniform_", draws.uniform, kind, low, high)


def _bounds(bounds, named, defaults, operation):
    """Return `from` and `to`; the former is a keyword of Python, so it cannot be a parameter."""
    given = dict(zip(("from", "to"), bounds, strict=False))
    if len(bounds) > 2 or set(named) - {"from", "to"} or set(named) & set(given):
        raise TypeError(f"{operation}: takes from and to (got {bounds} and {sorted(named)}).")
    given |= named
    return given.get("from", defaults[0]), given.get("to", defaults[1])


@documented(returns=_RETURNED)
def random_(self, *bounds, generator=None, **named):
    """Fill with uniform integers in [from, to): a method of Tensor.

    Parameters
    ----------
    *bounds, **named : int
        ``random_(to)``, ``random_(from, to)``, or by name. Default: from 0 to the largest integer that
        the dtype holds exactly.

    Raises
    ------
    RuntimeError
        If there is no integer between the bounds, or the dtype does not hold them.

    Examples
    --------
    >>> cygrad.zeros(2).random_(1)
    tensor([0., 0.])
    """
    as_tensor_argument("random_", "input", self)
    if self.is_complex():
        raise NotImplementedError(f"random_: not implemented for {self.dtype.name} (expected a real dtype).")
    if len(bounds) == 1 and not named:
        bounds = (0, *bounds)
    low, high = _bounds(bounds, named, (0, None), "random_")
    if high is None:
        high = draws.limits(self.dtype)[1] + 1
    check_bounds(low, high, self.dtype, "random_")
    return _drawn(self, generator, "random_", draws.integers, draws.drawn_in(self.dtype), low, high)


@documented(returns=_RETURNED)
def bernoulli_(self, p=0.5, *, generator=None):
    """Fill with 1, with probability p, and 0: a method of Tensor.

    Parameters
    ----------
    p : float or Tensor
        A Tensor holds probabilities that broadcast to this one.

    Raises
    ------
    RuntimeError
        If a probability is not in [0, 1].

    Examples
    --------
    >>> cygrad.zeros(2).bernoulli_(1.)
    tensor([1., 1.])
    """
    as_tensor_argument("bernoulli_", "input", self)
    probabilities = check_probabilities(p, "bernoulli_")
    if isinstance(p, Tensor) and not p.is_floating_point():
        raise RuntimeError(f"bernoulli_: probabilities must be floating (got {p.dtype.name}).")
    if isinstance(p, Tensor) and not self.is_meta:
        return self.copy_(draws.tensor_over(draws.bernoulli(
            chosen(generator, "bernoulli_"), probabilities, tuple(self.shape), draws.drawn_in(self.dtype))))
    return _drawn(self, generator, "bernoulli_", lambda source, shape, kind: draws.bernoulli(
        source, probabilities, shape, kind), draws.drawn_in(self.dtype))


@documented(returns=_RETURNED)
def exponential_(self, lambd=1.0, *, generator=None):
    """Fill with exponential numbers: a method of Tensor.

    Parameters
    ----------
    lambd : float, default 1
        The rate; the mean is its reciprocal.

    Raises
    ------
    RuntimeError
        If the rate is not positive, or the dtype is not floating.

    Examples
    --------
    >>> bool((cygrad.zeros(10).exponential_() > 0).all())
    True
    """
    as_tensor_argument("exponential_", "input", self)
    lambd = _number(lambd, "exponential_", "lambd")
    if lambd <= 0:
        raise RuntimeError(f"exponential_: the rate must be positive (got {lambd}).")
    if not self.is_floating_point():
        raise RuntimeError(f"exponential_: the distribution is continuous (got {self.dtype.name}, expected a floating "
                           "dtype).")
    return _drawn(self, generator, "exponential_", draws.exponential, draws.drawn_in(self.dtype), lambd)


def _rounded_to(dtype):
    """Return the NumPy dtype that draws are rounded to; float64 for bfloat16, which NumPy lacks."""
    return np.float64 if dtype.name == "bfloat16" else dtype.numpy_dtype


def _transformed(tensor, generator, operation, transform):
    """Fill with a function, of ndarrays, of uniform numbers in (0, 1)."""
    def draw(source, shape, kind):
        even = np.asarray(draws.uniform(source, shape, np.float64))
        return transform(np.maximum(even, np.finfo(np.float64).tiny)).astype(kind)
    return _drawn(tensor, generator, operation, draw, _rounded_to(tensor.dtype))


@documented(returns=_RETURNED)
def cauchy_(self, median=0.0, sigma=1.0, *, generator=None):
    """Fill with numbers of the Cauchy distribution: a method of Tensor.

    Parameters
    ----------
    median : float, default 0
    sigma : float, default 1
        Half of the distance between the quartiles; positive.

    Raises
    ------
    RuntimeError
        If `sigma` is not positive, or the dtype is not floating.

    Examples
    --------
    >>> cygrad.zeros(3).cauchy_().shape
    (3,)
    """
    median, sigma = _number(median, "cauchy_", "median"), _number(sigma, "cauchy_", "sigma")
    _check_continuous(self, "cauchy_", "sigma", sigma)
    return _transformed(self, generator, "cauchy_", lambda even: median + sigma * np.tan(np.pi * (even - 0.5)))


@documented(returns=_RETURNED)
def log_normal_(self, mean=1.0, std=2.0, *, generator=None):
    """Fill with log-normal numbers: a method of Tensor.

    Parameters
    ----------
    mean, std : float, default 1 and 2
        Of the logarithms; `std` is positive.

    Raises
    ------
    RuntimeError
        If `std` is not positive, or the dtype is not floating.

    Examples
    --------
    >>> bool((cygrad.zeros(10).log_normal_() > 0).all())
    True
    """
    def draw(source, shape, kind):
        blocks = (False,) if algorithm_of(source) == "mt19937" else ()         # PyTorch draws one after the other
        return np.exp(draws.normal(source, shape, np.float64, mean, std, *blocks)).astype(kind)
    mean, std = _number(mean, "log_normal_", "mean"), _number(std, "log_normal_", "std")
    _check_continuous(self, "log_normal_", "std", std)
    return _drawn(self, generator, "log_normal_", draw, _rounded_to(self.dtype))


def _check_continuous(tensor, operation, name, scale):
    as_tensor_argument(operation, "input", tensor)
    if not scale > 0:
        raise RuntimeError(f"{operation}: {name} must be positive (got {scale}).")
    if not tensor.is_floating_point():
        raise NotImplementedError(f"{operation}: the distribution is continuous (got {tensor.dtype.name}, expected a "
                                  "floating dtype).")


@documented(returns=_RETURNED)
def geometric_(self, p, *, generator=None):
    """Fill with numbers of the geometric distribution: a method of Tensor.

    Parameters
    ----------
    p : float
        The probability of success, between 0 and 1, neither included.

    Raises
    ------
    RuntimeError
        If `p` is not between 0 and 1.
    NotImplementedError
        For tensors of bools or complex numbers.

    Examples
    --------
    >>> bool((cygrad.zeros(10).geometric_(0.5) >= 1).all())
    True
    """
    as_tensor_argument("geometric_", "input", self)
    p = _number(p, "geometric_", "p")
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_: p must be between 0 and 1 (got {p}).")
    if self.is_complex() or self.dtype is bool_dtype:
        raise NotImplementedError(f"geometric_: not implemented for {self.dtype.name} (expected integers or floats).")
    return _transformed(self, generator, "geometric_", lambda even: np.ceil(np.log(even) / np.log1p(-p)))


METHODS = {
    "normal_": normal_, "uniform_": uniform_, "random_": random_, "bernoulli_": bernoulli_,
    "exponential_": exponential_, "cauchy_": cauchy_, "log_normal_": log_normal_, "geometric_": geometric_,
}
