"""Gradients and vector-Jacobian products of functions."""

import functools

from cygrad._core.graph.modes import inference_mode, is_grad_enabled, set_grad_enabled
from cygrad._core.graph.tensor import Tensor
from cygrad._core.table.operator import operators
from cygrad.func.batched import strip
from cygrad.func.inputs import Inputs, as_tensor, at_places, pullback_of, same_tree, selected, with_aux

__all__ = ["elementwise_grad", "grad", "grad_and_value", "value_and_grad", "vjp"]


def grad_and_value(func, argnums=0, has_aux=False):
    """
    Return a function that computes the gradient and the value of another.

    Parameters
    ----------
    func : callable
        Returns a 0-dim Tensor; with `has_aux`, a pair of that and an auxiliary output.
    argnums : int or tuple of int, default 0
        Positions of the arguments to differentiate with respect to: Tensors, NumPy arrays and floats (in float64), and
        containers of them.
    has_aux : bool, default False

    Returns
    -------
    callable
        Returns the gradient, with the structure of the argument, or a tuple of them; and the result of `func`.

    Raises
    ------
    RuntimeError
        On call: if `func` does not return a 0-dim Tensor, or an argument is not differentiable.

    Examples
    --------
    >>> cygrad.func.grad_and_value(lambda x: (x ** 2).sum())(cygrad.tensor([1.0, 3.0]))
    (tensor([2., 6.]), tensor(10.))
    """
    @functools.wraps(func)
    def both(*args, **kwargs):
        places, chosen, single = selected("grad", argnums, args)
        inputs = Inputs("grad", chosen)
        with inference_mode(False):
            output, aux = with_aux("grad", at_places(func, places, args, kwargs)(*inputs.tree), has_aux)
        if not isinstance(output, Tensor):
            raise RuntimeError(f"grad: the function must return a Tensor (got {type(output).__name__}).")
        if output.ndim:
            raise RuntimeError(f"grad: the function must return a 0-dim Tensor (got shape {tuple(output.shape)}). Sum "
                               "it, or use vjp or jacrev.")
        if output.dtype.is_complex:
            raise RuntimeError("grad: the function must return a real Tensor (got a complex one). Take its real part "
                               "or abs() first.")
        held = strip(output, inputs.levels)
        one = operators.expand(held.new_ones(()), tuple(held.shape))
        gradients = inputs.answer(inputs.pull([held], [one], False))
        found = (output, aux) if has_aux else output
        return gradients[0] if single else gradients, inputs.returned(inputs.outside(found))

    return both


