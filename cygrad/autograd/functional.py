"""
Products with Jacobians and Hessians of a Python function, and these matrices themselves.

Everything here is backward: a vector times the Jacobian, ``v J``, is what backward computes. It is linear in v, so the
derivative of ``v J`` with respect to v, applied to another vector, is ``J v``, whatever v: two backward passes instead
of forward mode. The gradient is a function too, and its Jacobian is the Hessian: `vhp`, `hvp` and `hessian` are `vjp`,
`jvp` and `jacobian` of the gradient.
"""

from cygrad._core.table.docstrings import documented
from cygrad.autograd.function_call import FunctionCall, Gradient

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

# Shared parameter descriptions.
_PARAMETERS = {
    "inputs": "Tensor or tuple of Tensor\n    The arguments of `func`.",
    "create_graph": "bool, default False\n    Record the computation, so that the results can be differentiated.",
    "strict": "bool, default False\n"
              "    Raise an error if a result does not depend on an input, instead of giving zeros.",
    "v": "Tensor or tuple of Tensor, optional\n"
         "    The vector, of the shapes of the inputs. May be left out if there is a single element.",
    "func": "callable\n    Takes Tensors, gives a Tensor or a tuple of Tensors.",
}


@documented(_PARAMETERS)
def vjp(func, inputs, v=None, create_graph=False, strict=False):
    """
    Return the result of a function, and a vector times its Jacobian.

    Parameters
    ----------
    v : Tensor or tuple of Tensor, optional
        The vector, of the shapes of the results. May be left out if `func` gives a single element.

    Returns
    -------
    output : Tensor or tuple of Tensor
        ``func(*inputs)``.
    vjp : Tensor or tuple of Tensor
        The product, of the shapes of the inputs.

    Raises
    ------
    TypeError
        If inputs, `v` or what `func` gives are not Tensors.
    RuntimeError
        If `v` does not fit, or for what `strict` forbids.

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
        Takes Tensors, gives a Tensor or a tuple of Tensors; differentiable twice.

    Returns
    -------
    output : Tensor or tuple of Tensor
        ``func(*inputs)``.
    jvp : Tensor or tuple of Tensor
        The product, of the shapes of the outputs.

    Raises
    ------
    TypeError
        If inputs, `v` or what `func` gives are not Tensors.
    RuntimeError
        If `v` does not fit, or for what `strict` forbids.

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
    Return the Jacobian of a function: the derivative of each element of its results by each element of its inputs.

    Parameters
    ----------
    create_graph : bool, default False
        Record the computation, so that the Jacobian can be differentiated.
    vectorize : bool, default False
        Compute all rows by one backward, under `cygrad.vmap`: for many rows of cheap functions. For a complex result it
        gives the gradients for the vector 1, and no error: the derivative of a complex number is more than that.
    strategy : {"reverse-mode", "forward-mode"}, default "reverse-mode"
        Row by row, or column by column by forward mode, which calls `func` once for each element of the inputs, or for
        all of them with `vectorize`: better if there are fewer of them than elements of the results.

    Returns
    -------
    Tensor or tuple of Tensor or tuple of tuple of Tensor
        For one output and one input a Tensor of the shape of the output followed by that of the input. For a tuple of
        inputs a tuple of these; for a tuple of outputs a tuple for each, so that ``J[i][j]`` belongs to output i and
        input j.

    Raises
    ------
    TypeError
        If inputs or what `func` gives are not Tensors.
    RuntimeError
        For what `strict` forbids, for `strict` with `vectorize`, for complex results without `vectorize`, and for
        complex inputs in forward mode.

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
    Return the Hessian of a function with a one-element result: the second derivatives by each pair of elements.

    Parameters
    ----------
    func : callable
        Takes Tensors, gives a Tensor with a single element.
    inputs : Tensor or tuple of Tensor
        The arguments of `func`.
    create_graph : bool, default False
        Record the computation, so that the Hessian can be differentiated.
    strict : bool, default False
        Raise an error if the result or its gradient does not depend on an input, instead of giving zeros.
    vectorize : bool, default False
        Compute all rows by one backward, under `cygrad.vmap`.
    outer_jacobian_strategy : {"reverse-mode", "forward-mode"}, default "reverse-mode"
        How the gradient is differentiated: by a second backward, or by forward mode over it.

    Returns
    -------
    Tensor or tuple of tuple of Tensor
        For one input a Tensor of its shape twice; for a tuple of inputs ``H[i][j]`` belongs to inputs i and j.

    Raises
    ------
    TypeError
        If inputs or what `func` gives are not Tensors.
    RuntimeError
        If `func` gives more than a single element, and for what `strict` forbids.

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
    Return the result of a function with a one-element result, and a vector times its Hessian.

    Parameters
    ----------
    func : callable
        Takes Tensors, gives a Tensor with a single element.
    strict : bool, default False
        Raise an error if the result or its gradient does not depend on an input, instead of giving zeros.

    Returns
    -------
    output : Tensor
        ``func(*inputs)``.
    vhp : Tensor or tuple of Tensor
        The product, of the shapes of the inputs.

    Raises
    ------
    TypeError
        If inputs, `v` or what `func` gives are not Tensors.
    RuntimeError
        If `func` gives more than a single element, `v` does not fit, or for what `strict` forbids.

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
    Return the result of a function with a one-element result, and its Hessian times a vector.

    Parameters
    ----------
    func : callable
        Takes Tensors, gives a Tensor with a single element; differentiable three times.
    strict : bool, default False
        Raise an error if the result or its gradient does not depend on an input, instead of giving zeros.

    Returns
    -------
    output : Tensor
        ``func(*inputs)``.
    hvp : Tensor or tuple of Tensor
        The product, of the shapes of the inputs.

    Raises
    ------
    TypeError
        If inputs, `v` or what `func` gives are not Tensors.
    RuntimeError
        If `func` gives more than a single element, `v` does not fit, or for what `strict` forbids.

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
    """Check the strategy; rows computed in a batch cannot be checked one by one (`strict`)."""
    if strategy not in ("reverse-mode", "forward-mode"):
        raise ValueError(f'{operation}: {name} is unknown (got {strategy!r}, expected "reverse-mode" or '
                         '"forward-mode").')
    if strict and strategy == "forward-mode":
        raise RuntimeError(f'{operation}: strict=True and {name}="forward-mode" do not go together. Leave one of them '
                           "out.")
    if strict and vectorize:
        raise RuntimeError(f"{operation}: strict=True and vectorize=True do not go together. Leave one of them out.")


def _matrix(rows, outputs_are_tuple, inputs_are_tuple):
    """Return tuples of tuples without the levels that the user did not have."""
    rows = tuple(row if inputs_are_tuple else row[0] for row in rows)
    return rows if outputs_are_tuple else rows[0]
