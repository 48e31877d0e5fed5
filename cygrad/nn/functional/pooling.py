"""Pooling and unpooling."""

from math import inf
from typing import Any

import cygrad
from cygrad._core.dispatch.binding import StaticFunction
from cygrad._core.table.docstrings import documented
from cygrad._core.table.operator import operators
from cygrad.composite.mixed_precision import computes_in
from cygrad.composite.out_forms import as_tensor_argument
from cygrad.nn.functional.convolution import in_order_of, spread

__all__ = [f"{kind}_pool{n}d" for kind in ("max", "avg", "lp") for n in (1, 2, 3)] + [
    f"max_{kind}" for n in (1, 2, 3) for kind in (f"pool{n}d_with_indices", f"unpool{n}d")]

_max_pool, _avg_pool, _max_unpool = operators.max_pool, operators.avg_pool, operators.max_unpool


def _max(n, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices):
    operation = f"max_pool{n}d"
    kernel_size = spread(kernel_size, n, operation, "kernel_size")
    values, indices = _max_pool(input, kernel_size, _stride(stride, kernel_size), padding, dilation, ceil_mode)
    return (values, indices) if return_indices else values


def _stride(stride, kernel_size):
    """Return the stride; the kernel size by default."""
    return kernel_size if stride is None or (isinstance(stride, tuple | list) and not stride) else stride


def _average(n, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override=None):
    kernel_size = spread(kernel_size, n, f"avg_pool{n}d", "kernel_size")
    return _avg_pool(input, kernel_size, _stride(stride, kernel_size), padding, ceil_mode, count_include_pad,
                     divisor_override)


def _power_average(n, input, norm_type, kernel_size, stride, ceil_mode):
    """Compute the p-norm of each window: sum powers as an average times the window size."""
    as_tensor_argument(f"lp_pool{n}d", "input", input)
    kernel_size = spread(kernel_size, n, f"lp_pool{n}d", "kernel_size")
    if norm_type == 0:
        raise ValueError(f"lp_pool{n}d: norm_type must not be zero (got {norm_type}).")
    if norm_type in (inf, -inf):
        sign = 1 if norm_type > 0 else -1
        return sign * _max(n, sign * cygrad.abs(input), kernel_size, stride, 0, 1, ceil_mode, False)
    scale: Any = 1
    if input.is_floating_point() and input.numel():
        # Scale by a power of two, which is exact, to avoid overflow.
        largest = cygrad.amax(cygrad.abs(input.detach()))
        scale = cygrad.where((largest > 0) & cygrad.isfinite(largest), largest, 1)
        scale = cygrad.ldexp(cygrad.ones_like(scale), cygrad.frexp(scale).exponent - 1)
        input = input / scale
    average = _average(n, cygrad.pow(input, norm_type), kernel_size, stride, 0, ceil_mode, True)
    count = 1
    for size in kernel_size:
        count *= size
    return (cygrad.sign(average) * cygrad.relu(cygrad.abs(average)) * count).pow(1.0 / norm_type) * scale


def _unpool(n, input, indices, kernel_size, stride, padding, output_size):
    operation = f"max_unpool{n}d"
    kernel_size = spread(kernel_size, n, operation, "kernel_size")
    stride = spread(_stride(stride, kernel_size), n, operation, "stride")
    padding = spread(padding, n, operation, "padding")
    if input.ndim not in (n + 1, n + 2):
        raise RuntimeError(f"{operation}: expected {n + 1}D (unbatched) or {n + 2}D (batched) input (got shape "
                           f"{input.shape}).")
    usual = [(size - 1) * step + kernel - 2 * pad
             for size, step, kernel, pad in zip(input.shape[-n:], stride, kernel_size, padding, strict=True)]
    sizes = usual if output_size is None else list(output_size)
    if len(sizes) == n + 2:
        sizes = sizes[2:]
    if len(sizes) != n:
        raise ValueError(f"{operation}: output_size should be a sequence containing {n} or {n + 2} elements (got "
                         f"{len(sizes)}).")
    for size, wanted, step in zip(sizes, usual, stride, strict=True):
        if output_size is not None and not wanted - step < size < wanted + step:
            raise ValueError(f"{operation}: invalid output_size (got {sizes}, expected {usual}, each within less than "
                             f"the stride {list(stride)}).")
    if min(sizes) < 0:
        raise RuntimeError(f"{operation}: the output size is too small (got {sizes}).")
    return in_order_of(input, _max_unpool(input, indices, (*input.shape[:-n], *sizes), n))


_RETURNED = "Tensor, or a tuple (values, indices)"


