"""Reductions that select an operator by their arguments."""

from cygrad._core.dispatch.named_results import named_result
from cygrad._core.graph.tensor import Tensor, checked_freedom
from cygrad._core.table.docstrings import documented
from cygrad._core.table.operator import operators
from cygrad.composite.out_forms import as_tensor_argument, into, spelled

__all__ = ["aminmax", "max", "min", "norm", "std", "std_mean", "var", "var_mean"]

# Shared parameter descriptions.
_PARAMETERS = {
    "input": "Tensor\n    Real.",
    "keepdim": "bool, default False\n    Keep the reduced dimension with size 1.",
    "dim": "int or Tensor, optional\n    Dimension to reduce. A Tensor is used as `other`.",
    "out": "Tensor or tuple of Tensor, optional\n    Tensor that the result is written to.",
    "unbiased": "bool, optional\n    True is ``correction=1``, False is ``correction=0``.",
    "correction": "number, optional\n    Subtracted from the number of elements in the divisor; default 1.",
}
_RETURNED = "Tensor\n    nan or inf, with a warning, where the divisor is not positive."

METHODS = ["aminmax", "max", "min", "norm", "std", "var"]


def _is_ordered(input):
    """Return whether the maximum exists."""
    return input.numel() and not input.is_complex()


def _extremum(name, input, dim, keepdim, other, out):
    """Implement `max` and `min` in their three forms."""
    if not isinstance(input, Tensor):
        raise TypeError(f"{name}: argument 'input' must be a Tensor (got {type(input).__name__}).")
    if isinstance(dim, Tensor) and other is None:
        dim, other = None, dim
    if other is not None:
        if not isinstance(other, Tensor) or dim is not None:
            raise TypeError(f"{name}: expected a dimension or another Tensor (got dim={dim!r} and other of type "
                            f"{type(other).__name__}).")
        function = getattr(operators, f"{name}imum")
        return function(input, other) if out is None else function(input, other, out=out)
    if input.is_complex():
        raise NotImplementedError(f"{name}: complex numbers have no order (got {input.dtype}).")
    if dim is None:
        if input.numel() == 0:
            raise RuntimeError(f"{name}: expected a non-empty tensor (got shape {tuple(input.shape)}). Pass dim= to "
                               "reduce a non-empty dimension.")
        return into(name, getattr(operators, f"{name}_all")(input), out)
    if isinstance(dim, bool) or not hasattr(dim, "__index__"):
        raise TypeError(f"{name}: dim must be an integer (got {dim!r}). Use a{name}() for several dimensions.")
    return getattr(operators, f"{name}_dim")(input, dim, keepdim, out=out)


@spelled
@documented(_PARAMETERS)
def max(input, dim=None, keepdim=False, *, other=None, out=None):
    """Return the maximum: of all elements, along a dimension, or of two tensors.

    Parameters
    ----------
    other : Tensor, optional
        Tensor to compare with element-wise, as `maximum`.

    Returns
    -------
    Tensor, or a named tuple (values, indices) if `dim` is given
        nan is larger than any number. Equal maxima share the gradient evenly in the reduction of all elements; along a
        dimension, the returned index gets the gradient.

    Raises
    ------
    RuntimeError
        If there are no elements.
    NotImplementedError
        For complex tensors.

    Examples
    --------
    >>> x = cygrad.tensor([[1., 4.], [3., 2.]])
    >>> cygrad.max(x)
    tensor(4.)
    >>> cygrad.max(x, 1).indices
    tensor([1, 0])
    """
    if dim is None and other is None and out is None and type(input) is Tensor:
        try:
            return operators.max_all(input)
        except RuntimeError:
            if _is_ordered(input):
                raise                 # else the error is raised below
    return _extremum("max", input, dim, keepdim, other, out)


