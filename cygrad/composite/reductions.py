"""Reductions whose arguments choose between operators of the table."""

from collections import namedtuple

from cygrad._core.tensor import Tensor
from cygrad.composite.table import operators

__all__ = ["aminmax", "max", "min", "std", "std_mean", "var", "var_mean"]

Max = namedtuple("max", ["values", "indices"])
Min = namedtuple("min", ["values", "indices"])
AMinMax = namedtuple("aminmax", ["min", "max"])


def _extremum(name, input, dim, keepdim, other, out):
    """`max` and `min` in their three forms."""
    if not isinstance(input, Tensor):
        raise TypeError(f"{name}: argument 'input' must be a Tensor (got {type(input).__name__}).")
    if isinstance(dim, Tensor) and other is None:
        dim, other = None, dim
    if other is not None:
        if not isinstance(other, Tensor) or dim is not None:
            raise TypeError(f"{name}: takes a dimension or another Tensor (got dim={dim!r} and other of type "
                            f"{type(other).__name__}).")
        function = getattr(operators, f"{name}imum")
        return function(input, other) if out is None else function(input, other, out=out)
    if input.is_complex():
        raise NotImplementedError(f"{name}: complex numbers have no order (got {input.dtype}).")
    if dim is None:
        if input.numel() == 0:
            raise RuntimeError(f"{name}: a tensor without elements has no {name}imum (got shape "
                               f"{tuple(input.shape)}). Reduce a dimension that is not empty with dim=.")
        return getattr(operators, f"a{name}")(input)
    if isinstance(dim, bool) or not hasattr(dim, "__index__"):
        raise TypeError(f"{name}: dim must be an integer (got {dim!r}). Use a{name}() for several dimensions.")
    result = getattr(operators, f"{name}_dim")(input, dim, keepdim, out=out)
    return (Max if name == "max" else Min)(*result)


def max(input, dim=None, keepdim=False, *, other=None, out=None):
    """The largest element: of all, along a dimension, or of two tensors.

    Parameters
    ----------
    input : Tensor
        Real.
    dim : int or Tensor, optional
        Dimension to reduce. A Tensor here is taken for `other`.
    keepdim : bool, default False
        Keep the reduced dimension with size 1.
    other : Tensor, optional
        Compare with this one element by element, like `maximum`.
    out : Tensor or tuple of Tensor, optional
        Written to instead.

    Returns
    -------
    Tensor, or a named tuple (values, indices) if `dim` is given
        nan is larger than any number. Where several elements are largest, the whole reduction shares
        the gradient among them evenly; the one along a dimension gives all of it to the index returned.

    Raises
    ------
    RuntimeError
        If there are no elements.
    NotImplementedError
        For complex tensors.

    Examples
    --------
    >>> import cygrad
    >>> x = cygrad.tensor([[1., 4.], [3., 2.]])
    >>> cygrad.max(x)
    tensor(4.)
    >>> cygrad.max(x, 1).indices
    tensor([1, 0])
    """
    return _extremum("max", input, dim, keepdim, other, out)


def min(input, dim=None, keepdim=False, *, other=None, out=None):
    """The smallest element: of all, along a dimension, or of two tensors.

    Parameters
    ----------
    input : Tensor
        Real.
    dim : int or Tensor, optional
        Dimension to reduce. A Tensor here is taken for `other`.
    keepdim : bool, default False
        Keep the reduced dimension with size 1.
    other : Tensor, optional
        Compare with this one element by element, like `minimum`.
    out : Tensor or tuple of Tensor, optional
        Written to instead.

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
    >>> import cygrad
    >>> cygrad.min(cygrad.tensor([[1., 4.], [3., 2.]]), 1).values
    tensor([1., 2.])
    """
    return _extremum("min", input, dim, keepdim, other, out)


def aminmax(input, *, dim=None, keepdim=False):
    """Smallest and largest element.

    Parameters
    ----------
    input : Tensor
        Real.
    dim : int, optional
        Dimension to reduce; default all.
    keepdim : bool, default False
        Keep the reduced dimension with size 1.

    Returns
    -------
    named tuple (min, max) of Tensor

    Examples
    --------
    >>> import cygrad
    >>> cygrad.aminmax(cygrad.tensor([3., 1., 2.])).max
    tensor(3.)
    """
    if dim is None:
        dim = tuple(range(input.ndim))
    return AMinMax(operators.amin(input, dim, keepdim), operators.amax(input, dim, keepdim))


