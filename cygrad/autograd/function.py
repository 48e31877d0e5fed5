"""Custom autograd functions: operations whose forward and backward are written in Python."""

import functools
import inspect
import typing

from cygrad._core.custom.function import FunctionNode, apply, function_node_type
from cygrad._core.graph.modes import is_grad_enabled, no_grad
from cygrad._core.graph.tensor import Tensor, provide
from cygrad._core.graph.user_warnings import warn_user

__all__ = ["Function", "FunctionCtx", "InplaceFunction", "once_differentiable"]

FunctionCtx = FunctionNode


class FunctionMeta(type):
    """Creates the node type ``<Name>Backward`` of each custom function."""

    def __init__(cls, name, bases, namespace, **options):
        super().__init__(name, bases, namespace, **options)
        cls._backward_cls = function_node_type(cls)


class Function(metaclass=FunctionMeta):
    """
    Base class of custom functions.

    A subclass has the static methods `forward` and `backward`, and is called by ``apply``. Either
    ``forward(ctx, *args)`` does everything, or ``forward(*args)`` only computes and
    ``setup_context(ctx, inputs, output)`` notes what backward will need.

    Examples
    --------
    >>> class Exp(cygrad.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         result = x.exp()
    ...         ctx.save_for_backward(result)
    ...         return result
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         result, = ctx.saved_tensors
    ...         return grad * result
    >>> x = cygrad.zeros(2, requires_grad=True)
    >>> Exp.apply(x).sum().backward()
    >>> x.grad
    tensor([1., 1.])
    """

    generate_vmap_rule = False

    def __init__(self, *arguments, **options):
        warn_user(f"{type(self)} should not be instantiated, because the methods of a custom Function are static. "
                  f"Write {type(self).__name__}.apply(...).", DeprecationWarning)

    def __call__(self, *arguments, **options):
        raise RuntimeError(f"{type(self).__name__}: Legacy autograd function with non-static forward method is "
                           f"deprecated (got a call of an instance). Write {type(self).__name__}.apply(...) and make "
                           "forward and backward static methods.")

    def __getattr__(self, name):
        if hasattr(FunctionNode, name):
            raise RuntimeError(f"{type(self).__name__}: Attribute '{name}' is invalid for this instance, which is not "
                               "a node of the graph. Nodes are found as grad_fn of what apply() returns.")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

    @staticmethod
    def forward(*arguments, **options):
        """
        Compute the outputs; defined by the subclass.

        Parameters
        ----------
        ctx : FunctionCtx
            Takes what backward will need. Left out if the subclass has `setup_context`.
        *arguments
            What ``apply`` was called with: Tensors and anything else.

        Returns
        -------
        Tensor, or a tuple of Tensors and anything else
        """
        raise NotImplementedError("Function: the subclass has no forward. Define it as a static method.")

    @staticmethod
    def setup_context(ctx, inputs, output):
        """
        Save what backward will need; defined by a subclass whose `forward` takes no ``ctx``.

        Parameters
        ----------
        ctx : FunctionCtx
        inputs : tuple
            The arguments of forward.
        output
            What forward returned.
        """
        raise NotImplementedError("Function: the subclass has no setup_context. Define it as a static method.")

    @staticmethod
    def backward(ctx, *grad_outputs):
        """
        Compute the gradients of the arguments; defined by the subclass.

        Parameters
        ----------
        ctx : FunctionCtx
        *grad_outputs : Tensor or None
            The gradient of each output.

        Returns
        -------
        Tensor or None, or a tuple of them
            One for each argument of forward.
        """
        raise NotImplementedError("Function: the subclass has no backward, so it cannot be differentiated. Define "
                                  "backward (or vjp) as a static method.")

    vjp = backward

    @staticmethod
    def jvp(ctx, *grad_inputs):
        """
        Compute the directional derivatives of the outputs; defined by the subclass for forward mode.

        Parameters
        ----------
        ctx : FunctionCtx
        *grad_inputs : Tensor or None
            The tangent of each argument.

        Returns
        -------
        Tensor or None, or a tuple of them
            One for each output.
        """
        raise NotImplementedError("Function: the subclass has no jvp, which forward mode needs. Define it as a static "
                                  "method.")

    @staticmethod
    def vmap(info, in_dims, *arguments):
        """
        Compute the outputs for a whole batch; defined by the subclass for `cygrad.vmap`.

        Without it, ``generate_vmap_rule = True`` in the class has the other methods called under vmap.

        Parameters
        ----------
        info : VmapInfo
            With ``batch_size`` and ``randomness``.
        in_dims : tuple of int or None
            For each argument which dimension counts the entries of the batch; None if it is the same for all.
        *arguments
            Of forward, for all entries.

        Returns
        -------
        output
            For all entries.
        out_dims : int, None or tuple of them
            Which dimension of each output counts the entries.
        """
        raise NotImplementedError("Function: the subclass has no vmap. Define it as a static method, or set "
                                  "generate_vmap_rule = True.")

    @classmethod
    def apply(cls, *arguments, **options) -> typing.Any:
        """
        Call the function and record it.

        Parameters
        ----------
        *arguments
            What `forward` takes.
        **options
            What it takes by name; backward counts them in the order of `forward`.

        Returns
        -------
        Tensor, or what `forward` returns
        """
        if options or cls.setup_context is not Function.setup_context:
            arguments = _by_position(cls, arguments, options)
        return apply(cls, arguments)