@spelled
@documented(_PARAMETERS)
def min(input, dim=None, keepdim=False, *, other=None, out=None):
    """Return the minimum: of all elements, along a dimension, or of two tensors.

    Parameters
    ----------
    other : Tensor, optional
        Tensor to compare with element-wise, as `minimum`.

    Returns
    -------
    Tensor, or a named tuple (values, indices) if `dim` is given
        nan is smaller than any number. Gradients as for `max`.

    Raises
    ------
    RuntimeError
        If there are no elements.
    NotImplementedError
        For complex tensors.

    Examples
    --------
    >>> cygrad.min(cygrad.tensor([[1., 4.], [3., 2.]]), 1).values
    tensor([1., 2.])
    """
    if dim is None and other is None and out is None and type(input) is Tensor:
        try:
            return operators.min_all(input)
        except RuntimeError:
            if _is_ordered(input):
                raise                 # else the error is raised below
    return _extremum("min", input, dim, keepdim, other, out)


@spelled
@documented(_PARAMETERS)
def aminmax(input, *, dim=None, keepdim=False, out=None):
    """Return the minimum and the maximum.

    Parameters
    ----------
    dim : int, optional
        Dimension to reduce; default all.
    out : tuple of Tensor, optional
        Tensors that the results are written to.

    Returns
    -------
    named tuple (min, max) of Tensor

    Examples
    --------
    >>> cygrad.aminmax(cygrad.tensor([3., 1., 2.])).max
    tensor(3.)
    """
    if dim is None:
        dim = tuple(range(as_tensor_argument("aminmax", "input", input).ndim))
        if not input.numel():
            raise RuntimeError(f"aminmax: expected a non-empty tensor (got shape {tuple(input.shape)}).")
    for target in out or ():
        if target.dtype is not input.dtype:
            raise RuntimeError(f"aminmax: expected out tensors of dtype {input.dtype} (got {target.dtype}).")
    found = operators.aminmax([operators.amin(input, dim, keepdim), operators.amax(input, dim, keepdim)])
    return into("aminmax", named_result("aminmax", "min", "max")(*found), out)


def _spread_arguments(operation, dim, unbiased, correction):
    """Return dim and correction of any accepted signature."""
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    if unbiased is not None and correction is not None:
        raise TypeError(f"{operation}: unbiased and correction are mutually exclusive (got unbiased={unbiased} and "
                        f"correction={correction}).")
    if correction is None:
        correction = 0 if unbiased is False else 1
    return dim, correction


@spelled
@documented(_PARAMETERS, returns=_RETURNED)
def var(input, dim=None, unbiased=None, keepdim=False, *, correction=None, out=None):
    """Return the variance.

    Parameters
    ----------
    input : Tensor
        Floating point or complex.
    dim : int or tuple of int, optional
        Dimensions to reduce; default all. A bool is used as `unbiased`.
    keepdim : bool, default False
        Keep reduced dimensions with size 1.
    out : Tensor, optional
        Tensor that the result is written to.

    Examples
    --------
    >>> cygrad.var(cygrad.tensor([1., 2., 3.]))
    tensor(1.)
    """
    dim, correction = _spread_arguments("var", dim, unbiased, correction)
    return checked_freedom("var", correction, input,
                           operators.var(input, dim, correction=correction, keepdim=keepdim, out=out))


@spelled
@documented(_PARAMETERS, returns=_RETURNED)
def std(input, dim=None, unbiased=None, keepdim=False, *, correction=None, out=None):
    """Return the standard deviation.

    Parameters
    ----------
    input : Tensor
        Floating point or complex.
    dim : int or tuple of int, optional
        Dimensions to reduce; default all. A bool is used as `unbiased`.
    keepdim : bool, default False
        Keep reduced dimensions with size 1.
    out : Tensor, optional
        Tensor that the result is written to.

    Examples
    --------
    >>> cygrad.std(cygrad.tensor([1., 2., 3.]))
    tensor(1.)
    """
    dim, correction = _spread_arguments("std", dim, unbiased, correction)
    return checked_freedom("std", correction, input,
                           operators.std(input, dim, correction=correction, keepdim=keepdim, out=out))


