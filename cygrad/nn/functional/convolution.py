"""Convolutions and transposed convolutions: operators with PyTorch's options."""

import cygrad
from cygrad._core.dispatch.binding import StaticFunction
from cygrad._core.graph.argument_errors import as_sizes
from cygrad._core.table.docstrings import documented
from cygrad._core.table.operator import operators
from cygrad.composite.out_forms import as_tensor_argument

__all__ = ["conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"]

_convolution, _convolution_input = operators.convolution, operators.convolution_input_backward
_KERNEL = ("width", "height and width", "depth, height and width")


def spread(value, n, operation, name):
    """Return one integer for each of `n` dimensions."""
    if isinstance(value, int):
        return (value,) * n
    try:
        values = tuple(value)
    except TypeError:
        values = as_sizes(operation, name, value, n)
    if len(values) == 1:
        return values * n
    if len(values) != n:
        raise RuntimeError(f"{operation}: {name} must be one integer, or one for each of the {n} dimensions "
                           f"(got {name}={list(values)}).")
    return values


def in_order_of(input, result):
    """Return the result, in channels_last if the input is."""
    if input.is_contiguous():
        return result
    order = {4: cygrad.channels_last, 5: cygrad.channels_last_3d}.get(input.ndim)
    if order is None or not input.is_contiguous(memory_format=order):
        return result
    return result.contiguous(memory_format=order)


def _with_batch(input, n, operation):
    """Return the input with a batch dimension, and whether it was added."""
    as_tensor_argument(operation, "input", input)
    if input.ndim == n + 2:
        return input, False
    if input.ndim == n + 1:
        return input.unsqueeze(0), True
    raise RuntimeError(f"{operation}: expected {n + 1}D (unbatched) or {n + 2}D (batched) input (got shape "
                       f"{input.shape}).")


