"""Samples of the gamma distribution, differentiable with respect to its shape parameter."""

import math

import numpy as np

import cygrad
from cygrad._core.creation.creation import from_numpy, numpy_view
from cygrad.autograd import Function
from cygrad.distributions.samples import numbers_of
from cygrad.random.generator import chosen

__all__ = ["log_standard_gamma", "standard_gamma"]

WEIGHTS = {1: 3 / 4, 2: -3 / 20, 3: 1 / 60}        # sixth-order central differences
LOG_SMALL = math.log(1e-9)
FEW = 10_000               # samples drawn one by one, in PyTorch's order


def _slope(shape, x):
    """
    Return the derivative of a sample by the shape parameter at a fixed probability: ``-(dP/da) / p``.

    P has no closed derivative by its first argument. Sixth-order central differences give ten digits, relative in both
    tails, because they are taken of the smaller of P and 1 - P.
    """
    lower = cygrad.igamma(shape, x) < 0.5
    step = 0.01 * cygrad.minimum(shape, shape.sqrt())
    total = cygrad.zeros_like(x)
    for k, weight in WEIGHTS.items():
        above, below = shape + k * step, shape - k * step
        total = total + weight * cygrad.where(lower, cygrad.igamma(above, x) - cygrad.igamma(below, x),
                                              cygrad.igammac(below, x) - cygrad.igammac(above, x))
    log_density = (shape - 1) * x.log() - x - cygrad.lgamma(shape)
    return -total / step * (-log_density).exp()


def _drawn(numbers, alpha):
    """
    Return the logarithm of one sample from PyTorch's stream.

    Method of Marsaglia and Tsang (2000), with random numbers in PyTorch's order.
    """
    one = np.empty(1)

    def uniform():
        numbers.uniform(one, 0.0, 1.0)
        return 1 - one[0]

    if alpha == 0:
        return -math.inf
    log_scale = math.log(uniform()) / alpha if alpha < 1 else 0.0
    d = (alpha + 1 if alpha < 1 else alpha) - 1 / 3
    while True:
        y = 0.0
        while y <= 0:
            numbers.normal(one, 0.0, 1.0, False)
            x = one[0]
            y = 1 + x / math.sqrt(9 * d)
        v, u = y**3, uniform()
        if u < 1 - 0.0331 * x**4 or math.log(u) < 0.5 * x * x + d * (1 - v + math.log(v)):
            return log_scale + math.log(d * v)


def _log_samples(shape):
    """Return logarithms of samples, as doubles: samples of small shapes underflow."""
    generator = chosen(None, "standard_gamma")
    with generator.lock:
        shapes = numpy_view(shape.detach()).astype("float64").ravel()
        if generator.algorithm == "pcg64" or shapes.size > FEW:
            numbers, small = numbers_of(generator), shapes < 1
            values = np.log(numbers.standard_gamma(shapes + small))
            with np.errstate(divide="ignore"):
                values[small] -= numbers.standard_exponential(np.count_nonzero(small)) / shapes[small]
        else:
            values = np.array([_drawn(generator.numbers, alpha) for alpha in shapes])
    return from_numpy(values.reshape(tuple(shape.shape)))


class LogStandardGamma(Function):
    """Log samples by shape parameter, with the gradient of the inverse distribution function."""

    @staticmethod
    def forward(ctx, shape):
        """Return the logarithms, as doubles."""
        log_x = _log_samples(shape)
        ctx.save_for_backward(shape, log_x)
        return log_x

    @staticmethod
    def backward(ctx, grad):
        """Multiply by the derivative; for small samples that of ``P(a, x) = x ** a / gamma(a + 1)``."""
        shape, log_x = ctx.saved_tensors
        with cygrad.no_grad():
            a, small = shape.double(), log_x < LOG_SMALL
            x = log_x.clamp(min=LOG_SMALL).exp()
            slope = (_slope(a, x) / x).nan_to_num(0.0, 0.0, 0.0)
            slope = cygrad.where(small, (cygrad.digamma(a + 1) - log_x) / a, slope)
        return (grad * slope).to(shape.dtype)


def log_standard_gamma(shape):
    """Return log samples with rate 1, as doubles, differentiable with respect to the shape parameter."""
    return LogStandardGamma.apply(shape)


def standard_gamma(shape):
    """Return samples with rate 1, differentiable with respect to the shape parameter."""
    x = log_standard_gamma(shape).exp()
    inside = x.detach().clamp(2.0**-126 if shape.dtype is cygrad.float32 else 2.0**-1022)
    return (x + (inside - x.detach())).to(shape.dtype)