@spelled
def var_mean(input, dim=None, unbiased=None, keepdim=False, *, correction=None):
    """Return the variance and the mean.

    Parameters
    ----------
    input : Tensor
    dim : int or tuple of int, optional
    unbiased : bool, optional
    keepdim : bool, default False
    correction : number, optional
        As for `var`.

    Returns
    -------
    tuple of Tensor

    Examples
    --------
    >>> cygrad.var_mean(cygrad.tensor([1., 2., 3.]))
    (tensor(1.), tensor(2.))
    """
    dim, correction = _spread_arguments("var_mean", dim, unbiased, correction)
    found = operators.var(input, dim, correction=correction, keepdim=keepdim)
    return tuple(operators.var_mean([checked_freedom("var_mean", correction, input, found),
                                     operators.mean(input, dim, keepdim)]))


@spelled
def std_mean(input, dim=None, unbiased=None, keepdim=False, *, correction=None):
    """Return the standard deviation and the mean.

    Parameters
    ----------
    input : Tensor
    dim : int or tuple of int, optional
    unbiased : bool, optional
    keepdim : bool, default False
    correction : number, optional
        As for `std`.

    Returns
    -------
    tuple of Tensor

    Examples
    --------
    >>> cygrad.std_mean(cygrad.tensor([1., 2., 3.]))
    (tensor(1.), tensor(2.))
    """
    dim, correction = _spread_arguments("std_mean", dim, unbiased, correction)
    found = operators.std(input, dim, correction=correction, keepdim=keepdim)
    return tuple(operators.std_mean([checked_freedom("std_mean", correction, input, found),
                                     operators.mean(input, dim, keepdim)]))


@spelled
def norm(input, p="fro", dim=None, keepdim=False, out=None, dtype=None):
    """Return a vector norm, along dimensions or of all elements.

    Parameters
    ----------
    input : Tensor
        Floating point or complex.
    p : number or "fro", default "fro"
        Order of the vector norm; "fro" is 2.
    dim : int or sequence of int, optional
        Dimensions to reduce; all if not given.
    keepdim : bool, default False
        Keep the reduced dimensions with size 1.
    out : Tensor, optional
        Tensor that the result is written to.
    dtype : dtype, optional
        dtype of the result.

    Returns
    -------
    Tensor
        Real. Derivative: 0 where the norm is 0 (the subgradient of minimum norm); for p = inf and -inf, elements with
        equal absolute value share it evenly.

    Raises
    ------
    RuntimeError
        If `p` is invalid.

    Notes
    -----
    ``sum(abs(input)**p)**(1/p)``; the largest absolute value for p = inf, the smallest for -inf, the number of elements
    that are not zero for 0.

    Examples
    --------
    >>> cygrad.norm(cygrad.tensor([[3.0, 4.0], [6.0, 8.0]]), 2, 1)
    tensor([ 5., 10.])
    """
    if p is None or p == "fro":
        p = 2
    elif p == "nuc":
        from cygrad.linalg import matrix_norm  # late import: linalg imports this package
        dims = (0, 1) if dim is None and input.ndim == 2 else dim
        if dims is None or isinstance(dims, int) or len(dims) != 2:
            raise RuntimeError(f"norm: the nuclear norm requires two dimensions (got shape {tuple(input.shape)} and "
                               f"dim={dim}). Pass two dimensions.")
        return into("norm", matrix_norm(input, "nuc", tuple(dims), keepdim, dtype=dtype), out)
    elif isinstance(p, str):
        raise RuntimeError(f"norm: unknown norm (got {p!r}, expected a number or 'fro'). Use linalg.matrix_norm for "
                           "matrix norms.")
    if out is None:
        return operators.norm(input, p, dim, keepdim, dtype=dtype)
    return operators.norm(input, p, dim, keepdim, dtype=dtype, out=out)
