"""The second derivative of operators that are pieces of straight lines, as a node."""

from cygrad.autograd.function import Function

__all__ = ["ArgumentZeros"]


class ArgumentZeros(Function):
    """A gradient that passes unchanged; going back, the arguments that it does not depend on get zeros."""

    @staticmethod
    def forward(ctx, gradient, *arguments):
        """Return the gradient."""
        ctx.looks = [(tuple(argument.shape), argument.dtype) for argument in arguments]
        return gradient.detach()

    @staticmethod
    def backward(ctx, grad):
        """For the gradient its own gradient, and zeros for the rest."""
        from cygrad import zeros
        return grad, *[zeros(shape, dtype=dtype) for shape, dtype in ctx.looks]
