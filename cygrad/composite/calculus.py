"""Differences, numerical derivatives and integrals along a dimension."""

from cygrad._core.graph.argument_errors import as_dim, as_integer
from cygrad._core.graph.tensor import Tensor
from cygrad._core.table.operator import operators
from cygrad.composite.mixed_precision import rounded_once
from cygrad.composite.out_forms import as_tensor_argument, into, spelled

__all__ = ["cumulative_trapezoid", "diff", "gradient", "trapezoid", "trapz"]
METHODS = ["diff"]


def _wrapped(operation, input, dim):
    """Return the dimension as a nonnegative number."""
    return as_dim(operation, dim, input.ndim)


def _part(input, dim, start, end):
    return operators.slice(input, dim, start, end, 1)


@spelled
def diff(input, n=1, dim=-1, prepend=None, append=None, *, out=None):
    """Return the differences of adjacent elements along a dimension.

    Parameters
    ----------
    input : Tensor
        Of at least one dimension. For bool, the result is whether neighbors differ.
    n : int, default 1
        Number of times that differences are taken.
    dim : int, default -1
    prepend, append : Tensor, optional
        Concatenated to `input` along `dim` first.
    out : Tensor, optional
        Tensor that the result is written to.

    Returns
    -------
    Tensor
        Smaller by `n` along the dimension.

    Raises
    ------
    RuntimeError
        If `n` is negative or there are no dimensions.

    Examples
    --------
    >>> cygrad.diff(cygrad.tensor([1, 4, 9]))
    tensor([3, 5])
    """
    as_tensor_argument("diff", "input", input)
    if input.ndim == 0:
        raise RuntimeError("diff: expected at least one dimension (got shape ()).")
    if (n := as_integer("diff", "n", n)) < 0:
        raise RuntimeError(f"diff: n must not be negative (got {n}).")
    dim = _wrapped("diff", input, dim)
    if n == 0:
        return into("diff", operators.clone(input), out, casts=True)
    parts = [part for part in (prepend, input, append) if part is not None]
    result = operators.cat(parts, dim) if len(parts) > 1 else input
    subtract = operators.ne if str(input.dtype).endswith(".bool") else operators.sub
    for _ in range(min(n, result.shape[dim])):
        result = subtract(_part(result, dim, 1, None), _part(result, dim, None, -1))
    return into("diff", operators.clone(result) if result is input else result, out, casts=True)


# ---- derivatives

def _steps(operation, spacing, input, dims):
    """Return the spacing or the coordinates along each dimension."""
    if isinstance(spacing, Tensor):
        raise RuntimeError(f"{operation}: spacing must be a number or a sequence of numbers or Tensors (got a Tensor).")
    if not isinstance(spacing, (list, tuple)):
        return [spacing] * len(dims)
    if len(spacing) != len(dims):
        raise RuntimeError(f"{operation}: expected one spacing for each dimension (got {len(spacing)} and "
                           f"{len(dims)}).")
    for step, dim in zip(spacing, dims, strict=True):
        if isinstance(step, Tensor) and tuple(step.shape) != (input.shape[dim],):
            raise RuntimeError(f"{operation}: expected one coordinate for each element along the dimension (got shape "
                               f"{tuple(step.shape)}, expected ({input.shape[dim]},)).")
    return list(spacing)


def _along(vector, input, dim):
    """Return a vector as a view along a dimension of a tensor."""
    return operators.reshape(vector, tuple(vector.numel() if k == dim else 1 for k in range(input.ndim)))


def _edges(input, dim, left, right, order):
    """Return the one-sided derivatives at both ends."""
    first, last = _part(input, dim, 0, order + 1), _part(input, dim, -order - 1, None)
    one = lambda x, k: _part(x, dim, k, k + 1)  # noqa: E731
    if order == 1:
        return (operators.div(operators.sub(one(first, 1), one(first, 0)), left[0]),
                operators.div(operators.sub(one(last, 1), one(last, 0)), right[1]))
    (a, b), (c, d) = left, right
    start = one(first, 0) * (-(2 * a + b) / (a * (a + b))) + one(first, 1) * ((a + b) / (a * b)) - one(first, 2) * (
        a / (b * (a + b)))
    end = one(last, 0) * (d / (c * (c + d))) - one(last, 1) * ((c + d) / (c * d)) + one(last, 2) * (
        (2 * d + c) / (d * (c + d)))
    return start, end


def _gradient_along(input, dim, step, order):
    """Return second-order central differences, and differences of order `order` at the ends."""
    size = input.shape[dim]
    if isinstance(step, Tensor):
        steps = operators.sub(_part(step, 0, 1, None), _part(step, 0, None, -1))
        before, after = _along(_part(steps, 0, None, -1), input, dim), _along(_part(steps, 0, 1, None), input, dim)
        numbers = [operators.select(steps, 0, k) for k in (0, 1 if size > 2 else 0, -2 if size > 2 else -1, -1)]
        left, right = tuple(numbers[:2]), tuple(numbers[2:])
    else:
        before = after = step
        left = right = (step, step)
    lower, middle, upper = _part(input, dim, None, -2), _part(input, dim, 1, -1), _part(input, dim, 2, None)
    if isinstance(step, Tensor):
        within = (lower * (-after / (before * (before + after))) + middle * ((after - before) / (before * after))
                  + upper * (before / (after * (before + after))))
    else:
        within = operators.div(operators.sub(upper, lower), 2 * step)
    start, end = _edges(input, dim, left, right, order)
    return operators.cat([start, within, end], dim)