@StaticFunction
@documented(returns=_RETURNED)
def max_pool1d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """
    Return the maximum of each window of a sequence.

    Parameters
    ----------
    input : Tensor
        Real, of shape (batch, channels, length) or (channels, length).
    kernel_size : int or tuple
        Size of a window.
    stride : int or tuple, optional
        Step between windows; the kernel size by default.
    padding : int or tuple, default 0
        Implicit -inf padding at both ends, at most half of the kernel size.
    dilation : int or tuple, default 1
        Spacing of the elements of a window.
    ceil_mode : bool, default False
        Whether windows that exceed the end of the input count.
    return_indices : bool, default False
        Whether the indices of the maxima are returned as well, for `max_unpool1d`.

    Raises
    ------
    RuntimeError
        If the number of dimensions is wrong, or the output is empty.

    Notes
    -----
    Derivative: 1 for the first maximum of a window. nan is the maximum.

    Examples
    --------
    >>> x = cygrad.tensor([[1.0, 3.0, 2.0, 0.0]])
    >>> cygrad.nn.functional.max_pool1d(x, 2, return_indices=True)
    (tensor([[3., 2.]]), tensor([[1, 2]]))
    """
    return _max(1, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@StaticFunction
@documented(returns=_RETURNED)
def max_pool2d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """
    Return the maximum of each window of an image; options as for `max_pool1d`.

    Parameters
    ----------
    input : Tensor
        Real, of shape (batch, channels, height, width) or without the batch.
    kernel_size, stride, padding, dilation : int or tuple of two
    ceil_mode, return_indices : bool, default False

    Notes
    -----
    Derivative: 1 for the first maximum of a window. nan is the maximum.

    Examples
    --------
    >>> cygrad.nn.functional.max_pool2d(cygrad.arange(16.0).reshape(1, 4, 4), 2)
    tensor([[[ 5.,  7.],
             [13., 15.]]])
    """
    return _max(2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@StaticFunction
@computes_in("float32")
@documented(returns=_RETURNED)
def max_pool3d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """
    Return the maximum of each window of a volume; options as for `max_pool1d`.

    Parameters
    ----------
    input : Tensor
        Real, of shape (batch, channels, depth, height, width) or without the batch.
    kernel_size, stride, padding, dilation : int or tuple of three
    ceil_mode, return_indices : bool, default False

    Examples
    --------
    >>> cygrad.nn.functional.max_pool3d(cygrad.arange(8.0).reshape(1, 2, 2, 2), 2)
    tensor([[[[7.]]]])
    """
    return _max(3, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool1d_with_indices(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False,
                            return_indices=True):
    """
    Return `max_pool1d` and the indices of the maxima.

    Examples
    --------
    >>> F.max_pool1d_with_indices(cygrad.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
    (tensor([[3., 2.]]), tensor([[1, 2]]))
    """
    return _max(1, input, kernel_size, stride, padding, dilation, ceil_mode, True)


def max_pool2d_with_indices(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False,
                            return_indices=True):
    """
    Return `max_pool2d` and the indices of the maxima.

    Examples
    --------
    >>> values, indices = F.max_pool2d_with_indices(cygrad.arange(16.0).reshape(1, 4, 4), 2)
    >>> indices
    tensor([[[ 5,  7],
             [13, 15]]])
    """
    return _max(2, input, kernel_size, stride, padding, dilation, ceil_mode, True)


@computes_in("float32")
def max_pool3d_with_indices(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False,
                            return_indices=True):
    """
    Return `max_pool3d` and the indices of the maxima.

    Examples
    --------
    >>> values, indices = F.max_pool3d_with_indices(cygrad.arange(8.0).reshape(1, 2, 2, 2), 2)
    >>> indices
    tensor([[[[7]]]])
    """
    return _max(3, input, kernel_size, stride, padding, dilation, ceil_mode, True)


@documented()
def max_unpool1d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """
    Invert `max_pool1d` partially: write the elements to the indices of the maxima, and zeros elsewhere.

    Parameters
    ----------
    input : Tensor
        Of shape (batch, channels, length) or (channels, length).
    indices : Tensor
        Of the same shape, int64: indices into the result.
    kernel_size, stride, padding : int or tuple
        As for `max_pool1d`.
    output_size : sequence of int, optional
        Size of the result, because several sizes have the same pooled size.

    Raises
    ------
    RuntimeError
        If an index is out of bounds.
    ValueError
        If `output_size` is out of range.

    Notes
    -----
    Derivative: the gradient at the indices. The last element with an index is written.

    Examples
    --------
    >>> values, places = cygrad.nn.functional.max_pool1d(cygrad.tensor([[1.0, 3.0, 2.0, 0.0]]), 2, return_indices=True)
    >>> cygrad.nn.functional.max_unpool1d(values, places, 2)
    tensor([[0., 3., 2., 0.]])
    """
    return _unpool(1, input, indices, kernel_size, stride, padding, output_size)


@documented()
def max_unpool2d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """
    Invert `max_pool2d` partially; see `max_unpool1d`.

    Parameters
    ----------
    input : Tensor
        Of shape (batch, channels, height, width) or without the batch.
    indices : Tensor
        Of the same shape, int64.
    kernel_size, stride, padding : int or tuple of two
    output_size : sequence of int, optional

    Examples
    --------
    >>> values, indices = F.max_pool2d_with_indices(cygrad.arange(4.0).reshape(1, 2, 2), 2)
    >>> F.max_unpool2d(values, indices, 2)
    tensor([[[0., 0.],
             [0., 3.]]])
    """
    return _unpool(2, input, indices, kernel_size, stride, padding, output_size)


@documented()
def max_unpool3d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """
    Invert `max_pool3d` partially; see `max_unpool1d`.

    Parameters
    ----------
    input : Tensor
        Of shape (batch, channels, depth, height, width) or without the batch.
    indices : Tensor
        Of the same shape, int64.
    kernel_size, stride, padding : int or tuple of three
    output_size : sequence of int, optional

    Examples
    --------
    >>> values, indices = F.max_pool3d_with_indices(cygrad.arange(8.0).reshape(1, 2, 2, 2), 2)
    >>> F.max_unpool3d(values, indices, 2).sum()
    tensor(7.)
    """
    return _unpool(3, input, indices, kernel_size, stride, padding, output_size)


@StaticFunction
@documented()
def avg_pool1d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
    """
    Return the average of each window of a sequence.

    Parameters
    ----------
    input : Tensor
        Of shape (batch, channels, length) or (channels, length); float32, float64 or int64.
    kernel_size : int or tuple
    stride : int or tuple, optional
        Step between windows; the kernel size by default.
    padding : int or tuple, default 0
        Zeros added at both ends, at most half of the kernel size.
    ceil_mode : bool, default False
        Whether windows that exceed the end of the input count.
    count_include_pad : bool, default True
        Whether padding counts in the divisor.

    Raises
    ------
    RuntimeError
        If the number of dimensions is wrong, or the output is empty.

    Examples
    --------
    >>> cygrad.nn.functional.avg_pool1d(cygrad.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
    tensor([[2., 1.]])
    """
    return _average(1, input, kernel_size, stride, padding, ceil_mode, count_include_pad)


@StaticFunction
@documented()
def avg_pool2d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True,
               divisor_override=None):
    """
    Return the average of each window of an image; options as for `avg_pool1d`.

    Parameters
    ----------
    input : Tensor
        Of shape (batch, channels, height, width) or without the batch; float32, float64 or int64.
    kernel_size, stride, padding : int or tuple of two
    ceil_mode : bool, default False
    count_include_pad : bool, default True
    divisor_override : int, optional
        Divisor of the sums instead of the window size.

    Examples
    --------
    >>> cygrad.nn.functional.avg_pool2d(cygrad.arange(16.0).reshape(1, 4, 4), 2)
    tensor([[[ 2.5000,  4.5000],
             [10.5000, 12.5000]]])
    """
    return _average(2, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


@StaticFunction
@computes_in("float32")
@documented()
def avg_pool3d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True,
               divisor_override=None):
    """
    Return the average of each window of a volume; options as for `avg_pool2d`.

    Parameters
    ----------
    input : Tensor
        Of shape (batch, channels, depth, height, width) or without the batch; float32, float64 or int64.
    kernel_size, stride, padding : int or tuple of three
    ceil_mode : bool, default False
    count_include_pad : bool, default True
    divisor_override : int, optional

    Examples
    --------
    >>> F.avg_pool3d(cygrad.arange(8.0).reshape(1, 2, 2, 2), 2)
    tensor([[[[3.5000]]]])
    """
    return _average(3, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


@documented()
def lp_pool1d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """
    Return the p-norm of each window of a sequence: ``sum(x**p)**(1/p)``.

    Parameters
    ----------
    input : Tensor
        Of shape (batch, channels, length) or (channels, length).
    norm_type : float
        The power p; for inf and -inf the result is the largest and the smallest absolute value.
    kernel_size : int or tuple
    stride : int or tuple, optional
        Step between windows; the kernel size by default.
    ceil_mode : bool, default False
        Whether windows that exceed the end of the input count.

    Notes
    -----
    Derivative: of the formula; not finite where a sum is 0, unless p is 1.

    Examples
    --------
    >>> cygrad.nn.functional.lp_pool1d(cygrad.tensor([[3.0, 4.0]]), 2, 2)
    tensor([[5.]])
    """
    return _power_average(1, input, norm_type, kernel_size, stride, ceil_mode)


@documented()
def lp_pool2d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """
    Return the p-norm of each window of an image; see `lp_pool1d`.

    Parameters
    ----------
    input : Tensor
        Of shape (batch, channels, height, width) or without the batch.
    norm_type : float
    kernel_size, stride : int or tuple of two
    ceil_mode : bool, default False

    Examples
    --------
    >>> F.lp_pool2d(cygrad.ones(1, 4, 4), 2, 2)
    tensor([[[2., 2.],
             [2., 2.]]])
    """
    return _power_average(2, input, norm_type, kernel_size, stride, ceil_mode)


@documented()
def lp_pool3d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """
    Return the p-norm of each window of a volume; see `lp_pool1d`.

    Parameters
    ----------
    input : Tensor
        Of shape (batch, channels, depth, height, width) or without the batch.
    norm_type : float
    kernel_size, stride : int or tuple of three
    ceil_mode : bool, default False

    Examples
    --------
    >>> F.lp_pool3d(cygrad.ones(1, 2, 2, 2), 1, 2)
    tensor([[[[8.]]]])
    """
    return _power_average(3, input, norm_type, kernel_size, stride, ceil_mode)