provide(function_backward=Function.backward, setup_context=Function.setup_context)


def _by_position(cls, arguments, options):
    """Return the arguments of forward as a tuple, in the order of setup_context and backward."""
    code, context = getattr(cls.forward, "__code__", None), cls.setup_context is Function.setup_context
    if not options and code is not None and len(arguments) == code.co_argcount:
        return arguments
    bound = inspect.signature(cls.forward).bind(*[None] * context, *arguments, **options)       # None: in place of ctx
    if not context or bound.kwargs:
        bound.apply_defaults()
    if bound.kwargs:                                        # of forward's **options, or keyword-only
        raise TypeError(f"{cls.__name__}.apply: keyword-only arguments of forward have no gradients (got "
                        f"{', '.join(bound.kwargs)}). Make it a positional argument of forward.")
    return bound.args[context:]


class InplaceFunction(Function):
    """Base class of custom functions that modify arguments in place; an alias for older programs.

    Examples
    --------
    >>> class Double(cygrad.autograd.function.InplaceFunction):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.mark_dirty(x)
    ...         return x.mul_(2)
    ...
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         return 2 * grad
    >>> Double.apply(cygrad.ones(2))
    tensor([2., 2.])
    """


class DelayedError(Function):
    """Passes tensors through, and raises in backward."""

    @staticmethod
    def forward(ctx, message, *tensors):
        """Return aliases of the tensors."""
        ctx.message = message
        return tuple(None if tensor is None else tensor.detach() for tensor in tensors)

    @staticmethod
    def backward(ctx, *grads):
        """Raise the error."""
        raise RuntimeError(ctx.message)


def once_differentiable(function):
    """
    Decorate a `Function.backward` that is not differentiable itself.

    It runs without recording, so it may use whatever computes right values; differentiating a second time raises.

    Parameters
    ----------
    function : callable
        The backward method, below ``@staticmethod``.

    Returns
    -------
    callable

    Examples
    --------
    >>> from cygrad.autograd import Function
    >>> from cygrad.autograd.function import once_differentiable
    >>> class Double(Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return 2 * x
    ...
    ...     @staticmethod
    ...     @once_differentiable
    ...     def backward(ctx, gradient):
    ...         return 2 * gradient
    >>> x = cygrad.tensor(1.0, requires_grad=True)
    >>> Double.apply(x).backward()
    >>> x.grad
    tensor(2.)
    """
    @functools.wraps(function)
    def wrapper(ctx, *grads):
        with no_grad():
            results = function(ctx, *grads)
        if not is_grad_enabled():
            return results
        if not any(isinstance(grad, Tensor) and grad.requires_grad for grad in (*grads, *ctx.saved_tensors)):
            return results
        single = not isinstance(results, tuple)
        results = (results,) if single else results
        leaves = [result.detach().requires_grad_() if isinstance(result, Tensor) else None for result in results]
        refused = DelayedError.apply(
            f"{type(ctx).__name__}: trying to differentiate twice a function that was marked with "
            "@once_differentiable. Write its backward with recorded operations, without the decorator.", *leaves)
        return refused[0] if single else refused
    return wrapper
