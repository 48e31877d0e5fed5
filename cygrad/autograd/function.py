"""Custom autograd functions: operations whose forward and backward are written in Python."""

import functools
import inspect
import typing

from cygrad._core import public_dir as _public_dir
from cygrad._core.creation.factories import empty
from cygrad._core.custom.function import FunctionNode, apply, function_node_type
from cygrad._core.graph.modes import is_grad_enabled, no_grad
from cygrad._core.graph.tensor import Tensor, provide
from cygrad._core.graph.user_warnings import warn_user

__all__ = ["Function", "FunctionCtx", "InplaceFunction", "once_differentiable"]
__dir__ = _public_dir(__name__)

FunctionCtx = FunctionNode


class FunctionMeta(type):
    """Creates the node type ``<Name>Backward`` of each custom function."""

    def __init__(cls, name, bases, namespace, **options):
        super().__init__(name, bases, namespace, **options)
        cls._backward_cls = function_node_type(cls)


class Function(metaclass=FunctionMeta):
    """
    Base class of custom functions.

    A subclass defines the static methods `forward` and `backward`, and is called with ``apply``. Either ``forward(ctx,
    *args)`` also saves values for backward, or ``setup_context(ctx, inputs, output)`` does after ``forward(*args)``.

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
    # Whether the first access of ctx.saved_tensors in backward frees them for the node.
    clear_saved_tensors_on_access = False

    def __init__(self, *arguments, **options):
        warn_user(f"{type(self)} should not be instantiated, because the methods of a custom Function are static. "
                  f"Write {type(self).__name__}.apply(...).", DeprecationWarning)

    def __call__(self, *arguments, **options):
        raise RuntimeError(f"{type(self).__name__}: Legacy autograd function with non-static forward method is "
                           f"deprecated (got a call of an instance). Write {type(self).__name__}.apply(...) and make "
                           "forward and backward static methods.")

    def __getattr__(self, name):
        if hasattr(FunctionNode, name) or name == "_register_hook_dict":         # the latter of PyTorch's nodes only
            raise RuntimeError(f"{type(self).__name__}: Attribute '{name}' is invalid for this instance, which is not "
                               "a node of the graph. Use grad_fn of the result of apply().")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

    @staticmethod
    def forward(*arguments, **options):
        """
        Compute the outputs; defined by the subclass.

        Parameters
        ----------
        ctx : FunctionCtx
            Context for values that backward needs. Omitted if the subclass defines `setup_context`.
        *arguments
            Arguments of ``apply``: Tensors and other values.

        Returns
        -------
        Tensor, or a tuple of Tensors and other values
        """
        raise NotImplementedError("Function: You must implement the forward function for custom autograd.Function, as "
                                  "a static method.")

    @staticmethod
    def setup_context(ctx, inputs, output):
        """
        Save values that backward needs; defined by a subclass whose `forward` takes no ``ctx``.

        Parameters
        ----------
        ctx : FunctionCtx
        inputs : tuple
            The arguments of forward.
        output
            Result of forward.
        """
        raise NotImplementedError("Function: the subclass must define setup_context (got none). Define it as a static "
                                  "method.")

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
        raise NotImplementedError("Function: You must implement either the backward or vjp method for your custom "
                                  "autograd.Function to use it with backward mode AD, as a static method.")

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
        raise NotImplementedError("Function: You must implement the jvp function for custom autograd.Function to use "
                                  "it with forward mode AD, as a static method.")

    @staticmethod
    def vmap(info, in_dims, *arguments):
        """
        Compute the outputs for a whole batch; defined by the subclass for `cygrad.vmap`.

        Alternatively, set ``generate_vmap_rule = True`` in the class to call the other methods under vmap.

        Parameters
        ----------
        info : VmapInfo
            Object with ``batch_size`` and ``randomness``.
        in_dims : tuple of int or None
            Batch dimension of each argument; None if it is not batched.
        *arguments
            Arguments of forward, for all entries.

        Returns
        -------
        output
            Results for all entries.
        out_dims : int, None or tuple of them
            Batch dimension of each output.
        """
        raise NotImplementedError("Function: the subclass must define vmap (got none). Define it as a static method, "
                                  "or set generate_vmap_rule = True.")

    @classmethod
    def apply(cls, *arguments, **options) -> typing.Any:
        """
        Call the function and record it.

        Parameters
        ----------
        *arguments
            Arguments of `forward`.
        **options
            Keyword arguments of `forward`; their gradients are in the order of its signature.

        Returns
        -------
        Tensor, or the result of `forward`
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
    """Alias of `Function` for custom functions that modify arguments in place.

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

    _node_name = "Error"                         # as in PyTorch

    @staticmethod
    def forward(ctx, message, *tensors):
        """Return aliases of the tensors that require grad, None for the others."""
        ctx.message = message
        return tuple(tensor.detach() if tensor.requires_grad else None for tensor in tensors)

    @staticmethod
    def backward(ctx, *grads):
        """Raise the error."""
        raise RuntimeError(ctx.message)


def once_differentiable(function):
    """
    Decorate a `Function.backward` that is not differentiable.

    The method runs without recording, so it can use any computation. Differentiating twice raises an error.

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
        results, nothing = (results,) if single else results, empty(0)       # for an edge to no node
        leaves = [result.detach().requires_grad_() if isinstance(result, Tensor) else nothing for result in results]
        refused = DelayedError.apply(
            f"{type(ctx).__name__}: trying to differentiate twice a function that was marked with "
            "@once_differentiable. Write its backward with recorded operations, without the decorator.", *leaves)
        return refused[0] if single else refused
    return wrapper
