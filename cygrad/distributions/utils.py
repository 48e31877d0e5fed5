"""Helpers of distributions: broadcasting, probabilities and logits, triangular matrices as vectors."""

import math
from numbers import Number

import cygrad
from cygrad import Tensor
from cygrad._core.graph.operation_names import called_operation
from cygrad._core.table.operator import operators
from cygrad.nn.functional import softmax

__all__ = ["broadcast_all", "clamp_probs", "deviance", "gamma_divergence", "lazy_property", "lgamma_less_digamma",
           "log_beta", "log_binomial", "log_poisson", "logits_to_probs", "probs_to_logits", "stirling_error",
           "sum_last", "tril_matrix_to_vec", "vec_to_tril_matrix"]

euler_constant = 0.57721566490153286060
LOG_2PI = math.log(2 * math.pi)


class _OfFloats(dict):
    """Numbers by floating dtype."""

    def __missing__(self, dtype):
        raise TypeError(f"distributions: parameters and values need a real floating dtype (got {dtype}). Convert them "
                        "with to().")


deviance, gamma_divergence = operators.deviance, operators.gamma_divergence
lgamma_less_digamma = operators.lgamma_less_digamma
EPS = _OfFloats({cygrad.float16: 2.0**-10, cygrad.bfloat16: 2.0**-7, cygrad.float32: 2.0**-23,
                 cygrad.float64: 2.0**-52})
TINY = _OfFloats({cygrad.float16: 2.0**-14, cygrad.bfloat16: 2.0**-126, cygrad.float32: 2.0**-126,
                  cygrad.float64: 2.0**-1022})


def broadcast_all(*values):
    """Broadcast the values; numbers get the dtype of the tensors, or the default dtype."""
    for value in values:
        if not isinstance(value, (Tensor, Number)) or isinstance(value, complex):
            raise ValueError(f"{called_operation('broadcast_all')}: parameters must be numbers or tensors (got "
                             f"{type(value).__name__}).")
    tensors = [value for value in values if isinstance(value, Tensor)]
    dtype = next((tensor.dtype for tensor in tensors if tensor.is_floating_point()), cygrad.get_default_dtype())
    made = [value if isinstance(value, Tensor) else cygrad.tensor(float(value), dtype=dtype) for value in values]
    return cygrad.broadcast_tensors(*made)


def sum_last(tensor, n):
    """Sum over the last `n` dimensions."""
    return tensor.sum(tuple(range(-n, 0))) if n else tensor


def clamp_probs(probs):
    """Clamp probabilities to the open interval (0, 1)."""
    eps = EPS[probs.dtype]
    return probs.clamp(eps, 1 - eps)


def logits_to_probs(logits, is_binary=False):
    """Return the probabilities of logits (binary: log odds; else unnormalized log probabilities)."""
    return logits.sigmoid() if is_binary else softmax(logits, dim=-1)


def probs_to_logits(probs, is_binary=False):
    """Return the logits of probabilities; 0 and 1 count as epsilon and 1 - epsilon, without gradients."""
    eps = EPS[probs.dtype]
    inside = cygrad.where(probs <= 0, eps, cygrad.where(probs >= 1, 1 - eps, probs))
    return inside.log() - (-inside).log1p() if is_binary else inside.log()


def log1p_square(x, scale):
    """Return ``log1p((x / scale) ** 2)``, also where the ratio or its square overflows."""
    with cygrad.no_grad():
        large = (x / scale).abs() > 1 / EPS[x.dtype]
    above, unit = cygrad.where(large, x, 1.0), cygrad.where(large, scale, 1.0)
    below = cygrad.where(large, 0.0, x) / cygrad.where(large, 1.0, scale)
    return cygrad.where(large, 2 * (above.abs().log() - unit.log()), below.square().log1p())


# Logarithms of gamma functions of large numbers cancel. From LARGE on, Stirling's formula has five terms, and densities
# are written as deviances from their maxima (Loader, "Fast and accurate computation of binomial probabilities", 2000).
LARGE = 20