def gradient(input, *, spacing=1, dim=None, edge_order=1):
    """Estimate the gradient of sampled values by central differences.

    Parameters
    ----------
    input : Tensor
        Samples of a function.
    spacing : number, or sequence of number or Tensor, default 1
        Step between samples; or for each dimension its step or the coordinates of the samples.
    dim : int or sequence of int, optional
        All dimensions by default.
    edge_order : {1, 2}, default 1
        Order of the one-sided differences at the ends.

    Returns
    -------
    tuple of Tensor
        The derivative along each dimension, of the shape of `input`.

    Raises
    ------
    RuntimeError
        If a dimension has `edge_order` elements or less, or the dtype is unsigned or bool.

    Notes
    -----
    Differences are exact for polynomials of degree 2, and of degree `edge_order` at the ends (Fornberg,
    "Generation of finite difference formulas on arbitrarily spaced grids", 1988).

    Examples
    --------
    >>> cygrad.gradient(cygrad.tensor([1., 4., 9., 16.]))
    (tensor([3., 4., 6., 7.]),)
    """
    if not as_tensor_argument("gradient", "input", input).dtype.is_signed:
        raise RuntimeError("gradient: expected a signed dtype, whose differences do not wrap around (got "
                           f"{input.dtype}). Convert with to() first.")
    if edge_order not in (1, 2):
        raise RuntimeError(f"gradient: edge_order must be 1 or 2 (got {edge_order}).")
    if dim is None and isinstance(spacing, (list, tuple)) and len(spacing) != input.ndim:
        raise RuntimeError(f"gradient: expected one spacing for each dimension (got {len(spacing)} and "
                           f"{input.ndim}).")
    given = range(input.ndim) if dim is None else dim if isinstance(dim, (list, tuple)) else (dim,)
    dims = [_wrapped("gradient", input, item) for item in given]
    if len(set(dims)) < len(dims):
        raise RuntimeError(f"gradient: dimensions must be unique (got {dim}).")
    for item in dims:
        if input.shape[item] <= edge_order:
            raise RuntimeError(f"gradient: expected more than edge_order elements along each dimension (got shape "
                               f"{tuple(input.shape)} and edge_order {edge_order}).")
    steps = _steps("gradient", 1 if spacing is None else spacing, input, dims)
    return tuple(_gradient_along(input, item, step, edge_order) for item, step in zip(dims, steps, strict=True))


# ---- integrals

def _trapezoids(operation, y, x, dx, dim):
    """Return the areas between adjacent points, and the dimension."""
    if str(as_tensor_argument(operation, "y", y).dtype).endswith(".bool"):
        raise RuntimeError(f"{operation}: bool is not supported (got {y.dtype}). Convert with to() first.")
    dim = _wrapped(operation, y, dim)
    sums = operators.add(_part(y, dim, 1, None), _part(y, dim, None, -1))
    if x is None:
        return operators.mul(sums, dx / 2), dim
    as_tensor_argument(operation, "x", x)
    if x.ndim == 1:
        if x.shape[0] != y.shape[dim]:
            raise RuntimeError(f"{operation}: expected one coordinate for each sample (got {x.shape[0]} and "
                               f"{y.shape[dim]}).")
        widths = _along(operators.sub(_part(x, 0, 1, None), _part(x, 0, None, -1)), y, dim)
    else:
        x = operators.reshape(x, (1,) * (y.ndim - x.ndim) + tuple(x.shape)) if x.ndim < y.ndim else x
        widths = operators.sub(_part(x, dim, 1, None), _part(x, dim, None, -1))
    return operators.div(operators.mul(sums, widths), 2), dim


@rounded_once
def trapezoid(y, x=None, *, dx=None, dim=-1):
    """Integrate along a dimension by the trapezoidal rule.

    Parameters
    ----------
    y : Tensor
        Samples.
    x : Tensor, optional
        Coordinates of the samples: a vector, or of a shape that broadcasts with `y`.
    dx : number, default 1
        Step between samples; mutually exclusive with `x`.
    dim : int, default -1

    Returns
    -------
    Tensor
        Without dimension `dim`.

    Raises
    ------
    RuntimeError
        If both `x` and `dx` are given, or the number of coordinates does not match.

    Examples
    --------
    >>> cygrad.trapezoid(cygrad.tensor([1., 2., 3.]))
    tensor(4.)
    """
    _one_of(x, dx, "trapezoid")
    areas, dim = _trapezoids("trapezoid", y, x, 1 if dx is None else dx, dim)
    return operators.sum(areas, (dim,))


def _one_of(x, dx, operation):
    if x is not None and dx is not None:
        raise TypeError(f"{operation}: x and dx are mutually exclusive (got both).")


trapz = trapezoid


@rounded_once
def cumulative_trapezoid(y, x=None, *, dx=None, dim=-1):
    """Integrate cumulatively along a dimension by the trapezoidal rule.

    Parameters
    ----------
    y : Tensor
        Samples.
    x : Tensor, optional
        Coordinates of the samples: a vector, or of a shape that broadcasts with `y`.
    dx : number, default 1
        Step between samples; mutually exclusive with `x`.
    dim : int, default -1

    Returns
    -------
    Tensor
        Smaller by one along the dimension.

    Raises
    ------
    RuntimeError
        If both `x` and `dx` are given, or the number of coordinates does not match.

    Examples
    --------
    >>> cygrad.cumulative_trapezoid(cygrad.tensor([1., 2., 3.]))
    tensor([1.5000, 4.0000])
    """
    _one_of(x, dx, "cumulative_trapezoid")
    areas, dim = _trapezoids("cumulative_trapezoid", y, x, 1 if dx is None else dx, dim)
    return operators.cumsum(areas, dim)
