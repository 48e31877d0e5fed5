"""
Jacobians and Hessians of Python functions, and products with them.

Backward computes the vector-Jacobian product ``v J``. It is linear in v, so a second backward with respect to v
computes the Jacobian-vector product ``J v`` without forward mode. `vhp`, `hvp` and `hessian` are `vjp`, `jvp` and
`jacobian` of the gradient.
"""

from cygrad._core import public_dir as _public_dir
from cygrad._core.table.docstrings import documented
from cygrad.autograd.function_call import FunctionCall, Gradient

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]
__dir__ = _public_dir(__name__)

# Shared parameter descriptions.
_PARAMETERS = {
    "inputs": "Tensor or tuple of Tensor\n    The arguments of `func`.",
    "create_graph": "bool, default False\n    Whether to record the computation, so that the results can be "
                    "differentiated.",
    "strict": "bool, default False\n"
              "    Whether to raise an error if a result does not depend on an input, instead of returning zeros.",
    "v": "Tensor or tuple of Tensor, optional\n"
         "    The vector, of the shapes of the inputs. Optional if there is a single element.",
    "func": "callable\n    Takes Tensors, returns a Tensor or a tuple of Tensors.",
}


@documented(_PARAMETERS)
def vjp(func, inputs, v=None, create_graph=False, strict=False):
    """
    Return the result of a function, and a vector times its Jacobian.

    Parameters
    ----------
    v : Tensor or tuple of Tensor, optional
        The vector, of the shapes of the results. Optional if `func` returns a single element.

    Returns
    -------
    output : Tensor or tuple of Tensor
        ``func(*inputs)``.
    vjp : Tensor or tuple of Tensor
        The product, of the shapes of the inputs.

    Raises
    ------
    TypeError
        If inputs, `v` or results of `func` are not Tensors.
    RuntimeError
        If `v` does not match, or a result violates `strict`.

    See Also
    --------
    jvp : the Jacobian times a vector; takes two backward passes.

    Examples
    --------
    >>> from cygrad.autograd.functional import vjp
    >>> vjp(lambda x, y: 2 * x + x * y, (cygrad.tensor([1.0, 2.0]), cygrad.tensor([3.0, 4.0])), cygrad.ones(2))
    (tensor([ 5., 12.]), (tensor([5., 6.]), tensor([1., 2.])))
    """
    call = FunctionCall("vjp", func, inputs, create_graph, strict)
    return call.answer(call.outputs, call.outputs_are_tuple), call.answer(call.vector_times_jacobian(v))


@documented(_PARAMETERS)
def jvp(func, inputs, v=None, create_graph=False, strict=False):
    """
    Return the result of a function, and its Jacobian times a vector.

    Parameters
    ----------
    func : callable
        Takes Tensors, returns a Tensor or a tuple of Tensors; twice differentiable.

    Returns
    -------
    output : Tensor or tuple of Tensor
        ``func(*inputs)``.
    jvp : Tensor or tuple of Tensor
        The product, of the shapes of the outputs.

    Raises
    ------
    TypeError
        If inputs, `v` or results of `func` are not Tensors.
    RuntimeError
        If `v` does not match, or a result violates `strict`.

    See Also
    --------
    vjp : a vector times the Jacobian; takes one backward pass.

    Examples
    --------
    >>> from cygrad.autograd.functional import jvp
    >>> jvp(lambda x: x.exp().sum(), cygrad.tensor([0.0, 0.0]), cygrad.tensor([1.0, 2.0]))
    (tensor(2.), tensor(3.))
    """
    call = FunctionCall("jvp", func, inputs, create_graph, strict)
    return (call.answer(call.outputs, call.outputs_are_tuple),
            call.answer(call.jacobian_times_vector(v), call.outputs_are_tuple))


@documented(_PARAMETERS)
def jacobian(func, inputs, create_graph=False, strict=False, vectorize=False, strategy="reverse-mode"):
    """
    Return the Jacobian of a function: derivatives of all elements of the results with respect to all of the inputs.

    Parameters
    ----------
    create_graph : bool, default False
        Whether to record the computation, so that the Jacobian can be differentiated.
    vectorize : bool, default False
        Whether to compute all rows by one backward under `cygrad.vmap`; faster for many rows of cheap functions. For
        complex results it returns the gradients for the vector 1 instead of raising an error.
    strategy : {"reverse-mode", "forward-mode"}, default "reverse-mode"
        Whether to compute rows, or columns in forward mode, which is faster for fewer elements of inputs than of
        results. It calls `func` for each element of the inputs, or once with `vectorize`.

    Returns
    -------
    Tensor or tuple of Tensor or tuple of tuple of Tensor
        A Tensor of the shape of the output followed by that of the input; for tuples of inputs or outputs a tuple of
        these. ``J[i][j]`` belongs to output i and input j.

    Raises
    ------
    TypeError
        If inputs or results of `func` are not Tensors.
    RuntimeError
        If a result violates `strict`; for `strict` with `vectorize`, complex results without `vectorize`, and complex
        inputs in forward mode.

    Examples
    --------
    >>> from cygrad.autograd.functional import jacobian
    >>> jacobian(lambda x: x * x.sum(), cygrad.tensor([1.0, 2.0]))
    tensor([[4., 1.],
            [2., 5.]])
    """
    _check_strategy("jacobian", "strategy", strategy, strict, vectorize)
    call = FunctionCall("jacobian", func, inputs, create_graph, strict)
    rows = call.jacobian_by_columns(func, vectorize) if strategy == "forward-mode" else call.jacobian(vectorize)
    return _matrix(rows, call.outputs_are_tuple, call.inputs_are_tuple)


