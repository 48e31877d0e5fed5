"""Logarithms of sums of exponentials: operators for real dtypes, composed functions for complex ones."""

from math import inf, nan

from cygrad._core.graph.tensor import Tensor
from cygrad._core.table.operator import operators
from cygrad.composite.out_forms import as_tensor_argument, into

__all__ = ["logaddexp", "logcumsumexp", "logsumexp"]
METHODS = ["logaddexp", "logcumsumexp", "logsumexp"]


def _is_complex(*values):
    return any(isinstance(value, Tensor) and value.is_complex() for value in values)


def _sum(a, b):
    """Return log(exp(a) + exp(b)), computed from the operand with the larger real part."""
    larger = operators.ge(operators.real(a.detach()), operators.real(b.detach()))
    above, below = operators.where(larger, a, b), operators.where(larger, b, a)
    infinite = operators.eq(operators.abs(operators.real(above.detach())), inf)
    difference = operators.where(infinite, 0, operators.sub(below, operators.where(infinite, 0, above)))
    found = operators.add(above, operators.where(infinite, 0, operators.log1p(operators.exp(difference))))
    return operators.where(operators.logical_or(operators.ne(a, a), operators.ne(b, b)), complex(nan, nan), found)


def logaddexp(input, other, *, out=None):
    if _is_complex(input, other):
        as_tensor_argument("logaddexp", "input", input), as_tensor_argument("logaddexp", "other", other)
        return into("logaddexp", _sum(input, other), out)
    return operators.logaddexp(input, other) if out is None else operators.logaddexp(input, other, out=out)


def logsumexp(input, dim, keepdim=False, *, out=None):
    if not _is_complex(input):
        return operators.logsumexp(input, dim, keepdim) if out is None else \
            operators.logsumexp(input, dim, keepdim, out=out)
    if not input.numel():                  # no maximum exists
        return into("logsumexp", operators.log(operators.sum(input, dim, keepdim)), out)
    largest = operators.amax(operators.real(input.detach()), dim, True)
    largest = operators.where(operators.eq(operators.abs(largest), inf), 0, largest)
    sums = operators.sum(operators.exp(operators.sub(input, largest)), dim, keepdim)
    largest = largest if keepdim else operators.reshape(largest, tuple(sums.shape))
    return into("logsumexp", operators.add(operators.log(sums), largest), out)


def logcumsumexp(input, dim, *, out=None):
    if not _is_complex(input):
        return operators.logcumsumexp(input, dim) if out is None else operators.logcumsumexp(input, dim, out=out)
    if input.numel() == 0 or input.ndim == 0:
        return into("logcumsumexp", operators.clone(input), out)
    parts = list(operators.unbind(input, dim))
    for place in range(1, len(parts)):
        parts[place] = _sum(parts[place - 1], parts[place])
    return into("logcumsumexp", operators.stack(parts, dim), out)


for _function in (logaddexp, logcumsumexp, logsumexp):
    _function.__doc__ = getattr(operators, _function.__name__).__doc__
