"""Node for the second derivatives of piecewise linear operators."""

from cygrad.autograd.function import Function

__all__ = ["ArgumentZeros"]


class ArgumentZeros(Function):
    """Identity of the gradient; in backward, the other arguments get zeros."""

    @staticmethod
    def forward(ctx, gradient, *arguments):
        """Return the gradient."""
        ctx.looks = [(tuple(argument.shape), argument.dtype) for argument in arguments]
        return gradient.detach()

    @staticmethod
    def backward(ctx, grad):
        """Return the gradient for the gradient, and zeros for the rest."""
        from cygrad import zeros
        return grad, *[zeros(shape, dtype=dtype) for shape, dtype in ctx.looks]
