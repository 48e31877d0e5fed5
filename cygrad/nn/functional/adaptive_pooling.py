"""Pooling to a given output size."""

from cygrad._core.graph.argument_errors import as_sizes
from cygrad._core.table.docstrings import documented
from cygrad._core.table.operator import operators
from cygrad.composite.mixed_precision import computes_in
from cygrad.composite.out_forms import as_tensor_argument

__all__ = [f"adaptive_{kind}{n}d{end}" for n in (1, 2, 3)
           for kind, end in (("avg_pool", ""), ("max_pool", ""), ("max_pool", "_with_indices"))]

_adaptive_max_pool, _adaptive_avg_pool = operators.adaptive_max_pool, operators.adaptive_avg_pool


def _output_size(input, output_size, n, operation):
    """Return the output sizes; None keeps the size of the input."""
    if isinstance(output_size, int):
        return (output_size,) * n
    as_tensor_argument(operation, "input", input)
    if output_size is not None and not isinstance(output_size, (tuple, list)):
        output_size = as_sizes(operation, "output_size", output_size, n)
    sizes = tuple(output_size) if output_size is not None else (None,)
    if len(sizes) != n:
        raise RuntimeError(f"{operation}: output_size must be an integer or {n} of them (got {list(sizes)}).")
    if input.ndim < n:
        return tuple(0 if size is None else size for size in sizes)     # the kernel raises the error
    return tuple(old if size is None else size for size, old in zip(sizes, input.shape[-n:], strict=True))


def _check_adaptive(n, input, output_size, operation):
    if n > 1 and as_tensor_argument(operation, "input", input).ndim <= n and not isinstance(output_size, int):
        raise ValueError(f"{operation}: Input dimension should be at least {n + 1} (got {input.ndim}).")


def _adaptive_max(n, input, output_size, return_indices):
    _check_adaptive(n, input, output_size, f"adaptive_max_pool{n}d")
    values, indices = _adaptive_max_pool(input, _output_size(input, output_size, n, f"adaptive_max_pool{n}d"))
    return (values, indices) if return_indices else values


def _adaptive_average(n, input, output_size):
    _check_adaptive(n, input, output_size, f"adaptive_avg_pool{n}d")
    return _adaptive_avg_pool(input, _output_size(input, output_size, n, f"adaptive_avg_pool{n}d"))


@documented(returns="Tensor, or a tuple (values, indices)")
def adaptive_max_pool1d(input, output_size, return_indices=False):
    """
    Return the maxima of `output_size` windows of nearly equal size.

    Parameters
    ----------
    input : Tensor
        Real, of shape (batch, channels, length) or (channels, length).
    output_size : int
    return_indices : bool, default False
        Whether the indices of the maxima are returned as well.

    Notes
    -----
    Window i covers the elements from ``floor(i * length / output_size)`` to ``ceil((i + 1) * length / output_size)``.

    Examples
    --------
    >>> cygrad.nn.functional.adaptive_max_pool1d(cygrad.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
    tensor([[3., 2.]])
    """
    return _adaptive_max(1, input, output_size, return_indices)


def adaptive_max_pool2d(input, output_size, return_indices=False):
    """
    Apply `adaptive_max_pool1d` in two dimensions; None keeps a size of the input.

    Examples
    --------
    >>> F.adaptive_max_pool2d(cygrad.arange(8.0).reshape(1, 4, 2), (2, 2))
    tensor([[[2., 3.],
             [6., 7.]]])
    """
    return _adaptive_max(2, input, output_size, return_indices)


@computes_in("float32")
def adaptive_max_pool3d(input, output_size, return_indices=False):
    """
    Apply `adaptive_max_pool1d` in three dimensions; None keeps a size of the input.

    Examples
    --------
    >>> F.adaptive_max_pool3d(cygrad.arange(8.0).reshape(1, 2, 2, 2), 1)
    tensor([[[[7.]]]])
    """
    return _adaptive_max(3, input, output_size, return_indices)


def adaptive_max_pool1d_with_indices(input, output_size, return_indices=True):
    """
    Return `adaptive_max_pool1d` and the indices of the maxima.

    Examples
    --------
    >>> F.adaptive_max_pool1d_with_indices(cygrad.arange(6.0).reshape(1, 6), 2)
    (tensor([[2., 5.]]), tensor([[2, 5]]))
    """
    return _adaptive_max(1, input, output_size, True)


def adaptive_max_pool2d_with_indices(input, output_size, return_indices=True):
    """
    Return `adaptive_max_pool2d` and the indices of the maxima.

    Examples
    --------
    >>> values, indices = F.adaptive_max_pool2d_with_indices(cygrad.arange(8.0).reshape(1, 4, 2), (2, 1))
    >>> indices
    tensor([[[3],
             [7]]])
    """
    return _adaptive_max(2, input, output_size, True)


@computes_in("float32")
def adaptive_max_pool3d_with_indices(input, output_size, return_indices=True):
    """
    Return `adaptive_max_pool3d` and the indices of the maxima.

    Examples
    --------
    >>> values, indices = F.adaptive_max_pool3d_with_indices(cygrad.arange(8.0).reshape(1, 2, 2, 2), 1)
    >>> indices
    tensor([[[[7]]]])
    """
    return _adaptive_max(3, input, output_size, True)


@documented()
def adaptive_avg_pool1d(input, output_size):
    """
    Return the averages of `output_size` windows of nearly equal size, as in `adaptive_max_pool1d`.

    Parameters
    ----------
    input : Tensor
        Floating point, of shape (batch, channels, length) or (channels, length).
    output_size : int

    Examples
    --------
    >>> cygrad.nn.functional.adaptive_avg_pool1d(cygrad.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
    tensor([[2., 1.]])
    """
    return _adaptive_average(1, input, output_size)


def adaptive_avg_pool2d(input, output_size):
    """
    Apply `adaptive_avg_pool1d` in two dimensions; None keeps a size of the input.

    Examples
    --------
    >>> F.adaptive_avg_pool2d(cygrad.arange(8.0).reshape(1, 4, 2), (2, 1))
    tensor([[[1.5000],
             [5.5000]]])
    """
    return _adaptive_average(2, input, output_size)


@computes_in("float32")
def adaptive_avg_pool3d(input, output_size):
    """
    Apply `adaptive_avg_pool1d` in three dimensions; None keeps a size of the input.

    Examples
    --------
    >>> F.adaptive_avg_pool3d(cygrad.arange(8.0).reshape(1, 2, 2, 2), 1)
    tensor([[[[3.5000]]]])
    """
    return _adaptive_average(3, input, output_size)