def _spread_arguments(operation, dim, unbiased, correction):
    """Dimensions and correction, from one of the spellings that users know."""
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    if unbiased is not None and correction is not None:
        raise TypeError(f"{operation}: give either unbiased or correction (got unbiased={unbiased} and "
                        f"correction={correction}).")
    if correction is None:
        correction = 0 if unbiased is False else 1
    return dim, correction


def var(input, dim=None, unbiased=None, keepdim=False, *, correction=None, out=None):
    """The variance.

    Parameters
    ----------
    input : Tensor
        Floating or complex.
    dim : int or tuple of int, optional
        Dimensions to reduce; default all. A bool here is taken for `unbiased`.
    unbiased : bool, optional
        True is ``correction=1``, False is ``correction=0``.
    keepdim : bool, default False
        Keep reduced dimensions with size 1.
    correction : number, optional
        Subtracted from the number of elements in the divisor; default 1.
    out : Tensor, optional
        Written to instead.

    Returns
    -------
    Tensor
        nan where the divisor is zero.

    Examples
    --------
    >>> import cygrad
    >>> cygrad.var(cygrad.tensor([1., 2., 3.]))
    tensor(1.)
    """
    dim, correction = _spread_arguments("var", dim, unbiased, correction)
    return operators.var(input, dim, correction=correction, keepdim=keepdim, out=out)


def std(input, dim=None, unbiased=None, keepdim=False, *, correction=None, out=None):
    """The standard deviation.

    Parameters
    ----------
    input : Tensor
        Floating or complex.
    dim : int or tuple of int, optional
        Dimensions to reduce; default all. A bool here is taken for `unbiased`.
    unbiased : bool, optional
        True is ``correction=1``, False is ``correction=0``.
    keepdim : bool, default False
        Keep reduced dimensions with size 1.
    correction : number, optional
        Subtracted from the number of elements in the divisor; default 1.
    out : Tensor, optional
        Written to instead.

    Returns
    -------
    Tensor
        nan where the divisor is zero.

    Examples
    --------
    >>> import cygrad
    >>> cygrad.std(cygrad.tensor([1., 2., 3.]))
    tensor(1.)
    """
    dim, correction = _spread_arguments("std", dim, unbiased, correction)
    return operators.std(input, dim, correction=correction, keepdim=keepdim, out=out)


def var_mean(input, dim=None, unbiased=None, keepdim=False, *, correction=None):
    """The variance and the mean.

    Parameters
    ----------
    input : Tensor
    dim : int or tuple of int, optional
    unbiased : bool, optional
    keepdim : bool, default False
    correction : number, optional
        All as for `var`.

    Returns
    -------
    tuple of Tensor

    Examples
    --------
    >>> import cygrad
    >>> cygrad.var_mean(cygrad.tensor([1., 2., 3.]))
    (tensor(1.), tensor(2.))
    """
    dim, correction = _spread_arguments("var_mean", dim, unbiased, correction)
    return (operators.var(input, dim, correction=correction, keepdim=keepdim),
            operators.mean(input, dim, keepdim))


def std_mean(input, dim=None, unbiased=None, keepdim=False, *, correction=None):
    """The standard deviation and the mean.

    Parameters
    ----------
    input : Tensor
    dim : int or tuple of int, optional
    unbiased : bool, optional
    keepdim : bool, default False
    correction : number, optional
        All as for `std`.

    Returns
    -------
    tuple of Tensor

    Examples
    --------
    >>> import cygrad
    >>> cygrad.std_mean(cygrad.tensor([1., 2., 3.]))
    (tensor(1.), tensor(2.))
    """
    dim, correction = _spread_arguments("std_mean", dim, unbiased, correction)
    return (operators.std(input, dim, correction=correction, keepdim=keepdim),
            operators.mean(input, dim, keepdim))