def grad(func, argnums=0, has_aux=False):
    """
    Return a function that computes the gradient of another.

    Parameters
    ----------
    func : callable
        Returns a 0-dim Tensor; with `has_aux`, a pair of that and an auxiliary output.
    argnums : int or tuple of int, default 0
        Positions of the arguments to differentiate with respect to: Tensors, NumPy arrays and floats (in float64), and
        containers of them.
        The gradient of an array is an array, that of a float a float.
    has_aux : bool, default False

    Returns
    -------
    callable
        Returns the gradient, with the structure of the argument, or a tuple of them; with `has_aux`, a pair of that and
        the auxiliary output.

    Raises
    ------
    RuntimeError
        On call: if `func` does not return a 0-dim Tensor, or an argument is not differentiable.

    Examples
    --------
    >>> from cygrad.func import grad, vmap
    >>> grad(cygrad.sin)(cygrad.tensor(0.0)), grad(grad(grad(cygrad.sin)))(cygrad.tensor(0.0))
    (tensor(1.), tensor(-1.))
    >>> vmap(grad(lambda x: x ** 3))(cygrad.tensor([1.0, 2.0]))         # of each entry its own
    tensor([ 3., 12.])
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def gradient(*args, **kwargs):
        gradients, value = both(*args, **kwargs)
        return (gradients, value[1]) if has_aux else gradients

    return gradient


def value_and_grad(func, argnums=0, has_aux=False):
    """
    Return a function that computes the value and the gradient of another, in the order of JAX.

    Parameters
    ----------
    func : callable
        Returns a 0-dim Tensor; with `has_aux`, a pair of that and an auxiliary output.
    argnums : int or tuple of int, default 0
        Positions of the arguments to differentiate with respect to.
    has_aux : bool, default False

    Returns
    -------
    callable
        Returns the result of `func`; and the gradient with the structure of the argument, or a tuple of them.

    Examples
    --------
    >>> import numpy as np
    >>> from cygrad.func import value_and_grad
    >>> value_and_grad(lambda x: (x ** 2).sum())(np.array([1.0, 3.0]))      # for scipy.optimize.minimize(jac=True)
    (10.0, array([2., 6.]))
    """
    both = grad_and_value(func, argnums, has_aux)
    return functools.wraps(func)(lambda *args, **kwargs: both(*args, **kwargs)[::-1])


def elementwise_grad(func, argnums=0):
    """
    Return a function that computes the element-wise derivative of another.

    Parameters
    ----------
    func : callable
        Element-wise function: each element of the result depends on one element of the argument.
    argnums : int or tuple of int, default 0
        Positions of the arguments to differentiate with respect to.

    Returns
    -------
    callable
        Returns the derivatives, with the structure of the argument.

    Examples
    --------
    >>> import cygrad, numpy as np
    >>> cygrad.func.elementwise_grad(np.sin)(np.array([0.0, np.pi]))
    array([ 1., -1.])
    """
    return grad(functools.wraps(func)(lambda *args, **kwargs: func(*args, **kwargs).sum()), argnums)


class _Pullback:
    """Multiply vectors by the Jacobian of a function at one point."""

    def __init__(self, inputs, outputs, spec):
        self.inputs, self.outputs, self.spec = inputs, outputs, spec

    def __call__(self, cotangents, retain_graph=True, create_graph=None):
        vectors = [as_tensor("vjp_fn", "cotangents", vector)
                   for vector in same_tree("vjp_fn", "cotangents", self.spec, cotangents)]
        inputs = self.inputs
        for vector, output in zip(vectors, self.outputs, strict=True):
            shape = tuple(output.shape)[len(inputs.levels):]
            if tuple(vector.shape) != shape:
                raise RuntimeError(f"vjp_fn: a cotangent has the wrong shape (got {tuple(vector.shape)}, expected "
                                   f"{shape} as in the output).")
        with set_grad_enabled(is_grad_enabled() if create_graph is None else create_graph):
            vectors = [strip(vector, inputs.levels) for vector in vectors]
            gradients = inputs.answer(inputs.pull(self.outputs, vectors, retain_graph))
        return gradients


def vjp(func, *primals, has_aux=False):
    """
    Return the value of a function, and a function that multiplies vectors by its Jacobian.

    Parameters
    ----------
    func : callable
        Takes and returns Tensors or containers of them; with `has_aux`, returns a pair of that and an auxiliary output.
    *primals
        Arguments of `func`.
    has_aux : bool, default False

    Returns
    -------
    output
        ``func(*primals)``.
    vjp_fn : callable
        Takes a vector with the structure of the output, and returns the product for each of `primals`: a tuple if there
        are several. It can be called repeatedly, and under `vmap`.
    aux
        Auxiliary output; only with `has_aux`.

    Raises
    ------
    RuntimeError
        If results or arguments are not Tensors.

    Examples
    --------
    >>> y, pull = cygrad.func.vjp(cygrad.sin, cygrad.zeros(3))
    >>> pull(cygrad.tensor([1.0, 2.0, 3.0]))
    (tensor([1., 2., 3.]),)
    """
    inputs, results, aux, held, spec = pullback_of("vjp", func, primals, has_aux)
    results, aux, pullback = inputs.returned(results), inputs.returned(aux), _Pullback(inputs, held, spec)
    return (results, pullback, aux) if has_aux else (results, pullback)
