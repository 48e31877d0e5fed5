"""Samples of the gamma distribution through which gradients flow to its shape parameter."""

import cygrad
from cygrad._core.creation.access import numpy_view
from cygrad._core.creation.creation import from_numpy
from cygrad.autograd import Function
from cygrad.random.generator import chosen

__all__ = ["standard_gamma"]

WEIGHTS = {1: 3 / 4, 2: -3 / 20, 3: 1 / 60}        # of central differences of sixth order


def _slope(shape, x):
    """
    How a sample moves with the shape parameter at a fixed probability: ``-(dP/da) / p``.

    P has no derivative by its first argument in closed form. Central differences of sixth order give it to ten digits,
    taken of P or 1 - P, whichever is smaller: so they are relative to what is there in both tails.
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


class StandardGamma(Function):
    """A sample for each shape parameter; the gradient is that of the inverse distribution function."""

    @staticmethod
    def forward(ctx, shape):
        """The samples."""
        generator = chosen(None, "standard_gamma")
        with generator.lock:
            values = generator.numbers.standard_gamma(numpy_view(shape.detach()).astype("float64"))
        x = from_numpy(values.reshape(tuple(shape.shape)))
        tiny = 2.0**-126 if shape.dtype is cygrad.float32 else 2.0**-1022
        x = x.clamp(tiny).to(shape.dtype)
        ctx.save_for_backward(shape, x)
        return x

    @staticmethod
    def backward(ctx, grad):
        """Times the slope, where it is a number."""
        shape, x = ctx.saved_tensors
        with cygrad.no_grad():
            slope = _slope(shape.double(), x.double()).nan_to_num(0.0, 0.0, 0.0).to(grad.dtype)
        return grad * slope


def standard_gamma(shape):
    """Samples of the gamma distribution with rate 1, differentiable with respect to the shape parameter."""
    return StandardGamma.apply(shape)
