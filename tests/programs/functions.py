"""Custom functions of programs, for either library."""

from functools import cache


@cache
def custom_functions(library):
    """The functions by name, as subclasses of the library's Function.

    Parameters
    ----------
    library : module

    Returns
    -------
    dict of str to type
    """
    Function = library.autograd.Function

    class Cube(Function):
        """Saves its input and can be differentiated again."""

        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return 3 * grad * x * x

    class Identity(Function):
        """Gives back its input itself."""

        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    class Doubled(Function):
        """Changes its input in place."""

        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    class Flat(Function):
        """Gives a view."""

        @staticmethod
        def forward(ctx, x):
            ctx.size = tuple(x.shape)
            return x.view(-1)

        @staticmethod
        def backward(ctx, grad):
            return grad.reshape(ctx.size)

    class Pair(Function):
        """Two results, of which the second has no derivative, and two inputs, of which the second gets no gradient."""

        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            whole = (x * y).detach()
            ctx.mark_non_differentiable(whole)
            return x * y, whole

        @staticmethod
        def backward(ctx, grad, unused):
            return grad * ctx.saved_tensors[1], None

    return {function.__name__: function for function in (Cube, Identity, Doubled, Flat, Pair)}