def stirling_error(x):
    """Return ``lgamma(x) - (x - 0.5) * log(x) + x - 0.5 * log(2 * pi)`` for x above `LARGE`."""
    w = x.reciprocal()
    s = w.square()
    return w * (1 / 12 - s * (1 / 360 - s * (1 / 1260 - s * (1 / 1680 - s / 1188))))


def _log_rising(x, n):
    """Return ``lgamma(x + n) - lgamma(x)``."""
    large = cygrad.where(x < LARGE, LARGE, x)
    series = (n * large.log() + (deviance(large + n, large, large.log())
                                 - 0.5 * (n / large).log1p() + stirling_error(large + n) - stirling_error(large)))
    return cygrad.where(x < LARGE, cygrad.lgamma(x + n) - cygrad.lgamma(x), series)


def log_beta(a, b):
    """Return the logarithm of the beta function."""
    small, large = cygrad.minimum(a, b), cygrad.maximum(a, b)
    return cygrad.lgamma(small) - _log_rising(large, small)


def log_binomial(k, m, log_p, log_q):
    """Return ``lgamma(k + m + 1) - lgamma(k + 1) - lgamma(m + 1) + k * log_p + m * log_q``."""
    small, large = cygrad.minimum(k, m), cygrad.maximum(k, m)
    plain = _log_rising(large + 1, small) - cygrad.lgamma(small + 1) + k * log_p + m * log_q
    k, m, log_p, log_q = (cygrad.where(small < LARGE, other, value)
                          for value, other in ((k, LARGE), (m, LARGE), (log_p, -1.0), (log_q, -1.0)))
    n = k + m
    around = (stirling_error(n) - stirling_error(k) - stirling_error(m) - 0.5 * (LOG_2PI + (k * (m / n)).log())
              - deviance(k, n * log_p.exp(), n.log() + log_p) - deviance(m, n * log_q.exp(), n.log() + log_q))
    return cygrad.where(small < LARGE, plain, around)


def log_poisson(x, power, mean, log_mean):
    """Return ``power - mean - lgamma(x + 1)`` with ``power = x * log_mean``."""
    large, center, log_center = (cygrad.where(x < LARGE, LARGE, number) for number in (x, mean, log_mean))
    around = -stirling_error(large) - 0.5 * (LOG_2PI + large.log()) - deviance(large, center, log_center)
    return cygrad.where(x < LARGE, power - mean - cygrad.lgamma(x + 1), around)


class lazy_property:
    """An attribute that is computed at its first access; on the class, a property."""

    def __init__(self, function):
        self.function = function
        self.__doc__ = function.__doc__
        self.name = function.__name__

    def __get__(self, instance, cls=None):
        if instance is None:
            return property(self.function, doc=self.__doc__)
        with cygrad.enable_grad():
            value = self.function(instance)
        setattr(instance, self.name, value)
        return value


def tril_matrix_to_vec(mat, diag=0):
    """Return the elements on and below the diagonal number `diag`, row after row."""
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"vec_to_tril_matrix: diag ({diag}) provided is outside [{-n}, {n - 1}].")
    rows, columns = cygrad.tril_indices(n, n, diag)
    return mat[..., rows, columns]


def vec_to_tril_matrix(vec, diag=0):
    """Invert `tril_matrix_to_vec`; zeros elsewhere."""
    n = (-(1 + 2 * diag) + ((1 + 2 * diag) ** 2 + 8 * vec.shape[-1] + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2
    if round(n) - n > EPS[vec.dtype]:
        raise ValueError(f"vec_to_tril_matrix: The size of last dimension is {vec.shape[-1]} which cannot be "
                         "expressed as the lower triangular part of a square D x D matrix.")
    n = round(n)
    rows, columns = cygrad.tril_indices(n, n, diag)
    flat = cygrad.zeros((*vec.shape[:-1], n * n), dtype=vec.dtype)
    places = (rows * n + columns).expand(vec.shape)
    return flat.scatter(-1, places, vec).reshape((*vec.shape[:-1], n, n))