def hessian(func, inputs, create_graph=False, strict=False, vectorize=False, outer_jacobian_strategy="reverse-mode"):
    """
    Return the Hessian of a scalar function: the second derivatives with respect to each pair of elements.

    Parameters
    ----------
    func : callable
        Takes Tensors, returns a Tensor with a single element.
    inputs : Tensor or tuple of Tensor
        The arguments of `func`.
    create_graph : bool, default False
        Whether to record the computation, so that the Hessian can be differentiated.
    strict : bool, default False
        Whether to raise an error if the result or its gradient does not depend on an input, instead of returning zeros.
    vectorize : bool, default False
        Whether to compute all rows by one backward under `cygrad.vmap`.
    outer_jacobian_strategy : {"reverse-mode", "forward-mode"}, default "reverse-mode"
        Whether to differentiate the gradient by a second backward or in forward mode.

    Returns
    -------
    Tensor or tuple of tuple of Tensor
        For one input a Tensor of twice its shape; for a tuple of inputs, ``H[i][j]`` belongs to inputs i and j.

    Raises
    ------
    TypeError
        If inputs or results of `func` are not Tensors.
    RuntimeError
        If `func` returns more than a single element, or a result violates `strict`.

    Examples
    --------
    >>> from cygrad.autograd.functional import hessian
    >>> hessian(lambda x: (x[0] * x[1]) ** 2, cygrad.tensor([1.0, 2.0]))
    tensor([[8., 8.],
            [8., 2.]])
    """
    _check_strategy("hessian", "outer_jacobian_strategy", outer_jacobian_strategy, strict, vectorize)
    gradient = Gradient("hessian", func, strict)
    call = FunctionCall("hessian", gradient, inputs, create_graph, strict)
    forward = outer_jacobian_strategy == "forward-mode"
    rows = call.jacobian_by_columns(gradient, vectorize) if forward else call.jacobian(vectorize)
    return _matrix(rows, call.inputs_are_tuple, call.inputs_are_tuple)


@documented(_PARAMETERS)
def vhp(func, inputs, v=None, create_graph=False, strict=False):
    """
    Return the result of a scalar function, and a vector times its Hessian.

    Parameters
    ----------
    func : callable
        Takes Tensors, returns a Tensor with a single element.
    strict : bool, default False
        Whether to raise an error if the result or its gradient does not depend on an input, instead of returning zeros.

    Returns
    -------
    output : Tensor
        ``func(*inputs)``.
    vhp : Tensor or tuple of Tensor
        The product, of the shapes of the inputs.

    Raises
    ------
    TypeError
        If inputs, `v` or results of `func` are not Tensors.
    RuntimeError
        If `func` returns more than a single element, `v` does not match, or a result violates `strict`.

    See Also
    --------
    hvp : the Hessian times a vector: the same where the second derivatives are continuous, and slower.

    Examples
    --------
    >>> from cygrad.autograd.functional import vhp
    >>> vhp(lambda x: x.pow(3).sum(), cygrad.tensor([1.0, 2.0]), cygrad.tensor([1.0, -1.0]))
    (tensor(9.), tensor([  6., -12.]))
    """
    gradient = Gradient("vhp", func, strict)
    call = FunctionCall("vhp", gradient, inputs, create_graph, strict)
    return call.answer(gradient.output, False), call.answer(call.vector_times_jacobian(v))


@documented(_PARAMETERS)
def hvp(func, inputs, v=None, create_graph=False, strict=False):
    """
    Return the result of a scalar function, and its Hessian times a vector.

    Parameters
    ----------
    func : callable
        Takes Tensors, returns a Tensor with a single element; three times differentiable.
    strict : bool, default False
        Whether to raise an error if the result or its gradient does not depend on an input, instead of returning zeros.

    Returns
    -------
    output : Tensor
        ``func(*inputs)``.
    hvp : Tensor or tuple of Tensor
        The product, of the shapes of the inputs.

    Raises
    ------
    TypeError
        If inputs, `v` or results of `func` are not Tensors.
    RuntimeError
        If `func` returns more than a single element, `v` does not match, or a result violates `strict`.

    See Also
    --------
    vhp : a vector times the Hessian: the same where the second derivatives are continuous, and faster.

    Examples
    --------
    >>> from cygrad.autograd.functional import hvp
    >>> hvp(lambda x: x.pow(3).sum(), cygrad.tensor([1.0, 2.0]), cygrad.tensor([1.0, -1.0]))
    (tensor(9.), tensor([  6., -12.]))
    """
    gradient = Gradient("hvp", func, strict)
    call = FunctionCall("hvp", gradient, inputs, create_graph, strict)
    return call.answer(gradient.output, False), call.answer(call.jacobian_times_vector(v))


def _check_strategy(operation, name, strategy, strict, vectorize):
    """Check the strategy, and that `strict` is False if it is not supported."""
    if strategy not in ("reverse-mode", "forward-mode"):
        raise ValueError(f'{operation}: Expected strategy to be either "forward-mode" or "reverse-mode" (got {name}='
                         f"{strategy!r}).")
    if strict and strategy == "forward-mode":
        raise RuntimeError(f'{operation}: `strict=True` and `{name}="forward-mode"` are not supported together (yet). '
                           "Omit one of them.")
    if strict and vectorize:
        raise RuntimeError(f"{operation}: `strict=True` and `vectorized=True` are not supported together. Pass "
                           "vectorize=False, or strict=False.")


def _matrix(rows, outputs_are_tuple, inputs_are_tuple):
    """Return nested tuples without the levels of inputs and outputs that are not tuples."""
    rows = tuple(row if inputs_are_tuple else row[0] for row in rows)
    return rows if outputs_are_tuple else rows[0]