def _padded(input, weight, stride, padding, dilation, n, operation):
    """Return the input and the numeric padding for "same" or "valid"."""
    if padding == "valid":
        return input, 0
    if padding != "same":
        raise RuntimeError(f"{operation}: invalid padding string (got {padding!r}, expected 'valid' or 'same').")
    if any(step != 1 for step in spread(stride, n, operation, "stride")):
        raise RuntimeError(f"{operation}: padding='same' requires a stride of 1 (got stride={stride}). Pass a number.")
    if weight.ndim != n + 2:
        return input, 0                                # the kernel raises the error, which names both shapes
    total = [step * (size - 1) for step, size in zip(spread(dilation, n, operation, "dilation"), weight.shape[2:],
                                                     strict=True)]
    uneven = [number % 2 for number in total]
    if any(uneven):
        pads = [part for odd in reversed(uneven) for part in (0, odd)]
        input = cygrad.nn.functional.pad(input, pads)
    return input, [number // 2 for number in total]


def _conv(n, input, weight, bias, stride, padding, dilation, groups, operation):
    input, single = _with_batch(input, n, operation)
    if isinstance(padding, str):
        input, padding = _padded(input, weight, stride, padding, dilation, n, operation)
    result = _convolution(input, weight, bias, stride, padding, dilation, groups)
    if weight.ndim > 1 and weight.shape[1] == 0:
        result = result[:, :0]               # no input channels: the result is empty
    return result.squeeze(0) if single else result


def _conv_transpose(n, input, weight, bias, stride, padding, output_padding, groups, dilation, operation):
    """Compute the gradient of the convolution with respect to an input of the output size."""
    if isinstance(padding, str):
        raise TypeError(f"{operation}: padding must be an integer or integers (got {padding!r}).")
    input, single = _with_batch(input, n, operation)
    stride, padding, output_padding, dilation = (
        spread(value, n, operation, name)
        for value, name in ((stride, "stride"), (padding, "padding"), (output_padding, "output_padding"),
                            (dilation, "dilation")))
    _check_transpose(n, input, weight, bias, stride, padding, output_padding, groups, dilation, operation)
    least = [(size - 1) * step - 2 * pad + reach * (kernel - 1) + 1
             for size, step, pad, reach, kernel in zip(input.shape[2:], stride, padding, dilation, weight.shape[2:],
                                                       strict=True)]
    # If output_padding reaches the stride, no input element contributes to the last part of the result.
    reached = [min(extra, step - 1) for extra, step in zip(output_padding, stride, strict=True)]
    rest = [extra - part for extra, part in zip(output_padding, reached, strict=True)]
    shape = [size + part for size, part in zip(least, reached, strict=True)]
    if any(size + extra < 1 for size, extra in zip(least, output_padding, strict=True)):
        raise RuntimeError(f"{operation}: the output size is too small (got input size {list(input.shape[2:])} and "
                           f"output size {[size + extra for size, extra in zip(least, output_padding, strict=True)]}, "
                           "expected at least 1). Use less padding.")
    channels = weight.shape[1] * groups
    if any(rest) or any(size < 1 for size in shape):
        result = _uncropped(input, weight, stride, padding, dilation, groups, least, output_padding)
        if bias is not None:
            result = result + bias.reshape((channels,) + (1,) * n)
    else:
        result = _convolution_input(input, weight, bias, (input.shape[0], channels, *shape), stride, padding, dilation,
                                    groups)
    return result.squeeze(0) if single else result


def _uncropped(input, weight, stride, padding, dilation, groups, least, output_padding):
    """Compute without padding, then crop or pad to the output size."""
    full = [size + 2 * pad for size, pad in zip(least, padding, strict=True)]
    result = _convolution_input(input, weight, None, (input.shape[0], weight.shape[1] * groups, *full), stride, 0,
                                dilation, groups)
    pads = [part for pad, extra in zip(reversed(padding), reversed(output_padding), strict=True)
            for part in (-pad, extra - pad)]
    return cygrad.nn.functional.pad(result, pads)


def _check_transpose(n, input, weight, bias, stride, padding, output_padding, groups, dilation, operation):
    if groups < 1:
        raise RuntimeError(f"{operation}: non-positive groups is not supported (got groups={groups}).")
    for name, values, least in (("stride", stride, 1), ("dilation", dilation, 1), ("padding", padding, 0),
                                ("output_padding", output_padding, 0)):
        if min(values) < least:
            raise RuntimeError(f"{operation}: {name} must be at least {least} (got {name}={list(values)}).")
    if as_tensor_argument(operation, "weight", weight).ndim != n + 2:
        raise RuntimeError(f"{operation}: weight must have {n + 2} dimensions, (in channels, out channels / groups, "
                           f"{_KERNEL[n - 1]}) (got shape {weight.shape}).")
    if input.dtype is not weight.dtype:
        raise RuntimeError(f"{operation}: input type ({input.dtype}) and weight type ({weight.dtype}) should be the "
                           "same. Convert one of them.")
    if weight.shape[0] < groups or weight.shape[0] % groups:
        raise RuntimeError(f"{operation}: expected weight to be at least {groups} and divisible by {groups} at "
                           f"dimension 0 (got shape {weight.shape}).")
    if input.shape[1] != weight.shape[0]:
        raise RuntimeError(f"{operation}: expected input of {weight.shape[0]} channels for weight of shape "
                           f"{weight.shape} (got {input.shape[1]} channels).")
    if bias is not None and tuple(bias.shape) != (weight.shape[1] * groups,):
        raise RuntimeError(f"{operation}: expected bias to be 1-dimensional with {weight.shape[1] * groups} elements "
                           f"(got shape {bias.shape}).")
    if any(extra >= max(step, reach) for extra, step, reach in zip(output_padding, stride, dilation, strict=True)):
        raise RuntimeError(f"{operation}: output padding must be smaller than either stride or dilation (got "
                           f"output_padding={list(output_padding)}, stride={list(stride)}, dilation="
                           f"{list(dilation)}).")


@StaticFunction
def conv1d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """
    Convolve sequences with a kernel.

    ``out[n, o, i] = bias[o] + sum_{c, k} weight[o, c, k] * input[n, c, i * stride - padding + k * dilation]``, where
    elements outside of the input are zero.

    Parameters
    ----------
    input : Tensor
        Of shape (batch, channels, length) or (channels, length).
    weight : Tensor
        Of shape (out channels, channels / groups, kernel size) and the same dtype.
    bias : Tensor, optional
        One element for each output channel.
    stride : int or tuple, default 1
    padding : int, tuple, "valid" or "same", default 0
        Zeros at both ends; "same" keeps the length and requires stride 1.
    dilation : int or tuple, default 1
        Spacing of the kernel elements.
    groups : int, default 1
        Number of groups: output channels of a group depend on its input channels only.

    Returns
    -------
    Tensor
        Of shape (batch, out channels, new length), without the batch if the input has none.

    Raises
    ------
    RuntimeError
        If shapes or dtypes do not match, or the kernel is longer than the padded input.

    Notes
    -----
    Derivative: with respect to the input the transpose of the convolution with the conjugate kernel, with respect to
    the kernel the convolution of the conjugate input with the gradient.

    Examples
    --------
    >>> x = cygrad.tensor([[[1.0, 2.0, 3.0, 4.0]]])
    >>> cygrad.nn.functional.conv1d(x, cygrad.tensor([[[-1.0, 1.0]]]))
    tensor([[[1., 1., 1.]]])
    """
    return _conv(1, input, weight, bias, stride, padding, dilation, groups, "conv1d")


@StaticFunction
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """
    Convolve images with a kernel; see `conv1d` for the formula.

    Parameters
    ----------
    input : Tensor
        Of shape (batch, channels, height, width) or (channels, height, width).
    weight : Tensor
        Of shape (out channels, channels / groups, kernel height, kernel width) and the same dtype.
    bias : Tensor, optional
        One element for each output channel.
    stride, dilation : int or tuple of two, default 1
    padding : int, tuple of two, "valid" or "same", default 0
    groups : int, default 1

    Returns
    -------
    Tensor
        Of shape (batch, out channels, new height, new width), without the batch if the input has none.

    Raises
    ------
    RuntimeError
        If shapes or dtypes do not match, or the kernel is larger than the padded input.

    Notes
    -----
    Derivative: as for `conv1d`.

    Kernels of 3 x 3 with stride 1, no dilation and many channels use Winograd's algorithm if it is faster. Its relative
    error is about 1e-6 in float32, compared to 3e-7 of direct sums, and relative to the largest element within 6 x 6.

    Examples
    --------
    >>> image = cygrad.arange(9.0).reshape(1, 1, 3, 3)
    >>> cygrad.nn.functional.conv2d(image, cygrad.ones(1, 1, 2, 2), stride=1)
    tensor([[[[ 8., 12.],
              [20., 24.]]]])
    """
    return _conv(2, input, weight, bias, stride, padding, dilation, groups, "conv2d")


@StaticFunction
def conv3d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """
    Convolve volumes with a kernel; see `conv1d` for the formula.

    Parameters
    ----------
    input : Tensor
        Of shape (batch, channels, depth, height, width) or without the batch.
    weight : Tensor
        Of shape (out channels, channels / groups, depth, height and width of the kernel) and the same dtype.
    bias : Tensor, optional
        One element for each output channel.
    stride, dilation : int or tuple of three, default 1
    padding : int, tuple of three, "valid" or "same", default 0
    groups : int, default 1

    Returns
    -------
    Tensor
        Of shape (batch, out channels, new depth, new height, new width), without the batch if the input has none.

    Raises
    ------
    RuntimeError
        If shapes or dtypes do not match, or the kernel is larger than the padded input.

    Notes
    -----
    Derivative: as for `conv1d`.

    Examples
    --------
    >>> cygrad.nn.functional.conv3d(cygrad.ones(1, 1, 2, 2, 2), cygrad.ones(1, 1, 2, 2, 2))
    tensor([[[[[8.]]]]])
    """
    return _conv(3, input, weight, bias, stride, padding, dilation, groups, "conv3d")


@StaticFunction
def conv_transpose1d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """
    Apply the transpose of `conv1d` as a linear map: each element of the input adds a multiple of the kernel to the
    output.

    Parameters
    ----------
    input : Tensor
        Of shape (batch, channels, length) or (channels, length).
    weight : Tensor
        Of shape (channels, out channels / groups, kernel size) and the same dtype.
    bias : Tensor, optional
        One element for each output channel.
    stride, dilation : int or tuple, default 1
    padding : int or tuple, default 0
        The padding of the `conv1d`; cropped from both ends of the result.
    output_padding : int or tuple, default 0
        Additional length at the end, because a strided `conv1d` maps several lengths to one. Less than stride or
        dilation.
    groups : int, default 1

    Returns
    -------
    Tensor
        Of length ``(length - 1) * stride - 2 * padding + dilation * (kernel size - 1) + output_padding + 1``.

    Raises
    ------
    RuntimeError
        If shapes or dtypes do not match.

    Notes
    -----
    Derivative: with respect to the input the convolution with the conjugate kernel.

    Examples
    --------
    >>> x = cygrad.tensor([[[1.0, 2.0]]])
    >>> cygrad.nn.functional.conv_transpose1d(x, cygrad.tensor([[[1.0, 1.0]]]), stride=2)
    tensor([[[1., 1., 2., 2.]]])
    """
    return _conv_transpose(1, input, weight, bias, stride, padding, output_padding, groups, dilation,
                           "conv_transpose1d")


@StaticFunction
@documented()
def conv_transpose2d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """
    Apply the transpose of `conv2d` as a linear map; see `conv_transpose1d`.

    Parameters
    ----------
    input : Tensor
        Of shape (batch, channels, height, width) or without the batch.
    weight : Tensor
        Of shape (channels, out channels / groups, kernel height, kernel width) and the same dtype.
    bias : Tensor, optional
    stride, dilation : int or tuple of two, default 1
    padding, output_padding : int or tuple of two, default 0
    groups : int, default 1

    Raises
    ------
    RuntimeError
        If shapes or dtypes do not match.

    Examples
    --------
    >>> cygrad.nn.functional.conv_transpose2d(cygrad.ones(1, 1, 1, 1), cygrad.ones(1, 1, 2, 2))
    tensor([[[[1., 1.],
              [1., 1.]]]])
    """
    return _conv_transpose(2, input, weight, bias, stride, padding, output_padding, groups, dilation,
                           "conv_transpose2d")


@StaticFunction
@documented()
def conv_transpose3d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """
    Apply the transpose of `conv3d` as a linear map; see `conv_transpose1d`.

    Parameters
    ----------
    input : Tensor
        Of shape (batch, channels, depth, height, width) or without the batch.
    weight : Tensor
        Of shape (channels, out channels / groups, depth, height and width of the kernel) and the same dtype.
    bias : Tensor, optional
    stride, dilation : int or tuple of three, default 1
    padding, output_padding : int or tuple of three, default 0
    groups : int, default 1

    Raises
    ------
    RuntimeError
        If shapes or dtypes do not match.

    Examples
    --------
    >>> cygrad.nn.functional.conv_transpose3d(cygrad.ones(1, 1, 1, 1, 1), cygrad.ones(1, 1, 1, 1, 2))
    tensor([[[[[1., 1.]]]]])
    """
    return _conv_transpose(3, input, weight, bias, stride, padding, output_padding, groups, dilation,
                           "conv_transpose3d")
